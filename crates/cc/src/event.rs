//! The records that pass between transport and controller.

use weir_units::{Bytes, Duration, Echo, Ecn, FeedbackKind, Instant, Rate, Rng};

/// State of the connection, passed to every call.
///
/// [`new`](Self::new) gives every field a value, so that a host names only what it knows. Further fields may follow.
///
/// ```
/// use weir_cc::{CcContext, RttSnapshot};
/// use weir_units::{Bytes, Duration, Instant, stream};
///
/// let mut rng = stream(1, "controller");
/// let srtt = Some(Duration::from_millis(30));
/// let cx = CcContext {
///     rtt: RttSnapshot { srtt, ..RttSnapshot::default() },
///     cwnd_limited: true,
///     ..CcContext::new(Instant::ZERO, Bytes(1_200), &mut rng)
/// };
/// assert_eq!((cx.rtt.srtt, cx.peer_window), (srtt, Bytes::MAX));
/// ```
#[derive(Debug)]
pub struct CcContext<'a> {
    /// Now.
    pub now: Instant,
    /// The largest payload of a segment.
    pub mss: Bytes,
    /// Round-trip times so far.
    pub rtt: RttSnapshot,
    /// Sent, neither acknowledged nor declared lost. In `on_ack` and `on_congestion`: after the
    /// acknowledgement was taken in. On a timeout: what recovery keeps in flight (RACK spares what
    /// was sent lately; the others keep nothing).
    pub bytes_in_flight: Bytes,
    /// The stream offset below which everything is acknowledged. In `on_ack`: the new one.
    pub snd_una: u64,
    /// The stream offset of the next new byte to send. A round trip is over when `snd_una` passes
    /// what `snd_nxt` was at its start.
    pub snd_nxt: u64,
    /// Bytes delivered so far: acknowledged cumulatively or selectively for the first time.
    pub delivered: Bytes,
    /// Of these, the bytes whose acknowledgement echoed a congestion mark (Linux's `delivered_ce`).
    pub delivered_marked: Bytes,
    /// When the pacer lets the next segment leave; `now` or earlier where nothing holds it back.
    pub next_departure: Instant,
    /// Whether the sender paces controllers that set no rate of their own (`fq` or `SO_MAX_PACING_RATE`
    /// in Linux): the pacer may then spread a window over half a round trip.
    pub paced: bool,
    /// Whether the application, not the network, bounds the delivery rate of what is now in flight:
    /// segments sent now would carry [`RateSample::app_limited`].
    pub app_limited: bool,
    /// Whether the window has lately held the sender back: only then may it grow (RFC 9438 §5.8,
    /// Linux's `tcp_is_cwnd_limited`: in slow start, in flight above half the window counts too).
    pub cwnd_limited: bool,
    /// The largest window that the peer has offered, or the sender's own limit (`window_limit`) if that is smaller.
    pub peer_window: Bytes,
    /// What the acknowledgement at hand returns of the routers' feedback, also in `on_congestion`.
    pub feedback: Option<Echo>,
    /// Where the recovery epoch stands.
    pub state: RecoveryState,
    /// The controller's own random stream.
    pub rng: &'a mut Rng,
}

impl<'a> CcContext<'a> {
    /// The context of a connection that has sent nothing yet; a host sets the other fields. It bounds neither the
    /// peer's window nor the departure of the next segment.
    pub fn new(now: Instant, mss: Bytes, rng: &'a mut Rng) -> Self {
        Self {
            now,
            mss,
            rtt: RttSnapshot::default(),
            bytes_in_flight: Bytes::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            delivered: Bytes::ZERO,
            delivered_marked: Bytes::ZERO,
            next_departure: now,
            paced: false,
            app_limited: false,
            cwnd_limited: false,
            peer_window: Bytes::MAX,
            feedback: None,
            state: RecoveryState::Open,
            rng,
        }
    }
}

