//! Names of the congestion controls of a kernel's TCP: Linux's own, and those that only a kernel has.

use std::fmt;

/// A congestion control that BPF added to a kernel (`bpf_vegas`); all of Linux's own are modelled here. It can be
/// named, and built by a kernel only.
///
/// ```
/// use weir_cc::KernelName;
///
/// assert_eq!(KernelName::parse("bpf_vegas").map(|name| name.to_string()).as_deref(), Some("bpf_vegas"));
/// assert_eq!(KernelName::parse("vegas"), None, "a controller of this crate");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KernelName {
    bytes: [u8; LONGEST],
    length: usize,
}

/// Linux's own congestion controls, all of which are modelled here.
pub const KERNEL_CONTROLLERS: [&str; 17] = [
    "reno",
    "cubic",
    "bbr",
    "vegas",
    "veno",
    "westwood",
    "htcp",
    "bic",
    "illinois",
    "dctcp",
    "yeah",
    "scalable",
    "hybla",
    "highspeed",
    "nv",
    "cdg",
    "lp",
];

impl KernelName {
    /// `text`, if a kernel may have a congestion control of that name.
    pub fn parse(text: &str) -> Option<Self> {
        let is_added = text.strip_prefix(BPF).is_some_and(|rest| !rest.is_empty());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_added || !is_plain || text.len() > LONGEST {
            return None;
        }
        let mut bytes = [0; LONGEST];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes, length: text.len() })
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes[..self.length].iter().try_for_each(|&byte| write!(f, "{}", char::from(byte)))
    }
}

impl fmt::Debug for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelName({self})")
    }
}

/// Linux's `TCP_CA_NAME_MAX` without the zero at the end.
const LONGEST: usize = 15;
/// By custom in front of what BPF adds.
const BPF: &str = "bpf_";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CcConfig;

    #[test]
    fn all_of_linux_are_controllers_of_this_crate() {
        for name in KERNEL_CONTROLLERS {
            assert!(CcConfig::parse(name).is_ok(), "{name}");
        }
    }
}
