//! Submits one block to the plain validator and to Core, and compares their answers exactly.
//!
//! Input: blocks, valid or not. Output: the common verdict, or a panic with everything needed to reproduce the
//! difference. If `submitblock` does not report a reason, it is obtained in another way; the README of this crate lists
//! the cases.

use super::plan::State;
use super::rng::Random;
use super::wallet::{OwnCoin, Wallet};
use lydian_consensus::deployment::script_flags;
use lydian_consensus::{
    Accepted, Deployment, Mode, Params, PlainValidator, Rejected, Rule, SpentCoin, Step, Violation,
    verify_with_prevouts,
};
use lydian_curve::Reference;
use lydian_oracle::{Daemon, Submission};
use lydian_primitives::build::MutBlock;
use lydian_primitives::{Amount, Block, BlockHash, Height, OutPoint, Output, RawBlock, to_hex};
use lydian_script::{TxContext, verify_input};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Totals over all blocks.
#[derive(Default, Debug)]
pub struct Tally {
    pub blocks: u64,
    pub reasons: BTreeMap<String, u64>,
    /// The rules that were broken.
    pub rules: BTreeSet<Rule>,
    /// For each change by name: how often the block stayed valid, and how often it did not.
    pub mutations: BTreeMap<&'static str, (u64, u64)>,
    /// Blocks whose scripts were also verified in capture mode.
    pub captures: u64,
    /// Blocks that were disconnected.
    pub disconnected: u64,
    /// Blocks on other branches whose failure was found in Core's log.
    pub found_later: u64,
    pub proposals: u64,
    /// Blocks with several failing scripts, for which Core reported a different one than we did.
    pub several: u64,
    pub txoutsets: u64,
    /// Blocks intended to be valid, and how many of them were.
    pub meant_valid: (u64, u64),
}

pub struct Duel {
    pub validator: PlainValidator,
    pub daemon: Daemon,
    pub now: u32,
    /// How to reproduce a difference: seed and world.
    pub label: String,
    pub tally: Tally,
    /// The parents of the submitted blocks.
    parents: HashMap<BlockHash, BlockHash>,
    /// The number of inputs of each block but its coinbase's.
    input_counts: HashMap<BlockHash, usize>,
}

/// The common verdict on a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On the active chain.
    Active,
    /// Stored, on another branch.
    Stored,
    Rejected(String),
}

impl Verdict {
    /// Returns Core's word for the verdict.
    pub fn word(&self) -> &str {
        match self {
            Verdict::Active => "accepted",
            Verdict::Stored => "inconclusive",
            Verdict::Rejected(reason) => reason,
        }
    }
}

impl Duel {
    pub fn new(params: &Params, mut daemon: Daemon, now: u32, label: String) -> Duel {
        daemon.set_mock_time(u64::from(now)).unwrap();
        let validator = PlainValidator::new(params.clone());
        Duel {
            validator,
            daemon,
            now,
            label,
            tally: Tally::default(),
            parents: HashMap::new(),
            input_counts: HashMap::new(),
        }
    }

    pub fn set_now(&mut self, now: u32) {
        self.now = now;
        self.daemon.set_mock_time(u64::from(now)).unwrap();
    }

    /// Submits a block to both. `state` is that of its parent, if known; `note` says how the block was made.
    pub fn submit(&mut self, block: &MutBlock, state: Option<&State>, note: &str) -> Verdict {
        let Some(repaired) = self.repaired(block) else { return self.submit_bytes(&block.encode(), state, note) };
        let bytes = repaired.encode();
        match self.propose(block, note) {
            // Only our side remembers this failure: a proposal leaves no trace in Core. The repair does not affect the
            // violation.
            Some(violation)
                if !violation.rule.is_of_the_bytes() && violation.rule.info().step == Step::BlockInChain =>
            {
                let verdict = Verdict::Rejected(violation.reject_reason());
                let core = self.daemon.submit_block(&bytes).unwrap();
                if core != Submission::Rejected(verdict.word().to_owned()) {
                    self.differ(
                        &bytes,
                        &format!("{note}, proposed and repaired"),
                        verdict.word(),
                        &format!("{core:?}"),
                    );
                }
                verdict
            }
            _ => self.submit_bytes(&bytes, state, note),
        }
    }

