//! Log lines of the start, in Bitcoin Core's words and order as far as the same things happen. Input: settings, the
//! engine. Output: lines in the log. Other programs wait for some of them.

use crate::log::{Log, TipLine, iso8601, progress};
use crate::run::Session;
use crate::settings::{Prune, minimum_chain_work};
use lydian_disk::read_whole;
use lydian_engine::{Engine, TipUpdate};
use lydian_primitives::{Height, to_hex};
use std::path::Path;

/// Size of the key file of the block files.
const KEY_SIZE: u64 = 8;

/// Core's `MIN_BLOCKS_TO_KEEP`.
const BLOCKS_TO_KEEP_MIN: u32 = 288;

const MIB: f64 = 1_048_576.0;

/// Called before the stores are opened. `begins`: Core's `InitMessage`.
pub(super) fn before_opening(session: &Session<'_>, begins: &dyn Fn(&str)) {
    let (settings, log) = (session.settings, &session.log);
    log.info("Cache configuration:");
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let cache = settings.dbcache_bytes as f64 / MIB;
    // The cache of coins does not use the memory of the mempool.
    log.info(format!(
        "* Using {cache:.1} MiB for in-memory UTXO set (plus up to {:.1} MiB of unused mempool space)",
        0.0
    ));
    if settings.is_low_memory {
        log.info("* Using no index in memory for coins on disk (-lowmem)");
    }
    log.info(format!("Script verification uses {} additional threads", settings.threads.saturating_sub(1)));
    begins("Loading block index…");
    match &settings.assumevalid {
        Some(block) => log.info(format!("Assuming ancestors of block {block} have valid signatures.")),
        None => log.info("Validating signatures for all blocks."),
    }
    log.info(format!("Setting nMinimumChainWork={}", settings.minimum_chain_work));
    let default = minimum_chain_work(settings.params.chain);
    if settings.minimum_chain_work < default {
        log.warning(format!("nMinimumChainWork set below default value of {default}"));
    }
    match settings.prune {
        Prune::Never => {}
        Prune::OnRequest => {
            log.info(
                "Block pruning enabled. Use RPC call pruneblockchain(height) to manually prune block and undo files.",
            );
        }
        Prune::Target { bytes } => {
            log.info(format!("Prune configured to target {} MiB on disk for block and undo files.", bytes >> 20));
        }
    }
}

/// Called when a reindex is about to scan a block file.
pub(super) fn reindexing(session: &Session<'_>, file: &Path) {
    let number = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        name.strip_prefix("blk")?.strip_suffix(".dat")?.parse::<u64>().ok()
    };
    let Some(at) = number(file) else { return };
    let files = session.disk.list(&session.settings.blocks).unwrap_or_default();
    let count = files.iter().filter(|(path, _)| number(path).is_some()).count() as u64;
    let percent = at * 100 / count.max(1);
    session.log.info(format!("Reindexing block file blk{at:05}.dat ({percent}% complete)..."));
}

/// Called when the stores are open. Returns whether blocks were ever pruned.
pub(super) fn after_opening(session: &Session<'_>, engine: &Engine) -> bool {
    let log = &session.log;
    let blocks = &session.settings.blocks;
    if let Ok(key) = read_whole(session.disk.as_ref(), &blocks.join("xor.dat"), KEY_SIZE) {
        let (folder, key) = (blocks.display(), to_hex(&key));
        log.info(format!("Using obfuscation key for blocksdir *.dat files ({folder}): '{key}'"));
    }
    // A reindex has no index to load.
    let has_pruned = !engine.is_reindexing() && loaded_index(log, engine);
    log.info(format!("Initializing chainstate {}", "Chainstate [ibd] @ height -1 (null)"));
    let tip = engine.tip_update();
    if tip.height > Height(0) {
        log.info(best_chain(session, &tip, engine.best_header_height()));
    }
    has_pruned
}

/// Returns whether blocks were ever pruned.
fn loaded_index(log: &Log, engine: &Engine) -> bool {
    let last = LastFile::of(engine);
    log.info(format!("Loading block index db: last block file = {}", last.number));
    log.info(format!("Loading block index db: last block file info: {}", last.text()));
    log.info("Checking all blk files are present...");
    let has_pruned = engine.tip_info().is_pruned() || last.has_pruned;
    if has_pruned {
        log.info("Loading block index db: Block files have previously been pruned");
    }
    has_pruned
}

fn best_chain(session: &Session<'_>, tip: &TipUpdate, headers_height: Height) -> String {
    let line = TipLine::of(tip, headers_height);
    let share = progress(&line, session.settings.params.chain, i64::from(crate::clock::now()));
    let date = iso8601(i64::from(tip.header.time));
    format!("Loaded best chain: hashBestChain={} height={} date={date} progress={share:.6}", tip.hash, tip.height.0)
}

/// Called before the last blocks are checked. `has_pruned`: blocks were once pruned.
pub(super) fn before_verifying(session: &Session<'_>, has_pruned: bool) {
    if has_pruned && session.settings.checkblocks > BLOCKS_TO_KEEP_MIN {
        session.log.warning(format!(
            "pruned datadir may not have more than {BLOCKS_TO_KEEP_MIN} blocks; only checking available blocks"
        ));
    }
}

/// Called when the chain state is loaded and has passed its check.
pub(super) fn loaded(session: &Session<'_>, begins: &dyn Fn(&str)) {
    session.log.info("Block index and chainstate loaded");
    if session.settings.prune == Prune::Never {
        session.log.info("Setting NODE_NETWORK in non-prune mode");
    } else {
        begins("Pruning blockstore…");
    }
}

/// Called when the engine is open, before the network starts.
pub(super) fn before_network(session: &Session<'_>, engine: &Engine) {
    session.log.info(format!("block tree size = {}", engine.with_tree(|tree| tree.len())));
    session.log.info(format!("nBestHeight = {}", engine.tip().height.0));
}

/// The block file with the highest number: Core's `CBlockFileInfo`.
#[derive(Debug, Default)]
struct LastFile {
    number: u32,
    blocks: u32,
    size: u64,
    heights: Option<(u32, u32)>,
    times: Option<(u32, u32)>,
    has_pruned: bool,
}

impl LastFile {
    /// Visits every block of the index once.
    fn of(engine: &Engine) -> LastFile {
        engine.with_tree(|tree| {
            let mut last = LastFile::default();
            for id in tree.ids() {
                let node = tree.node(id);
                let Some(position) = node.block else {
                    last.has_pruned |= node.is_verified && node.height.0 > 0;
                    continue;
                };
                if position.file > last.number {
                    last = LastFile { number: position.file, has_pruned: last.has_pruned, ..LastFile::default() };
                }
                if position.file == last.number {
                    last.blocks += 1;
                    last.size = last.size.max(position.offset + u64::from(position.size));
                    let (height, time) = (node.height.0, node.header.time);
                    let span = |old: Option<(u32, u32)>, new: u32| {
                        old.map_or(Some((new, new)), |(least, most)| Some((least.min(new), most.max(new))))
                    };
                    last.heights = span(last.heights, height);
                    last.times = span(last.times, time);
                }
            }
            last
        })
    }

    fn text(&self) -> String {
        let day = |time: u32| iso8601(i64::from(time))[..10].to_owned();
        let (first, last) = self.heights.unwrap_or_default();
        let (begin, end) = self.times.unwrap_or_default();
        format!(
            "CBlockFileInfo(blocks={}, size={}, heights={first}...{last}, time={}...{})",
            self.blocks,
            self.size,
            day(begin),
            day(end)
        )
    }
}
