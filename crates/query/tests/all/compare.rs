//! Every answer about scripts, outputs, transactions, blocks and the mempool against the model.

use crate::details::{compare_fresh_page, compare_pages, compare_transaction};
use crate::model::{Model, Row, Script};
use crate::world::World;
use lydian_index::ScriptHash;
use lydian_primitives::{BlockHash, Height, OutPoint, Txid};
use lydian_query::{OutpointStatus, PART, PoolTouched, Query, QueryError};
use lydian_stdx::SplitMix64;
use std::collections::{BTreeMap, BTreeSet};

/// What is asked about: everything that there ever was, on this chain or on another.
#[derive(Debug)]
pub struct Asked {
    pub scripts: BTreeSet<Script>,
    pub txids: BTreeSet<Txid>,
    random: SplitMix64,
    /// The status of each script at the last comparison, and the tip of that moment.
    statuses: BTreeMap<Script, [u8; 32]>,
    last: Option<(u32, BlockHash)>,
    /// What was known of each output then.
    outputs: BTreeMap<OutPoint, OutpointStatus>,
    /// The kinds of states that were compared.
    pub kinds: BTreeSet<&'static str>,
}

/// How much is compared.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// One in so many of the scripts, and of the transactions.
    pub scripts: usize,
    pub txids: usize,
}

pub const ALL: Extent = Extent { scripts: 1, txids: 1 };

impl Asked {
    pub fn new(seed: u64) -> Asked {
        let (scripts, txids) = (BTreeSet::from([vec![0x52, 0x53]]), BTreeSet::from([Txid([9; 32])]));
        let (statuses, kinds) = (BTreeMap::new(), BTreeSet::new());
        Asked { scripts, txids, random: SplitMix64::new(seed), statuses, last: None, outputs: BTreeMap::new(), kinds }
    }

    /// Compares everything, with the query that has followed the mempool and with a new one.
    pub fn compare(&mut self, world: &World, extent: Extent) {
        let model = world.model();
        self.note(&model);
        let query = world.query();
        self.compare_touched(query, world, &model);
        let (one, other) = (self.random.below(extent.scripts), self.random.below(extent.txids));
        for script in self.scripts.iter().skip(one).step_by(extent.scripts) {
            compare_script(query, &model, script, &mut self.random);
            compare_pages(query, &model, script, &mut self.random);
        }
        for txid in self.txids.iter().skip(other).step_by(extent.txids) {
            compare_transaction(query, &model, txid);
        }
        compare_chain(query, &model, &mut self.random, extent);
        compare_pool(query, &model);
        // Rows of the mempool that are made from a snapshot are those that follow from the changes.
        let fresh = world.fresh_query();
        for script in self.scripts.iter().skip(one).step_by(extent.scripts * 3) {
            compare_script(&fresh, &model, script, &mut self.random);
            compare_fresh_page(world, &fresh, &model, script);
        }
        compare_pool(&fresh, &model);
    }

    fn note(&mut self, model: &Model) {
        self.kinds.extend(model.kinds());
        self.scripts.extend(model.scripts().cloned());
        self.scripts.extend(model.rows.iter().flat_map(|row| &row.outputs).map(|(_, script)| script.clone()));
        self.txids.extend(model.rows.iter().map(|row| row.txid));
    }

    /// Compares everything that does not depend on the order of the mempool, with a query that answers elsewhere.
    #[allow(dead_code, reason = "the tests of front ends use it")]
    pub fn compare_elsewhere(&mut self, query: &Query, world: &World, extent: Extent) {
        let model = world.model();
        self.note(&model);
        self.compare_touched(query, world, &model);
        let (one, other) = (self.random.below(extent.scripts), self.random.below(extent.txids));
        for script in self.scripts.iter().skip(one).step_by(extent.scripts) {
            compare_script(query, &model, script, &mut self.random);
        }
        for txid in self.txids.iter().skip(other).step_by(extent.txids) {
            compare_transaction(query, &model, txid);
        }
        compare_chain(query, &model, &mut self.random, extent);
        compare_pool(query, &model);
    }

