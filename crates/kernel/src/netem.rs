//! The kernel's own `netem` (tc-netem(8)) in place of our links, to check one against the other.
//!
//! The ends move one hop away from the devices, so that netem stands on the middle hop and no sender
//! hears of its drops: sender – near router = far router – receiver. On the device of each router, on its
//! way to the other, netem has rate, queue and losses; on its way to the host, the delay of that
//! direction. Our emulator joins the routers by links that are not there: it is a wire.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::process::Command;

use weir_net::{Counting, Impairments, Limit, LinkConfig, QueueConfig, Service};
use weir_scene::{LinkSpec, Outcome, RunSpec};
use weir_units::{Bytes, Duration, Instant, Rate, Ratio};

use super::KernelError;
use super::check::kernel_config;
use weir_links::emulator::Namespace;

/// What netem does in each direction, and the same run with wires for links.
#[derive(Clone, Debug)]
pub(super) struct Netem {
    pub(super) wires: RunSpec,
    directions: [DirectionConfig; 2],
}

/// The two routers, with netem between them and the hosts.
pub(super) struct Routers {
    near: Namespace,
    far: Namespace,
    directions: [DirectionConfig; 2],
    /// What had happened when the warm-up was over, and when that was.
    before: (Instant, Count),
}

/// What netem says of the bottleneck for data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    sent_bytes: u64,
    sent_packets: u64,
    /// Because the queue was full, and at random.
    dropped: [u64; 2],
}

/// One direction of all flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DirectionConfig {
    rate: Option<Rate>,
    /// Packets, the one being sent included.
    limit: Option<u64>,
    loss: Ratio,
    delay: Duration,
}

impl Netem {
    /// Reads what netem is to do.
    ///
    /// # Errors
    /// For what it cannot, by name.
    pub(super) fn of(spec: &RunSpec) -> Result<Self, KernelError> {
        let mut found: Option<[DirectionConfig; 2]> = None;
        for flow in &spec.flows {
            let refused = |problem| KernelError::Netem { flow: flow.name.clone(), problem };
            if kernel_config(flow).is_none() {
                let problem = "it is not the kernel's, and its packets cross no device".to_owned();
                return Err(refused(problem));
            }
            let direction = |route| DirectionConfig::of(spec, route);
            let directions = [direction(&flow.route_forward), direction(&flow.route_reverse)];
            let [Ok(forward), Ok(reverse)] = directions else {
                return Err(refused(
                    directions.into_iter().find_map(Result::err).unwrap_or_default(),
                ));
            };
            let directions = [forward, reverse];
            if *found.get_or_insert(directions.clone()) != directions {
                let problem = "its path differs from the first flow's; netem has one for all";
                return Err(refused(problem.to_owned()));
            }
        }
        let wire = |link: &LinkSpec| LinkSpec {
            config: LinkConfig::default(),
            monitored: false,
            ..link.clone()
        };
        let wires = RunSpec { links: spec.links.iter().map(wire).collect(), ..spec.clone() };
        Ok(Self { wires, directions: found.unwrap_or_default() })
    }

    /// Puts a router between each end and the device that the emulator will make in it.
    pub(super) fn join(&self, hosts: [&Namespace; 2]) -> io::Result<Routers> {
        let refused = |error| io::Error::other(format!("{error}"));
        let router = || Namespace::new().map_err(refused);
        let (near, far) = (router()?, router()?);
        for ((host, router), network) in hosts.into_iter().zip([&near, &far]).zip(NETWORKS) {
            join(host, router, network)?;
        }
        Ok(Routers { near, far, directions: self.directions.clone(), before: Default::default() })
    }
}

impl Routers {
    /// The ends of the emulated network.
    pub(super) fn ends(&self) -> [&Namespace; 2] {
        [&self.near, &self.far]
    }

    /// Sets netem up, once the emulator has made its devices, which have these addresses. Returns the
    /// receivers' address.
    pub(super) fn start(&self, devices: [Ipv4Addr; 2]) -> io::Result<Ipv4Addr> {
        let [there, back] = &self.directions;
        for (side, (out, onward)) in [(there, back), (back, there)].into_iter().enumerate() {
            let other = 1 - side;
            let (network, gateway) = (NETWORKS[other], devices[other]);
            let route = format!("ip route add 10.{network}.0.0/24 via {gateway} dev {DEVICE}");
            let commands = [out.shaping(), vec![onward.delaying(), route]].concat();
            self.ends()[side].run(move || {
                fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
                run_all(&commands)
            })?;
        }
        Ok(Ipv4Addr::new(10, NETWORKS[1], 0, HOST))
    }

