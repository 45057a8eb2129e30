//! [`NodePool`]: the mempool of this node by script.
//!
//! Input: the feed of the mempool's changes, with the coins that each transaction spends. Output: what its transactions
//! do with a script. The rows are brought to the latest snapshot of the mempool before each answer; if the feed no
//! longer has the changes since the last one, they are made anew from the snapshot and the coins of the chain.

use crate::error::QueryError;
use crate::rows::{PoolRows, Unseen};
use crate::source::{FeeRow, Pool, PoolFees, PoolScript, PoolTotals, PoolTouched};
use lydian_engine::Engine;
use lydian_fees::{Horizon, Mode};
use lydian_index::ScriptHash;
use lydian_mempool::Mempool;
use lydian_mempool::pool::{Change, ChangeKind, Entry, Snapshot};
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid};
use lydian_stdx::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The mempool by script.
#[derive(Debug)]
pub struct NodePool {
    mempool: Arc<Mempool>,
    /// Weak, since what has this may outlive the engine.
    engine: Weak<Engine>,
    rows: Mutex<Rows>,
}

/// The rows at the sequence number `next` of the mempool.
#[derive(Debug, Default)]
struct Rows {
    /// `None`: there are none yet.
    next: Option<u64>,
    rows: PoolRows,
    touched: Unseen,
}

/// Changes that are read at once.
const CHANGES_AT_ONCE: usize = 1_000;

/// How often rows are made anew.
const TRIES_MAX: u32 = 20;

impl NodePool {
    pub fn new(mempool: &Arc<Mempool>, engine: &Arc<Engine>) -> NodePool {
        NodePool { mempool: Arc::clone(mempool), engine: Arc::downgrade(engine), rows: Mutex::default() }
    }

    /// Brings the rows to the latest snapshot, and runs `look` on both.
    fn with<T>(&self, look: impl FnOnce(&mut Rows, &Snapshot) -> T) -> Result<T, QueryError> {
        let mut rows = lock(&self.rows);
        for _ in 0..TRIES_MAX {
            let snapshot = self.mempool.snapshot();
            if rows.follow(&self.mempool, &snapshot) || rows.make(&self.engine, &snapshot)? {
                return Ok(look(&mut rows, &snapshot));
            }
            // A block took some of its transactions: the next snapshot is without them.
            self.mempool.feed().wait(snapshot.info().sequence, Duration::from_millis(10));
        }
        Err(QueryError::Moving)
    }
}

impl Rows {
    /// Applies the changes up to a snapshot. False if the feed does not have them any more.
    fn follow(&mut self, mempool: &Mempool, snapshot: &Snapshot) -> bool {
        let Some(mut next) = self.next else { return false };
        let end = snapshot.info().sequence;
        while next < end {
            let count = CHANGES_AT_ONCE.min(usize::try_from(end - next).unwrap_or(usize::MAX));
            let changes = match mempool.feed().read(next, count) {
                Ok(changes) if !changes.is_empty() => changes,
                Ok(_) | Err(_) => return false,
            };
            next += changes.len() as u64;
            for change in &changes {
                self.apply(change, snapshot);
            }
        }
        self.next = Some(next);
        true
    }

    fn apply(&mut self, change: &Change, snapshot: &Snapshot) {
        let tx = change.entry.tx().view();
        let txid = tx.txid();
        match &change.kind {
            ChangeKind::Added { spent } => {
                let spent = spent.iter().map(|coin| (ScriptHash::of(&coin.script_pubkey), coin.value.0));
                self.rows.add(tx, spent.collect());
                self.touched.add(tx, self.rows.scripts(&txid));
            }
            ChangeKind::Removed { .. } => {
                let scripts = self.rows.remove(&txid);
                self.touched.add(tx, scripts.as_ref());
            }
        }
        // Whether its children have an unconfirmed input may be another.
        for vout in 0..u32::try_from(tx.output_count()).unwrap_or(0) {
            if let Some(child) = snapshot.spender(&OutPoint { txid, vout }) {
                self.touched.add(child.tx().view(), self.rows.scripts(&child.txid()));
            }
        }
    }

    /// Makes the rows of a snapshot. False if some of its coins are missing: the chain has moved on.
    fn make(&mut self, engine: &Weak<Engine>, snapshot: &Snapshot) -> Result<bool, QueryError> {
        let engine = engine.upgrade().ok_or(QueryError::Stopping)?;
        let mut entries: Vec<&Arc<Entry>> = snapshot.members().map(|member| member.entry()).collect();
        // In the order in which they came, as when changes are followed; the snapshot has none.
        entries.sort_unstable_by_key(|entry| (entry.sequence(), entry.time()));
        let in_pool = |outpoint: &OutPoint| {
            let parent = snapshot.get(&outpoint.txid)?.entry().tx().view();
            let output = parent.outputs().nth(outpoint.vout as usize)?;
            Some((ScriptHash::of(output.script_pubkey), output.value.0))
        };
        let prevouts = || entries.iter().flat_map(|entry| entry.tx().view().inputs().map(|input| input.prevout));
        let outside: Vec<OutPoint> = prevouts().filter(|outpoint| snapshot.get(&outpoint.txid).is_none()).collect();
        let (tip, coins) = engine.coins_now(&outside)?;
        // Without coins to look up, it does not matter of which block they are.
        if !outside.is_empty() && tip != snapshot.info().tip || coins.iter().any(Option::is_none) {
            return Ok(false);
        }
        let coins = outside.into_iter().zip(coins);
        let coins: HashMap<OutPoint, (ScriptHash, i64)> = coins
            .filter_map(|(outpoint, coin)| coin.map(|coin| (outpoint, coin)))
            .map(|(outpoint, coin)| (outpoint, (ScriptHash::of(&coin.script_pubkey), coin.value.0)))
            .collect();
        *self = Rows { touched: Unseen::all(), ..Rows::default() };
        for entry in &entries {
            let spent = entry.tx().view().inputs().map(|input| input.prevout);
            let spent: Option<Vec<(ScriptHash, i64)>> =
                spent.map(|outpoint| in_pool(&outpoint).or_else(|| coins.get(&outpoint).copied())).collect();
            let Some(spent) = spent else { return Ok(false) };
            self.rows.add(entry.tx().view(), spent);
        }
        self.next = Some(snapshot.info().sequence);
        Ok(true)
    }
}

