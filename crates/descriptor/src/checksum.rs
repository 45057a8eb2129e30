//! The checksum of descriptors: Core's `DescriptorChecksum` (script/descriptor.cpp), BIP-0380.
//!
//! Input: text. Output: eight characters.

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

fn poly_mod(c: u64, value: u64) -> u64 {
    const GENERATORS: [u64; 5] = [0xf5_dee5_1989, 0xa9_fdca_3312, 0x1b_ab10_e32d, 0x37_06b1_677a, 0x64_4d62_6ffd];
    let top = c >> 35;
    let mut next = (c & 0x7_ffff_ffff) << 5 ^ value;
    for (bit, generator) in GENERATORS.iter().enumerate() {
        next ^= (top >> bit & 1).wrapping_neg() & generator;
    }
    next
}

/// Eight characters that detect up to four errors. `None` if a character is not allowed in descriptors.
pub(crate) fn checksum(text: &[u8]) -> Option<[u8; 8]> {
    let (mut c, mut class, mut class_count) = (1, 0, 0);
    for byte in text {
        let place = PLACES.get(usize::from(*byte)).copied().filter(|place| *place != 255)?;
        c = poly_mod(c, u64::from(place & 31));
        class = class * 3 + u64::from(place >> 5);
        class_count += 1;
        if class_count == 3 {
            c = poly_mod(c, class);
            (class, class_count) = (0, 0);
        }
    }
    if class_count > 0 {
        c = poly_mod(c, class);
    }
    for _ in 0..8 {
        c = poly_mod(c, 0);
    }
    c ^= 1;
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
}