/// Round-trip times as the transport has measured them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttSnapshot {
    /// The newest sample.
    pub latest: Option<Duration>,
    /// RFC 6298's smoothed time.
    pub srtt: Option<Duration>,
    /// RFC 6298's variation.
    pub rttvar: Duration,
    /// The smallest of the connection's life.
    pub min: Option<Duration>,
}

/// The state of the recovery epoch, in Linux's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoveryState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements are coming in, nothing is declared lost.
    Disorder,
    /// Reducing after an ECN echo.
    Cwr,
    /// Repairing losses found by acknowledgements.
    Recovery,
    /// Repairing after a retransmission timeout.
    Loss,
}

impl RecoveryState {
    /// Whether losses are being repaired.
    pub(crate) fn repairs(self) -> bool {
        matches!(self, Self::Recovery | Self::Loss)
    }
}

/// One acknowledgement, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckEvent {
    /// Bytes newly delivered: acknowledged cumulatively or selectively for the first time.
    pub acked: Bytes,
    /// Bytes by which the cumulative acknowledgement moved.
    pub cum_acked: Bytes,
    /// Bytes newly declared lost while taking it in, also if `on_congestion` reported them
    /// just before.
    pub lost: Bytes,
    /// The RTT of the newest segment that it acknowledges for the first time, cumulatively or
    /// selectively; none if that segment was retransmitted and no timestamp tells which copy
    /// arrived.
    pub rtt: Option<Duration>,
    /// The delivery rate it implies; none without a valid interval.
    pub rate: Option<RateSample>,
    /// The last segment declared lost since the acknowledgement before, by this one or by a timer.
    pub loss: Option<LossSample>,
    /// Whether it moved nothing forward.
    pub duplicate: bool,
    /// Whether data above the cumulative acknowledgement has arrived, as SACK shows (Linux's `sacked_out`).
    pub disordered: bool,
    /// Whether the path reorders by more than three segments: then what is delivered counts, in whatever
    /// order.
    pub any_order: bool,
    /// Whether header prediction expects it (Jacobson's; Linux's fast path): no SACK block, no
    /// congestion echo, the same window as before.
    pub predicted: bool,
    /// Bytes in flight before it was taken in.
    pub prior_in_flight: Bytes,
    /// The window in force before it was taken in, where the host meters a reduction (proportional rate reduction):
    /// the controller's is then what it arrives at. None where the controller's is in force.
    pub metered_window: Option<Bytes>,
    /// Whether it shows that a probe has repaired a loss: the episode of `on_congestion` began and ended with it, as
    /// Linux's `TCP_CA_CWR` in `tcp_process_tlp_ack`.
    pub brief_episode: bool,
    /// How many packet-timed round trips the connection has seen.
    pub round: u64,
    /// Its timestamps, where both ends have them.
    pub timestamps: Option<AckTimestamps>,
}

/// The timestamps of an acknowledgement (RFC 7323), in milliseconds of either end's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckTimestamps {
    /// When it was sent, by the peer's clock.
    pub value: u32,
    /// When what it answers was sent, by our clock.
    pub echo: u32,
}

/// A delivery rate sample (Cheng, Cardwell, Yeganeh and Jacobson,
/// draft-cheng-iccrg-delivery-rate-estimation-02; Linux's `struct rate_sample`).
///
/// [`host::RateSampler`](crate::host::RateSampler) makes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// The connection's delivered count when the newest acknowledged segment was sent.
    pub prior_delivered: Bytes,
    /// The connection's delivered count now.
    pub total_delivered: Bytes,
    /// Bytes in flight when the newest acknowledged segment left, itself included.
    pub in_flight_at_send: Bytes,
    /// Bytes declared lost since then.
    pub lost: Bytes,
    /// Whether the application, not the network, bounded the sample.
    pub app_limited: bool,
}

