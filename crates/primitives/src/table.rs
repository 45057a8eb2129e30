//! The positions of all parts of a list of transactions: flat tables of offsets into one buffer, filled by the only
//! parser.
//!
//! Input: a [`Reader`] over the buffer. Output: tables whose offsets are all inside that buffer (the views in
//! `transaction` rely on it and are the only users). No allocation per transaction: three vectors per block, whose
//! growth is bounded by the bytes that are present. The grammar is that of Core's `UnserializeTransaction`
//! (primitives/transaction.h, BIP-0144).

use crate::ids::{Txid, Wtxid};
use crate::reader::{ParseError, ParseErrorKind, Reader};

/// Minimum size of an input: outpoint 36, script length 1, sequence 4. Bounds the capacity reserved for an input count.
const INPUT_SIZE_MIN: usize = 41;

/// Minimum size of an output: value 8, script length 1.
const OUTPUT_SIZE_MIN: usize = 9;

/// Minimum size of a transaction: version 4, marker or counts 2, lock time 4.
pub(crate) const TRANSACTION_SIZE_MIN: usize = 10;

/// Offsets of one transaction. `body` extends from the input count to the end of the outputs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxEntry {
    pub(crate) start: u32,
    pub(crate) body_start: u32,
    pub(crate) body_end: u32,
    pub(crate) end: u32,
    pub(crate) first_input: u32,
    pub(crate) input_count: u32,
    pub(crate) first_output: u32,
    pub(crate) output_count: u32,
    pub(crate) has_witness: bool,
    pub(crate) txid: Txid,
    pub(crate) wtxid: Wtxid,
}

/// Offsets of one input: the outpoint is the 36 bytes at `start`, the sequence the 4 bytes after the script.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputEntry {
    pub(crate) start: u32,
    pub(crate) script_start: u32,
    pub(crate) script_end: u32,
    pub(crate) witness_start: u32,
    pub(crate) witness_end: u32,
    pub(crate) witness_count: u32,
}

/// Offsets of one output: the value is the 8 bytes at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputEntry {
    pub(crate) start: u32,
    pub(crate) script_start: u32,
    pub(crate) script_end: u32,
}

/// The tables. Entry `i` of `txs` owns a range of `inputs` and a range of `outputs`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) txs: Vec<TxEntry>,
    pub(crate) inputs: Vec<InputEntry>,
    pub(crate) outputs: Vec<OutputEntry>,
}

/// Narrows an offset. The buffer has at most `BLOCK_BUFFER_SIZE_MAX` bytes; every entry point of the parser checks
/// that.
pub(crate) fn narrow(offset: usize) -> u32 {
    debug_assert!(offset <= crate::limits::BLOCK_BUFFER_SIZE_MAX);
    #[allow(clippy::cast_possible_truncation, reason = "bounded by BLOCK_BUFFER_SIZE_MAX, far below u32::MAX")]
    let narrow = offset as u32;
    narrow
}

const _: () = assert!(crate::limits::BLOCK_BUFFER_SIZE_MAX <= u32::MAX as usize);

/// Makes room for the entries of a transaction: for those of the first one exactly, since a mempool keeps many tables
/// of a single transaction.
fn make_room<T>(entries: &mut Vec<T>, count: usize) {
    if entries.is_empty() {
        entries.reserve_exact(count);
    } else {
        entries.reserve(count);
    }
}

impl Tables {
    /// Tables for a single transaction: `Vec` would begin with room for four.
    pub(crate) fn for_one() -> Tables {
        Tables { txs: Vec::with_capacity(1), ..Tables::default() }
    }

    /// Reads one transaction at the cursor and appends it. Its ids are zero until `fill_ids`.
    pub(crate) fn read_transaction(&mut self, reader: &mut Reader<'_>) -> Result<(), ParseError> {
        self.read(reader, true)
    }

