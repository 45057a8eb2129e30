//! The spent outputs of one block (`docs/formats/prevouts.md`). Input: bytes. Output: value, origin and script of each
//! output, in the order of the inputs. Accepts any bytes; borrows the scripts; allocates no more than the given bytes
//! justify.

use lydian_primitives::{Amount, Height, ParseError, Reader, write_compact_size};

/// The value for an unknown height and coinbase flag.
const ORIGIN_UNKNOWN: u32 = u32::MAX;

/// Minimum size of an entry: value, origin, and the length of an empty script.
const PREVOUT_SIZE_MIN: usize = 13;

/// An output that an input of the block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prevout<'a> {
    pub value: Amount,
    /// Height of the block that created it, and whether its coinbase did.
    pub origin: Option<(Height, bool)>,
    pub script_pubkey: &'a [u8],
}

/// Reads all entries. Trailing bytes are an error.
pub fn parse_prevouts(bytes: &[u8]) -> Result<Vec<Prevout<'_>>, ParseError> {
    let mut reader = Reader::new(bytes);
    let mut prevouts = Vec::new();
    while reader.remaining() > 0 {
        if prevouts.len() == prevouts.capacity() {
            prevouts.reserve((reader.remaining() / PREVOUT_SIZE_MIN).clamp(1, 1024));
        }
        let value = Amount(reader.i64()?);
        let origin = match reader.u32()? {
            ORIGIN_UNKNOWN => None,
            code => Some((Height(code >> 1), code & 1 == 1)),
        };
        prevouts.push(Prevout { value, origin, script_pubkey: reader.var_bytes()? });
    }
    Ok(prevouts)
}

/// Writes entries in the format of [`parse_prevouts`]. Heights from 2^31 on cannot be encoded and become unknown.
pub fn write_prevouts(prevouts: &[Prevout<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for prevout in prevouts {
        let code = match prevout.origin {
            Some((Height(height), is_coinbase)) if height < 1 << 31 => height << 1 | u32::from(is_coinbase),
            _ => ORIGIN_UNKNOWN,
        };
        out.extend_from_slice(&prevout.value.0.to_le_bytes());
        out.extend_from_slice(&code.to_le_bytes());
        write_compact_size(&mut out, prevout.script_pubkey.len());
        out.extend_from_slice(prevout.script_pubkey);
    }
    out
}
