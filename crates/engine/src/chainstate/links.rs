//! The links of a block: its outpoints, keyed and sorted by partition of the coin store, and the inputs that spend
//! outputs of the block itself.
//!
//! Input: a block. Output: for each partition the outpoints spent and created there, in block order. Blocks are
//! independent, on any thread; no store is queried. Cost: one keyed hash per outpoint, one txid lookup per input. The
//! plain validator's `Purse` is the specification of how inputs spend outputs of their own block.

use lydian_coins::{Coins, Key, PARTITIONS};
use lydian_consensus::{Coin, CoinRef};
use lydian_primitives::{Block, Height, OutPoint, Txid};
use lydian_script::is_unspendable;
use std::collections::HashMap;

/// The outpoints of a block by partition.
#[derive(Debug)]
pub(crate) struct Links {
    spends: [Vec<Spend>; PARTITIONS],
    creates: [Vec<Create>; PARTITIONS],
    own: Vec<OwnSpend>,
    input_count: usize,
    /// Whether outputs must be new (BIP-0030).
    pub(crate) is_bip30_checked: bool,
}

/// An input that spends a coin from before the block. The outpoint is copied: partitions are walked long after the
/// block's bytes have left the CPU caches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spend {
    hash: u64,
    outpoint: OutPoint,
    /// Index among all inputs except the coinbase's.
    pub(crate) flat: u32,
}

/// An output that can be spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Create {
    hash: u64,
    outpoint: OutPoint,
    /// Index of its transaction.
    pub(crate) tx: u32,
    /// Whether it is unspent after the block. Spent ones are listed only for BIP-0030.
    pub(crate) is_kept: bool,
}

/// An input that spends an output of an earlier transaction of the block.
#[derive(Clone, Copy, Debug)]
struct OwnSpend {
    flat: u32,
    tx: u32,
    vout: u32,
}

impl Links {
    pub(crate) fn new(block: &Block, is_bip30_checked: bool, coins: &Coins) -> Links {
        let (inputs, outputs) =
            block.txs().fold((0, 0), |(inputs, outputs), tx| (inputs + tx.input_count(), outputs + tx.output_count()));
        let mut links = Links {
            spends: std::array::from_fn(|_| Vec::with_capacity(share(inputs))),
            creates: std::array::from_fn(|_| Vec::with_capacity(share(outputs))),
            own: Vec::new(),
            input_count: 0,
            is_bip30_checked,
        };
        let mut outputs = OwnOutputs::new(block);
        for (index, tx) in block.txs().enumerate() {
            if !tx.is_coinbase() {
                for input in tx.inputs() {
                    let flat = narrow(links.input_count);
                    links.input_count += 1;
                    match outputs.take(block, &input.prevout) {
                        Own::Taken { tx, vout } => links.own.push(OwnSpend { flat, tx, vout }),
                        Own::Gone => {}
                        Own::NotThere => {
                            let key = coins.key(input.prevout);
                            let spend = Spend { hash: key.hash, outpoint: key.outpoint, flat };
                            links.spends[Coins::partition(&key)].push(spend);
                        }
                    }
                }
            }
            outputs.add(tx.txid(), index);
        }
        for (index, tx) in block.txs().enumerate() {
            let spendable = tx.outputs().enumerate().filter(|(_, output)| !is_unspendable(output.script_pubkey));
            for (vout, _) in spendable {
                let is_kept = !outputs.is_spent(index, vout);
                if is_kept || is_bip30_checked {
                    let vout = narrow(vout);
                    let key = coins.key(OutPoint { txid: tx.txid(), vout });
                    let create = Create { hash: key.hash, outpoint: key.outpoint, tx: narrow(index), is_kept };
                    links.creates[Coins::partition(&key)].push(create);
                }
            }
        }
        links
    }

    /// The number of inputs that spend a coin.
    pub(crate) fn input_count(&self) -> usize {
        self.input_count
    }

    /// Memory of the tables.
    pub(crate) fn bytes(&self) -> usize {
        let spends: usize = self.spends.iter().map(|spends| size_of_val(spends.as_slice())).sum();
        let creates: usize = self.creates.iter().map(|creates| size_of_val(creates.as_slice())).sum();
        spends + creates + size_of_val(self.own.as_slice())
    }

    /// In block order.
    pub(crate) fn spends(&self, partition: usize) -> &[Spend] {
        &self.spends[partition]
    }

    /// In block order.
    pub(crate) fn creates(&self, partition: usize) -> &[Create] {
        &self.creates[partition]
    }

    /// Fills in the coins that come from the block's own outputs.
    pub(crate) fn fill_own(&self, block: &Block, height: Height, found: &mut [Option<Coin>]) {
        for own in &self.own {
            let tx = block.tx(own.tx as usize);
            let coin = Coin::new(tx.output(own.vout as usize), height, tx.is_coinbase());
            found[own.flat as usize] = Some(coin);
        }
    }
}

impl Spend {
    pub(crate) fn key(&self) -> Key {
        Key { outpoint: self.outpoint, hash: self.hash }
    }
}

impl Create {
    pub(crate) fn key(&self) -> Key {
        Key { outpoint: self.outpoint, hash: self.hash }
    }

    pub(crate) fn coin<'a>(&self, block: &'a Block, height: Height) -> CoinRef<'a> {
        let tx = block.tx(self.tx as usize);
        CoinRef::new(tx.output(self.outpoint.vout as usize), height, tx.is_coinbase())
    }
}

/// The result of looking up a prevout in the block's earlier transactions.
enum Own {
    Taken {
        tx: u32,
        vout: u32,
    },
    /// An earlier input has spent it.
    Gone,
    NotThere,
}

/// The outputs of the transactions so far, and which of them are spent.
struct OwnOutputs {
    earlier: HashMap<Txid, usize>,
    /// For each transaction, the index of its first output among all outputs.
    first_output: Vec<usize>,
    is_spent: Vec<bool>,
}

impl OwnOutputs {
    fn new(block: &Block) -> OwnOutputs {
        let mut count = 0;
        let first_output = block.txs().map(|tx| {
            count += tx.output_count();
            count - tx.output_count()
        });
        let first_output = first_output.collect();
        OwnOutputs { earlier: HashMap::with_capacity(block.tx_count()), first_output, is_spent: vec![false; count] }
    }

    fn add(&mut self, txid: Txid, index: usize) {
        self.earlier.insert(txid, index);
    }

    fn is_spent(&self, tx: usize, vout: usize) -> bool {
        self.is_spent[self.first_output[tx] + vout]
    }

    fn take(&mut self, block: &Block, prevout: &OutPoint) -> Own {
        let Some(&index) = self.earlier.get(&prevout.txid) else { return Own::NotThere };
        let (tx, vout) = (block.tx(index), prevout.vout as usize);
        if vout >= tx.output_count() || is_unspendable(tx.output(vout).script_pubkey) {
            return Own::NotThere;
        }
        let is_spent = &mut self.is_spent[self.first_output[index] + vout];
        if std::mem::replace(is_spent, true) {
            return Own::Gone;
        }
        Own::Taken { tx: narrow(index), vout: prevout.vout }
    }
}

/// The room for a partition's share of the outpoints of a block, with some in reserve: hashes are spread evenly.
fn share(count: usize) -> usize {
    count / PARTITIONS + count / (4 * PARTITIONS) + 4
}

/// Counts of a block fit: each counted item takes bytes of a block of at most 32 MB.
fn narrow(count: usize) -> u32 {
    match u32::try_from(count) {
        Ok(count) => count,
        Err(_) => panic!("a block has fewer than 2^32 of anything"),
    }
}
