//! The encoding of a coin in the store. Input: a coin, or bytes. Output: bytes, or a coin and the number of bytes it
//! took.
//!
//! `[height * 2 + coinbase: varint][value: varint][form of the script: varint][bytes that the form leaves open]`.
//! Unlike Core's encoding it is lossless for every value and every script, and reading needs no curve arithmetic. A
//! varint is LEB128 in its shortest form. The common scripts are encoded as their number and their hash or key. Cost: a
//! copy. Reading never panics and allocates only the script.

use lydian_consensus::{Coin, CoinRef};
use lydian_primitives::{Amount, Height};

/// Scripts with one hash or key between fixed bytes: prefix, number of open bytes, suffix. The index in this table is
/// the number of the form and must never change.
const FORMS: [(&[u8], usize, &[u8]); 5] = [
    (&[0x76, 0xa9, 0x14], 20, &[0x88, 0xac]), // P2PKH
    (&[0xa9, 0x14], 20, &[0x87]),             // P2SH
    (&[0x00, 0x14], 20, &[]),                 // P2WPKH
    (&[0x00, 0x20], 32, &[]),                 // P2WSH
    (&[0x51, 0x20], 32, &[]),                 // P2TR
];

/// Amounts up to this limit are written with their trailing zeros as an exponent. Larger ones are written unchanged
/// after the marker `VALUE_RAW`.
const VALUE_SHORT_MAX: u64 = 1 << 56;
const VALUE_RAW: u64 = u64::MAX;

/// Appends the encoding of a coin.
pub(crate) fn write_coin(coin: CoinRef<'_>, out: &mut Vec<u8>) {
    write_varint(u64::from(coin.height.0) << 1 | u64::from(coin.is_coinbase), out);
    let value = coin.value.0.cast_unsigned();
    if value <= VALUE_SHORT_MAX {
        write_varint(compress(value), out);
    } else {
        write_varint(VALUE_RAW, out);
        write_varint(value, out);
    }
    let script = coin.script_pubkey;
    for (number, (before, open, behind)) in (0u64..).zip(FORMS) {
        if script.len() == before.len() + open + behind.len() && script.starts_with(before) && script.ends_with(behind)
        {
            write_varint(number, out);
            out.extend_from_slice(&script[before.len()..before.len() + open]);
            return;
        }
    }
    write_varint(script.len() as u64 + FORMS.len() as u64, out);
    out.extend_from_slice(script);
}

/// A decoded coin with its script not yet assembled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed<'a> {
    code: u32,
    value: i64,
    before: &'static [u8],
    open: &'a [u8],
    behind: &'static [u8],
    /// Size of the encoded coin in bytes.
    pub(crate) size: usize,
}

/// The reason why bytes are not a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoinParseError {
    /// The coin has at least this many bytes.
    Incomplete {
        size_min: u64,
    },
    Invalid,
}

/// Decodes the coin at the start of the bytes.
pub(crate) fn parse_coin(bytes: &[u8]) -> Result<Parsed<'_>, CoinParseError> {
    let mut rest = bytes;
    let code = u32::try_from(read_varint(&mut rest)?).map_err(|_| CoinParseError::Invalid)?;
    let value = match read_varint(&mut rest)? {
        VALUE_RAW => read_varint(&mut rest)?,
        short => decompress(short).ok_or(CoinParseError::Invalid)?,
    };
    let form = read_varint(&mut rest)?;
    let (before, open, behind) = match usize::try_from(form).ok().and_then(|form| FORMS.get(form)) {
        Some((before, open, behind)) => (*before, *open as u64, *behind),
        None => (&[][..], form - FORMS.len() as u64, &[][..]),
    };
    let head = bytes.len() - rest.len();
    let incomplete = CoinParseError::Incomplete { size_min: open.saturating_add(head as u64) };
    let open = usize::try_from(open).map_err(|_| CoinParseError::Invalid)?;
    let open = rest.get(..open).ok_or(incomplete)?;
    Ok(Parsed { code, value: value.cast_signed(), before, open, behind, size: head + open.len() })
}

impl Parsed<'_> {
    pub(crate) fn to_coin(self) -> Coin {
        let script_pubkey = if self.before.is_empty() {
            self.open.into()
        } else {
            let mut script = Vec::with_capacity(self.before.len() + self.open.len() + self.behind.len());
            script.extend_from_slice(self.before);
            script.extend_from_slice(self.open);
            script.extend_from_slice(self.behind);
            script.into_boxed_slice()
        };
        Coin {
            value: Amount(self.value),
            script_pubkey,
            height: Height(self.code >> 1),
            is_coinbase: self.code & 1 == 1,
        }
    }
}

