//! The map of an output.
//!
//! Input: the stream at the start of the map. Output: the output with its fields, in Core's order of checks.

use crate::error::ReadError;
use crate::fields::{
    COMPRESSED, PROPRIETARY, ParticipantWords, not_null, read_origin, read_participants, read_proprietary,
    read_taproot_origin, read_unknown, require,
};
use crate::stream::{Key, KeySet, Stream};
use crate::types::Output;
use lydian_descriptor::{TaprootLeaf, TaprootTree};
use lydian_primitives::{Amount, Reader};

/// Types of fields: Core's `PSBT_OUT_...`.
pub(crate) mod kind {
    pub(crate) const REDEEM_SCRIPT: usize = 0x00;
    pub(crate) const WITNESS_SCRIPT: usize = 0x01;
    pub(crate) const BIP32_DERIVATION: usize = 0x02;
    pub(crate) const AMOUNT: usize = 0x03;
    pub(crate) const SCRIPT: usize = 0x04;
    pub(crate) const TAP_INTERNAL_KEY: usize = 0x05;
    pub(crate) const TAP_TREE: usize = 0x06;
    pub(crate) const TAP_BIP32_DERIVATION: usize = 0x07;
    pub(crate) const MUSIG2_PARTICIPANTS: usize = 0x08;
}

const PARTICIPANT_WORDS: ParticipantWords = ParticipantWords {
    aggregate: "Output musig2 aggregate pubkey is invalid",
    participant: "Output musig2 participant pubkey is invalid",
    size: "Output musig2 participants pubkeys value size is not a multiple of 33",
};

/// Which fields of version 2 were found.
#[derive(Debug, Default)]
struct Found {
    amount: bool,
    script: bool,
}

/// Reads the map of an output. `known`: its amount and script from the transaction of version 0.
pub(crate) fn read_output(
    stream: &mut Stream<'_>,
    version: u32,
    known: Option<(Amount, &[u8])>,
) -> Result<Output, ReadError> {
    let (amount, script) = known.unwrap_or_default();
    let mut output = Output { amount, script: script.to_vec(), ..Output::default() };
    let mut found = Found::default();
    let mut keys = KeySet::new("output");
    while let Some(key) = stream.key(&mut keys, "Separator is missing at the end of an output map")? {
        match key.kind {
            kind::REDEEM_SCRIPT => {
                key.expect_size(1, "Output redeemScript")?;
                output.redeem_script = stream.value()?.to_vec();
            }
            kind::WITNESS_SCRIPT => {
                key.expect_size(1, "Output witnessScript")?;
                output.witness_script = stream.value()?.to_vec();
            }
            kind::BIP32_DERIVATION => read_origin(stream, &key, &mut output.origins)?,
            kind::AMOUNT => {
                key.expect_size(1, "Output Amount")?;
                require(version >= 2, "Output amount is not allowed in PSBTv0")?;
                output.amount = Amount(stream.i64()?);
                found.amount = true;
            }
            kind::SCRIPT => {
                key.expect_size(1, "Output Script")?;
                require(version >= 2, "Output script is not allowed in PSBTv0")?;
                output.script = stream.value()?.to_vec();
                found.script = true;
            }
            PROPRIETARY => read_proprietary(stream, &key, &mut output.proprietary)?,
            _ => read_field(stream, &key, &mut output)?,
        }
    }
    if version >= 2 {
        require(found.amount, "Output amount is required in PSBTv2")?;
        require(found.script, "Output script is required in PSBTv2")?;
    }
    Ok(output)
}

/// The fields of BIP-0371 and BIP-0373, and unknown ones.
fn read_field(stream: &mut Stream<'_>, key: &Key<'_>, output: &mut Output) -> Result<(), ReadError> {
    match key.kind {
        kind::TAP_INTERNAL_KEY => {
            key.expect_size(1, "Output Taproot Internal Key")?;
            output.internal_key = not_null(stream.sized_array()?);
            Ok(())
        }
        kind::TAP_TREE => {
            key.expect_size(1, "Output Taproot Tree Key")?;
            output.taproot_tree = read_tree(stream.value()?)?;
            Ok(())
        }
        kind::TAP_BIP32_DERIVATION => {
            key.expect_size(33, "Output Taproot BIP32 Keypath")?;
            let words = "Output Taproot BIP32 keypath has an invalid length";
            read_taproot_origin(stream, key, words, &mut output.taproot_origins)
        }
        kind::MUSIG2_PARTICIPANTS => {
            key.expect_size(COMPRESSED + 1, "Output MuSig2 Participants Pubkeys")?;
            read_participants(stream, key, &PARTICIPANT_WORDS, &mut output.musig_participants)
        }
        _ => read_unknown(stream, key, &mut output.unknown),
    }
}

fn read_tree(value: &[u8]) -> Result<Vec<TaprootLeaf>, ReadError> {
    require(!value.is_empty(), "Output Taproot tree must not be empty")?;
    let (mut reader, mut leaves) = (Reader::new(value), Vec::new());
    while reader.remaining() > 0 {
        let (depth, version) = (reader.u8()?, reader.u8()?);
        let script = reader.var_bytes()?.to_vec();
        let words = "Output Taproot tree has as leaf greater than Taproot maximum depth";
        require(usize::from(depth) <= TaprootTree::DEPTH_MAX, words)?;
        require(version & 1 == 0, "Output Taproot tree has a leaf with an invalid leaf version")?;
        leaves.push((depth, version, script));
    }
    let is_complete = TaprootTree::is_complete(leaves.iter().map(|(depth, ..)| usize::from(*depth)));
    require(is_complete, "Output Taproot tree is malformed")?;
    Ok(leaves)
}
