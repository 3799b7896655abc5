//! The parts of a stack as a scenario writes it, without a check of what they name.

use weir_cc::Script;
use weir_foreign::StackName;
use weir_transport::Stack;

use crate::contender::ContenderName;

/// What a stack consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackParts {
    /// What it runs in: `weir`, a host as `quinn`, or `contender:NAME`.
    pub host: String,
    /// The recovery scheme with its parameters; empty for stacks of other projects.
    pub recovery: String,
    /// The controller with its parameters. Of a contender it is parameter `cc`, or else its name.
    pub controller: String,
    /// The controller's algorithm: `cubic` of `noq/weir-cubic`, `reno` of `quinn/newreno`. None for a
    /// class in Python, whose name says nothing about it.
    pub algorithm: Option<String>,
}

/// Returns the parts of `stack`; a bare controller runs over `rack`.
///
/// ```
/// let parts = weir_lab::stack_parts("go-back-n(30)/cubic(hystart=off)");
/// assert_eq!((&*parts.host, &*parts.recovery), ("weir", "go-back-n(30)"));
/// assert_eq!(parts.controller, "cubic(hystart=off)");
/// assert_eq!(parts.algorithm.as_deref(), Some("cubic"));
/// ```
pub fn stack_parts(stack: &str) -> StackParts {
    let text = stack.trim();
    let (host, recovery, controller) = if ContenderName::is_meant(text) {
        let name = without_parameters(text);
        let parsed = text.parse::<ContenderName>().ok();
        let controller = parsed.as_ref().and_then(|parsed| parsed.parameter("cc"));
        (name, "", controller.unwrap_or(name).to_owned())
    } else if StackName::is_hosted(text) {
        let (host, controller) = text.split_once('/').unwrap_or((text, ""));
        (host, "", controller.to_owned())
    } else {
        let (recovery, controller) = Stack::split(text);
        ("weir", recovery, controller.to_owned())
    };
    let algorithm = (!Script::is_meant(&controller)).then(|| algorithm_of(&controller).to_owned());
    StackParts { host: host.to_owned(), recovery: recovery.to_owned(), controller, algorithm }
}

/// The kind of routers' feedback, as key `feedback` of a scenario has it, that the controller of a stack goes by.
///
/// ```
/// assert_eq!(weir_lab::router_feedback("rack/hpcc(wai=1gbit)"), Some("int"));
/// assert_eq!(weir_lab::router_feedback("cubic"), None);
/// ```
pub fn router_feedback(stack: &str) -> Option<&'static str> {
    stack.trim().parse::<Stack>().ok()?.controller.router_feedback()
}

fn algorithm_of(controller: &str) -> &str {
    let name = without_parameters(controller);
    match name.strip_prefix("weir-").unwrap_or(name) {
        "newreno" => "reno",
        name => name,
    }
}

fn without_parameters(text: &str) -> &str {
    text.split('(').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_stack_has_its_parts() {
        for (text, host, recovery, controller, algorithm) in [
            ("cubic", "weir", "rack", "cubic", Some("cubic")),
            ("sack/cubic(hystart=off)", "weir", "sack", "cubic(hystart=off)", Some("cubic")),
            ("rack(tlp=off)/reno", "weir", "rack(tlp=off)", "reno", Some("reno")),
            ("go-back-n(30)/none", "weir", "go-back-n(30)", "none", Some("none")),
            ("udp", "weir", "rack", "udp", Some("udp")),
            ("sack/mine.py:Mine(b=0.5)", "weir", "sack", "mine.py:Mine(b=0.5)", None),
            ("dir/mine.py:Mine", "weir", "rack", "dir/mine.py:Mine", None),
            ("quinn/newreno", "quinn", "", "newreno", Some("reno")),
            ("noq/weir-cubic", "noq", "", "weir-cubic", Some("cubic")),
            (
                "contender:quiche",
                "contender:quiche",
                "",
                "contender:quiche",
                Some("contender:quiche"),
            ),
            ("contender:quiche(a=1,cc=bbr2)", "contender:quiche", "", "bbr2", Some("bbr2")),
            ("tcp/reno", "weir", "tcp", "reno", Some("reno")),
        ] {
            let parts = stack_parts(text);
            let found = (&*parts.host, &*parts.recovery, &*parts.controller);
            assert_eq!(found, (host, recovery, controller), "{text}");
            assert_eq!(parts.algorithm.as_deref(), algorithm, "{text}");
        }
    }
}
