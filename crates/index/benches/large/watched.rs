//! What is known of some scripts from the chain alone: the answers that the index must give.
//!
//! Input: events, which the process that is killed writes to a file before the index gets their block. Output: for each
//! script its outputs and its history up to a height.

use crate::chain::script;
use lydian_index::{OutputFate, ScriptHash, ScriptOutput};
use lydian_primitives::{Height, Txid};
use std::collections::BTreeMap;
use std::path::Path;

/// Which scripts are watched: every so many of the services, and of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) services: u32,
    pub(crate) one_of_services: u32,
    pub(crate) one_of_others: u32,
}

impl Watched {
    pub(crate) fn has(&self, script: u32) -> bool {
        match script < self.services {
            true => script > 0 && script.is_multiple_of(self.one_of_services),
            false => script.is_multiple_of(self.one_of_others),
        }
    }
}

/// An output is created or spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) height: u32,
    pub(crate) script: u32,
    /// The number of the output's transaction.
    pub(crate) number: u32,
    pub(crate) vout: u32,
    pub(crate) change: Change,
}

/// `txid`: of the transaction that does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Created { value: u32, txid: Txid },
    Spent { spender: u32, txid: Txid },
}

/// Kind, height, script, number, output index, value or spender, txid.
const EVENT_BYTES: usize = 1 + 5 * 4 + 32;

impl Event {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, last, txid) = match self.change {
            Change::Created { value, txid } => (0, value, txid),
            Change::Spent { spender, txid } => (1, spender, txid),
        };
        out.push(kind);
        for number in [self.height, self.script, self.number, self.vout, last] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&txid.0);
    }

    fn decode(bytes: &[u8]) -> Event {
        let number = |at: usize| u32::from_le_bytes(bytes[1 + 4 * at..][..4].try_into().unwrap());
        let (last, txid) = (number(4), Txid(bytes[21..53].try_into().unwrap()));
        let change = match bytes[0] {
            0 => Change::Created { value: last, txid },
            _ => Change::Spent { spender: last, txid },
        };
        Event { height: number(0), script: number(1), number: number(2), vout: number(3), change }
    }
}

/// What the index must say of a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    pub(crate) outputs: Vec<ScriptOutput>,
    /// By the number of the transaction.
    pub(crate) history: BTreeMap<u32, (Txid, Height)>,
}

impl Expected {
    /// In satoshis.
    pub(crate) fn balance(&self) -> u64 {
        balance(&self.outputs)
    }
}

pub(crate) fn balance(outputs: &[ScriptOutput]) -> u64 {
    outputs
        .iter()
        .map(|output| match output.fate {
            OutputFate::Unspent(value) => value,
            OutputFate::Spent(_) | OutputFate::Overwritten => 0,
        })
        .sum()
}

/// All events in a file.
pub(crate) fn read(path: &Path) -> Vec<Event> {
    // The last one may be cut: the process was killed.
    std::fs::read(path).unwrap().chunks_exact(EVENT_BYTES).map(Event::decode).collect()
}

/// The answers about every script at a height.
pub(crate) fn expected(events: &[Event], height: u32) -> BTreeMap<u32, Expected> {
    let mut all: BTreeMap<u32, Expected> = BTreeMap::new();
    let mut fates: BTreeMap<(u32, u32, u32), OutputFate> = BTreeMap::new();
    for event in events.iter().filter(|event| event.height <= height) {
        let output = (event.script, event.number, event.vout);
        let (number, txid) = match event.change {
            Change::Created { value, txid } => {
                fates.insert(output, OutputFate::Unspent(u64::from(value)));
                (event.number, txid)
            }
            Change::Spent { spender, txid } => {
                let before = fates.insert(output, OutputFate::Spent(spender));
                assert!(matches!(before, Some(OutputFate::Unspent(_))), "{event:?}");
                (spender, txid)
            }
        };
        all.entry(event.script).or_default().history.insert(number, (txid, Height(event.height)));
    }
    for ((script, number, vout), fate) in fates {
        all.entry(script).or_default().outputs.push(ScriptOutput { number, vout, fate });
    }
    all
}

pub(crate) fn hash_of(number: u32) -> ScriptHash {
    ScriptHash::of(&script(number))
}
