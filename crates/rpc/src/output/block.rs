//! Headers and blocks as JSON: Core's `blockheaderToJSON` and `blockToJSON` (rpc/blockchain.cpp).
//!
//! Input: the engine's data on a header, a parsed block, the coins it spent. Output: typed answers.

use super::hashes::Hex;
use super::transaction::{Detail, TransactionAnswer};
use crate::json::Double;
use crate::result::{Answer, Form, Inline, Time, close, result, write_array};
use lydian_consensus::{Chain, Coin, Params, U256, pow};
use lydian_descriptor::OffCurve;
use lydian_engine::HeaderInfo;
use lydian_primitives::{Block, BlockHash, RawBlock, difficulty};

result! {
    /// The answer of `getblockheader`.
    pub(crate) struct HeaderAnswer {
        /// the block hash (same as provided)
        hash: BlockHash,
        /// the number of confirmations, or -1 if the block is not on the main chain
        confirmations: i64,
        /// the block height or index
        height: u32,
        /// the block version
        version: i32,
        /// the block version formatted in hexadecimal
        #[name("versionHex")]
        version_hex: Hex<[u8; 4]>,
        /// the merkle root
        merkleroot: BlockHash,
        /// the block time expressed in UNIX epoch time
        time: Time<u32>,
        /// the median block time expressed in UNIX epoch time
        mediantime: Time<i64>,
        /// the nonce
        nonce: u32,
        /// nBits: compact representation of the block difficulty target
        bits: Hex<[u8; 4]>,
        /// the difficulty target
        target: U256,
        /// the difficulty
        difficulty: Double,
        /// expected number of hashes required to produce the chain up to this block
        chainwork: U256,
        /// the number of transactions in the block
        #[name("nTx")]
        tx_count: u32,
        /// the hash of the previous block (if available)
        previousblockhash: Option<BlockHash>,
        /// the hash of the next block (if available)
        nextblockhash: Option<BlockHash>,
    }
}

impl HeaderAnswer {
    pub(crate) fn new(info: &HeaderInfo, tx_count: u32, params: &Params) -> HeaderAnswer {
        let header = &info.node.header;
        HeaderAnswer {
            hash: info.node.hash,
            confirmations: info.confirmations(),
            height: info.node.height.0,
            version: header.version,
            version_hex: Hex(header.version.to_be_bytes()),
            merkleroot: BlockHash(header.merkle_root),
            time: Time(header.time),
            mediantime: Time(info.median_time),
            nonce: header.nonce,
            bits: Hex(header.bits.to_be_bytes()),
            target: target(header.bits, params),
            difficulty: Double(difficulty(header.bits)),
            chainwork: info.node.chain_work,
            tx_count,
            previousblockhash: info.node.parent.map(|_| header.prev_block),
            nextblockhash: info.next,
        }
    }
}

/// The target of a header.
pub(crate) fn target(bits: u32, params: &Params) -> U256 {
    pow::derive_target(bits, params).unwrap_or(U256::ZERO)
}

result! {
    /// The answer of `getblock` for verbosity 1 to 3.
    pub(crate) struct BlockAnswer<T> {
        block: Inline<BlockFields>,
        /// the transactions (for verbosity = 1 their ids)
        tx: T,
    }
}

result! {
    /// What is written about a block whatever is written about its transactions.
    struct BlockFields {
        header: Inline<HeaderAnswer>,
        /// the block size excluding witness data
        strippedsize: usize,
        /// the block size
        size: usize,
        /// the block weight as defined in BIP 141
        weight: usize,
        /// coinbase transaction metadata
        coinbase_tx: CoinbaseAnswer,
    }
}

result! {
    /// Core's `coinbaseTxToJSON`.
    struct CoinbaseAnswer {
        /// the coinbase transaction version
        version: u32,
        /// the coinbase transaction's locktime (nLockTime)
        locktime: u32,
        /// the coinbase input's sequence number (nSequence)
        sequence: u32,
        /// the coinbase input's script
        coinbase: Hex<Vec<u8>>,
        /// the coinbase input's first (and only) witness stack element, if present
        witness: Option<Hex<Vec<u8>>>,
    }
}

