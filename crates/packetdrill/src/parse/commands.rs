//! Commands in backquotes: sysctls, and the scripts with which packetdrill's own tests set their defaults. No shell
//! runs.

use weir_units::known;

use super::cursor::Cursor;
use super::sysctl;
use crate::error::ScriptError;
use crate::info;
use crate::script::Settings;

/// Reads commands after the first backquote. Returns the state and the number of connections that they ask for.
pub(super) fn commands(
    cursor: &mut Cursor<'_>,
    settings: &mut Settings,
) -> Result<Option<(i64, u32)>, ScriptError> {
    let line = cursor.line();
    let Some(end) = cursor.rest().find('`') else {
        return Err(cursor.error("a '`' without its second one"));
    };
    let text = cursor.advance(end);
    cursor.advance(1);
    let joined = text.replace("\\\n", " ");
    let mut count = None;
    for (index, command) in joined.split(['\n', ';']).enumerate() {
        let refused = |message: String| ScriptError { line: line + index as u32, message };
        let words = words(command);
        let Some((program, rest)) = words.split_first() else { continue };
        if program == "sockstat" {
            count = Some(counted(rest).map_err(refused)?);
            continue;
        }
        // What follows `||` or `|` is for a shell.
        let end = rest.iter().position(|word| SEPARATORS.contains(&word.as_str()));
        run(program, &rest[..end.unwrap_or(rest.len())], settings).map_err(refused)?;
        if settings.sysctls.len() + settings.neutral.len() > MAX_SYSCTLS {
            return Err(refused(format!("more than {MAX_SYSCTLS} sysctls")));
        }
    }
    Ok(count)
}

fn run(program: &str, words: &[String], settings: &mut Settings) -> Result<(), String> {
    let file = program.rsplit('/').next().unwrap_or(program);
    match file {
        "defaults.sh" => sysctl::set_defaults(settings),
        "sysctl" | "set_sysctls.py" => {
            let ends = |word: &&String| !word.contains('>');
            for word in words.iter().take_while(ends).filter(|word| !word.starts_with('-')) {
                sysctl::set(word, settings)?;
            }
        }
        "echo" => echo(words, settings)?,
        "tc" => queueing_discipline(words, settings)?,
        "ip" if words.first().is_some_and(|word| word == "tcp_metrics") => settings.flushes += 1,
        // What they do to files, to the kernel's modules and to offload makes no difference here.
        _ if NEUTRAL.contains(&file) || file.starts_with("sysctl_restore") => {}
        _ => {
            let names = known(file, COMMANDS.into_iter().chain(NEUTRAL));
            let shown: String = program.chars().take(40).collect();
            return Err(format!("`{shown}`: this command is not supported; {names}"));
        }
    }
    Ok(())
}

/// `echo VALUE > FILE`, where the file is a sysctl or a parameter of the kernel.
fn echo(words: &[String], settings: &mut Settings) -> Result<(), String> {
    let Some(at) = words.iter().position(|word| word == ">") else { return Ok(()) };
    let (value, file) = (words[..at].join(" "), words.get(at + 1).map_or("", String::as_str));
    if file.starts_with("/proc/sys/") {
        return sysctl::set(&format!("{file}={value}"), settings);
    }
    // HyStart looks at delays and at trains of acknowledgements, which is the default.
    if (file, value.as_str()) == ("/sys/module/tcp_cubic/parameters/hystart_detect", "3") {
        return Ok(());
    }
    let shown: String = file.chars().take(80).collect();
    Err(format!(
        "`echo {value} > {shown}`: only /proc/sys/net and hystart_detect = 3 are supported"
    ))
}

/// `tc qdisc replace dev tun0 root fq`.
fn queueing_discipline(words: &[String], settings: &mut Settings) -> Result<(), String> {
    let drops = words.windows(2).any(|pair| pair[0] == "limit" && pair[1] == "0");
    if drops {
        return Err("`tc ... limit 0`: a device that takes no packet is not supported".to_owned());
    }
    let root = words.iter().position(|word| word == "root");
    match root.and_then(|at| words.get(at + 1)).map(String::as_str) {
        Some("fq") => settings.paces = true,
        Some("pfifo" | "pfifo_fast" | "fq_codel") => settings.paces = false,
        // It deletes one, or shows them.
        None => {}
        Some(other) => {
            let shown: String = other.chars().take(40).collect();
            return Err(format!("`tc ... {shown}`: only fq, fq_codel and pfifo are supported"));
        }
    }
    Ok(())
}

/// `sockstat ... | grep -c STATE | grep NUMBER`: the state and the number.
fn counted(words: &[String]) -> Result<(i64, u32), String> {
    let grep = |at: usize| words.get(at).map_or("", String::as_str);
    let counts = words.iter().position(|word| word == "-c");
    let first = counts.and_then(|at| at.checked_sub(2)).unwrap_or(words.len());
    let found = (grep(first + 1) == "grep" && grep(first + 2) == "-c")
        .then(|| (state(grep(first + 3)), grep(first + 6).parse().ok()));
    match found {
        Some((Some(state), Some(number))) if grep(first + 5) == "grep" => Ok((state, number)),
        _ => Err("`sockstat`: expected 'sockstat ... | grep -c STATE | grep NUMBER'".to_owned()),
    }
}

/// The state that FreeBSD calls so.
fn state(name: &str) -> Option<i64> {
    let linux = match name {
        "SYN_RCVD" => "SYN_RECV".to_owned(),
        "CLOSED" => "CLOSE".to_owned(),
        _ => name.replace("WAIT_", "WAIT"),
    };
    info::constant(&format!("TCP_{linux}"))
}

/// Splits a command at blanks outside of quotation marks, and leaves out a comment.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (quote, letter) {
            (Some(mark), _) if mark == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

const SEPARATORS: [&str; 3] = ["|", "||", "&&"];
const COMMANDS: [&str; 7] =
    ["sysctl", "set_sysctls.py", "defaults.sh", "echo", "tc", "ip", "sockstat"];
const NEUTRAL: [&str; 10] =
    ["ethtool", "rm", "dd", "touch", "truncate", "sleep", "nstat", "kldload", "modprobe", "true"];
const MAX_SYSCTLS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_one_word_and_a_comment_none() {
        let found = words("sysctl -q a.b=\"1 2 3\" c='4 5' # d=6");
        assert_eq!(found, ["sysctl", "-q", "a.b=1 2 3", "c=4 5"]);
        assert!(words("  ").is_empty());
    }

    #[test]
    fn sockstat_asks_for_a_number_of_connections() {
        let asked = |text: &str| counted(&words(text));
        assert_eq!(asked("-4 -p 8080 -s | grep -c SYN_RCVD | grep 1"), Ok((3, 1)));
        assert_eq!(asked("-s | grep -c FIN_WAIT_2 | grep 0"), Ok((5, 0)));
        assert!(asked("-s | grep -c SYN_RCVD").is_err());
        assert!(asked("-s").is_err());
    }
}
