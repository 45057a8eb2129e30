//! Bech32 and Bech32m (BIP-0173, BIP-0350): Core's bech32.cpp.
//!
//! Input: a prefix and 5-bit values, or a string. Output: a string, or the values; for an invalid string, Core's reason
//! and up to two positions of possible typing errors.

use std::collections::HashMap;
use std::fmt;

const DIGITS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const CHECKSUM_SIZE: usize = 6;
/// Core's `CharLimit::BECH32`.
const TEXT_SIZE_MAX: usize = 90;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Bech32,
    Bech32m,
}

impl Encoding {
    fn constant(self) -> u32 {
        match self {
            Encoding::Bech32 => 1,
            Encoding::Bech32m => 0x2bc8_30a3,
        }
    }
}

/// A decoded string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) encoding: Encoding,
    pub(crate) prefix: String,
    /// Five bits each.
    pub(crate) values: Vec<u8>,
}

/// An invalid string: the reason, and the positions of the errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bech32Error {
    pub fault: Bech32Fault,
    pub positions: Vec<usize>,
}

/// Why a string is not Bech32. Displayed with Core's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bech32Fault {
    Size,
    /// A character that is not printable ASCII, or of the other case.
    Character,
    NoSeparator,
    Separator,
    Digit,
    /// Too many errors to decide between Bech32 and Bech32m.
    Checksum,
    Bech32Checksum,
    Bech32mChecksum,
}

impl fmt::Display for Bech32Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bech32Fault::Size => "Bech32 string too long",
            Bech32Fault::Character => "Invalid character or mixed case",
            Bech32Fault::NoSeparator => "Missing separator",
            Bech32Fault::Separator => "Invalid separator position",
            Bech32Fault::Digit => "Invalid Base 32 character",
            Bech32Fault::Checksum => "Invalid checksum",
            Bech32Fault::Bech32Checksum => "Invalid Bech32 checksum",
            Bech32Fault::Bech32mChecksum => "Invalid Bech32m checksum",
        })
    }
}

impl fmt::Display for Bech32Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl std::error::Error for Bech32Error {}

const fn poly_mod(c: u32, value: u8) -> u32 {
    const GENERATORS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let top = c >> 25;
    let mut next = (c & 0x01ff_ffff) << 5 ^ value as u32;
    let mut bit = 0;
    while bit < GENERATORS.len() {
        next ^= (top >> bit & 1).wrapping_neg() & GENERATORS[bit];
        bit += 1;
    }
    next
}

/// What the ten highest bits add to the lower ones in two steps of [`poly_mod`], which is linear.
static TWO_STEPS: [u32; 1024] = {
    let mut table = [0; 1024];
    let mut top: u32 = 0;
    while top < 1024 {
        table[top as usize] = poly_mod(poly_mod(top << 20, 0), 0);
        top += 1;
    }
    table
};

/// The steps for all values, two at a time.
fn poly_mod_all(c: u32, values: &[u8]) -> u32 {
    let (pairs, rest) = values.as_chunks::<2>();
    let c = pairs.iter().fold(c, |c, [first, second]| {
        let sum = (c & 0x000f_ffff) << 10 ^ u32::from(*first) << 5 ^ u32::from(*second);
        sum ^ TWO_STEPS[(c >> 20) as usize % TWO_STEPS.len()]
    });
    rest.iter().fold(c, |c, value| poly_mod(c, *value))
}

/// The checksum residue of a prefix and values.
fn residue(prefix: &str, values: &[u8]) -> u32 {
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    poly_mod_all(high.chain([0]).chain(low).fold(1, poly_mod), values)
}

/// Encodes a witness program.
pub(crate) fn encode_program(prefix: &str, version: u8, program: &[u8]) -> String {
    let encoding = if version == 0 { Encoding::Bech32 } else { Encoding::Bech32m };
    let mut values = vec![version];
    let (mut held, mut bits) = (0u32, 0);
    for byte in program {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            values.push(five(held >> bits));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        values.push(five(held << (5 - bits)));
    }
    let size = values.len();
    values.resize(size + CHECKSUM_SIZE, 0);
    let checksum = residue(prefix, &values) ^ encoding.constant();
    for (index, value) in values[size..].iter_mut().enumerate() {
        *value = five(checksum >> (5 * (CHECKSUM_SIZE - 1 - index)));
    }
    let digits = values.into_iter().map(|value| char::from(DIGITS[usize::from(value)]));
    format!("{prefix}1{}", digits.collect::<String>())
}

/// Converts 5-bit groups to bytes. The rest must be fewer than five bits, all zero.
pub(crate) fn bytes_of(values: &[u8]) -> Option<Vec<u8>> {
    let (mut held, mut bits, mut out) = (0u32, 0, Vec::with_capacity(values.len()));
    for value in values {
        held = held << 5 | u32::from(*value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(held >> bits & 0xff).ok()?);
            held &= (1 << bits) - 1;
        }
    }
    (bits < 5 && held == 0).then_some(out)
}

fn five(value: u32) -> u8 {
    u8::try_from(value & 31).unwrap_or(0)
}

