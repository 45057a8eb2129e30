//! Core's compact encoding of a coin: height and coinbase flag (`TxInUndoFormatter`, undo.h), then the compressed
//! amount and script (compressor.cpp), with integers as VARINTs (serialize.h). `rev*.dat` files and the coin store use
//! it.
//!
//! Input: coins, or bytes. Output: bytes, or coins. Invariants: accepts any bytes without panicking; `read_coin`
//! returns the coin that `write_coin` was given if its value is valid by consensus and its script is spendable. Cost:
//! one copy, and a square root when reading an uncompressed public key. Never allocates more than the available bytes
//! justify.

use crate::view::{Coin, CoinRef};
use lydian_primitives::{Amount, Height, ParseError, ParseErrorKind, Reader};
use lydian_script::limits::MAX_SCRIPT_SIZE;
use lydian_script::opcodes::{OP_CHECKSIG, OP_DUP, OP_EQUAL, OP_EQUALVERIFY, OP_HASH160, OP_RETURN};
use lydian_script::uncompressed_key;

/// Number of script types with a code of their own: Core's `nSpecialScripts`. Script sizes are encoded above it.
const SPECIAL_SCRIPTS: u32 = 6;

/// Appends a coin in the encoding of Core's undo files.
pub fn write_coin(coin: CoinRef<'_>, out: &mut Vec<u8>) {
    let code = u64::from(coin.height.0) << 1 | u64::from(coin.is_coinbase);
    write_varint(code, out);
    if coin.height.0 > 0 {
        // Old versions of Core stored the transaction's version here.
        out.push(0);
    }
    write_varint(compress_amount(coin.value.0.cast_unsigned()), out);
    write_script(coin.script_pubkey, out);
}

/// Reads a coin in the encoding of [`write_coin`].
pub fn read_coin(reader: &mut Reader<'_>) -> Result<Coin, ParseError> {
    let code = read_varint_u32(reader)?;
    let height = Height(code >> 1);
    if height.0 > 0 {
        read_varint_u32(reader)?;
    }
    let value = Amount(decompress_amount(read_varint(reader)?).cast_signed());
    Ok(Coin { value, script_pubkey: read_script(reader)?, height, is_coinbase: code & 1 == 1 })
}

/// Appends a VARINT: base 128, most significant digit first, with one subtracted from every digit but the last.
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 10];
    let mut first = digits.len() - 1;
    digits[first] = low_seven_bits(value);
    while value > 0x7f {
        value = (value >> 7) - 1;
        first -= 1;
        digits[first] = low_seven_bits(value) | 0x80;
    }
    out.extend_from_slice(&digits[first..]);
}