    /// Returns the block as `submitblock` changes it before validation (`UpdateUncommittedBlockStructures`): a coinbase
    /// with a commitment but without a witness gets 32 zero bytes. Returns `None` if nothing is changed.
    fn repaired(&self, block: &MutBlock) -> Option<MutBlock> {
        let parent = self.validator.height_of(&block.header.prev_block)?;
        let params = self.validator.params();
        let coinbase = block.txs.first()?;
        let has_commitment = coinbase.outputs.iter().any(|output| {
            output.script_pubkey.len() >= 38 && output.script_pubkey.starts_with(&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed])
        });
        let is_repaired =
            has_commitment && params.is_active(Deployment::Segwit, Height(parent.0 + 1)) && !coinbase.has_witness();
        is_repaired.then(|| {
            let mut block = block.clone();
            block.txs[0].inputs[0].witness = vec![vec![0; 32]];
            block
        })
    }

    /// Compares the unchanged block as a proposal on the tip, which repairs and stores nothing. Returns the violation.
    fn propose(&mut self, block: &MutBlock, note: &str) -> Option<Violation> {
        let (_, tip) = self.validator.tip();
        if block.header.prev_block != tip || self.validator.height_of(&block.header.hash()).is_some() {
            return None;
        }
        let bytes = block.encode();
        let violation = match self.ours(&bytes) {
            // Proposals need no proof of work.
            Ours::Violation(violation) if violation.rule != Rule::HighHash => violation,
            _ => return None,
        };
        let ours = violation.reject_reason();
        let core = self.daemon.propose_block(&bytes).unwrap();
        self.tally.proposals += 1;
        self.tally.blocks += 1;
        *self.tally.reasons.entry(ours.clone()).or_default() += 1;
        if core != Submission::Rejected(ours.clone()) {
            self.differ(&bytes, &format!("{note}, proposed"), &ours, &format!("{core:?}"));
        }
        Some(violation)
    }

    /// Submits bytes to both.
    pub fn submit_bytes(&mut self, bytes: &[u8], state: Option<&State>, note: &str) -> Verdict {
        let ours = self.ours(bytes);
        let core = self.daemon.submit_block(bytes).unwrap();
        let verdict = ours.verdict();
        let expected = match &ours {
            Ours::Undecodable => Submission::Undecodable,
            Ours::Rejected(Rejected::Duplicate) => Submission::Duplicate,
            Ours::Accepted(accepted) if accepted.is_active || self.was_active(accepted) => Submission::Accepted,
            Ours::Accepted(_) => Submission::Inconclusive,
            _ => Submission::Rejected(verdict.word().to_owned()),
        };
        if core != expected {
            if !self.is_another_failure(bytes, state, &ours, &core) {
                self.differ(bytes, note, &format!("{ours:?}"), &format!("{core:?}"));
            }
            self.tally.several += 1;
        }
        self.tally.blocks += 1;
        *self.tally.reasons.entry(verdict.word().to_owned()).or_default() += 1;
        if let Ours::Violation(violation) = &ours {
            self.tally.rules.insert(violation.rule);
        }
        if let Ours::Accepted(accepted) = &ours {
            self.tally.disconnected += accepted.disconnected as u64;
            self.compare_found_later(bytes, accepted, note);
        }
        self.compare_captured(bytes, state, &ours, note);
        self.compare_tips(bytes, note);
        verdict
    }

    /// Whether several scripts of the block fail and Core reports one other than the first: which one depends on its
    /// threads.
    fn is_another_failure(&self, bytes: &[u8], state: Option<&State>, ours: &Ours, core: &Submission) -> bool {
        let (Ours::Violation(violation), Submission::Rejected(reason)) = (ours, core) else { return false };
        let (Some(state), Ok(block)) = (state, parse(bytes)) else { return false };
        let height = Height(state.height + 1);
        let Some(spent) = spent_coins(&block, state, height) else { return false };
        let flags = script_flags(height, &block.hash(), self.validator.params());
        let mut rest = &spent[..];
        let mut reasons = Vec::new();
        for tx in block.txs().skip(1) {
            let (coins, later) = rest.split_at(tx.input_count());
            rest = later;
            let output = |coin: &SpentCoin| (coin.value, coin.script_pubkey.clone());
            let owned: Vec<_> = coins.iter().map(output).collect();
            let outputs: Vec<_> =
                owned.iter().map(|(value, script)| Output { value: *value, script_pubkey: script }).collect();
            let context = TxContext::new(tx, &outputs).unwrap();
            for input in 0..tx.input_count() {
                if let Err(error) = verify_input(&context, input, flags) {
                    let failure = Violation { script_error: Some(error), ..Violation::of(Rule::ScriptVerify) };
                    reasons.push(failure.reject_reason());
                }
            }
        }
        violation.rule == Rule::ScriptVerify && reasons.len() > 1 && reasons.contains(reason)
    }

    /// Whether the tip passed through the block and then left it because a block that had waited for it failed. Core
    /// reports such a block as accepted.
    fn was_active(&self, accepted: &Accepted) -> bool {
        accepted.invalid.iter().any(|(hash, _)| {
            std::iter::successors(Some(hash), |hash| self.parents.get(hash)).any(|hash| *hash == accepted.hash)
        })
    }

    fn ours(&mut self, bytes: &[u8]) -> Ours {
        let Ok(block) = parse(bytes) else { return Ours::Undecodable };
        self.parents.insert(block.hash(), block.header().prev_block);
        let inputs = block.txs().skip(1).map(|tx| tx.input_count()).sum();
        self.input_counts.insert(block.hash(), inputs);
        match self.validator.accept_block(block, self.now) {
            Ok(accepted) => Ours::Accepted(accepted),
            Err(Rejected::Violation(violation)) => Ours::Violation(violation),
            Err(other) => Ours::Rejected(other),
        }
    }

    /// Compares blocks below that failed when this one made their branch the longest. `submitblock` does not report
    /// them, but the log does.
    fn compare_found_later(&mut self, bytes: &[u8], accepted: &Accepted, note: &str) {
        for (hash, violation) in &accepted.invalid {
            let ours = violation.reject_reason();
            let core = self.daemon.connect_failure(&hash.to_string()).unwrap();
            // Of two scripts that fail, Core names the one that a thread of its finds first; the coins that would tell
            // whether there are two are gone by now.
            let is_of_scripts = |reason: &str| reason.starts_with("block-script-verify-flag-failed");
            let has_many = self.input_counts.get(hash).is_some_and(|count| *count > 1);
            let is_other_script = has_many && is_of_scripts(&ours) && core.as_deref().is_some_and(is_of_scripts);
            if core.as_deref() != Some(&ours) && !is_other_script {
                self.differ(bytes, &format!("{note}, failure of {hash}"), &ours, &format!("{core:?}"));
            }
            self.tally.found_later += 1;
            *self.tally.reasons.entry(ours).or_default() += 1;
        }
    }

    /// Compares the verdict on scripts with that of capture mode, in which signatures are collected and settled at
    /// once.
    fn compare_captured(&mut self, bytes: &[u8], state: Option<&State>, ours: &Ours, note: &str) {
        let expected = match ours {
            Ours::Accepted(accepted) if accepted.is_active => None,
            Ours::Violation(violation) if violation.rule == Rule::ScriptVerify => Some(*violation),
            _ => return,
        };
        let (Some(state), Ok(block)) = (state, parse(bytes)) else { return };
        let height = Height(state.height + 1);
        let Some(spent) = spent_coins(&block, state, height) else { return };
        let mode = Mode::Capture(&Reference);
        let report = verify_with_prevouts(self.validator.params(), height, block, spent, self.now, mode).unwrap();
        if report.violation != expected {
            let captured = format!("captured: {:?}", report.violation);
            self.differ(bytes, note, &captured, &format!("exact: {expected:?}"));
        }
        self.tally.captures += 1;
    }

    fn compare_tips(&mut self, bytes: &[u8], note: &str) {
        let (_, ours) = self.validator.tip();
        let core = self.daemon.best_block_hash().unwrap();
        if ours.to_string() != core {
            self.differ(bytes, &format!("{note}, tip"), &ours.to_string(), &core);
        }
    }

    /// Compares the hash of all coins.
    pub fn compare_coins(&mut self, hash_type: &str) {
        let core = self.daemon.txoutset(hash_type).unwrap();
        let mut ours = if hash_type == "muhash" { self.validator.muhash() } else { self.validator.hash_serialized_3() };
        ours.reverse();
        let (height, tip) = self.validator.tip();
        let of_ours = (u64::from(height.0), tip.to_string(), self.validator.coin_count() as u64, Some(to_hex(&ours)));
        let of_core = (core.height, core.best_block, core.txouts, core.hash);
        assert_eq!(of_ours, of_core, "coins differ (ours, Core's) at {}, {hash_type}", self.label);
        self.tally.txoutsets += 1;
    }

    fn differ(&self, bytes: &[u8], note: &str, ours: &str, core: &str) -> ! {
        let block = if bytes.len() < 100_000 {
            to_hex(bytes)
        } else {
            let path = std::env::temp_dir().join("lydian-difference.hex");
            std::fs::write(&path, to_hex(bytes)).unwrap();
            format!("in {}", path.display())
        };
        let log = self.daemon.log_tail(600).unwrap_or_default();
        panic!("{}: {note}\nours: {ours}\ncore: {core}\nblock: {block}\nCore's log: {log}", self.label)
    }
}

