//! What a controller learns of episodes that follow each other.

use std::sync::{Arc, Mutex};

use weir_cc::{
    AckEvent, BuildScripted, CcConfig, CcContext, CongestionController, CongestionEvent, Script,
};
use weir_transport::Config;
use weir_units::{Bytes, Duration};

use super::pair::Side::Client;
use super::pair::{Pair, Verdict};
use super::{has_data, with_stack};

const MSS: u64 = 1_448;

/// Halves its window when an episode begins, and notes beginnings and ends.
#[derive(Clone, Debug)]
struct Halving {
    cwnd: Bytes,
    notes: Arc<Mutex<Vec<&'static str>>>,
}

impl Halving {
    fn note(&self, what: &'static str) {
        self.notes.lock().expect("a lock").push(what);
    }
}

impl CongestionController for Halving {
    fn name(&self) -> &'static str {
        "halving"
    }

    fn on_congestion(&mut self, cx: &mut CcContext<'_>, event: &CongestionEvent) {
        if event.first_in_epoch {
            self.cwnd = (self.cwnd / 2).max(cx.mss * 2);
            self.note("begins");
        }
    }

    fn on_ack(&mut self, _cx: &mut CcContext<'_>, _ack: &AckEvent) {}

    fn on_epoch_end(&mut self, _cx: &mut CcContext<'_>) {
        self.note("ends");
    }

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }

    fn phase(&self) -> &'static str {
        "none"
    }
}

impl BuildScripted for Halving {
    fn build(&self, _mss: Bytes, _initial_window: Bytes) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

fn config(notes: &Arc<Mutex<Vec<&'static str>>>) -> Config {
    let mut script = Script::parse("halving.py:Halving").expect("a class in a file");
    script.set_host(Arc::new(Halving { cwnd: Bytes(20 * MSS), notes: Arc::clone(notes) }));
    let mut config = with_stack("rack/reno");
    config.stack.controller = CcConfig::Script(script);
    config
}

/// Segment 54 leaves in the recovery of segment 30, and is found lost in it, because the repair comes 3 ms late. What
/// acknowledges the repair ends that recovery and begins the next: the end comes first, so that PRR goes down from
/// the window that a controller sets there.
#[test]
fn an_episode_ends_before_the_next_begins() {
    let notes = Arc::default();
    let mut pair = Pair::connected(&config(&notes));
    let mut sent = [0; 100];
    pair.network(move |p| {
        if !has_data(p) {
            return Verdict::Deliver;
        }
        let segment = (p.offset / MSS) as usize;
        sent[segment] += 1;
        match (segment, sent[segment]) {
            (30 | 54, 1) => Verdict::Drop,
            (30, 2) => Verdict::Late(Duration::from_millis(3)),
            _ => Verdict::Deliver,
        }
    });
    pair.write(Client, 100 * MSS);
    pair.drive();
    assert_eq!(pair.server.read, 100 * MSS);
    assert_eq!(*notes.lock().expect("a lock"), ["begins", "ends", "begins", "ends"]);
}
