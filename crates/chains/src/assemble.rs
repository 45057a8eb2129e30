//! Makes the bytes of a planned block: scripts, signatures, ids, witness commitment, merkle root, proof of work.
//!
//! Input: planned blocks in order. Output: encoded blocks. Invariants: the bytes depend only on the plan and the seed,
//! not on the number of threads. Cost: nearly all of it is signatures and public keys, spread over all cores level by
//! level; 32 bytes are kept for each transaction ever made. It must never decide which coins a transaction spends.

use crate::parallel;
use crate::plan::{PlannedBlock, PlannedInput, PlannedOutput, PlannedTx};
use crate::regtest::VOTED_ACTIVATION_HEIGHT;
use crate::rng::Random;
use crate::wallet::script::{OP_RETURN, Script};
use crate::wallet::{Lock, Opened, Spending, Wallet, satisfy_input, signatures, wanted_signatures};
use lydian_curve::{TestSignature, TestSigner};
use lydian_hash::{merkle_root, sha256d};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, OutPoint, Txid, write_compact_size};
use std::borrow::Cow;
use std::collections::HashMap;

/// Block version that signals, in older nodes, for BIP9 deployments on all bits relevant to the lab.
pub const BLOCK_VERSION: i32 = 0x2000_0007;

/// The target of regtest in compact form.
pub const REGTEST_BITS: u32 = 0x207f_ffff;

/// The genesis block of regtest: Core's `CreateGenesisBlock(1296688602, 2, 0x207fffff, 1, 50 * COIN)`.
pub fn regtest_genesis() -> Vec<u8> {
    const MESSAGE: &[u8] = b"The Times 03/Jan/2009 Chancellor on brink of second bailout for banks";
    const KEY: [u8; 65] = [
        0x04, 0x67, 0x8a, 0xfd, 0xb0, 0xfe, 0x55, 0x48, 0x27, 0x19, 0x67, 0xf1, 0xa6, 0x71, 0x30, 0xb7, 0x10, 0x5c,
        0xd6, 0xa8, 0x28, 0xe0, 0x39, 0x09, 0xa6, 0x79, 0x62, 0xe0, 0xea, 0x1f, 0x61, 0xde, 0xb6, 0x49, 0xf6, 0xbc,
        0x3f, 0x4c, 0xef, 0x38, 0xc4, 0xf3, 0x55, 0x04, 0xe5, 0x1e, 0xc1, 0x12, 0xde, 0x5c, 0x38, 0x4d, 0xf7, 0xba,
        0x0b, 0x8d, 0x57, 0x8a, 0x4c, 0x70, 0x2b, 0x6b, 0xf1, 0x1d, 0x5f,
    ];
    let script_sig = Script::new().push(&0x1d00_ffff_u32.to_le_bytes()).push(&[4]).push(MESSAGE).build();
    let script_pubkey = Script::new().push(&KEY).op(crate::wallet::script::OP_CHECKSIG).build();
    let coinbase = MutTx {
        version: 1,
        inputs: vec![MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() }],
        outputs: vec![MutOutput { value: Amount(50 * Amount::COIN.0), script_pubkey }],
        lock_time: 0,
    };
    let header = Header {
        version: 1,
        prev_block: BlockHash::ZERO,
        merkle_root: coinbase.txid().0,
        time: 1_296_688_602,
        bits: REGTEST_BITS,
        nonce: 2,
    };
    encode_block(&header, &[coinbase.encode()])
}

/// Serializes a block: header, number of transactions, transactions.
pub fn encode_block(header: &Header, txs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = header.to_bytes().to_vec();
    write_compact_size(&mut bytes, txs.len());
    txs.iter().for_each(|tx| bytes.extend_from_slice(tx));
    bytes
}

/// A block, with the data needed for the statistics.
#[derive(Clone, Debug)]
pub struct MadeBlock {
    pub bytes: Vec<u8>,
    pub hash: BlockHash,
    pub weight: u64,
}

#[derive(Debug)]
struct MadeTx {
    bytes: Vec<u8>,
    txid: [u8; 32],
    wtxid: [u8; 32],
    base_size: usize,
}

impl From<&MutTx> for MadeTx {
    fn from(tx: &MutTx) -> MadeTx {
        let (bytes, stripped) = (tx.encode(), tx.encode_stripped());
        MadeTx { txid: sha256d(&stripped), wtxid: sha256d(&bytes), base_size: stripped.len(), bytes }
    }
}

/// Outputs made together: their keys fill lanes and share an inversion.
const OUTPUTS_AT_ONCE: usize = 256;

/// Transactions signed together.
const TXS_AT_ONCE: usize = 128;

/// Makes the blocks of one chain.
#[derive(Debug)]
pub struct Assembler {
    wallet: Wallet,
    signer: TestSigner,
    threads: usize,
    tip: BlockHash,
    /// By the index of the transaction in the chain.
    txids: Vec<Txid>,
    /// Frequently used locks, opened once.
    known: HashMap<Lock, Opened>,
}

