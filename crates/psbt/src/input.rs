//! The map of an input.
//!
//! Input: the stream at the start of the map. Output: the input with its fields, in Core's order of checks.

use crate::error::ReadError;
use crate::fields::{
    COMPRESSED, PROPRIETARY, ParticipantWords, not_null, public_key, read_origin, read_participants, read_proprietary,
    read_taproot_origin, read_unknown, require,
};
use crate::stream::{Key, KeySet, Stream};
use crate::types::Input;
use lydian_curve::uncompressed_key;
use lydian_descriptor::ControlBlock;
use lydian_hash::hash160;
use lydian_primitives::build::MutOutput;
use lydian_primitives::{Amount, OutPoint, Reader, Txid};
use lydian_script::is_strict_der;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Types of fields: Core's `PSBT_IN_...`.
pub(crate) mod kind {
    pub(crate) const NON_WITNESS_UTXO: usize = 0x00;
    pub(crate) const WITNESS_UTXO: usize = 0x01;
    pub(crate) const PARTIAL_SIG: usize = 0x02;
    pub(crate) const SIGHASH: usize = 0x03;
    pub(crate) const REDEEM_SCRIPT: usize = 0x04;
    pub(crate) const WITNESS_SCRIPT: usize = 0x05;
    pub(crate) const BIP32_DERIVATION: usize = 0x06;
    pub(crate) const SCRIPT_SIG: usize = 0x07;
    pub(crate) const SCRIPT_WITNESS: usize = 0x08;
    pub(crate) const RIPEMD160: usize = 0x0a;
    pub(crate) const SHA256: usize = 0x0b;
    pub(crate) const HASH160: usize = 0x0c;
    pub(crate) const HASH256: usize = 0x0d;
    pub(crate) const PREVIOUS_TXID: usize = 0x0e;
    pub(crate) const OUTPUT_INDEX: usize = 0x0f;
    pub(crate) const SEQUENCE: usize = 0x10;
    pub(crate) const REQUIRED_TIME_LOCK: usize = 0x11;
    pub(crate) const REQUIRED_HEIGHT_LOCK: usize = 0x12;
    pub(crate) const TAP_KEY_SIG: usize = 0x13;
    pub(crate) const TAP_SCRIPT_SIG: usize = 0x14;
    pub(crate) const TAP_LEAF_SCRIPT: usize = 0x15;
    pub(crate) const TAP_BIP32_DERIVATION: usize = 0x16;
    pub(crate) const TAP_INTERNAL_KEY: usize = 0x17;
    pub(crate) const TAP_MERKLE_ROOT: usize = 0x18;
    pub(crate) const MUSIG2_PARTICIPANTS: usize = 0x1a;
    pub(crate) const MUSIG2_PUB_NONCE: usize = 0x1b;
    pub(crate) const MUSIG2_PARTIAL_SIG: usize = 0x1c;
}

/// Lock times from this value on are seconds; smaller ones are heights.
const LOCK_TIME_THRESHOLD: u32 = 500_000_000;

/// Size of a public nonce of BIP-0327.
const PUB_NONCE_SIZE: usize = 66;

const PARTICIPANT_WORDS: ParticipantWords = ParticipantWords {
    aggregate: "Input musig2 aggregate pubkey is invalid",
    participant: "Input musig2 participant pubkey is invalid",
    size: "Input musig2 participants pubkeys value size is not a multiple of 33",
};

/// Which fields of version 2 were found.
#[derive(Debug, Default)]
struct Found {
    txid: bool,
    vout: bool,
}

/// Reads the map of an input. `known`: its outpoint and sequence from the transaction of version 0.
pub(crate) fn read_input(
    stream: &mut Stream<'_>,
    version: u32,
    known: Option<(OutPoint, u32)>,
) -> Result<Input, ReadError> {
    let nothing = OutPoint { txid: Txid([0; 32]), vout: 0 };
    let (prevout, sequence) = known.map_or((nothing, None), |(prevout, sequence)| (prevout, Some(sequence)));
    let (mut input, mut found) = (Input::new(prevout, sequence), Found::default());
    let mut keys = KeySet::new("input");
    while let Some(key) = stream.key(&mut keys, "Separator is missing at the end of an input map")? {
        match key.kind {
            kind::PREVIOUS_TXID..=kind::REQUIRED_HEIGHT_LOCK => {
                read_version_2(stream, &key, version, &mut input, &mut found)?;
            }
            kind::TAP_KEY_SIG..=kind::TAP_MERKLE_ROOT => read_taproot(stream, &key, &mut input)?,
            kind::MUSIG2_PARTICIPANTS..=kind::MUSIG2_PARTIAL_SIG => read_musig(stream, &key, &mut input)?,
            PROPRIETARY => read_proprietary(stream, &key, &mut input.proprietary)?,
            _ => read_field(stream, &key, &mut input)?,
        }
    }
    if version >= 2 {
        require(found.txid, "Previous TXID is required in PSBTv2")?;
        require(found.vout, "Previous output's index is required in PSBTv2")?;
    }
    Ok(input)
}

