//! The checksum of descriptors (BIP-0380; Core's `DescriptorChecksum` in script/descriptor.cpp).
//!
//! Input: text. Output: eight characters; or the text before a correct checksum.

use std::fmt;

/// The characters of descriptors in the order of their values.
const CHARACTERS: &[u8; 95] =
    b"0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH`#\"\\ ";

/// The position of each character; 255 for invalid ones.
const PLACES: [u8; 128] = {
    let mut places = [255; 128];
    let mut place: u8 = 0;
    while (place as usize) < CHARACTERS.len() {
        places[CHARACTERS[place as usize] as usize] = place;
        place += 1;
    }
    places
};

const DIGITS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

const fn poly_mod(c: u64, value: u64) -> u64 {
    const GENERATORS: [u64; 5] = [0xf5_dee5_1989, 0xa9_fdca_3312, 0x1b_ab10_e32d, 0x37_06b1_677a, 0x64_4d62_6ffd];
    let top = c >> 35;
    let mut next = (c & 0x7_ffff_ffff) << 5 ^ value;
    let mut bit = 0;
    while bit < GENERATORS.len() {
        next ^= (top >> bit & 1).wrapping_neg() & GENERATORS[bit];
        bit += 1;
    }
    next
}

/// What the ten highest bits add to the lower ones in two steps of [`poly_mod`], which is linear.
static TWO_STEPS: [u64; 1024] = {
    let mut table = [0; 1024];
    let mut top = 0;
    while top < table.len() {
        table[top] = poly_mod(poly_mod((top as u64) << 30, 0), 0);
        top += 1;
    }
    table
};

/// Two steps of [`poly_mod`].
fn poly_mod_twice(c: u64, values: [u8; 2]) -> u64 {
    let [first, second] = values.map(u64::from);
    let top = usize::try_from(c >> 30).unwrap_or(0) % TWO_STEPS.len();
    (c & 0x3fff_ffff) << 10 ^ first << 5 ^ second ^ TWO_STEPS[top]
}

/// The steps for all values.
fn poly_mod_all(c: u64, values: &[u8]) -> u64 {
    let (pairs, rest) = values.as_chunks::<2>();
    let c = pairs.iter().fold(c, |c, pair| poly_mod_twice(c, *pair));
    rest.iter().fold(c, |c, value| poly_mod(c, u64::from(*value)))
}

/// Why the checksum of a descriptor is refused. Displayed with Core's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChecksumError {
    Missing,
    /// More than one `#`.
    Repeated,
    Size(usize),
    /// A character before the checksum that no descriptor has.
    Payload,
    Mismatch {
        given: String,
        computed: String,
    },
}

impl fmt::Display for ChecksumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChecksumError::Missing => f.write_str("Missing checksum"),
            ChecksumError::Repeated => f.write_str("Multiple '#' symbols"),
            ChecksumError::Size(size) => write!(f, "Expected 8 character checksum, not {size} characters"),
            ChecksumError::Payload => f.write_str("Invalid characters in payload"),
            ChecksumError::Mismatch { given, computed } => {
                write!(f, "Provided checksum '{given}' does not match computed checksum '{computed}'")
            }
        }
    }
}

impl std::error::Error for ChecksumError {}

/// Returns the text before the checksum, and the checksum that it should have. If a checksum is present, it must be
/// correct: Core's `CheckChecksum`.
pub(crate) fn check(text: &str, must_have: bool) -> Result<(&str, String), ChecksumError> {
    let parts: Vec<&str> = text.split('#').collect();
    let (payload, given) = match parts[..] {
        [_] if must_have => return Err(ChecksumError::Missing),
        [payload] => (payload, None),
        [payload, given] => (payload, Some(given)),
        _ => return Err(ChecksumError::Repeated),
    };
    if let Some(given) = given.filter(|given| given.len() != 8) {
        return Err(ChecksumError::Size(given.len()));
    }
    let computed = checksum(payload.as_bytes()).ok_or(ChecksumError::Payload)?;
    let computed: String = computed.map(char::from).iter().collect();
    match given {
        Some(given) if given != computed => Err(ChecksumError::Mismatch { given: given.to_owned(), computed }),
        _ => Ok((payload, computed)),
    }
}

/// Appends the checksum to a descriptor: Core's `AddChecksum`.
pub(crate) fn with_checksum(mut text: String) -> String {
    if let Some(sum) = checksum(text.as_bytes()) {
        text.push('#');
        text.extend(sum.map(char::from));
    }
    text
}

/// Characters whose values are computed before the steps; a multiple of three.
const CHARACTERS_AT_ONCE: usize = 48;

