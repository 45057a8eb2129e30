//! The engine under test: random settings, opening, feeding, killing and reopening it. Input: a story's parameters and
//! a seed of settings. Output: an engine whose state can be compared.

use crate::expected::{Answer, Expected, State, parse};
use crate::recorder::{Manner, Recorder, Shared};
use crate::story::{NOW, Story};
use lydian_chains::rng::Random;
use lydian_consensus::{Coin, Params, utxo_hash};
use lydian_curve::{Refereed, Sampling};
use lydian_disk::{Disk, RealDisk, SimDisk};
use lydian_engine::{Advance, Cancel, Engine, EngineError, Follower, Layout, Settings, Standing, Unobserved};
use lydian_oracle::Scratch;
use lydian_primitives::{Height, OutPoint};
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Settings of a run. None of them may change a verdict.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub workers: usize,
    pub window_blocks: usize,
    pub window_bytes: usize,
    pub checked_bytes: usize,
    pub batch_inputs: usize,
    pub cache_bytes: u64,
    pub pending_bytes_max: u64,
    pub is_low_memory: bool,
    pub stop_at: Option<u32>,
    /// The number of followers, of the manners in their order.
    pub followers: usize,
    /// A checkpoint of the second one records the tip of this number of calls before.
    pub follower_delay: usize,
    /// The call in which a further follower fails.
    pub fails_at: Option<usize>,
    /// A follower that goes back to its file at every so many disconnected blocks.
    pub falls_every: Option<usize>,
    /// The most blocks in a leg of the catch-up.
    pub catch_up_blocks: usize,
    pub is_real: bool,
    pub seed: u8,
    /// Signatures are verified in lanes, and sampled by the referee.
    pub has_lanes: bool,
}

fn one_of<T: Copy>(random: &mut Random, choices: &[T]) -> T {
    choices[random.index(choices.len())]
}

impl How {
    pub fn random(random: &mut Random) -> How {
        let mut how = How {
            workers: one_of(random, &[1, 1, 2, 2, 8]),
            window_blocks: one_of(random, &[1, 2, 3, 5, 40, usize::MAX]),
            window_bytes: one_of(random, &[1, 4_000, 60_000, 40 << 20]),
            batch_inputs: one_of(random, &[1, 7, 512]),
            cache_bytes: one_of(random, &[0, 2_000, 20_000, 1 << 20, 1 << 30]),
            pending_bytes_max: one_of(random, &[0, 300, 3_000, 30_000, 1 << 30]),
            is_low_memory: false,
            stop_at: None,
            followers: one_of(random, &[0, 1, 2, 3]),
            follower_delay: 0,
            fails_at: None,
            falls_every: None,
            catch_up_blocks: 0,
            is_real: random.chance(40),
            seed: u8::try_from(random.below(256)).unwrap(),
            has_lanes: random.chance(400),
            checked_bytes: 0,
        };
        // No draw of its own, so that a seed gives the other settings that it gave before there were these.
        how.is_low_memory = how.seed >= 128;
        how.checked_bytes = [0, 1_500, 60_000, 64 << 20][usize::from(how.seed % 4)];
        how.catch_up_blocks = [1, 3, 256][usize::from(how.seed % 3)];
        how.fails_at = how.seed.is_multiple_of(5).then(|| 1 + usize::from(how.seed / 5));
        how.falls_every = how.seed.is_multiple_of(3).then(|| 2 + usize::from(how.seed % 4));
        how
    }

    pub fn settings(&self) -> Settings {
        Settings {
            cache_bytes: self.cache_bytes,
            pending_bytes_max: self.pending_bytes_max,
            is_low_memory: self.is_low_memory,
            window_bytes: self.window_bytes,
            checked_bytes: self.checked_bytes,
            window_blocks: self.window_blocks,
            batch_inputs: self.batch_inputs,
            stop_at: self.stop_at.map(Height),
            catch_up_blocks: self.catch_up_blocks,
            seed: [self.seed; 16],
            block_key: [self.seed; 8],
            signatures: Arc::new(if self.has_lanes { self.lanes() } else { Refereed::reference() }),
            ..Settings::new(self.workers)
        }
    }
}

impl How {
    /// The kernel that `auto` chooses on this machine, sampled more often than by default.
    fn lanes(&self) -> Refereed {
        let kernel = lydian_curve::choose("auto").unwrap().engine;
        let sampling = Sampling { interval: NonZeroU64::new(5).unwrap(), seed: [self.seed; 32] };
        Refereed::new(
            kernel,
            sampling,
            Box::new(|disagreement| panic!("disagreement with an honest kernel: {disagreement:?}")),
        )
    }
}

pub fn layout(root: &Path) -> Layout {
    Layout { blocks: root.join("blocks"), index: root.join("blocks").join("index"), coins: root.join("chainstate") }
}

/// The disk and directory of an engine's files; a real directory is deleted with the value.
#[derive(Debug)]
pub struct Place {
    pub disk: Arc<dyn Disk>,
    pub sim: Option<SimDisk>,
    pub root: PathBuf,
    _scratch: Option<Scratch>,
}

impl Place {
    pub fn new(how: &How, name: &str) -> Place {
        if how.is_real {
            let scratch = Scratch::new(name);
            let root = scratch.path().to_path_buf();
            return Place { disk: Arc::new(RealDisk), sim: None, root, _scratch: Some(scratch) };
        }
        Place::on(SimDisk::new(u64::from(how.seed)))
    }

    pub fn on(sim: SimDisk) -> Place {
        Place { disk: Arc::new(sim.clone()), sim: Some(sim), root: PathBuf::from("node"), _scratch: None }
    }
}

