//! Regtest blocks with proof of work for the tests of the store. Their transactions spend nonexistent outputs.

use lydian_chain::Layout;
use lydian_consensus::{Chain, Coin, Params};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, Block, BlockHash, Header, Height, OutPoint, RawBlock, Txid};

pub(crate) fn params() -> Params {
    Params::new(Chain::Regtest)
}

pub(crate) fn layout() -> Layout {
    Layout { blocks: "d/blocks".into(), index: "d/blocks/index".into(), new_key: [3, 1, 4, 1, 5, 9, 2, 6] }
}

/// Coins that the inputs of a block might have spent.
pub(crate) fn spent_of(block: &Block) -> Vec<Coin> {
    let coin = |index: usize| Coin {
        value: Amount(7 + i64::try_from(index).unwrap_or(0)),
        script_pubkey: vec![0x51; index].into(),
        height: Height(block.header().time % 1000),
        is_coinbase: index == 0,
    };
    (0..block.input_count() - 1).map(coin).collect()
}

/// Generates blocks, all different.
pub(crate) struct Maker {
    count: u32,
}

impl Maker {
    pub(crate) fn new() -> Maker {
        Maker { count: 0 }
    }

    /// A chain on the genesis block. Each block has `txs` transactions in addition to its coinbase.
    pub(crate) fn chain(&mut self, length: usize, txs: u32) -> Vec<Block> {
        self.chain_on(params().genesis_hash, length, txs)
    }

    pub(crate) fn chain_on(&mut self, parent: BlockHash, length: usize, txs: u32) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for _ in 0..length {
            let parent = blocks.last().map_or(parent, Block::hash);
            blocks.push(self.block(parent, txs));
        }
        blocks
    }

    pub(crate) fn block(&mut self, prev_block: BlockHash, txs: u32) -> Block {
        self.count += 1;
        let input = |prevout| MutInput { prevout, script_sig: vec![0x51; 2], sequence: self.count, witness: vec![] };
        let output = |value| MutOutput { value: Amount(value), script_pubkey: vec![0x51] };
        let tx = |inputs| MutTx { version: 1, inputs, outputs: vec![output(1), output(2)], lock_time: 0 };
        let spends = (0..txs).map(|index| {
            let prevout = |vout| OutPoint { txid: Txid([9; 32]), vout };
            tx((0..=index).map(|vout| input(prevout(vout))).collect())
        });
        let txs = std::iter::once(tx(vec![input(OutPoint::NULL)])).chain(spends).collect();
        let time = 1_600_000_000 + self.count;
        let header = Header { version: 4, prev_block, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
        let mut block = MutBlock { header, txs };
        block.seal_on_regtest();
        RawBlock::new(block.encode()).parse().unwrap()
    }
}