/// Our answer before it is translated to Core's words.
#[derive(Debug)]
enum Ours {
    Undecodable,
    Accepted(Accepted),
    Violation(Violation),
    Rejected(Rejected),
}

impl Ours {
    fn verdict(&self) -> Verdict {
        match self {
            Ours::Undecodable => Verdict::Rejected("undecodable".to_owned()),
            Ours::Accepted(accepted) if accepted.is_active => Verdict::Active,
            Ours::Accepted(_) => Verdict::Stored,
            Ours::Violation(violation) => Verdict::Rejected(violation.reject_reason()),
            Ours::Rejected(rejected) => Verdict::Rejected(rejected.reason()),
        }
    }
}

/// Core reads a block and ignores the bytes after it; our parser refuses them.
fn parse(bytes: &[u8]) -> Result<Block, lydian_primitives::ParseError> {
    RawBlock::new(bytes.to_vec()).parse()
}

/// Returns the coins that a block spends, if all are known.
fn spent_coins(block: &Block, state: &State, height: Height) -> Option<Vec<SpentCoin>> {
    let mut own: HashMap<OutPoint, SpentCoin> = HashMap::new();
    let mut spent = Vec::new();
    for tx in block.txs() {
        if !tx.is_coinbase() {
            for input in tx.inputs() {
                let known = |coin: &Rc<OwnCoin>| SpentCoin {
                    value: Amount(coin.value),
                    script_pubkey: coin.script_pubkey.clone().into(),
                    origin: Some((coin.height, coin.is_coinbase)),
                };
                spent.push(own.get(&input.prevout).cloned().or_else(|| state.coins.get(&input.prevout).map(known))?);
            }
        }
        for (vout, output) in (0..).zip(tx.outputs()) {
            let origin = Some((height, tx.is_coinbase()));
            let coin = SpentCoin { value: output.value, script_pubkey: output.script_pubkey.into(), origin };
            own.insert(OutPoint { txid: tx.txid(), vout }, coin);
        }
    }
    Some(spent)
}

/// Damages the bytes of a block, so that they are usually no longer a block.
pub fn garble(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = random.below(bytes.len());
    match random.below(3) {
        0 => bytes.truncate(at),
        1 => bytes[80.max(at)..].fill(0xff),
        _ => bytes[80] = bytes[80].wrapping_add(1),
    }
    bytes
}

impl std::fmt::Debug for Wallet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wallet")
    }
}
