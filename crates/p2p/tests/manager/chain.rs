//! Regtest blocks that are valid except for what a test changes.

use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint, RawBlock};

/// A block that can be encoded.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    pub(crate) block: MutBlock,
}

impl Made {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.block.encode()
    }

    pub(crate) fn header(&self) -> Header {
        self.block.header
    }

    /// Returns the output of the coinbase.
    pub(crate) fn coins(&self) -> OutPoint {
        OutPoint { txid: self.block.txs[0].txid(), vout: 0 }
    }

    pub(crate) fn parsed(&self) -> lydian_primitives::Block {
        RawBlock::new(self.bytes()).parse().unwrap()
    }
}

/// Creates a block on top of another; a different `tag` gives a different block.
pub(crate) fn block_on(parent: (BlockHash, u32, u32), tag: u8, txs: Vec<MutTx>) -> Made {
    block_with(parent, tag, txs, |_| {})
}

/// Creates a block like `block_on`, changed before it is sealed.
pub(crate) fn block_with(
    (parent, height, time): (BlockHash, u32, u32),
    tag: u8,
    txs: Vec<MutTx>,
    change: impl FnOnce(&mut MutBlock),
) -> Made {
    let height = height + 1;
    let script_sig = [height_push(height), vec![4, tag, tag, tag, tag]].concat();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: vec![vec![0; 32]] };
    let mut commitment = vec![0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
    commitment.extend_from_slice(&[0; 32]);
    let outputs = vec![
        MutOutput { value: Amount(1_000_000), script_pubkey: vec![0x51] },
        MutOutput { value: Amount(0), script_pubkey: commitment },
    ];
    let coinbase = MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 };
    let header =
        Header { version: 0x2000_0000, prev_block: parent, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
    let mut block = MutBlock { header, txs: std::iter::once(coinbase).chain(txs).collect() };
    change(&mut block);
    block.seal_on_regtest();
    let hash = block.header.hash();
    Made { hash, height, block }
}

/// The height as in BIP-0034, for the heights of these tests.
fn height_push(height: u32) -> Vec<u8> {
    let [low, high, ..] = height.to_le_bytes();
    match height {
        1..=16 => vec![0x50 + low],
        17..=127 => vec![1, low],
        _ => vec![2, low, high],
    }
}

/// Spends an output that anyone can spend.
pub(crate) fn spend(prevout: OutPoint, tag: u8) -> MutTx {
    let input = MutInput { prevout, script_sig: Vec::new(), sequence: u32::MAX, witness: Vec::new() };
    let outputs = vec![
        MutOutput { value: Amount(1_000), script_pubkey: vec![0x51] },
        MutOutput { value: Amount(0), script_pubkey: vec![0x6a, 1, tag] },
    ];
    MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }
}

/// The same header with other transactions.
pub(crate) fn mutated(made: &Made) -> Vec<u8> {
    let mut block = made.block.clone();
    block.txs.push(spend(made.coins(), 200));
    block.encode()
}
