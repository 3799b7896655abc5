//! What this machine has for the world of the kernel's TCP, and the settings of its namespaces.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use weir_scene::{HeapQueue, Network, RunSpec};
use weir_units::{Duration, Instant};

use super::KernelError;
use super::check::{Kernel, kernel_config};
use super::info::TcpInfoReader;

/// What a kernel must have, and what it may.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) info_reader: TcpInfoReader,
    /// The congestion controls of its TCP.
    pub(super) controllers: Vec<String>,
}

/// A setting of a namespace's TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    name: &'static str,
    value: String,
}

impl Machine {
    /// Looks at what there is.
    ///
    /// # Errors
    /// Says what is missing, and what works without it.
    pub(super) fn detect() -> Result<Self, KernelError> {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let info_reader = TcpInfoReader::of_release(&release)
            .ok_or_else(|| missing(&format!("Linux 5.4 or later; this is {release}")))?;
        if !rustix::process::geteuid().is_root() {
            return Err(missing("root, to make network namespaces and devices in them"));
        }
        if !Path::new(TUN).exists() {
            return Err(missing(&format!("{TUN}, the kernel's TUN driver: try `modprobe tun`")));
        }
        let controllers = fs::read_to_string(CONTROLLERS)
            .map_err(|error| missing(&format!("{CONTROLLERS}, which cannot be read: {error}")))?;
        let controllers = controllers.split_whitespace().map(str::to_owned).collect();
        Ok(Self { info_reader, controllers })
    }
}

/// How this kernel reports on its connections.
///
/// # Errors
/// If it is too old.
pub(super) fn info_reader() -> Result<TcpInfoReader, KernelError> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    TcpInfoReader::of_release(&release).ok_or_else(|| {
        KernelError::Missing(format!(
            "flows between hosts need Linux 5.4 or later; this is {release}"
        ))
    })
}

/// Refuses settings of TCP that differ from those of this namespace, which is not ours to change.
///
/// # Errors
/// For the first one, with the flows' key and the value that is there.
pub(super) fn check_settings(spec: &RunSpec) -> Result<(), KernelError> {
    if spec.flows.iter().all(|flow| kernel_config(flow).is_none()) {
        return Ok(());
    }
    let kernel = Kernel::of(spec);
    let expected = [
        ("sack", "tcp_sack", kernel.sack),
        ("timestamps", "tcp_timestamps", kernel.timestamps),
        ("slow_start_after_idle", "tcp_slow_start_after_idle", kernel.slow_start_after_idle),
    ];
    for (key, setting, value) in expected {
        let present = read_setting(setting)?;
        if (present != "0") != value {
            return Err(unlike(&format!("{key} = {value}"), setting, &present));
        }
    }
    check_ecn(kernel.ecn, &read_setting("tcp_ecn")?)
}

/// `present` is `tcp_ecn`: 1 requests ECN, and in kernels with AccECN so do 3 and 4.
fn check_ecn(ecn: Option<bool>, present: &str) -> Result<(), KernelError> {
    let requests = ["1", "3", "4"].contains(&present);
    match ecn {
        Some(true) if present != "1" => Err(unlike("ecn = true", "tcp_ecn", present)),
        Some(false) if requests => Err(unlike("ecn = false", "tcp_ecn", present)),
        None if requests => Err(unlike("ecn is not set", "tcp_ecn", present)),
        _ => Ok(()),
    }
}

fn unlike(key: &str, setting: &str, present: &str) -> KernelError {
    KernelError::Missing(format!(
        "{key}: this host has {setting} = {present}, and a run between hosts changes no settings of a \
         machine"
    ))
}

/// The settings of TCP in this namespace that matter to a run, as [`describe`] has them.
pub(super) fn present_settings() -> Result<Vec<Setting>, KernelError> {
    let names = [
        "tcp_no_metrics_save",
        "tcp_rmem",
        "tcp_wmem",
        "tcp_sack",
        "tcp_timestamps",
        "tcp_slow_start_after_idle",
        "tcp_ecn",
    ];
    names.iter().map(|name| Ok(Setting { name, value: read_setting(name)? })).collect()
}

