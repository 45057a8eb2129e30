//! Verifies the scripts of one block. Input: a block with the coins it spends, and a verifier. Output: what the
//! verifier finds. Invariant: a verifier that panics has failed, like one that returns an error.

use crate::verifier::{Rejection, Spend, Verifier, VerifierError};
use lydian_consensus::Coin;
use lydian_primitives::{Block, Output, Txid};
use lydian_script::Flags;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a verifier finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Valid,
    Invalid {
        txid: Txid,
        rejection: Rejection,
    },
    Failed {
        reason: String,
    },
    /// The node ends.
    Ended,
}

/// Verifies the transactions of a block in their order, until one is invalid. `spent` are the coins that it spends.
pub(crate) fn examine(
    verifier: &mut dyn Verifier,
    block: &Block,
    spent: &[Coin],
    flags: Flags,
    is_ended: &dyn Fn() -> bool,
) -> Finding {
    let mut coins = spent.iter();
    for tx in block.txs().skip(1) {
        let spent: Vec<Output<'_>> = coins.by_ref().take(tx.input_count()).map(Coin::output).collect();
        let found = guarded(verifier, &Spend { tx: tx.bytes(), spent: &spent, flags }, is_ended);
        if is_ended() {
            return Finding::Ended;
        }
        match found {
            Ok(None) => {}
            Ok(Some(rejection)) => return Finding::Invalid { txid: tx.txid(), rejection },
            Err(VerifierError(reason)) => {
                return Finding::Failed { reason: format!("transaction {}: {reason}", tx.txid()) };
            }
        }
    }
    Finding::Valid
}

fn guarded(
    verifier: &mut dyn Verifier,
    spend: &Spend<'_>,
    is_ended: &dyn Fn() -> bool,
) -> Result<Option<Rejection>, VerifierError> {
    catch_unwind(AssertUnwindSafe(|| verifier.verify(spend, is_ended)))
        .unwrap_or_else(|_| Err(VerifierError("the verifier panicked; its message is on stderr".to_owned())))
}
