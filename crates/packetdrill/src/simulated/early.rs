//! What a host decides about data on a SYN (RFC 7413), as Linux does (`tcp_fastopen.c`).

use weir_transport::Flags;

use super::flow::Flow;
use crate::endpoint::Received;
use crate::fast_open::{Cookie, FastOpen, Key};
use crate::script::{FastOpenSwitch, Settings};

/// What a client remembers of the peer (`tcp_metrics`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cache {
    pub(super) mss: Option<u16>,
    cookie: Option<FastOpen>,
    attempt: Attempt,
}

/// Which form of the option the peer may understand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Attempt {
    /// The standard's, not tried or granted.
    #[default]
    Standard,
    /// That one had no answer: the experimental one.
    Experimental,
    /// Neither had: the standard's for good.
    Neither,
}

/// What a client's SYN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) option: Option<FastOpen>,
    /// Whether data may go with it.
    pub(super) data: bool,
}

/// The SYN of a client that uses Fast Open.
pub(super) fn offer(settings: &Settings, cache: &Cache) -> Offer {
    if settings.has_fast_open(FastOpenSwitch::ClientWithoutCookie) {
        return Offer { option: None, data: true };
    }
    match cache.cookie {
        Some(cookie) => Offer { option: Some(cookie), data: true },
        // FreeBSD asks once.
        None if settings.freebsd && cache.attempt != Attempt::Standard => {
            Offer { option: None, data: false }
        }
        None => {
            let experimental = cache.attempt == Attempt::Experimental;
            let request = FastOpen { cookie: Cookie::NONE, experimental };
            Offer { option: Some(request), data: false }
        }
    }
}

/// A client learns from the answer to its SYN (`tcp_rcv_fastopen_synack`).
pub(super) fn learn(cache: &mut Cache, flow: &Flow, arriving: &Received, mss: Option<u16>) {
    let flags = arriving.segment.flags;
    if !flags.contains(Flags::SYN.with(Flags::ACK)) {
        return;
    }
    cache.mss = mss.or(cache.mss);
    let granted = arriving.fast_open.filter(|option| !option.cookie.is_request());
    match granted.filter(|_| flow.early.option) {
        Some(option) => cache.cookie = Some(option),
        None if flow.early.data == 0 && flow.connection.stats().timeouts == 0 => {
            let next = if cache.attempt == Attempt::Standard {
                Attempt::Experimental
            } else {
                Attempt::Neither
            };
            if cache.cookie.is_none() {
                cache.attempt = next;
            }
        }
        None => {}
    }
}

/// What a server does with a SYN (`tcp_try_fastopen`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Takes its data, and opens the connection.
    Open,
    /// Grants a cookie.
    Grant(FastOpen),
    /// As without the option.
    Ignore,
}

/// The listening socket takes such data if it is `enabled`, and makes its cookies of `key`.
pub(super) fn decide(
    settings: &Settings,
    enabled: bool,
    key: Key,
    arriving: &Received,
) -> Decision {
    let carries = arriving.segment.payload_len > 0;
    let enabled = settings.has_fast_open(FastOpenSwitch::Server) && enabled;
    let shown = arriving.fast_open;
    if !enabled || !(carries || shown.is_some()) {
        return Decision::Ignore;
    }
    if settings.has_fast_open(FastOpenSwitch::ServerWithoutCookie) {
        return Decision::Open;
    }
    let Some(shown) = shown else { return Decision::Ignore };
    let (local, remote) = settings.addresses;
    let own = key.cookie(remote, local);
    if shown.cookie == own {
        return Decision::Open;
    }
    Decision::Grant(FastOpen { cookie: own, experimental: shown.experimental })
}