/// Up to nine trailing zeros become an exponent: `1 + 10 * (value without them) + exponent`; zero is 0.
fn compress(mut value: u64) -> u64 {
    if value == 0 {
        return 0;
    }
    let mut exponent = 0;
    while exponent < 9 && value.is_multiple_of(10) {
        value /= 10;
        exponent += 1;
    }
    1 + value * 10 + exponent
}

fn decompress(number: u64) -> Option<u64> {
    let Some(number) = number.checked_sub(1) else { return Some(0) };
    let exponent = u32::try_from(number % 10).ok()?;
    (number / 10).checked_mul(10u64.pow(exponent))
}

#[inline]
fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Reads eight bytes at once without a branch on the length, which a processor could not predict; otherwise byte by
/// byte.
#[inline]
fn read_varint(rest: &mut &[u8]) -> Result<u64, CoinParseError> {
    let Some(chunk) = rest.first_chunk::<8>() else { return read_varint_slow(rest) };
    let bytes = u64::from_le_bytes(*chunk);
    let ends = !bytes & 0x8080_8080_8080_8080;
    if ends == 0 {
        return read_varint_slow(rest);
    }
    let bits = ends.trailing_zeros() + 1;
    let digits = bytes & (u64::MAX >> (64 - bits)) & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = (digits & 0x007f_007f_007f_007f) | ((digits & 0x7f00_7f00_7f00_7f00) >> 1);
    let quads = (pairs & 0x0000_3fff_0000_3fff) | ((pairs & 0x3fff_0000_3fff_0000) >> 2);
    let number = (quads & 0x0fff_ffff) | ((quads & 0x0fff_ffff_0000_0000) >> 4);
    if bits > 8 && digits >> (bits - 8) == 0 {
        return Err(CoinParseError::Invalid);
    }
    *rest = &rest[bits as usize / 8..];
    Ok(number)
}

fn read_varint_slow(rest: &mut &[u8]) -> Result<u64, CoinParseError> {
    let mut number = 0u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        let digit = u64::from(byte & 0x7f);
        if index == 9 && digit > 1 || index > 0 && *byte == 0 {
            return Err(CoinParseError::Invalid);
        }
        number |= digit << (7 * index);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Ok(number);
        }
    }
    if rest.len() >= 10 { Err(CoinParseError::Invalid) } else { Err(CoinParseError::Incomplete { size_min: 0 }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(coin: &Coin) -> usize {
        let mut bytes = Vec::new();
        write_coin(coin.as_ref(), &mut bytes);
        let parsed = parse_coin(&bytes).unwrap();
        assert_eq!(parsed.size, bytes.len());
        assert_eq!(&parsed.to_coin(), coin);
        for end in 0..bytes.len() {
            assert!(matches!(parse_coin(&bytes[..end]), Err(CoinParseError::Incomplete { .. })));
        }
        bytes.len()
    }

    fn coin(value: i64, script: &[u8]) -> Coin {
        Coin { value: Amount(value), script_pubkey: script.into(), height: Height(800_000), is_coinbase: false }
    }

    #[test]
    fn each_form_comes_back_and_is_small() {
        for (before, open, behind) in FORMS {
            let script = [before, &vec![7; open], behind].concat();
            assert_eq!(round_trip(&coin(5_000_000_000, &script)), 3 + 1 + 1 + open);
            round_trip(&coin(5_000_000_000, &script[..script.len() - 1]));
        }
    }

    #[test]
    fn every_amount_comes_back() {
        for value in [0, 1, -1, i64::MAX, i64::MIN, 1 << 56, (1 << 56) + 1, Amount::MAX_MONEY.0, 10_000_000_000] {
            round_trip(&coin(value, &[]));
        }
    }

    proptest! {
        #[test]
        fn every_coin_comes_back(value: i64, height in 0..1u32 << 31, is_coinbase: bool, script: Vec<u8>) {
            round_trip(&Coin { value: Amount(value), script_pubkey: script.into(), height: Height(height), is_coinbase });
        }

        #[test]
        fn varints_are_read_alike(bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0x80), any::<u8>()], 0..14)) {
            let (mut fast, mut slow) = (&bytes[..], &bytes[..]);
            prop_assert_eq!(read_varint(&mut fast), read_varint_slow(&mut slow));
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn parsing_is_total(bytes: Vec<u8>) {
            if let Ok(parsed) = parse_coin(&bytes) {
                let mut again = Vec::new();
                write_coin(parsed.to_coin().as_ref(), &mut again);
                prop_assert!(parsed.size <= bytes.len());
                prop_assert_eq!(&parse_coin(&again).unwrap().to_coin(), &parsed.to_coin());
            }
        }
    }
}
