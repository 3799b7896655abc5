//! Decimal numbers in files, read exactly: no float lies between a file and a position.

/// `text` times `10^digits`, rounded to the nearest integer (halves away from zero); `None` if it is
/// not a plain decimal number or lies beyond 10^17.
pub(super) fn scaled(text: &str, digits: usize) -> Option<i64> {
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let kept = fraction.bytes().chain(std::iter::repeat(b'0')).take(digits);
    let mut value: i64 = 0;
    for digit in whole.bytes().chain(kept) {
        value = value * 10 + i64::from(digit - b'0');
        if value > LARGEST {
            return None;
        }
    }
    value += i64::from(fraction.as_bytes().get(digits).is_some_and(|digit| *digit >= b'5'));
    Some(if negative { -value } else { value })
}

const LARGEST: i64 = 100_000_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn decimals_become_integers_exactly() {
        assert_eq!(scaled("83.364418416244", 3), Some(83_364));
        assert_eq!(scaled("83.3645", 3), Some(83_365));
        assert_eq!(scaled("-0.5", 3), Some(-500));
        assert_eq!(scaled("7", 9), Some(7_000_000_000));
        assert_eq!(scaled(".25", 2), Some(25));
        assert_eq!(scaled("3.", 1), Some(30));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", ".", "-", "1e3", "+1", "nan", "1.2.3", "--1", "1 2", "99999999999999999999"]
        {
            assert_eq!(scaled(text, 3), None, "{text}");
        }
    }
}
