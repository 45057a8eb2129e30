//! Real blocks: runs from genesis with every rule, blocks with their spent outputs, single blocks, and headers.

use crate::common::prevouts::spent_coins;
use crate::locate::{blocks_of, files, read, shared, testdata};
use lydian_consensus::header::version_floor;
use lydian_consensus::pow::{is_proof_of_work, next_work_required, retarget};
use lydian_consensus::prevouts::verify_alone;
use lydian_consensus::{
    Ancestor, Chain, HeaderView, Mode, Params, PlainValidator, PrevoutReport, Rule, check_block, verify_with_prevouts,
};
use lydian_primitives::{Block, BlockHash, Header, Height, RawBlock};
use std::path::Path;

/// A time later than all blocks in these files.
const NOW: u32 = 1_800_000_000;

fn blocks(bytes: &[u8], magic: [u8; 4]) -> Vec<Block> {
    blocks_of(bytes, magic).into_iter().map(|block| RawBlock::new(block).parse().unwrap()).collect()
}

fn run_from_genesis(file: &str, chain: Chain) -> PlainValidator {
    let params = Params::new(chain);
    let blocks = blocks(&read(&testdata(file)), params.magic);
    let mut validator = PlainValidator::new(params);
    assert_eq!(blocks[0].hash(), validator.tip().1);
    for (index, block) in blocks.into_iter().enumerate().skip(1) {
        let hash = block.hash();
        let accepted = validator.accept_block(block, NOW).unwrap_or_else(|error| panic!("{hash}: {error}"));
        assert_eq!((accepted.height.0 as usize, accepted.is_active), (index, true));
    }
    validator
}

/// Every rule and every script of mainnet's first 4,312 blocks.
#[test]
fn mainnet_from_genesis() {
    let validator = run_from_genesis("blocks/runs/main_000000_004312.blk.zst", Chain::Main);
    assert_eq!(validator.tip().0, Height(4312));
    let stats = validator.stats();
    assert_eq!((stats.blocks, stats.transactions, stats.inputs), (4312, 4370, 247));
}

/// Testnet3 with its minimum-difficulty blocks, its BIP-0016 exception (block 394) and 1,919 spends.
/// checklist: 24, 27
#[test]
fn testnet3_from_genesis() {
    let validator = run_from_genesis("blocks/runs/test3_000000_004000.blk.zst", Chain::Test);
    assert_eq!(validator.tip().0, Height(4000));
    assert_eq!((validator.stats().transactions, validator.stats().inputs), (4941, 1919));
}

/// Block 394 is rejected if its exception is removed from the parameters.
/// checklist: 27
#[test]
fn testnet3_without_its_exception_fails_at_394() {
    let mut params = Params::new(Chain::Test);
    params.script_flag_exceptions.clear();
    let blocks = blocks(&read(&testdata("blocks/runs/test3_000000_004000.blk.zst")), params.magic);
    let mut validator = PlainValidator::new(params);
    let outcome =
        blocks.into_iter().skip(1).take(394).map(|block| validator.accept_block(block, NOW)).find_map(Result::err);
    let reason = outcome.map(|rejected| rejected.reason()).unwrap();
    assert!(reason.starts_with("block-script-verify-flag-failed"), "{reason}");
    assert_eq!(validator.tip().0, Height(393));
}

/// Signet: every block's solution, OP_1 as the height of block 1, and witness commitments from the start.
/// checklist: 7, 28, 32
#[test]
fn signet_from_genesis() {
    let validator = run_from_genesis("blocks/runs/signet_000000_000120.blk.zst", Chain::Signet);
    assert_eq!(validator.tip().0, Height(120));
}

/// A solution with a changed bit, or of another block, is invalid.
/// checklist: 32
#[test]
fn signet_solutions_are_checked() {
    let params = Params::new(Chain::Signet);
    let blocks = blocks(&read(&testdata("blocks/runs/signet_000000_000120.blk.zst")), params.magic);
    for block in &blocks[1..20] {
        assert_eq!(check_block(block, &params), Ok(()));
        let mut changed = lydian_primitives::build::MutBlock::from(block);
        let output = block.witness_commitment().unwrap().output_index;
        let script = &mut changed.txs[0].outputs[output].script_pubkey;
        let at = script.len() - 20;
        script[at] ^= 1;
        let changed = RawBlock::new(changed.encode()).parse().unwrap();
        // The header's hash is unchanged, so the work is still valid; the solution is checked before the merkle root.
        assert_eq!(check_block(&changed, &params).unwrap_err().rule, Rule::BadSignetBlksig);
        let mut other_time = lydian_primitives::build::MutBlock::from(block);
        other_time.header.time += 1;
        let other_time = RawBlock::new(other_time.encode()).parse().unwrap();
        assert!(!lydian_consensus::signet::is_signet_solved(&other_time, &params));
    }
}

