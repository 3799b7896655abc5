//! Saturation throughput against Bianchi, "Performance Analysis of the IEEE 802.11 Distributed
//! Coordination Function", IEEE JSAC 18(3), 2000.
//!
//! ```text
//! tau = 2 (1-2p) / ((1-2p)(W+1) + p W (1-(2p)^m))          p = 1 - (1-tau)^(n-1)
//! Ptr = 1 - (1-tau)^n                                      Ps = n tau (1-tau)^(n-1) / Ptr
//! S   = Ps Ptr payload / ((1-Ptr) slot + Ptr Ps Ts + Ptr (1-Ps) Tc)
//! ```
//!
//! The stations stand in one place, so that all of them sense the same, and send to one 300 m away, from
//! where nothing but answers comes. As in the model there is no EIFS and no retry is the last.

use super::*;
use crate::{Access, MacConfig, Phy, Propagation};

struct Model {
    phy: Phy,
    rts_threshold: Bytes,
    packet: Bytes,
}

impl Model {
    fn fhss(window: u32, stages: u32, rts_threshold: Bytes) -> Self {
        let cw_min = window - 1;
        let cw_max = (window << stages) - 1;
        let phy = Phy { cw_min, cw_max, ..Phy::bianchi_fhss() };
        Self { phy, rts_threshold, packet: Bytes(1_023) }
    }

    fn dsss(packet: u64, rts_threshold: Bytes) -> Self {
        let phy = Phy::default();
        Self { phy: Phy { eifs: phy.difs, ..phy }, rts_threshold, packet: Bytes(packet) }
    }

    /// The part of the time in which payload is sent, each bit at 1 Mbit/s.
    fn predicted(&self, n: u32) -> f64 {
        let phy = &self.phy;
        let window = f64::from(phy.cw_min + 1);
        let stages = ((phy.cw_max + 1) / (phy.cw_min + 1)).ilog2();
        let tau_of = |p: f64| {
            let tail: f64 = (0..stages).map(|stage| libm::pow(2.0 * p, f64::from(stage))).sum();
            2.0 / (1.0 + window + p * window * tail)
        };
        let others = f64::from(n - 1);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let tau = (low + high) / 2.0;
            let p = 1.0 - libm::pow(1.0 - tau, others);
            if tau_of(p) > tau { low = tau } else { high = tau }
        }
        let tau = low;
        let busy = 1.0 - libm::pow(1.0 - tau, others + 1.0);
        let success = (others + 1.0) * tau * libm::pow(1.0 - tau, others) / busy;
        let us = |time: Duration| time.as_nanos() as f64 / 1_000.0;
        let data = us(phy.data_time(self.packet));
        let (long, short) = if self.packet >= self.rts_threshold {
            (us(phy.exchange_time(self.packet)) + 4.0, us(phy.rts_time() + phy.difs) + 1.0)
        } else {
            (data + us(phy.sifs + phy.ack_time() + phy.difs) + 2.0, data + us(phy.difs) + 1.0)
        };
        let span = (1.0 - busy) * us(phy.slot) + busy * (success * long + (1.0 - success) * short);
        success * busy * 8.0 * self.packet.get() as f64 / span
    }

    fn measured(&self, n: u16, seconds: u64) -> f64 {
        let mac = MacConfig {
            access: Access::Standard,
            rts_threshold: self.rts_threshold,
            short_retries: None,
            long_retries: None,
        };
        let propagation = Propagation::Range { receive_mm: 400_000, sense_mm: 400_000 };
        let config = RadioConfig { phy: self.phy, mac, propagation, ..RadioConfig::default() };
        let mut positions = vec![Position::default(); usize::from(n)];
        positions.push(Position::metres(300, 0));
        let routers = (0..=n).map(|_| Table(vec![Some(NodeId(n)); usize::from(n) + 1])).collect();
        let mut radio = Radio::new(&config, &positions, routers, |name| stream(1, name)).unwrap();
        for (station, number) in (0..n).flat_map(|station| [(station, 0), (station, 1)]) {
            radio.offer(
                Instant::ZERO,
                NodeId(station),
                NodeId(n),
                Probe::data(number, self.packet.get()),
            );
        }
        let mut received = 0u64;
        run_until(&mut radio, secs(seconds), |radio, now, event| match event {
            RadioEvent::Delivered { parcel, source, .. } => {
                received += parcel.len;
                radio.offer(now, source, NodeId(n), parcel);
            }
            other => panic!("{other:?}"),
        });
        received as f64 * 8.0 / 1e6 / seconds as f64
    }
}

/// Two percent: how far the model was from its author's simulations, and more than what remains of a
/// run's random numbers.
fn check(name: &str, model: &Model, stations: &[u16], seconds: u64) {
    for n in stations {
        let (found, expected) = (model.measured(*n, seconds), model.predicted(u32::from(*n)));
        println!(
            "{name}, n = {n}: {found:.4}, the model {expected:.4}, {:+.2} %",
            (found / expected - 1.0) * 100.0
        );
        assert!(near(found, expected, 2.0), "{name}, n = {n}: {found} instead of {expected}");
    }
}

/// The model's own figures, so that both sides are not wrong together.
#[test]
fn the_model_gives_the_published_figures() {
    let cases = [(32, 3, BASIC, 5, 0.8097), (32, 3, BASIC, 50, 0.5529), (32, 5, RTS, 20, 0.8362)];
    for (window, stages, threshold, n, expected) in
        cases.into_iter().chain([(128, 3, BASIC, 10, 0.8263), (128, 3, RTS, 5, 0.7979)])
    {
        let found = Model::fhss(window, stages, threshold).predicted(n);
        assert!((found - expected).abs() < 1e-4, "W = {window}, m = {stages}, n = {n}: {found}");
    }
    let dsss = [(1_040, RTS, 5, 1_478.0), (1_040, BASIC, 20, 1_332.0), (1_500, RTS, 50, 1_584.0)];
    for (packet, threshold, n, kbps) in dsss {
        let found = Model::dsss(packet, threshold).predicted(n) * 1_000.0;
        assert!((found - kbps).abs() < 1.0, "{packet} bytes, n = {n}: {found} kbit/s");
    }
}

#[test]
fn a_few_stations_reach_the_models_throughput() {
    check("W 32, m 3, basic", &Model::fhss(32, 3, BASIC), &[5, 20], 100);
    check("W 32, m 5, RTS", &Model::fhss(32, 5, RTS), &[10], 100);
    check("DSSS, 1040 bytes, RTS", &Model::dsss(1_040, RTS), &[5], 30);
}

#[test]
#[ignore = "long: cargo test --profile sim -p weir-radio bianchi -- --ignored"]
fn all_of_the_tables_are_reached() {
    for (window, stages) in [(32, 3), (32, 5), (128, 3)] {
        for (mode, threshold) in [("basic", BASIC), ("RTS", RTS)] {
            let model = Model::fhss(window, stages, threshold);
            check(
                &format!("W {window}, m {stages}, {mode}"),
                &model,
                &[5, 10, 15, 20, 30, 50],
                400,
            );
        }
    }
    for (packet, mode, threshold) in
        [(1_040, "RTS", RTS), (1_040, "basic", BASIC), (1_500, "RTS", RTS)]
    {
        let model = Model::dsss(packet, threshold);
        check(&format!("DSSS, {packet} bytes, {mode}"), &model, &[1, 2, 5, 10, 20, 50], 200);
    }
}

const BASIC: Bytes = Bytes::MAX;
const RTS: Bytes = Bytes::ZERO;
