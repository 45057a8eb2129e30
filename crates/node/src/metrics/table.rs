//! [`NODE_FIGURES`]: Lydian's own figures, except those of its servers. Data only.

use super::now::{EngineNow, Now, PeersNow};
use crate::shared_index::SHARED_NAME;
use crate::warnings::WARNINGS;
use lydian_curve::ENGINE_NAMES;
use lydian_engine::Stage;
use lydian_index::{ADDRESSINDEX_NAME, COINSTATS_NAME, FILTERS_NAME, TXINDEX_NAME, TXOSPENDERINDEX_NAME};
use lydian_p2p::message_names;
use lydian_serve::figures::{Figure, Label, Samples, float};
use std::sync::atomic::Ordering;

/// The names of the indexes, as in `getindexinfo`, and of the one in the store of `-index`.
pub(super) fn index_names() -> [&'static str; 6] {
    [TXINDEX_NAME, TXOSPENDERINDEX_NAME, ADDRESSINDEX_NAME, COINSTATS_NAME, FILTERS_NAME, SHARED_NAME]
}

const STAGE: Label = Label { name: "stage", values: || Stage::ALL.iter().map(|stage| stage.name()).collect() };
const ENGINE: Label = Label { name: "engine", values: || ENGINE_NAMES.to_vec() };
const INDEX: Label = Label { name: "index", values: || index_names().to_vec() };
const DIRECTION: Label = Label { name: "direction", values: || vec!["received", "sent"] };
const MESSAGE: Label = Label { name: "message", values: || message_names().collect() };
const OWNER: Label = Label { name: "owner", values: || vec!["coins", "window", "mempool", "peers", "index"] };
const FOLDER: Label = Label { name: "folder", values: || vec!["blocks", "coins", "indexes"] };
const FREE: Label = Label { name: "folder", values: || vec!["datadir", "blocks"] };
const WARNING: Label = Label { name: "warning", values: || WARNINGS.map(|kind| kind.name).to_vec() };
const CHECKED: Label = Label { name: "how", values: || vec!["sampled", "reviewed"] };
const VERDICT: Label =
    Label { name: "result", values: || vec!["agreed_at_tip", "agreed_in_sync", "rejected", "failed", "left_out"] };
const VERSION: Label = Label { name: "version", values: || vec![env!("CARGO_PKG_VERSION")] };

/// The name of libsecp256k1 among the engines.
const REFERENCE: &str = "reference";

fn of_engine(now: &Now, out: &mut Samples, value: fn(&EngineNow) -> u64) {
    out.known(now.engine.as_ref().map(|engine| float(value(engine))));
}

fn of_peers(now: &Now, out: &mut Samples, value: fn(&PeersNow) -> u64) {
    out.known(now.peers.as_ref().map(|peers| float(value(peers))));
}

fn seconds(nanos: u64) -> f64 {
    float(nanos) / 1e9
}

fn stages(now: &Now, out: &mut Samples, nanos: fn(&lydian_engine::StageTime) -> u64) {
    let Some(engine) = &now.engine else { return };
    for (stage, time) in Stage::ALL.iter().zip(&engine.progress.stages) {
        out.of(&[stage.name()], seconds(nanos(time)));
    }
}

/// The checks by the engine that made them: those of a kernel, and those that the reference made (again).
fn signature_checks(now: &Now, out: &mut Samples) {
    let Some(engine) = &now.engine else { return };
    let again = engine.referee.sampled + engine.referee.reviewed;
    if engine.kernel == REFERENCE {
        return out.of(&[REFERENCE], float(engine.progress.checks_made));
    }
    out.of(&[engine.kernel], float(engine.progress.checks_made));
    out.of(&[REFERENCE], float(again));
}

fn index_heights(now: &Now, out: &mut Samples) {
    for index in now.engine.iter().flat_map(|engine| &engine.indexes) {
        if let Some(height) = index.height {
            out.of(&[index.name], height.into());
        }
    }
}

/// Blocks of the chain that an index does not have: all of them before the genesis block.
fn index_lags(now: &Now, out: &mut Samples) {
    let Some(engine) = &now.engine else { return };
    for index in &engine.indexes {
        let next = index.height.map_or(0, |height| u64::from(height) + 1);
        out.of(&[index.name], float((u64::from(engine.height) + 1).saturating_sub(next)));
    }
}

