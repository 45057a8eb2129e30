//! [`Query`]: one view of chain, index and mempool.
//!
//! An answer about a script is computed from the index's outputs and from the mempool on top of the same block. If
//! blocks left the index while it was computed, it is computed again (`docs/adr/0017-one-view-for-each-question.md`).

use crate::error::QueryError;
use crate::merkle::{HeaderTree, MerkleProof, Trees};
use crate::sizes::Sizes;
use crate::source::{Calls, Chain, FeeRow, Located, Numbered, Pool, PoolRow, PoolScript, ScriptIndex};
use crate::status::Statuses;
use crate::sums::Sums;
use crate::undo::Undos;
use lydian_engine::Tip;
use lydian_index::{OutputFate, ScriptHash, ScriptOutput};
use lydian_primitives::{BlockHash, Header, Height, OutPoint, Transaction, Txid};
use std::collections::HashSet;
use std::sync::Arc;

/// What [`Query`] reads.
#[derive(Clone, Debug)]
pub struct Settings {
    pub chain: Arc<dyn Chain>,
    /// Otherwise, the error of every question about scripts.
    pub index: Result<Arc<dyn ScriptIndex>, QueryError>,
    pub pool: Arc<dyn Pool>,
}

/// What a server answers from.
#[derive(Clone, Debug)]
pub struct Source {
    pub query: Arc<Query>,
    /// The same answers for a thread that must not wait for peers: see [`crate::NodeChain::without_waiting`].
    pub prompt: Arc<Query>,
    pub calls: Arc<dyn Calls>,
    /// Whether answers wait for other machines, so that more threads than cores are of use.
    pub is_remote: bool,
}

/// Answers questions, from any thread.
#[derive(Debug)]
pub struct Query {
    sources: Settings,
    pub(crate) kept: Arc<Caches>,
}

/// What answers keep for the next ones.
#[derive(Debug)]
pub(crate) struct Caches {
    trees: Trees,
    headers: HeaderTree,
    pub(crate) sums: Sums,
    pub(crate) statuses: Statuses,
    pub(crate) sizes: Sizes,
    pub(crate) undos: Undos,
}

/// A transaction of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    pub txid: Txid,
    pub height: u32,
}

/// A transaction of the mempool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolEntry {
    pub txid: Txid,
    /// In satoshis.
    pub fee: i64,
    /// One of its inputs is unconfirmed.
    pub has_unconfirmed_input: bool,
}

impl PoolEntry {
    /// The height in the Electrum protocol.
    pub fn height(&self) -> i64 {
        if self.has_unconfirmed_input { -1 } else { 0 }
    }
}

/// An unspent output of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coin {
    pub txid: Txid,
    pub vout: u32,
    /// In satoshis.
    pub value: i64,
    /// 0: in the mempool.
    pub height: u32,
}

/// The sum of a script's unspent outputs, in satoshis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub confirmed: i64,
    /// What the mempool adds to it, which may be negative.
    pub unconfirmed: i64,
}

/// What is known of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutpointStatus {
    /// The height of its transaction: 0 or -1 in the mempool.
    pub funder_height: Option<i64>,
    /// The transaction that spends it, and its height.
    pub spender: Option<(Txid, i64)>,
}

/// How often an answer is tried.
pub(crate) const TRIES_MAX: u32 = 20;

/// Blocks that arrive while an answer is tried: a sync is under way.
const MANY_BLOCKS: u32 = 3;

/// Confirmed outputs and what the mempool has, on the same block.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) outputs: Vec<ScriptOutput>,
    pub(crate) pool: PoolScript,
    /// The block of the outputs.
    pub(crate) tip: Option<Tip>,
    pub(crate) epoch: u64,
}

impl Query {
    pub fn new(sources: Settings) -> Query {
        let (trees, headers) = (Trees::default(), HeaderTree::default());
        let (sums, statuses, sizes, undos) = (Sums::new(), Statuses::new(), Sizes::default(), Undos::default());
        let caches = Caches { trees, headers, sums, statuses, sizes, undos };
        Query { sources, kept: Arc::new(caches) }
    }

