//! Random blocks, compared between the plain validator and Bitcoin Core: same verdict, same reject reason, same tip,
//! same coins, for each block.
//!
//! Each world is a regtest chain with its own activation heights. Valid blocks with spends of every kind are made,
//! changed in one thing, sealed again and given to both. Branches grow beside the chain, overtake it, or fail in the
//! middle. A fixed number of worlds always runs, and more until LYDIAN_JUDGE_SECONDS have passed. LYDIAN_SEED chooses
//! other worlds; a difference is reported with seed, world and step, and LYDIAN_WORLD=n runs that world again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "modules of one test")]
#![allow(clippy::print_stderr, clippy::disallowed_methods, reason = "a test prints results and reads its settings")]

mod duel;
mod mutations;
mod plan;
mod presets;
mod rng;
mod wallet;

use duel::{Duel, Tally, Verdict, garble};
use lydian_consensus::{Chain, Params, RULES, Rule};
use lydian_oracle::{Daemon, or_skip};
use lydian_primitives::BlockHash;
use lydian_primitives::build::MutBlock;
use mutations::{MUTATIONS, Mutation, Stage};
use plan::{Draft, State};
use rng::Random;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wallet::Wallet;

/// Number of worlds that always run; more run while a rule has not been broken yet.
const WORLDS: u64 = 8;
const WORLDS_MAX: u64 = 40;
/// Steps per world; a step is one to a dozen blocks.
const STEPS: u64 = 300;
const BASE_BLOCKS: u32 = 104;
/// The clock starts some weeks after the genesis block of regtest.
const START: u32 = 1_296_688_602 + 2_000_000;

/// Activation heights of the worlds, in order; further worlds have random ones.
const SETTINGS: &[&[&str]] = &[
    &[],
    &["bip34@100000000"],
    &["bip34@115", "dersig@120", "cltv@130", "csv@140", "segwit@150"],
    &["segwit@125"],
    &["csv@130"],
    &["bip34@100000000", "segwit@100000000", "csv@100000000"],
    &["dersig@160", "cltv@150", "bip34@140", "csv@125", "segwit@112"],
];

/// Rules that no block on regtest breaks, each with the reason.
const OUT_OF_REACH: &[Rule] = &[
    // Rules of signet and testnet4.
    Rule::BadSignetBlksig,
    Rule::TimeTimewarpAttack,
    // These need a block above the size limit, which is checked first, or parts above it (the lab and `rules.rs` cover
    // them).
    Rule::BlockTxCount,
    Rule::TxOversize,
    // The sum of all coins is below the limit.
    Rule::TxInputvaluesOutofrange,
    Rule::AccumulatedFeeOutofrange,
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a setting that is a number"))
}

#[test]
fn random_blocks_have_one_verdict() {
    let seed = number("LYDIAN_SEED").unwrap_or(1);
    let only = number("LYDIAN_WORLD");
    let limit = Duration::from_secs(number("LYDIAN_JUDGE_SECONDS").unwrap_or(20));
    let start = Instant::now();
    let mut total = Tally::default();
    for world in only.unwrap_or(0).. {
        let is_dull = missing(&total).is_some() && world < WORLDS_MAX;
        let is_enough = world >= WORLDS && start.elapsed() > limit && !is_dull;
        if is_enough || only.is_some_and(|only| only != world) {
            break;
        }
        let Some(tally) = World::run(seed, world) else { return };
        add(&mut total, tally);
    }
    report(&total, start.elapsed());
    if only.is_none() {
        assert_eq!(missing(&total), None, "never broken");
        assert!(total.reasons.len() >= 50, "only {} different answers: {:#?}", total.reasons.len(), total.reasons);
        let (meant, were) = total.meant_valid;
        assert!(were * 10 > meant * 9, "{were} of {meant} blocks meant to be valid were");
        assert!(total.several * 500 < total.blocks, "{} blocks with several failing scripts", total.several);
        assert!(total.captures > 1000 && total.disconnected > 100 && total.found_later > 3 && total.proposals > 5);
        for mutation in MUTATIONS {
            let used = total.mutations.get(mutation.name).copied().unwrap_or_default();
            assert!(used.0 + used.1 > 0, "never made: {}", mutation.name);
        }
    }
}

/// Returns a rule that should have been broken by now and was not.
fn missing(total: &Tally) -> Option<&'static str> {
    let is_missing = |rule: &Rule| !OUT_OF_REACH.contains(rule) && !total.rules.contains(rule);
    RULES.iter().find(|info| is_missing(&info.rule)).map(|info| info.name)
}