/// The fields of BIP-0174.
fn read_field<'a>(stream: &mut Stream<'a>, key: &Key<'a>, input: &mut Input) -> Result<(), ReadError> {
    match key.kind {
        kind::NON_WITNESS_UTXO => {
            key.expect_size(1, "Input Non-witness UTXO")?;
            input.non_witness_utxo = Some(Arc::new(stream.transaction()?));
        }
        kind::WITNESS_UTXO => {
            key.expect_size(1, "Input Witness UTXO")?;
            let output = stream.sized(|stream| {
                let value = Amount(i64::from_le_bytes(stream.array()?));
                Ok(MutOutput { value, script_pubkey: stream.value()?.to_vec() })
            })?;
            // This value stands for an output that is missing.
            input.witness_utxo = Some(output).filter(|output| output.value != Amount(-1));
        }
        kind::PARTIAL_SIG => {
            let words = "Size of key was not the expected size for the type partial signature pubkey";
            let public = public_key(stream, key, words)?;
            let signature = stream.value()?;
            let has_hash_type = matches!(signature.last(), Some(1..=3 | 0x81..=0x83));
            require(has_hash_type && is_strict_der(signature), "Signature is not a valid encoding")?;
            input.signatures.insert(hash160(&public), (public, signature.to_vec()));
        }
        kind::SIGHASH => {
            key.expect_size(1, "Input Sighash Type")?;
            input.sighash_type = Some(i32::from_le_bytes(stream.sized_array()?));
        }
        kind::REDEEM_SCRIPT => {
            key.expect_size(1, "Input redeemScript")?;
            input.redeem_script = stream.value()?.to_vec();
        }
        kind::WITNESS_SCRIPT => {
            key.expect_size(1, "Input witnessScript")?;
            input.witness_script = stream.value()?.to_vec();
        }
        kind::BIP32_DERIVATION => read_origin(stream, key, &mut input.origins)?,
        kind::SCRIPT_SIG => {
            key.expect_size(1, "Input Final scriptSig")?;
            input.final_script_sig = stream.value()?.to_vec();
        }
        kind::SCRIPT_WITNESS => {
            key.expect_size(1, "Input Final scriptWitness")?;
            input.final_witness = stream.sized(|stream| {
                let mut elements = Vec::new();
                for _ in 0..stream.compact_size()? {
                    elements.push(stream.value()?.to_vec());
                }
                Ok(elements)
            })?;
        }
        kind::RIPEMD160..=kind::HASH256 => read_preimage(stream, key, input)?,
        _ => read_unknown(stream, key, &mut input.unknown)?,
    }
    Ok(())
}

fn read_preimage(stream: &mut Stream<'_>, key: &Key<'_>, input: &mut Input) -> Result<(), ReadError> {
    let preimages = &mut input.preimages;
    let (field, size, map): (_, _, &mut BTreeMap<Vec<u8>, Vec<u8>>) = match key.kind {
        kind::RIPEMD160 => ("Input RIPEMD160 Preimage", 21, &mut preimages.ripemd160),
        kind::SHA256 => ("Input SHA256 Preimage", 33, &mut preimages.sha256),
        kind::HASH160 => ("Input Hash160 Preimage", 21, &mut preimages.hash160),
        _ => ("Input Hash256 Preimage", 33, &mut preimages.hash256),
    };
    key.expect_size(size, field)?;
    map.insert(key.bytes[1..].to_vec(), stream.value()?.to_vec());
    Ok(())
}

/// The fields of BIP-0370.
fn read_version_2(
    stream: &mut Stream<'_>,
    key: &Key<'_>,
    version: u32,
    input: &mut Input,
    found: &mut Found,
) -> Result<(), ReadError> {
    let (field, forbidden) = match key.kind {
        kind::PREVIOUS_TXID => ("Input Previous TXID", "Previous txid is not allowed in PSBTv0"),
        kind::OUTPUT_INDEX => ("Input Previous Output's Index", "Previous output's index is not allowed in PSBTv0"),
        kind::SEQUENCE => ("Input Sequence", "Sequence is not allowed in PSBTv0"),
        kind::REQUIRED_TIME_LOCK => {
            ("Input Required Time Based Locktime", "Required time based locktime is not allowed in PSBTv0")
        }
        _ => ("Input Required Height Based Locktime", "Required height based locktime is not allowed in PSBTv0"),
    };
    key.expect_size(1, field)?;
    require(version >= 2, forbidden)?;
    match key.kind {
        kind::PREVIOUS_TXID => {
            input.prevout.txid = Txid(stream.sized_array()?);
            found.txid = true;
        }
        kind::OUTPUT_INDEX => {
            input.prevout.vout = stream.u32()?;
            found.vout = true;
        }
        kind::SEQUENCE => input.sequence = Some(stream.u32()?),
        kind::REQUIRED_TIME_LOCK => {
            let time = stream.u32()?;
            let words = "Required time based locktime is invalid (less than 500000000)";
            require(time >= LOCK_TIME_THRESHOLD, words)?;
            input.time_lock = Some(time);
        }
        _ => {
            let height = stream.u32()?;
            let words = "Required height based locktime is invalid (greater than or equal to 500000000)";
            require(height < LOCK_TIME_THRESHOLD, words)?;
            require(height != 0, "Required height based locktime is invalid (0)")?;
            input.height_lock = Some(height);
        }
    }
    Ok(())
}