    /// The same chain, index and mempool read in another way. Both keep together what they compute.
    pub fn through(&self, sources: Settings) -> Query {
        Query { sources, kept: Arc::clone(&self.kept) }
    }

    pub fn chain(&self) -> &dyn Chain {
        self.sources.chain.as_ref()
    }

    pub fn pool(&self) -> &dyn Pool {
        self.sources.pool.as_ref()
    }

    /// The index of scripts.
    pub fn index(&self) -> Result<&dyn ScriptIndex, QueryError> {
        self.sources.index.as_deref().map_err(Clone::clone)
    }

    /// Computes an answer from one view.
    pub(crate) fn with_view<T>(
        &self,
        script: &ScriptHash,
        make: impl Fn(&dyn ScriptIndex, View) -> Result<Option<T>, QueryError>,
    ) -> Result<T, QueryError> {
        let index = self.index()?;
        index.check()?;
        let mut first = None;
        for tries in 1..=TRIES_MAX {
            let mut pool = self.sources.pool.of_script(script)?;
            let found = index.outputs(script)?;
            if pool.tip != found.tip {
                let height = found.tip.map_or(0, |tip| tip.height.0);
                let many_blocks = height >= *first.get_or_insert(height) + MANY_BLOCKS;
                if tries < TRIES_MAX && !many_blocks {
                    self.wait_for_agreement(index, pool.tip, found.tip);
                    continue;
                }
                if !many_blocks {
                    return Err(QueryError::Moving);
                }
                // One of the two is always behind during a sync; wallets are notified when both agree (ADR 17).
                pool = PoolScript::default();
            }
            let answer = make(index, View { outputs: found.outputs, pool, tip: found.tip, epoch: found.epoch })?;
            if let Some(answer) = answer.filter(|_| index.epoch() == found.epoch) {
                return Ok(answer);
            }
        }
        Err(QueryError::Moving)
    }

    /// Computes an answer again if blocks left the index meanwhile, or if there is none.
    pub(crate) fn steady<T>(
        &self,
        make: impl Fn(&dyn ScriptIndex) -> Result<Option<T>, QueryError>,
    ) -> Result<T, QueryError> {
        let index = self.index()?;
        for _ in 0..TRIES_MAX {
            let epoch = index.epoch();
            let answer = make(index)?;
            if let Some(answer) = answer.filter(|_| index.epoch() == epoch) {
                return Ok(answer);
            }
        }
        Err(QueryError::Moving)
    }

    /// Waits a moment for the one of index and mempool that is behind.
    fn wait_for_agreement(&self, index: &dyn ScriptIndex, of_pool: Option<Tip>, of_index: Option<Tip>) {
        let height = |tip: Option<Tip>| tip.map(|tip| tip.height);
        match (of_pool, of_index) {
            (_, Some(tip)) if height(of_index) >= height(of_pool) => self.sources.pool.wait_for(&tip.hash),
            (Some(tip), _) => index.wait_for(tip.height),
            (None, _) => {}
        }
    }

    /// The transactions of the mempool that pay to a script or spend from it.
    pub fn pool_history(&self, script: &ScriptHash) -> Result<Vec<PoolEntry>, QueryError> {
        Ok(entries_of(&self.sources.pool.of_script(script)?))
    }

    /// The first transaction of a script in the chain.
    pub fn first_use(&self, script: &ScriptHash) -> Result<Option<Confirmed>, QueryError> {
        self.with_view(script, |index, view| {
            let first: Vec<u32> = transactions_of(&view.outputs).into_iter().take(1).collect();
            Ok(all_of(index.numbered(&first)?).map(|found| found.first().copied()))
        })
    }

