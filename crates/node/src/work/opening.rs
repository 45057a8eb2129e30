//! Opens the engine as the settings say: wipes it for `-reindex`, checks its last blocks. Input: a session. Output: an
//! engine. If a reindex is in progress, the engine knows only the genesis block: [`super::load`] reads the block files.

use super::Task;
use super::changes::{self, PassingOn};
use super::failure::Failure;
use super::finish;
use super::opinion;
use super::signatures::SignatureChoice;
use super::space::{self, IndexSize, NewIndex};
use super::words;
use super::{fees, mempool};
use crate::clock::mockable_now;
use crate::index;
use crate::log::Log;
use crate::net::fill_random;
use crate::process::NodeClock;
use crate::run::Session;
use crate::settings::{AddressIndex, Prune, Settings};
use lydian_chain::StoreRemark;
use lydian_chain::limits::{BLOCK_FILE_SIZE_MAX, FAST_PRUNE_FILE_SIZE_MAX};
use lydian_consensus::limits::MAX_FUTURE_BLOCK_TIME;
use lydian_engine::{AssumeValid, Engine, EngineError, Event, Follower, Layout, Observer, Wipe, wipe};
use lydian_index::{
    ADDRESSINDEX_NAME, COINSTATS_DIR, COINSTATS_NAME, CoinStatsIndex, FILTERS_DIR, FILTERS_NAME, FilterIndex,
    IndexError, Profile, TABLES_DIR, TXINDEX_NAME, TXOSPENDERINDEX_NAME, TxIndex, TxIndexReader,
};
use lydian_mempool::Mempool;
use lydian_primitives::Height;
use lydian_rpc::Indexes;
use lydian_second_opinion::{Monitor, SecondOpinion};
use lydian_zmq::Feed;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// The engine, opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) engine: Engine,
    /// Not started yet. `None` for tasks that end by themselves.
    pub(super) mempool: Option<Arc<Mempool>>,
    /// Passes the changes of the mempool on to the notifications.
    pub(super) passing_on: Option<PassingOn>,
    pub(super) indexes: Indexes,
    pub(super) transactions: Option<TxIndexReader>,
    /// The counts of `-secondopinion`.
    pub(super) second_opinion: Option<Monitor>,
    /// Stored blocks are gone.
    pub(super) is_loss: bool,
}

/// What the engine is opened with.
pub(super) struct Opening<'a> {
    pub(super) task: &'a Task,
    pub(super) background: Arc<dyn Observer + Send>,
    pub(super) feed: Option<&'a Feed>,
    pub(super) signatures: SignatureChoice,
    /// Receives Core's text for each part of the start.
    pub(super) begins: &'a dyn Fn(&str),
    pub(super) show: &'a dyn Fn(String),
}

/// With `-test=reindex_after_failure_noninteractive_yes`, everything that cannot be loaded is rebuilt, as if the user
/// had asked for it.
pub(super) fn open(session: &Session<'_>, mut opening: Opening<'_>) -> Result<Opened, Failure> {
    let settings = session.settings;
    let may_retry = settings.test.reindex_after_failure && !settings.reindex;
    match try_open(session, &mut opening, settings.reindex) {
        Err(failure @ (Failure::Engine(_) | Failure::Inconsistent(_) | Failure::FutureTip)) if may_retry => {
            session.log.error(&failure);
            try_open(session, &mut opening, true)
        }
        opened => opened,
    }
}