fn add(total: &mut Tally, one: Tally) {
    total.blocks += one.blocks;
    total.rules.extend(one.rules);
    total.captures += one.captures;
    total.disconnected += one.disconnected;
    total.found_later += one.found_later;
    total.proposals += one.proposals;
    total.several += one.several;
    total.txoutsets += one.txoutsets;
    total.meant_valid.0 += one.meant_valid.0;
    total.meant_valid.1 += one.meant_valid.1;
    one.reasons.into_iter().for_each(|(reason, count)| *total.reasons.entry(reason).or_default() += count);
    for (name, (valid, broken)) in one.mutations {
        let entry = total.mutations.entry(name).or_default();
        (entry.0, entry.1) = (entry.0 + valid, entry.1 + broken);
    }
}

fn report(total: &Tally, time: Duration) {
    eprintln!(
        "{} blocks in {:.1} s, {} answers: {} captured too, {} disconnected, {} failures found later, {} proposed, {} with several failing scripts, {} hashes of all coins",
        total.blocks,
        time.as_secs_f64(),
        total.reasons.len(),
        total.captures,
        total.disconnected,
        total.found_later,
        total.proposals,
        total.several,
        total.txoutsets,
    );
    for (reason, count) in &total.reasons {
        eprintln!("{count:>8} {reason}");
    }
    for (name, (valid, broken)) in &total.mutations {
        eprintln!("  change {name}: {valid} valid, {broken} refused");
    }
}

struct World<'a> {
    params: &'a Params,
    wallet: &'a Wallet,
    random: Random,
    duel: Duel,
    states: HashMap<BlockHash, Rc<State>>,
    /// The states after the latest blocks, valid or not.
    recent: Vec<Rc<State>>,
    /// The latest blocks with the states of their parents.
    history: Vec<(MutBlock, Rc<State>)>,
    step: u64,
}

fn settings(world: u64, random: &mut Random) -> Vec<String> {
    if let Some(fixed) = SETTINGS.get(usize::try_from(world).unwrap()) {
        return fixed.iter().map(|&text| text.to_owned()).collect();
    }
    let mut drawn = Vec::new();
    for name in ["bip34", "dersig", "cltv", "csv", "segwit"] {
        match random.below(3) {
            0 => drawn.push(format!("{name}@{}", 100 + random.below(120))),
            1 => drawn.push(format!("{name}@{}", random.pick(&[1, 2, 100_000_000]))),
            _ => {}
        }
    }
    drawn
}