    pub fn balance(&self, script: &ScriptHash) -> Result<Balance, QueryError> {
        self.with_view(script, |_, view| {
            let value = |output: &ScriptOutput| match output.fate {
                OutputFate::Unspent(value) => i64::try_from(value).unwrap_or(i64::MAX),
                OutputFate::Spent(_) | OutputFate::Overwritten => 0,
            };
            let change = |row: &PoolRow| match *row {
                PoolRow::Pays { value, .. } => value,
                PoolRow::Spends { value, .. } => -value,
            };
            let rows = view.pool.transactions.iter().flat_map(|(_, _, rows)| rows);
            let (confirmed, unconfirmed) = (view.outputs.iter().map(value).sum(), rows.map(change).sum());
            Ok(Some(Balance { confirmed, unconfirmed }))
        })
    }

    /// A transaction of the mempool or of the chain.
    pub fn transaction(&self, txid: &Txid) -> Result<Arc<Transaction>, QueryError> {
        let found = self.in_either(|| {
            if let Some((tx, _)) = self.sources.pool.transaction(txid) {
                return Ok(Some(tx));
            }
            // It may have left the mempool with a block meanwhile.
            Ok(self.find(txid)?.map(|(_, _, tx)| Arc::new(tx)))
        })?;
        found.ok_or(QueryError::NoTransaction(*txid))
    }

    pub(crate) fn find(&self, txid: &Txid) -> Result<Option<(u32, u32, Transaction)>, QueryError> {
        Ok(self.locate(txid)?.map(|found| (found.number, found.block.height, found.tx)))
    }

    /// A transaction of the chain, with its block.
    pub(crate) fn locate(&self, txid: &Txid) -> Result<Option<Located>, QueryError> {
        let index = self.index()?;
        for _ in 0..TRIES_MAX {
            let epoch = index.epoch();
            let found = index.locate(txid)?;
            if index.epoch() != epoch {
                continue;
            }
            if found.is_none() {
                // What is not found may be in a block that the index does not have yet.
                index.check()?;
            }
            return Ok(found);
        }
        Err(QueryError::Moving)
    }

    /// Looks in the mempool, then in the chain. What is in neither may be in a block that only one of the two has left,
    /// or has: it is looked for again, until both are on one block. During a sync one of them is always behind.
    fn in_either<T>(&self, look: impl Fn() -> Result<Option<T>, QueryError>) -> Result<Option<T>, QueryError> {
        let mut first = None;
        for _ in 0..TRIES_MAX {
            if let Some(found) = look()? {
                return Ok(Some(found));
            }
            let (of_pool, of_chain) = (self.pool_tip()?, self.sources.chain.tip()?);
            let height = of_chain.height.0;
            let many_blocks = height >= *first.get_or_insert(height) + MANY_BLOCKS;
            if of_pool.is_none_or(|tip| tip == of_chain) || many_blocks {
                return Ok(None);
            }
            self.wait_for_agreement(self.index()?, of_pool, Some(of_chain));
        }
        Err(QueryError::Moving)
    }

    /// The height of a transaction: 0 or -1 in the mempool. `None` if there is none.
    pub fn height_of(&self, txid: &Txid) -> Result<Option<i64>, QueryError> {
        self.in_either(|| {
            if let Some((_, has_unconfirmed_input)) = self.sources.pool.transaction(txid) {
                return Ok(Some(if has_unconfirmed_input { -1 } else { 0 }));
            }
            Ok(self.find(txid)?.map(|(_, height, _)| i64::from(height)))
        })
    }

