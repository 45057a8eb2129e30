//! Relative lock times. Input: a transaction and the heights of its coins. Output: the locks, and whether a block meets
//! them. BIP-0068; Core's `CalculateSequenceLocks` and `EvaluateSequenceLocks` (consensus/tx_verify.cpp). Pure.

use crate::view::HeaderView;
use lydian_primitives::{Height, Tx};

/// `SEQUENCE_LOCKTIME_DISABLE_FLAG` (primitives/transaction.h).
const DISABLE_FLAG: u32 = 1 << 31;
/// `SEQUENCE_LOCKTIME_TYPE_FLAG`.
const TYPE_FLAG: u32 = 1 << 22;
/// `SEQUENCE_LOCKTIME_MASK`.
const MASK: u32 = 0xffff;
/// `SEQUENCE_LOCKTIME_GRANULARITY`: units of 512 seconds.
const GRANULARITY: u32 = 9;

/// The relative lock of one input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SequenceLock {
    Disabled,
    /// The last height at which the input is still locked.
    Height(i64),
    /// The input can be spent in a block whose parent's median time past is at least that of the block at `since` plus
    /// `seconds`.
    Time {
        seconds: i64,
        since: Height,
    },
}

/// The lock of one input of a transaction with version 2 or later.
///
/// Times count from the block *before* the coin's block, because its median time past is the earliest time that the
/// coin's block could have had. For a coin at height 0 or 1 this is the genesis block.
pub fn sequence_lock(sequence: u32, coin_height: Height) -> SequenceLock {
    let value = sequence & MASK;
    if sequence & DISABLE_FLAG != 0 {
        SequenceLock::Disabled
    } else if sequence & TYPE_FLAG != 0 {
        SequenceLock::Time { seconds: i64::from(value << GRANULARITY), since: Height(coin_height.0.saturating_sub(1)) }
    } else {
        SequenceLock::Height(i64::from(coin_height.0) + i64::from(value) - 1)
    }
}

/// The relative locks of all inputs of a transaction together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceLocks {
    /// The last height at which the transaction is still locked; -1 if it never is.
    pub last_height: i64,
    /// The last median time past of a block's parent with which the transaction is still locked; -1 if it never is.
    pub last_time: i64,
}

impl SequenceLocks {
    pub const NONE: SequenceLocks = SequenceLocks { last_height: -1, last_time: -1 };

    /// Whether a block at `height` may have the transaction. If the view does not know the median time past that
    /// decides, it may not. Core's `EvaluateSequenceLocks`.
    pub fn are_met(&self, height: Height, headers: &impl HeaderView) -> bool {
        let now = || height.0.checked_sub(1).and_then(|parent| headers.median_time_past(Height(parent)));
        self.last_height < i64::from(height.0) && (self.last_time < 0 || now().is_some_and(|now| self.last_time < now))
    }
}

/// The locks of a transaction, whose inputs spend coins of these heights. `None` if the view does not know a median
/// time past that a lock begins with. Where BIP-0068 is not active, there are no locks, which the caller decides.
/// Core's `CalculateSequenceLocks`.
pub fn sequence_locks(
    tx: Tx<'_>,
    coin_heights: impl Iterator<Item = Height>,
    headers: &impl HeaderView,
) -> Option<SequenceLocks> {
    let mut locks = SequenceLocks::NONE;
    // Versions are compared without their sign, as in Core.
    if tx.version() < 2 {
        return Some(locks);
    }
    for (input, height) in tx.inputs().zip(coin_heights) {
        match sequence_lock(input.sequence, height) {
            SequenceLock::Disabled => {}
            SequenceLock::Height(last) => locks.last_height = locks.last_height.max(last),
            SequenceLock::Time { seconds, since } => {
                let last = headers.median_time_past(since)? + seconds - 1;
                locks.last_time = locks.last_time.max(last);
            }
        }
    }
    Some(locks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Ancestor;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint};

    /// checklist: 30
    #[test]
    fn locks_of_every_kind_and_their_edges() {
        let at = Height(1000);
        assert_eq!(sequence_lock(0xffff_ffff, at), SequenceLock::Disabled);
        assert_eq!(sequence_lock(0x8000_0000, at), SequenceLock::Disabled);
        assert_eq!(sequence_lock(0, at), SequenceLock::Height(999));
        assert_eq!(sequence_lock(10, at), SequenceLock::Height(1009));
        assert_eq!(sequence_lock(0x7fbf_ffff, at), SequenceLock::Height(1000 + 0xffff - 1), "other bits mean nothing");
        assert_eq!(sequence_lock(0x0040_0001, at), SequenceLock::Time { seconds: 512, since: Height(999) });
        assert_eq!(
            sequence_lock(0x0040_ffff, Height(0)),
            SequenceLock::Time { seconds: 0xffff * 512, since: Height(0) }
        );
    }

    /// The median time past of each height is 10,000 seconds a block; those below 100 are not known.
    struct Times;

    impl HeaderView for Times {
        fn ancestor(&self, _: Height) -> Option<Ancestor> {
            None
        }

        fn median_time_past(&self, height: Height) -> Option<i64> {
            (height.0 >= 100).then(|| i64::from(height.0) * 10_000)
        }
    }

    fn locks(version: u32, inputs: &[(u32, u32)]) -> Option<SequenceLocks> {
        let input =
            |sequence| MutInput { prevout: OutPoint::NULL, script_sig: Vec::new(), sequence, witness: Vec::new() };
        let outputs = vec![MutOutput { value: Amount(1), script_pubkey: Vec::new() }];
        let inputs_of = inputs.iter().map(|(sequence, _)| input(*sequence)).collect();
        let tx = MutTx { version, inputs: inputs_of, outputs, lock_time: 0 }.to_transaction().unwrap();
        sequence_locks(tx.view(), inputs.iter().map(|(_, height)| Height(*height)), &Times)
    }

    /// checklist: 30
    #[test]
    fn the_latest_lock_of_all_inputs_decides() {
        let two = locks(2, &[(10, 300), (20, 300), (0x0040_0002, 201)]).unwrap();
        assert_eq!(two, SequenceLocks { last_height: 319, last_time: 200 * 10_000 + 1_024 - 1 });
        // A block at 320 is the first above the height; its parent's time is late enough.
        assert!(!two.are_met(Height(319), &Times) && two.are_met(Height(320), &Times));
        let time = locks(2, &[(0x0040_0014, 201)]).unwrap();
        assert_eq!(time, SequenceLocks { last_height: -1, last_time: 200 * 10_000 + 20 * 512 - 1 });
        assert!(!time.are_met(Height(202), &Times), "the parent, at 201, is 240 s too early");
        assert!(time.are_met(Height(203), &Times));
        assert_eq!(locks(1, &[(10, 300)]), Some(SequenceLocks::NONE), "version 1 has no relative locks");
        assert_eq!(locks(u32::MAX, &[(10, 300)]).map(|locks| locks.last_height), Some(309), "no sign");
        assert!(SequenceLocks::NONE.are_met(Height(0), &Times));
    }

    #[test]
    fn an_unknown_median_time_past_meets_no_lock() {
        assert_eq!(locks(2, &[(0x0040_0001, 100)]), None);
        let early = SequenceLocks { last_height: -1, last_time: 0 };
        assert!(!early.are_met(Height(100), &Times) && early.are_met(Height(101), &Times));
        assert!(!early.are_met(Height(0), &Times));
    }
}
