//! Names of files: a peer's name for a file, made safe, and the next one if that is taken.

use super::frame::{MAX_NAME, head};

/// Reduces a name from the network to a base name that every file system takes and that shows what it
/// is: never a path, never hidden, no control characters, none that turn the text around, none of
/// Windows' device names, at most 255 bytes.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let harmless = last.chars().filter(|c| !c.is_control() && !is_invisible(*c));
    let spelled: String = harmless.map(|c| if FORBIDDEN.contains(c) { '_' } else { c }).collect();
    let trimmed = spelled.trim_matches(is_edge);
    let named = match trimmed {
        "" => "unnamed".to_owned(),
        name if is_device(name) => format!("_{name}"),
        name => name.to_owned(),
    };
    cut(&named, MAX_NAME)
}

/// `report.pdf`, `report (1).pdf`, `report (2).pdf`, … for n = 0, 1, 2, …
pub(super) fn numbered(name: &str, n: u32) -> String {
    if n == 0 {
        return name.to_owned();
    }
    let number = format!(" ({n})");
    let (stem, dot_extension) = match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    };
    let extension = cut(dot_extension, MAX_NAME / 2);
    let stem = cut(stem, MAX_NAME - number.len() - extension.len());
    format!("{stem}{number}{extension}")
}

/// What separates streams, drives, wildcards and pipes on Windows.
const FORBIDDEN: &str = ":*?\"<>|";

/// Characters without a glyph, which make a name look like another: what Unicode 16 lists as
/// `Default_Ignorable_Code_Point` (DerivedCoreProperties.txt), blanks of scripts, separators of lines, and annotations.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// CON, NUL, COM1 and other device names of Windows ("Naming Files, Paths, and Namespaces"), with any extension. It
/// takes the superscripts 1 to 3 of Latin-1 for digits.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = |prefix| {
        let mut rest = stem.strip_prefix(prefix).unwrap_or_default().chars();
        let is_number = |c| matches!(c, '0'..='9' | '¹' | '²' | '³');
        rest.next().is_some_and(is_number) && rest.next().is_none()
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$" | "CLOCK$")
        || numbered("COM")
        || numbered("LPT")
}

/// At most `max` bytes of `text`, in whole characters.
fn cut(text: &str, max: usize) -> String {
    head(text, max).trim_end_matches(is_edge).to_owned()
}

/// What a name neither begins nor ends with: it would hide the file, not be seen, or be lost on Windows.
fn is_edge(c: char) -> bool {
    c == '.' || c.is_whitespace()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_reduced_to_safe_ones() {
        for (given, safe) in [
            ("big.bin", "big.bin"),
            ("größe €.txt", "größe €.txt"),
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            ("C:\\Windows\\System32\\evil.dll", "evil.dll"),
            ("..", "unnamed"),
            ("dir/", "unnamed"),
            ("", "unnamed"),
            (".bashrc", "bashrc"),
            (". .hidden", "hidden"),
            ("a\0b\n\x1b[2Jc", "ab[2Jc"),
            ("nul", "_nul"),
            ("Com1.txt", "_Com1.txt"),
            ("command.com", "command.com"),
            ("file.txt:stream", "file.txt_stream"),
            ("trailing. .", "trailing"),
            ("exe\u{202e}gpj.scr", "exegpj.scr"),
            ("re\u{ad}port\u{34f}.pdf", "report.pdf"),
            ("\u{115f}\u{3164}\u{ffa0}", "unnamed"),
            ("\u{e0041}", "unnamed"),
            ("a\u{fe0f}b\u{e0100}", "ab"),
            ("\u{ad}.hidden", "hidden"),
            ("con\u{ad}", "_con"),
            ("com¹.txt", "_com¹.txt"),
            ("LPT³", "_LPT³"),
            ("conin$", "_conin$"),
            ("CONOUT$.log", "_CONOUT$.log"),
            ("com10", "com10"),
            ("\u{3000}\u{a0}", "unnamed"),
        ] {
            assert_eq!(safe_name(given), safe, "{given:?}");
        }
    }

    #[test]
    fn numbers_come_before_the_extension() {
        assert_eq!(numbered("a.tar.gz", 0), "a.tar.gz");
        assert_eq!(numbered("a.tar.gz", 2), "a.tar (2).gz");
        assert_eq!(numbered("README", 1), "README (1)");
        assert_eq!(numbered("x.y", 10), "x (10).y");
    }

    proptest! {
        #[test]
        fn every_name_becomes_a_plain_base_name(given in any::<String>(), n in 0..99_999u32) {
            let safe = safe_name(&given);
            for name in [&safe, &numbered(&safe, n)] {
                prop_assert!(!name.is_empty() && name.len() <= MAX_NAME, "{name:?}");
                prop_assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\0']), "{name:?}");
                prop_assert!(!name.chars().any(char::is_control));
                let path = std::path::Path::new(name);
                prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
            }
            prop_assert_eq!(safe_name(&safe), safe.clone());
        }

        #[test]
        fn long_names_stay_apart(stem in "[a-z€]{1,200}", extension in "[a-z€.]{0,200}", n in 1..999u32) {
            let name = safe_name(&format!("{stem}.{extension}"));
            prop_assert!(numbered(&name, n).len() <= MAX_NAME);
            prop_assert_ne!(numbered(&name, n), numbered(&name, n + 1));
            prop_assert_ne!(numbered(&name, n), name);
        }
    }
}
