//! Reading a PSBT: Core's `DecodeBase64PSBT` and `PartiallySignedTransaction::Unserialize`.
//!
//! Input: base 64, or bytes. Output: a [`Psbt`], or the first error in Core's order.

use crate::error::ReadError;
use crate::fields::{PROPRIETARY, read_proprietary, read_unknown, require};
use crate::input::read_input;
use crate::output::read_output;
use crate::stream::{Key, KeySet, Stream};
use crate::types::{Input, Psbt, Xpub};
use lydian_curve::uncompressed_key;
use lydian_primitives::{Reader, Transaction};
use lydian_stdx::decode_base64;

/// Types of fields: Core's `PSBT_GLOBAL_...`.
pub(crate) mod kind {
    pub(crate) const UNSIGNED_TX: usize = 0x00;
    pub(crate) const XPUB: usize = 0x01;
    pub(crate) const TX_VERSION: usize = 0x02;
    pub(crate) const FALLBACK_LOCK_TIME: usize = 0x03;
    pub(crate) const INPUT_COUNT: usize = 0x04;
    pub(crate) const OUTPUT_COUNT: usize = 0x05;
    pub(crate) const TX_MODIFIABLE: usize = 0x06;
    pub(crate) const VERSION: usize = 0xfb;
}

/// The first bytes of every PSBT.
pub(crate) const MAGIC: [u8; 5] = *b"psbt\xff";

/// Core's `PSBT_HIGHEST_VERSION`.
const VERSION_MAX: u32 = 2;

/// What the global map has besides the fields of a [`Psbt`].
#[derive(Debug, Default)]
struct Global {
    tx: Option<Transaction>,
    tx_version: Option<u32>,
    lock_time: Option<u32>,
    input_count: Option<usize>,
    output_count: Option<usize>,
}

impl Psbt {
    /// Core's `DecodeBase64PSBT`.
    pub fn from_base64(text: &str) -> Result<Psbt, ReadError> {
        Psbt::from_bytes(&decode_base64(text.as_bytes()).ok_or(ReadError::Base64)?)
    }

    /// Core's `DecodeRawPSBT`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Psbt, ReadError> {
        let mut stream = Stream::new(bytes);
        require(stream.array::<5>()? == MAGIC, "Invalid PSBT magic bytes")?;
        let (mut psbt, mut global) = (Psbt::default(), Global::default());
        let mut keys = KeySet::new("global");
        while let Some(key) = stream.key(&mut keys, "Separator is missing at the end of the global map")? {
            read_field(&mut stream, &key, &mut psbt, &mut global)?;
        }
        check_version(&psbt, &global)?;
        psbt.read_inputs(&mut stream, &global)?;
        psbt.read_outputs(&mut stream, &global)?;
        if stream.is_empty() { Ok(psbt) } else { Err(ReadError::ExtraData) }
    }

    fn read_inputs(&mut self, stream: &mut Stream<'_>, global: &Global) -> Result<(), ReadError> {
        let tx = global.tx.as_ref().map(Transaction::view);
        let count = tx.map_or(global.input_count.unwrap_or(0), |tx| tx.input_count());
        for index in 0..count {
            if stream.is_empty() {
                return Err(ReadError::Field("Inputs provided does not match the number of inputs in transaction."));
            }
            let known = tx.map(|tx| (tx.input(index).prevout, tx.input(index).sequence));
            let input = read_input(stream, self.version, known)?;
            check_utxo(&input)?;
            self.inputs.push(input);
        }
        Ok(())
    }

    fn read_outputs(&mut self, stream: &mut Stream<'_>, global: &Global) -> Result<(), ReadError> {
        let tx = global.tx.as_ref().map(Transaction::view);
        let count = tx.map_or(global.output_count.unwrap_or(0), |tx| tx.output_count());
        for index in 0..count {
            if stream.is_empty() {
                return Err(ReadError::Field("Outputs provided does not match the number of outputs in transaction."));
            }
            let known = tx.map(|tx| (tx.output(index).value, tx.output(index).script_pubkey));
            self.outputs.push(read_output(stream, self.version, known)?);
        }
        Ok(())
    }
}

/// The transaction that an input spends has the input's txid and enough outputs.
fn check_utxo(input: &Input) -> Result<(), ReadError> {
    let Some(tx) = &input.non_witness_utxo else { return Ok(()) };
    require(tx.view().txid() == input.prevout.txid, "Non-witness UTXO does not match outpoint hash")?;
    let index = usize::try_from(input.prevout.vout).unwrap_or(usize::MAX);
    require(index < tx.view().output_count(), "Input specifies output index that does not exist")
}

