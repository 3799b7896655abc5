//! The names in assertions: the fields of Linux's `struct tcp_info` (tcp(7)) that every endpoint reports.

use weir_units::known;

macro_rules! names {
    ($($(#[$doc:meta])* $variant:ident = $text:literal;)*) => {
        /// A field of `struct tcp_info`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Name {
            $($(#[$doc])* $variant,)*
        }

        impl Name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As scripts write it.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

names! {
    /// State of the connection, as in `TCP_ESTABLISHED`.
    State = "tcpi_state";
    /// State of recovery, as in `TCP_CA_Open`.
    CaState = "tcpi_ca_state";
    /// Timeouts in a row.
    Retransmits = "tcpi_retransmits";
    /// Congestion window in segments.
    SndCwnd = "tcpi_snd_cwnd";
    /// Slow-start threshold in segments.
    SndSsthresh = "tcpi_snd_ssthresh";
    /// Segments sent and not acknowledged cumulatively.
    Unacked = "tcpi_unacked";
    /// Of these, acknowledged selectively.
    Sacked = "tcpi_sacked";
    /// Of these, declared lost.
    Lost = "tcpi_lost";
    /// Of these, sent again and not acknowledged since.
    Retrans = "tcpi_retrans";
    /// Segments sent again so far.
    TotalRetrans = "tcpi_total_retrans";
    /// Reports of segments that arrived twice.
    DsackDups = "tcpi_dsack_dups";
    /// Payload of a segment in bytes.
    SndMss = "tcpi_snd_mss";
    /// Smoothed RTT in microseconds.
    Rtt = "tcpi_rtt";
    /// Mean deviation of the RTT in microseconds.
    Rttvar = "tcpi_rttvar";
    /// Retransmission timeout in microseconds.
    Rto = "tcpi_rto";
    /// Smallest recent RTT in microseconds.
    MinRtt = "tcpi_min_rtt";
    /// Bytes acknowledged.
    BytesAcked = "tcpi_bytes_acked";
    /// Microseconds during which the peer's window held the sender back.
    RwndLimited = "tcpi_rwnd_limited";
    /// Microseconds during which the send buffer held it back.
    SndbufLimited = "tcpi_sndbuf_limited";
    /// Microseconds during which there was something to send.
    BusyTime = "tcpi_busy_time";
    /// What was agreed upon, as in `TCPI_OPT_SACK`.
    Options = "tcpi_options";
    /// Segments delivered so far, the SYN included.
    Delivered = "tcpi_delivered";
    /// The largest distance in segments by which one has come late.
    Reordering = "tcpi_reordering";
    /// Payload of a segment as the peer's sender knows it.
    Advmss = "tcpi_advmss";
    /// Milliseconds since data was received.
    LastDataRecv = "tcpi_last_data_recv";
}

impl Name {
    /// The field that scripts write as `text`.
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.text() == text)
    }

    /// The message about a name that does not exist.
    pub(crate) fn unknown(text: &str) -> String {
        let shown: String = text.chars().take(40).collect();
        let names = known(text, Self::ALL.iter().map(|name| name.text()));
        format!("name '{shown}' is not supported; {names}")
    }
}

/// A name that stands for a number: the states of `linux/tcp.h`, Python's truth values.
pub(crate) fn constant(text: &str) -> Option<i64> {
    // FreeBSD's names of states.
    let text = match text {
        "TCPI_SYN_RECEIVED" => "TCP_SYN_RECV".to_owned(),
        _ => text
            .replace("TCPI_ESTABLISHED", "TCP_ESTABLISHED")
            .replace("TCPI_SYN_SENT", "TCP_SYN_SENT"),
    };
    CONSTANTS.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

/// Values of all fields at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info(Vec<(Name, i64)>);

impl Info {
    /// Sets a field.
    pub fn set(&mut self, name: Name, value: i64) {
        self.0.push((name, value));
    }

    /// The field's value; 0 if it was not set.
    pub fn value(&self, name: Name) -> i64 {
        self.0.iter().find(|(set, _)| *set == name).map_or(0, |(_, value)| *value)
    }
}

/// `TCP_INFINITE_SSTHRESH`: there is no slow-start threshold.
pub const INFINITE_SSTHRESH: i64 = 0x7fff_ffff;

const CONSTANTS: [(&str, i64); 25] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_INFINITE_SSTHRESH", INFINITE_SSTHRESH),
    ("TCPI_OPT_TIMESTAMPS", 1),
    ("TCPI_OPT_SACK", 2),
    ("TCPI_OPT_WSCALE", 4),
    ("TCPI_OPT_ECN", 8),
    ("TCPI_OPT_ECN_SEEN", 16),
    ("TCPI_OPT_SYN_DATA", 32),
    ("True", 1),
    ("False", 0),
];
