//! How the stacks of the list are made.

use std::sync::Arc;

use noq_proto::congestion as noq_cc;
use quinn_proto::congestion as quinn_cc;

use crate::settings::Make;
use crate::{noq, quinn};

/// What makes the stack called `name`; the name is the host's and its controller's.
pub(crate) fn make(name: &str) -> Option<Make> {
    /// A host with a controller of its own, which needs no random stream of ours.
    macro_rules! own {
        ($host:ident, $controller:ty) => {
            |name, settings| {
                let controllers = Box::new(|_| Arc::<$controller>::default() as Arc<_>);
                Arc::new($host::Stack::new(name.to_owned(), settings, controllers))
            }
        };
    }
    Some(match name {
        "quinn/cubic" => own!(quinn, quinn_cc::CubicConfig),
        "quinn/newreno" => own!(quinn, quinn_cc::NewRenoConfig),
        "quinn/bbr" => own!(quinn, quinn_cc::BbrConfig),
        "noq/cubic" => own!(noq, noq_cc::CubicConfig),
        "noq/newreno" => own!(noq, noq_cc::NewRenoConfig),
        "noq/bbr3" => own!(noq, noq_cc::Bbr3Config),
        _ => return None,
    })
}
