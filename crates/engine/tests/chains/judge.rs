//! Bitcoin Core at the end of random stories: the same tip, the same coins. Core gets the same blocks, or the engine's
//! own block files.

use crate::expected::{Expected, Order};
use crate::lydian::{How, Lydian, Place};
use crate::story::{NOW, Shape, Story};
use lydian_chains::rng::Random;
use lydian_oracle::{Daemon, Scratch, or_skip};
use lydian_primitives::BlockHash;

fn daemon(test: &str, shape: Shape, options: &[&str]) -> Option<Daemon> {
    let mut options = options.to_vec();
    if shape.repeats {
        options.push("-testactivationheight=bip34@10000");
    }
    let mut daemon = or_skip(test, Daemon::start(&options))?;
    daemon.set_mock_time(u64::from(NOW)).unwrap();
    Some(daemon)
}

fn assert_agrees(daemon: &mut Daemon, lydian: &Lydian, when: &str) {
    let hashes = lydian.engine.utxo_hashes().unwrap();
    assert_eq!(daemon.best_block_hash().unwrap(), hashes.tip.hash.to_string(), "the tip {when}");
    for (name, hash) in [("hash_serialized_3", hashes.hash_serialized_3), ("muhash", hashes.muhash)] {
        let core = daemon.txoutset(name).unwrap();
        assert_eq!(core.hash, Some(BlockHash(hash).to_string()), "{name} {when}");
        assert_eq!((core.txouts, core.total_amount), (hashes.coins, u64::try_from(hashes.total.0).unwrap()), "{when}");
    }
}

fn shape(random: &mut Random) -> Shape {
    Shape { faults_per_mille: 120, keys_per_mille: 60, ..Shape::random(random) }
}

/// checklist: 96, 97
#[test]
fn the_judge_agrees_on_the_end() {
    for seed in 0..6 {
        let mut random = Random::new(seed, "judge");
        let shape = Shape { repeats: seed == 5, ..shape(&mut random) };
        let shape = Shape { blocks: if seed == 5 { 150 } else { shape.blocks.min(70) }, ..shape };
        let story = Story::with_shape(seed, shape);
        let order = Order::ALL[usize::try_from(seed % 3).unwrap()];
        let expected = Expected::new(&story, order, &mut random);
        let Some(mut daemon) = daemon("judge::the_judge_agrees_on_the_end", shape, &[]) else { return };
        let how = How::random(&mut random);
        let place = Place::new(&how, &format!("judge-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        for fed in &expected.fed {
            let answer = lydian.accept_at(&fed.block, fed.now).unwrap();
            assert_eq!(answer, fed.answer);
        }
        let blocks: Vec<&Vec<u8>> = expected.fed.iter().map(|fed| &fed.block).collect();
        daemon.submit_blocks(&blocks).unwrap();
        assert_agrees(&mut daemon, &lydian, &format!("of seed {seed} in {order:?}"));
        daemon.stop().unwrap();
    }
}

/// The engine's block files are in Core's format: Core reads them with `-reindex` and reaches the same tip and coins.
#[test]
#[allow(clippy::disallowed_methods, reason = "a test copies files")]
fn the_judge_reads_our_block_files() {
    for seed in 10..12 {
        let mut random = Random::new(seed, "files");
        let shape = Shape { repeats: false, ..shape(&mut random) };
        let story = Story::with_shape(seed, shape);
        let expected = Expected::new(&story, Order::File, &mut random);
        let how = How { is_real: true, ..How::random(&mut random) };
        let place = Place::new(&how, &format!("files-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        lydian.accept_all(&story, &expected);
        let folder = Scratch::new(&format!("core-blocks-{seed}"));
        let blocks = folder.path().join("regtest/blocks");
        std::fs::create_dir_all(&blocks).unwrap();
        for name in ["blk00000.dat", "xor.dat"] {
            std::fs::copy(place.root.join("blocks").join(name), blocks.join(name)).unwrap();
        }
        let option = format!("-blocksdir={}", folder.path().display());
        let Some(mut daemon) = daemon("judge::the_judge_reads_our_block_files", shape, &[&option, "-reindex"]) else {
            return;
        };
        for _ in 0..2_400 {
            if daemon.best_block_hash().unwrap() == lydian.engine.tip().hash.to_string() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        assert_agrees(&mut daemon, &lydian, &format!("of seed {seed}"));
        daemon.stop().unwrap();
    }
}
