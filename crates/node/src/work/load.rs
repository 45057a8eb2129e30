//! Reindexes, imports and validates the blocks on disk: Core's `ImportBlocks`, which a node runs in its thread
//! `initload` while it serves peers and RPC. Input: the opened engine. Output: [`Loaded`]. A stop request ends it
//! between two files, two blocks of a file, or two tasks of the validation.

use super::failure::Failure;
use super::{Node, Task, finish, imported, opening, words};
use crate::clock::{Stopwatch, mockable_now};
use crate::daemon;
use crate::display::{Doing, Figures, Style};
use crate::exit;
use crate::run::Session;
use lydian_chain::{ReadError, find_block_files};
use lydian_disk::DiskErrorKind;
use lydian_engine::{Advance, ImportFiles};
use std::path::Path;

/// The result of loading the blocks on disk.
#[derive(Debug)]
pub(super) struct Loaded {
    advance: Advance,
    imported: Imported,
}

impl Loaded {
    /// The exit code if the process ends now.
    pub(super) fn code(&self) -> u8 {
        if !self.advance.invalid.is_empty() || self.imported.refused > 0 {
            exit::INVALID
        } else if !self.advance.unreadable.is_empty() || self.imported.is_loss {
            exit::DISK
        } else {
            exit::DONE
        }
    }
}

/// The result of importing files.
#[derive(Clone, Copy, Debug)]
struct Imported {
    refused: u64,
    /// Blocks may be missing, because of damage in the files or because the files are gone.
    is_loss: bool,
}

impl Imported {
    fn add(&mut self, other: Imported) {
        self.refused += other.refused;
        self.is_loss |= other.is_loss;
    }
}

/// Imports what the settings and the task name, validates it and makes it durable. `is_loss`: opening the engine found
/// that blocks are gone.
pub(super) fn load(node: &Node<'_>, task: &Task, is_loss: bool) -> Result<Loaded, Failure> {
    let Node { session, engine, watcher, observer, .. } = node;
    let watch = Stopwatch::start();
    let mut imported = Imported { refused: 0, is_loss };
    // A file without blocks may take longer than a stop request may wait.
    session.stop.set_open_ended(true);
    import_all(node, task, &mut imported)?;
    session.stop.set_open_ended(false);
    if matches!(task, Task::Import(_)) {
        daemon::ready();
    }
    watcher.aims_at(engine.best_header_height());
    node.display.show(Doing::Validating(engine.shared_meter()));
    let advance = engine.advance(session.stop.cancel(), observer.as_ref())?;
    if session.stop.is_asked() {
        session.announce_shutdown();
    } else if matches!(task, Task::Import(_)) || is_over(node) {
        node.show("waiting for the review of the last blocks");
        engine.finish_reviews()?;
    }
    node.show("writing to disk");
    engine.checkpoint(observer.as_ref())?;
    let seconds = watch.seconds();
    let cpu_seconds = seconds.cpu_seconds.unwrap_or_default();
    let figures = Figures::new(&engine.progress(), session.settings.threads, seconds.wall_seconds, cpu_seconds);
    watcher.ends(engine, &figures);
    let is_shown = matches!(task, Task::Import(_)) || node.style == Style::Terminal;
    node.display.around(|| finish::report_end(session, engine, &advance, &figures, is_shown));
    Ok(Loaded { advance, imported })
}

/// Whether the node ends after loading, because of `-stopatheight`, `-stopafterblockimport` or a stop request. Logs the
/// reason.
pub(super) fn ends_by_itself(node: &Node<'_>) -> bool {
    if has_stop_height(node) {
        node.session.log.info("Stopping: the height of -stopatheight is reached");
    } else if node.session.settings.stopafterblockimport {
        node.session.log.info("Stopping after block import");
    }
    is_over(node) || node.session.stop.is_asked()
}

fn is_over(node: &Node<'_>) -> bool {
    has_stop_height(node) || node.session.settings.stopafterblockimport
}

fn has_stop_height(node: &Node<'_>) -> bool {
    node.session.settings.stopatheight.is_some_and(|height| node.engine.tip().height >= height)
}