/// Decodes a string.
pub(crate) fn decode(text: &str) -> Result<Decoded, Bech32Error> {
    let fail = |fault, positions| Err(Bech32Error { fault, positions });
    if text.len() > TEXT_SIZE_MAX {
        return fail(Bech32Fault::Size, (TEXT_SIZE_MAX..text.len()).collect());
    }
    let odd = odd_characters(text);
    if !odd.is_empty() {
        return fail(Bech32Fault::Character, odd);
    }
    let Some(separator) = text.rfind('1') else { return fail(Bech32Fault::NoSeparator, Vec::new()) };
    if separator == 0 || separator + CHECKSUM_SIZE >= text.len() {
        return fail(Bech32Fault::Separator, vec![separator]);
    }
    let prefix = text[..separator].to_ascii_lowercase();
    let mut values = Vec::with_capacity(text.len());
    for (index, byte) in text.bytes().enumerate().skip(separator + 1) {
        match DIGITS.iter().position(|digit| *digit == byte.to_ascii_lowercase()) {
            Some(value) => values.push(u8::try_from(value).unwrap_or(0)),
            None => return fail(Bech32Fault::Digit, vec![index]),
        }
    }
    let found = residue(&prefix, &values);
    for encoding in [Encoding::Bech32, Encoding::Bech32m] {
        if found == encoding.constant() {
            values.truncate(values.len() - CHECKSUM_SIZE);
            return Ok(Decoded { encoding, prefix, values });
        }
    }
    let (fault, places) = locate(found, values.len());
    let first = separator + 1;
    fail(fault, places.into_iter().map(|place| first + place).collect())
}

fn odd_characters(text: &str) -> Vec<usize> {
    let (mut has_lower, mut has_upper) = (false, false);
    let mut odd = Vec::new();
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' if has_upper => odd.push(index),
            b'a'..=b'z' => has_lower = true,
            b'A'..=b'Z' if has_lower => odd.push(index),
            b'A'..=b'Z' => has_upper = true,
            33..=126 => {}
            _ => odd.push(index),
        }
    }
    odd
}

/// The one or two positions of wrong values that explain a residue, for the encoding that needs fewer: Core's
/// `LocateErrors`.
///
/// Core solves equations. Here every wrong value at every position is looked up, which gives the same result, since the
/// distance of the code allows only one solution.
fn locate(found: u32, count: usize) -> (Bech32Fault, Vec<usize>) {
    // The effect of a wrong value at a position on the residue.
    let mut effects = HashMap::new();
    for place in 0..count {
        for value in 1..32u8 {
            let effect = (place + 1..count).fold(u32::from(value), |c, _| poly_mod(c, 0));
            effects.insert(effect, place);
        }
    }
    let explain = |encoding: Encoding| {
        let wrong = found ^ encoding.constant();
        if let Some(place) = effects.get(&wrong) {
            return vec![*place];
        }
        let pair = effects.iter().find_map(|(effect, place)| {
            let other = effects.get(&(wrong ^ effect))?;
            (other > place).then(|| vec![*place, *other])
        });
        pair.unwrap_or_default()
    };
    let (plain, modified) = (explain(Encoding::Bech32), explain(Encoding::Bech32m));
    if plain.is_empty() || (!modified.is_empty() && modified.len() < plain.len()) {
        let fault = if modified.is_empty() { Bech32Fault::Checksum } else { Bech32Fault::Bech32mChecksum };
        return (fault, modified);
    }
    (Bech32Fault::Bech32Checksum, plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_are_two() {
        let values: Vec<u8> = (0..120_u8).map(|value| value.wrapping_mul(37) % 32).collect();
        for length in 0..values.len() {
            let single = values[..length].iter().copied().fold(1, poly_mod);
            assert_eq!(poly_mod_all(1, &values[..length]), single, "{length}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_a_slip_is_found() {
        for (version, program) in [(0, vec![7; 20]), (1, vec![9; 32]), (16, vec![1, 2])] {
            let text = encode_program("bcrt", version, &program);
            let read = decode(&text).unwrap();
            assert_eq!((&read.prefix[..], read.values[0]), ("bcrt", version));
            assert_eq!(decode(&text.to_ascii_uppercase()).unwrap(), read);
            for place in 5..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[place] = if bytes[place] == b'q' { b'p' } else { b'q' };
                let fault = decode(&String::from_utf8(bytes).unwrap()).unwrap_err();
                assert_eq!(fault.positions, [place], "{fault}");
            }
        }
    }

    #[test]
    fn faults_have_cores_words() {
        for (text, words, positions) in [
            (" bc1qqqqqqqq", "Invalid character or mixed case", vec![0]),
            ("bc1QQqqqqqqqq", "Invalid character or mixed case", vec![3, 4]),
            ("bcqqqqqqqqq", "Missing separator", vec![]),
            ("1qqqqqqqq", "Invalid separator position", vec![0]),
            ("bc1qqqqq", "Invalid separator position", vec![2]),
            ("bc1qqqbqqqq", "Invalid Base 32 character", vec![6]),
        ] {
            let error = decode(text).unwrap_err();
            assert_eq!((&error.to_string()[..], error.positions), (words, positions), "{text}");
        }
        assert_eq!(decode(&format!("bc1{}", "q".repeat(88))).unwrap_err().positions, [90]);
    }
}