/// Chain, height and hash from a file name like `main-57043-HASH.block.zst`.
fn parts(path: &Path) -> (Chain, Option<Height>, String) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut parts = name.split(['-', '.']);
    let chain = match parts.next().unwrap() {
        "main" => Chain::Main,
        "test3" => Chain::Test,
        "test4" => Chain::Testnet4,
        "signet" => Chain::Signet,
        other => panic!("{other}"),
    };
    (chain, parts.next().unwrap().parse().ok().map(Height), parts.next().unwrap().to_owned())
}

fn with_prevouts(path: &Path, mode: Mode<'_>) -> PrevoutReport {
    let (chain, height, hash) = parts(path);
    let block = RawBlock::new(read(path)).parse().unwrap();
    assert_eq!(block.hash().to_string(), hash);
    let coins = path.to_str().unwrap().replace(".block.", ".prevouts.");
    let spent = spent_coins(&read(Path::new(&coins)));
    verify_with_prevouts(&Params::new(chain), height.unwrap(), block, spent, NOW, mode).unwrap()
}

/// Every script of 29 real blocks from all periods, with the flags of their heights, in both modes.
/// checklist: 53, 54
#[test]
fn real_blocks_with_their_spent_outputs() {
    let folder = testdata("blocks/with_prevouts");
    let found: Vec<_> =
        files(&folder).into_iter().filter(|path| path.to_str().unwrap().ends_with(".block.zst")).collect();
    assert_eq!(found.len(), 29);
    let mut inputs = 0;
    for path in &found {
        let exact = with_prevouts(path, Mode::Exact);
        assert_eq!(exact.violation, None, "{}", path.display());
        let mut captured = with_prevouts(path, Mode::Capture(&lydian_curve::Reference));
        // A capture run settles all candidate pairs of a multisig; an exact run stops once enough signatures have
        // matched.
        assert!(captured.stats.checks.ecdsa >= exact.stats.checks.ecdsa);
        captured.stats.checks = exact.stats.checks;
        assert_eq!(captured, exact, "{}", path.display());
        assert!(exact.decided.contains(&Rule::ScriptVerify) && exact.decided.contains(&Rule::BadCbAmount));
        inputs += exact.stats.inputs;
    }
    assert_eq!(inputs, 74_841);
}

/// The block of 2010 that created 184 billion coins.
/// checklist: 1
#[test]
fn the_overflow_block_is_refused() {
    let [path] = &files(&testdata("blocks/invalid"))[..] else { panic!("one file expected") };
    let block = RawBlock::new(read(path)).parse().unwrap();
    assert_eq!(block.hash().to_string(), "0000000000790ab3f22ec756ad43b6ab569abf0bddeb97c67a6f7b1470a7ec1c");
    let report = verify_alone(&Params::new(Chain::Main), Some(Height(74_638)), block, NOW);
    let violation = report.violation.unwrap();
    assert_eq!((violation.rule, violation.tx), (Rule::TxVoutToolarge, Some(1)));
    assert_eq!(violation.reject_reason(), "bad-txns-vout-toolarge");
}

/// Single blocks from mainnet, the testnets and stale branches: all rules that need no coins.
#[test]
fn single_real_blocks() {
    for (folder, expected) in [("blocks/main", 36), ("blocks/testnets", 44), ("blocks/stale", 6)] {
        let Some(folder) = shared(folder) else { continue };
        let found = files(&folder);
        assert_eq!(found.len(), expected, "{}", folder.display());
        for path in found {
            let name = path.file_name().unwrap().to_str().unwrap();
            let (chain, height) = match name.split_once('-').unwrap() {
                ("test3" | "test4" | "signet", _) => (parts(&path).0, parts(&path).1),
                (height, _) => (Chain::Main, height.parse().ok().map(Height)),
            };
            let block = RawBlock::new(read(&path)).parse().unwrap();
            assert!(name.contains(&block.hash().to_string()));
            let report = verify_alone(&Params::new(chain), height, block, NOW);
            assert_eq!(report.violation, None, "{name}");
        }
    }
}

/// A run of consecutive headers that may start at any height.
struct Run {
    first_height: u32,
    headers: Vec<Ancestor>,
}

impl HeaderView for Run {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.headers.get(height.0.checked_sub(self.first_height)? as usize).copied()
    }
}

fn header_run(file: &str, first_height: u32) -> Option<Run> {
    let bytes = read(&shared(&format!("headers/{file}"))?);
    assert_eq!(bytes.len() % 80, 0);
    let headers = bytes.as_chunks::<80>().0.iter().map(Header::parse);
    let headers = headers.map(|header| Ancestor { hash: header.hash(), header }).collect();
    Some(Run { first_height, headers })
}

