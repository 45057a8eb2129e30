//! Relative lock times. Input: an input's sequence and its coin's height. Output: the lock. BIP-0068; Core's
//! `CalculateSequenceLocks` (consensus/tx_verify.cpp). Pure.

use lydian_primitives::Height;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
