//! The transaction of a PSBT.
//!
//! Input: a PSBT, or a transaction. Output: the unsigned transaction, its lock time, and the id by which PSBTs are
//! combined; a PSBT about which nothing but its transaction is known.

use crate::types::{Input, Output, Psbt};
use lydian_primitives::Txid;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};

/// The sequence of an input that has none.
const SEQUENCE_FINAL: u32 = 0xffff_ffff;

/// The greatest lock time of each unit that inputs require so far: Core's loop in `ComputeTimeLock` and `AddInput`.
#[derive(Clone, Copy, Debug)]
struct Locks {
    /// `None`: an input rules this unit out.
    time: Option<u32>,
    height: Option<u32>,
}

impl Locks {
    /// Adds an input. `None` if no lock time satisfies all.
    fn with(mut self, input: &Input) -> Option<Locks> {
        match (input.time_lock, input.height_lock) {
            (Some(_), None) => {
                self.height = None;
                self.time?;
            }
            (None, Some(_)) => {
                self.time = None;
                self.height?;
            }
            _ => {}
        }
        self.time = self.time.map(|time| time.max(input.time_lock.unwrap_or(0)));
        self.height = self.height.map(|height| height.max(input.height_lock.unwrap_or(0)));
        Some(self)
    }

    fn lock_time(&self) -> Option<u32> {
        let is_set = |lock: &u32| *lock > 0;
        self.height.filter(is_set).or(self.time.filter(is_set))
    }
}

impl Psbt {
    /// The PSBT of a transaction without signatures.
    pub fn new(tx: &MutTx, version: u32) -> Psbt {
        let output = |output: &MutOutput| Output {
            amount: output.value,
            script: output.script_pubkey.clone(),
            ..Output::default()
        };
        Psbt {
            version,
            tx_version: tx.version,
            fallback_lock_time: Some(tx.lock_time),
            inputs: tx.inputs.iter().map(|input| Input::new(input.prevout, Some(input.sequence))).collect(),
            outputs: tx.outputs.iter().map(output).collect(),
            ..Psbt::default()
        }
    }

    /// Core's `ComputeTimeLock`. `None` if the inputs require lock times of different units.
    pub fn lock_time(&self) -> Option<u32> {
        let fallback = self.fallback_lock_time.unwrap_or(0);
        if self.version < 2 {
            return Some(fallback);
        }
        let start = Locks { time: Some(0), height: Some(0) };
        let locks = self.inputs.iter().try_fold(start, Locks::with)?;
        Some(locks.lock_time().unwrap_or(fallback))
    }

    /// Core's `GetUnsignedTx`.
    pub fn unsigned_tx(&self) -> Option<MutTx> {
        let input = |input: &Input| MutInput {
            prevout: input.prevout,
            script_sig: Vec::new(),
            sequence: input.sequence.unwrap_or(SEQUENCE_FINAL),
            witness: Vec::new(),
        };
        let output = |output: &Output| MutOutput { value: output.amount, script_pubkey: output.script.clone() };
        Some(MutTx {
            version: self.tx_version,
            lock_time: self.lock_time()?,
            inputs: self.inputs.iter().map(input).collect(),
            outputs: self.outputs.iter().map(output).collect(),
        })
    }

    /// Core's `GetUniqueID`: the same for all PSBTs of one transaction.
    pub(crate) fn unique_id(&self) -> Option<Txid> {
        let mut tx = self.unsigned_tx()?;
        if self.version >= 2 {
            tx.inputs.iter_mut().for_each(|input| input.sequence = 0);
        }
        Some(tx.txid())
    }
}
