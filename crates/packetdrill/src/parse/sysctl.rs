//! Sysctls in a script's head: those that are understood, and those whose value makes no difference here.

mod freebsd;

use weir_cc::CcConfig;
use weir_transport::{Detection, RackConfig, RecoveryConfig, Stack, Tlp};
use weir_units::known;

use crate::fast_open::Key;
use crate::script::{Settings, Sysctl};

/// The values with which packetdrill's own tests for Linux run, where they differ from ours.
pub(super) fn set_defaults(settings: &mut Settings) {
    settings.receive_memory = Some(DEFAULT_RECEIVE_MEMORY);
    settings.sysctls.push((Sysctl::SynRetries, 5));
    settings.fast_open = DEFAULT_FAST_OPEN;
    settings.fast_open_key = Key::parse(DEFAULT_KEY).unwrap_or_default();
}

/// Takes `net.ipv4.NAME=VALUE`, or the same as a path below `/proc/sys`.
pub(super) fn set(text: &str, settings: &mut Settings) -> Result<(), String> {
    let (path, value) = text.split_once('=').unwrap_or((text, ""));
    let dotted = path.trim_start_matches("/proc/sys/").replace('/', ".");
    if ["net.inet.", "kern.", "net.inet6."].iter().any(|start| dotted.starts_with(start)) {
        return freebsd::set(&dotted, value.trim(), settings);
    }
    let name = dotted.strip_prefix("net.ipv4.").unwrap_or(&dotted);
    let value = value.trim();
    if let Some(sysctl) = Sysctl::ALL.iter().find(|sysctl| sysctl.name() == name) {
        let (least, most) = sysctl.allowed().into_inner();
        let number = value.parse().ok().filter(|value| sysctl.allowed().contains(value));
        let allowed = || format!("sysctl {path} = '{value}', allowed is {least} to {most}");
        settings.sysctls.push((*sysctl, number.ok_or_else(allowed)?));
        return Ok(());
    }
    match name {
        "tcp_rmem" => settings.receive_memory = Some(memory(path, value)?),
        "tcp_wmem" => settings.send_memory = Some(memory(path, value)?),
        "tcp_notsent_lowat" => {
            let bound = value
                .parse::<u32>()
                .map_err(|_| format!("sysctl {path} = '{value}': no number"))?;
            settings.not_sent = if bound == u32::MAX { 0 } else { bound };
        }
        "tcp_fastopen" => {
            let number = match value.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            };
            let refused = || format!("sysctl {path} = '{value}': no number");
            settings.fast_open = number.ok_or_else(refused)?;
        }
        "tcp_fastopen_key" => {
            // A second key, for cookies that were granted before, has no effect here.
            let first = value.split(',').next().unwrap_or_default();
            let allowed = "allowed are four groups of eight digits, as in '00112233-…'";
            let refused = || format!("sysctl {path} = '{value}', {allowed}");
            settings.fast_open_key = Key::parse(first).ok_or_else(refused)?;
        }
        "tcp_congestion_control" => {
            let recovery = settings.stack.recovery;
            let controller: CcConfig =
                value.parse().map_err(|error| format!("sysctl {path}: {error}"))?;
            settings.stack = Stack { recovery, controller };
        }
        "tcp_recovery" => set_rack(settings, path, value, |rack, on| {
            rack.detection = if on { Detection::Time } else { Detection::Count };
        })?,
        "tcp_early_retrans" => set_rack(settings, path, value, |rack, on| {
            rack.tlp = if on { Tlp::On } else { Tlp::Off };
        })?,
        _ => {
            let Some((_, allowed)) = NEUTRAL.iter().find(|(neutral, _)| *neutral == name) else {
                let names = Sysctl::ALL.iter().map(|sysctl| sysctl.name());
                let names = known(name, names.chain(OTHERS).chain(NEUTRAL.iter().map(|(n, _)| *n)));
                return Err(format!("sysctl {path}: not supported; {names}"));
            };
            if !allowed.is_empty() && !allowed.contains(&value) {
                let allowed = allowed.join(" or ");
                return Err(format!("sysctl {path} = '{value}': only {allowed} is supported"));
            }
            settings.neutral.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(())
}

/// The smallest, the first and the largest size of a buffer.
fn memory(path: &str, value: &str) -> Result<[u64; 3], String> {
    let sizes: Vec<u64> = value.split_whitespace().filter_map(|size| size.parse().ok()).collect();
    sizes.try_into().ok().filter(is_ascending).ok_or_else(|| {
        format!("sysctl {path} = '{value}', allowed are three sizes in bytes, as in '4096 131072 6291456'")
    })
}

fn is_ascending(sizes: &[u64; 3]) -> bool {
    sizes.is_sorted() && (1..=1 << 30).contains(&sizes[2])
}

/// Changes Linux's recovery, which the script's stack must be.
fn set_rack(
    settings: &mut Settings,
    path: &str,
    value: &str,
    change: impl Fn(&mut RackConfig, bool),
) -> Result<(), String> {
    let number: u8 = value.parse().map_err(|_| format!("sysctl {path} = '{value}': no number"))?;
    if let RecoveryConfig::Rack(rack) = &mut settings.stack.recovery {
        change(rack, number > 0);
    }
    Ok(())
}

const OTHERS: [&str; 8] = [
    "tcp_notsent_lowat",
    "tcp_rmem",
    "tcp_wmem",
    "tcp_congestion_control",
    "tcp_recovery",
    "tcp_early_retrans",
    "tcp_fastopen",
    "tcp_fastopen_key",
];
/// Sysctls that change nothing that our transport does with these values; with any, if there are none.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("tcp_abort_on_overflow", &["0"]),
    ("tcp_autocorking", &[]),
    ("tcp_challenge_ack_limit", &[]),
    ("tcp_dsack", &["1"]),
    ("tcp_fack", &[]),
    ("tcp_ecn_option", &[]),
    ("tcp_fastopen_blackhole_timeout_sec", &[]),
    ("tcp_fastopen_cookies", &[]),
    ("tcp_fin_timeout", &[]),
    ("tcp_frto", &["1", "2"]),
    ("tcp_invalid_ratelimit", &[]),
    ("tcp_limit_output_bytes", &[]),
    ("tcp_min_tso_segs", &[]),
    ("tcp_mtu_probing", &["0"]),
    ("tcp_no_metrics_save", &["1"]),
    ("tcp_pacing_ca_ratio", &[]),
    ("tcp_pacing_ss_ratio", &[]),
    ("tcp_reordering", &["3"]),
    ("tcp_syncookies", &[]),
    ("tcp_tso_win_divisor", &[]),
    ("tcp_tw_reuse", &[]),
    ("tcp_workaround_signed_windows", &["0"]),
];
/// As packetdrill's own tests set it.
const DEFAULT_FAST_OPEN: u32 = 0x7_0403;
const DEFAULT_KEY: &str = "a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4";
const DEFAULT_RECEIVE_MEMORY: [u64; 3] = [4_096, 540_000, 15 << 20];