/// Eight characters that detect up to four errors. `None` if a character is not allowed in descriptors.
pub(crate) fn checksum(text: &[u8]) -> Option<[u8; 8]> {
    let mut c = 1;
    for part in text.chunks(CHARACTERS_AT_ONCE) {
        // The place of each character in its class, and after three of them their classes.
        let (mut values, mut count) = ([0; CHARACTERS_AT_ONCE / 3 * 4], 0);
        for three in part.chunks(3) {
            let mut class = 0;
            for byte in three {
                let place = PLACES.get(usize::from(*byte)).copied().filter(|place| *place != 255)?;
                values[count] = place & 31;
                count += 1;
                class = class * 3 + (place >> 5);
            }
            values[count] = class;
            count += 1;
        }
        c = poly_mod_all(c, &values[..count]);
    }
    c = poly_mod_all(c, &[0; 8]) ^ 1;
    let digit = |index: usize| DIGITS[usize::try_from(c >> (5 * (7 - index)) & 31).unwrap_or(0)];
    Some(std::array::from_fn(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Core's descriptor tests and BIP-0380.
    #[test]
    fn checksums_of_others() {
        for (text, sum) in [
            ("raw(deadbeef)", "89f8spxm"),
            ("addr(mkmZxiEcEd8ZqjQWVZuC6so5dFMKEFpN2j)", "02wpgw69"),
            ("pk(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)", "gn28ywm7"),
        ] {
            assert_eq!(
                checksum(text.as_bytes()).map(|sum| String::from_utf8(sum.to_vec()).unwrap()).as_deref(),
                Some(sum),
                "{text}"
            );
        }
        assert_eq!(checksum("ü".as_bytes()), None);
    }

    /// Two steps at once are two steps, for every length.
    #[test]
    fn two_steps_are_two() {
        let values: Vec<u8> = (0..200_u8).map(|value| value.wrapping_mul(37) % 32).collect();
        for length in 0..values.len() {
            let single = values[..length].iter().fold(1, |c, value| poly_mod(c, u64::from(*value)));
            assert_eq!(poly_mod_all(1, &values[..length]), single, "{length}");
        }
        // The checksum of texts of every length, with characters of all classes.
        let text: Vec<u8> = CHARACTERS.iter().cycle().step_by(7).take(300).copied().collect();
        for length in 0..text.len() {
            let mut c = 1;
            for three in text[..length].chunks(3) {
                let places: Vec<u64> = three.iter().map(|byte| u64::from(PLACES[usize::from(*byte)])).collect();
                c = places.iter().fold(c, |c, place| poly_mod(c, place & 31));
                c = poly_mod(c, places.iter().fold(0, |class, place| class * 3 + (place >> 5)));
            }
            c = (0..8).fold(c, |c, _| poly_mod(c, 0)) ^ 1;
            let expected: Vec<u8> =
                (0..8).map(|at| DIGITS[usize::try_from(c >> (5 * (7 - at)) & 31).unwrap()]).collect();
            assert_eq!(checksum(&text[..length]).unwrap()[..], expected[..], "{length}");
        }
    }

    /// The cases of BIP-0380 and of Core's `descriptor_tests`.
    #[test]
    fn errors_have_cores_words() {
        let key = "[deadbeef/1/2'/3/4']L4rK1yDtCWekvXuE6oXD9jCYfFNV2cWRpVuPLBcCU2z8TrisoyY1";
        let body = format!("sh(multi(2,{key},03a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd))");
        let right = with_checksum(body.clone());
        assert_eq!(check(&right, true).map(|(payload, _)| payload), Ok(&body[..]));
        assert_eq!(check(&body, false).map(|(payload, _)| payload), Ok(&body[..]));
        let computed = &right[right.len() - 8..];
        for (text, must_have, words) in [
            (body.clone(), true, "Missing checksum".to_owned()),
            (format!("{body}##{computed}"), false, "Multiple '#' symbols".to_owned()),
            (format!("{body}#"), false, "Expected 8 character checksum, not 0 characters".to_owned()),
            (format!("{right}q"), false, "Expected 8 character checksum, not 9 characters".to_owned()),
            (format!("{body}#{}", &computed[..7]), false, "Expected 8 character checksum, not 7 characters".to_owned()),
            (format!("ü{right}"), false, "Invalid characters in payload".to_owned()),
            (
                format!("{body}#xxxxxxxx"),
                false,
                format!("Provided checksum 'xxxxxxxx' does not match computed checksum '{computed}'"),
            ),
        ] {
            assert_eq!(check(&text, must_have).map_err(|error| error.to_string()), Err(words), "{text}");
        }
    }

    /// One wrong character anywhere is found.
    #[test]
    fn a_wrong_character_is_found() {
        let right =
            with_checksum("wpkh(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)".to_owned());
        for place in 0..right.len() {
            let mut bytes = right.clone().into_bytes();
            bytes[place] = if bytes[place] == b'q' { b'p' } else { b'q' };
            assert!(check(&String::from_utf8(bytes).unwrap(), true).is_err(), "{place}");
        }
    }
}
