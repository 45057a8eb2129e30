//! Answers without parts: numbers, texts, amounts, times.
//!
//! Input: values of other crates. Output: JSON as Core prints it.

use super::{Answer, Form};
use crate::json::{Amount, Double, Json, double_text, write_text, write_value};

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Answer for $type {
            const FORM: Form = Form::Number;

            fn write(&self, out: &mut Vec<u8>) {
                write_number(*self, out);
            }
        }
    )+};
}

numbers!(u8, u16, u32, u64, usize, i32, i64);

/// Appends a number of one of these types, which have at most 64 bits.
fn write_number(number: impl TryInto<i128>, out: &mut Vec<u8>) {
    let number: i128 = number.try_into().ok().unwrap_or_default();
    if number < 0 {
        out.push(b'-');
    }
    write_digits(u64::try_from(number.unsigned_abs()).unwrap_or(u64::MAX), 1, out);
}

/// Appends a number, filled up with zeros to `least` digits, at most 20. A block has a hundred thousand of them, for
/// which the formatting of the standard library takes four times as long.
fn write_digits(mut number: u64, least: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 {
        first -= 1;
        digits[first] += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
    out.extend_from_slice(&digits[first.min(digits.len().saturating_sub(least))..]);
}

impl Answer for Double {
    const FORM: Form = Form::Number;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(double_text(self.0).as_bytes());
    }
}

impl Answer for Amount {
    const FORM: Form = Form::Amount;

    fn write(&self, out: &mut Vec<u8>) {
        const COIN: u64 = 100_000_000;
        if self.0 < 0 {
            out.push(b'-');
        }
        write_digits(self.0.unsigned_abs() / COIN, 1, out);
        out.push(b'.');
        write_digits(self.0.unsigned_abs() % COIN, 8, out);
    }
}

impl Answer for bool {
    const FORM: Form = Form::Bool;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

impl Answer for () {
    const FORM: Form = Form::Null;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }
}

impl Answer for str {
    const FORM: Form = Form::Text;

    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }
}

impl Answer for String {
    const FORM: Form = Form::Text;

    fn write(&self, out: &mut Vec<u8>) {
        write_text(self, out);
    }
}

impl Answer for Json {
    const FORM: Form = Form::Any;

    fn write(&self, out: &mut Vec<u8>) {
        write_value(self, out);
    }
}

/// A time in seconds since 1970, or a duration.
#[derive(Debug)]
pub(crate) struct Time<T>(pub(crate) T);

impl<T: Answer> Answer for Time<T> {
    const FORM: Form = Form::Time;

    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        fn check<T: Answer + std::fmt::Display>(values: &[T]) {
            for value in values {
                let mut out = Vec::new();
                value.write(&mut out);
                assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
            }
        }
        check(&[0, 1, 9, 10, 99, u8::MAX]);
        check(&[0, 1_000, u16::MAX]);
        check(&[0, 100_000, u32::MAX]);
        check(&[0, 7, u64::MAX - 1, u64::MAX]);
        check(&[0, 7, usize::MAX]);
        check(&[0, -1, 1, i32::MIN, i32::MAX]);
        check(&[0, -1, 1, -10, i64::MIN, i64::MAX]);
        for satoshis in [0, 1, -1, 99_999_999, 100_000_000, -100_000_001, 2_100_000_000_000_000, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            Amount(satoshis).write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), lydian_primitives::Amount(satoshis).to_string());
        }
    }

    #[test]
    fn amounts_and_doubles_as_core_prints_them() {
        let mut out = Vec::new();
        [Amount(-150_000_000), Amount(1)].write(&mut out);
        [Double(1e16), Double(0.5)].write(&mut out);
        assert_eq!(out, b"[-1.50000000,0.00000001][1e+16,0.5]");
    }
}