fn read_field(stream: &mut Stream<'_>, key: &Key<'_>, psbt: &mut Psbt, global: &mut Global) -> Result<(), ReadError> {
    match key.kind {
        kind::UNSIGNED_TX => {
            key.expect_size(1, "Global Unsigned TX")?;
            let tx = stream.stripped_transaction()?;
            let is_unsigned = tx.view().inputs().all(|input| input.script_sig.is_empty());
            require(is_unsigned, "Unsigned tx does not have empty scriptSigs and scriptWitnesses.")?;
            psbt.tx_version = tx.view().version();
            psbt.fallback_lock_time = Some(tx.view().lock_time());
            global.tx = Some(tx);
        }
        kind::TX_VERSION => {
            key.expect_size(1, "Global Transaction Version")?;
            psbt.tx_version = stream.u32()?;
            global.tx_version = Some(psbt.tx_version);
        }
        kind::FALLBACK_LOCK_TIME => {
            key.expect_size(1, "Global Fallback Locktime")?;
            psbt.fallback_lock_time = Some(stream.u32()?);
            global.lock_time = psbt.fallback_lock_time;
        }
        kind::INPUT_COUNT => {
            key.expect_size(1, "Global Input Count")?;
            global.input_count = Some(stream.sized(Stream::compact_size)?);
        }
        kind::OUTPUT_COUNT => {
            key.expect_size(1, "Global Output Count")?;
            global.output_count = Some(stream.sized(Stream::compact_size)?);
        }
        kind::TX_MODIFIABLE => {
            key.expect_size(1, "Global TX Modifiable Flags")?;
            let [bits] = stream.sized_array()?;
            psbt.modifiable = Some(bits);
        }
        kind::XPUB => {
            key.expect_size(79, "Global XPUB")?;
            let xpub = Reader::new(key.data).array()?;
            require(is_xpub(&xpub), "Invalid pubkey")?;
            let size = stream.compact_size()?;
            let origin = stream.key_origin(size)?;
            psbt.xpubs.entry(origin).or_default().insert(Xpub(xpub));
        }
        kind::VERSION => {
            key.expect_size(1, "Global PSBT Version")?;
            psbt.version = stream.u32()?;
            require(psbt.version <= VERSION_MAX, "Unsupported version number")?;
        }
        PROPRIETARY => read_proprietary(stream, key, &mut psbt.proprietary)?,
        _ => read_unknown(stream, key, &mut psbt.unknown)?,
    }
    Ok(())
}

/// Core's `CExtPubKey::Decode`: a key on the curve, and a root without a parent.
fn is_xpub(xpub: &[u8; 78]) -> bool {
    let is_root = xpub[4] == 0;
    let has_parent = xpub[5..13].iter().any(|byte| *byte != 0);
    !(is_root && has_parent) && uncompressed_key(&xpub[45..]).is_some()
}

fn check_version(psbt: &Psbt, global: &Global) -> Result<(), ReadError> {
    match psbt.version {
        0 => {
            require(global.tx.is_some(), "No unsigned transaction was provided")?;
            require(global.tx_version.is_none(), "PSBT_GLOBAL_TX_VERSION is not allowed in PSBTv0")?;
            require(global.lock_time.is_none(), "PSBT_GLOBAL_FALLBACK_LOCKTIME is not allowed in PSBTv0")?;
            require(global.input_count.is_none(), "PSBT_GLOBAL_INPUT_COUNT is not allowed in PSBTv0")?;
            require(global.output_count.is_none(), "PSBT_GLOBAL_OUTPUT_COUNT is not allowed in PSBTv0")?;
            require(psbt.modifiable.is_none(), "PSBT_GLOBAL_TX_MODIFIABLE is not allowed in PSBTv0")
        }
        1 => Err(ReadError::Field("There is no PSBT version 1")),
        _ => {
            require(global.tx_version.is_some(), "PSBT_GLOBAL_TX_VERSION is required in PSBTv2")?;
            require(global.input_count.is_some(), "PSBT_GLOBAL_INPUT_COUNT is required in PSBTv2")?;
            require(global.output_count.is_some(), "PSBT_GLOBAL_OUTPUT_COUNT is required in PSBTv2")?;
            require(global.tx.is_none(), "PSBT_GLOBAL_UNSIGNED_TX is not allowed in PSBTv2")
        }
    }
}
