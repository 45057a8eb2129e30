//! Numbers as Core prints them.
//!
//! Input: satoshis, floating-point numbers. Output: text, inside JSON.

/// An amount with eight decimals: Core's `ValueFromAmount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub i64);

/// A number with sixteen digits, as a C++ stream of that precision prints it (`%.16g`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Double(pub f64);

/// The largest magnitude of a number with a fixed point.
const FIXED_POINT_MAX: i64 = 999_999_999_999_999_999;

/// Reads a decimal number as an integer number of units of 10^-`decimals`, without rounding: Core's `ParseFixedPoint`.
/// `None` if the text is no JSON number, or the number is not a whole number of units below 10^18.
pub(crate) fn parse_fixed_point(text: &str, decimals: i64) -> Option<i64> {
    let (is_negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let digits_of = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole_size = if rest.starts_with('0') { 1 } else { digits_of(rest) };
    let (whole, rest) = rest.split_at(whole_size);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits_of(rest)),
        None => ("", rest),
    };
    let has_point = text.contains('.');
    let exponent = match rest.strip_prefix(['e', 'E']) {
        Some(rest) => {
            let (is_negative, digits) = match rest.strip_prefix('-') {
                Some(digits) => (true, digits),
                None => (false, rest.strip_prefix('+').unwrap_or(rest)),
            };
            // Core stops reading when one more digit would pass the largest number.
            let is_number = !digits.is_empty() && digits_of(digits) == digits.len();
            let value = digits.parse::<i64>().ok().filter(|value| is_number && *value / 10 <= FIXED_POINT_MAX / 10)?;
            if is_negative { -value } else { value }
        }
        None if rest.is_empty() => 0,
        None => return None,
    };
    if whole.is_empty() || (has_point && fraction.is_empty()) {
        return None;
    }
    // Zeros at the end belong to the exponent; a single zero before the point is no digit.
    let digits = [if whole == "0" { "" } else { whole }, fraction].concat();
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let significant = significant.trim_start_matches('0');
    let mantissa: i64 = if significant.is_empty() { 0 } else { significant.parse().ok()? };
    let shift = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?.checked_add(decimals)?;
    let factor = 10_i64.checked_pow(u32::try_from(shift).ok().filter(|shift| *shift < 18)?)?;
    let value = mantissa.checked_mul(factor).filter(|value| *value <= FIXED_POINT_MAX)?;
    Some(if is_negative { -value } else { value })
}

/// `%.16g`. A value that is not finite is written as null, since JSON has no text for it.
pub(crate) fn double_text(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let scientific = format!("{value:.15e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..16).contains(&exponent) {
        let decimals = usize::try_from(15 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(digits), exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Core's util_tests.cpp (`test_ParseFixedPoint`), and what follows from its source.
    #[test]
    fn fixed_points_are_read_without_rounding() {
        for (text, value) in [
            ("0", 0),
            ("1", 100_000_000),
            ("0.0", 0),
            ("-0.1", -10_000_000),
            ("1.1", 110_000_000),
            ("1.10000000000000000", 110_000_000),
            ("1.1e1", 1_100_000_000),
            ("1.1e-1", 11_000_000),
            ("1000", 100_000_000_000),
            ("-1000", -100_000_000_000),
            ("0.00000001", 1),
            ("0.0000000100000000", 1),
            ("-0.00000001", -1),
            ("1000000000.00000001", 100_000_000_000_000_001),
            ("9999999999.99999999", 999_999_999_999_999_999),
            ("-9999999999.99999999", -999_999_999_999_999_999),
            ("1e-8", 1),
            ("0.1e-7", 1),
            ("100e-10", 1),
            ("0e-5", 0),
            ("1E+2", 10_000_000_000),
            ("0e9", 0),
        ] {
            assert_eq!(parse_fixed_point(text, 8), Some(value), "{text}");
        }
        for text in [
            "",
            "-",
            "a-1000",
            "-a1000",
            "-1000a",
            "-01000",
            "00.1",
            ".1",
            "--0.1",
            "0.000000001",
            "-0.000000001",
            "0.00000001000000001",
            "-10000000000.00000000",
            "10000000000.00000000",
            "-10000000000.00000001",
            "-10000000000.00000009",
            "10000000000.00000009",
            "-99999999999.99999999",
            "99999909999.09999999",
            "92233720368.54775807",
            "92233720368.54775808",
            "-92233720368.54775808",
            "-92233720368.54775809",
            "1.1e",
            "1.1e-",
            "1.",
            "1e9999999999999999999",
            "1e-9999999999999999999",
            "0e10",
            "0e-9",
            " 1",
            "1 ",
            "+1",
            "1e1.5",
            "é",
            "1é",
        ] {
            assert_eq!(parse_fixed_point(text, 8), None, "{text}");
        }
    }

    /// From `printf "%.16g"` and Core's answers.
    #[test]
    fn doubles_as_a_stream_of_sixteen_digits_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (4.656_542_373_906_925e-10, "4.656542373906925e-10"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.3333333333333333"),
            (2.0 / 3.0, "0.6666666666666666"),
            (0.000_123_456_789, "0.000123456789"),
            (0.000_012_345_678_9, "1.23456789e-05"),
            (123_456_789_012_345_680.0, "1.234567890123457e+17"),
            (9_999_999_999_999_998.0, "9999999999999998"),
            (99_999_999_999_999_999.0, "1e+17"),
            (146_472_570_619_930.78, "146472570619930.8"),
            (-2.5, "-2.5"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(double_text(value), text);
        }
    }
}