/// A running engine.
#[derive(Debug)]
pub struct Lydian {
    pub engine: Engine,
    /// Whether the kernel may give wrong verdicts.
    pub has_liar: bool,
    /// The blocks each follower has seen.
    pub followers: Vec<Shared>,
}

impl Lydian {
    pub fn open(place: &Place, params: &Params, how: &How) -> Result<Lydian, EngineError> {
        Lydian::open_with(place, params, how, how.settings())
    }

    /// Opens with settings that `how` does not cover.
    pub fn open_with(place: &Place, params: &Params, how: &How, settings: Settings) -> Result<Lydian, EngineError> {
        let mut shared = Vec::new();
        let mut followers: Vec<Box<dyn Follower>> = Vec::new();
        let manners = [Manner::Prepared, Manner::Late { calls: how.follower_delay }, Manner::NoFiles];
        let failing = how.fails_at.map(|at_call| Manner::Failing { at_call, in_checkpoint: how.seed % 2 == 1 });
        let falling = how.falls_every.map(|every| Manner::Falling { every });
        let manners = manners[..how.followers].iter().copied().chain(failing).chain(falling);
        for (index, manner) in manners.enumerate() {
            let path = place.root.join(format!("follower{index}"));
            let recorder = Recorder::open(Arc::clone(&place.disk), path, manner);
            let recorder = recorder
                .map_err(|error| EngineError::Follower { name: "recorder".to_owned(), reason: error.reason })?;
            shared.push(recorder.shared());
            followers.push(Box::new(recorder));
        }
        let opened = Engine::open(Arc::clone(&place.disk), &layout(&place.root), params.clone(), settings, followers)?;
        Ok(Lydian { engine: opened.engine, has_liar: false, followers: shared })
    }

    pub fn accept(&self, block: &[u8]) -> Result<Answer, EngineError> {
        self.accept_at(block, NOW)
    }

    pub fn accept_at(&self, block: &[u8], now: u32) -> Result<Answer, EngineError> {
        self.engine.accept_block(parse(block), i64::from(now), &Unobserved)
    }

    /// Feeds all blocks and one more on top of the best tip, which must become the new one, and makes a checkpoint.
    /// Returns that block.
    pub fn accept_all(&self, story: &Story, expected: &Expected) -> Vec<u8> {
        for fed in &expected.fed {
            let _ = self.accept(&fed.block).unwrap();
        }
        let decider = story.block_on(expected.end.hash, expected.end.height.0);
        self.accept(&decider).unwrap().unwrap();
        self.engine.checkpoint(&Unobserved).unwrap();
        decider
    }

    pub fn advance(&self) -> Result<Advance, EngineError> {
        self.engine.advance(&Cancel::new(), &Unobserved)
    }

    pub fn coins(&self) -> Vec<(OutPoint, Coin)> {
        let mut coins = Vec::new();
        let visited = self.engine.coins().each(&mut |outpoint, coin| -> ControlFlow<()> {
            coins.push((*outpoint, coin.clone()));
            ControlFlow::Continue(())
        });
        assert!(visited.unwrap().is_continue());
        coins.sort_by_key(|(outpoint, _)| *outpoint);
        assert_eq!(coins.len() as u64, self.engine.coins().len(), "the number of coins");
        coins
    }

    pub fn state(&self) -> State {
        let tip = self.engine.tip();
        let coins = self.coins();
        let hash_serialized_3 = utxo_hash::hash_serialized_3(coins.iter().map(|(outpoint, coin)| (outpoint, coin)));
        State { height: tip.height, hash: tip.hash, hash_serialized_3 }
    }

    /// Asserts that everything, including the followers, is as the plain validator has it.
    pub fn assert_state(&self, expected: &State, when: &str) {
        let state = self.state();
        assert_eq!((state.height, state.hash), (expected.height, expected.hash), "the tip {when}");
        assert_eq!(state.hash_serialized_3, expected.hash_serialized_3, "the coins {when}");
        assert!(self.engine.signatures().is_trusted() || self.has_liar, "disagreement with an honest kernel {when}");
        self.assert_followers(expected, when);
    }

    /// Asserts that every follower, once it has caught up, has seen exactly this chain.
    pub fn assert_followers(&self, expected: &State, when: &str) {
        self.engine.finish_catch_up();
        assert_eq!(self.engine.settled_tip(), self.engine.tip(), "the settled block {when}");
        for (follower, info) in self.followers.iter().zip(self.engine.followers()) {
            match (follower.manner, info.standing) {
                (Manner::Failing { .. }, Standing::Failed) => {
                    assert!(info.error.is_some_and(|error| error.contains("it was to fail here")), "{when}");
                }
                (Manner::NoFiles, Standing::InStep) => {
                    let last = follower.last();
                    assert!(last.is_none_or(|last| last == expected.hash), "at {last:?} {when}");
                }
                (_, Standing::InStep) => {
                    assert_eq!(follower.state(), *expected, "what a follower has seen {when}");
                }
                (manner, standing) => panic!("{manner:?} is {standing:?}: {:?} {when}", info.error),
            }
            if info.standing == Standing::InStep {
                assert_eq!(
                    info.tip.map(|tip| (tip.height, tip.hash)),
                    Some((expected.height, expected.hash)),
                    "{when}"
                );
            }
        }
    }

    /// How often followers had to begin anew since they were opened.
    pub fn cleared(&self) -> usize {
        self.followers.iter().map(Shared::cleared).sum()
    }
}