fn index_failures(now: &Now, out: &mut Samples) {
    for index in now.engine.iter().flat_map(|engine| &engine.indexes) {
        out.of(&[index.name], u8::from(index.has_failed).into());
    }
}

fn peer_bytes(now: &Now, out: &mut Samples) {
    let Some(peers) = &now.peers else { return };
    for (message, sent, received) in peers.traffic.by_message() {
        out.of(&["received", message], float(received));
        out.of(&["sent", message], float(sent));
    }
}

fn memory(now: &Now, out: &mut Samples) {
    if let Some(engine) = &now.engine {
        out.of(&["coins"], float(engine.coins.memory_bytes));
        out.of(&["window"], float(engine.progress.window_bytes));
        if let Some(bytes) = engine.index_bytes {
            out.of(&["index"], float(bytes));
        }
    }
    if let Some((usage, _)) = now.pool {
        out.of(&["mempool"], float(usage));
    }
    if let Some(peers) = &now.peers {
        out.of(&["peers"], float(peers.memory_bytes as u64));
    }
}

fn disk(now: &Now, out: &mut Samples) {
    if let Some(bytes) = now.blocks_bytes {
        out.of(&["blocks"], float(bytes));
    }
    if let Some(engine) = &now.engine {
        out.of(&["coins"], float(engine.coins.disk_bytes));
        out.of(&["indexes"], float(now.slow.index_bytes));
    }
}

fn free(now: &Now, out: &mut Samples) {
    for (folder, bytes) in ["datadir", "blocks"].into_iter().zip(now.slow.free_bytes) {
        if let Some(bytes) = bytes {
            out.of(&[folder], float(bytes));
        }
    }
}

fn opinions(now: &Now, out: &mut Samples) {
    let Some(counts) = &now.opinion else { return };
    // A rejected block is in one of the first two as well.
    let all = [counts.tip, counts.sampled, counts.rejected, counts.failed, counts.left_out + counts.skipped];
    for (result, count) in (VERDICT.values)().into_iter().zip(all) {
        out.of(&[result], float(count));
    }
}