impl World<'_> {
    /// Returns `None` if there is no daemon.
    fn run(seed: u64, world: u64) -> Option<Tally> {
        let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(world));
        let settings = settings(world, &mut random);
        let options: Vec<String> = settings.iter().map(|text| format!("-testactivationheight={text}")).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let daemon = or_skip("blocks: random", Daemon::start(&options))?;
        let with = |params: Params, text: &String| params.with_activation_height(text).unwrap();
        let params = settings.iter().fold(Params::new(Chain::Regtest), with);
        let wallet = Wallet::new();
        let label = format!("LYDIAN_SEED={seed} LYDIAN_WORLD={world} ({})", settings.join(" "));
        let genesis = Rc::new(State::genesis(&params));
        let mut world = World {
            duel: Duel::new(&params, daemon, START, label),
            params: &params,
            wallet: &wallet,
            random,
            states: HashMap::from([(genesis.hash, genesis.clone())]),
            recent: vec![genesis],
            history: Vec::new(),
            step: 0,
        };
        for _ in 0..BASE_BLOCKS {
            let tip = world.tip();
            world.valid(&tip);
        }
        for step in 1..=STEPS {
            world.step = step;
            world.step();
            if step.is_multiple_of(50) {
                world.duel.compare_coins("hash_serialized_3");
                world.duel.set_now(world.duel.now + 1800);
            }
        }
        world.duel.compare_coins("hash_serialized_3");
        world.duel.compare_coins("muhash");
        Some(world.duel.tally)
    }

    fn tip(&self) -> Rc<State> {
        self.states[&self.duel.validator.tip().1].clone()
    }

    fn step(&mut self) {
        let tip = self.tip();
        match self.random.below(20) {
            0..=13 => {
                let (verdict, after) = self.mutant(&tip);
                if verdict != Verdict::Active && self.random.once_in(8) {
                    // A child of a block that is refused, or of an unknown one.
                    self.valid(&after);
                }
                if self.random.once_in(3) {
                    self.valid(&self.tip());
                }
            }
            14..=16 => self.branch(),
            _ if self.random.once_in(4) => self.late_body(),
            17 => {
                let from = self.random.pick(&self.recent).clone();
                self.mutant(&from);
            }
            18 => {
                let (block, state) = self.random.pick(&self.history).clone();
                self.submit(&block, &state, "again");
            }
            _ => {
                let bytes = garble(&self.random.pick(&self.history).0.encode(), &mut self.random);
                let note = format!("step {}: garbled", self.step);
                self.duel.submit_bytes(&bytes, None, &note);
            }
        }
    }

    /// Adds a branch from some blocks back, which may have a bad block in the middle.
    fn branch(&mut self) {
        let mut state = self.tip();
        let depth = 1 + self.random.below(5);
        for _ in 0..depth {
            state = state.parent.clone().unwrap_or(state);
        }
        let length = depth + self.random.below(4) - 1;
        let bad = self.random.below(2 * length + 1);
        for place in 0..length {
            state = if place == bad { self.mutant(&state).1 } else { self.valid(&state).1 };
        }
    }

    /// Submits blocks that wait for the body of their parent, whose header is known, while other blocks arrive.
    fn late_body(&mut self) {
        let tip = self.tip();
        let stripped = MUTATIONS.iter().find(|mutation| mutation.name == "mutated coinbase witness").unwrap();
        let Some((tampered, parent)) = self.changed(&tip, &[stripped]) else { return };
        self.submit(&tampered, &tip, "before its body");
        let mut waiting = Rc::new(tip.after(&parent, self.wallet));
        for _ in 0..1 + self.random.below(2) {
            waiting = self.valid(&waiting).1;
        }
        let mut other = tip.clone();
        for _ in 0..self.random.below(4) {
            other = self.valid(&other).1;
        }
        self.submit(&parent, &tip, "body after its children");
    }

    /// Submits a block that should be valid. Returns the verdict and the state after it.
    fn valid(&mut self, state: &Rc<State>) -> (Verdict, Rc<State>) {
        let mut draft = Draft::plan(state, (self.params, self.wallet), self.duel.now, &mut self.random);
        draft.build();
        draft.commit();
        draft.work();
        let block = draft.block;
        let is_on_valid = self.states.contains_key(&state.hash);
        let verdict = self.submit(&block, state, "valid");
        if is_on_valid {
            self.duel.tally.meant_valid.0 += 1;
            self.duel.tally.meant_valid.1 += u64::from(!matches!(verdict, Verdict::Rejected(_)));
        }
        (verdict, self.recent.last().unwrap().clone())
    }

    /// Submits a block with one or two changes. Returns the verdict and the state after it. If two rules are broken,
    /// the order of checks decides.
    fn mutant(&mut self, state: &Rc<State>) -> (Verdict, Rc<State>) {
        for _ in 0..20 {
            let mutation = self.random.pick(MUTATIONS);
            if mutation.is_large && !self.random.once_in(6) {
                continue;
            }
            let second = Some(self.random.pick(MUTATIONS)).filter(|second| !second.is_large && self.random.once_in(3));
            let mutations: Vec<_> = [Some(mutation), second].into_iter().flatten().collect();
            if let Some((block, original)) = self.changed(state, &mutations) {
                let names: Vec<_> = mutations.iter().map(|mutation| mutation.name).collect();
                let verdict = self.submit(&block, state, &names.join(" and "));
                let used = self.duel.tally.mutations.entry(mutation.name).or_default();
                match &verdict {
                    Verdict::Rejected(_) => used.1 += 1,
                    _ => used.0 += 1,
                }
                let after = self.recent.last().unwrap().clone();
                if mutation.stage == Stage::Sealed && self.random.once_in(2) {
                    // The bytes that the hash commits to, after those that it does not.
                    self.submit(&original, state, "original");
                }
                return (verdict, after);
            }
        }
        self.valid(state)
    }

    /// Returns the changed block, and that block without the changes after sealing; or `None` if the first change does
    /// not apply.
    fn changed(&mut self, state: &Rc<State>, mutations: &[&Mutation]) -> Option<(MutBlock, MutBlock)> {
        let random = &mut self.random;
        let mut draft = Draft::plan(state, (self.params, self.wallet), self.duel.now, random);
        let mut is_made = true;
        let mut change = |draft: &mut Draft<'_>, stage| {
            for (place, mutation) in mutations.iter().enumerate().filter(|(_, mutation)| mutation.stage == stage) {
                is_made &= draft.is_whole() && (mutation.apply)(draft, random) || place > 0;
            }
        };
        change(&mut draft, Stage::Plan);
        draft.build();
        change(&mut draft, Stage::Built);
        draft.block.seal_witness_commitment();
        change(&mut draft, Stage::Committed);
        draft.block.seal_merkle_root();
        change(&mut draft, Stage::Rooted);
        draft.work();
        let original = draft.block.clone();
        change(&mut draft, Stage::Sealed);
        is_made.then_some((draft.block, original))
    }

    fn submit(&mut self, block: &MutBlock, state: &Rc<State>, note: &str) -> Verdict {
        let note = format!("step {}: {note}", self.step);
        let is_there = block.header.prev_block == state.hash;
        let state = if is_there { state } else { self.states.get(&block.header.prev_block).unwrap_or(state) }.clone();
        let verdict = self.duel.submit(block, Some(&state), &note);
        let after = Rc::new(state.after(block, self.wallet));
        if !matches!(verdict, Verdict::Rejected(_)) {
            self.states.insert(after.hash, after.clone());
        }
        self.recent.push(after);
        self.history.push((block.clone(), state));
        if self.recent.len() > 40 {
            self.recent.remove(0);
            self.history.remove(0);
        }
        verdict
    }
}