fn low_seven_bits(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

/// Reads a 64-bit VARINT.
pub fn read_varint(reader: &mut Reader<'_>) -> Result<u64, ParseError> {
    read_varint_below(reader, u64::MAX)
}

/// Reads a 32-bit VARINT.
pub fn read_varint_u32(reader: &mut Reader<'_>) -> Result<u32, ParseError> {
    let offset = reader.offset();
    let value = read_varint_below(reader, u64::from(u32::MAX))?;
    u32::try_from(value).map_err(|_| ParseError { offset, kind: ParseErrorKind::VarIntTooLarge })
}

fn read_varint_below(reader: &mut Reader<'_>, max: u64) -> Result<u64, ParseError> {
    let too_large = ParseError { offset: reader.offset(), kind: ParseErrorKind::VarIntTooLarge };
    let mut value = 0u64;
    loop {
        let byte = reader.u8()?;
        if value > max >> 7 {
            return Err(too_large);
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        if value == max {
            return Err(too_large);
        }
        value += 1;
    }
}

/// Core's `CompressAmount`: trailing decimal zeros cost nothing. Arithmetic is modulo 2^64, as in Core.
pub fn compress_amount(mut amount: u64) -> u64 {
    if amount == 0 {
        return 0;
    }
    let mut exponent = 0;
    while amount.is_multiple_of(10) && exponent < 9 {
        amount /= 10;
        exponent += 1;
    }
    if exponent < 9 {
        let digit = amount % 10;
        let rest = (amount / 10).wrapping_mul(9).wrapping_add(digit - 1);
        rest.wrapping_mul(10).wrapping_add(1 + exponent)
    } else {
        (amount - 1).wrapping_mul(10).wrapping_add(10)
    }
}

/// Core's `DecompressAmount`.
pub fn decompress_amount(code: u64) -> u64 {
    let Some(code) = code.checked_sub(1) else { return 0 };
    let (exponent, rest) = (code % 10, code / 10);
    let mut amount = if exponent < 9 { rest / 9 * 10 + rest % 9 + 1 } else { rest + 1 };
    for _ in 0..exponent {
        amount = amount.wrapping_mul(10);
    }
    amount
}

/// Appends a compressed script (Core's `ScriptCompression`): 21 bytes for P2PKH and P2SH, 33 for P2PK, otherwise its
/// size and the script itself.
pub fn write_script(script: &[u8], out: &mut Vec<u8>) {
    match script {
        [OP_DUP, OP_HASH160, 20, hash @ .., OP_EQUALVERIFY, OP_CHECKSIG] if hash.len() == 20 => {
            out.push(0);
            out.extend_from_slice(hash);
        }
        [OP_HASH160, 20, hash @ .., OP_EQUAL] if hash.len() == 20 => {
            out.push(1);
            out.extend_from_slice(hash);
        }
        [33, key @ .., OP_CHECKSIG] if key.len() == 33 && matches!(key[0], 2 | 3) => out.extend_from_slice(key),
        // A key that is not a point on the curve could not be restored.
        [65, key @ .., OP_CHECKSIG] if key.len() == 65 && key[0] == 4 && uncompressed_key(key).is_some() => {
            out.push(4 | key[64] & 1);
            out.extend_from_slice(&key[1..33]);
        }
        _ => {
            write_varint(script.len() as u64 + u64::from(SPECIAL_SCRIPTS), out);
            out.extend_from_slice(script);
        }
    }
}

/// Reads a script in the encoding of [`write_script`]. A script too long to be spent becomes `OP_RETURN`, as in Core.
pub fn read_script(reader: &mut Reader<'_>) -> Result<Box<[u8]>, ParseError> {
    let offset = reader.offset();
    let code = read_varint_u32(reader)?;
    if let Some(size) = code.checked_sub(SPECIAL_SCRIPTS) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let script = reader.take(size)?;
        return Ok(if size > MAX_SCRIPT_SIZE { [OP_RETURN].into() } else { script.into() });
    }
    let script = match code {
        0 => [&[OP_DUP, OP_HASH160, 20][..], reader.take(20)?, &[OP_EQUALVERIFY, OP_CHECKSIG]].concat(),
        1 => [&[OP_HASH160, 20][..], reader.take(20)?, &[OP_EQUAL]].concat(),
        2 => [&[33, 2][..], reader.take(32)?, &[OP_CHECKSIG]].concat(),
        3 => [&[33, 3][..], reader.take(32)?, &[OP_CHECKSIG]].concat(),
        _ => {
            let mut key = [0; 33];
            // The last bit of the code is the parity of y.
            key[0] = if code == 4 { 2 } else { 3 };
            key[1..].copy_from_slice(reader.take(32)?);
            let Some(key) = uncompressed_key(&key) else {
                return Err(ParseError { offset, kind: ParseErrorKind::NotAPoint });
            };
            [&[65][..], &key, &[OP_CHECKSIG]].concat()
        }
    };
    Ok(script.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::{hex, to_hex};
    use proptest::prelude::*;

    const G_X: &str = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    const G_Y: &str = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";

    fn script_to_hex(script: &str) -> String {
        let mut out = Vec::new();
        let script = hex(script).unwrap();
        write_script(&script, &mut out);
        let mut reader = Reader::new(&out);
        assert_eq!(read_script(&mut reader).unwrap()[..], script);
        reader.finish().unwrap();
        to_hex(&out)
    }

    /// The table in Core's serialize.h, and the limits of both widths.
    #[test]
    fn varints_as_in_cores_table() {
        for (value, text) in [
            (0, "00"),
            (1, "01"),
            (127, "7f"),
            (128, "8000"),
            (255, "807f"),
            (256, "8100"),
            (16_383, "fe7f"),
            (16_384, "ff00"),
            (16_511, "ff7f"),
            (65_535, "82fe7f"),
            (1 << 32, "8efefeff00"),
            (u64::from(u32::MAX), "8efefefe7f"),
            (u64::MAX, "80fefefefefefefefe7f"),
        ] {
            let mut out = Vec::new();
            write_varint(value, &mut out);
            assert_eq!(to_hex(&out), text, "{value}");
            assert_eq!(read_varint(&mut Reader::new(&out)), Ok(value));
            let small = read_varint_u32(&mut Reader::new(&out));
            let expected = u32::try_from(value).map_err(|_| ParseErrorKind::VarIntTooLarge);
            assert_eq!(small.map_err(|error| error.kind), expected, "{value}");
        }
        for text in ["80fefefefefefefeff00", "ffffffffffffffffffff00"] {
            let bytes = hex(text).unwrap();
            assert_eq!(read_varint(&mut Reader::new(&bytes)).unwrap_err().kind, ParseErrorKind::VarIntTooLarge);
        }
    }

    /// Core's compress_tests.cpp, `compress_amounts`.
    #[test]
    fn amounts_as_in_cores_unit_tests() {
        const COIN: u64 = 100_000_000;
        const CENT: u64 = 1_000_000;
        for (amount, code) in
            [(0, 0), (1, 1), (CENT, 7), (COIN, 9), (50 * COIN, 0x32), (21_000_000 * COIN, 0x0140_6f40)]
        {
            assert_eq!(compress_amount(amount), code);
            assert_eq!(decompress_amount(code), amount);
        }
        let returns = |amount| assert_eq!(decompress_amount(compress_amount(amount)), amount);
        (1..=100_000).for_each(returns);
        (1..=10_000).map(|i| i * CENT).for_each(returns);
        (1..=10_000).map(|i| i * COIN).for_each(returns);
        (1..=420_000).map(|i| i * 50 * COIN).for_each(returns);
        (0..100_000).for_each(|code| assert_eq!(compress_amount(decompress_amount(code)), code));
    }

    /// Core's compress_tests.cpp: each special script type, and a key that is not a point, which is stored
    /// uncompressed.
    #[test]
    fn scripts_as_in_cores_unit_tests() {
        let hash = "11".repeat(20);
        assert_eq!(script_to_hex(&format!("76a914{hash}88ac")), format!("00{hash}"));
        assert_eq!(script_to_hex(&format!("a914{hash}87")), format!("01{hash}"));
        assert_eq!(script_to_hex(&format!("2102{G_X}ac")), format!("02{G_X}"));
        assert_eq!(script_to_hex(&format!("2103{G_X}ac")), format!("03{G_X}"));
        assert_eq!(script_to_hex(&format!("4104{G_X}{G_Y}ac")), format!("04{G_X}"));
        // The point of a compressed key is not checked: any x is accepted.
        assert_eq!(script_to_hex(&format!("2102{}ac", "00".repeat(32))), format!("02{}", "00".repeat(32)));
        let off_curve = format!("4104{}ac", "00".repeat(64));
        assert_eq!(script_to_hex(&off_curve), format!("49{off_curve}"));
        // Hybrid keys are not compressed either.
        let hybrid = format!("4106{G_X}{G_Y}ac");
        assert_eq!(script_to_hex(&hybrid), format!("49{hybrid}"));
        assert_eq!(script_to_hex(""), "06");
        assert_eq!(script_to_hex("51"), "0751");
        for code in ["04", "05"] {
            let bytes = hex(&format!("{code}{}", "00".repeat(32))).unwrap();
            assert_eq!(
                read_script(&mut Reader::new(&bytes)),
                Err(ParseError { offset: 0, kind: ParseErrorKind::NotAPoint })
            );
        }
    }

    /// A script that resembles a special type is stored unchanged.
    #[test]
    fn near_misses_are_kept() {
        let hash = "11".repeat(20);
        for script in [
            format!("76a914{hash}88ad"),
            format!("76a914{hash}1188ac"),
            format!("76a913{hash}88ac"),
            format!("a914{hash}88"),
            format!("a914{hash}1187"),
            format!("2104{G_X}ac"),
            format!("2102{G_X}ad"),
            format!("4104{G_X}{G_Y}ad"),
        ] {
            assert_eq!(script_to_hex(&script).len(), script.len() + 2, "{script}");
        }
    }

    #[test]
    fn scripts_too_long_to_spend_become_op_return() {
        for (size, expected) in [(MAX_SCRIPT_SIZE, MAX_SCRIPT_SIZE), (MAX_SCRIPT_SIZE + 1, 1)] {
            let mut out = Vec::new();
            write_script(&vec![0x51; size], &mut out);
            let mut reader = Reader::new(&out);
            assert_eq!(read_script(&mut reader).unwrap().len(), expected);
            assert_eq!(reader.remaining(), 0);
        }
    }

    /// The encoding of the genesis coinbase, byte by byte; height 0 has no dummy byte, height 1 has one.
    #[test]
    fn a_coin_by_value() {
        let script = hex(&format!("4104{G_X}{G_Y}ac")).unwrap();
        for (height, expected) in [(0, format!("013204{G_X}")), (1, format!("03003204{G_X}"))] {
            let coin = CoinRef {
                value: Amount(50 * Amount::COIN.0),
                script_pubkey: &script,
                height: Height(height),
                is_coinbase: true,
            };
            let mut out = Vec::new();
            write_coin(coin, &mut out);
            assert_eq!(to_hex(&out), expected);
            assert_eq!(read_coin(&mut Reader::new(&out)), Ok(coin.to_coin()));
            assert_eq!(coin.to_coin().as_ref(), coin);
        }
    }

    proptest! {
        #[test]
        fn coins_return(
            value in 0..=Amount::MAX_MONEY.0,
            script in prop::collection::vec(any::<u8>(), 0..80),
            height in 0u32..1 << 31,
            is_coinbase: bool,
        ) {
            let coin = Coin { value: Amount(value), script_pubkey: script.into(), height: Height(height), is_coinbase };
            let mut out = Vec::new();
            write_coin(coin.as_ref(), &mut out);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(read_coin(&mut reader), Ok(coin));
            prop_assert_eq!(reader.remaining(), 0);
        }

        #[test]
        fn any_bytes_are_a_coin_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut reader = Reader::new(&bytes);
            if let Ok(coin) = read_coin(&mut reader) {
                prop_assert!(coin.script_pubkey.len() <= bytes.len() + 35);
            }
        }
    }
}