    /// A script whose status is another one now was touched, by a block or in the mempool.
    fn compare_touched(&mut self, query: &Query, world: &World, model: &Model) {
        let statuses: BTreeMap<Script, [u8; 32]> =
            model.scripts().filter_map(|script| Some((script.clone(), model.status(script)?))).collect();
        let in_pool = query.pool().take_touched().unwrap();
        let is_active = |height: u32, hash| model.blocks.get(height as usize).is_some_and(|block| block.hash() == hash);
        let last = self.last.filter(|(height, hash)| is_active(*height, *hash));
        let hashes: Vec<ScriptHash> = self.scripts.iter().map(|script| ScriptHash::of(script)).collect();
        if let Some((height, _)) = last {
            let in_blocks = query.index().unwrap().touched(Height(height + 1), &hashes);
            let in_blocks: BTreeSet<ScriptHash> = in_blocks.into_iter().collect();
            for script in self.scripts.iter().filter(|script| statuses.get(*script) != self.statuses.get(*script)) {
                let hash = ScriptHash::of(script);
                let is_told = in_blocks.contains(&hash)
                    || match &in_pool {
                        PoolTouched::All => true,
                        PoolTouched::These(touched) => touched.scripts.contains(&hash),
                    };
                assert!(is_told, "the status of {script:02x?} changed without notice");
            }
        }
        self.statuses = statuses;
        self.compare_touched_outputs(model, last.map(|(height, _)| height), in_pool);
        self.last = Some((model.tip(), world.tip_hash()));
    }

    /// The same for outputs and transactions. `last`: the height of the last comparison, if that block did not leave.
    fn compare_touched_outputs(&mut self, model: &Model, last: Option<u32>, in_pool: PoolTouched) {
        let outputs = |(row, vout): (&Row, u32)| OutPoint { txid: row.txid, vout };
        let count = |row: &Row| u32::try_from(row.outputs.len()).unwrap();
        let all = model.rows.iter().flat_map(|row| (0..count(row)).map(move |vout| (row, vout))).map(outputs);
        let now: BTreeMap<OutPoint, OutpointStatus> =
            all.map(|outpoint| (outpoint, model.outpoint(&outpoint))).collect();
        let before = std::mem::replace(&mut self.outputs, now);
        let (Some(last), PoolTouched::These(mut touched)) = (last, in_pool) else { return };
        for block in &model.blocks[last as usize + 1..] {
            block.txs().for_each(|tx| touched.add(tx));
        }
        let none = OutpointStatus::default();
        for outpoint in before.keys().chain(self.outputs.keys()) {
            let [before, now] = [&before, &self.outputs].map(|of| of.get(outpoint).unwrap_or(&none));
            let is_told = touched.outpoints.contains(outpoint);
            assert!(before == now || is_told, "{outpoint:?} changed without notice: {before:?}, {now:?}");
            let is_told = touched.txids.contains(&outpoint.txid);
            assert!(before.funder_height == now.funder_height || is_told, "{} changed without notice", outpoint.txid);
        }
    }
}

pub fn compare_script(query: &Query, model: &Model, script: &Script, random: &mut SplitMix64) {
    let hash = ScriptHash::of(script);
    let label = || format!("of script {script:02x?}");
    let history = query.history(&hash, 0..u32::MAX).unwrap();
    assert_eq!(history, model.history(script, 0..u32::MAX), "history {}", label());
    assert_eq!(query.status(&hash).unwrap(), model.status(script), "status {}", label());
    // The same in parts.
    let mut parts = query.history_parts(&hash, 0..u32::MAX).unwrap();
    assert_eq!((parts.count(), &parts.pool), (history.confirmed.len() + history.pool.len(), &history.pool));
    let mut in_parts = Vec::new();
    loop {
        let part = parts.part(query).unwrap();
        if part.is_empty() {
            break;
        }
        assert!(part.len() <= PART);
        in_parts.extend(part);
    }
    assert_eq!(in_parts, history.confirmed, "history in parts {}", label());
    assert_eq!(query.pool_history(&hash).unwrap(), history.pool, "in the mempool, {}", label());
    let height = |random: &mut SplitMix64| u32::try_from(random.below(model.blocks.len() + 2)).unwrap();
    let (from, to) = (height(random), height(random));
    for range in [from..to, 0..to, from..u32::MAX] {
        let expected = model.history(script, range.clone());
        assert_eq!(query.history(&hash, range.clone()).unwrap(), expected, "at heights {range:?}, {}", label());
    }
    assert_eq!(query.first_use(&hash).unwrap(), history.confirmed.first().copied(), "first use {}", label());
    assert_eq!(query.balance(&hash).unwrap(), model.balance(script), "balance {}", label());
    let coins = model.coins(script);
    assert_eq!(query.coins(&hash).unwrap(), coins, "coins {}", label());
    let mut parts = query.coin_parts(&hash).unwrap();
    assert!(parts.count() >= coins.len());
    let mut in_parts = Vec::new();
    while let Some(part) = parts.part(query).unwrap() {
        in_parts.extend(part);
    }
    in_parts.append(&mut parts.pool);
    assert_eq!(in_parts, coins, "coins in parts {}", label());
    let balance = query.balance(&hash).unwrap();
    assert_eq!(balance.confirmed + balance.unconfirmed, coins.iter().map(|coin| coin.value).sum::<i64>());
    let placed: Vec<_> =
        coins.into_iter().map(|coin| (coin, (coin.height > 0).then(|| model.place(coin.height)))).collect();
    assert_eq!(query.placed_coins(&hash).unwrap(), placed, "coins with blocks {}", label());
    assert_eq!(query.stats(&hash).unwrap(), model.stats(script), "sums {}", label());
}