fn fee_row(entry: &Entry) -> FeeRow {
    FeeRow { txid: entry.txid(), fee: entry.fee().0, vsize: i64::from(entry.vsize()) }
}

fn is_chained(snapshot: &Snapshot, entry: &Entry) -> bool {
    !snapshot.parents(entry).is_empty()
}

impl Pool for NodePool {
    fn of_script(&self, script: &ScriptHash) -> Result<PoolScript, QueryError> {
        self.with(|rows, snapshot| {
            let look = |txid: &Txid| {
                let entry = snapshot.get(txid)?.entry();
                Some((fee_row(entry), is_chained(snapshot, entry)))
            };
            let transactions = rows.rows.of_script(script, look);
            PoolScript { tip: Some(snapshot.info().tip), transactions }
        })
    }

    fn spenders(&self, outpoints: &[OutPoint]) -> Vec<Option<(Txid, bool)>> {
        let snapshot = self.mempool.snapshot();
        let spender = |outpoint: &OutPoint| {
            let entry = snapshot.spender(outpoint)?;
            Some((entry.txid(), is_chained(&snapshot, entry)))
        };
        outpoints.iter().map(spender).collect()
    }

    fn transaction(&self, txid: &Txid) -> Option<(Arc<Transaction>, bool)> {
        let snapshot = self.mempool.snapshot();
        let entry = snapshot.get(txid)?.entry();
        Some((Arc::clone(entry.tx()), is_chained(&snapshot, entry)))
    }

    fn fees(&self) -> PoolFees {
        let settings = self.mempool.settings();
        let relay = settings.min_relay_fee;
        PoolFees {
            min: self.mempool.min_fee_at_once().max(relay).fee_per_kvb(),
            relay: relay.fee_per_kvb(),
            incremental: settings.incremental_relay_fee.fee_per_kvb(),
        }
    }

    fn estimate(&self, target: u32, is_conservative: bool) -> Option<i64> {
        let mode = if is_conservative { Mode::Conservative } else { Mode::Economical };
        let estimates = self.mempool.fees()?;
        let target = target.clamp(1, estimates.highest_target(Horizon::Long));
        let feerate = estimates.smart(target, mode).feerate?;
        Some(feerate.max(self.fees().min))
    }

    fn totals(&self) -> PoolTotals {
        let snapshot = self.mempool.snapshot();
        let entries = snapshot.members().map(|member| member.entry());
        entries.fold(PoolTotals::default(), |PoolTotals { count, vsize, fee }, entry| PoolTotals {
            count: count + 1,
            vsize: vsize + i64::from(entry.vsize()),
            fee: fee + entry.fee().0,
        })
    }

    fn txids(&self) -> Vec<Txid> {
        self.mempool.snapshot().members().map(|member| member.entry().txid()).collect()
    }

    fn chunks(&self) -> Vec<(i64, i64)> {
        let snapshot = self.mempool.snapshot();
        let sums = |chunk: lydian_mempool::pool::PoolChunk<'_>| {
            let sum = |(fees, sizes): (i64, i64), entry: &Arc<Entry>| {
                (fees + entry.fee().0, sizes + i64::from(entry.vsize()))
            };
            chunk.entries().fold((0, 0), sum)
        };
        snapshot.chunks_in_mining_order().map(sums).collect()
    }

    fn recent(&self, count: usize) -> Vec<FeeRow> {
        let snapshot = self.mempool.snapshot();
        let mut entries: Vec<&Arc<Entry>> = snapshot.members().map(|member| member.entry()).collect();
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse((entry.sequence(), entry.time())));
        entries.into_iter().take(count).map(|entry| fee_row(entry)).collect()
    }

    fn take_touched(&self) -> Result<PoolTouched, QueryError> {
        self.with(|rows, _| rows.touched.take())
    }

    fn wait(&self, timeout: Duration) {
        let next = lock(&self.rows).next.unwrap_or(0);
        self.mempool.feed().wait(next, timeout);
        // During a reorganisation the feed has changes long before a snapshot does.
        let last = self.mempool.feed().next();
        if last > next && self.mempool.snapshot().info().sequence <= next {
            self.mempool.feed().wait(last, timeout);
        }
    }

    fn wait_for(&self, tip: &BlockHash) {
        // If it takes too long, the caller tries again.
        let _ = self.mempool.wait_for(tip);
    }
}