fn try_open(session: &Session<'_>, opening: &mut Opening<'_>, reindex: bool) -> Result<Opened, Failure> {
    let settings = session.settings;
    let Opening { task, background, feed, signatures, begins, show } = opening;
    let layout = layout(settings);
    // Before anything is wiped, since a program may lack what it needs.
    let second_opinion = opinion::open(session)?;
    let wiped = match (reindex, settings.reindex_chainstate) {
        (true, _) => Some((Wipe::Index, "Wiping block index and chain state")),
        (false, true) => Some((Wipe::Coins, "Wiping chain state")),
        (false, false) => None,
    };
    if let Some((what, words)) = wiped {
        session.log.info(words);
        show(words.to_owned());
        wipe(session.disk.as_ref(), &layout, what)?;
    }
    words::before_opening(session, *begins);
    show("opening the stores".to_owned());
    let OpenIndexes { mut followers, indexes, transactions, new } = open_indexes(session)?;
    let monitor = second_opinion.as_ref().map(SecondOpinion::monitor);
    followers.extend(second_opinion.map(|one| Box::new(one) as Box<dyn Follower>));
    let mempool = mempool::new(session, task);
    let mut passing_on = None;
    if let Some(mempool) = &mempool {
        fees::open(session, mempool);
        let (follower, thread) = changes::follow(mempool, *feed, &session.log)?;
        followers.push(follower);
        passing_on = thread;
    }
    let mut engine_settings = engine_settings(settings, Arc::clone(background));
    engine_settings.known_scripts = mempool.as_ref().map(|mempool| mempool.known_scripts());
    let opened = Engine::open_with_signatures(
        session.disk.clone(),
        &layout,
        settings.params.clone(),
        engine_settings,
        followers,
        &mut |file, found| show(format!("looking for blocks: {} ({found} so far)", file.display())),
        || signatures.get(session),
    )
    .map_err(|failure| with_option(failure, &indexes))?;
    let engine = opened.engine;
    let is_loss = opened.remarks.iter().any(|remark| matches!(remark, StoreRemark::FileShort { .. }));
    report(session, &opened.remarks);
    let tip = engine.tip();
    let has_pruned = words::after_opening(session, &engine);
    begins("Verifying blocks…");
    if !(reindex || settings.reindex_chainstate) && is_from_the_future(&engine) {
        return Err(Failure::FutureTip);
    }
    if tip.height > Height(0) {
        let blocks = if settings.checkblocks == 0 { u32::MAX } else { settings.checkblocks.min(tip.height.0) };
        show("checking the last blocks".to_owned());
        words::before_verifying(session, has_pruned);
        engine.verify_last_blocks(blocks, u32::from(settings.checklevel), &|| false, &ToLog(&session.log))?;
    }
    words::loaded(session, *begins);
    space::check(session, tip.height)?;
    space::check_indexes(session, &new);
    Ok(Opened { engine, mempool, passing_on, indexes, transactions, second_opinion: monitor, is_loss })
}

/// Names the option that asks for an index, if several share its tables.
fn with_option(failure: Failure, indexes: &Indexes) -> Failure {
    match (failure, &indexes.shared) {
        (Failure::Engine(EngineError::BeyondPruned { name }), Some((follower, options))) if name == *follower => {
            let name = options.first().map_or(name, |option| (*option).to_owned());
            EngineError::BeyondPruned { name }.into()
        }
        (failure, _) => failure,
    }
}

/// Opens the indexes that the settings name. One that cannot be opened is left out, unless `-indexrequired` is set or
/// the disk is full.
fn open_indexes(session: &Session<'_>) -> Result<OpenIndexes, Failure> {
    let settings = session.settings;
    // That of a `lydian index verify` that was killed.
    if let Err(error) = index::remove_scratch(session.disk.as_ref(), &settings.datadir) {
        session.log.warning(error);
    }
    let mut opened = OpenIndexes::default();
    let has_index = settings.has_address_index();
    let tables = [
        (settings.txindex, TXINDEX_NAME),
        (settings.txospenderindex, TXOSPENDERINDEX_NAME),
        (has_index, ADDRESSINDEX_NAME),
    ];
    let tables: Vec<&str> = tables.into_iter().filter_map(|(is_on, name)| is_on.then_some(name)).collect();
    if let Some((first, others)) = tables.split_first() {
        let dir = settings.datadir.join(TABLES_DIR);
        let new_salt = || [u64::from_le_bytes(secret()), u64::from_le_bytes(secret())];
        let has_txids = settings.address_index() == AddressIndex::Full;
        let profile = Profile { has_scripts: settings.txospenderindex || has_index, has_txids };
        let disk = Arc::clone(&session.disk);
        let index = TxIndex::open(disk, &dir, settings.params.genesis_hash, profile, new_salt);
        opened.transactions = opened.add(session, (first, IndexSize::of(profile)), index)?;
        match (&opened.transactions, opened.indexes.unopened.last().cloned()) {
            (Some(reader), _) => {
                opened.indexes.shared = Some((reader.name(), tables));
                opened.indexes.tables = Some(reader.clone());
            }
            (None, Some((_, reason))) => {
                opened.indexes.unopened.extend(others.iter().map(|name| (*name, reason.clone())));
            }
            (None, None) => {}
        }
    }
    if settings.blockfilterindex {
        let dir = settings.datadir.join(FILTERS_DIR);
        let index = FilterIndex::open(Arc::clone(&session.disk), &dir, settings.params.genesis_hash);
        opened.indexes.filters = opened.add(session, (FILTERS_NAME, IndexSize::Filters), index)?;
    }
    if settings.coinstatsindex {
        let dir = settings.datadir.join(COINSTATS_DIR);
        let index = CoinStatsIndex::open(Arc::clone(&session.disk), &dir, &settings.params);
        opened.indexes.coinstats = opened.add(session, (COINSTATS_NAME, IndexSize::CoinStats), index)?;
    }
    Ok(opened)
}

