//! The signature hash of scripts before segwit: Core's `SignatureHash` with `SigVersion::BASE`.
//!
//! Input: index, script code, hash type (all its bits are kept). Output: 32 bytes. The transaction is hashed with the
//! scripts of all inputs but this one empty, so two things can be cached: the part before this input (a midstate that
//! advances with the inputs), and everything up to the hash type (for further signatures of the same input, like Core's
//! `SigHashCache`). Invariant: equal to the plain twin in `plain.rs`, whatever the cache contains. Cost: the rest of
//! the transaction; the cache has at most 82 bytes per input. Never checks hash types.

use super::{OUTPUTS_MASK, SIGHASH_ANYONECANPAY, SIGHASH_NONE, SIGHASH_SINGLE, TxContext, Writer};
use crate::iter::ops;
use lydian_hash::Sha256;
use lydian_primitives::{Tx, Txid};

const OP_CODESEPARATOR: u8 = 0xab;

/// Size of a serialised input without its script: outpoint, length zero, sequence.
const BLANK_INPUT_SIZE: usize = 41;

/// An output before the signed one under SINGLE: value -1, empty script.
const BLANK_OUTPUT: [u8; 9] = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0];

/// Core's result for SINGLE without an output at the input's index: the number one, little-endian.
const ONE: [u8; 32] = {
    let mut one = [0; 32];
    one[0] = 1;
    one
};

impl TxContext<'_> {
    /// `script_code` is the part after the last executed OP_CODESEPARATOR, with signatures already deleted; remaining
    /// separators are not serialised. The result does not depend on the content of `cache`; keep one for all inputs of
    /// a transaction. Panics if there is no such input.
    pub fn legacy(&self, input: usize, script_code: &[u8], hash_type: u32, cache: &mut LegacyCache) -> [u8; 32] {
        let kind = Kind::of(hash_type);
        if kind.outputs == Outputs::Single && input >= self.tx.output_count() {
            return ONE;
        }
        cache.bind(self.tx);
        let whole = &mut cache.whole[kind.index()];
        let mut writer = match whole.get(input, script_code) {
            Some(engine) => Writer::resume(engine.clone()),
            None => {
                let writer = cache.hash_up_to_type(self.tx, input, script_code, kind);
                cache.whole[kind.index()].set(input, script_code, &writer.sha);
                writer
            }
        };
        writer.u32(hash_type);
        self.finish_double(&writer)
    }
}

/// Midstates of the last transaction hashed. One cache per thread is enough: it detects another transaction by its
/// txid.
#[derive(Clone, Debug, Default)]
pub struct LegacyCache {
    txid: Option<Txid>,
    /// All inputs with empty scripts: with their sequences, and with sequences of zero.
    blank_inputs: [Vec<u8>; 2],
    /// For each of `blank_inputs`, the number of inputs hashed, and the midstate after version, input count and these
    /// inputs.
    prefix: [Option<(usize, Sha256)>; 2],
    /// The midstate up to the hash type, by kind.
    whole: [Whole; 6],
}

impl LegacyCache {
    pub fn new() -> LegacyCache {
        LegacyCache::default()
    }

    /// Clears the cache if it belongs to another transaction. The legacy hash depends only on data that the txid
    /// commits to.
    fn bind(&mut self, tx: Tx<'_>) {
        if self.txid == Some(tx.txid()) {
            return;
        }
        self.txid = Some(tx.txid());
        self.blank_inputs.iter_mut().for_each(Vec::clear);
        self.prefix = [None, None];
        self.whole.iter_mut().for_each(|whole| whole.of = None);
    }

    fn hash_up_to_type(&mut self, tx: Tx<'_>, input: usize, script_code: &[u8], kind: Kind) -> Writer {
        let mut writer;
        if kind.is_anyone_can_pay {
            writer = Writer::new();
            writer.u32(tx.version()).compact_size(1);
            write_signed_input(&mut writer, tx, input, script_code);
        } else {
            let blank = usize::from(kind.outputs != Outputs::All);
            self.fill_blank_inputs(tx, blank);
            writer = self.before(tx, input, blank);
            write_signed_input(&mut writer, tx, input, script_code);
            writer.bytes(&self.blank_inputs[blank][BLANK_INPUT_SIZE * (input + 1)..]);
        }
        write_outputs(&mut writer, tx, input, kind.outputs);
        writer.u32(tx.lock_time());
        writer
    }

