//! Sizes at and above the engine's limits: they affect no verdict (checklist 92).

use crate::expected::{Expected, parse};
use crate::lydian::{How, Lydian, Place};
use crate::story::{NOW, sealed};
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_engine::Settings;
use lydian_engine::limits::{BATCH_INPUTS, WINDOW_BYTES_BASE, WINDOW_BYTES_WORKER};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint};

/// A chain of blocks from genesis, to feed to a plain validator and an engine.
struct Line {
    params: Params,
    blocks: Vec<Vec<u8>>,
    txs: Vec<MutTx>,
}

impl Line {
    fn new(empty: usize) -> Line {
        let mut line = Line { params: Params::new(Chain::Regtest), blocks: Vec::new(), txs: Vec::new() };
        (0..empty).for_each(|_| line.push(Vec::new()));
        line
    }

    fn push(&mut self, txs: Vec<MutTx>) {
        let tip = self.blocks.last().map_or(self.params.genesis_hash, |block| parse(block).hash());
        let height = u32::try_from(self.blocks.len()).unwrap();
        let block = sealed(tip, height, b"sizes", txs);
        self.txs.push(block.txs[0].clone());
        self.blocks.push(block.encode());
    }

    /// Compares everything: blocks stored first, then one run, with one worker and with two.
    fn compare(&self, how: impl Fn(usize) -> How, name: &str) {
        let brought = self.blocks.iter().map(|bytes| (bytes.clone(), String::new(), NOW));
        let expected = Expected::of(&self.params, brought);
        for workers in [1, 2] {
            let how = how(workers);
            let place = Place::on(SimDisk::new(1));
            let lydian = Lydian::open(&place, &self.params, &how).unwrap();
            for fed in &expected.fed {
                lydian.engine.store_block(parse(&fed.block), i64::from(NOW)).unwrap().unwrap();
            }
            let advance = lydian.advance().unwrap();
            let found: Vec<_> = advance.invalid.iter().map(|(hash, violation)| (hash, Some(violation))).collect();
            let wanted: Vec<_> = found.iter().map(|(hash, _)| (*hash, expected.violations.get(hash))).collect();
            assert_eq!(found, wanted, "{name}, {workers} workers");
            assert_eq!(advance.invalid.is_empty(), expected.violations.is_empty(), "{name}, {workers} workers");
            lydian.assert_state(&expected.end, &format!("{name}, {workers} workers"));
        }
    }
}

fn usual(workers: usize) -> How {
    let settings = Settings::new(workers);
    How {
        workers,
        window_blocks: settings.window_blocks,
        window_bytes: settings.window_bytes,
        checked_bytes: settings.checked_bytes,
        batch_inputs: settings.batch_inputs,
        cache_bytes: settings.cache_bytes,
        pending_bytes_max: settings.pending_bytes_max,
        is_low_memory: settings.is_low_memory,
        is_real: false,
        followers: 0,
        ..How::random(&mut Random::new(1, "sizes"))
    }
}

/// Spends outputs of a transaction; the input at `closed` fails its script.
fn spend(from: &MutTx, count: usize, closed: Option<usize>) -> MutTx {
    let input = |vout: usize| MutInput {
        prevout: OutPoint { txid: from.txid(), vout: u32::try_from(vout).unwrap() },
        script_sig: if closed == Some(vout) { vec![0x6a] } else { Vec::new() },
        sequence: u32::MAX,
        witness: Vec::new(),
    };
    let output = MutOutput { value: Amount(1), script_pubkey: vec![0x51] };
    MutTx { version: 2, inputs: (0..count).map(input).collect(), outputs: vec![output], lock_time: 0 }
}

/// As many inputs as one batch takes, and one more; with no, the last or the first one failing.
/// checklist: 92
/// limit: BATCH_INPUTS at
/// limit: BATCH_INPUTS above
#[test]
fn a_batch_and_one_more() {
    for count in [BATCH_INPUTS, BATCH_INPUTS + 1] {
        for closed in [None, Some(count - 1), Some(0)] {
            let mut line = Line::new(101);
            let coinbase = line.txs[0].clone();
            let mut fan = spend(&coinbase, 1, None);
            fan.outputs = vec![MutOutput { value: Amount(10), script_pubkey: vec![0x51] }; count];
            line.push(vec![fan.clone()]);
            line.push(vec![spend(&fan, count, closed)]);
            line.push(Vec::new());
            line.compare(usual, &format!("{count} inputs, {closed:?} false"));
        }
    }
}

/// The cost of a block in the window, as a multiple of its size.
const COST_FACTOR: usize = 3;

/// Large blocks that fill the default window to the last byte, and blocks that exceed it by one.
/// checklist: 92
/// limit: WINDOW_BYTES_BASE at
/// limit: WINDOW_BYTES_BASE above
/// limit: WINDOW_BYTES_WORKER at
/// limit: WINDOW_BYTES_WORKER above
#[test]
fn a_window_and_one_byte_more() {
    let window = WINDOW_BYTES_BASE + WINDOW_BYTES_WORKER;
    assert_eq!(Settings::new(1).window_bytes, window);
    let total = window / COST_FACTOR;
    for excess in [0, 1] {
        let mut line = Line::new(101);
        let mut left = total + excess - line.blocks.iter().map(Vec::len).sum::<usize>();
        let coinbase = line.txs[0].clone();
        while left > 0 {
            let size = if left > 1_900_000 { 950_000 } else { left.min(950_000) };
            let size = if left > size && left - size < 1_000 { size - 2_000 } else { size };
            let mut tx = spend(&coinbase, usize::from(line.blocks.len() == 101), None);
            tx.outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0x6a] });
            line.push(if tx.inputs.is_empty() { Vec::new() } else { vec![tx] });
            let block = line.blocks.pop().unwrap();
            line.txs.pop();
            let padded = padded(&block, size);
            left -= padded.len();
            line.txs.push(coinbase.clone());
            line.blocks.push(padded);
        }
        assert_eq!(line.blocks.iter().map(Vec::len).sum::<usize>(), total + excess);
        line.compare(|workers| How { window_bytes: window, ..usual(workers) }, &format!("{excess} bytes more"));
    }
}

/// The same block, padded to this size with a coinbase output.
fn padded(block: &[u8], size: usize) -> Vec<u8> {
    let mut block = lydian_primitives::build::MutBlock::from(&parse(block));
    block.txs[0].outputs.push(MutOutput { value: Amount(0), script_pubkey: vec![0x6a; 1_000] });
    let more = size - block.encode().len();
    // Lengths from 65,536 on take two bytes more than smaller ones.
    let wide = if more > 64_536 { 2 } else { 0 };
    block.txs[0].outputs[1].script_pubkey.resize(1_000 + more - wide, 0x6a);
    block.seal_on_regtest();
    let bytes = block.encode();
    assert_eq!(bytes.len(), size);
    bytes
}
