//! Cookies of TCP Fast Open (RFC 7413): the option, and how Linux makes cookies.

use std::net::Ipv4Addr;

/// The option with which a host asks for a cookie, grants one or shows one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpen {
    /// The cookie; an empty one asks for a cookie.
    pub cookie: Cookie,
    /// It is the experimental option of RFC 6994, which Linux used before RFC 7413.
    pub experimental: bool,
}

/// A cookie: space for the longest one, and the length of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie([u8; Cookie::MAX], usize);

impl Cookie {
    /// Asks for a cookie.
    pub const NONE: Self = Self([0; Self::MAX], 0);
    /// The longest (RFC 7413 §4.1.1).
    pub const MAX: usize = 16;
    const MIN: usize = 4;

    /// A cookie of these bytes, if a cookie may have this length; an empty one asks for one.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = bytes.len();
        let valid = len == 0 || ((Self::MIN..=Self::MAX).contains(&len) && len.is_multiple_of(2));
        valid.then(|| {
            let mut all = [0; Self::MAX];
            all[..len].copy_from_slice(bytes);
            Self(all, len)
        })
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0[..self.1]
    }

    /// Whether it asks for a cookie.
    pub const fn is_request(self) -> bool {
        self.1 == 0
    }
}

impl FastOpen {
    /// As a script writes it.
    pub(crate) fn text(&self) -> String {
        let name = if self.experimental { "FOEXP" } else { "FO" };
        if self.cookie.is_request() {
            return name.to_owned();
        }
        let digits = self.cookie.as_slice().iter().map(|byte| format!("{byte:02x}"));
        format!("{name} {}", digits.collect::<String>())
    }
}

/// The secret of which a host makes its cookies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key that Linux's `tcp_fastopen_key` writes as four groups of eight digits, `00112233-…`.
    pub fn parse(text: &str) -> Option<Self> {
        let groups: Vec<&str> = text.split('-').collect();
        if groups.len() != 4 || groups.iter().any(|group| group.len() != 8) {
            return None;
        }
        let mut key = [0; 16];
        for (group, bytes) in groups.iter().zip(key.chunks_mut(4)) {
            bytes.copy_from_slice(&u32::from_str_radix(group, 16).ok()?.to_le_bytes());
        }
        Some(Self(key))
    }

    /// The cookie for connections from `source` to `destination`: SipHash-2-4 of both addresses, as in Linux since
    /// 5.3 (`__tcp_fastopen_cookie_gen_cipher`).
    pub fn cookie(self, source: Ipv4Addr, destination: Ipv4Addr) -> Cookie {
        let mut message = [0; 8];
        message[..4].copy_from_slice(&source.octets());
        message[4..].copy_from_slice(&destination.octets());
        let hash = siphash_of_eight(self.0, u64::from_le_bytes(message));
        let mut bytes = [0; Cookie::MAX];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        Cookie(bytes, 8)
    }
}

/// SipHash-2-4 of eight bytes (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, §2.2).
fn siphash_of_eight(key: [u8; 16], message: u64) -> u64 {
    let key = u128::from_le_bytes(key);
    let (k0, k1) = (key as u64, (key >> 64) as u64);
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    for word in [message, 8 << 56] {
        v[3] ^= word;
        (0..2).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 9th vector of the reference implementation: the key is 00 to 0f, the message 00 to 07.
    #[test]
    fn siphash_is_that_of_its_authors() {
        let key = std::array::from_fn(|at| at as u8);
        let message = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(siphash_of_eight(key, message), 0x93f5_f579_9a93_2462);
    }

    /// The value is that of Linux 6.18 with these addresses and this key.
    #[test]
    fn a_cookie_is_linux_s() {
        let key = Key::parse("a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4").unwrap();
        let cookie = key.cookie(Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 168, 0, 1));
        let text = FastOpen { cookie, experimental: true }.text();
        assert_eq!(text, "FOEXP 3021b9d889017eeb");
    }

    #[test]
    fn a_cookie_has_four_to_sixteen_bytes() {
        let valid = |len: usize| Cookie::new(&vec![1; len]).is_some();
        let lengths: Vec<usize> = (0..20).filter(|len| valid(*len)).collect();
        assert_eq!(lengths, [0, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(Key::parse("1-2-3-4"), None);
    }
}
