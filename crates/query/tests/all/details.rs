//! Transactions with what they spend, pages of them, spenders, and what is known of outputs, against the model.

use crate::model::{Model, Row, Script};
use crate::world::World;
use lydian_index::ScriptHash;
use lydian_primitives::{OutPoint, Txid};
use lydian_query::{Detailed, OutpointStatus, Query, QueryError, Question};
use lydian_stdx::SplitMix64;

/// Every answer about a transaction and its outputs.
pub fn compare_transaction(query: &Query, model: &Model, txid: &Txid) {
    let Some(row) = model.find(txid) else { return compare_unknown(query, txid) };
    assert_eq!(query.transaction(txid).unwrap().as_bytes(), row.bytes);
    assert_eq!(query.height_of(txid).unwrap(), Some(model.height_of(row)), "height of {txid}");
    let place = model.place_of(row);
    assert_eq!(query.block_of(txid).unwrap(), place.map(|place| (place.hash, place.height)), "block of {txid}");
    assert_eq!(query.place_of(txid).unwrap(), place, "place of {txid}");
    compare_detailed(&query.detailed(txid).unwrap(), model, row);
    assert_eq!(query.spendings(txid).unwrap(), model.spendings(txid), "spenders of {txid}");
    for (vout, (_, script)) in (0..).zip(&row.outputs) {
        let outpoint = OutPoint { txid: *txid, vout };
        assert_eq!(query.outpoint(&outpoint).unwrap(), model.outpoint(&outpoint), "{outpoint:?}");
        assert_eq!(query.script_of(&outpoint).unwrap(), Some(ScriptHash::of(script)));
    }
    let beyond = OutPoint { txid: *txid, vout: u32::try_from(row.outputs.len()).unwrap() };
    assert_eq!(query.outpoint(&beyond).unwrap(), OutpointStatus::default());
    assert_eq!(query.script_of(&beyond).unwrap(), None);
    if let Some(height) = row.height {
        let block = &model.blocks[height as usize];
        let position = block.txs().position(|tx| tx.txid() == *txid).unwrap();
        assert_eq!(query.merkle(txid, height).unwrap(), model.merkle(height, position), "proof of {txid}");
    }
}

/// No transaction has the txid; it may be one of a chain that was left.
fn compare_unknown(query: &Query, txid: &Txid) {
    let none = QueryError::NoTransaction(*txid);
    assert_eq!(query.transaction(txid).err(), Some(none.clone()), "{txid}");
    assert_eq!(query.height_of(txid).unwrap(), None);
    assert_eq!(query.block_of(txid), Err(none.clone()));
    assert_eq!(query.place_of(txid), Err(none.clone()));
    assert_eq!(query.detailed(txid).err(), Some(none.clone()));
    assert_eq!(query.spendings(txid), Err(none));
    let outpoint = OutPoint { txid: *txid, vout: 0 };
    assert_eq!(query.outpoint(&outpoint).unwrap(), OutpointStatus::default());
    assert_eq!(query.script_of(&outpoint).unwrap(), None);
}

fn compare_detailed(found: &Detailed, model: &Model, row: &Row) {
    assert_eq!(found.tx.as_bytes(), row.bytes, "{}", row.txid);
    assert_eq!(found.block, model.place_of(row), "block of {}", row.txid);
    assert_eq!(found.spent, model.spent(row), "what {} spends", row.txid);
}

/// The transactions of a script, all at once and page by page.
pub fn compare_pages(query: &Query, model: &Model, script: &Script, random: &mut SplitMix64) {
    let hash = ScriptHash::of(script);
    let (pool, chain) = model.newest(script);
    let most = 1 + random.below(40);
    for (pool_max, chain_max) in [(usize::MAX, most), (most, 0), (0, most)] {
        let page = query.page(&hash, Question { pool_max, chain_max, after: None }).unwrap();
        assert_eq!((page.pool_total, page.chain_total), (pool.len(), chain.len()));
        let expected: Vec<&&Row> = pool.iter().take(pool_max).chain(chain.iter().take(chain_max)).collect();
        assert_eq!(page.transactions.len(), expected.len());
        for (found, row) in page.transactions.iter().zip(expected) {
            compare_detailed(found, model, row);
        }
    }
    // What comes after one: of a txid that the chain has twice, after the last.
    let rows: Vec<&Row> = pool.iter().chain(&chain).copied().collect();
    if rows.is_empty() {
        return;
    }
    let after = rows[random.below(rows.len())].txid;
    let at = rows.iter().position(|row| row.txid == after).unwrap();
    let page = query.page(&hash, Question { pool_max: most, chain_max: most, after: Some(&after) }).unwrap();
    let of_pool = pool.iter().skip(at + 1).take(most);
    let expected: Vec<&&Row> =
        of_pool.chain(chain.iter().skip((at + 1).saturating_sub(pool.len())).take(most)).collect();
    assert_eq!(page.transactions.len(), expected.len(), "after {after}");
    for (found, row) in page.transactions.iter().zip(expected) {
        compare_detailed(found, model, row);
    }
}

/// The transactions of a mempool whose order of arrival was not seen: those that did not return from a block have a
/// number.
pub fn compare_fresh_page(world: &World, query: &Query, model: &Model, script: &Script) {
    let asked = Question { pool_max: usize::MAX, chain_max: 0, after: None };
    let page = query.page(&ScriptHash::of(script), asked).unwrap();
    let mut found: Vec<Txid> = page.transactions.iter().map(|one| one.tx.view().txid()).collect();
    let numbers: Vec<u64> = found.iter().map(|txid| world.sequence(txid)).collect();
    assert!(numbers.is_sorted_by(|one, next| one >= next), "the newest first: {numbers:?}");
    for one in &page.transactions {
        compare_detailed(one, model, model.find(&one.tx.view().txid()).unwrap());
    }
    let mut expected: Vec<Txid> = model.newest(script).0.iter().map(|row| row.txid).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
