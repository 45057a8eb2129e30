//! The right answers, by going through all transactions of the chain and of the mempool in their order. Input: the
//! blocks of the active chain, and the transactions of the mempool in the order in which they came. Output: what a
//! query must answer. Nothing is kept from one state to the next.

use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_hash::{sha256, sha256d};
use lydian_primitives::{Block, Height, OutPoint, Transaction, Tx, Txid};
use lydian_query::{
    Balance, BlockPlace, Coin, Confirmed, History, MerkleProof, OutpointStatus, PoolEntry, ScriptStats, Spending,
    SpentOutput,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

pub type Script = Vec<u8>;

/// A transaction of the chain or of the mempool.
#[derive(Debug)]
pub struct Row {
    pub txid: Txid,
    pub bytes: Vec<u8>,
    /// `None`: in the mempool.
    pub height: Option<u32>,
    /// The outputs that can be spent: index, value and script.
    pub pays: Vec<(u32, i64, Script)>,
    /// For each input, the row and the index of the output that it spends; `None` for that of a coinbase.
    pub spends: Vec<Option<(usize, u32)>>,
    pub prevouts: Vec<OutPoint>,
    /// Values and scripts of all outputs.
    pub outputs: Vec<(i64, Script)>,
}

/// One state of chain and mempool.
#[derive(Debug)]
pub struct Model {
    pub blocks: Vec<Block>,
    pub rows: Vec<Row>,
    /// The rows of each script, in their order.
    of_script: BTreeMap<Script, Vec<usize>>,
    /// The row that spends an output of a row.
    spenders: HashMap<(usize, u32), usize>,
    /// The last row of each txid: that of the mempool, or the highest one of the chain.
    last: HashMap<Txid, usize>,
}

fn is_unspendable(script: &[u8]) -> bool {
    script.first() == Some(&0x6a) || script.len() > 10_000
}

impl Model {
    pub fn new(blocks: &[Block], pool: &[Arc<Transaction>]) -> Model {
        let mut model = Model {
            blocks: blocks.to_vec(),
            rows: Vec::new(),
            of_script: BTreeMap::new(),
            spenders: HashMap::new(),
            last: HashMap::new(),
        };
        for (height, block) in (0..).zip(blocks) {
            // The coin of the genesis block does not exist, and those of two blocks of 2010 were overwritten.
            let has_coins = height > 0 && !is_bip30_unspendable(Height(height), &block.hash());
            for tx in block.txs() {
                let at = model.push(tx, Some(height), has_coins);
                model.relate(at);
            }
        }
        // A transaction that returns from a block comes after those that spend from it.
        let pool: Vec<usize> = pool.iter().map(|tx| model.push(tx.view(), None, true)).collect();
        for at in pool {
            model.relate(at);
        }
        model
    }

    fn push(&mut self, tx: Tx<'_>, height: Option<u32>, has_coins: bool) -> usize {
        let outputs: Vec<(i64, Script)> =
            tx.outputs().map(|output| (output.value.0, output.script_pubkey.to_vec())).collect();
        let pays: Vec<(u32, i64, Script)> = (0..)
            .zip(&outputs)
            .filter(|(_, (_, script))| has_coins && !is_unspendable(script))
            .map(|(vout, (value, script))| (vout, *value, script.clone()))
            .collect();
        let prevouts: Vec<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
        let (txid, bytes) = (tx.txid(), tx.bytes().to_vec());
        self.last.insert(txid, self.rows.len());
        self.rows.push(Row { txid, bytes, height, pays, spends: Vec::new(), prevouts, outputs });
        self.rows.len() - 1
    }

    /// Finds what a row spends, and the scripts of a row.
    fn relate(&mut self, at: usize) {
        let row = &self.rows[at];
        let spent = |prevout: &OutPoint| (!prevout.is_null()).then(|| (self.last[&prevout.txid], prevout.vout));
        let spends: Vec<Option<(usize, u32)>> = row.prevouts.iter().map(spent).collect();
        let mut scripts: Vec<Script> = row.pays.iter().map(|(_, _, script)| script.clone()).collect();
        for spent in spends.iter().flatten() {
            assert_eq!(self.spenders.insert(*spent, at), None, "an output is spent once");
            scripts.push(self.rows[spent.0].outputs[spent.1 as usize].1.clone());
        }
        self.rows[at].spends = spends;
        scripts.sort();
        scripts.dedup();
        for script in scripts {
            self.of_script.entry(script).or_default().push(at);
        }
    }

    pub fn scripts(&self) -> impl Iterator<Item = &Script> {
        self.of_script.keys()
    }

    /// What is special about this state, so that a test can check that it has covered everything.
    pub fn kinds(&self) -> BTreeSet<&'static str> {
        let mut kinds = BTreeSet::new();
        let mut heights: HashMap<Txid, Option<u32>> = HashMap::new();
        for row in &self.rows {
            if let Some(other) = heights.insert(row.txid, row.height).filter(|_| !row.pays.is_empty()) {
                let in_chain = row.height.is_some() && other.is_some();
                let is_coinbase = row.spends.iter().all(Option::is_none);
                kinds.insert(match (in_chain, is_coinbase) {
                    (true, true) => "a coinbase that is repeated",
                    (true, false) => "a transaction that is repeated",
                    (false, _) => "a transaction that is repeated in the mempool",
                });
            }
            let of_same = |(parent, _): &(usize, u32)| self.rows[*parent].height == row.height;
            if row.spends.iter().flatten().any(of_same) {
                kinds.insert(if row.height.is_some() { "spent in its own block" } else { "chained in the mempool" });
            }
            let mut scripts: Vec<&Script> = row.pays.iter().map(|(.., script)| script).collect();
            scripts.sort();
            if scripts.chunk_by(|one, other| one == other).any(|same| same.len() > 1) {
                kinds.insert("several outputs to one script");
            }
            if scripts.chunk_by(|one, other| one == other).any(|same| same.len() >= 200) {
                kinds.insert("hundreds of outputs to one script");
            }
            if row.outputs.iter().any(|(_, script)| script.len() > 10_000) {
                kinds.insert("an output that is too large to be spent");
            }
        }
        kinds
    }

    pub fn tip(&self) -> u32 {
        u32::try_from(self.blocks.len() - 1).unwrap()
    }

    /// The rows of a script, those of the chain first.
    fn of<'a>(&'a self, script: &[u8]) -> impl Iterator<Item = (usize, &'a Row)> {
        self.of_script.get(script).into_iter().flatten().map(|at| (*at, &self.rows[*at]))
    }

    fn confirmed<'a>(&'a self, script: &[u8]) -> impl Iterator<Item = (usize, &'a Row, u32)> {
        self.of(script).filter_map(|(at, row)| Some((at, row, row.height?)))
    }

    pub fn in_pool<'a>(&'a self, script: &[u8]) -> impl Iterator<Item = (usize, &'a Row)> {
        self.of(script).filter(|(_, row)| row.height.is_none())
    }

    pub fn pool(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.height.is_none())
    }

    /// The row that a txid means.
    pub fn find(&self, txid: &Txid) -> Option<&Row> {
        self.last.get(txid).map(|at| &self.rows[*at])
    }

    pub fn output(&self, (row, vout): (usize, u32)) -> &(i64, Script) {
        &self.rows[row].outputs[vout as usize]
    }

    fn is_chained(&self, row: &Row) -> bool {
        row.spends.iter().flatten().any(|(parent, _)| self.rows[*parent].height.is_none())
    }

    /// The height in the Electrum protocol.
    pub fn height_of(&self, row: &Row) -> i64 {
        match row.height {
            Some(height) => i64::from(height),
            None => -i64::from(self.is_chained(row)),
        }
    }

    pub fn fee(&self, row: &Row) -> i64 {
        let spent: i64 = row.spends.iter().flatten().map(|spent| self.output(*spent).0).sum();
        spent - row.outputs.iter().map(|(value, _)| value).sum::<i64>()
    }

    pub fn history(&self, script: &[u8], heights: Range<u32>) -> History {
        let confirmed = self
            .confirmed(script)
            .filter(|(_, _, height)| heights.contains(height))
            .map(|(_, row, height)| Confirmed { txid: row.txid, height })
            .collect();
        History { confirmed, pool: self.pool_history(script) }
    }

    pub fn pool_history(&self, script: &[u8]) -> Vec<PoolEntry> {
        let entry = |(_, row): (usize, &Row)| PoolEntry {
            txid: row.txid,
            fee: self.fee(row),
            has_unconfirmed_input: self.is_chained(row),
        };
        let mut entries: Vec<PoolEntry> = self.in_pool(script).map(entry).collect();
        entries.sort_by_key(|entry| (entry.has_unconfirmed_input, entry.txid.to_string()));
        entries
    }

    pub fn status(&self, script: &[u8]) -> Option<[u8; 32]> {
        let History { confirmed, pool } = self.history(script, 0..u32::MAX);
        let confirmed = confirmed.iter().map(|tx| format!("{}:{}:", tx.txid, tx.height));
        let pool = pool.iter().map(|tx| format!("{}:{}:", tx.txid, -i32::from(tx.has_unconfirmed_input)));
        let text: String = confirmed.chain(pool).collect();
        (!text.is_empty()).then(|| sha256(text.as_bytes()))
    }

    pub fn balance(&self, script: &[u8]) -> Balance {
        let mut balance = Balance::default();
        for (_, row) in self.of(script) {
            let paid = row.pays.iter().filter(|(.., to)| to == script).map(|(_, value, _)| value).sum::<i64>();
            let spent = row.spends.iter().flatten().map(|spent| self.output(*spent));
            let change = paid - spent.filter(|(_, from)| from == script).map(|(value, _)| value).sum::<i64>();
            match row.height {
                Some(_) => balance.confirmed += change,
                None => balance.unconfirmed += change,
            }
        }
        balance
    }

    /// Unspent outputs, those of the chain first.
    pub fn coins(&self, script: &[u8]) -> Vec<Coin> {
        let unspent = |(at, row): (usize, &Row)| -> Vec<Coin> {
            let own = row.pays.iter().filter(|(_, _, to)| to == script);
            own.filter(|(vout, ..)| !self.spenders.contains_key(&(at, *vout)))
                .map(|(vout, value, _)| Coin {
                    txid: row.txid,
                    vout: *vout,
                    value: *value,
                    height: row.height.unwrap_or(0),
                })
                .collect()
        };
        let confirmed: Vec<Coin> = self.confirmed(script).flat_map(|(at, row, _)| unspent((at, row))).collect();
        let mut pool: Vec<(bool, Coin)> = Vec::new();
        for (at, row) in self.in_pool(script) {
            pool.extend(unspent((at, row)).into_iter().map(|coin| (self.is_chained(row), coin)));
        }
        pool.sort_by_key(|(chained, coin)| (*chained, coin.txid.to_string(), coin.vout));
        confirmed.into_iter().chain(pool.into_iter().map(|(_, coin)| coin)).collect()
    }

    /// What is known of an output: only the last transaction with the txid counts.
    pub fn outpoint(&self, outpoint: &OutPoint) -> OutpointStatus {
        let Some(at) = self.last.get(&outpoint.txid) else { return OutpointStatus::default() };
        let row = &self.rows[*at];
        if outpoint.vout as usize >= row.outputs.len() {
            return OutpointStatus::default();
        }
        let spender = self.spenders.get(&(*at, outpoint.vout)).map(|spender| &self.rows[*spender]);
        OutpointStatus {
            funder_height: Some(self.height_of(row)),
            spender: spender.map(|row| (row.txid, self.height_of(row))),
        }
    }

    pub fn place(&self, height: u32) -> BlockPlace {
        let block = &self.blocks[height as usize];
        BlockPlace { height, hash: block.hash(), time: block.header().time }
    }

    pub fn place_of(&self, row: &Row) -> Option<BlockPlace> {
        row.height.map(|height| self.place(height))
    }

    pub fn spent(&self, row: &Row) -> Vec<Option<SpentOutput>> {
        let spent = |spent: &Option<(usize, u32)>| {
            let (value, script) = self.output((*spent)?);
            Some(SpentOutput { value: *value, script_pubkey: script.as_slice().into() })
        };
        row.spends.iter().map(spent).collect()
    }

    pub fn spendings(&self, txid: &Txid) -> Vec<Option<Spending>> {
        let at = self.last[txid];
        let spending = |vout: u32| {
            let row = &self.rows[*self.spenders.get(&(at, vout))?];
            let vin = row.spends.iter().position(|spent| *spent == Some((at, vout))).unwrap();
            Some(Spending { txid: row.txid, vin: u32::try_from(vin).unwrap(), block: self.place_of(row) })
        };
        (0..u32::try_from(self.rows[at].outputs.len()).unwrap()).map(spending).collect()
    }

    /// The rows of a script, the newest first: those of the mempool, then those of the chain.
    pub fn newest<'a>(&'a self, script: &[u8]) -> (Vec<&'a Row>, Vec<&'a Row>) {
        let mut pool: Vec<&Row> = self.in_pool(script).map(|(_, row)| row).collect();
        let mut chain: Vec<&Row> = self.confirmed(script).map(|(_, row, _)| row).collect();
        pool.reverse();
        chain.reverse();
        (pool, chain)
    }

    /// Counts and sums in the chain, and in the mempool.
    pub fn stats(&self, script: &[u8]) -> (ScriptStats, ScriptStats) {
        let mut all = (ScriptStats::default(), ScriptStats::default());
        for (_, row) in self.of(script) {
            let stats = if row.height.is_some() { &mut all.0 } else { &mut all.1 };
            stats.transactions += 1;
            for (_, value, _) in row.pays.iter().filter(|(.., to)| to == script) {
                stats.funded_count += 1;
                stats.funded_sum += value;
            }
            for spent in row.spends.iter().flatten().filter(|spent| self.output(**spent).1 == script) {
                stats.spent_count += 1;
                stats.spent_sum += self.output(*spent).0;
            }
        }
        all
    }

    /// The proof of the transaction at a position.
    pub fn merkle(&self, height: u32, position: usize) -> MerkleProof {
        let leaves = self.blocks[height as usize].txs().map(|tx| tx.txid().0).collect();
        merkle(leaves, position)
    }

    pub fn header_proof(&self, height: u32, last: u32) -> MerkleProof {
        let hashes = self.blocks[..=last as usize].iter().map(|block| block.hash().0).collect();
        merkle(hashes, height as usize)
    }
}

/// A merkle proof as it is defined: a level without an even number of hashes repeats its last one.
fn merkle(mut level: Vec<[u8; 32]>, position: usize) -> MerkleProof {
    let (mut at, mut branch) = (position, Vec::new());
    while level.len() > 1 {
        if level.len() % 2 == 1 {
            level.push(*level.last().unwrap());
        }
        branch.push(level[at ^ 1]);
        level = level.chunks(2).map(|pair| sha256d(&pair.concat())).collect();
        at /= 2;
    }
    MerkleProof { position, branch, root: level[0] }
}
