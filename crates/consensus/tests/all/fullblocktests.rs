//! Runs btcd's full-block tests (package `blockchain/fullblocktests` of github.com/btcsuite/btcd v0.25.0, ISC licence)
//! on the plain validator and compares every expectation, with reject reasons translated to Core's.
//!
//! Input: the dump that `make fullblocktests` writes. It is generated each time because the tests contain the current
//! time. The head of `tools/fullblocktests/main.go` describes its format and the differences between Bitcoin Core and
//! btcd.
#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::disallowed_methods, reason = "a test that reads a file")]

use crate::common;
use lydian_consensus::{Accepted, Chain, Params, PlainValidator, Rejected, block_subsidy};
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Block, BlockHash, Header, Height, OutPoint, RawBlock, hex};
use serde_json::Value;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;

/// Core's reject reasons for btcd's reject codes.
const REASONS: &[(&str, &str)] = &[
    ("ErrMissingTxOut", "bad-txns-inputs-missingorspent"),
    ("ErrBadCoinbaseValue", "bad-cb-amount"),
    ("ErrTooManySigOps", "bad-blk-sigops"),
    ("ErrImmatureSpend", "bad-txns-premature-spend-of-coinbase"),
    ("ErrBlockTooBig", "bad-blk-length"),
    ("ErrNoTransactions", "bad-blk-length"),
    ("ErrBadCoinbaseScriptLen", "bad-cb-length"),
    ("ErrFirstTxNotCoinbase", "bad-cb-missing"),
    ("ErrMultipleCoinbases", "bad-cb-multiple"),
    ("ErrHighHash", "high-hash"),
    ("ErrUnexpectedDifficulty", "bad-diffbits"),
    ("ErrTimeTooNew", "time-too-new"),
    ("ErrTimeTooOld", "time-too-old"),
    ("ErrBadMerkleRoot", "bad-txnmrklroot"),
    ("ErrDuplicateTx", "bad-txns-duplicate"),
    ("ErrSpendTooHigh", "bad-txns-in-belowout"),
    ("ErrOverwriteTx", "bad-txns-BIP30"),
    ("ErrUnfinalizedTx", "bad-txns-nonfinal"),
];

/// Blocks for which Core gives another reason. b51: its repeated transactions are not aligned pairs of the merkle tree,
/// so they are no mutation. b49a: the proof of work is checked before the target is compared with the required one.
const OTHER_REASONS: &[(&str, &str)] = &[("b51", "bad-txns-inputs-missingorspent"), ("b49a", "high-hash")];

/// Blocks for which another block fails than btcd reports: b8 and b19 add work to a branch in which a lower block
/// fails, and b14, a waiting descendant of b12, fails instead of b12.
const OTHER_BLOCKS: &[(&str, &str)] = &[("b8", "b7"), ("b19", "b18"), ("b12", "b14")];

/// Stored by Core but not validated: it is on a branch without more work, and its merkle tree is not a mutation.
const STORED: &str = "b56p2";

/// Number of expectations of each kind.
const COUNTS: &[(&str, usize)] = &[
    ("accepted", 143),
    ("rejected", 42),
    ("expected_tip", 12),
    ("orphan_or_rejected", 3),
    ("utxo_after_disconnect", 3),
    ("rejected_non_canonical", 1),
];

fn file() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    cache.unwrap_or_else(home).join("lydian/fullblocktests-0.25.0.jsonl")
}