    /// Writes version, count and the inputs before `input`. The midstate advances, and restarts for an earlier input.
    fn before(&mut self, tx: Tx<'_>, input: usize, blank: usize) -> Writer {
        let bytes = &self.blank_inputs[blank];
        let (mut writer, from) = match &self.prefix[blank] {
            Some((count, engine)) if *count <= input => (Writer::resume(engine.clone()), *count),
            _ => {
                let mut writer = Writer::new();
                writer.u32(tx.version()).compact_size(tx.input_count());
                (writer, 0)
            }
        };
        writer.bytes(&bytes[BLANK_INPUT_SIZE * from..BLANK_INPUT_SIZE * input]);
        self.prefix[blank] = Some((input, writer.sha.clone()));
        writer
    }

    fn fill_blank_inputs(&mut self, tx: Tx<'_>, blank: usize) {
        let bytes = &mut self.blank_inputs[blank];
        if !bytes.is_empty() {
            return;
        }
        bytes.reserve_exact(BLANK_INPUT_SIZE * tx.input_count());
        for index in 0..tx.input_count() {
            bytes.extend_from_slice(tx.prevout_bytes(index));
            bytes.push(0);
            bytes.extend_from_slice(if blank == 0 { tx.sequence_bytes(index) } else { &[0; 4] });
        }
    }
}

/// A midstate up to the hash type, and the input and script code it belongs to.
#[derive(Clone, Debug, Default)]
struct Whole {
    of: Option<(usize, Sha256)>,
    script_code: Vec<u8>,
}

impl Whole {
    fn get(&self, input: usize, script_code: &[u8]) -> Option<&Sha256> {
        match &self.of {
            Some((of, engine)) if *of == input && self.script_code == script_code => Some(engine),
            _ => None,
        }
    }

    fn set(&mut self, input: usize, script_code: &[u8], engine: &Sha256) {
        self.of = Some((input, engine.clone()));
        self.script_code.clear();
        self.script_code.extend_from_slice(script_code);
    }
}

/// The parts of the transaction that a hash type covers. Its other bits only enter the hash at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    is_anyone_can_pay: bool,
    outputs: Outputs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outputs {
    All,
    None,
    Single,
}

impl Kind {
    fn of(hash_type: u32) -> Kind {
        let outputs = match hash_type & OUTPUTS_MASK {
            SIGHASH_NONE => Outputs::None,
            SIGHASH_SINGLE => Outputs::Single,
            _ => Outputs::All,
        };
        Kind { is_anyone_can_pay: hash_type & SIGHASH_ANYONECANPAY != 0, outputs }
    }

    fn index(self) -> usize {
        self.outputs as usize + if self.is_anyone_can_pay { 3 } else { 0 }
    }
}

fn write_signed_input(writer: &mut Writer, tx: Tx<'_>, input: usize, script_code: &[u8]) {
    writer.bytes(tx.prevout_bytes(input));
    write_script_code(writer, script_code);
    writer.bytes(tx.sequence_bytes(input));
}

/// Writes the script code without its OP_CODESEPARATORs. After a push that is cut off nothing more is written, although
/// the written length includes the rest. Core's `SerializeScriptCode` does the same, and such a script can run up to
/// the signature check.
fn write_script_code(writer: &mut Writer, script_code: &[u8]) {
    let is_separator = |op: &crate::iter::Op<'_>| op.opcode == OP_CODESEPARATOR;
    let separators = ops(script_code).flatten().filter(is_separator).count();
    writer.compact_size(script_code.len() - separators);
    let (mut from, mut to) = (0, script_code.len());
    for op in ops(script_code) {
        match op {
            Ok(op) if is_separator(&op) => {
                writer.bytes(&script_code[from..op.end - 1]);
                from = op.end;
            }
            Ok(_) => {}
            Err(bad) => to = bad.offset,
        }
    }
    writer.bytes(&script_code[from..to]);
}

fn write_outputs(writer: &mut Writer, tx: Tx<'_>, input: usize, outputs: Outputs) {
    match outputs {
        Outputs::All => writer.compact_size(tx.output_count()).bytes(tx.outputs_bytes()),
        Outputs::None => writer.compact_size(0),
        Outputs::Single => {
            writer.compact_size(input + 1);
            (0..input).for_each(|_| {
                writer.bytes(&BLANK_OUTPUT);
            });
            writer.bytes(tx.output_bytes(input))
        }
    };
}
