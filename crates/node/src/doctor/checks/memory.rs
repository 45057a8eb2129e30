//! Checks of memory: what the settings need against what the machine and its control groups give; and other limits of
//! containers and services.

use super::with_settings;
use crate::display::gigabytes;
use crate::doctor::check::Answer;
use crate::doctor::facts::Facts;
use crate::doctor::procfs;
use crate::settings::Settings;
use lydian_consensus::Chain;
use std::path::{Path, PathBuf};

/// Bytes of memory for each unspent coin on disk (docs/memory.md), the upper bounds, in tenths.
const COIN_DECIBYTES: u64 = 134;
const COIN_DECIBYTES_LOW: u64 = 24;

/// Unspent coins of mainnet for which docs/benchmarks/coins.md measures the store.
const COINS_OF_MAIN: u64 = 180_000_000;

/// Blocks in the pipeline: 24 MiB and 12 MiB for each worker (docs/memory.md).
const PIPELINE_BYTES: u64 = 24 << 20;
const PIPELINE_BYTES_WORKER: u64 = 12 << 20;

/// Peers, servers, headers and the program itself: 300 MB for all peers (docs/memory.md), and headers of mainnet.
const OTHER_BYTES: u64 = 500_000_000;

/// What a node with these settings needs at most, apart from answers to requests.
fn needed_bytes(settings: &Settings, coins: u64) -> u64 {
    let coin = if settings.is_low_memory { COIN_DECIBYTES_LOW } else { COIN_DECIBYTES };
    let workers = u64::try_from(settings.threads).unwrap_or(u64::MAX);
    let parts = [
        settings.dbcache_bytes,
        coins.saturating_mul(coin) / 10,
        PIPELINE_BYTES,
        PIPELINE_BYTES_WORKER.saturating_mul(workers),
        settings.mempool.mempool_bytes_max,
        OTHER_BYTES,
    ];
    parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part))
}

fn needed(facts: &Facts<'_>, settings: &Settings) -> u64 {
    let expected = if settings.params.chain == Chain::Main { COINS_OF_MAIN } else { 0 };
    let coins = facts.status.as_ref().map_or(0, |status| status.coins);
    needed_bytes(settings, coins.max(expected))
}

/// From here on, what a node has in swap slows it down.
const SWAPPED_BYTES_MIN: u64 = 100 << 20;

pub(crate) fn memory(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let needed = needed(facts, settings);
        let info = procfs::text("/proc/meminfo").unwrap_or_default();
        let bytes = |name| procfs::kib_field(&info, name);
        let (Some(total), Some(available)) = (facts.memory_bytes, bytes("MemAvailable:")) else {
            return Answer::skipped("the system does not report its memory");
        };
        let (swap, swap_free) = (bytes("SwapTotal:").unwrap_or(0), bytes("SwapFree:").unwrap_or(0));
        let of_node = facts.node_process().and_then(|process| procfs::text(format!("/proc/{process}/status")));
        let node_bytes = |name| of_node.as_deref().and_then(|status| procfs::kib_field(status, name)).unwrap_or(0);
        let words = format!(
            "these settings need up to {} GB (-dbcache {} MiB); of {} GB, {} GB are available, and {} of {} GB of swap",
            gigabytes(needed),
            settings.dbcache_bytes >> 20,
            gigabytes(total),
            gigabytes(available),
            gigabytes(swap_free),
            gigabytes(swap)
        );
        let (resident, swapped) = (node_bytes("VmRSS:"), node_bytes("VmSwap:"));
        match () {
            () if needed > total.saturating_add(swap) => Answer::bad(words),
            () if needed > available.saturating_add(resident) => Answer::warning(words),
            () if swapped >= SWAPPED_BYTES_MIN => {
                Answer::warning(format!("{} GB of the node are in swap; {words}", gigabytes(swapped)))
            }
            () => Answer::ok(words),
        }
    })
}

/// A file of a control group, or of one above it.
fn group_files(process: u32, version_1: &str, version_2: &str) -> Vec<PathBuf> {
    let groups = procfs::text(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let (controller, file_1) = version_1.split_once('/').unwrap_or_default();
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => (PathBuf::from("/sys/fs/cgroup"), version_2),
            some if some.split(',').any(|one| one == controller) => {
                (Path::new("/sys/fs/cgroup").join(controller), file_1)
            }
            _ => continue,
        };
        let whole = root.join(group.trim_start_matches('/'));
        let up = whole.ancestors().take_while(|path| path.starts_with(&root));
        files.extend(up.map(|path| path.join(file)));
    }
    files
}

/// The lowest limit in these files, with its file.
fn lowest(files: &[PathBuf]) -> Option<(u64, PathBuf)> {
    let read = |path: &PathBuf| Some((procfs::text(path)?.trim().parse::<u64>().ok()?, path.clone()));
    files.iter().filter_map(read).min_by_key(|(limit, _)| *limit)
}

/// Threads beside the workers: servers, peers, readers, the watcher.
const OTHER_THREADS: u64 = 64;

/// The largest file that the node writes: a segment of the coins has 512 MiB and the end of a shard.
const FILE_BYTES_MAX: u64 = 1 << 30;

pub(crate) fn limits(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let process = facts.process();
        let needed = needed(facts, settings);
        let mut findings = Vec::new();
        let memory = group_files(process, "memory/memory.limit_in_bytes", "memory.max");
        let memory = lowest(&memory).filter(|(limit, _)| facts.memory_bytes.is_none_or(|total| *limit < total));
        if let Some((limit, path)) = &memory
            && *limit < needed
        {
            let words = format!(
                "the memory is limited to {} GB ({}), and these settings need up to {} GB",
                gigabytes(*limit),
                path.display(),
                gigabytes(needed)
            );
            findings.push(Answer::bad(words));
        }
        let threads = u64::try_from(settings.threads).unwrap_or(u64::MAX).saturating_add(OTHER_THREADS);
        if let Some((limit, path)) = lowest(&group_files(process, "pids/pids.max", "pids.max"))
            && limit < threads
        {
            let words =
                format!("the threads are limited to {limit} ({}), and the node needs up to {threads}", path.display());
            findings.push(Answer::bad(words));
        }
        let space = procfs::limit_of(process, "Max address space").map_or(u64::MAX, |(soft, _)| soft);
        if space < needed.saturating_mul(2) {
            let words = format!("the address space is limited to {} GB (ulimit -v)", gigabytes(space));
            findings.push(Answer::bad(words));
        }
        let file = procfs::limit_of(process, "Max file size").map_or(u64::MAX, |(soft, _)| soft);
        if file < FILE_BYTES_MAX {
            let words = format!("the size of a file is limited to {} GB (ulimit -f)", gigabytes(file));
            findings.push(Answer::bad(words));
        }
        let otherwise = match memory {
            Some((limit, path)) => format!(
                "the memory is limited to {} GB ({}), enough for these settings",
                gigabytes(limit),
                path.display()
            ),
            None => "no limit of a container or service is below what the node needs".to_owned(),
        };
        Answer::worst(findings, || Answer::ok(otherwise))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_all_groups_above_count() {
        let files = group_files(std::process::id(), "memory/memory.limit_in_bytes", "memory.max");
        let names = ["memory.limit_in_bytes", "memory.max"];
        assert!(files.iter().all(|file| names.iter().any(|name| file.ends_with(name))), "{files:?}");
        assert_eq!(lowest(&[PathBuf::from("/proc/none")]), None);
        assert!(group_files(0, "a/b", "c").is_empty());
    }
}
