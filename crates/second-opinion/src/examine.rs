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
        match found {
            // A verifier that was interrupted has found nothing.
            Ok(None) | Err(_) if is_ended() => return Finding::Ended,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Liar;
    use lydian_chains::presets::maker::{Maker, free_tx, output};
    use lydian_primitives::{Height, RawBlock};

    /// What was found before the end is reported, although the node ends meanwhile.
    #[test]
    fn a_rejection_is_not_lost_at_the_end() {
        let mut maker = Maker::new();
        for _ in 0..101 {
            let block = maker.block(Vec::new());
            maker.advance(&block);
        }
        let coin = maker.spendable()[0];
        let block = maker.block(vec![free_tx(&[coin], vec![output(coin.value, &[0x51])])]);
        let block = RawBlock::new(block.encode()).parse().unwrap();
        let spent = Coin {
            value: lydian_primitives::Amount(coin.value),
            script_pubkey: vec![0x51].into(),
            height: Height(1),
            is_coinbase: true,
        };
        let finding = examine(&mut Liar, &block, &[spent], Flags::NONE, &|| true);
        assert!(matches!(finding, Finding::Invalid { .. }), "{finding:?}");
        let nothing = examine(&mut Silent, &block, &[], Flags::NONE, &|| true);
        assert_eq!(nothing, Finding::Ended);
    }

    /// Finds nothing.
    #[derive(Debug)]
    struct Silent;

    impl Verifier for Silent {
        fn verify(&mut self, _: &Spend<'_>, _: &dyn Fn() -> bool) -> Result<Option<Rejection>, VerifierError> {
            Ok(None)
        }
    }
}