/// Whether this machine can generate the dump: Go 1.21 and later download the toolchain they need.
fn has_go() -> bool {
    let Ok(output) = Command::new("go").args(["env", "GOVERSION"]).output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = text.trim().strip_prefix("go1.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    minor.is_some_and(|minor| minor >= 21)
}

fn dump() -> Option<Vec<Value>> {
    let path = file();
    let Ok(text) = std::fs::read_to_string(&path) else {
        let missing = format!("{} is missing: `make fullblocktests` writes it", path.display());
        let is_required = std::env::var("LYDIAN_REQUIRE_JUDGE").is_ok_and(|value| value == "1");
        assert!(!is_required || !has_go(), "{missing}");
        eprintln!("not run: btcd's full-block tests: {missing} (with Go 1.21 or newer)");
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn params() -> Params {
    let settings = ["dersig@1251", "cltv@1351", "bip34@100000000", "csv@100000000", "segwit@100000000"];
    let with = |params: Params, setting| params.with_activation_height(setting).unwrap();
    settings.into_iter().fold(Params::new(Chain::Regtest), with)
}

#[test]
fn btcds_expectations_hold() {
    let Some(lines) = dump() else { return };
    let (parameters, expectations) = lines.split_first().unwrap();
    assert_eq!((&parameters["kind"], &parameters["version"]), (&"parameters".into(), &1.into()));
    let now = u32::try_from(parameters["generated_at"].as_u64().unwrap()).unwrap();
    let mut replay = Replay::new(now);
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in expectations {
        let kind = line["kind"].as_str().unwrap();
        *counts.entry(kind).or_default() += 1;
        replay.expect(kind, line);
    }
    if parameters["large"] == false {
        assert_eq!(counts, COUNTS.iter().copied().collect());
    }
    eprintln!("btcd's full-block tests: {} expectations hold", expectations.len());
}

/// The validator, and a waiting list for blocks with an unknown parent.
struct Replay {
    validator: PlainValidator,
    now: u32,
    /// Waiting blocks by their parent.
    waiting: HashMap<BlockHash, Vec<Block>>,
    /// The bytes of all blocks.
    blocks: HashMap<BlockHash, Vec<u8>>,
    names: HashMap<BlockHash, String>,
}

/// The result of submitting a block.
#[derive(Default, Debug)]
struct Outcome {
    is_waiting: bool,
    accepted: Option<Accepted>,
    /// Names of the blocks that broke a rule, with Core's reject reasons.
    failures: Vec<(String, String)>,
}

impl Replay {
    fn new(now: u32) -> Replay {
        let (blocks, names) = (HashMap::new(), HashMap::new());
        Replay { validator: PlainValidator::new(params()), now, waiting: HashMap::new(), blocks, names }
    }

    fn expect(&mut self, kind: &str, line: &Value) {
        let name = line["name"].as_str().unwrap();
        let hash: BlockHash = line["hash"].as_str().unwrap().parse().unwrap();
        let height = line["height"].as_u64();
        let bytes = line["block"].as_str().map(|text| hex(text).unwrap());
        match kind {
            "rejected_non_canonical" => {
                assert!(RawBlock::new(bytes.unwrap()).parse().is_err(), "{name} does not decode");
            }
            "expected_tip" => {
                assert_eq!(self.validator.tip().1, hash, "tip {name}");
                assert_eq!(Some(u64::from(self.validator.tip().0.0)), height);
            }
            "utxo_after_disconnect" => {
                let vout = u32::try_from(line["vout"].as_u64().unwrap()).unwrap();
                let outpoint = OutPoint { txid: line["txid"].as_str().unwrap().parse().unwrap(), vout };
                assert_eq!(self.has_coin_without(&hash, &outpoint), line["exists"] == true, "{name} below {hash}");
            }
            _ => {
                let outcome = self.hand_over(name, hash, bytes.unwrap());
                self.check_outcome(kind, name, line, &outcome);
                let known = self.validator.height_of(&hash).map(|height| u64::from(height.0));
                assert!(known.is_none() || known == height, "{name} is at {known:?}");
            }
        }
    }

    fn check_outcome(&self, kind: &str, name: &str, line: &Value, outcome: &Outcome) {
        match kind {
            "accepted" => {
                assert_eq!(outcome.failures, [], "{name}");
                assert_eq!(line["orphan"], outcome.is_waiting, "{name}");
                let is_active = outcome.accepted.as_ref().is_some_and(|accepted| accepted.is_active);
                assert_eq!(line["main_chain"], is_active, "{name}");
            }
            "orphan_or_rejected" => {
                assert!(outcome.is_waiting || outcome.failures[0].1 == "bad-prevblk", "{name}: {outcome:?}");
            }
            "rejected" if name == STORED => {
                assert_eq!(outcome.failures, []);
                assert!(outcome.accepted.as_ref().is_some_and(|accepted| !accepted.is_active), "{name}");
            }
            "rejected" => {
                let find = |table: &[(&str, &'static str)], key: &str| {
                    table.iter().find(|(name, _)| *name == key).map(|(_, found)| *found)
                };
                let code = line["reject_code"].as_str().unwrap();
                let reason = find(OTHER_REASONS, name).or(find(REASONS, code)).unwrap();
                let failing = find(OTHER_BLOCKS, name).unwrap_or(name);
                assert_eq!(outcome.failures, [(failing.to_owned(), reason.to_owned())], "{name}: {code}");
            }
            other => panic!("an unknown kind of expectation: {other}"),
        }
    }

    /// Submits a block, and then the blocks that waited for it.
    fn hand_over(&mut self, name: &str, hash: BlockHash, bytes: Vec<u8>) -> Outcome {
        let block = RawBlock::new(bytes.clone()).parse().unwrap();
        assert_eq!(block.hash(), hash, "{name}");
        self.blocks.insert(hash, bytes);
        self.names.insert(hash, name.to_owned());
        let mut outcome = Outcome::default();
        let parent = block.header().prev_block;
        if self.validator.height_of(&parent).is_none() {
            self.waiting.entry(parent).or_default().push(block);
            outcome.is_waiting = true;
            return outcome;
        }
        outcome.accepted = self.take(block, &mut outcome.failures);
        let mut arrived = vec![hash];
        while let Some(parent) = arrived.pop() {
            if self.validator.height_of(&parent).is_none() {
                continue;
            }
            for child in self.waiting.remove(&parent).unwrap_or_default() {
                arrived.push(child.hash());
                self.take(child, &mut outcome.failures);
            }
        }
        outcome
    }

    fn take(&mut self, block: Block, failures: &mut Vec<(String, String)>) -> Option<Accepted> {
        let hash = block.hash();
        match self.validator.accept_block(block, self.now) {
            Ok(accepted) => {
                let found = |(hash, violation): &(BlockHash, lydian_consensus::Violation)| {
                    (self.names[hash].clone(), violation.reject_reason())
                };
                failures.extend(accepted.invalid.iter().map(found));
                Some(accepted)
            }
            Err(Rejected::Violation(violation)) => {
                failures.push((self.names[&hash].clone(), violation.reject_reason()));
                None
            }
            Err(other) => panic!("{}: {other}", self.names[&hash]),
        }
    }

    /// Whether an output exists right after a block was disconnected. Uses a new validator that connects the block and
    /// then reorganises to a branch with two empty blocks.
    fn has_coin_without(&self, hash: &BlockHash, outpoint: &OutPoint) -> bool {
        let parse = |hash: &BlockHash| RawBlock::new(self.blocks[hash].clone()).parse().unwrap();
        let mut chain = Vec::new();
        let mut at = *hash;
        while at != self.validator.params().genesis_hash {
            chain.push(at);
            at = parse(&at).header().prev_block;
        }
        let mut validator = PlainValidator::new(params());
        for hash in chain.iter().rev() {
            validator.accept_block(parse(hash), self.now).unwrap();
        }
        assert_eq!(validator.tip().1, *hash);
        let height = validator.tip().0.0;
        let first = empty(chain[1], height, parse(hash).header().time);
        let second = empty(first.header.hash(), height + 1, first.header.time + 1);
        let accept = |validator: &mut PlainValidator, block: &MutBlock| {
            validator.accept_block(common::parse(block), self.now).unwrap()
        };
        assert!(!accept(&mut validator, &first).is_active);
        assert_eq!(accept(&mut validator, &second).disconnected, 1);
        validator.coin(outpoint).is_some()
    }
}

/// A block with only a coinbase.
fn empty(prev_block: BlockHash, height: u32, time: u32) -> MutBlock {
    let script_sig = height.to_le_bytes().to_vec();
    let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
    let output = MutOutput { value: block_subsidy(Height(height), &params()), script_pubkey: common::true_script() };
    let coinbase = MutTx { version: 1, inputs: vec![input], outputs: vec![output], lock_time: 0 };
    let header = Header { version: 1, prev_block, merkle_root: [0; 32], time, bits: 0x207f_ffff, nonce: 0 };
    let mut block = MutBlock { header, txs: vec![coinbase] };
    block.seal_merkle_root();
    block.seal_work_on_regtest();
    block
}