/// The fields of BIP-0371.
fn read_taproot(stream: &mut Stream<'_>, key: &Key<'_>, input: &mut Input) -> Result<(), ReadError> {
    match key.kind {
        kind::TAP_KEY_SIG => {
            key.expect_size(1, "Input Taproot Key Path Signature")?;
            let signature = stream.value()?;
            require(signature.len() >= 64, "Input Taproot key path signature is shorter than 64 bytes")?;
            require(signature.len() <= 65, "Input Taproot key path signature is longer than 65 bytes")?;
            input.taproot_key_signature = signature.to_vec();
        }
        kind::TAP_SCRIPT_SIG => {
            key.expect_size(65, "Input Taproot Script Path Signature")?;
            let mut reader = Reader::new(&key.bytes[1..]);
            let of = (reader.array()?, reader.array()?);
            let signature = stream.value()?;
            require(signature.len() >= 64, "Input Taproot script path signature is shorter than 64 bytes")?;
            require(signature.len() <= 65, "Input Taproot script path signature is longer than 65 bytes")?;
            input.taproot_script_signatures.insert(of, signature.to_vec());
        }
        kind::TAP_LEAF_SCRIPT => {
            require(key.bytes.len() >= 34, "Input Taproot leaf script key is not at least 34 bytes")?;
            let words = "Input Taproot leaf script key's control block size is not valid";
            require((key.bytes.len() - 2).is_multiple_of(32), words)?;
            let words = "Input Taproot leaf script must be at least 1 byte";
            let (version, script) = stream.value()?.split_last().ok_or(ReadError::Field(words))?;
            let control_blocks = input.leaf_scripts.entry((script.to_vec(), *version)).or_default();
            control_blocks.insert(ControlBlock(key.bytes[1..].to_vec()));
        }
        kind::TAP_BIP32_DERIVATION => {
            key.expect_size(33, "Input Taproot BIP32 Keypath")?;
            let words = "Input Taproot BIP32 keypath has an invalid length";
            read_taproot_origin(stream, key, words, &mut input.taproot_origins)?;
        }
        kind::TAP_INTERNAL_KEY => {
            key.expect_size(1, "Input Taproot Internal Key")?;
            input.internal_key = not_null(stream.sized_array()?);
        }
        _ => {
            key.expect_size(1, "Input Taproot Merkle Root")?;
            input.merkle_root = not_null(stream.sized_array()?);
        }
    }
    Ok(())
}

/// The fields of BIP-0373.
fn read_musig(stream: &mut Stream<'_>, key: &Key<'_>, input: &mut Input) -> Result<(), ReadError> {
    if key.kind == kind::MUSIG2_PARTICIPANTS {
        key.expect_size(COMPRESSED + 1, "Input MuSig2 Participants Pubkeys")?;
        return read_participants(stream, key, &PARTICIPANT_WORDS, &mut input.musig_participants);
    }
    let words = match key.kind {
        kind::MUSIG2_PUB_NONCE => "Input musig2 pubnonce key is not expected size of 67 or 99 bytes",
        _ => "Input musig2 partial sig key is not expected size of 67 or 99 bytes",
    };
    require(matches!(key.bytes.len(), 67 | 99), words)?;
    let mut reader = Reader::new(key.data);
    let (participant, aggregate): ([u8; COMPRESSED], [u8; COMPRESSED]) = (reader.array()?, reader.array()?);
    require(uncompressed_key(&aggregate).is_some(), "musig2 aggregate pubkey is invalid")?;
    require(uncompressed_key(&participant).is_some(), "musig2 participant pubkey is invalid")?;
    let leaf = if reader.remaining() > 0 { reader.array()? } else { [0; 32] };
    if key.kind == kind::MUSIG2_PUB_NONCE {
        let nonce = <[u8; PUB_NONCE_SIZE]>::try_from(stream.value()?);
        let nonce = nonce.map_err(|_| ReadError::Field("Input musig2 pubnonce value is not 66 bytes"))?;
        input.musig_nonces.entry((aggregate, leaf)).or_default().entry(participant).or_insert(nonce);
    } else {
        let partial = stream.sized_array()?;
        input.musig_partials.entry((aggregate, leaf)).or_default().entry(participant).or_insert(partial);
    }
    Ok(())
}
