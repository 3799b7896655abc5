//! Messages about names that do not exist: which ones do, and which of them may have been meant.

use std::fmt;

/// A list of names for a message, as in `did you mean cubic? There are reno, cubic, bbr`.
pub struct Known<'a, I> {
    wanted: &'a str,
    names: I,
}

/// The names that exist, of which `wanted` is none.
///
/// ```
/// use weir_units::known;
///
/// let names = ["reno", "cubic"];
/// let message = known("cubik", names.into_iter()).to_string();
/// assert_eq!(message, "did you mean cubic? There are reno, cubic");
/// ```
pub fn known<'a, I>(wanted: &'a str, names: I) -> Known<'a, I>
where
    I: Iterator<Item = &'a str> + Clone,
{
    Known { wanted, names }
}

impl<'a, I: Iterator<Item = &'a str> + Clone> fmt::Display for Known<'a, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match nearest(self.wanted, self.names.clone()) {
            Some(name) => write!(f, "did you mean {name}? There are ")?,
            None => f.write_str("there are ")?,
        }
        for (position, name) in self.names.clone().enumerate() {
            write!(f, "{}{name}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The name that differs from `wanted` in the fewest letters, if these are few. Capitals are no difference.
fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    let letters = wanted.chars().count();
    if letters > LONGEST {
        return None;
    }
    let near = names.map(|name| (distance(&wanted, name), name)).min_by_key(|(far, _)| *far);
    let most = |name: &str| (letters.min(name.chars().count()) / 3).clamp(1, 3);
    near.filter(|(far, name)| *far <= most(name)).map(|(_, name)| name)
}

/// How many letters have to be inserted, removed, replaced or swapped with their neighbour
/// (Damerau 1964, in the restricted form of optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut earlier: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(earlier[j - 2] + 1);
            }
        }
        earlier = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Longer words are no misspelt names.
const LONGEST: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_recognised() {
        let names = ["reno", "cubic", "bbr", "bbr2", "bbr3", "vegas", "highspeed"];
        let meant = |word| nearest(word, names.into_iter());
        assert_eq!(meant("cubik"), Some("cubic"));
        assert_eq!(meant("cubci"), Some("cubic"));
        assert_eq!(meant("renoo"), Some("reno"));
        assert_eq!(meant("bbr4"), Some("bbr"));
        assert_eq!(meant("hihgspede"), Some("highspeed"));
        assert_eq!(meant("BBR"), Some("bbr"));
        assert_eq!(meant("Reno"), Some("reno"));
        assert_eq!(meant("sctp"), None);
        assert_eq!(meant("rate"), None);
        assert_eq!(meant(&"x".repeat(10_000)), None);
    }

    #[test]
    fn the_message_has_all_names() {
        let names = ["reno", "cubic"].into_iter();
        let near = "did you mean cubic? There are reno, cubic";
        assert_eq!(known("qubic", names.clone()).to_string(), near);
        assert_eq!(known("x25", names).to_string(), "there are reno, cubic");
    }
}