impl Assembler {
    pub fn new(wallet: Wallet, threads: usize, genesis: BlockHash) -> Assembler {
        Assembler { wallet, signer: TestSigner::new(), threads, tip: genesis, txids: Vec::new(), known: HashMap::new() }
    }

    /// Opens these locks now, since they will be used many times: saves computing public keys, changes no bytes.
    pub fn remember(&mut self, locks: impl Iterator<Item = Lock>) {
        self.known.extend(locks.map(|lock| (lock, self.wallet.open(lock))));
    }

    pub fn tip(&self) -> BlockHash {
        self.tip
    }

    /// The next block of the chain.
    pub fn make(&mut self, block: &PlannedBlock) -> MadeBlock {
        let outputs: Vec<PlannedOutput> = block.txs.iter().flat_map(|tx| tx.outputs.iter().copied()).collect();
        let size = batch_size(outputs.len(), self.threads, OUTPUTS_AT_ONCE);
        let outputs = parallel::map_batches(self.threads, &outputs, size, |outputs| self.outputs(outputs));
        let mut outputs = outputs.into_iter();
        let outputs: Vec<Vec<MutOutput>> =
            block.txs.iter().map(|tx| outputs.by_ref().take(tx.outputs.len()).collect()).collect();

        self.txids.resize(block.first_tx + 1 + block.txs.len(), Txid::ZERO);
        let mut made: Vec<Option<MadeTx>> = block.txs.iter().map(|_| None).collect();
        for level in 0..=block.txs.iter().map(|tx| tx.level).max().unwrap_or(0) {
            let indices: Vec<usize> = (0..block.txs.len()).filter(|&at| block.txs[at].level == level).collect();
            let size = batch_size(indices.len(), self.threads, TXS_AT_ONCE);
            let done = parallel::map_batches(self.threads, &indices, size, |indices| {
                self.txs(&indices.iter().map(|&at| (&block.txs[at], outputs[at].as_slice())).collect::<Vec<_>>())
            });
            for (at, tx) in indices.into_iter().zip(done) {
                self.txids[block.first_tx + 1 + at] = Txid(tx.txid);
                made[at] = Some(tx);
            }
        }
        let made: Vec<MadeTx> = made.into_iter().flatten().collect();
        self.seal(block, made)
    }

    fn outputs(&self, outputs: &[PlannedOutput]) -> Vec<MutOutput> {
        let locks = outputs.iter().filter_map(|output| match output {
            PlannedOutput::Pay { lock, .. } => Some(*lock),
            PlannedOutput::Data { .. } => None,
        });
        let mut opened = self.open(&locks.collect::<Vec<_>>()).into_iter();
        let mut output = |output: &PlannedOutput| match *output {
            PlannedOutput::Pay { value, .. } => {
                let script_pubkey = opened.next().map(|opened| match opened {
                    Cow::Owned(opened) => opened.script_pubkey,
                    Cow::Borrowed(opened) => opened.script_pubkey.clone(),
                });
                MutOutput { value: Amount(value), script_pubkey: script_pubkey.unwrap_or_default() }
            }
            PlannedOutput::Data { size, number } => {
                let mut data = vec![0; usize::from(size)];
                Random::new(number, "data").fill(&mut data);
                let script_pubkey = Script::new().op(OP_RETURN).push(&data).build();
                MutOutput { value: Amount(0), script_pubkey }
            }
        };
        outputs.iter().map(&mut output).collect()
    }

