//! What the kernel's TCP can host: whatever it would do its own way is refused by name.

use weir_cc::CcConfig;
use weir_scene::{Ends, FlowSpec, Router, RunSpec, TransportSpec};
use weir_transport::{Config, DelayedAck, RackConfig, RecoveryConfig};

use super::KernelError;

/// What connections of a namespace have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) slow_start_after_idle: bool,
    /// Requested, refused, or the controller's choice.
    pub(super) ecn: Option<bool>,
}

impl Kernel {
    /// What the first of the kernel's flows asks for; all agree with it.
    pub(super) fn of(spec: &RunSpec) -> Self {
        let default = Config::default();
        let first = spec.flows.iter().find_map(kernel_config).unwrap_or(&default);
        Self::asked_by(first)
    }

    fn asked_by(config: &Config) -> Self {
        Self {
            sack: config.sack,
            timestamps: config.timestamps,
            slow_start_after_idle: config.slow_start_after_idle,
            ecn: config.ecn,
        }
    }
}

/// What a flow asks of the kernel's TCP; none if its ends are ours.
pub(super) fn kernel_config(flow: &FlowSpec) -> Option<&Config> {
    match (&flow.transport, flow.ends) {
        (TransportSpec::Reliable(config), Ends::Kernel) => Some(config),
        _ => None,
    }
}

/// The name that the kernel has for a flow's controller.
pub(super) fn controller(config: &Config) -> String {
    config.stack.controller.to_string()
}

/// Refuses what a kernel with these congestion controls cannot host.
pub(super) fn check(
    spec: &RunSpec,
    controllers: &[String],
    router: Router,
) -> Result<(), KernelError> {
    spec.flows.iter().try_for_each(|flow| check_ours(flow, router))?;
    let common = Kernel::of(spec);
    let flows = || spec.flows.iter().filter_map(|flow| Some((flow, kernel_config(flow)?)));
    if flows().count() > MAX_FLOWS {
        let problem = format!("there are more than {MAX_FLOWS} flows of the kernel's TCP");
        return Err(KernelError::Unfit { flow: spec.flows[MAX_FLOWS].name.clone(), problem });
    }
    for (flow, config) in flows() {
        let checked = check_stack(config, controllers)
            .and_then(|()| check_config(config))
            .and_then(|()| check_common(&common, config))
            .and_then(|()| check_hosts(flow, spec));
        checked.map_err(|problem| KernelError::Unfit { flow: flow.name.clone(), problem })?;
    }
    Ok(())
}

/// Our own connections have our own controllers, and a kernel's has the kernel's.
fn check_ours(flow: &FlowSpec, router: Router) -> Result<(), KernelError> {
    match (&flow.transport, flow.ends) {
        (TransportSpec::Program(programs), _) if router == Router::Netem => {
            let problem =
                format!("stack = {}: programs run behind Weir's links only", programs.name);
            Err(KernelError::Unfit { flow: flow.name.clone(), problem })
        }
        (TransportSpec::Foreign(stack), _) => {
            let problem = format!("stack = {}: only world sim hosts this stack", stack.name());
            Err(KernelError::Unfit { flow: flow.name.clone(), problem })
        }
        (TransportSpec::Reliable(config), _)
            if matches!(config.stack.controller, CcConfig::Script(_)) =>
        {
            let problem = format!(
                "stack = {}: a controller written in Python runs in the worlds sim and udp, not in a \
                 kernel's",
                config.stack
            );
            Err(KernelError::Unfit { flow: flow.name.clone(), problem })
        }
        (TransportSpec::Reliable(config), Ends::Weir)
            if matches!(config.stack.controller, CcConfig::Kernel(_)) =>
        {
            let stack = &config.stack;
            let problem = format!(
                "stack = {stack}, ends = weir: only a kernel's TCP has '{}'; leave ends out, or \
                 take what our connections have (`weir list controllers`)",
                stack.controller
            );
            Err(KernelError::Unfit { flow: flow.name.clone(), problem })
        }
        _ => Ok(()),
    }
}

fn check_stack(config: &Config, controllers: &[String]) -> Result<(), String> {
    let stack = &config.stack;
    if stack.recovery != RecoveryConfig::Rack(RackConfig::default()) {
        let or_ours = match stack.controller {
            CcConfig::Kernel(_) => "",
            _ => ", or ends = weir for our own connection",
        };
        return Err(format!(
            "stack = {stack}: the kernel's TCP recovers from losses as rack does; write \
             rack/{}{or_ours}",
            stack.controller
        ));
    }
    let name = controller(config);
    if controllers.contains(&name) {
        return Ok(());
    }
    let plain = name.split('(').next().unwrap_or_default();
    if plain != name && controllers.iter().any(|known| known == plain) {
        return Err(format!(
            "stack = {stack}: the kernel's {plain} takes no parameters from here; write {plain}"
        ));
    }
    Err(format!(
        "stack = {stack}: this kernel's TCP has no congestion control '{plain}'; it has {}",
        controllers.join(", ")
    ))
}

