//! Numbers as Core prints them.
//!
//! Input: satoshis, floating-point numbers. Output: text, inside JSON.

/// An amount with eight decimals: Core's `ValueFromAmount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub i64);

/// A number with sixteen digits, as a C++ stream of that precision prints it (`%.16g`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Double(pub f64);

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
