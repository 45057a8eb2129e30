//! The chain on which BIP-0034 activates late, so that two coinbases can be the same transaction (BIP-0030).

use super::{BIP30_OPTION, Bench, CASES_NOW};
use crate::error::ChainsError;
use crate::files::write_text;
use crate::presets::ledger::{Expectation, Ledger, write_summary};
use crate::presets::maker::{Maker, TRUE_SCRIPT, free_tx, output};
use crate::regtest::COINBASE_MATURITY;
use crate::wallet::Wallet;
use std::path::Path;

pub(super) fn write(folder: &Path) -> Result<Vec<Expectation>, ChainsError> {
    let ledger = Ledger::new(folder, CASES_NOW)?;
    write_text(&folder.join("options.txt"), &format!("{BIP30_OPTION}\n"))?;
    let mut bench = Bench { maker: Maker::new(), ledger, wallet: Wallet::new(0) };
    bench.grow(1)?;
    let first = bench.maker.block(Vec::new()).txs.remove(0);
    bench.twin("chain", "", Vec::new(), |_| ())?;
    let rule = "bad-txns-BIP30";
    bench.broken("coinbase-of-an-earlier-block", rule, rule, Vec::new(), |block| block.txs[0] = first.clone())?;
    bench.grow(COINBASE_MATURITY)?;
    bench.broken("coinbase-of-an-old-block", rule, rule, Vec::new(), |block| block.txs[0] = first.clone())?;
    let Some(coin) = bench.maker.spendable().into_iter().find(|coin| coin.outpoint.txid == first.txid()) else {
        return Err(ChainsError::Usage("the coinbase to repeat is missing".into()));
    };
    let spend = free_tx(&[coin], vec![output(coin.value, &TRUE_SCRIPT)]);
    // A spend in the same block does not help: the rule is checked before any transaction of the block.
    bench.broken("spent-in-the-block-that-repeats-it", rule, rule, vec![spend.clone()], |block| {
        block.txs[0] = first.clone();
    })?;
    bench.twin("chain", "", vec![spend], |_| ())?;
    bench.twin("coinbase-repeated-when-spent", rule, Vec::new(), |block| block.txs[0] = first.clone())?;
    let lines = bench.ledger.finish()?;
    write_summary(folder, "invalid", 0, &bench.maker, &lines)?;
    Ok(lines)
}
