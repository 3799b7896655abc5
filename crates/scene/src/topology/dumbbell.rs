//! The dumbbell: senders on the left, receivers on the right, one bottleneck between.

use weir_net::LinkConfig;
use weir_units::Duration;

use super::{Access, Route, Topology, TopologyError, delay};

/// Flows that share one bottleneck and nothing else.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// The bottleneck for data, monitored as `bottleneck`.
    pub forward: LinkConfig,
    /// The same for acknowledgements, `bottleneck-reverse`.
    pub reverse: LinkConfig,
    /// What joins hosts to it.
    pub access: Access,
    /// Each flow's round trip without queues and serialisation. What it has beyond the bottleneck's
    /// two delays goes into its sender's access links, half of it each way.
    pub rtts: Vec<Duration>,
}

impl Dumbbell {
    /// Builds it.
    ///
    /// # Errors
    /// If a flow's round trip is shorter than the bottleneck's.
    pub fn build(self) -> Result<Topology, TopologyError> {
        let mut topology = Topology::default();
        let shared = delay(&self.forward) + delay(&self.reverse);
        let forward = topology.add_monitored("bottleneck".into(), self.forward);
        let reverse = topology.add_link("bottleneck-reverse".into(), self.reverse);
        for (flow, &rtt) in self.rtts.iter().enumerate() {
            if rtt < shared {
                return Err(TopologyError::RttTooShort { flow, rtt, shared });
            }
            let route = Route { forward: vec![forward], reverse: vec![reverse] };
            topology.add_route(route, self.access, rtt - shared);
        }
        Ok(topology)
    }
}
