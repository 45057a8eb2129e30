//! `/rest/getutxos`: which outputs are unspent, and the coins (BIP-0064).
//!
//! Input: outpoints in the path, or in the body as bytes or hex. Output: height and hash of the tip, a bit for each
//! outpoint, and the coins. With `checkmempool`, and always for a body, an output of the mempool is unspent at
//! [`MEMPOOL_HEIGHT`], and one that the mempool spends is spent.

use super::blocks::write_output;
use super::reply::{Made, Refused};
use super::request::{Format, Request, integer, no_format};
use crate::json::Amount;
use crate::limits::REST_OUTPOINTS_MAX;
use crate::methods::block::snapshot_and_coins;
use crate::output::OwnedScript;
use crate::result::{Answer, result};
use lydian_consensus::{Chain, Coin};
use lydian_engine::Tip;
use lydian_mempool::pool::Snapshot;
use lydian_primitives::{BlockHash, Height, OutPoint, ParseError, Reader, Txid, write_compact_size};

/// Core's `MEMPOOL_HEIGHT`: the height of outputs that are in no block.
const MEMPOOL_HEIGHT: Height = Height(0x7fff_ffff);

/// The part of the path that asks for the mempool too.
const CHECK_MEMPOOL: &str = "checkmempool";

/// Bytes of a coin as JSON without its script, and per byte of the script.
const COIN_BYTES: usize = 300;
const TEXT_PER_BYTE: usize = 8;

const EMPTY: &str = "Error: empty request";
const UNPARSED: &str = "Parse error";

/// What is asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    has_mempool: bool,
    outpoints: Vec<OutPoint>,
}

/// Core's `rest_getutxos`.
pub(super) fn coins(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let Asked { has_mempool, outpoints } = asked(request)?;
    if outpoints.len() > REST_OUTPOINTS_MAX {
        let words = format!("Error: max outpoints exceeded (max: {REST_OUTPOINTS_MAX}, tried: {})", outpoints.len());
        return Err(Refused::bad(words));
    }
    let mempool = has_mempool.then(|| request.context.mempool()).transpose();
    let mempool = mempool.map_err(|error| Refused::missing(error.message))?;
    let at = snapshot_and_coins(&engine, mempool, &outpoints);
    let (snapshot, tip, coins) = at.map_err(|error| Refused::Failed(error.to_string()))?;
    let coins = match snapshot {
        Some(snapshot) => with_mempool(&snapshot, &outpoints, coins),
        None => coins,
    };
    let bytes = || serialized(tip, &coins);
    request.reply(bytes, |out| {
        let text = |coin: &Coin| COIN_BYTES + TEXT_PER_BYTE * coin.script_pubkey.len();
        request.expect_bytes(coins.iter().flatten().map(text).sum())?;
        CoinsAnswer::new(tip, &coins, engine.params().chain).write(out);
        Ok(())
    })
}

/// The outpoints of the path or the body.
fn asked(request: &Request<'_>) -> Result<Asked, Refused> {
    // A single character is the slash before the format. The first one is skipped, whatever it is.
    let listed = if request.path.len() > 1 { Some(request.path.get(1..).unwrap_or_default()) } else { None };
    if request.body.is_empty() && listed.is_none() {
        return Err(Refused::bad(EMPTY));
    }
    let asked = listed.map(in_path).transpose()?;
    let body = match request.format {
        Format::Hex => from_hex(request.body),
        _ => request.body.to_vec(),
    };
    match request.format {
        Format::Hex | Format::Binary if body.is_empty() => Ok(asked.unwrap_or_default()),
        Format::Hex | Format::Binary if asked.is_some() => {
            Err(Refused::bad("Combination of URI scheme inputs and raw post data is not allowed"))
        }
        Format::Hex | Format::Binary => in_body(&body).map_err(|_| Refused::bad(UNPARSED)),
        Format::Json => asked.ok_or_else(|| Refused::bad(EMPTY)),
        Format::Undefined => Err(no_format()),
    }
}

/// `checkmempool/<txid>-<n>/<txid>-<n>...`, the first part being optional.
fn in_path(listed: &str) -> Result<Asked, Refused> {
    let mut parts: Vec<&str> = listed.split('/').collect();
    let has_mempool = parts.first() == Some(&CHECK_MEMPOOL);
    if has_mempool {
        parts.remove(0);
    }
    let outpoint = |part: &&str| {
        let (txid, vout) = part.split_once('-')?;
        Some(OutPoint { txid: txid.parse::<Txid>().ok()?, vout: integer(vout.as_bytes())? })
    };
    let outpoints: Option<Vec<OutPoint>> = parts.iter().map(outpoint).collect();
    let outpoints = outpoints.ok_or_else(|| Refused::bad(UNPARSED))?;
    match outpoints.is_empty() {
        true => Err(Refused::bad(EMPTY)),
        false => Ok(Asked { has_mempool, outpoints }),
    }
}