impl RateSample {
    /// Delivered over interval; `None` for an empty interval.
    ///
    /// ```
    /// use weir_cc::host::RateSampler;
    /// use weir_units::{Bytes, Duration, Instant, Rate};
    ///
    /// let mut sampler = RateSampler::default();
    /// let record = sampler.on_sent(Instant::ZERO, true);
    /// let now = Instant::ZERO + Duration::from_millis(10);
    /// let sample = sampler.on_ack(now, Bytes(2_500), Some((Instant::ZERO, record)), None).unwrap();
    /// assert_eq!(sample.rate(), Some(Rate::from_mbit(2)));
    /// ```
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_transfer(self.delivered, self.interval)
    }
}

/// What is known of a segment declared lost (draft-ietf-ccwg-bbr §5.5.10.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossSample {
    /// Its bytes.
    pub size: Bytes,
    /// Bytes in flight when it left, itself included.
    pub in_flight_at_send: Bytes,
    /// Bytes declared lost since then, itself included.
    pub lost: Bytes,
    /// Whether the application, not the network, bounded what was sent then.
    pub app_limited: bool,
}

/// Congestion was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionEvent {
    /// How.
    pub cause: Cause,
    /// Whether this opens a recovery epoch. One epoch asks for one reduction of the threshold; a
    /// timeout inside an epoch only restarts the window.
    pub first_in_epoch: bool,
    /// Bytes declared lost with it.
    pub lost: Bytes,
    /// Bytes in flight just before anything was declared lost.
    pub prior_in_flight: Bytes,
}

/// How congestion was signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Acknowledgements showed a loss.
    FastRetransmit,
    /// The retransmission timer fired, for the `backoff + 1`-th time in a row.
    Timeout {
        /// How often the timer had been backed off before.
        backoff: u32,
    },
    /// The receiver echoed a congestion mark (RFC 3168).
    EcnEcho,
    /// The controller requested it
    /// ([`poll_episode`](crate::CongestionController::poll_episode)).
    Delay,
}

/// Something happened to the path or to its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The sender resumes after sending nothing for `idle`, with `rto` the current timeout
    /// (RFC 5681 §4.1; Linux's `tcp_slow_start_after_idle`).
    IdleRestart {
        /// How long nothing was sent.
        idle: Duration,
        /// The retransmission timeout, without back-off.
        rto: Duration,
    },
    /// The path's segment size is now this.
    MssChanged(Bytes),
}

/// What a controller asks of the transport.
///
/// ```
/// use weir_cc::CcConfig;
/// use weir_units::{Bytes, Ecn};
///
/// let needs = |name: &str| name.parse::<CcConfig>().unwrap().build(Bytes(1_200), Bytes(12_000)).unwrap().needs();
/// assert!(needs("bbr").rate_samples && needs("bbr").own_reduction && needs("bbr").pacing);
/// assert!(needs("lp").timestamps);
/// assert_eq!(needs("prague").ecn, Ecn::Ect1);
/// assert!(!needs("reno").rate_samples);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The ECN field of every packet that it sends, where the peer agrees; each mark is then echoed for
    /// itself (RFC 8257 §3.2). [`Ecn::NotEct`]: it does not live on marks.
    pub ecn: Ecn,
    /// Compute delivery rate samples.
    pub rate_samples: bool,
    /// Apply no PRR: `cwnd` alone says what may be sent, in recovery too (BBR).
    pub own_reduction: bool,
    /// Honour [`pacing_rate`](crate::CongestionController::pacing_rate): the window alone does not keep it from
    /// filling the queue.
    pub pacing: bool,
    /// Pass the timestamps of acknowledgements ([`AckEvent::timestamps`]).
    pub timestamps: bool,
    /// Pass acknowledgements of nothing new that come with data while nothing is in flight, as Linux calls
    /// `in_ack_event` for the next request of a connection that has answered one.
    pub every_ack: bool,
    /// Call [`on_delivery`](crate::CongestionController::on_delivery).
    pub measures_first: bool,
    /// Let data packets carry what [`CongestionController::request`](crate::CongestionController::request)
    /// gives them past the routers.
    pub feedback: Option<FeedbackKind>,
}
