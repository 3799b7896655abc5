use proptest::prelude::*;

use weir_units::Bytes;

use super::*;
use crate::{Decimal, Decrease, Increase};

fn round_trip(text: &str) -> String {
    CcConfig::parse(text).expect("a valid controller").to_string()
}

fn error(text: &str) -> String {
    CcConfig::parse(text).expect_err("an invalid controller").to_string()
}

#[test]
fn every_example_reads_and_names_its_controller() {
    let mss = Bytes(1_448);
    let mut seen = 0;
    for entry in CcConfig::CATALOGUE {
        assert_eq!(entry.examples[0], entry.name);
        for example in entry.examples {
            let config = CcConfig::parse(example).expect("a valid example");
            assert_eq!(config.build(mss, mss * 10).unwrap().name(), entry.name);
            assert_eq!(CcConfig::parse(&config.to_string()), Ok(config));
            seen += 1;
        }
    }
    assert!(seen >= CcConfig::CATALOGUE.len() && seen > 0);
}

#[test]
fn defaults_are_left_out_or_written_out() {
    assert_eq!(round_trip(" none "), "none");
    assert_eq!(round_trip("none( 30 )"), "none(30)");
    assert_eq!(round_trip("cubic(hystart=linux)"), "cubic");
    assert_eq!(round_trip("cubic( hystart = off )"), "cubic(hystart=off)");
    assert_eq!(round_trip("cubic(friendliness=on)"), "cubic");
    assert_eq!(round_trip("cubic(idle=epoch)"), "cubic");
    assert_eq!(round_trip("cubic(idle=recovery)"), "cubic(idle=recovery)");
    let both = "cubic(hystart=off,friendliness=off)";
    assert_eq!(round_trip("cubic(friendliness=off, hystart=off)"), both);
    assert_eq!(round_trip("dctcp(alpha0=1.0)"), "dctcp");
    assert_eq!(round_trip("dctcp( g = 1/4 )"), "dctcp(g=1/4,alpha0=1)");
    assert_eq!(round_trip("dctcp(alpha0=.5,g=1)"), "dctcp(g=1,alpha0=0.5)");
    assert_eq!(round_trip("prague( rtt = 25ms )"), "prague");
    assert_eq!(round_trip("prague(rtt=0s)"), "prague(rtt=0ms)");
    assert_eq!(round_trip("ledbat(target=100ms)"), "ledbat");
    assert_eq!(round_trip("copa(mode=auto,delta=0.50)"), "copa");
    assert_eq!(round_trip("copa(mode=default, delta=.1)"), "copa(delta=0.1,mode=default)");
    assert_eq!(round_trip("lp( offsets = random )"), "lp");
    assert_eq!(round_trip("lp(offsets=none)"), "lp(offsets=none)");
    assert_eq!(round_trip("reno-002( ssthresh = 4 )"), "reno-002(ssthresh=4)");
    assert_eq!(round_trip("bbr2( ecn = on )"), "bbr2(ecn=on)");
    assert_eq!(round_trip("bbr3(text=007dbe1f)"), "bbr3");
    assert_eq!(round_trip("aimd"), "aimd(1,0.8)");
    assert_eq!(round_trip("aiad"), "aiad(1,3)");
    assert_eq!(round_trip("mimd"), "mimd(1.125,0.8)");
    assert_eq!(round_trip("miad"), "miad(1.125,3)");
    assert_eq!(round_trip("aimd(1.50, .5)"), "aimd(1.5,0.5)");
}

#[test]
fn common_parameters_follow_a_controllers_own() {
    for (text, shown) in [
        ("reno(increase=linux,slow_start=own)", "reno"),
        (
            "reno( increase=rate-limited, slow_start=search)",
            "reno(slow_start=search,increase=rate-limited)",
        ),
        ("cubic(slow_start=search)", "cubic(hystart=off,slow_start=search)"),
        ("cubic(increase=rate-limited)", "cubic(increase=rate-limited)"),
        (
            "dctcp(slow_start=hystart-plus-plus,g=1/4)",
            "dctcp(g=1/4,alpha0=1,slow_start=hystart-plus-plus)",
        ),
        ("careful-resume(cubic)", "careful-resume"),
        ("careful-resume( reno , rtt=1ms, cwnd=300 )", "careful-resume(reno,cwnd=300,rtt=1ms)"),
        ("careful-resume(cwnd=2,rtt=9ms)", "careful-resume(cubic,cwnd=2,rtt=9ms)"),
        ("careful-resume(dctcp(g=1/4,alpha0=0))", "careful-resume(dctcp(g=1/4,alpha0=0))"),
    ] {
        assert_eq!(round_trip(text), shown);
        assert_eq!(round_trip(shown), shown);
    }
}

