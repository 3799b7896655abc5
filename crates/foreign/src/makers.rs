//! How the stacks of the list are made.

use std::sync::Arc;

use noq_proto::congestion as noq_cc;
use quinn_proto::congestion as quinn_cc;
use weir_units::Rng;

use crate::settings::{Make, ours};
use crate::{noq, quinn};

/// A host with a controller of its own, which needs no random stream of ours.
macro_rules! own {
    ($host:ident, $controller:ty) => {
        |name, settings| {
            let controllers = Box::new(|_| Arc::<$controller>::default() as Arc<_>);
            Arc::new($host::Stack::new(name.to_owned(), settings, controllers))
        }
    };
}

/// A host with a controller of ours, which its adapter has accepted.
macro_rules! adapted {
    ($host:ident, $adapter:ident) => {
        |name, settings| {
            let (_, controller) = ours(name).expect("the name is one of ours");
            let controller = controller.to_owned();
            let controllers = Box::new(move |mut rng: Rng| {
                let controllers = $adapter::Controllers::new(&controller, rng.next_u64());
                Arc::new(controllers.expect("the name was checked")) as Arc<_>
            });
            Arc::new($host::Stack::new(name.to_owned(), settings, controllers))
        }
    };
}

/// What makes the stack called `name`; the name is the host's and its controller's.
///
/// # Errors
/// Why the host has no such controller.
pub(crate) fn make(name: &str) -> Result<Make, String> {
    if let Some((host, controller)) = ours(name) {
        return make_ours(host, controller);
    }
    Ok(match name {
        "quinn/cubic" => own!(quinn, quinn_cc::CubicConfig),
        "quinn/newreno" => own!(quinn, quinn_cc::NewRenoConfig),
        "quinn/bbr" => own!(quinn, quinn_cc::BbrConfig),
        "noq/cubic" => own!(noq, noq_cc::CubicConfig),
        "noq/newreno" => own!(noq, noq_cc::NewRenoConfig),
        "noq/bbr3" => own!(noq, noq_cc::Bbr3Config),
        _ => return Err("there is none".to_owned()),
    })
}

fn make_ours(host: &str, controller: &str) -> Result<Make, String> {
    match host {
        "quinn" => {
            weir_quinn::Controllers::new(controller, 0).map(|_| adapted!(quinn, weir_quinn) as Make)
        }
        _ => weir_noq::Controllers::new(controller, 0).map(|_| adapted!(noq, weir_noq) as Make),
    }
    .map_err(|error| error.to_string())
}