/// The indexes before there is an engine.
#[derive(Default)]
struct OpenIndexes {
    followers: Vec<Box<dyn Follower>>,
    indexes: Indexes,
    transactions: Option<TxIndexReader>,
    /// Those that begin at the genesis block.
    new: Vec<NewIndex>,
}

impl OpenIndexes {
    fn add<R>(
        &mut self,
        session: &Session<'_>,
        (name, size): (&'static str, IndexSize),
        index: Result<(impl Follower + 'static, R), IndexError>,
    ) -> Result<Option<R>, Failure> {
        match index {
            Ok((index, reader)) => {
                if index.durable_tip().is_none() {
                    self.new.push(NewIndex { name, size });
                }
                self.followers.push(Box::new(index));
                Ok(Some(reader))
            }
            Err(error) if session.settings.indexrequired || error.is_disk_full() => Err(Failure::Index(name, error)),
            Err(error) => {
                session.log.error(format!("Cannot open index {name}: {error}. The node runs without it."));
                self.indexes.unopened.push((name, error.to_string()));
                Ok(None)
            }
        }
    }
}

/// Reports what was found in the stores.
pub(super) fn report(session: &Session<'_>, remarks: &[StoreRemark]) {
    // Finding blocks that the index lacked is the purpose of a reindex, and good news after a crash.
    let (good, bad): (Vec<_>, Vec<_>) =
        remarks.iter().partition(|remark| matches!(remark, StoreRemark::BlocksFound { .. }));
    good.iter().for_each(|remark| session.log.info(remark));
    finish::report_remarks(session, bad.iter().map(|remark| remark.to_string()).collect());
}

/// Writes the engine's lines to the log.
#[derive(Debug)]
struct ToLog<'a>(&'a Log);

impl Observer for ToLog<'_> {
    fn event(&self, event: &Event<'_>) {
        if let Event::Log { level, text, place } = event {
            self.0.take(*level, place, text);
        }
    }
}

/// The check of Core's `VerifyLoadedChainstate`. A node that never made a tip durable has none to check.
fn is_from_the_future(engine: &Engine) -> bool {
    let time = i64::from(engine.tip_update().header.time);
    let now = i64::try_from(mockable_now()).unwrap_or(i64::MAX);
    engine.durable_tip().is_some() && time > now.saturating_add(MAX_FUTURE_BLOCK_TIME)
}

pub(super) fn layout(settings: &Settings) -> Layout {
    Layout { blocks: settings.blocks.clone(), index: settings.index(), coins: settings.coins() }
}

/// Without the verifier of signatures.
fn engine_settings(settings: &Settings, background: Arc<dyn Observer + Send>) -> lydian_engine::Settings {
    let (seed, more_seed) = (random(), random());
    let usual = lydian_engine::Settings::on_cores(settings.threads, settings.cores);
    let coins = settings.coin_store();
    lydian_engine::Settings {
        cache_bytes: coins.cache_bytes,
        is_low_memory: coins.is_low_memory,
        pending_bytes_max: coins.pending_bytes_max,
        stop_at: settings.stopatheight,
        check_tree_every: settings.checkblockindex,
        assume_valid: settings
            .assumevalid
            .map(|block| AssumeValid { block, minimum_chain_work: settings.minimum_chain_work }),
        may_prune: !matches!(settings.prune, Prune::Never),
        prune_bytes: match settings.prune {
            Prune::Never | Prune::OnRequest => None,
            Prune::Target { bytes } => Some(bytes),
        },
        block_file_size_max: if settings.fastprune { FAST_PRUNE_FILE_SIZE_MAX } else { BLOCK_FILE_SIZE_MAX },
        seed: (u128::from(seed) << 64 | u128::from(more_seed)).to_le_bytes(),
        block_key: if settings.blocksxor { random().to_le_bytes() } else { [0; 8] },
        followers_required: settings.indexrequired,
        background,
        clock: Box::new(NodeClock),
        ..usual
    }
}

/// Random bytes that are not known outside this process.
pub(super) fn secret<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill_random(&mut bytes);
    bytes
}

/// A random number: keys of the standard library's maps come from the operating system's randomness. Sufficient for
/// files that must differ between nodes; nothing secret depends on it.
fn random() -> u64 {
    RandomState::new().hash_one(0u64)
}
