//! The fields of `struct tcp_info`. Linux counts in segments.

use weir_cc::RecoveryState;
use weir_transport::{ConnectionError, Snapshot, State};
use weir_units::{Bytes, Duration, Instant};

use super::flow::Flow;
use crate::info::{INFINITE_SSTHRESH, Info, Name};

impl Flow {
    pub(super) fn info(&mut self, now: Instant, mss_of_path: u32) -> Info {
        self.connection.account_time(now);
        let connection = &self.connection;
        let (snapshot, stats) = (connection.snapshot(), connection.stats());
        let segments = |bytes: Bytes| bytes.get().div_ceil(snapshot.mss.get()) as i64;
        let micros = |time: Option<Duration>| time.unwrap_or_default().as_micros() as i64;
        let Snapshot { cwnd, ssthresh, .. } = snapshot;
        let mss = snapshot.mss.get();
        let threshold = ssthresh.map(|at| (at.get() / mss) as i64);
        let mut info = Info::default();
        info.set(Name::State, state(self.state()));
        info.set(Name::CaState, ca_state(snapshot.state));
        info.set(Name::Retransmits, i64::from(snapshot.fruitless));
        info.set(Name::SndCwnd, (cwnd.get() / mss) as i64);
        info.set(Name::SndSsthresh, threshold.unwrap_or(INFINITE_SSTHRESH));
        info.set(Name::Unacked, segments(snapshot.unacked));
        info.set(Name::Sacked, segments(snapshot.sacked));
        info.set(Name::Lost, segments(snapshot.lost));
        info.set(Name::Retrans, segments(snapshot.resent));
        info.set(Name::TotalRetrans, stats.retransmits as i64);
        info.set(Name::DsackDups, stats.retransmits_spurious as i64);
        // Linux counts up to the end of the newest segment, our transport up to its start.
        let late = snapshot.reordering;
        let reordering = segments(late) + i64::from(late > Bytes::ZERO);
        info.set(Name::Reordering, reordering.max(LEAST_REORDERING));
        info.set(Name::SndMss, mss as i64);
        info.set(Name::Advmss, i64::from(connection.config().mss.min(mss_of_path)));
        info.set(Name::Rtt, micros(snapshot.srtt));
        info.set(Name::Rttvar, micros(snapshot.rttvar));
        info.set(Name::Rto, micros(Some(snapshot.rto)));
        info.set(Name::MinRtt, micros(snapshot.min_rtt));
        info.set(Name::BytesAcked, stats.acked_bytes as i64);
        info.set(Name::Delivered, self.delivered(stats.acked_bytes, &snapshot));
        info.set(Name::RwndLimited, stats.rwnd_limited.as_micros() as i64);
        info.set(Name::SndbufLimited, self.starved.micros(now));
        info.set(Name::BusyTime, self.busy_micros(now));
        info.set(Name::LastDataRecv, self.since_received(now).as_millis() as i64);
        info.set(Name::Options, self.options());
        info
    }

    /// Segments that the peer has, the SYN included. Data on a SYN counts as part of it.
    fn delivered(&self, acked: u64, snapshot: &Snapshot) -> i64 {
        let confirmed = self.connected && !self.connection.is_unconfirmed();
        let early = if self.connection.syn_data_accepted() { self.early.data } else { 0 };
        let data = acked.saturating_sub(u64::from(early)) + snapshot.sacked.get();
        i64::from(confirmed) + data.div_ceil(snapshot.mss.get()) as i64
    }

    /// `TCPI_OPT_…` of `linux/tcp.h`.
    fn options(&self) -> i64 {
        let agreed = self.connection.negotiated();
        let bits = [
            (agreed.timestamps, 1),
            (agreed.sack, 2),
            (agreed.window_scaling, 4),
            (agreed.ecn, 8),
            (self.connection.syn_data_accepted(), 32),
        ];
        bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
    }
}

/// Linux's number of a state (`linux/tcp_states.h`).
pub(super) const fn state(state: State) -> i64 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

const fn ca_state(state: RecoveryState) -> i64 {
    match state {
        RecoveryState::Open => 0,
        RecoveryState::Disorder => 1,
        RecoveryState::Cwr => 2,
        RecoveryState::Recovery => 3,
        RecoveryState::Loss => 4,
    }
}

pub(super) const fn errno(error: &ConnectionError) -> &'static str {
    match error {
        ConnectionError::Refused => "ECONNREFUSED",
        ConnectionError::Reset => "ECONNRESET",
        _ => "ETIMEDOUT",
    }
}

/// `TCP_FASTRETRANS_THRESH`.
const LEAST_REORDERING: i64 = 3;