#[test]
fn errors_name_the_parameter_the_value_and_what_is_allowed() {
    insta::assert_snapshot!(
        [
            "renoo",
            "",
            "none(0)",
            "reno-002(4)",
            "reno-002(ssthresh=1)",
            "none(3.5)",
            "none()",
            "reno(1)",
            "cubic(beta=3)",
            "cubic(hystart=maybe)",
            "cubic(friendliness=maybe)",
            "veno(3)",
            "bic(beta=1)",
            "vegas(alpha=0)",
            "vegas(delta=1)",
            "hybla(rtt0=0ms)",
            "westwood(gain=0.1)",
            "cubic(c=0)",
            "lp(offsets=some)",
            "lp(none)",
            "lp(offsets=none,offsets=none)",
            "dctcp()",
            "dctcp(1/16)",
            "dctcp(g=1/3)",
            "dctcp(g=1/2048)",
            "dctcp(alpha0=1.5)",
            "prague(25ms)",
            "prague(rtt=0.5ms)",
            "ledbat(target=101ms)",
            "ledbat(target=0ms)",
            "copa(0.5)",
            "copa(delta=0)",
            "copa(mode=tcp)",
            "aimd(1)",
            "aimd(0,0.5)",
            "aimd(1,1)",
            "mimd(1,0.5)",
            "miad(1.5,x)",
            "aimd(1,0.12345)",
            "aimd(1,0.5,3)",
            "reno)",
            "none(1",
            "none((1))",
            "reno(slow_start=hystart)",
            "bbr(slow_start=search)",
            "bbr2(ecn=1)",
            "bbr3(text=05)",
            "cubic(hystart=linux,slow_start=search)",
            "careful-resume(bbr)",
            "careful-resume(renoo)",
            "careful-resume(reno,cwnd=300)",
            "careful-resume(reno,cwnd=1,rtt=1ms)",
            "careful-resume(reno,cwnd=300,rtt=1.5ms)",
            "careful-resume(reno,300)",
            "careful-resume(reno",
        ]
        .map(|text| format!("{text:22} {}", error(text)))
        .join("\n")
    );
}

#[test]
fn a_kernels_names_are_read_where_a_kernel_may_be_meant() {
    for name in ["bpf_vegas", "bpf_fifteen_lon"] {
        let read = CcConfig::parse_also_kernels(name).expect("a kernel may have it");
        assert_eq!(read.to_string(), name);
        assert!(CcConfig::parse(name).is_err(), "{name} is none of ours");
    }
    assert_eq!(CcConfig::parse_also_kernels(" cubic "), Ok(CcConfig::parse("cubic").unwrap()));
    for name in ["bpf_", "bpf_a_b_c_d_e_f_", "bpf_é", "bpf_x(1)", "bicc", "vega", ""] {
        assert!(CcConfig::parse_also_kernels(name).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(
        family in 0..5_usize,
        a in 1_001..=2_000_u32,
        b in 1..=999_u32,
        window in proptest::option::of(1..=1_000_000_u64),
    ) {
        let decimal = |n| Decimal::from_thousandths(n).expect("in range");
        let (a, b) = (decimal(a), decimal(b));
        let config = match family {
            0 => CcConfig::None { window },
            1 => CcConfig::Parametric { increase: Increase::Add(a), decrease: Decrease::Multiply(b) },
            2 => CcConfig::Parametric { increase: Increase::Add(a), decrease: Decrease::Subtract(b) },
            3 => CcConfig::Parametric { increase: Increase::Multiply(a), decrease: Decrease::Multiply(b) },
            _ => CcConfig::Parametric { increase: Increase::Multiply(a), decrease: Decrease::Subtract(b) },
        };
        prop_assert_eq!(CcConfig::parse(&config.to_string()), Ok(config));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z]{0,6}[(]?[0-9.,=a-z-]{0,8}[)]?") {
        let _ = CcConfig::parse(&text);
    }

    #[test]
    fn decimals_are_exact(n in 0..=1_000_000_000_u32) {
        let number = Decimal::from_thousandths(n).expect("in range");
        prop_assert_eq!(number.to_string().parse(), Ok(number));
    }
}
