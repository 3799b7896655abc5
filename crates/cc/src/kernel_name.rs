//! Names of congestion controls that only a kernel's TCP has.

use std::fmt;

/// Which of a kernel's own congestion controls: one of Linux's that is not modelled here (`bic`), or one
/// that BPF added (`bpf_vegas`). It can be named, and built by a kernel only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KernelName {
    bytes: [u8; LONGEST],
    length: usize,
}

impl KernelName {
    /// `text`, if a kernel may have a congestion control of that name.
    pub fn parse(text: &str) -> Option<Self> {
        let added = text.strip_prefix(BPF).is_some_and(|rest| !rest.is_empty());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !(added || LINUXS.contains(&text)) || !is_plain || text.len() > LONGEST {
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
/// Those of Linux 6.1 that this crate has not.
const LINUXS: [&str; 8] = ["bic", "cdg", "highspeed", "hybla", "lp", "nv", "scalable", "yeah"];