fn read_setting(name: &str) -> Result<String, KernelError> {
    let path = format!("/proc/sys/net/ipv4/{name}");
    let read = fs::read_to_string(&path);
    let text = read.map_err(|error| KernelError::Missing(format!("{path}: {error}")))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn missing(what: &str) -> KernelError {
    KernelError::Missing(format!(
        "world kernel needs {what}. Without it the worlds sim and udp work, and so does --virtual"
    ))
}

/// Settings of the namespaces of a run. They end with the namespaces.
pub(super) fn settings<L: weir_scene::Load>(
    spec: &RunSpec,
    net: &Network<HeapQueue, L>,
) -> Vec<Setting> {
    let kernel = Kernel::of(spec);
    let switch = |on: bool| u8::from(on).to_string();
    let most = largest_buffer(spec, net);
    // Buffers begin large and grow larger still, so that windows do not hold senders back.
    let buffers = format!("4096 {} {most}", SMALLEST_BUFFER.min(most / 4));
    let settings = [
        ("tcp_no_metrics_save", "1".to_owned()),
        ("tcp_rmem", buffers.clone()),
        ("tcp_wmem", buffers),
        ("tcp_sack", switch(kernel.sack)),
        ("tcp_timestamps", switch(kernel.timestamps)),
        ("tcp_slow_start_after_idle", switch(kernel.slow_start_after_idle)),
        // 1 asks for ECN, 2 only grants it; DCTCP asks for it anyway.
        ("tcp_ecn", if kernel.ecn == Some(true) { "1" } else { "2" }.to_owned()),
    ];
    settings.into_iter().map(|(name, value)| Setting { name, value }).collect()
}

/// Applies the settings to the namespace of the calling thread.
pub(super) fn apply(settings: &[Setting]) -> io::Result<()> {
    for Setting { name, value } in settings {
        let path = format!("/proc/sys/net/ipv4/{name}");
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path} = {value}: {error}")))?;
    }
    Ok(())
}

/// The settings in a line, with the kernel's release.
pub(super) fn describe(settings: &[Setting]) -> String {
    let mut text = format!("Linux {}", rustix::system::uname().release().to_string_lossy());
    for Setting { name, value } in settings {
        let _ = write!(text, "; {name} = {value}");
    }
    text
}

/// 4 BDP of the longest route, so that windows never limit.
fn largest_buffer<L: weir_scene::Load>(spec: &RunSpec, net: &Network<HeapQueue, L>) -> u64 {
    let second = Instant::ZERO + Duration::from_secs(1);
    let per_route = spec.flows.iter().map(|flow| {
        let route = || flow.route_forward.iter().chain(&flow.route_reverse);
        let capacity = |link: &usize| net.links[*link].link.capacity(Instant::ZERO, second);
        let slowest = flow.route_forward.iter().filter_map(capacity).min();
        let delay: f64 =
            route().map(|link| spec.links[*link].config.delay.initial.as_secs_f64()).sum();
        slowest.map_or(0, |bytes| (bytes.get() as f64 * delay) as u64)
    });
    (4 * per_route.max().unwrap_or_default()).clamp(4 * SMALLEST_BUFFER, LARGEST_BUFFER)
}

const TUN: &str = "/dev/net/tun";
const CONTROLLERS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const SMALLEST_BUFFER: u64 = 8 << 20;
/// What the largest window scale allows (RFC 7323 §2.3).
const LARGEST_BUFFER: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_requests_ecn_runs_no_flow_without_it() {
        let allowed = |ecn, present| check_ecn(ecn, present).is_ok();
        for present in ["0", "2"] {
            assert_eq!(
                [None, Some(false), Some(true)].map(|ecn| allowed(ecn, present)),
                [true, true, false]
            );
        }
        assert_eq!(
            [None, Some(false), Some(true)].map(|ecn| allowed(ecn, "1")),
            [false, false, true]
        );
        let refused = check_ecn(None, "1").unwrap_err().to_string();
        assert!(refused.starts_with("ecn is not set: this host has tcp_ecn = 1, "), "{refused}");
    }
}