    /// The warm-up is over.
    pub(super) fn begin_measurement(&mut self, now: Instant) -> io::Result<()> {
        self.before = (now, self.count()?);
        Ok(())
    }

    /// Enters what netem reports into the tables, and takes out what is only known of links of ours.
    pub(super) fn fill(&self, outcome: &mut Outcome, now: Instant) -> io::Result<()> {
        outcome.links.clear();
        outcome.flows.iter_mut().for_each(|flow| flow.loss_ratio = None);
        let (since, before) = self.before;
        let count = self.count()?;
        let mbps = Rate::from_transfer(Bytes(count.sent_bytes - before.sent_bytes), now - since);
        let (used, rate) = (mbps.unwrap_or(Rate::ZERO), self.directions[0].rate);
        outcome.summary.utilisation = rate.map(|rate| used.as_mbit_f64() / rate.as_mbit_f64());
        let [queue, random] = [0, 1].map(|cause| count.dropped[cause] - before.dropped[cause]);
        let settings = outcome.summary.settings.get_or_insert_default();
        let _ = write!(
            settings,
            "; netem in place of our links: {} packets sent, {queue} dropped by the queue, {random} lost",
            count.sent_packets - before.sent_packets
        );
        Ok(())
    }

    /// What has happened at the bottleneck so far.
    fn count(&self) -> io::Result<Count> {
        let output = self.near.run(|| run(&format!("tc -s qdisc show dev {DEVICE}")))?;
        Count::parse(&output).ok_or_else(|| io::Error::other(format!("tc says: {output}")))
    }
}

impl DirectionConfig {
    fn of(spec: &RunSpec, route: &[usize]) -> Result<Self, String> {
        let mut direction = Self::default();
        let mut bottleneck: Option<&str> = None;
        for link in route.iter().map(|index| &spec.links[*index]) {
            let refused = |what: String| format!("link '{}': {what}", link.name);
            let config = &link.config;
            check(config).map_err(refused)?;
            direction.delay += config.delay.initial;
            let loss = config.impairments.loss;
            if matches!(config.service, Service::Infinite) && loss == Ratio::ZERO {
                continue;
            }
            if let Some(first) = bottleneck.replace(&link.name) {
                let one = format!("netem has one bottleneck each way, which is '{first}'");
                return Err(refused(one));
            }
            direction.loss = loss;
            direction.rate = config.rate();
            direction.limit = limit(config).map_err(refused)?;
        }
        Ok(direction)
    }

    /// Losses in front, then rate and queue, so that drops of either are counted by themselves.
    fn shaping(&self) -> Vec<String> {
        let mut front = format!("tc qdisc add dev {DEVICE} root handle 1: netem limit {UNBOUNDED}");
        if self.loss > Ratio::ZERO {
            let _ = write!(front, " loss random {}%", self.loss.as_f64() * 100.0);
        }
        let limit = self.limit.unwrap_or(UNBOUNDED);
        let mut server =
            format!("tc qdisc add dev {DEVICE} parent 1:1 handle 2: netem limit {limit}");
        if let Some(rate) = self.rate {
            let _ = write!(server, " rate {}bit", rate.as_bits_per_sec());
        }
        vec![front, server]
    }

    /// What the packets of this direction meet on their last hop.
    fn delaying(&self) -> String {
        let delay = self.delay.as_nanos() as f64 / 1e3;
        format!("tc qdisc add dev {VETH} root netem limit {UNBOUNDED} delay {delay}us")
    }
}

/// Refuses what netem stands in for only in its own way, or not at all.
fn check(config: &LinkConfig) -> Result<(), String> {
    let only_loss = Impairments { loss: config.impairments.loss, ..Impairments::default() };
    let is_plain = matches!(&config.service, Service::Infinite)
        || matches!(&config.service, Service::Rate(rate) if rate.is_constant());
    let problems = [
        (is_plain, "a rate that changes, a token bucket, a trace or a serial relay"),
        (config.delay.is_constant(), "delay_steps"),
        (config.impairments == only_loss, "an impairment other than loss"),
        (config.overhead == LinkConfig::default().overhead, "framing overhead"),
        (config.mtu.is_none(), "an MTU"),
    ];
    match problems.iter().find(|(fits, _)| !fits) {
        Some((_, what)) => Err(format!("{what} is not had behind netem; leave --router out")),
        None => Ok(()),
    }
}

