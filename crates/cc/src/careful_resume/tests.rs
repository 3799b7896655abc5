use weir_units::{Bytes, Duration, Rate};

use crate::script::Script;

const RTT: Duration = Duration::from_millis(100);

/// A connection that remembers 300 segments and 100 ms, with 29 segments in flight when its initial window is
/// acknowledged after `rtt`.
fn at_the_jump(rtt: Duration) -> Script {
    let mut script = Script::new("careful-resume(reno,cwnd=300,rtt=100ms)");
    script.send(10);
    for _ in 0..9 {
        script.ack(1, rtt);
    }
    assert_eq!(script.cc.phase(), "reconnaissance");
    script.send(29);
    script.ack(1, rtt);
    script
}

/// The jump and what may be sent of it at once: 150 segments less the 29 in flight.
#[test]
fn it_jumps_to_half_of_the_saved_window() {
    let mut script = at_the_jump(RTT);
    assert_eq!((script.cc.phase(), script.cwnd()), ("unvalidated", 150));
    assert_eq!(script.cc.pacing_rate(), Rate::from_transfer(Bytes(150_000), RTT));
    for sent in 1..=121 {
        assert_eq!(script.cc.phase(), "unvalidated", "{sent}");
        script.send(1);
    }
    assert_eq!((script.cc.phase(), script.cwnd()), ("validating", 150));
    assert_eq!(script.cc.pacing_rate(), None);
    for _ in 0..150 {
        script.ack(1, RTT);
    }
    assert_eq!(script.cc.phase(), "slow_start");
    assert_eq!(script.cwnd(), 300, "validating grows as slow start does");
}

/// A source that keeps 50 segments in flight: the first acknowledgement of the jump lowers the window to them.
#[test]
fn a_limited_source_validates_what_it_sent() {
    let mut script = at_the_jump(RTT);
    script.send(21);
    for _ in 0..29 {
        script.ack(1, RTT);
        assert_eq!((script.cc.phase(), script.cwnd()), ("unvalidated", 150));
        script.send(1);
    }
    script.ack(1, RTT);
    assert_eq!((script.cc.phase(), script.cwnd()), ("validating", 50));
}

/// Fewer in flight than the path is known to carry: there is nothing to validate.
#[test]
fn a_source_that_pauses_goes_back_to_the_pipe_size() {
    let mut script = at_the_jump(RTT);
    script.send(10);
    for _ in 0..30 {
        script.ack(1, RTT);
    }
    assert_eq!((script.cc.phase(), script.cwnd()), ("slow_start", 30));
}

/// 63 segments were delivered when the 64th is found lost: half of them is left, without growth, until all of the jump is
/// acknowledged. 30 of 150 are lost: the path carries 120.
#[test]
fn congestion_retreats_to_half_of_what_arrived() {
    let mut script = at_the_jump(RTT);
    script.send(121);
    for _ in 0..63 {
        script.ack(1, RTT);
    }
    script.lose(30);
    assert_eq!((script.cc.phase(), script.cwnd()), ("safe_retreat", 31));
    for _ in 0..86 {
        script.ack(1, RTT);
        assert_eq!((script.cc.phase(), script.cwnd()), ("safe_retreat", 31));
    }
    script.ack(1, RTT);
    assert_eq!((script.cc.phase(), script.cwnd()), ("slow_start", 31));
    assert_eq!(script.cc.ssthresh(), Some(Bytes(60_000)));
}

/// A minimum RTT of at most half of the saved one, or above ten times it, is that of another path.
#[test]
fn another_path_gives_the_jump_up() {
    for (millis, jumps) in [(50, false), (51, true), (1_000, true), (1_001, false)] {
        let script = at_the_jump(Duration::from_millis(millis));
        assert_eq!(script.cc.phase() == "unvalidated", jumps, "{millis} ms");
        assert_eq!(script.cwnd(), if jumps { 150 } else { 20 }, "{millis} ms");
    }
}

#[test]
fn a_loss_in_the_first_window_gives_the_jump_up() {
    let mut script = Script::new("careful-resume(reno,cwnd=300,rtt=100ms)");
    script.send(10);
    script.lose(1);
    for _ in 0..10 {
        script.ack(1, RTT);
    }
    assert_eq!(script.cc.phase(), "congestion_avoidance");
    assert!(script.cwnd() < 10, "{}", script.cwnd());
}

/// An unfounded reduction is taken back in full.
#[test]
fn a_spurious_loss_ends_the_retreat() {
    let mut script = at_the_jump(RTT);
    script.send(121);
    script.ack(1, RTT);
    let before = script.cwnd();
    script.lose(1);
    script.call(|cc, cx| cc.on_spurious(cx));
    assert_eq!((script.cc.phase(), script.cwnd()), ("slow_start", before));
}