impl<T: Answer> BlockAnswer<T> {
    /// `transactions` makes the field `tx` from the block.
    pub(crate) fn new(
        info: &HeaderInfo,
        block: Block,
        params: &Params,
        transactions: impl FnOnce(Block) -> T,
    ) -> BlockAnswer<T> {
        let tx_count = u32::try_from(block.tx_count()).unwrap_or(u32::MAX);
        let (stripped, total) = (block.base_size(), block.total_size());
        let coinbase = block.tx(0);
        let input = coinbase.inputs().next();
        let fields = BlockFields {
            header: Inline(HeaderAnswer::new(info, tx_count, params)),
            strippedsize: stripped,
            size: total,
            weight: 3 * stripped + total,
            coinbase_tx: CoinbaseAnswer {
                version: coinbase.version(),
                locktime: coinbase.lock_time(),
                sequence: input.as_ref().map_or(0, |input| input.sequence),
                coinbase: Hex(input.as_ref().map_or_else(Vec::new, |input| input.script_sig.to_vec())),
                witness: input.and_then(|input| Some(Hex(input.witness.iter().next()?.to_vec()))),
            },
        };
        BlockAnswer { block: Inline(fields), tx: transactions(block) }
    }
}

/// A block in hex.
#[derive(Debug)]
pub(crate) struct SerializedBlock(pub(crate) RawBlock);

impl Answer for SerializedBlock {
    const FORM: Form = Form::Hex;

    fn write(&self, out: &mut Vec<u8>) {
        Hex(self.0.as_bytes()).write(out);
    }
}

/// The ids of a block's transactions.
#[derive(Debug)]
pub(crate) struct TxIds(pub(crate) Block);

impl Answer for TxIds {
    const FORM: Form = Form::Array(&Form::Hex);

    fn write(&self, out: &mut Vec<u8>) {
        write_array(self.0.txs().map(|tx| tx.txid()), out);
    }
}

/// The transactions of a block.
#[derive(Debug)]
pub(crate) struct Transactions {
    pub(crate) block: Block,
    /// The coins of all inputs in order, if known.
    pub(crate) spent: Option<Vec<Coin>>,
    pub(crate) detail: Detail,
    pub(crate) chain: Chain,
    /// About the size of the text.
    pub(crate) size: usize,
}

impl Answer for Transactions {
    const FORM: Form = Form::Array(&TransactionAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.size);
        out.push(b'[');
        let outputs = self.block.txs().flat_map(|tx| tx.outputs().map(|output| output.script_pubkey));
        let spent = self.spent.iter().flatten().filter(|_| self.detail == Detail::Prevouts);
        let off_curve = OffCurve::among(outputs.chain(spent.map(|coin| &coin.script_pubkey[..])));
        let mut rest = self.spent.as_deref();
        for (index, tx) in self.block.txs().enumerate() {
            let mut own = None;
            if let Some(coins) = rest.filter(|_| index > 0) {
                let (first, behind) = coins.split_at(tx.input_count().min(coins.len()));
                (own, rest) = (Some(first), Some(behind));
            }
            TransactionAnswer::new(tx, own, self.detail, self.chain, Some(&off_curve)).write(out);
            out.push(b',');
        }
        close(b']', out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::double_text;

    /// From Core's rpc/blockchain tests (blockchain_tests.cpp) and chains.
    /// checklist: 25
    #[test]
    fn difficulties() {
        for (bits, value) in
            [(0x1f11_1111, 0.000_001), (0x1ef8_8f6f, 0.000_016), (0x1df8_8f6f, 0.004_023), (0x1cf8_8f6f, 1.029_916)]
        {
            assert!((difficulty(bits) - value).abs() < 0.000_01, "{bits:08x}");
        }
        let high = difficulty(0x1234_5678);
        assert!((high / 5_913_134_931_067_755_359_633_408.0 - 1.0).abs() < 1e-12, "{high}");
        assert_eq!(double_text(difficulty(0x207f_ffff)), "4.656542373906925e-10");
        assert_eq!(difficulty(0x1d00_ffff), 1.0);
    }
}