/// What has one value in the kernel, or one that depends on its release.
fn check_config(config: &Config) -> Result<(), String> {
    let own = Config::default();
    let lets = |same: bool, key: &str, value: String, has: &str| match same {
        true => Ok(()),
        false => Err(format!("{key} = {value}: the kernel's TCP has {has}; leave this key out")),
    };
    let Config { initial_window, initial_rto, min_rto, max_rto, time_wait, .. } = config;
    lets(
        *initial_window == own.initial_window,
        "initial_window",
        initial_window.to_string(),
        "10",
    )?;
    lets(*initial_rto == own.initial_rto, "initial_rto", initial_rto.to_string(), "1s")?;
    lets(*min_rto == own.min_rto, "min_rto", min_rto.to_string(), "200ms")?;
    lets(*max_rto == own.max_rto, "max_rto", max_rto.to_string(), "120s")?;
    lets(*time_wait == own.time_wait, "time_wait", time_wait.to_string(), "60s")?;
    let text = |on: bool| on.to_string();
    let fixed = config.fixed_rto.unwrap_or_default();
    lets(config.fixed_rto.is_none(), "fixed_rto", fixed.to_string(), "a timeout that adapts")?;
    let patient = config.max_retransmits == own.max_retransmits;
    lets(patient, "max_retransmits", config.max_retransmits.to_string(), "15")?;
    let wait = config.max_wait.unwrap_or_default();
    lets(config.max_wait.is_none(), "max_wait", wait.to_string(), "no such bound")?;
    lets(config.limited_transmit, "limited_transmit", text(false), "limited transmit")?;
    lets(config.gso == own.gso, "gso", config.gso.to_string(), "bursts of its own")?;
    lets(config.cwnd_validation, "cwnd_validation", text(false), "window validation")?;
    lets(!config.pace_window, "pace_window", text(true), "a pacer of its own")?;
    let catch_up = config.pacing_catch_up;
    lets(
        catch_up == own.pacing_catch_up,
        "pacing_catch_up",
        catch_up.to_string(),
        "a pacer of its own",
    )?;
    let overhead = config.send_overhead;
    lets(overhead == own.send_overhead, "send_overhead", overhead.to_string(), "its own")?;
    let acks = matches!(config.delayed_ack, None | Some(DelayedAck::Linux));
    lets(acks, "delayed_ack", "not linux".to_owned(), "its own way to delay acknowledgements")?;
    let policy = config.route_policy;
    lets(policy == own.route_policy, "route_policy", policy.to_string(), "none")?;
    check_buffers(config)?;
    let mss = u64::from(config.mss);
    if (MIN_MSS..=MAX_MSS).contains(&mss) {
        return Ok(());
    }
    Err(format!("mss = {mss}: the kernel's TCP takes {MIN_MSS} to {MAX_MSS} bytes"))
}

/// Buffers and windows that the kernel sets by itself.
fn check_buffers(config: &Config) -> Result<(), String> {
    if let Some(limit) = config.window_limit {
        return Err(format!(
            "window_limit = {limit}: the kernel's TCP has the windows alone; write recv_buffer"
        ));
    }
    let own = [
        ("initial_recv_window", config.initial_recv_window),
        ("max_recv_buffer", config.max_recv_buffer),
        ("max_send_buffer", config.max_send_buffer),
    ];
    let given = own.into_iter().find_map(|(key, size)| Some((key, size?)));
    given.map_or(Ok(()), |(key, size)| {
        Err(format!("{key} = {size}: the kernel's TCP has its own; leave this key out"))
    })
}

/// One setting serves a whole namespace.
fn check_common(common: &Kernel, config: &Config) -> Result<(), String> {
    let own = Kernel::asked_by(config);
    let differing = [
        ("sack", common.sack == own.sack),
        ("timestamps", common.timestamps == own.timestamps),
        ("slow_start_after_idle", common.slow_start_after_idle == own.slow_start_after_idle),
        ("ecn", (common.ecn == Some(true)) == (own.ecn == Some(true))),
    ];
    if let Some((key, _)) = differing.iter().find(|(_, same)| !same) {
        return Err(format!(
            "{key} differs from the first flow's: the kernel has one for all flows"
        ));
    }
    if config.ecn == Some(false) && controller(config) == "dctcp" {
        return Err("ecn = false: the kernel's dctcp always asks for it".to_owned());
    }
    Ok(())
}

fn check_hosts(flow: &FlowSpec, spec: &RunSpec) -> Result<(), String> {
    if spec.links[flow.route_forward[0]].one_at_a_time {
        return Err("send_time: the kernel's sender does not wait between packets".to_owned());
    }
    Ok(())
}

