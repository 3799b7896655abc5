//! The one list of recovery schemes: for each its name, what it is, how it is written, what its receiver
//! does, what selective acknowledgements mean to it, how it is made.
//!
//! A new one is an entry here, next to its file. What stands in parentheses after a name is the field of
//! the variant; how that is written is in `describe.rs`, or next to the scheme.

use super::LossRecovery;
use super::describe::{Parameters, ReceiverDefaults, SackUse, Scheme, schemes, variant};
use super::go_back_n::{GoBackN, GoBackNConfig};
use super::newreno::NewReno;
use super::rack::{Rack, RackConfig};
use super::reno::Reno;
use super::sack::Sack;
use super::selective_repeat::SelectiveRepeat;
use super::stop_and_wait::StopAndWait;
use crate::catalogue::CatalogueEntry;
use crate::profile::DelayedAck;
use crate::reassembly::OutOfOrder;

schemes! {
    /// rdt3.0 (Kurose and Ross §3.4.1): one segment at a time.
    StopAndWait = "stop-and-wait", "one segment at a time, resent on timeout (rdt3.0)",
        ["stop-and-wait"], NO_REASSEMBLY, SackUse::Ignored,
        StopAndWait;
    /// Cumulative acknowledgements to a receiver without reassembly; resends the window.
    GoBackN(config: GoBackNConfig) = "go-back-n", "cumulative ACKs, no reassembly, resends the window",
        ["go-back-n", "go-back-n(30)", "go-back-n(8,duplicates=off)"], NO_REASSEMBLY, SackUse::Ignored,
        GoBackN::new(config);
    /// Each segment acknowledged and timed on its own.
    SelectiveRepeat {
        /// Segments between the oldest unacknowledged and the newest.
        window: Option<u32>,
    } = "selective-repeat", "each segment acknowledged and timed on its own",
        ["selective-repeat", "selective-repeat(8)"], EVERY_SEGMENT, SackUse::Read,
        SelectiveRepeat::new(window);
    /// RFC 5681's fast retransmit and fast recovery.
    Reno = "reno", "fast retransmit and fast recovery on three duplicate ACKs (RFC 5681)",
        ["reno"], TCP, SackUse::Ignored,
        Reno::default();
    /// RFC 6582: partial acknowledgements repair one hole per round trip.
    NewReno = "newreno", "stays in recovery through partial ACKs (RFC 6582)",
        ["newreno"], TCP, SackUse::Ignored,
        NewReno::default();
    /// RFC 6675: a scoreboard of selective acknowledgements.
    Sack = "sack", "selective acknowledgement scoreboard (RFC 6675)",
        ["sack"], TCP, SackUse::Needed { otherwise: || Box::new(NewReno::default()) },
        Sack::default();
    /// RFC 8985: time-ordered detection with tail loss probes, PRR and undo, as in Linux.
    Rack(config: RackConfig) = "rack", "RACK-TLP with PRR and undo, as in Linux (RFC 8985)",
        ["rack", "rack(tlp=off)", "rack(detection=count)"], TCP,
        SackUse::Needed { otherwise: || Box::new(NewReno::as_linux()) },
        Rack::new(config);
}

/// TCP delays acknowledgements as Linux does.
const TCP: ReceiverDefaults =
    ReceiverDefaults { delayed_ack: DelayedAck::Linux, out_of_order: OutOfOrder::Keep };
/// Protocols of a first course acknowledge every segment.
const EVERY_SEGMENT: ReceiverDefaults =
    ReceiverDefaults { delayed_ack: DelayedAck::Off, out_of_order: OutOfOrder::Keep };
const NO_REASSEMBLY: ReceiverDefaults =
    ReceiverDefaults { delayed_ack: DelayedAck::Off, out_of_order: OutOfOrder::Discard };
