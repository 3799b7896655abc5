//! Scripts with any packets, calls and times end: they hold, or the difference is reported.

use proptest::prelude::*;
use weir_packetdrill::{Simulated, parse, run};

const ESTABLISHED: &str = "
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
";

/// A packet whose numbers are near those that the connection expects.
fn packet() -> impl Strategy<Value = String> {
    let flags = prop::sample::select(vec![".", "P.", "F.", "R.", "S", "S.", "-", "E.", "PEW."]);
    let sack = prop::option::of((0..9u32, 0..9u32));
    (flags, 0..4_000u32, 0..3_000u32, 0..40_000u32, any::<u16>(), sack).prop_map(
        |(flags, seq, len, ack, win, sack)| {
            let end = seq + len;
            let ack = if flags.contains('.') { format!(" ack {ack}") } else { String::new() };
            let sack = sack.map_or(String::new(), |(start, end)| {
                format!(" <sack {}:{},nop,nop>", start * 1_000 + 1, end * 1_000 + 1)
            });
            format!("{flags} {seq}:{end}({len}){ack} win {win}{sack}")
        },
    )
}

fn event() -> impl Strategy<Value = String> {
    let wait = prop::sample::select(vec!["+0", "+.001", "+.1", "+1", "+60"]);
    let call = prop::sample::select(vec![
        "write(4, ..., 30000) = 30000",
        "read(4, ..., 1000) = 1000",
        "shutdown(4, SHUT_WR) = 0",
        "close(4) = 0",
        "%{ assert tcpi_snd_cwnd > 0 }%",
    ]);
    prop_oneof![
        5 => (wait.clone(), packet()).prop_map(|(wait, packet)| format!("{wait} < {packet}")),
        1 => packet().prop_map(|packet| format!("* > {packet}")),
        2 => (wait, call).prop_map(|(wait, call)| format!("{wait} {call}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_script_ends(events in prop::collection::vec(event(), 0..30)) {
        let text = format!("{ESTABLISHED}{}", events.join("\n"));
        let script = parse(&text).expect("the pieces are valid");
        let _ = run(&script, &mut Simulated::new(&script.settings));
    }
}