    /// Like [`Tables::read_transaction`], but zero inputs are zero inputs and not the marker of BIP-0144: Core's
    /// `TX_NO_WITNESS`.
    pub(crate) fn read_without_witness(&mut self, reader: &mut Reader<'_>) -> Result<(), ParseError> {
        self.read(reader, false)
    }

    fn read(&mut self, reader: &mut Reader<'_>, may_have_witness: bool) -> Result<(), ParseError> {
        let start = narrow(reader.offset());
        let first_input = narrow(self.inputs.len());
        let first_output = narrow(self.outputs.len());
        reader.take(4)?;
        let mut body_start = narrow(reader.offset());
        let mut flags = 0;
        self.read_inputs(reader)?;
        if may_have_witness && self.inputs.len() == first_input as usize {
            // No inputs: the next byte is the flag of BIP-0144. Zero means a transaction with neither inputs nor
            // outputs.
            flags = reader.u8()?;
            if flags != 0 {
                body_start = narrow(reader.offset());
                self.read_inputs(reader)?;
                self.read_outputs(reader)?;
            }
        } else {
            self.read_outputs(reader)?;
        }
        let body_end = narrow(reader.offset());
        let mut has_witness = false;
        if flags & 1 != 0 {
            flags ^= 1;
            has_witness = self.read_witnesses(reader, first_input as usize)?;
            if !has_witness {
                return reader.error(ParseErrorKind::SuperfluousWitness);
            }
        }
        if flags != 0 {
            return reader.error(ParseErrorKind::UnknownTransactionOptionalData { flags });
        }
        reader.take(4)?;
        self.txs.push(TxEntry {
            start,
            body_start,
            body_end,
            end: narrow(reader.offset()),
            first_input,
            input_count: narrow(self.inputs.len()) - first_input,
            first_output,
            output_count: narrow(self.outputs.len()) - first_output,
            has_witness,
            txid: Txid::ZERO,
            wtxid: Wtxid::ZERO,
        });
        Ok(())
    }

    fn read_inputs(&mut self, reader: &mut Reader<'_>) -> Result<(), ParseError> {
        let count = reader.compact_size()?;
        make_room(&mut self.inputs, count.min(reader.remaining() / INPUT_SIZE_MIN));
        for _ in 0..count {
            let start = narrow(reader.offset());
            reader.take(36)?;
            let script_size = reader.compact_size()?;
            let script_start = narrow(reader.offset());
            reader.take(script_size)?;
            let script_end = narrow(reader.offset());
            reader.take(4)?;
            self.inputs.push(InputEntry {
                start,
                script_start,
                script_end,
                witness_start: script_end,
                witness_end: script_end,
                witness_count: 0,
            });
        }
        Ok(())
    }

    fn read_outputs(&mut self, reader: &mut Reader<'_>) -> Result<(), ParseError> {
        let count = reader.compact_size()?;
        make_room(&mut self.outputs, count.min(reader.remaining() / OUTPUT_SIZE_MIN));
        for _ in 0..count {
            let start = narrow(reader.offset());
            reader.take(8)?;
            let script_size = reader.compact_size()?;
            let script_start = narrow(reader.offset());
            reader.take(script_size)?;
            self.outputs.push(OutputEntry { start, script_start, script_end: narrow(reader.offset()) });
        }
        Ok(())
    }

    /// Reads one witness for each input from `first_input` on. Returns whether any has an item (Core's `HasWitness`).
    fn read_witnesses(&mut self, reader: &mut Reader<'_>, first_input: usize) -> Result<bool, ParseError> {
        let mut any = false;
        for input in &mut self.inputs[first_input..] {
            let count = reader.compact_size()?;
            input.witness_start = narrow(reader.offset());
            for _ in 0..count {
                reader.var_bytes()?;
            }
            input.witness_end = narrow(reader.offset());
            input.witness_count = narrow(count);
            any |= count != 0;
        }
        Ok(any)
    }
}