    /// Opens many locks at once, in their order.
    fn open(&self, locks: &[Lock]) -> Vec<Cow<'_, Opened>> {
        if self.known.is_empty() {
            return self.wallet.open_all(&self.signer, locks).into_iter().map(Cow::Owned).collect();
        }
        let unknown: Vec<Lock> = locks.iter().filter(|lock| !self.known.contains_key(lock)).copied().collect();
        let mut opened = self.wallet.open_all(&self.signer, &unknown).into_iter();
        locks
            .iter()
            .filter_map(|lock| self.known.get(lock).map(Cow::Borrowed).or_else(|| opened.next().map(Cow::Owned)))
            .collect()
    }

    /// Transactions with their outputs; none spends another of them.
    fn txs(&self, planned: &[(&PlannedTx, &[MutOutput])]) -> Vec<MadeTx> {
        let locks: Vec<Lock> =
            planned.iter().flat_map(|(tx, _)| tx.inputs.iter().map(|input| input.coin.lock)).collect();
        let opened = self.open(&locks);
        let mut rest = opened.as_slice();
        let (mut txs, mut wanted) = (Vec::with_capacity(planned.len()), Vec::new());
        for (planned, outputs) in planned {
            let (opened, after) = rest.split_at(planned.inputs.len());
            rest = after;
            let tx = self.unsigned(planned, outputs);
            want_signatures(planned, &tx, opened, &mut wanted);
            txs.push(tx);
        }
        let signatures = signatures(&self.signer, &wanted);
        let (mut opened, mut signatures) = (opened.iter(), signatures.as_slice());
        for ((planned, _), tx) in planned.iter().zip(&mut txs) {
            for ((index, input), opened) in planned.inputs.iter().enumerate().zip(opened.by_ref()) {
                let lock = input.coin.lock;
                let (own, after) = signatures.split_at(lock.kind.signatures());
                signatures = after;
                satisfy_input(tx, index, lock, opened, own);
            }
        }
        txs.iter().map(MadeTx::from).collect()
    }

    fn unsigned(&self, planned: &PlannedTx, outputs: &[MutOutput]) -> MutTx {
        let input = |input: &PlannedInput| MutInput {
            prevout: OutPoint { txid: self.txids[input.coin.tx], vout: input.coin.vout },
            script_sig: Vec::new(),
            sequence: input.sequence,
            witness: Vec::new(),
        };
        MutTx {
            version: 2,
            inputs: planned.inputs.iter().map(input).collect(),
            outputs: outputs.to_vec(),
            lock_time: planned.lock_time,
        }
    }

    fn seal(&mut self, block: &PlannedBlock, txs: Vec<MadeTx>) -> MadeBlock {
        let mut coinbase = coinbase(block.height, self.outputs(&[block.coinbase]));
        if block.height >= VOTED_ACTIVATION_HEIGHT {
            let mut wtxids: Vec<[u8; 32]> = std::iter::once([0; 32]).chain(txs.iter().map(|tx| tx.wtxid)).collect();
            commit(&mut coinbase, merkle_root(&mut wtxids).0);
        }
        let coinbase = MadeTx::from(&coinbase);
        self.txids[block.first_tx] = Txid(coinbase.txid);
        let txs: Vec<MadeTx> = std::iter::once(coinbase).chain(txs).collect();
        let mut txids: Vec<[u8; 32]> = txs.iter().map(|tx| tx.txid).collect();
        let mut header = Header {
            version: BLOCK_VERSION,
            prev_block: self.tip,
            merkle_root: merkle_root(&mut txids).0,
            time: block.time,
            bits: REGTEST_BITS,
            nonce: 0,
        };
        while header.hash().0[31] > 0x7f {
            header.nonce += 1;
        }
        self.tip = header.hash();
        let base: usize = txs.iter().map(|tx| tx.base_size).sum();
        let bytes = encode_block(&header, &txs.into_iter().map(|tx| tx.bytes).collect::<Vec<_>>());
        let framing = 80 + lydian_primitives::compact_size_len(block.txs.len() + 1);
        let weight = 3 * (base + framing) + bytes.len();
        MadeBlock { bytes, hash: self.tip, weight: weight as u64 }
    }
}

/// Appends the signatures that a transaction needs, input by input.
fn want_signatures(planned: &PlannedTx, tx: &MutTx, opened: &[Cow<'_, Opened>], wanted: &mut Vec<TestSignature>) {
    let spent: Vec<_> = planned
        .inputs
        .iter()
        .zip(opened)
        .map(|(input, opened)| (input.coin.value, opened.script_pubkey.clone()))
        .collect();
    let mut spending = Spending::new(&spent);
    for (index, (input, opened)) in planned.inputs.iter().zip(opened).enumerate() {
        wanted.extend(wanted_signatures(tx, index, input.coin.lock, opened, &mut spending));
    }
}

/// The items of a batch: at most `max`, and fewer if there are fewer for each thread.
fn batch_size(items: usize, threads: usize, max: usize) -> usize {
    items.div_ceil(threads.max(1)).clamp(1, max)
}

/// A coinbase: the height first (BIP-0034), then fixed text, so that no script is too short.
pub fn coinbase(height: u32, outputs: Vec<MutOutput>) -> MutTx {
    let script_sig = Script::new().number(i64::from(height)).push(b"lydian-lab").build();
    MutTx {
        version: 2,
        inputs: vec![MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() }],
        outputs,
        lock_time: 0,
    }
}

/// Appends the output that commits to the witnesses, and the reserved value (BIP-0141).
pub fn commit(coinbase: &mut MutTx, witness_root: [u8; 32]) {
    const RESERVED: [u8; 32] = [0; 32];
    let commitment = sha256d(&[witness_root, RESERVED].concat());
    let mut script_pubkey = lydian_primitives::block::WITNESS_COMMITMENT_HEADER.to_vec();
    script_pubkey.extend_from_slice(&commitment);
    coinbase.outputs.push(MutOutput { value: Amount(0), script_pubkey });
    coinbase.inputs.iter_mut().for_each(|input| input.witness = vec![RESERVED.to_vec()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_genesis_block_is_regtests() {
        let bytes = regtest_genesis();
        let header = Header::parse(bytes[..80].try_into().unwrap());
        assert_eq!(header.hash().to_string(), "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206");
    }
}
