//! What limits connections whose limit is plain.

use crate::script::Script;

/// The receiver's window holds the sender: 10 segments per round trip.
#[test]
fn a_full_window_of_the_receiver_limits() {
    let mut script = Script::connected(40.0, 0.1);
    let window = (10 * crate::MSS / 128) as u16;
    script.ack_with_window(41.0, 0, window);
    for round in 0..50 {
        let start = 50.0 + 40.0 * f64::from(round);
        for number in 0..10 {
            script.data(start + 0.1 * f64::from(number), round * 10 + number);
            let acked = start + 40.0 - 1.0 + 0.1 * f64::from(number);
            script.ack_with_window(acked, round * 10 + number + 1, window);
        }
    }
    let row = script.row();
    assert_eq!(row.limit, Some("receiver-window"));
    assert!(row.limited_receiver_window > Some(0.9), "{:?}", row.limited_receiver_window);
}

/// A short segment every 100 ms, on a path of 40 ms.
#[test]
fn a_sender_without_data_is_limited_by_its_application() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..50 {
        let start = 50.0 + 100.0 * f64::from(number);
        script.data_of(start, number, crate::MSS);
        script.ack(start + 40.0, number + 1, &[]);
    }
    let row = script.row();
    assert!(row.limited_application > Some(0.55), "{:?}", row.limited_application);
    assert_eq!(row.limit, Some("application"));
}

/// Ten segments a round trip, of 40 ms and in three rounds of ten of 60 ms. One segment is lost in
/// every tenth round, from the second ten on, in which the round trip is this long.
fn losses_in_rounds_of(lossy_ms: f64) -> Script {
    let mut script = Script::connected(40.0, 0.1);
    let mut start = 50.0;
    for round in 0..60 {
        let first = 10 * round;
        let rtt = if round % 10 < 7 { 40.0 } else { 60.0 };
        let lossy = round >= 10 && round % 10 == if lossy_ms > 50.0 { 9 } else { 6 };
        for number in 0..10 {
            let at = start + 0.1 * f64::from(number);
            script.data(at, first + number);
            match number {
                3 if lossy => {}
                4.. if lossy => script.ack(at + rtt, first + 3, &[(first + 4, first + number + 1)]),
                _ => script.ack(at + rtt, first + number + 1, &[]),
            }
        }
        start += rtt + 1.0;
        if lossy {
            script.data(start, first + 3);
            script.ack(start + rtt, first + 10, &[]);
            start += rtt + 0.1;
        }
    }
    script
}

/// The RTT before a loss is in the upper half of its range, from the least to the 95th percentile.
#[test]
fn losses_at_a_grown_round_trip_are_congestion_and_others_random() {
    let grown = losses_in_rounds_of(60.0).row();
    assert!(grown.limited_congestion > Some(0.5), "{:?}", grown.limited_congestion);
    assert_eq!(grown.limited_random_loss, Some(0.0));
    let usual = losses_in_rounds_of(40.0).row();
    assert!(usual.limited_random_loss > Some(0.5), "{:?}", usual.limited_random_loss);
    assert_eq!(usual.limited_congestion, Some(0.0));
}

#[test]
fn shares_add_up_to_one() {
    let mut script = Script::connected(40.0, 0.1);
    for number in 0..200 {
        let start = 50.0 + 3.0 * f64::from(number);
        script.data(start, number);
        script.ack(start + 40.0, number + 1, &[]);
    }
    let row = script.row();
    let shares = [
        row.limited_application,
        row.limited_receiver_window,
        row.limited_send_buffer,
        row.limited_slow_start,
        row.limited_congestion,
        row.limited_random_loss,
        row.limited_policer,
        row.limited_path_capacity,
        row.limited_unknown,
    ];
    let sum: f64 = shares.into_iter().map(|share| share.expect("data was sent")).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
}
