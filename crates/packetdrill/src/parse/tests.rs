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
    assert_eq!(settings.send_memory, Some([4_096, 16_384, 4 << 20]));
    let written: Vec<u32> = script
        .events
        .iter()
        .filter_map(|event| match &event.action {
            Action::Call(call) => match call.kind {
                CallKind::Write(_, bytes, _) => Some(bytes),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(written, [1_500, 500]);
}

/// Settings that change within a script, addresses, and what a comment or a shell's sign ends.
#[test]
fn commands_are_understood_where_they_stand() {
    let script = parse(
        "--local_ip=192.168.0.2
        --remote_ip=10.248.0.2
        --tcp_ts_tick_usecs=1000
        `../common/defaults.sh
        ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 \\
                                 /proc/sys/net/ipv4/tcp_fastopen=0x5
        tc qdisc replace dev tun0 root fq   # paces
        ethtool -K tun0 tso off`
        0 close(3) = 0
        +0 `sysctl -q net.ipv4.tcp_ecn=1 > /dev/null 2>&1`
        +0 `ip tcp_metrics flush all`
        `/tmp/sysctl_restore_${PPID}.sh`",
    )
    .unwrap();
    let settings = &script.settings;
    assert_eq!((settings.fast_open, settings.paces, settings.tick), (5, true, Some(1_000)));
    assert_eq!(settings.sysctl(Sysctl::Timestamps), 0);
    assert_eq!(settings.addresses.1.octets(), [10, 248, 0, 2]);
    let changed: Vec<(i64, u32)> = script
        .events
        .iter()
        .filter_map(|event| match &event.action {
            Action::Configure(settings) => Some((settings.sysctl(Sysctl::Ecn), settings.flushes)),
            _ => None,
        })
        .collect();
    assert_eq!(changed, [(1, 0), (1, 1)], "what comes last without a time cleans up");
}

/// Heads of FreeBSD's tests.
#[test]
fn sysctls_of_freebsd_are_understood() {
    let script = parse(
        "--ip_version=ipv6
        0.00 `sysctl -w net.inet.tcp.rfc1323=0`
        +0 `sysctl -w net.inet.tcp.recvspace=65536`
        +0 `sysctl -w kern.ipc.maxsockbuf=2097152`
        +0 `sockstat -6 -P tcp -p 8080 -s | grep -c SYN_RCVD | grep 1`
        +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
    )
    .unwrap();
    assert!(script.settings.ipv6);
    let Action::Configure(settings) = &script.events[2].action else { panic!("a command") };
    assert_eq!(settings.receive_memory, Some([4_096, 131_072, 2 << 20]));
    let off = [Sysctl::Timestamps, Sysctl::WindowScaling].map(|sysctl| settings.sysctl(sysctl));
    assert_eq!((off, settings.freebsd), ([0, 0], true));
    assert!(matches!(script.events[3].action, Action::Count(3, 1)));
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
        ("0 < . 1:1(0) ack 1 win 1 <md5 1>", "option md5: not supported"),
        ("0 < S 0:0(0) win 1 <FO 1>", "cookie '1': allowed are pairs of hexadecimal digits"),
        ("0 > S 0:0(0) <FO 112233>", "a cookie of 3 bytes: allowed are 4 to 16"),
        ("0 < . 1:1(0) ack 1 win 1 <mtu 1>", "option 'mtu': allowed are mss, wscale"),
        ("0 < [red] . 1:1(0) ack 1 win 1", "[red]: allowed is noecn, ect0, ect1, ce"),
        ("\n\n0 splice(3, 4) = 0", "line 3: splice: this call is not supported; there are"),
        ("0 write(4, \"abc\", 3) = 3", "allowed is write(FD, ..., N)"),
        ("0 setsockopt(3, SOL_TCP, TCP_MD5SIG, [1], 4) = 0", "TCP_MD5SIG is not supported"),
        (
            "0 recvmsg(3, {msg_iov(1)=[{..., 1}], msg_control=[{cmsg_data=1}]}, 0) = 1",
            "control messages",
        ),
        ("0 poll([{fd=4, events=POLLOUT}], 1, 9) = 1", "poll: these arguments are not supported"),
        ("0 socket(..., SOCK_DGRAM, 0) = 3", "socket: type SOCK_DGRAM is not supported"),
        ("--stack=rack/cubik\n0 close(3) = 0", "cubik"),
        (
            "--stak=rack/cubic\n0 close(3) = 0",
            "--stak=rack/cubic: not supported; did you mean stack?",
        ),
        ("`tc qdisc add dev tun0 root netem`\n0 close(3) = 0", "`tc ... netem`: only fq, fq_codel"),
        ("`tc qdisc add dev tun0 root pfifo limit 0`", "a device that takes no packet"),
        ("`echo 1 > /etc/x`", "only /proc/sys/net and hystart_detect"),
        ("`wget x`\n0 close(3) = 0", "`wget`: this command is not supported; there are sysctl"),
        ("`sysctl -w net.inet.tcp.insecure_rst=1`", "insecure_rst = '1': only 0 is supported"),
        ("`sysctl -q net.ipv4.tcp_rmem='1 2'`", "allowed are three sizes in bytes"),
        ("`sysctl -q net.ipv4.tcp_dsack=0`", "tcp_dsack = '0': only 1 is supported"),
        (
            "0 getsockopt(3, SOL_TCP, TCP_INFO, ..., [1]) = 0",
            "getsockopt: TCP_INFO is not supported",
        ),
        ("0 sendmsg(3, {msg_flags=0}, 0) = 1", "sendmsg: expected buffers {..., N}"),
        ("0 send(3, ..., 1, MSG_OOB) = 1", "send: only the flags 0, MSG_DONTWAIT, MSG_NOSIGNAL"),
        ("`sysctl -q net.ipv4.tcp_ecn=7`\n0 close(3) = 0", "tcp_ecn = '7', allowed is 0 to 2"),
        ("`sysctl -q net.ipv4.tcp_ecm=1`", "did you mean tcp_ecn?"),
        ("0 close(3) = 0\n+0 `ip route`", "`ip`: this command is not supported"),
        ("4000 close(3) = 0", "allowed is 0 to 3600 seconds"),
        ("1~2 close(3) = 0", "only an expected packet"),
        ("0 %{ import os }%", "'import': only 'assert EXPRESSION', 'NAME = EXPRESSION'"),
        ("0 %{ x += 1 }%", "'x' was not set before"),
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
