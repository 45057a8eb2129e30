//! The status of a script in the Electrum protocol: the SHA-256 of `txid:height:` of each entry of its history.
//!
//! Input: the numbers of the script's transactions, from one view. Output: the status. The hash over the transactions
//! of the chain is kept for scripts with many, so that a new block costs only its own transactions; it starts anew
//! after blocks have left the index.

use crate::error::QueryError;
use crate::kept::Kept;
use crate::limits::STATUSES_MAX;
use crate::parts::HistoryParts;
use crate::query::{Query, View, entries_of, transactions_of};
use lydian_hash::Sha256;
use lydian_index::ScriptHash;

/// The hash over at least so many transactions is kept.
pub(crate) const KEPT_FROM: usize = 64;

/// Bytes that are hashed at once.
const TEXT_BYTES: usize = 16 << 10;

/// Hashes over the transactions that scripts have in the chain.
#[derive(Debug)]
pub(crate) struct Statuses {
    kept: Kept<Hashed>,
}

/// The transactions of a script from the first one on.
#[derive(Clone, Debug)]
struct Hashed {
    count: usize,
    /// The number of the last one.
    last: u32,
    hash: Sha256,
}

/// What a status is computed from.
struct Start {
    epoch: u64,
    /// Transactions that are in `hash`.
    hashed: usize,
    hash: StatusHash,
    /// The others.
    rest: HistoryParts,
    /// The numbers of all: how many, and the last.
    count: usize,
    last: Option<u32>,
}

impl Statuses {
    pub(crate) fn new() -> Statuses {
        Statuses { kept: Kept::new(STATUSES_MAX) }
    }

    /// What is hashed of a script that has these transactions.
    fn of(&self, epoch: u64, script: &ScriptHash, numbers: &[u32]) -> Option<Hashed> {
        let is_begin = |hashed: &Hashed| numbers.get(..hashed.count).and_then(<[u32]>::last) == Some(&hashed.last);
        self.kept.get(epoch, script).filter(is_begin)
    }
}

impl Query {
    /// The status of a script in the Electrum protocol; `None` if it has no transaction.
    pub fn status(&self, script: &ScriptHash) -> Result<Option<[u8; 32]>, QueryError> {
        let Start { epoch, hashed, mut hash, mut rest, count, last } = self.start_of_status(script)?;
        loop {
            let part = rest.part(self)?;
            if part.is_empty() {
                break;
            }
            part.iter().for_each(|tx| hash.push(&tx.txid.0, i64::from(tx.height)));
        }
        if let Some(last) = last.filter(|_| count >= KEPT_FROM && count > hashed) {
            let hash = hash.so_far();
            self.kept.statuses.kept.put(epoch, script, Hashed { count, last, hash });
        }
        rest.pool.iter().for_each(|entry| hash.push(&entry.txid.0, entry.height()));
        Ok(hash.finish())
    }

    fn start_of_status(&self, script: &ScriptHash) -> Result<Start, QueryError> {
        self.with_view(script, |index, View { outputs, pool, epoch, .. }| {
            let mut numbers = transactions_of(&outputs);
            drop(outputs);
            let (count, last) = (numbers.len(), numbers.last().copied());
            let (hashed, hash) = match self.kept.statuses.of(epoch, script, &numbers) {
                Some(Hashed { count, hash, .. }) => (count, StatusHash::from(hash)),
                None => (0, StatusHash::default()),
            };
            numbers.drain(..hashed);
            let rest = HistoryParts::new(self, index, numbers, entries_of(&pool))?;
            Ok(rest.map(|rest| Start { epoch, hashed, hash, rest, count, last }))
        })
    }
}

/// The hash of a history, entry by entry.
#[derive(Debug, Default)]
struct StatusHash {
    hash: Option<Sha256>,
    text: Vec<u8>,
}

impl From<Sha256> for StatusHash {
    fn from(hash: Sha256) -> StatusHash {
        StatusHash { hash: Some(hash), text: Vec::new() }
    }
}

impl StatusHash {
    fn push(&mut self, txid: &[u8; 32], height: i64) {
        use std::io::Write;
        lydian_primitives::push_hex_reversed(&mut self.text, txid);
        // Writing to memory does not fail.
        let _ = write!(self.text, ":{height}:");
        if self.text.len() >= TEXT_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.hash.get_or_insert_with(Sha256::new).update(&self.text);
        self.text.clear();
    }

    /// The hash of all entries up to now, to go on from.
    fn so_far(&mut self) -> Sha256 {
        self.flush();
        self.hash.get_or_insert_with(Sha256::new).clone()
    }

    fn finish(mut self) -> Option<[u8; 32]> {
        if !self.text.is_empty() {
            self.flush();
        }
        self.hash.map(|hash| hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::Txid;

    #[test]
    fn a_hash_goes_on_where_it_was_kept() {
        let entries: Vec<([u8; 32], i64)> =
            (0..1_000u16).map(|number| ([number.to_le_bytes()[0]; 32], i64::from(number))).collect();
        let text = |entries: &[([u8; 32], i64)]| -> String {
            let one = |(txid, height): &([u8; 32], i64)| format!("{}:{height}:", Txid(*txid));
            entries.iter().map(one).collect()
        };
        for kept in [0, 1, 64, 999, 1_000] {
            let mut first = StatusHash::default();
            entries[..kept].iter().for_each(|(txid, height)| first.push(txid, *height));
            let mut next = StatusHash::from(first.so_far());
            entries[kept..].iter().for_each(|(txid, height)| next.push(txid, *height));
            assert_eq!(next.finish(), Some(lydian_hash::sha256(text(&entries).as_bytes())), "{kept}");
            let whole = first.finish();
            assert_eq!(whole, Some(lydian_hash::sha256(text(&entries[..kept]).as_bytes())), "{kept}");
        }
        assert_eq!(StatusHash::default().finish(), None);
    }

    #[test]
    fn only_the_same_beginning_is_used() {
        let (statuses, script) = (Statuses::new(), ScriptHash([7; 32]));
        let hashed = Hashed { count: 3, last: 9, hash: Sha256::new() };
        statuses.kept.put(5, &script, hashed);
        let count = |epoch: u64, numbers: &[u32]| statuses.of(epoch, &script, numbers).map(|hashed| hashed.count);
        assert_eq!(count(5, &[1, 4, 9]), Some(3));
        assert_eq!(count(5, &[1, 4, 9, 12]), Some(3));
        assert_eq!(count(5, &[1, 4]), None);
        assert_eq!(count(5, &[1, 4, 8, 9]), None);
        assert_eq!(count(4, &[1, 4, 9]), None);
        assert_eq!(count(6, &[1, 4, 9]), None);
    }
}