/// Every header of every run: work, linkage, times, versions, and every target that the run determines.
/// checklist: 22, 23, 24
#[test]
fn real_headers() {
    let mut retargets = 0;
    for (file, chain, first_height, count) in [
        ("main_000000_010236.bin.zst", Chain::Main, 0, 10_237),
        ("main_080000_100006.bin.zst", Chain::Main, 80_000, 20_007),
        ("main_150000_340000.bin.zst", Chain::Main, 150_000, 190_001),
        ("signet_000000_002016.bin.zst", Chain::Signet, 0, 2017),
        ("test3_000000_009999.bin.zst", Chain::Test, 0, 10_000),
        ("test3_1714177_1716192.bin.zst", Chain::Test, 1_714_177, 2016),
        ("test4_000000_000100.bin.zst", Chain::Testnet4, 0, 101),
    ] {
        let Some(run) = header_run(file, first_height) else { continue };
        let params = Params::new(chain);
        assert_eq!(run.headers.len(), count);
        for pair in run.headers.windows(2).enumerate() {
            let (index, [parent, child]) = pair else { unreachable!() };
            let parent_height = Height(first_height + u32::try_from(index).unwrap());
            let height = Height(parent_height.0 + 1);
            assert_eq!(child.header.prev_block, parent.hash, "{file} {height}");
            assert!(is_proof_of_work(&child.hash, child.header.bits, &params), "{file} {height}");
            assert!(child.header.version >= version_floor(height, &params), "{file} {height}");
            if let Some(median) = run.median_time_past(parent_height) {
                assert!(i64::from(child.header.time) > median, "{file} {height}");
            }
            if let Some(required) = next_work_required(&child.header, parent_height, &run, &params) {
                assert_eq!(child.header.bits, required, "{file} {height}");
                retargets += u32::from(height.0.is_multiple_of(2016));
            }
        }
    }
    if shared("headers").is_some() {
        assert_eq!(retargets, 5 + 9 + 93 + 1 + 4, "retargets recomputed");
    }
}

/// All retargets of mainnet up to height 832,608, computed from the first and last header of each period.
/// checklist: 23
#[test]
fn every_retarget_of_mainnet() {
    let Some(path) = shared("headers/main_epoch_edges.tsv.zst") else { return };
    let text = String::from_utf8(read(&path)).unwrap();
    let params = Params::new(Chain::Main);
    let header = |field: &str| {
        let bytes = lydian_primitives::hex(field).ok()?;
        Some(Header::parse(&bytes.try_into().ok()?))
    };
    let epochs: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            (header(fields[1]), header(fields[2]))
        })
        .collect();
    let mut recomputed = 0;
    for pair in epochs.windows(2) {
        let [(Some(first), Some(last)), (Some(next), _)] = pair else { continue };
        assert_eq!(retarget(first, last, &params), next.bits, "after the header of time {}", first.time);
        recomputed += 1;
    }
    assert_eq!(recomputed, 413);
}

/// The coins after each run have the hashes that Bitcoin Core reports (`crates/oracle/tests/real_chains.rs` compares
/// them with a running Core).
/// checklist: 96, 97
#[test]
fn utxo_hashes_of_the_runs() {
    for (file, chain, serialized, muhash) in [
        (
            "blocks/runs/main_000000_004312.blk.zst",
            Chain::Main,
            "fa5670424a993c1c40c2ec80fdac5deaf80f14f3857ea2e16a1339ee7a596e62",
            "8ddda2747fb03d2bf57e08a23d4cab90f9e062c28bf5822760edc5238128a7e5",
        ),
        (
            "blocks/runs/test3_000000_004000.blk.zst",
            Chain::Test,
            "d47a6ca2d786f0db1f8ce4bb8d56d5b26778c8dff317f62036e56b9d7ea0e82c",
            "6a155d607dccdf17321178f9598283ca7d2b05cc7fa64f8cc4293f2533ff7124",
        ),
        (
            "blocks/runs/signet_000000_000120.blk.zst",
            Chain::Signet,
            "6d9f9fd0d6598843659a78f451c1f577690c1ef4a0d9bd0c41ad3877d85d43d3",
            "a0e968901678296996072f24a75f381740acea4ef28cb1409ce2739887faf58b",
        ),
    ] {
        let validator = run_from_genesis(file, chain);
        assert_eq!(BlockHash(validator.hash_serialized_3()).to_string(), serialized, "{chain}");
        assert_eq!(BlockHash(validator.muhash()).to_string(), muhash, "{chain}");
    }
}
