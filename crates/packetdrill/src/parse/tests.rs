//! What the parser reads, and its messages.

use proptest::prelude::*;
use weir_transport::Flags;
use weir_units::{Duration, Ecn};

use super::*;
use crate::script::{Call, CallKind, Exception, ExceptionKind, Options, Packet, Sysctl};

fn action(text: &str) -> Action {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).events.remove(0).action
}

fn message(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

#[test]
fn packets_are_read() {
    let Action::Inject(packet) =
        action("0 < [ce] PE. 1:1001(1000) ack 5 win 257 <sack 7:9 1:3,nop>")
    else {
        panic!("an injected packet")
    };
    let mut options = Options::default();
    options.push_sack(7, 9);
    options.push_sack(1, 3);
    let flags = Flags::PSH.with(Flags::ECE).with(Flags::ACK);
    let wanted = Packet {
        flags,
        seq: 1,
        len: 1000,
        ack: 5,
        window: Some(257),
        ecn: Some(Ecn::Ce),
        options: Some(options),
    };
    assert_eq!(packet, wanted);
    let Action::Expect(packet) = action("0 > S 0:0(0) <...>") else { panic!("an expected packet") };
    assert_eq!((packet.flags, packet.window, packet.options), (Flags::SYN, None, None));
}

#[test]
fn times_are_read() {
    let at = |text: &str| parse(&format!("{text} > . 1:1(0) ack 1")).unwrap().events[0].at;
    let ms = Duration::from_millis;
    assert_eq!(at("0.25"), When::Absolute(ms(250)));
    assert_eq!(at("+.1"), When::Relative(ms(100)));
    assert_eq!(at("*"), When::Any);
    assert_eq!(at("1~2.5"), When::AbsoluteRange(ms(1000), ms(2500)));
    assert_eq!(at("+.1~+.2"), When::RelativeRange(ms(100), ms(200)));
    let Action::Call(call) = action("+0...0.200 connect(3, ..., ...) = 0") else {
        panic!("a call")
    };
    assert_eq!(call.until, Some(When::Relative(ms(200))));
}

#[test]
fn calls_are_read() {
    let call = |text: &str| match action(text) {
        Action::Call(Call { kind, result, errno, .. }) => (kind, result, errno),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        call("0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)"),
        (CallKind::Connect(3), -1, Some("EINPROGRESS".to_owned()))
    );
    assert_eq!(
        call("0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0").0,
        CallKind::SetNonBlocking(3, true)
    );
}

#[test]
fn the_head_and_the_settings_are_read() {
    let script = parse(
        "# case: T1 T2
         # source: RFC 5681 §3.1
         # title: a window
         # known: kernel-6.12: its PRR differs
         // free text: of no interest
         --stack=sack/reno
         `sysctl -q net.ipv4.tcp_ecn=1
          sysctl -q net.ipv4.tcp_sack=0`
         0 close(3) = 0
         # case: T3",
    )
    .unwrap();
    assert_eq!(
        (script.head.cases.join(" "), script.head.title.as_str()),
        ("T1 T2".into(), "a window")
    );
    assert_eq!(script.settings.stack.to_string(), "sack/reno");
    assert_eq!(script.settings.sysctl(Sysctl::Ecn), 1);
    assert_eq!(script.settings.sysctl(Sysctl::Sack), 0);
    assert_eq!(script.settings.sysctl(Sysctl::Timestamps), 1, "the default");
    let known = Exception {
        world: "kernel-6.12".to_owned(),
        kind: ExceptionKind::Known,
        reason: "its PRR differs".to_owned(),
    };
    assert_eq!(script.head.exception("kernel-6.12.74"), Some(&known));
    assert_eq!(script.head.exception("kernel-6.1.170"), None);
    assert_eq!(script.head.exception("sim"), None);
}

/// The head of packetdrill's own tests, and calls in more forms.
#[test]
fn heads_and_calls_of_others_are_understood() {
    let script = parse(
        "// A comment
        `../common/defaults.sh
        sysctl -q net.ipv4.tcp_wmem=\"4096 16384 4194304\" net.ipv4.tcp_congestion_control=reno
        ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_early_retrans=0`
        --mtu=1500
        0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
        +0 bind(3, {sa_family = AF_INET, sin_addr = ...}, ...) = 0
        +0 getsockopt(3, SOL_SOCKET, SO_ERROR, [0], [4]) = 0
        +0 sendmsg(3, {msg_name(...)=..., msg_iov(2)=[{..., 1000}, {..., 500}], msg_flags=0}, 0) = 1500
        +0 writev(3, [{..., 300}, {..., 200}], 2) = 500
        +0 < F 1:1(0) ack 7 win 1
        +0 < . 1:1(0) win 1
        +0 %{ assert (tcpi_snd_cwnd == 10), 'cwnd=%d' % (tcpi_snd_cwnd) }%",
    )
    .unwrap();
    let settings = &script.settings;
    assert_eq!(settings.stack.to_string(), "rack(tlp=off)/reno");
    assert_eq!(settings.receive_memory, Some([4_096, 540_000, 15 << 20]));
    assert_eq!(settings.sysctl(Sysctl::SynRetries), 5);
    assert_eq!(settings.neutral, [("tcp_wmem".into(), "4096 16384 4194304".into())]);
    let written: Vec<u32> = script
        .events
        .iter()
        .filter_map(|event| match &event.action {
            Action::Call(call) => match call.kind {
                CallKind::Write(_, bytes) => Some(bytes),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(written, [1_500, 500]);
}

#[test]
fn mistakes_and_what_only_a_kernel_has_are_named() {
    for (text, part) in [
        ("", "line 1: the script has no events"),
        ("0 > . 1:1001(999) ack 1", "1:1001(999): 1001 - 1 = 1000"),
        ("0 < . 1:1(0) ack 1", "requires 'win N'"),
        ("0 > . 1:1(0)", "flag '.' requires 'ack N'"),
        ("0 > X 1:1(0)", "flags = 'X', allowed are F S R P . E W or -"),
        ("0 < . 1:1(0) ack 1 win 70000", "win = '70000', allowed is 0 to 65535"),
        ("0 < icmp unreachable", "icmp: only TCP packets are supported"),
        ("0 < . 1:1(0) ack 1 win 1 <FO 1>", "option FO: not supported"),
        ("0 < . 1:1(0) ack 1 win 1 <mtu 1>", "option 'mtu': allowed are mss, wscale"),
        ("0 < [red] . 1:1(0) ack 1 win 1", "[red]: allowed is noecn, ect0, ect1, ce"),
        ("\n\n0 sendfile(3, 4) = 0", "line 3: sendfile: this call is not supported; there are"),
        ("0 write(4, \"abc\", 3) = 3", "a text is not supported here"),
        ("0 setsockopt(3, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0", "TCP_FASTOPEN is not supported"),
        ("0 socket(..., SOCK_DGRAM, 0) = 3", "socket: type SOCK_DGRAM is not supported"),
        ("--stack=rack/cubik\n0 close(3) = 0", "cubik"),
        (
            "--stak=rack/cubic\n0 close(3) = 0",
            "--stak=rack/cubic: not supported; did you mean stack?",
        ),
        ("`tc qdisc add`\n0 close(3) = 0", "`tc`: only sysctl, defaults.sh and set_sysctls.py"),
        ("`sysctl -q net.ipv4.tcp_rmem='1 2'`", "allowed are three sizes in bytes"),
        ("`sysctl -q net.ipv4.tcp_dsack=0`", "tcp_dsack = '0': only 1 is supported"),
        ("0 getsockopt(3, SOL_TCP, TCP_INFO, ..., [1]) = 0", "TCP_INFO is not supported, only SO_"),
        ("0 sendmsg(3, {msg_flags=0}, 0) = 1", "sendmsg: expected buffers {..., N}"),
        ("0 send(3, ..., 1, MSG_OOB) = 1", "send: only the flags 0, MSG_DONTWAIT, MSG_NOSIGNAL"),
        ("`sysctl -q net.ipv4.tcp_ecn=7`\n0 close(3) = 0", "tcp_ecn = '7', allowed is 0 to 2"),
        ("`sysctl -q net.ipv4.tcp_ecm=1`", "did you mean tcp_ecn?"),
        ("0 close(3) = 0\n+0 `ip route`", "a shell command has no time"),
        ("4000 close(3) = 0", "allowed is 0 to 3600 seconds"),
        ("1~2 close(3) = 0", "only an expected packet"),
        ("0 %{ print(1) }%", "'print': only 'assert EXPRESSION' is supported"),
        (
            "0 %{ assert tcpi_snd_cwdn == 1 }%",
            "name 'tcpi_snd_cwdn' is not supported; did you mean",
        ),
        ("# known: mars: far\n0 close(3) = 0", "line 1: 'mars: far': allowed is"),
    ] {
        let message = message(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

/// Pieces of scripts, so that more than the first word is read.
fn plausible() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "0",
        "+.1",
        "*",
        "+0...1",
        "~",
        "<",
        ">",
        "S",
        "P.",
        "1:1001(1000)",
        "ack",
        "win",
        "257",
        "<mss 1000,",
        "sack",
        "1:3",
        "TS val 1 ecr",
        ">",
        "<...>",
        "%{",
        "assert",
        "tcpi_rtt",
        "==",
        "(",
        ")",
        "not",
        "-",
        "}%",
        "\n",
        "write(4, ..., 9)",
        "=",
        "close(",
        "[",
        "{",
        "\"",
        "`",
        "sysctl -q",
        "net.ipv4.tcp_ecn=1",
        "--stack=",
        "reno",
        "# case: T1",
        "/*",
        "*/",
        "é",
        "E",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused(text in plausible()) {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.message.is_empty() && error.line >= 1);
        }
    }
}