    /// The script of an output, by its hash.
    pub fn script_of(&self, outpoint: &OutPoint) -> Result<Option<ScriptHash>, QueryError> {
        let tx = match self.transaction(&outpoint.txid) {
            Ok(tx) => tx,
            Err(QueryError::NoTransaction(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let output = tx.view().outputs().nth(outpoint.vout as usize);
        Ok(output.map(|output| ScriptHash::of(output.script_pubkey)))
    }

    /// What is known of an output: nothing if it does not exist.
    pub fn outpoint(&self, outpoint: &OutPoint) -> Result<OutpointStatus, QueryError> {
        Ok(self.in_either(|| self.known_outpoint(outpoint))?.unwrap_or_default())
    }

    /// `None` if its transaction is in neither mempool nor chain.
    fn known_outpoint(&self, outpoint: &OutPoint) -> Result<Option<OutpointStatus>, QueryError> {
        let index = self.index()?;
        let spender = |outpoint| self.sources.pool.spenders(&[outpoint]).pop().flatten();
        let unconfirmed = |found: (Txid, bool)| (found.0, if found.1 { -1 } else { 0 });
        if let Some((tx, has_unconfirmed_input)) = self.sources.pool.transaction(&outpoint.txid) {
            if outpoint.vout as usize >= tx.view().output_count() {
                return Ok(Some(OutpointStatus::default()));
            }
            let funder_height = Some(if has_unconfirmed_input { -1 } else { 0 });
            return Ok(Some(OutpointStatus { funder_height, spender: spender(*outpoint).map(unconfirmed) }));
        }
        let Some((number, height, tx)) = self.find(&outpoint.txid)? else { return Ok(None) };
        let Some(output) = tx.view().outputs().nth(outpoint.vout as usize) else {
            return Ok(Some(OutpointStatus::default()));
        };
        // The mempool first: what leaves it for a block meanwhile is found there.
        let in_pool = spender(*outpoint).map(unconfirmed);
        let script = ScriptHash::of(output.script_pubkey);
        let confirmed = self.steady(|index| {
            let fate = index.fates(&script, &[(number, outpoint.vout)])?.pop().flatten();
            let Some(OutputFate::Spent(by)) = fate else { return Ok(Some(None)) };
            Ok(all_of(index.numbered(&[by])?).map(|found| found.first().copied()))
        })?;
        let spender = confirmed.map(|tx| (tx.txid, i64::from(tx.height))).or(in_pool);
        index.check()?;
        Ok(Some(OutpointStatus { funder_height: Some(i64::from(height)), spender }))
    }

    /// The block that may be announced, with its header.
    pub fn tip(&self) -> Result<(u32, Header), QueryError> {
        for _ in 0..TRIES_MAX {
            let Tip { height, hash } = self.sources.chain.tip()?;
            let header = self.sources.chain.headers(height, 1)?.pop();
            if let Some(header) = header.filter(|header| header.hash() == hash) {
                return Ok((height.0, header));
            }
        }
        Err(QueryError::Moving)
    }

    /// The block on which the mempool stands.
    pub fn pool_tip(&self) -> Result<Option<Tip>, QueryError> {
        // No script has this hash: only the block is asked for.
        Ok(self.sources.pool.of_script(&ScriptHash([0; 32]))?.tip)
    }

    /// Headers from a height on; fewer at the tip.
    pub fn headers(&self, from: u32, count: usize) -> Result<Vec<Header>, QueryError> {
        self.sources.chain.headers(Height(from), count)
    }

    pub fn header(&self, height: u32) -> Result<Header, QueryError> {
        let found = self.headers(height, 1)?.pop();
        match found {
            Some(header) => Ok(header),
            None => Err(QueryError::NoHeight { height, tip: self.sources.chain.tip()?.height.0 }),
        }
    }

    /// The proof of a header in the tree of the headers up to a height.
    pub fn header_proof(&self, height: u32, last: u32) -> Result<MerkleProof, QueryError> {
        let tip = self.sources.chain.tip()?.height.0;
        if height > last || last > tip {
            return Err(QueryError::ProofHeight { height, last, tip });
        }
        self.kept.headers.proof(self.sources.chain.as_ref(), height, last)
    }

    /// The proof of a transaction in the block at a height.
    pub fn merkle(&self, txid: &Txid, height: u32) -> Result<MerkleProof, QueryError> {
        let tree = self.kept.trees.get(self.sources.chain.as_ref(), Height(height))?;
        let position = tree.leaves().iter().position(|leaf| *leaf == txid.0);
        let proof = position.and_then(|position| tree.proof(position));
        proof.ok_or(QueryError::NotInBlock { txid: *txid, height })
    }

    /// The transaction at a position of a block, with its proof.
    pub fn merkle_at(&self, height: u32, position: u32) -> Result<(Txid, MerkleProof), QueryError> {
        let tree = self.kept.trees.get(self.sources.chain.as_ref(), Height(height))?;
        let leaf = tree.leaves().get(position as usize).copied();
        let transactions = tree.leaves().len();
        let proof = leaf.zip(tree.proof(position as usize));
        let (leaf, proof) = proof.ok_or(QueryError::NoPosition { height, position, transactions })?;
        Ok((Txid(leaf), proof))
    }

    /// The hash of the block of the chain with a transaction, and its height; `None` for one of the mempool.
    pub fn block_of(&self, txid: &Txid) -> Result<Option<(BlockHash, u32)>, QueryError> {
        // The mempool first, as everywhere: what leaves it for a block meanwhile is found there.
        if self.sources.pool.transaction(txid).is_some() {
            return Ok(None);
        }
        let Located { block, .. } = self.locate(txid)?.ok_or(QueryError::NoTransaction(*txid))?;
        Ok(Some((block.hash, block.height)))
    }
}

/// The numbers of the transactions that pay to a script or spend from it, in the order of the chain. An output that was
/// overwritten is that of a transaction that is in the chain again, under the same txid.
pub(crate) fn transactions_of(outputs: &[ScriptOutput]) -> Vec<u32> {
    let mut numbers = Vec::with_capacity(outputs.len());
    for output in outputs {
        match output.fate {
            OutputFate::Overwritten => continue,
            OutputFate::Spent(spender) => numbers.push(spender),
            OutputFate::Unspent(_) => {}
        }
        numbers.push(output.number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// `None` if one of them is missing: the chain moved.
pub(crate) fn all_of(numbered: Vec<Option<Numbered>>) -> Option<Vec<Confirmed>> {
    numbered.into_iter().map(|found| found.map(|Numbered { txid, height }| Confirmed { txid, height })).collect()
}

pub(crate) fn entries_of(pool: &PoolScript) -> Vec<PoolEntry> {
    let entry = |(row, has_unconfirmed_input, _): &(FeeRow, bool, Vec<PoolRow>)| PoolEntry {
        txid: row.txid,
        fee: row.fee,
        has_unconfirmed_input: *has_unconfirmed_input,
    };
    let mut entries: Vec<PoolEntry> = pool.transactions.iter().map(entry).collect();
    entries.sort_unstable_by_key(|entry| order_of(entry.has_unconfirmed_input, &entry.txid));
    entries
}

/// The protocol's order of unconfirmed transactions.
fn order_of(has_unconfirmed_input: bool, txid: &Txid) -> (bool, [u8; 32]) {
    let mut written = txid.0;
    written.reverse();
    (has_unconfirmed_input, written)
}

/// What the mempool pays and does not spend.
pub(crate) fn coins_of_pool(pool: &PoolScript, spent: &HashSet<OutPoint>) -> Vec<Coin> {
    let rows = pool.transactions.iter().flat_map(|(tx, chained, rows)| rows.iter().map(move |row| (tx, chained, row)));
    let mut paid: Vec<((bool, [u8; 32]), Coin)> = rows
        .filter_map(|(tx, chained, row)| match *row {
            PoolRow::Pays { vout, value } => {
                Some((order_of(*chained, &tx.txid), Coin { txid: tx.txid, vout, value, height: 0 }))
            }
            PoolRow::Spends { .. } => None,
        })
        .filter(|(_, coin)| !spent.contains(&OutPoint { txid: coin.txid, vout: coin.vout }))
        .collect();
    paid.sort_unstable_by_key(|(order, coin)| (*order, coin.vout));
    paid.into_iter().map(|(_, coin)| coin).collect()
}
