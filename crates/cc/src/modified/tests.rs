use weir_units::Duration;

use crate::script::Script;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// draft-ietf-ccwg-ratelimited-increase-10, where Linux lets the window grow in none of these rounds: 10 segments, a pause, 4 segments; and rounds of 4, 8, 4 and 20.
#[test]
fn an_unused_window_grows_to_twice_the_largest_flight() {
    let mut script = Script::new("reno(increase=rate-limited)");
    script.limited = false;
    script.round(10, &[ms(100)]);
    script.now += ms(100);
    script.round(4, &[ms(100)]);
    assert_eq!(script.cwnd(), 20, "not 24");
    let mut script = Script::new("reno(increase=rate-limited)");
    script.limited = false;
    let windows = [4, 8, 4, 20].map(|segments| {
        script.round(segments, &[ms(100)]);
        script.cwnd()
    });
    assert_eq!(windows, [14, 20, 20, 40]);
}

/// The same draft: in congestion avoidance a segment beyond the largest flight since the reduction, which forgets the
/// flights before it.
#[test]
fn after_a_reduction_the_flights_before_do_not_count() {
    let mut script = Script::new("reno(increase=rate-limited)");
    script.limited = false;
    for segments in [10, 20, 40] {
        script.round(segments, &[ms(100)]);
    }
    script.lose(1);
    assert_eq!(script.cwnd(), 40);
    for _ in 0..100 {
        script.round(8, &[ms(100)]);
    }
    assert_eq!(script.cwnd(), 40, "no growth beyond 8 + 1 segments");
    for _ in 0..3 {
        let cwnd = script.cwnd();
        script.round(cwnd, &[ms(100)]);
        assert_eq!(script.cwnd(), cwnd + 1);
    }
}

/// RFC 9406 §4.2 and §4.3: a rise by clamp(RTT / 8, 4 ms, 16 ms) starts conservative slow start, a sample below the
/// one that started it ends it.
#[test]
fn hystart_plus_plus_slows_down_where_the_round_trip_rises() {
    let state = |before: u64, after: u64| {
        let mut script = Script::new("reno(slow_start=hystart-plus-plus)");
        script.round(10, &[Duration::from_micros(before)]);
        script.round(20, &[Duration::from_micros(after)]);
        script
    };
    assert_eq!(state(20_000, 24_000).cc.phase(), "conservative_slow_start");
    assert_eq!(state(20_000, 23_900).cc.phase(), "slow_start");
    assert_eq!(state(300_000, 316_000).cc.phase(), "conservative_slow_start");
    assert_eq!(state(300_000, 315_900).cc.phase(), "slow_start");
    let mut script = state(20_000, 24_000);
    // Ten of 20 samples before the eighth one of the round grow it by a segment each, the others by a quarter.
    assert_eq!(script.cwnd(), 20 + 7 + 13 / 4);
    script.round(30, &[ms(22)]);
    assert_eq!(script.cc.phase(), "slow_start");
}

/// RFC 9406 §4.2: five rounds of it end slow start at the present window.
#[test]
fn five_conservative_rounds_end_slow_start() {
    let mut script = Script::new("reno(slow_start=hystart-plus-plus)");
    script.round(10, &[ms(20)]);
    for _ in 0..5 {
        assert_eq!(script.cc.ssthresh(), None);
        let cwnd = script.cwnd();
        script.round(cwnd, &[ms(24)]);
    }
    let cwnd = script.cwnd();
    script.round(cwnd, &[ms(24)]);
    assert_eq!(script.cc.ssthresh().map(|ssthresh| ssthresh.get() / 1_000), Some(cwnd));
    assert_eq!(script.cc.phase(), "congestion_avoidance");
}

/// SEARCH ends it once ten bins that ended an RTT ago are known; Linux's HyStart of `cubic` gives way to it.
#[test]
fn any_controller_with_a_slow_start_takes_another_end() {
    for name in ["reno", "cubic", "westwood", "htcp", "scalable", "dctcp", "vegas"] {
        let mut script = Script::new(&format!("{name}(slow_start=search)"));
        assert_eq!(script.cc.name(), name);
        for round in 0..40 {
            // The path carries 50 segments per round trip of 100 ms.
            for _ in 0..50 {
                let send = script.cwnd().saturating_sub(script.sent - script.acked).min(2);
                script.send(send);
                script.now += ms(2);
                if script.sent > script.acked {
                    script.ack(1, ms(100));
                }
            }
            if script.cc.ssthresh().is_some() {
                assert!(round >= 4, "{name}");
                break;
            }
        }
        assert!(script.cc.ssthresh().is_some(), "{name}");
    }
}