/// How many packets its queue takes.
fn limit(config: &LinkConfig) -> Result<Option<u64>, String> {
    let QueueConfig::DropTail(queue) = &config.queue else {
        return Err("queue: netem's is drop-tail; leave --router out".to_owned());
    };
    match (queue.limit, queue.counting) {
        (Limit::Infinite, _) => Ok(None),
        (Limit::Packets(packets), Counting::WithService) => Ok(Some(packets)),
        (Limit::Packets(packets), Counting::Waiting) => Ok(Some(packets + 1)),
        (Limit::Bytes(bytes), _) => {
            Err(format!("queue = {bytes}: netem's counts packets; write it so, as in queue = 34p"))
        }
    }
}

/// Joins a host and its router. Both ends of the pair have one address of Ethernet's, so that no host
/// need ask for the other's; and no packet is larger than on the wire, as netem counts packets.
fn join(host: &Namespace, router: &Namespace, network: u8) -> io::Result<()> {
    let side = |number: u8| {
        vec![
            format!("ip addr add 10.{network}.0.{number}/24 dev {VETH}"),
            format!("ip link set {VETH} up"),
        ]
    };
    let mut commands = vec![format!(
        "ip link add {VETH} {ETHERNET} type veth peer name {VETH} {ETHERNET} netns {}",
        host.file().display()
    )];
    commands.extend(side(ROUTER));
    router.run(move || run_all(&commands))?;
    let mut commands = side(HOST);
    commands.push(format!("ip route add default via 10.{network}.0.{ROUTER}"));
    host.run(move || run_all(&commands))
}

fn run_all(commands: &[String]) -> io::Result<()> {
    commands.iter().try_for_each(|command| run(command).map(drop))
}

/// Runs a program of iproute2's in the namespace of the calling thread.
fn run(command: &str) -> io::Result<String> {
    let mut words = command.split(' ');
    let mut program = Command::new(words.next().unwrap_or_default());
    let done = program.args(words).env("PATH", PATH).output().map_err(|error| {
        io::Error::new(error.kind(), format!("{command}: {error} (Debian's package iproute2)"))
    })?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(format!("{command}: {}", said.trim())))
}

impl Count {
    /// Reads `tc -s qdisc`: of the first discipline all drops, of the second those of the queue.
    fn parse(output: &str) -> Option<Self> {
        let [all, queue] = ["netem 1:", "netem 2:"].map(|name| {
            let rest = output.split_once(name)?.1.split_once("Sent ")?.1;
            let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
            let mut numbers = numbers.map(|word| word.parse::<u64>().ok());
            // `Sent 1514 bytes 1 pkt (dropped 0, ...`.
            Some([numbers.next()??, numbers.next()??, numbers.next()??])
        });
        let ([_, _, all], [sent_bytes, sent_packets, queue]) = (all?, queue?);
        let dropped = [queue, all.saturating_sub(queue)];
        Some(Self { sent_bytes, sent_packets, dropped })
    }
}

/// Of the emulator, in both routers.
const DEVICE: &str = "weir0";
const VETH: &str = "weir1";
const ETHERNET: &str = "address 02:00:00:00:00:01 arp off gso_max_segs 1";
/// 10.78.0.0/24 is the senders', 10.79.0.0/24 the receivers'.
const NETWORKS: [u8; 2] = [78, 79];
const HOST: u8 = 1;
const ROUTER: u8 = 2;
/// No queue is that long.
const UNBOUNDED: u64 = 1_000_000;
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tc_tells_is_read() {
        let output = "qdisc netem 1: root refcnt 2 limit 1000000 loss 1%
 Sent 15140 bytes 10 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc netem 2: parent 1:1 limit 34 rate 10Mbit
 Sent 13626 bytes 9 pkt (dropped 3, overlimits 0 requeues 0)
";
        let count = Count { sent_bytes: 13_626, sent_packets: 9, dropped: [3, 4] };
        assert_eq!(Count::parse(output), Some(count));
        assert_eq!(Count::parse("qdisc noqueue 0: root"), None);
    }
}