fn import_all(node: &Node<'_>, task: &Task, imported: &mut Imported) -> Result<(), Failure> {
    let settings = node.session.settings;
    // One that was interrupted is completed without the option too.
    let is_reindex = settings.reindex || node.engine.is_reindexing();
    reindex(node)?;
    if is_reindex {
        import_again(node, imported)?;
    }
    for path in &settings.loadblock {
        match import(node, path, false) {
            Ok(found) => imported.add(found),
            Err(Failure::Files(ReadError::Disk(error))) if error.kind == DiskErrorKind::NotFound => {
                node.session.log.warning(format!("Could not open blocks file {}", path.display()));
            }
            Err(failure) => return Err(failure),
        }
    }
    if let Task::Import(path) = task {
        imported.add(import(node, path, settings.copy)?);
    }
    Ok(())
}

/// Completes a reindex that is in progress: reads the headers of our own block files.
pub(super) fn reindex(node: &Node<'_>) -> Result<(), Failure> {
    let (session, engine) = (node.session, &node.engine);
    if !engine.is_reindexing() {
        return Ok(());
    }
    // The number of blocks found before the current file.
    let mut current: Option<(Stopwatch, usize)> = None;
    let reindex = engine.reindex_until(session.stop.cancel(), &mut |file, found| {
        if let Some((began, before)) = current.take() {
            loaded(session, (found - before) as u64, &began);
        }
        words::reindexing(session, file);
        node.show(&format!("looking for blocks: {} ({found} so far)", file.display()));
        current = Some((Stopwatch::start(), found));
    })?;
    if reindex.is_cancelled {
        session.log.info("Interrupt requested. Exit reindexing.");
        return Ok(());
    }
    if let Some((began, before)) = current {
        loaded(session, (reindex.blocks - before) as u64, &began);
    }
    opening::report(session, &reindex.remarks);
    session.log.info("Reindexing finished");
    Ok(())
}

/// `-reindex` imports again what was imported in place.
fn import_again(node: &Node<'_>, imported: &mut Imported) -> Result<(), Failure> {
    let session = node.session;
    for path in imported::read(session.disk.as_ref(), &session.settings.blocks)? {
        match import(node, &path, false) {
            Ok(found) => imported.add(found),
            Err(Failure::Files(error)) => {
                finish::report_remarks(session, vec![format!("{error}; blocks imported from there are missing now")]);
                imported.is_loss = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Core's sentence after each file.
fn loaded(session: &Session<'_>, blocks: u64, began: &Stopwatch) {
    let millis = began.seconds().wall_seconds * 1000.0;
    session.log.info(format!("Loaded {blocks} blocks from external file in {millis:.0}ms"));
}

/// Imports block files; only their headers are examined.
fn import(node: &Node<'_>, path: &Path, is_copied: bool) -> Result<Imported, Failure> {
    let session = node.session;
    if session.stop.is_asked() {
        return Ok(Imported { refused: 0, is_loss: false });
    }
    let files = find_block_files(session.disk.as_ref(), path)?;
    if !is_copied {
        imported::add(session.disk.as_ref(), &session.settings.blocks, path)?;
    }
    session.log.info(format!("Importing {} block files of {}", files.len(), path.display()));
    let now = i64::try_from(mockable_now()).unwrap_or(i64::MAX);
    let began = Stopwatch::start();
    let files = ImportFiles { files, is_copied };
    let import = node.engine.import_until(files, now, session.stop.cancel(), &mut |file, found| {
        session.log.info(format!("Importing blocks file {}...", file.display()));
        node.show(&format!("reading headers: {} ({found} blocks so far)", file.display()));
    })?;
    if import.is_cancelled {
        session.log.info("Interrupt requested. Exit block importing.");
    }
    loaded(session, import.new_blocks, &began);
    finish::report_import(session, &import);
    let is_loss = import.remarks.iter().any(|remark| remark.kind.is_loss());
    Ok(Imported { refused: import.refused.len() as u64, is_loss })
}
