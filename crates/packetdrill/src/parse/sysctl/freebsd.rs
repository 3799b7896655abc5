//! Sysctls of FreeBSD (tcp(4)).

use weir_units::known;

use crate::script::{Settings, Sysctl};

/// Takes a sysctl with its whole name.
pub(super) fn set(name: &str, value: &str, settings: &mut Settings) -> Result<(), String> {
    settings.freebsd = true;
    let number = || {
        let refused = || format!("sysctl {name} = '{value}': no number up to {MOST}");
        value.parse::<u64>().ok().filter(|number| *number <= MOST).ok_or_else(refused)
    };
    let [least, first, largest] = settings.receive_memory.unwrap_or(RECEIVE_MEMORY);
    match name {
        "net.inet.tcp.sack.enable" => push(settings, Sysctl::Sack, number()?.min(1)),
        "net.inet.tcp.ecn.enable" if ["0", "1", "2"].contains(&value) => {
            push(settings, Sysctl::Ecn, number()?);
        }
        // Both extensions, or none.
        "net.inet.tcp.rfc1323" if ["0", "1"].contains(&value) => {
            push(settings, Sysctl::Timestamps, number()?);
            push(settings, Sysctl::WindowScaling, number()?);
        }
        // Linux counts memory, of which half is a window.
        "net.inet.tcp.recvspace" => {
            let first = 2 * number()?.max(1);
            settings.receive_memory = Some([least, first, largest.max(first)]);
        }
        "kern.ipc.maxsockbuf" => {
            settings.receive_memory = Some([least, first, number()?.max(first)]);
        }
        "net.inet.tcp.hostcache.purgenow" => settings.flushes += 1,
        "net.inet.tcp.fastopen.client_enable" => {
            settings.fast_open = number()?.min(1) as u32;
            settings.flushes += 1;
        }
        _ => {
            let Some((_, allowed)) = NEUTRAL.iter().find(|(neutral, _)| *neutral == name) else {
                let names = known(name, SET.into_iter().chain(NEUTRAL.iter().map(|(n, _)| *n)));
                return Err(format!("sysctl {name} = '{value}': not supported; {names}"));
            };
            if !allowed.is_empty() && !allowed.contains(&value) {
                let allowed = allowed.join(" or ");
                return Err(format!("sysctl {name} = '{value}': only {allowed} is supported"));
            }
        }
    }
    Ok(())
}

fn push(settings: &mut Settings, sysctl: Sysctl, value: u64) {
    settings.sysctls.push((sysctl, value as i64));
}

/// As `recvspace` and `maxsockbuf` are by default.
const RECEIVE_MEMORY: [u64; 3] = [4_096, 131_072, 2 << 20];
const MOST: u64 = 1 << 30;
const SET: [&str; 7] = [
    "net.inet.tcp.sack.enable",
    "net.inet.tcp.ecn.enable",
    "net.inet.tcp.rfc1323",
    "net.inet.tcp.recvspace",
    "kern.ipc.maxsockbuf",
    "net.inet.tcp.hostcache.purgenow",
    "net.inet.tcp.fastopen.client_enable",
];
/// Sysctls that change nothing that our transport does with these values; with any, if there are none.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("net.inet.tcp.blackhole", &["0"]),
    ("net.inet.tcp.delacktime", &[]),
    ("net.inet.tcp.drop_synfin", &["0"]),
    ("net.inet.tcp.icmp_may_rst", &[]),
    ("net.inet.tcp.insecure_rst", &["0"]),
    ("net.inet.tcp.insecure_syn", &["0"]),
    ("net.inet.tcp.keepinit", &[]),
    ("net.inet.tcp.mssdflt", &["536"]),
    ("net.inet.tcp.path_mtu_discovery", &[]),
    ("net.inet.tcp.rexmit_drop_options", &["0"]),
    ("net.inet.tcp.rexmit_initial", &["1000"]),
    ("net.inet.tcp.rexmit_slop", &[]),
    ("net.inet.tcp.sendspace", &[]),
    ("net.inet.tcp.syncookies", &[]),
    ("net.inet.tcp.syncookies_only", &["0"]),
    ("net.inet.tcp.tolerate_missing_ts", &["1"]),
];
