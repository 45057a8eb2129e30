//! Answers without parts: numbers, texts, amounts, times.
//!
//! Input: values of other crates. Output: JSON as Core prints it.

use super::{Answer, Form};
use crate::json::{Amount, Double, Json, double_text, write_text, write_value};
use std::io::Write;

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Answer for $type {
            const FORM: Form = Form::Number;

            fn write(&self, out: &mut Vec<u8>) {
                // Writing to memory does not fail.
                let _ = write!(out, "{self}");
            }
        }
    )+};
}

numbers!(u8, u16, u32, u64, usize, i32, i64);

impl Answer for Double {
    const FORM: Form = Form::Number;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(double_text(self.0).as_bytes());
    }
}

impl Answer for Amount {
    const FORM: Form = Form::Amount;

    fn write(&self, out: &mut Vec<u8>) {
        let _ = write!(out, "{}", lydian_primitives::Amount(self.0));
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
    fn amounts_and_doubles_as_core_prints_them() {
        let mut out = Vec::new();
        [Amount(-150_000_000), Amount(1)].write(&mut out);
        [Double(1e16), Double(0.5)].write(&mut out);
        assert_eq!(out, b"[-1.50000000,0.00000001][1e+16,0.5]");
    }
}
