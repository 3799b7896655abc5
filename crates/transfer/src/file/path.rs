//! Where something goes that a peer sends: a path of plain names below the receiver's folder.

use super::frame::MAX_NAME;
use super::name::{is_invisible, numbered, safe_name};

/// A path that leads nowhere but below the folder it is joined to, as long as its folders are no links.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SafePath(String);

impl SafePath {
    /// The path of something that a peer calls so. A name alone, and the outermost folder, become safe names: what is
    /// at the top of the receiver's folder is visible and harmless. Inside a folder names are kept or refused.
    ///
    /// # Errors
    /// Why the receiver refuses it, in printable words.
    pub fn new(path: &str) -> Result<Self, String> {
        let Some((top, rest)) = path.split_once('/') else { return Ok(Self(safe_name(path))) };
        if path.split('/').count() > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} folders, one in another"));
        }
        for name in rest.split('/') {
            check(name)?;
        }
        // What would be reduced to its last name, or leads elsewhere.
        if top.contains('\\') || matches!(top, "" | "." | "..") {
            return Err(format!("'{}' is no name of a folder", printable(top)));
        }
        Ok(Self(format!("{}/{rest}", safe_name(top))))
    }

    /// The folders that it is in, from the outermost.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        let folders = self.0.rsplit_once('/').map(|(folders, _)| folders.split('/'));
        folders.into_iter().flatten()
    }

    /// Its last name.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Its first name, and whether that is a folder with the rest in it.
    pub fn top(&self) -> (&str, bool) {
        self.0.split_once('/').map_or((&self.0, false), |(top, _)| (top, true))
    }

    /// The same in another outermost folder.
    pub fn below(&self, top: &str) -> Self {
        let rest = self.0.split_once('/').map_or(String::new(), |(_, rest)| format!("/{rest}"));
        Self(format!("{top}{rest}"))
    }

    /// The path of the folder that it is in; `None` if that is the receiver's.
    pub fn folder(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(folder, _)| Self(folder.to_owned()))
    }

    /// A path of something in it, if it is a folder itself.
    pub(super) fn inside(&self) -> Self {
        Self(format!("{}/.", self.0))
    }

    /// The same with another last name, which is `number`ed unless it is 0.
    pub fn numbered(&self, number: u32) -> Self {
        let name = numbered(self.name(), number);
        match self.0.rsplit_once('/') {
            Some((folder, _)) => Self(format!("{folder}/{name}")),
            None => Self(name),
        }
    }

    /// Whether a link here stays in the outermost folder, whatever other links there are, if each of them does too.
    /// Going up comes first then: above a link's own folder are real folders only.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check_target(&self, target: &str) -> Result<(), String> {
        if target.is_empty() || target.chars().any(char::is_control) {
            return Err("a link to a name that cannot be shown".to_owned());
        }
        let names = target.split('/').filter(|name| !matches!(*name, "" | "."));
        let up = names.clone().take_while(|name| *name == "..").count();
        let inside = self.folders().count().saturating_sub(1);
        let is_outside = target.starts_with('/') || up > inside || self.folders().next().is_none();
        if is_outside || names.skip(up).any(|name| name == "..") {
            return Err("a link that leaves its folder".to_owned());
        }
        Ok(())
    }
}

impl std::fmt::Display for SafePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What of a text a terminal shows as it is.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !is_invisible(*c)).collect()
}

/// A name inside a folder: any that shows what it is. Windows' forbidden ones are none here: what arrives in a folder
/// is what its sender has, or nothing.
fn check(name: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("the name '{}' {why}", printable(name)));
    if matches!(name, "" | "." | "..") {
        return refuse("is no name");
    }
    if name.len() > MAX_NAME {
        return refuse(&format!("is longer than {MAX_NAME} bytes"));
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return refuse("has a character that cannot be seen");
    }
    if name.get(..HIDDEN.len()).is_some_and(|start| start.eq_ignore_ascii_case(HIDDEN)) {
        return refuse("is one of Weir's own");
    }
    Ok(())
}

