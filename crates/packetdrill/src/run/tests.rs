//! The runner against Weir's transport: what passes, and what is reported otherwise.

use crate::{RunError, Simulated, parse, run};

/// A server's handshake with an RTT of 100 ms and a segment size of 1000 bytes.
const ESTABLISHED: &str = "
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
";

fn outcome(rest: &str) -> Result<(), RunError> {
    let script = parse(&format!("{ESTABLISHED}{rest}")).expect("a script");
    run(&script, &mut Simulated::new(&script.settings))
}

/// The message of a script that must fail.
fn message(rest: &str) -> String {
    match outcome(rest) {
        Err(RunError::Failed(failure)) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_burst_is_one_packet_or_several() {
    let one = "+0 write(4, ..., 3000) = 3000
        +0 > P. 1:3001(3000) ack 1";
    let three = "+0 write(4, ..., 3000) = 3000
        +0 > . 1:1001(1000) ack 1
        +0 > . 1001:2001(1000) ack 1
        +0 > P. 2001:3001(1000) ack 1";
    assert_eq!((outcome(one), outcome(three)), (Ok(()), Ok(())));
}

#[test]
fn a_wrong_field_is_reported_with_both_packets() {
    let text = message("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 2");
    assert_eq!(
        text,
        "line 11: live packet field tcp_ack: expected: 2 vs actual: 1\n\
         script packet: 0.100000 P. 1:1001(1000) ack 2\n\
         actual packet: 0.100000 P. 1:1001(1000) ack 1 win 502"
    );
}

#[test]
fn a_burst_that_is_too_long_differs_in_its_length() {
    let text = message(
        "+0 write(4, ..., 3000) = 3000
        +0 > P. 1:2001(2000) ack 1
        +0 > P. 2001:2501(500) ack 1",
    );
    assert!(text.contains("tcp_data_len: expected: 500 vs actual: 1000"), "{text}");
    let text = message("+0 write(4, ..., 3000) = 3000\n+0 > P. 1:1001(1000) ack 1");
    assert!(text.contains("tcp_flags: expected: P. vs actual: ."), "{text}");
    let unwritten = "+0 write(4, ..., 1000) = 1000\n+0 > . 1:1001(1000) ack 1";
    assert_eq!(outcome(unwritten), Ok(()), "a push that is not written may be there");
    let text = message("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:2001(2000) ack 1");
    assert!(text.contains("tcp_data_len: expected: 2000 vs actual: 1000"), "{text}");
}

#[test]
fn times_have_a_tolerance_of_an_eighth() {
    // The timeout is RTT + 200 ms.
    let at = |time: &str| {
        outcome(&format!(
            "+0 write(4, ..., 1000) = 1000
            +0 > P. 1:1001(1000) ack 1
            +{time} > P. 1:1001(1000) ack 1
            +.1 < . 1:1(0) ack 1001 win 257"
        ))
    };
    assert_eq!(at(".3"), Ok(()));
    let Err(RunError::Failed(late)) = at(".1") else { panic!("it is 0.1 s late") };
    assert!(late.message.starts_with("no packet until 0.212500 sec"), "{late}");
    let Err(RunError::Failed(early)) = at(".5") else { panic!("it is 0.2 s early") };
    assert!(
        early.message.starts_with("timing error: expected outbound packet at 0.600000 sec"),
        "{early}"
    );
}

/// A timer may be as late as the tolerance allows, and a kernel's often is. What follows is not late for that.
#[test]
fn relative_times_count_from_when_the_event_before_happened() {
    let after = |time: &str| {
        outcome(&format!(
            "+0 write(4, ..., 1000) = 1000
            +0 > P. 1:1001(1000) ack 1
            +.28 > P. 1:1001(1000) ack 1
            +.01 < . 1:1(0) ack 1001 win 257
            {time} write(4, ..., 1000) = 1000
            +0 > P. 1001:2001(1000) ack 1"
        ))
    };
    assert_eq!(after("+0"), Ok(()));
    // The timeout was at 0.4, and the acknowledgement came 10 ms later.
    assert_eq!(after("0.42"), Ok(()));
    let Err(RunError::Failed(late)) = after("0.39") else { panic!("it is 20 ms late") };
    assert!(late.message.starts_with("timing error: expected event at 0.390000 sec"), "{late}");
}

#[test]
fn a_packet_before_the_expected_one_is_reported_and_one_after_the_last_is_free() {
    let text = message(
        "+0 write(4, ..., 2000) = 2000
        +0 > P. 1001:2001(1000) ack 1",
    );
    assert!(text.contains("actual packet: 0.100000 . 1:1001(1000)"), "{text}");
    assert_eq!(outcome("+0 write(4, ..., 1000) = 1000"), Ok(()));
}

#[test]
fn a_call_that_may_last_no_time_returns_at_once() {
    assert_eq!(outcome("+.1...0.100 write(4, ..., 1000) = 1000"), Ok(()));
    let text = message("+.1...0.900 write(4, ..., 1000) = 1000");
    assert!(text.contains("the call returns at once"), "{text}");
}

#[test]
fn an_assertion_shows_the_values_of_its_names() {
    assert_eq!(outcome("+0 %{ assert tcpi_snd_cwnd == 10 and tcpi_unacked == 0 }%"), Ok(()));
    let text = message("+0 %{ assert tcpi_snd_cwnd == 2 * 5 + tcpi_unacked + 1 }%");
    let wanted = "line 10: assert tcpi_snd_cwnd == 2 * 5 + tcpi_unacked + 1 does not hold: \
                  tcpi_snd_cwnd = 10, tcpi_unacked = 0";
    assert_eq!(text, wanted);
}

#[test]
fn calls_return_what_a_kernel_returns() {
    assert_eq!(
        outcome("+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 9) = -1 EAGAIN"),
        Ok(())
    );
    assert_eq!(outcome("+0 read(5, ..., 9) = -1 EBADF (Bad file descriptor)"), Ok(()));
    let text = message("+0 read(4, ..., 9) = 0");
    assert!(text.contains("the call returns -1 EAGAIN, expected 0"), "{text}");
}

#[test]
fn a_call_may_block_until_data_comes() {
    let at = |time: &str| {
        outcome(&format!(
            "+0...{time} read(4, ..., 500) = 500
            +.1 < P. 1:501(500) ack 1 win 257
            +0 > . 1:1(0) ack 501"
        ))
    };
    assert_eq!(at(".1"), Ok(()));
    let Err(RunError::Failed(failure)) = at(".3") else { panic!("it returns early") };
    assert!(failure.message.starts_with("timing error: the call returns at 0.200000"), "{failure}");
    let never = message("+0...0.3 read(4, ..., 500) = 500");
    assert!(never.contains("the call does not return"), "{never}");
}

#[test]
fn timestamps_are_those_of_the_script() {
    let script = "
--tcp_ts_tick_usecs=1000
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1012,sackOK,TS val 7 ecr 0,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 100 ecr 7,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 107 ecr 100>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 1000) = 1000
+0 > P. 1:1001(1000) ack 1 <nop,nop,TS val 200 ecr 107>
+.1 < . 1:1(0) ack 1001 win 257 <nop,nop,TS val 207 ecr 200>
+0 %{ assert 99000 <= tcpi_rtt <= 101000 }%
";
    let parsed = parse(script).expect("a script");
    assert_eq!(run(&parsed, &mut Simulated::new(&parsed.settings)), Ok(()));
    let wrong =
        parse(&script.replace("TS val 200 ecr 107>", "TS val 300 ecr 107>")).expect("a script");
    let Err(RunError::Failed(failure)) = run(&wrong, &mut Simulated::new(&wrong.settings)) else {
        panic!("the clock has run for 100 ms");
    };
    assert!(failure.message.contains("option TS"), "{failure}");
}

/// Without a tick a timestamp's value is only a name for the packet that has it.
#[test]
fn a_timestamp_may_be_a_name() {
    let script = "
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 5000:5000(0) win 32792 <mss 1012,sackOK,TS val 7 ecr 0,nop,wscale 7>
+0 > S. 900:900(0) ack 5001 <mss 1460,sackOK,TS val 1 ecr 7,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 257 <nop,nop,TS val 107 ecr 1>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 1000) = 1000
+0 > P. 1:1001(1000) ack 1 <nop,nop,TS val 2 ecr 107>
+.2 < . 1:1(0) ack 1001 win 257 <nop,nop,TS val 207 ecr 2>
+0 %{ low = 99000; assert low <= tcpi_rtt <= 113000 and tcpi_options & TCPI_OPT_TIMESTAMPS }%
+0 %{ low += 1000
print(low); assert low == 100000, low }%
";
    let parsed = parse(script).expect("a script");
    assert_eq!(run(&parsed, &mut Simulated::new(&parsed.settings)), Ok(()));
}

/// The second connection's numbers are its own, and packets of the first are free.
#[test]
fn each_connection_has_numbers_of_its_own() {
    let second = "
+0 write(4, ..., 1000) = 1000
+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
+0 connect(5, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <...>
+.05 < S. 700:700(0) ack 1 win 5792 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+0 > . 1:1(0) ack 1
+0 write(5, ..., 100) = 100
+0 > P. 1:101(100) ack 1
+0 %{ assert tcpi_unacked == 1 }%
+5 < . 1:1(0) ack 101 win 100";
    assert_eq!(outcome(second), Ok(()));
}
