//! Scenarios between two connections: each test is a short script over [`pair::Pair`].

mod bursts;
mod close;
mod ecn;
mod fast_open;
mod faults;
mod feedback;
mod flow_control;
mod forged;
mod handshake;
mod outage;
mod pacing;
mod pair;
mod quick_start;
mod recovery;
mod route;
mod route_faults;
mod timers;
mod window_limit;
mod wrap;

use weir_transport::{Config, Flags};

use self::pair::Passing;
use self::pair::Side::{Client, Server};

/// The defaults with this stack.
fn with_stack(stack: &str) -> Config {
    Config { stack: stack.parse().expect("a stack"), ..Config::default() }
}

fn is_syn(passing: &Passing) -> bool {
    passing.from == Client && passing.segment.flags.contains(Flags::SYN)
}

fn is_syn_ack(passing: &Passing) -> bool {
    passing.from == Server && passing.segment.flags.contains(Flags::SYN)
}

fn is_fin(passing: &Passing) -> bool {
    passing.segment.flags.contains(Flags::FIN)
}

fn has_data(passing: &Passing) -> bool {
    passing.segment.payload_len > 0
}

/// An acknowledgement and nothing else.
fn is_pure_ack(passing: &Passing) -> bool {
    passing.segment.seq_len() == 0 && !passing.segment.flags.contains(Flags::RST)
}
