//! Segments that a third party may have forged (RFC 5961, RFC 7323 §5).

use weir_transport::{Config, Connection, Flags, Segment};
use weir_units::{Bytes, Duration, Ecn, Instant};

use super::has_data;
use super::pair::Pair;
use super::pair::Side::Client;

/// A pair whose client has sent a little, and the segment that carried it.
fn after_a_little() -> (Pair, Segment) {
    after_a_little_with(&Config::default())
}

fn after_a_little_with(config: &Config) -> (Pair, Segment) {
    let mut pair = Pair::connected(config);
    pair.write(Client, 1_000);
    pair.drive();
    let data = pair.log.iter().find(|p| p.from == Client && has_data(p)).expect("sent").segment;
    (pair, data)
}

/// How often `connection` answers `count` copies of `segment`, each on its own.
fn answers(connection: &mut Connection, now: Instant, segment: &Segment, times: u32) -> usize {
    let one = |_| {
        connection.handle_segment(now, segment, Ecn::NotEct);
        std::iter::from_fn(|| connection.poll_transmit(now)).count()
    };
    (0..times).map(one).sum()
}

/// RFC 5961 §7: ten within five seconds.
#[test]
fn challenges_are_bounded() {
    let (mut pair, data) = after_a_little();
    let next = data.seq + 1_000;
    let syn = Segment { flags: Flags::SYN, seq: next, payload_len: 0, ..data };
    let reset = Segment { flags: Flags::RST, seq: next + 100, payload_len: 0, ..data };
    let too_far = Segment { ack: data.ack + 1, seq: next, payload_len: 0, ..data };
    let old = Segment { seq: data.seq - 1_000, payload_len: 0, ..data };
    for forged in [syn, reset, too_far, old] {
        pair.drive_for(Duration::from_secs(5));
        let now = pair.now;
        let server = &mut pair.server.connection;
        assert_eq!(answers(server, now, &forged, 1_000), 10, "{forged:?}");
        assert_eq!(answers(server, now, &data, 3), 3, "copies of data are reported as ever");
        assert!(!server.is_closed());
    }
    pair.write(Client, 50_000);
    pair.drive();
    assert_eq!(pair.server.read, 51_000);
}

/// RFC 7323 §3.2: what was agreed upon is on every segment but a reset, and what lacks it is dropped without an
/// answer. Linux takes it.
#[test]
fn data_without_its_timestamp_is_taken_in_by_linux_alone() {
    for (config, taken) in [(Config::default(), true), (Config::for_datagrams(), false)] {
        let (mut pair, data) = after_a_little_with(&config);
        let mut bare = Segment { seq: data.seq + 1_000, ..data };
        bare.options.timestamps = None;
        let now = pair.now;
        let server = &mut pair.server.connection;
        let arrived = server.handle_segment(now, &bare, Ecn::NotEct);
        assert_eq!(arrived.is_some(), taken);
        let empty = Segment { payload_len: 0, ..bare };
        assert_eq!(answers(server, now, &empty, 1), usize::from(taken), "of the data, if any");
    }
}

/// A segment whose acknowledgement cannot be true is not taken in, and neither is its timestamp.
#[test]
fn a_forged_acknowledgement_brings_no_timestamp() {
    let (mut pair, data) = after_a_little();
    let mut forged = Segment { seq: data.seq + 1_000, ack: data.ack + 1_000, ..data };
    forged.options.timestamps.as_mut().expect("agreed upon").value += 1_000_000;
    let now = pair.now;
    pair.server.connection.handle_segment(now, &forged, Ecn::NotEct);
    pair.write(Client, 1_000);
    pair.drive_for(Duration::from_millis(50));
    assert_eq!(pair.server.read, 2_000, "what the client sends is not stale");
}

/// In user space the timestamps of copies count (`HostProfile::UserSpace`), but not those of an attacker, who knows
/// neither what may be acknowledged nor, in a long stream, where it is: what the peer sends next would be stale.
#[test]
fn forged_copies_make_nothing_stale() {
    let config = Config { recv_buffer: Bytes(1 << 16), ..Config::for_datagrams() };
    let mut pair = Pair::connected(&config);
    pair.write(Client, 500_000);
    pair.drive();
    let sent: Vec<_> = pair.log.iter().filter(|p| p.from == Client && has_data(p)).collect();
    let (first, last) = (sent[0].segment, sent[sent.len() - 1].segment);
    let unsent = Segment { ack: last.ack + 1_000, ..last };
    for mut forged in [first, unsent] {
        forged.options.timestamps.as_mut().expect("agreed upon").value += 1_000_000;
        let now = pair.now;
        pair.server.connection.handle_segment(now, &forged, Ecn::NotEct);
    }
    pair.write(Client, 1_000);
    pair.drive_for(Duration::from_millis(30));
    assert_eq!(pair.server.read, 501_000);
}

/// RFC 7323 §5.5: after 24 days a clock of milliseconds may have wrapped.
#[test]
fn timestamps_are_forgotten_after_24_days() {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    for (days, accepted) in [(23, false), (24, true)] {
        let (mut pair, data) = after_a_little();
        pair.drive_for(DAY * days);
        let mut old = Segment { seq: data.seq + 1_000, ..data };
        let timestamps = old.options.timestamps.as_mut().expect("agreed upon");
        timestamps.value = timestamps.value.wrapping_sub(1_000);
        let now = pair.now;
        let arrived = pair.server.connection.handle_segment(now, &old, Ecn::NotEct);
        assert_eq!(arrived.is_some(), accepted, "{days} days");
    }
}
