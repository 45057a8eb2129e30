//! A block with its header, from any bytes.
//!
//! Parsing is total, a parsed block encodes back to the same bytes, and every derived value equals the result of a
//! straightforward computation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_hash::sha256d;
use lydian_primitives::RawBlock;
use lydian_primitives::block::scan;
use lydian_primitives::build::MutBlock;

/// Core's `ComputeMerkleRoot`: the root, and whether two equal hashes are adjacent.
fn plain_merkle_root(mut row: Vec<[u8; 32]>) -> ([u8; 32], bool) {
    let mut is_mutated = false;
    while row.len() > 1 {
        is_mutated |= row.chunks_exact(2).any(|pair| pair[0] == pair[1]);
        row = row.chunks(2).map(|pair| sha256d(&[pair[0], pair[pair.len() - 1]].concat())).collect();
    }
    (row.first().copied().unwrap_or_default(), is_mutated)
}

fuzz_target!(|bytes: &[u8]| {
    let scanned = scan(bytes);
    let block = match RawBlock::new(bytes).parse() {
        Ok(block) => block,
        Err(error) => {
            assert_eq!(scanned, Err(error));
            assert!(error.offset <= bytes.len());
            return;
        }
    };
    assert_eq!(scanned, Ok(block.tx_count()));
    let made = MutBlock::from(&block);
    assert_eq!(made.encode(), bytes, "not what was read");
    assert_eq!(block.header().to_bytes(), bytes[..80]);
    assert_eq!(block.hash().0, sha256d(&bytes[..80]));
    let txids = made.txs.iter().map(|tx| tx.txid().0).collect();
    assert_eq!((block.merkle_root(), block.is_merkle_mutated()), plain_merkle_root(txids));
    let base: usize = made.txs.iter().map(|tx| tx.encode().len() - tx.encode_stripped().len()).sum();
    assert_eq!((block.base_size(), block.total_size()), (bytes.len() - base, bytes.len()));
    assert_eq!(block.input_count(), made.txs.iter().map(|tx| tx.inputs.len()).sum());
    assert_eq!(block.output_count(), made.txs.iter().map(|tx| tx.outputs.len()).sum());
    if let Some(found) = block.witness_commitment() {
        let output = &made.txs[0].outputs[found.output_index].script_pubkey;
        assert_eq!(output[..6], [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed]);
        assert_eq!(output[6..38], found.commitment);
        let mut wtxids: Vec<_> = made.txs.iter().map(|tx| sha256d(&tx.encode())).collect();
        wtxids[0] = [0; 32];
        assert_eq!(found.witness_merkle_root, plain_merkle_root(wtxids).0);
    }
});