/// Each has a port of its own and two sockets.
const MAX_FLOWS: usize = 1_000;
/// What `TCP_MAXSEG` takes, less the timestamps.
const MIN_MSS: u64 = 88 - 12;
const MAX_MSS: u64 = 32_767 - 12;

#[cfg(test)]
mod tests {
    use weir_net::LinkConfig;
    use weir_scene::{LinkSpec, MeasureSpec, Workload};
    use weir_units::{Duration, Instant, Rate};

    use super::*;

    fn spec(configs: Vec<Config>) -> RunSpec {
        let link = |name: &str| LinkSpec {
            name: name.to_owned(),
            config: LinkConfig::new(Rate::from_mbit(10), Duration::from_millis(10)),
            monitored: true,
            one_at_a_time: false,
        };
        let flow = |(index, config)| FlowSpec {
            name: format!("flow{index}"),
            route_forward: vec![0],
            route_reverse: vec![1],
            transport: TransportSpec::Reliable(Box::new(config)),
            workload: Workload::Bulk,
            start: Instant::ZERO,
            stop: None,
            start_jitter: Duration::ZERO,
            ends: Ends::Kernel,
        };
        let flows = configs.into_iter().enumerate().map(flow).collect();
        RunSpec {
            radio: None,
            fabric: None,
            links: vec![link("there"), link("back")],
            flows,
            measure: MeasureSpec::default(),
        }
    }

    fn with(stack: &str) -> Config {
        Config { stack: stack.parse().expect("a stack"), ..Config::default() }
    }

    fn refusal(configs: Vec<Config>) -> String {
        let known = ["reno", "cubic"].map(str::to_owned);
        check(&spec(configs), &known, Router::Weir).expect_err("refused").to_string()
    }

    #[test]
    fn what_the_kernel_does_its_own_way_is_refused_by_name() {
        let known = ["reno", "cubic"].map(str::to_owned);
        assert!(check(&spec(vec![with("reno"), with("rack/cubic")]), &known, Router::Weir).is_ok());
        let says = |config: Config, what: &str| {
            let refusal = refusal(vec![config]);
            assert!(refusal.starts_with("flow 'flow0': ") && refusal.contains(what), "{refusal}");
        };
        says(
            with("mine.py:Mine"),
            "stack = rack/mine.py:Mine: a controller written in Python runs",
        );
        says(with("vegas"), "no congestion control 'vegas'; it has reno, cubic");
        says(with("cubic(hystart=off)"), "the kernel's cubic takes no parameters from here");
        says(with("go-back-n(4)/none"), "recovers from losses as rack does");
        says(with("none"), "no congestion control 'none'");
        says(Config { initial_window: 4, ..with("reno") }, "initial_window = 4");
        says(Config { min_rto: Duration::from_millis(10), ..with("reno") }, "min_rto = 10ms");
        says(Config { delayed_ack: Some(DelayedAck::Off), ..with("reno") }, "delayed_ack");
        let limit = Some("8".parse().expect("a limit"));
        says(Config { window_limit: limit, ..with("reno") }, "window_limit = 8");
        let policy = "elfn".parse().expect("a policy");
        says(Config { route_policy: policy, ..with("reno") }, "route_policy = elfn");
        says(Config { mss: 40_000, ..with("reno") }, "mss = 40000");
    }

    #[test]
    fn flows_of_one_namespace_agree_on_its_settings() {
        let plain = Config { sack: false, ..with("reno") };
        assert!(refusal(vec![with("reno"), plain]).starts_with("flow 'flow1': sack differs"));
        let marked = Config { ecn: Some(true), ..with("reno") };
        assert!(refusal(vec![with("reno"), marked]).contains("ecn differs"));
    }

    #[test]
    fn our_own_connections_may_be_anything() {
        let mut spec = spec(vec![with("stop-and-wait/none")]);
        spec.flows[0].ends = Ends::Weir;
        assert!(check(&spec, &[], Router::Weir).is_ok());
    }

    #[test]
    fn what_only_a_kernel_has_is_not_ours() {
        let added = CcConfig::parse_also_kernels("bpf_vegas").unwrap();
        let mut config = Config::default();
        config.stack.controller = added;
        let known = ["bpf_vegas".to_owned()];
        let mut asked = spec(vec![config.clone()]);
        assert!(check(&asked, &known, Router::Weir).is_ok());
        asked.flows[0].ends = Ends::Weir;
        let refusal = check(&asked, &known, Router::Weir).unwrap_err().to_string();
        let said = "stack = rack/bpf_vegas, ends = weir: only a kernel's TCP has 'bpf_vegas'";
        assert!(refusal.contains(said), "{refusal}");
        config.stack.recovery = RecoveryConfig::NewReno;
        let refusal = check(&spec(vec![config]), &known, Router::Weir).unwrap_err().to_string();
        assert!(refusal.ends_with("write rack/bpf_vegas"), "{refusal}");
    }
}