/// How the names of partial files begin.
const HIDDEN: &str = ".weir-";
/// Each of them is opened whenever something in it is.
const MAX_DEPTH: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> SafePath {
        SafePath::new(text).expect("a safe path")
    }

    #[test]
    fn the_top_is_made_safe_and_the_rest_is_kept_or_refused() {
        for (given, safe) in [
            ("a.txt", "a.txt"),
            (".bashrc", "bashrc"),
            ("photos/.git/config", "photos/.git/config"),
            (".ssh/authorized_keys", "ssh/authorized_keys"),
            ("a:b/c:d ", "a_b/c:d "),
            ("CON/nul", "_CON/nul"),
            ("t/dev-disk\\x2d1", "t/dev-disk\\x2d1"),
        ] {
            assert_eq!(path(given).to_string(), safe, "{given:?}");
        }
        for given in [
            "../a",
            "a/../b",
            "a/..",
            "a/.",
            "a//b",
            "/etc/passwd",
            "a/",
            "./a",
            "c:\\x/y",
            "a/\0",
            "a/b\n",
            "a/x\u{202e}y",
            "a/.weir-0.part",
            "a/.WEIR-x/y",
        ] {
            assert!(SafePath::new(given).is_err(), "{given:?}");
        }
        assert!(SafePath::new(&format!("a/{}", "é".repeat(128))).is_err());
        assert!(SafePath::new(&"a/".repeat(200)).is_err());
    }

    #[test]
    fn it_knows_its_parts() {
        let deep = path("a/b/c.txt");
        assert_eq!(deep.folders().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((deep.name(), deep.top()), ("c.txt", ("a", true)));
        assert_eq!(deep.below("a (1)").to_string(), "a (1)/b/c.txt");
        assert_eq!(deep.numbered(2).to_string(), "a/b/c (2).txt");
        assert_eq!(deep.folder(), Some(path("a/b")));
        let alone = path("x");
        assert_eq!((alone.folders().count(), alone.top(), alone.folder()), (0, ("x", false), None));
        assert_eq!(alone.below("y").to_string(), "y");
    }

    #[test]
    fn links_stay_in_their_folder() {
        let link = path("tree/sub/link");
        for inside in ["file", "../other", "../sub/x", "./y", "a/b/c", "..", ".", "no such/x"] {
            assert_eq!(link.check_target(inside), Ok(()), "{inside}");
        }
        for outside in
            ["/etc/passwd", "../../x", "../..", "a/../../../x", "a/../b", "", "x\ny", "../x/../y"]
        {
            assert!(link.check_target(outside).is_err(), "{outside:?}");
        }
        assert!(path("alone").check_target("x").is_err(), "a link is in a folder");
    }

    proptest! {
        /// Whatever a path is called, it stays below its folder, and is what it was made from or a safe name.
        #[test]
        fn no_path_leads_elsewhere(given in "[a.\\\\/ \0\u{ad}~€]{0,40}") {
            let Ok(safe) = SafePath::new(&given) else { return Ok(()) };
            let shown = safe.to_string();
            for name in shown.split('/') {
                prop_assert!(!matches!(name, "" | "." | "..") && !name.contains('\0'), "{shown:?}");
            }
            prop_assert!(!shown.starts_with(['.', '/']));
            let joined = std::path::Path::new("/root").join(&shown);
            let parts = joined.components().skip(2);
            prop_assert!(parts.clone().all(|part| matches!(part, std::path::Component::Normal(_))));
            prop_assert_eq!(parts.count(), shown.split('/').count());
            prop_assert_eq!(SafePath::new(&shown), Ok(safe));
        }

        /// Links that pass the check are followed, also through each other, by a model of a file system that knows
        /// how deep each is: none gets above the outermost folder.
        #[test]
        fn no_chain_of_links_leaves(
            links in prop::collection::btree_map("[ab](/[ab]){0,2}", "(\\.\\./){0,3}([abc.]{1,2}/){0,2}[abc]", 1..8),
            start in "[ab](/[ab]){0,3}",
        ) {
            let safe: std::collections::BTreeMap<_, _> = links.into_iter().filter(|(at, target)| {
                path(&format!("t/{at}")).check_target(target).is_ok()
            }).collect();
            // A link is made in a real folder only.
            let is_real = |at: &str| !safe.keys().any(|link| at.starts_with(&format!("{link}/")));
            let real: std::collections::BTreeMap<_, _> =
                safe.iter().filter(|(at, _)| is_real(at)).collect();
            let mut here: Vec<String> = Vec::new();
            let mut left: Vec<String> = start.rsplit('/').map(str::to_owned).collect();
            for _ in 0..1_000 {
                let Some(name) = left.pop() else { break };
                match name.as_str() {
                    "" | "." => continue,
                    ".." => {
                        prop_assert!(here.pop().is_some(), "{start} by {real:?}");
                        continue;
                    }
                    _ => here.push(name),
                }
                if let Some(target) = real.get(&here.join("/")) {
                    here.pop();
                    left.extend(target.rsplit('/').map(str::to_owned));
                }
            }
        }
    }
}
