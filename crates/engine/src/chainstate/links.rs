//! The links of a block: its outpoints, keyed and sorted by partition of the coin store, and the inputs that spend
//! outputs of the block itself.
//!
//! Input: a block. Output: for each partition the outpoints spent and created there, in block order. Blocks are
//! independent, on any thread; no store is queried. Cost: one keyed hash per outpoint, one txid lookup per input, and
//! a copy of each created coin with a usual script. The plain validator's `Purse` is the specification of how inputs
//! spend outputs of their own block.

use lydian_coins::{Coins, Key, PARTITIONS};
use lydian_consensus::{Coin, CoinRef};
use lydian_primitives::{Amount, Block, Height, OutPoint, Txid};
use lydian_script::is_unspendable;
use std::collections::HashMap;

/// The outpoints of a block by partition.
#[derive(Debug)]
pub(crate) struct Links {
    spends: [Vec<Spend>; PARTITIONS],
    creates: [Vec<Create>; PARTITIONS],
    /// The scripts of `creates`, except long ones.
    scripts: [Vec<u8>; PARTITIONS],
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

/// An output that can be spent. Value and usual scripts are copied for the same reason as outpoints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Create {
    hash: u64,
    outpoint: OutPoint,
    /// Index of its transaction.
    pub(crate) tx: u32,
    value: Amount,
    /// Where its script begins in the scripts of its partition, and the size of the script or [`IN_BLOCK`].
    script_start: u32,
    script_size: u8,
    is_coinbase: bool,
    /// Whether it is unspent after the block. Spent ones are listed only for BIP-0030.
    pub(crate) is_kept: bool,
}

/// The largest script that is copied, in bytes: those of all common forms are at most 35.
const SCRIPT_SIZE_MAX: usize = 40;

/// The room for a script that is made at first: on mainnet they have 24 bytes on average.
const SCRIPT_SIZE_USUAL: usize = 26;

/// Instead of a size: the script is longer, and only in the block.
const IN_BLOCK: u8 = u8::MAX;

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
            scripts: std::array::from_fn(|_| Vec::with_capacity(share(outputs) * SCRIPT_SIZE_USUAL)),
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
            for (vout, output) in spendable {
                let is_kept = !outputs.is_spent(index, vout);
                if is_kept || is_bip30_checked {
                    let key = coins.key(OutPoint { txid: tx.txid(), vout: narrow(vout) });
                    links.create(&key, index, is_kept, &CoinRef::new(output, Height(0), tx.is_coinbase()));
                }
            }
        }
        links
    }

    /// Adds a created coin, whose height is that of the block.
    fn create(&mut self, key: &Key, tx: usize, is_kept: bool, coin: &CoinRef<'_>) {
        let partition = Coins::partition(key);
        let scripts = &mut self.scripts[partition];
        let script_start = narrow(scripts.len());
        let script_size = match u8::try_from(coin.script_pubkey.len()) {
            Ok(size) if usize::from(size) <= SCRIPT_SIZE_MAX => {
                scripts.extend_from_slice(coin.script_pubkey);
                size
            }
            _ => IN_BLOCK,
        };
        self.creates[partition].push(Create {
            hash: key.hash,
            outpoint: key.outpoint,
            tx: narrow(tx),
            value: coin.value,
            script_start,
            script_size,
            is_coinbase: coin.is_coinbase,
            is_kept,
        });
    }

    /// The coin of one of [`Links::creates`].
    pub(crate) fn coin<'a>(
        &'a self,
        partition: usize,
        create: &Create,
        block: &'a Block,
        height: Height,
    ) -> CoinRef<'a> {
        let script_pubkey = match create.script_size {
            IN_BLOCK => block.tx(create.tx as usize).output(create.outpoint.vout as usize).script_pubkey,
            size => &self.scripts[partition][create.script_start as usize..][..usize::from(size)],
        };
        CoinRef { value: create.value, script_pubkey, height, is_coinbase: create.is_coinbase }
    }

    /// The number of inputs that spend a coin.
    pub(crate) fn input_count(&self) -> usize {
        self.input_count
    }

    /// Memory of the tables.
    pub(crate) fn bytes(&self) -> usize {
        let spends: usize = self.spends.iter().map(|spends| size_of_val(spends.as_slice())).sum();
        let creates: usize = self.creates.iter().map(|creates| size_of_val(creates.as_slice())).sum();
        let scripts: usize = self.scripts.iter().map(Vec::len).sum();
        spends + creates + scripts + size_of_val(self.own.as_slice())
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
