//! Sysctls in a script's head: those that are understood, and those whose value makes no difference here.

use weir_cc::CcConfig;
use weir_transport::{Detection, RackConfig, RecoveryConfig, Stack, Tlp};
use weir_units::known;

use crate::script::{Settings, Sysctl};

/// Splits a command at blanks outside of quotation marks.
pub(super) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (Some(mark), _) if mark == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The values with which packetdrill's own tests for Linux run, where they differ from ours.
pub(super) fn set_defaults(settings: &mut Settings) {
    settings.receive_memory = Some(DEFAULT_RECEIVE_MEMORY);
    settings.sysctls.push((Sysctl::SynRetries, 5));
}

/// Takes `net.ipv4.NAME=VALUE`, or the same as a path below `/proc/sys`.
pub(super) fn set(text: &str, settings: &mut Settings) -> Result<(), String> {
    let (path, value) = text.split_once('=').unwrap_or((text, ""));
    let dotted = path.trim_start_matches("/proc/sys/").replace('/', ".");
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
        "tcp_rmem" => {
            let sizes: Vec<u64> =
                value.split_whitespace().filter_map(|size| size.parse().ok()).collect();
            let sizes: [u64; 3] = sizes.try_into().ok().filter(is_ascending).ok_or_else(|| {
                format!("sysctl {path} = '{value}', allowed are three sizes in bytes, as in '4096 131072 6291456'")
            })?;
            settings.receive_memory = Some(sizes);
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

const OTHERS: [&str; 4] =
    ["tcp_rmem", "tcp_congestion_control", "tcp_recovery", "tcp_early_retrans"];
/// Sysctls that change nothing that our transport does with these values; with any, if there are none.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("tcp_abort_on_overflow", &["0"]),
    ("tcp_autocorking", &[]),
    ("tcp_challenge_ack_limit", &[]),
    ("tcp_dsack", &["1"]),
    ("tcp_fack", &[]),
    ("tcp_fastopen", &[]),
    ("tcp_fastopen_key", &[]),
    ("tcp_fin_timeout", &[]),
    ("tcp_frto", &["1", "2"]),
    ("tcp_invalid_ratelimit", &[]),
    ("tcp_limit_output_bytes", &[]),
    ("tcp_min_tso_segs", &[]),
    ("tcp_mtu_probing", &["0"]),
    ("tcp_no_metrics_save", &["1"]),
    ("tcp_notsent_lowat", &[]),
    ("tcp_pacing_ca_ratio", &[]),
    ("tcp_pacing_ss_ratio", &[]),
    ("tcp_reordering", &["3"]),
    ("tcp_syncookies", &[]),
    ("tcp_tso_win_divisor", &[]),
    ("tcp_tw_reuse", &[]),
    ("tcp_window_scaling", &["1"]),
    ("tcp_wmem", &[]),
    ("tcp_workaround_signed_windows", &["0"]),
];
/// As packetdrill's own tests set it.
const DEFAULT_RECEIVE_MEMORY: [u64; 3] = [4_096, 540_000, 15 << 20];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_one_word() {
        assert_eq!(
            words("sysctl -q a.b=\"1 2 3\" c='4 5'"),
            ["sysctl", "-q", "a.b=1 2 3", "c=4 5"]
        );
        assert!(words("  ").is_empty());
    }
}
