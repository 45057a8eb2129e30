//! Submits the real runs from genesis, block by block, to Core's daemon and to the plain validator: same tips, same
//! coins.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../testdata/locate.rs"]
mod locate;

use lydian_consensus::{Chain, Params, PlainValidator};
use lydian_oracle::{Daemon, Submission, or_skip};
use lydian_primitives::{BlockHash, RawBlock};

const NOW: u32 = 1_800_000_000;
const BLOCKS_PER_CALL: usize = 500;

/// checklist: 96, 97
#[test]
fn real_chains_end_with_cores_coins() {
    for (file, chain, core_name) in [
        ("blocks/runs/main_000000_004312.blk.zst", Chain::Main, "main"),
        ("blocks/runs/test3_000000_004000.blk.zst", Chain::Test, "test"),
        ("blocks/runs/signet_000000_000120.blk.zst", Chain::Signet, "signet"),
    ] {
        let options = ["-minimumchainwork=0"];
        let Some(mut daemon) = or_skip("real_chains_end_with_cores_coins", Daemon::start_on(core_name, &options))
        else {
            return;
        };
        let bytes = locate::read(&locate::testdata(file));
        let params = Params::new(chain);
        let blocks = locate::blocks_of(&bytes, params.magic);
        let mut plain = PlainValidator::new(params);
        for batch in blocks[1..].chunks(BLOCKS_PER_CALL) {
            let answers = daemon.submit_blocks(batch).unwrap();
            assert!(answers.iter().all(|answer| *answer == Submission::Accepted), "{chain}");
            for block in batch {
                plain.accept_block(RawBlock::new(*block).parse().unwrap(), NOW).unwrap();
            }
        }
        assert_eq!(daemon.best_block_hash().unwrap(), plain.tip().1.to_string());
        let serialized = daemon.txoutset("hash_serialized_3").unwrap().hash.unwrap();
        assert_eq!(serialized, BlockHash(plain.hash_serialized_3()).to_string(), "{chain}");
        let muhash = daemon.txoutset("muhash").unwrap().hash.unwrap();
        assert_eq!(muhash, BlockHash(plain.muhash()).to_string(), "{chain}");
        daemon.stop().unwrap();
    }
}
