//! `lydian doctor`: what is wrong here, and what to do. Input: settings, files, the system, the running node. Output:
//! a text or JSON, and an exit code.
//!
//! [`table`] is the only list of checks; docs/doctor.md is made of it. [`Facts`](facts::Facts) is what they look at,
//! and each function in [`checks`] answers one question. Invariants: nothing is changed and no lock is taken; a fault
//! of one check, such as settings that cannot be read, hides no other; nothing that the system or the node says causes
//! a panic. Cost: about a second.

pub(crate) mod bundle;
mod check;
mod checks;
mod document;
mod facts;
mod procfs;
mod redact;
mod report;
mod rpc;
mod table;
mod tar;

pub(crate) use document::document;

use crate::clock::Stopwatch;
use crate::daemon::complain;
use crate::exit;
use crate::host::Host;
use crate::screen::Screen;
use crate::settings::Words;
use facts::Facts;
use lydian_disk::RealDisk;
use report::Report;
use std::path::{Path, PathBuf};

/// Lines longer than this are hard to read.
const WIDTH_MAX: usize = 100;
const WIDTH_MIN: usize = 60;

pub(crate) fn run(words: &Words, host: &Host) -> u8 {
    let watch = Stopwatch::start();
    let bundle = match bundle_path(words, host) {
        Ok(bundle) => bundle,
        Err(sentence) => {
            complain(&sentence);
            return exit::SETTINGS;
        }
    };
    let facts = Facts::gather(words, host, &RealDisk);
    let report = Report::make(&facts, &watch);
    let screen = Screen::new();
    match words.has_switch("json") {
        true => screen.line(&report.json()),
        false => screen.line(report.text(&screen, screen.width().clamp(WIDTH_MIN, WIDTH_MAX)).trim_end()),
    }
    match bundle.map(|path| bundle::write(&facts, &report, &path)) {
        Some(Err(sentence)) => {
            complain(&sentence);
            exit::DOCTOR_BAD
        }
        Some(Ok(())) | None => report.code(),
    }
}

/// The file of `--bundle=FILE` or `--bundle FILE`; an error if it exists.
fn bundle_path(words: &Words, host: &Host) -> Result<Option<PathBuf>, String> {
    let given = words.text("bundle");
    let path = match (&given, words.arguments.first()) {
        (None, None) => return Ok(None),
        (None, Some(word)) => return Err(format!("lydian doctor takes no '{word}': write --bundle FILE")),
        (Some(file), None) if !file.is_empty() => file,
        (Some(empty), Some(file)) if empty.is_empty() => file,
        (Some(_), _) => return Err("--bundle needs one FILE: a new file such as report.tar.zst".to_owned()),
    };
    let path = host.absolute(Path::new(path));
    bundle::refuse_existing(&RealDisk, &path)?;
    Ok(Some(path))
}