/// The figures, by the part that they belong to.
#[rustfmt::skip]
pub(super) const NODE_FIGURES: &[Figure<Now>] = &[
    Figure::gauge("lydian_build_info", "", "Always 1; the version is in the label.", |_: &Now, out| out.of(&[env!("CARGO_PKG_VERSION")], 1.0)).by(&[VERSION]),
    Figure::gauge("lydian_warning", "", "Whether the node has a warning of this kind.", |now: &Now, out| now.warnings.iter().for_each(|(name, is_set)| out.of(&[name], u8::from(*is_set).into()))).by(&[WARNING]),

    // The sync.
    Figure::gauge("lydian_initial_download", "", "Whether the node is in initial block download, as in getblockchaininfo.", |now, out| out.count(now.is_initial_download.into())),
    Figure::gauge("lydian_headers_height", "blocks", "Height of the header with the most work.", |now, out| of_engine(now, out, |engine| engine.headers.into())),
    Figure::gauge("lydian_target_height", "blocks", "Height of the end of the chain that is being validated.", |now, out| of_engine(now, out, |engine| engine.progress.target_height)),
    Figure::gauge("lydian_durable_height", "blocks", "Height up to which everything is durable on disk.", |now, out| out.known(now.engine.as_ref().and_then(|engine| engine.durable).map(f64::from))),
    Figure::gauge("lydian_tip_time_seconds", "seconds since 1970", "Time in the header of the tip.", |now, out| of_engine(now, out, |engine| engine.time.into())),
    Figure::counter("lydian_stage_seconds_total", "seconds", "Time that all workers together spent in each stage of validation.", |now: &Now, out| stages(now, out, |time| time.wall_ns)).by(&[STAGE]),
    Figure::counter("lydian_stage_cpu_seconds_total", "seconds", "Processor time that all workers together spent in each stage of validation.", |now: &Now, out| stages(now, out, |time| time.cpu_ns)).by(&[STAGE]),
    Figure::counter("lydian_blocks_connected_total", "blocks", "Blocks connected to the chain.", |now, out| of_engine(now, out, |engine| engine.progress.stats.blocks)),
    Figure::counter("lydian_blocks_disconnected_total", "blocks", "Blocks disconnected from the chain.", |now, out| of_engine(now, out, |engine| engine.progress.blocks_disconnected)),
    Figure::counter("lydian_blocks_trusted_total", "blocks", "Blocks connected without their scripts: verified before, or below -assumevalid.", |now, out| of_engine(now, out, |engine| engine.progress.blocks_trusted)),
    Figure::counter("lydian_block_bytes_total", "bytes", "Bytes of the connected blocks.", |now, out| of_engine(now, out, |engine| engine.progress.stats.bytes)),
    Figure::counter("lydian_transactions_total", "transactions", "Transactions of the connected blocks.", |now, out| of_engine(now, out, |engine| engine.progress.stats.transactions)),
    Figure::counter("lydian_inputs_total", "inputs", "Inputs of the connected blocks.", |now, out| of_engine(now, out, |engine| engine.progress.stats.inputs)),
    Figure::gauge("lydian_window_blocks", "blocks", "Blocks in the pipeline of validation.", |now, out| of_engine(now, out, |engine| engine.progress.window_blocks)),
    Figure::gauge("lydian_window_bytes", "bytes", "Memory that the blocks in the pipeline are counted with.", |now, out| of_engine(now, out, |engine| engine.progress.window_bytes)),
    Figure::gauge("lydian_download_in_flight_bytes", "bytes", "Estimated bytes of blocks that peers were asked for.", |now, out| of_peers(now, out, |peers| peers.figures.in_flight_bytes)),
    Figure::gauge("lydian_download_waiting_blocks", "blocks", "Downloaded blocks that wait for validation.", |now, out| of_peers(now, out, |peers| peers.figures.waiting_blocks)),
    Figure::gauge("lydian_download_waiting_bytes", "bytes", "Bytes of the downloaded blocks that wait for validation.", |now, out| of_peers(now, out, |peers| peers.figures.waiting_bytes)),
    Figure::counter("lydian_download_blocks_total", "blocks", "Blocks received from peers.", |now, out| of_peers(now, out, |peers| peers.figures.blocks)),
    Figure::counter("lydian_download_bytes_total", "bytes", "Bytes of the blocks received from peers.", |now, out| of_peers(now, out, |peers| peers.figures.block_bytes)),

    // The chain at the tip.
    Figure::histogram("lydian_block_connect_seconds", "Time from the arrival of a block at the tip until the coins and every index have it.", |now, out| out.seconds(&[], now.events.connect.read())),
    Figure::counter("lydian_reorganisations_total", "reorganisations", "Reorganisations of the chain.", |now, out| out.count(now.events.reorganisations.load(Ordering::Relaxed))),
    Figure::gauge("lydian_reorganisation_depth", "blocks", "Blocks that left the chain with the last reorganisation.", |now, out| out.count(now.events.last_depth.load(Ordering::Relaxed))),
    Figure::counter("lydian_invalid_blocks_total", "blocks", "Blocks that broke a rule when they were connected.", |now, out| out.count(now.events.invalid_blocks.load(Ordering::Relaxed))),

    // Signatures.
    Figure::counter("lydian_signature_checks_total", "checks", "Signature and tweak checks by the engine that made them; reference is libsecp256k1, which makes a sample again.", signature_checks).by(&[ENGINE]),
    Figure::counter("lydian_signature_batches_total", "batches", "Batches of signature checks.", |now, out| of_engine(now, out, |engine| engine.progress.batches)),
    Figure::gauge("lydian_signature_engine_trusted", "", "Whether the verdicts of the selected engine count. 0 after a disagreement.", |now, out| of_engine(now, out, |engine| engine.is_trusted.into())),
    Figure::counter("lydian_referee_checks_total", "checks", "Checks that libsecp256k1 made again to watch the engine.", |now: &Now, out| {
        let Some(engine) = &now.engine else { return };
        out.of(&["sampled"], float(engine.referee.sampled));
        out.of(&["reviewed"], float(engine.referee.reviewed));
    }).by(&[CHECKED]),
    Figure::counter("lydian_referee_disagreements_total", "checks", "Checks on which the engine and libsecp256k1 disagreed.", |now, out| of_engine(now, out, |engine| engine.referee.disagreements)),
    Figure::counter("lydian_referee_blocks_total", "blocks", "Blocks at the tip of which libsecp256k1 verified every signature again.", |now, out| of_engine(now, out, |engine| engine.reviews.blocks)),
    Figure::counter("lydian_second_opinion_blocks_total", "blocks", "Blocks that -secondopinion verified with the code of Bitcoin Core, by result; missing without it. A rejected block is counted twice.", opinions).by(&[VERDICT]),

    // Coins.
    Figure::gauge("lydian_coins", "coins", "Unspent transaction outputs.", |now, out| of_engine(now, out, |engine| engine.coins.coins)),
    Figure::gauge("lydian_coins_memory_bytes", "bytes", "Memory of the coins: the cache and the index of all coins.", |now, out| of_engine(now, out, |engine| engine.coins.memory_bytes)),
    Figure::gauge("lydian_coins_pending_bytes", "bytes", "Coins in memory that are not on disk yet.", |now, out| of_engine(now, out, |engine| engine.coins.pending_bytes)),
    Figure::gauge("lydian_coins_cache_max_bytes", "bytes", "The limit of the cache: -dbcache.", |now, out| out.count(now.cache_bytes_max)),
    Figure::gauge("lydian_coins_segments", "files", "Segments in which coins are stored.", |now, out| of_engine(now, out, |engine| engine.coins.segments)),
    Figure::counter("lydian_coins_disk_reads_total", "reads", "Coins read from disk.", |now, out| of_engine(now, out, |engine| engine.coins.disk_reads)),
    Figure::counter("lydian_checkpoints_total", "checkpoints", "Checkpoints of the coins.", |now, out| of_engine(now, out, |engine| engine.coins.checkpoints)),
    Figure::counter("lydian_checkpoint_bytes_total", "bytes", "Bytes written by the checkpoints of the coins.", |now, out| of_engine(now, out, |engine| engine.coins.bytes_written)),

    // Indexes.
    Figure::gauge("lydian_index_height", "blocks", "Height of the last block that each index has.", index_heights).by(&[INDEX]),
    Figure::gauge("lydian_index_lag_blocks", "blocks", "Blocks of the chain that each index does not have yet.", index_lags).by(&[INDEX]),
    Figure::gauge("lydian_index_failed", "", "Whether an error stopped the index.", index_failures).by(&[INDEX]),

    // Peers.
    Figure::counter("lydian_peer_bytes_total", "bytes", "Bytes of the messages exchanged with peers, by type; *other* are those that Bitcoin Core does not know.", peer_bytes).by(&[DIRECTION, MESSAGE]),
    Figure::gauge("lydian_bans", "bans", "Bans in force.", |now, out| of_peers(now, out, |peers| peers.figures.bans.count.into())),
    Figure::gauge("lydian_clock_out_of_sync", "", "Whether the clocks of most outbound peers differ from ours by more than ten minutes.", |now, out| of_peers(now, out, |peers| peers.figures.is_clock_out_of_sync.into())),

    // The mempool; its size is in the exporter's figures.
    Figure::gauge("lydian_mempool_max_bytes", "bytes", "The limit of bitcoin_mempool_usage: -maxmempool.", |now, out| out.count(now.pool_bytes_max)),
    Figure::gauge("lydian_mempool_fees", "satoshi", "Fees of all transactions in the mempool.", |now, out| out.known(now.pool.map(|(_, fees)| float(u64::try_from(fees).unwrap_or(0))))),

    // The machine.
    Figure::gauge("lydian_memory_bytes", "bytes", "Memory by owner: coins, blocks in the pipeline, mempool (what Bitcoin Core would need for it), messages of peers, blocks of indexes that are in no segment.", memory).by(&[OWNER]),
    Figure::gauge("lydian_process_memory_bytes", "bytes", "Memory of the process that is resident.", |now, out| out.known(now.process.memory_bytes.map(float))),
    Figure::counter("lydian_process_cpu_seconds_total", "seconds", "Processor time of the process.", |now, out| out.number(now.process.cpu.as_secs_f64())),
    Figure::counter("lydian_process_read_bytes_total", "bytes", "Bytes that the process read from disks.", |now, out| out.known(now.process.disk_bytes.map(|(read, _)| float(read)))),
    Figure::counter("lydian_process_written_bytes_total", "bytes", "Bytes that the process wrote to disks.", |now, out| out.known(now.process.disk_bytes.map(|(_, written)| float(written)))),
    Figure::gauge("lydian_disk_bytes", "bytes", "Size of the files of blocks, coins and indexes.", disk).by(&[FOLDER]),
    Figure::gauge("lydian_disk_free_bytes", "bytes", "Bytes that can still be written to the file system of each folder.", free).by(&[FREE]),
];