/// Headers, proofs and positions of blocks.
fn compare_chain(query: &Query, model: &Model, random: &mut SplitMix64, extent: Extent) {
    let (tip, header) = query.tip().unwrap();
    assert_eq!((tip, header), (model.tip(), *model.blocks.last().unwrap().header()));
    let first = random.below(extent.txids);
    for (height, block) in (0..).zip(&model.blocks).skip(first).step_by(extent.txids) {
        assert_eq!(query.header(height).unwrap(), *block.header());
        assert_eq!(query.place(height).unwrap(), model.place(height));
        for (position, tx) in block.txs().enumerate() {
            let expected = model.merkle(height, position);
            let position = u32::try_from(position).unwrap();
            assert_eq!(query.merkle_at(height, position).unwrap(), (tx.txid(), expected.clone()));
            assert_eq!(query.merkle(&tx.txid(), height).unwrap(), expected, "{} at {height}", tx.txid());
        }
        let transactions = block.tx_count();
        let position = u32::try_from(transactions).unwrap();
        let beyond = QueryError::NoPosition { height, position, transactions };
        assert_eq!(query.merkle_at(height, position), Err(beyond));
        let txid = Txid([9; 32]);
        assert_eq!(query.merkle(&txid, height), Err(QueryError::NotInBlock { txid, height }));
        let last = height + u32::try_from(random.below(model.blocks.len() - height as usize)).unwrap();
        assert_eq!(query.header_proof(height, last).unwrap(), model.header_proof(height, last), "{height} in {last}");
    }
    let all: Vec<_> = model.blocks.iter().map(|block| *block.header()).collect();
    assert_eq!(query.headers(0, all.len() + 1).unwrap(), all);
    let from = random.below(all.len());
    assert_eq!(query.headers(u32::try_from(from).unwrap(), 7).unwrap(), all[from..all.len().min(from + 7)]);
    let above = QueryError::NoHeight { height: tip + 1, tip };
    assert_eq!(query.header(tip + 1), Err(above.clone()));
    assert_eq!(query.place(tip + 1), Err(above.clone()));
    assert_eq!(query.merkle_at(tip + 1, 0), Err(above.clone()));
    assert_eq!(query.merkle(&Txid([9; 32]), tip + 1), Err(above));
    for (height, last) in [(0, tip + 1), (1, 0), (tip + 1, tip + 1)] {
        assert_eq!(query.header_proof(height, last), Err(QueryError::ProofHeight { height, last, tip }));
    }
}

/// The mempool as a whole.
fn compare_pool(query: &Query, model: &Model) {
    let pool = query.pool();
    let txids: BTreeSet<Txid> = pool.txids().into_iter().collect();
    assert_eq!(txids, model.pool().map(|row| row.txid).collect());
    let totals = pool.totals();
    let fees: i64 = model.pool().map(|row| model.fee(row)).sum();
    assert_eq!((totals.count, totals.fee), (txids.len(), fees));
    let histogram = query.fee_histogram();
    assert_eq!(histogram.iter().map(|(_, vsize)| vsize).sum::<i64>(), totals.vsize);
    assert!(histogram.windows(2).all(|pair| pair[0].0 > pair[1].0), "{histogram:?}");
    let recent = pool.recent(usize::MAX);
    assert_eq!(recent.len(), txids.len());
    for row in &recent {
        assert_eq!(row.fee, model.fee(model.find(&row.txid).unwrap()));
    }
    for row in model.pool() {
        let is_chained = model.height_of(row) == -1;
        let (tx, chained) = pool.transaction(&row.txid).unwrap();
        assert_eq!((tx.as_bytes(), chained), (row.bytes.as_slice(), is_chained));
        let spenders = pool.spenders(&row.prevouts);
        assert!(spenders.iter().all(|spender| *spender == Some((row.txid, is_chained))), "{spenders:?}");
    }
    assert_eq!(pool.spenders(&[OutPoint { txid: Txid([9; 32]), vout: 0 }]), [None]);
}