/// Core writes the body into its stream as a string, so that the size of the body stands before it, and then reads a
/// byte for the mempool and a vector of outpoints. The byte is therefore that of the size, and never 0; the vector
/// starts with the body, or within the size from 253 bytes on. What follows is ignored.
fn in_body(body: &[u8]) -> Result<Asked, ParseError> {
    let mut stream = Vec::with_capacity(body.len() + 9);
    write_compact_size(&mut stream, body.len());
    stream.extend_from_slice(body);
    let mut reader = Reader::new(&stream);
    let has_mempool = reader.u8()? != 0;
    let count = reader.compact_size()?;
    let mut outpoints = Vec::new();
    for _ in 0..count {
        outpoints.push(OutPoint { txid: Txid(reader.array()?), vout: reader.u32()? });
    }
    Ok(Asked { has_mempool, outpoints })
}

/// Core's `ParseHex`: white space between bytes is skipped, and anything else that is no digit leaves nothing.
fn from_hex(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let is_space = |byte: u8| byte == b' ' || (b'\t'..=b'\r').contains(&byte);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        if is_space(*first) {
            rest = behind;
            continue;
        }
        let Some((second, behind)) = behind.split_first() else { return Vec::new() };
        let Some((high, low)) = digit(*first).zip(digit(*second)) else { return Vec::new() };
        bytes.push(high << 4 | low);
        rest = behind;
    }
    bytes
}

/// The coins of the chain as they are with the mempool.
fn with_mempool(snapshot: &Snapshot, outpoints: &[OutPoint], coins: Vec<Option<Coin>>) -> Vec<Option<Coin>> {
    let seen = outpoints.iter().zip(coins).map(|(outpoint, coin)| {
        if snapshot.spender(outpoint).is_some() {
            return None;
        }
        let Some(member) = snapshot.get(&outpoint.txid) else { return coin };
        let index = usize::try_from(outpoint.vout).unwrap_or(usize::MAX);
        let output = member.entry().tx().view().outputs().nth(index)?;
        let script_pubkey = output.script_pubkey.into();
        Some(Coin { value: output.value, script_pubkey, height: MEMPOOL_HEIGHT, is_coinbase: false })
    });
    seen.collect()
}

/// The answer of BIP-0064.
fn serialized(tip: Tip, coins: &[Option<Coin>]) -> Vec<u8> {
    let mut out = tip.height.0.to_le_bytes().to_vec();
    out.extend_from_slice(&tip.hash.0);
    write_compact_size(&mut out, coins.len().div_ceil(8));
    for eight in coins.chunks(8) {
        let bits = eight.iter().enumerate().map(|(index, coin)| u8::from(coin.is_some()) << index);
        out.push(bits.sum());
    }
    write_compact_size(&mut out, coins.iter().flatten().count());
    for coin in coins.iter().flatten() {
        // A version of the transaction, which is always 0.
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&coin.height.0.to_le_bytes());
        write_output(coin, &mut out);
    }
    out
}

result! {
    struct CoinsAnswer {
        #[name("chainHeight")]
        height: u32,
        #[name("chaintipHash")]
        hash: BlockHash,
        bitmap: String,
        utxos: Vec<CoinAnswer>,
    }
}

result! {
    struct CoinAnswer {
        height: u32,
        value: Amount,
        #[name("scriptPubKey")]
        script: OwnedScript,
    }
}

impl CoinsAnswer {
    fn new(tip: Tip, coins: &[Option<Coin>], chain: Chain) -> CoinsAnswer {
        let found = coins.iter().flatten().map(|coin| CoinAnswer {
            height: coin.height.0,
            value: Amount(coin.value.0),
            script: OwnedScript::new(&coin.script_pubkey[..], chain),
        });
        CoinsAnswer {
            height: tip.height.0,
            hash: tip.hash,
            bitmap: coins.iter().map(|coin| if coin.is_some() { '1' } else { '0' }).collect(),
            utxos: found.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_as_core_reads_it() {
        for (text, expected) in [
            (&b"00ff"[..], &[0, 0xff][..]),
            (b" 0A\n0b\t\r\n", &[10, 11]),
            (b"0 0", b""),
            (b"000", b""),
            (b"00zz", b""),
            (b"", b""),
        ] {
            assert_eq!(from_hex(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn bodies_are_read_as_core_reads_them() {
        let outpoint = [&[7; 32][..], &[2, 0, 0, 0]].concat();
        let one = [&[1], &outpoint[..]].concat();
        let expected = Asked { has_mempool: true, outpoints: vec![OutPoint { txid: Txid([7; 32]), vout: 2 }] };
        assert_eq!(in_body(&one).unwrap(), expected);
        assert_eq!(in_body(&[&one[..], b"more"].concat()).unwrap(), expected);
        assert_eq!(in_body(&[0]).unwrap(), Asked { has_mempool: true, outpoints: Vec::new() });
        // Cut off, and a number of outpoints without them.
        for bad in [&one[..one.len() - 1], &[1], &[0xfd, 1, 0], &[0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]] {
            assert!(in_body(bad).is_err(), "{bad:?}");
        }
        // From 253 bytes on, the vector starts with two bytes of the size: here 0 and 4, so that it is empty.
        assert_eq!(in_body(&[9; 0x400]).unwrap().outpoints, []);
    }
}
