//! Transports that are not ours, hosted in virtual time: what a flow asks of them.
//!
//! A host is sans-IO: it receives the time, datagrams and the application's bytes, and returns
//! datagrams and its next deadline. Crate `weir-foreign` implements it for QUIC stacks.

use std::fmt::Debug;

use weir_net::Ecn;
use weir_units::{Bytes, Duration, Instant, Rate, Rng};

/// A transport that makes connections.
pub trait ForeignStack: Debug + Send + Sync {
    /// Its name in the tables, as the scenario writes it.
    fn name(&self) -> String;

    /// Makes a connection: its sender, which opens it now, and its receiver. Each has its own random
    /// stream.
    ///
    /// # Errors
    /// Says why the stack refuses.
    fn open(&self, now: Instant, rngs: [Rng; 2]) -> Result<[Box<dyn ForeignEnd>; 2], String>;
}

/// One end of a connection. Time never goes back.
pub trait ForeignEnd {
    /// A datagram arrived.
    fn handle_datagram(&mut self, now: Instant, ecn: Ecn, datagram: &[u8]);

    /// Its deadline has passed.
    fn handle_timeout(&mut self, now: Instant);

    /// When it next wants to be called without a datagram.
    fn next_timeout(&mut self) -> Option<Instant>;

    /// Writes the next datagram into `out`, which is empty, and returns its ECN field.
    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Ecn>;

    /// The application has `bytes` more to send. What they contain is the stack's affair.
    fn write(&mut self, now: Instant, bytes: u64);

    /// The application sends nothing after what it has written.
    fn finish(&mut self, now: Instant);

    /// Takes the bytes that arrived in order since the previous call; returns their number.
    fn read(&mut self) -> u64;

    /// Ends the connection at once.
    fn abort(&mut self, now: Instant);

    /// What happened since the previous call.
    fn poll_event(&mut self) -> Option<ForeignEvent>;

    /// A round trip that it measured since the previous call.
    fn poll_rtt_sample(&mut self) -> Option<Duration>;

    /// The state of its sender.
    fn state(&mut self) -> ForeignState;

    /// The phase of its sender's controller, where that reports one. Called once per sample: it may be costly.
    fn phase(&mut self) -> Option<&'static str>;
}

/// What happened to an end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignEvent {
    /// The handshake is complete.
    Connected,
    /// The peer has acknowledged everything, the end included.
    Finished,
    /// The connection is lost, and why.
    Failed(String),
    /// The bytes that arrived are not those that were sent: a bug of the stack or of its host.
    Damaged {
        /// Where in the stream the piece begins that differs.
        offset: u64,
    },
}

/// State of a sender, as far as the stack reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignState {
    /// The congestion window.
    pub cwnd: Bytes,
    /// The slow-start threshold, where it is finite.
    pub ssthresh: Option<Bytes>,
    /// Sent, neither acknowledged nor declared lost.
    pub in_flight: Bytes,
    /// The smoothed RTT.
    pub srtt: Option<Duration>,
    /// The newest RTT sample.
    pub rtt: Option<Duration>,
    /// The rate at which packets leave, where the controller sets one.
    pub pacing: Option<Rate>,
    /// The controller's estimate of the bandwidth, or the rate of delivery, where it reports one.
    pub delivery: Option<Rate>,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Packets declared lost.
    pub lost: u64,
}
