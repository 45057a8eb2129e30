//! `lydian info`: prints the state of a node at once. Input: the status file and the sizes of files. Output: text or
//! JSON. Keeps no lock, opens no store, changes nothing.

use crate::clock::now;
use crate::daemon::complain;
use crate::datadir::recognize;
use crate::disagreement;
use crate::display::megabytes;
use crate::exit;
use crate::log::iso8601;
use crate::screen::{Screen, Tone, commas};
use crate::settings::Settings;
use crate::status::{IndexStatus, Status, StatusError};
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use serde::Serialize;
use std::path::Path;

/// The printed values.
#[derive(Debug, Serialize)]
struct Info {
    #[serde(flatten)]
    status: Status,
    is_running: bool,
    datadir: String,
    /// Size of the block and undo files; `coins_bytes` is that of the coins.
    blocks_bytes: u64,
    coins_bytes: u64,
    /// Names of the files that record that a signature engine was wrong.
    disagreement_files: Vec<String>,
}

pub(crate) fn run(settings: &Settings, disk: &dyn Disk) -> u8 {
    let directory = &settings.datadir;
    if let Err(code) = check_directory(settings, disk) {
        return code;
    }
    let status = match Status::read(disk, directory) {
        Ok(status) => status,
        Err(StatusError::Disk(error)) if error.kind == DiskErrorKind::NotFound => {
            complain(&format!("no node has run in {} yet", directory.display()));
            return exit::DIRECTORY;
        }
        Err(error) => {
            complain(&error.to_string());
            return exit::DISK;
        }
    };
    let info = Info {
        status,
        is_running: is_running(disk, directory),
        datadir: directory.display().to_string(),
        blocks_bytes: size(disk, &settings.blocks),
        coins_bytes: size(disk, &settings.coins()),
        disagreement_files: disagreement::files(disk, &settings.index()),
    };
    let screen = Screen::new();
    match settings.json {
        true => match serde_json::to_string_pretty(&info) {
            Ok(json) => screen.line(&json),
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        },
        false => print(&screen, &info),
    }
    exit::DONE
}

/// Checks that there is a data directory of ours; otherwise prints why not, and returns the exit code.
pub(crate) fn check_directory(settings: &Settings, disk: &dyn Disk) -> Result<(), u8> {
    let directory = &settings.datadir;
    if disk.kind(directory) != Ok(PathKind::Directory) {
        complain(&format!("there is no data directory {}: a node creates it when it runs", directory.display()));
        return Err(exit::DIRECTORY);
    }
    recognize(settings, disk).map_err(|error| {
        complain(&error.to_string());
        exit::DIRECTORY
    })
}

/// Whether a node runs. If the lock is free, it is released at once.
pub(crate) fn is_running(disk: &dyn Disk, directory: &Path) -> bool {
    disk.lock(&directory.join(".lock")).is_err_and(|error| error.kind == DiskErrorKind::Locked)
}

/// Bytes of the files directly in a directory; 0 if the directory does not exist.
fn size(disk: &dyn Disk, directory: &Path) -> u64 {
    let files = disk.list(directory).unwrap_or_default();
    let sizes = files
        .iter()
        .filter(|(_, kind)| *kind == PathKind::File)
        .filter_map(|(path, _)| Some(disk.open(path).ok()?.size()));
    sizes.sum()
}

fn print(screen: &Screen, info: &Info) {
    let Info { status, .. } = info;
    let state = match info.is_running {
        true => format!("a node runs; as of {} seconds ago", now().saturating_sub(status.updated)),
        false => format!("no node runs; as of {}", iso8601(i64::from(status.updated))),
    };
    let missing = || "not known".to_owned();
    let mut rows = vec![
        ("directory", format!("{} ({state})", info.datadir)),
        ("chain", status.chain.clone()),
        ("tip", status.tip.clone()),
        (
            "height",
            format!(
                "{} of {} headers, {}",
                commas(status.height.into()),
                commas(status.headers.into()),
                iso8601(i64::from(status.time))
            ),
        ),
        (
            "durable",
            status.durable_height.map_or_else(missing, |height| format!("to height {}", commas(height.into()))),
        ),
        ("progress", format!("{:.4} %", status.verification_progress * 100.0)),
        ("work", status.chain_work.trim_start_matches('0').to_owned()),
        ("transactions", status.transactions.map_or_else(missing, commas)),
        (
            "coins",
            format!(
                "{}, {} MB on disk, {} MB in memory",
                commas(status.coins),
                megabytes(info.coins_bytes),
                megabytes(status.cache_bytes)
            ),
        ),
        ("blocks", format!("{} MB of block and undo files", megabytes(info.blocks_bytes))),
    ];
    rows.extend(signature_rows(status));
    let labels = std::iter::once("indexes").chain(std::iter::repeat(""));
    rows.extend(labels.zip(status.indexes.iter().map(IndexStatus::sentence)));
    rows.extend(mempool_and_opinion(status));
    if let Some(run) = &status.run {
        rows.push((
            "last run",
            format!(
                "{} blocks, {} inputs, {} signatures in {:.1} s wall, {:.1} s CPU",
                commas(run.blocks),
                commas(run.inputs),
                commas(run.signatures),
                run.wall_seconds,
                run.cpu_seconds
            ),
        ));
        for stage in &run.stages {
            rows.push((
                "",
                format!("{:12} {:9.3} s wall {:9.3} s CPU", stage.stage, stage.wall_seconds, stage.cpu_seconds),
            ));
        }
    }
    for (label, text) in rows {
        screen.line(&format!("{}  {text}", screen.tone(Tone::Strong, &format!("{label:12}"))));
    }
    if !info.disagreement_files.is_empty() {
        let files = info.disagreement_files.join(", ");
        let warning = format!("Warning: a signature engine was wrong ({files}). {}", disagreement::ADVICE);
        screen.line(&screen.tone(Tone::Bad, &warning));
    }
}

fn mempool_and_opinion(status: &Status) -> impl Iterator<Item = (&'static str, String)> {
    let mempool = status.mempool.iter().map(|mempool| ("mempool", mempool.sentence()));
    mempool.chain(status.second_opinion.iter().map(|counts| ("second opinion", counts.sentence())))
}

/// The signature engine and how it is checked.
fn signature_rows(status: &Status) -> Vec<(&'static str, String)> {
    let Some(engine) = &status.signature_engine else { return Vec::new() };
    let mut rows = vec![("signatures", engine.sentence())];
    if engine.blocks_reviewed + engine.blocks_sampled > 0 {
        let (all, some) = (commas(engine.blocks_reviewed), commas(engine.blocks_sampled));
        rows.push(("", format!("at the tip, {all} blocks were verified again in full, {some} in samples")));
    }
    rows
}
