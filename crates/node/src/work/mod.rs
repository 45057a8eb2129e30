//! What the node does between its start and its end: opens the engine, takes files in, validates, makes durable. Input: a [`Session`] and a
//! [`Task`]. Output: an exit code, lines in the log, the display. No logic of validation: the engine decides.

mod failure;
mod finish;
mod opening;
mod peers;
mod sources;
mod watcher;

use crate::clock::{Stopwatch, now};
use crate::daemon;
use crate::display::{Display, Doing, Figures, Style};
use crate::exit;
use crate::run::Session;
use crate::serve::Serving;
use failure::Failure;
use lydian_chain::find_block_files;
use lydian_engine::{Advance, Engine, ImportFiles, Observer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use watcher::Watcher;

/// What is to be done.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// Validate what is there, and stay.
    Run,
    /// Validate the block files of a directory, and end.
    Import(PathBuf),
    /// Compute the hashes of the coins, and end.
    UtxoHash,
}

pub(crate) fn work(session: &Session<'_>, task: &Task, style: Style) -> u8 {
    match go(session, task, style) {
        Ok(code) => code,
        Err(failure) => {
            session.log.error(&failure);
            daemon::complain(&failure.to_string());
            failure.code()
        }
    }
}

fn go(session: &Session<'_>, task: &Task, style: Style) -> Result<u8, Failure> {
    let watch = Stopwatch::start();
    let watcher = Arc::new(Watcher::new(session));
    let keeper = Arc::clone(&watcher);
    let log = Arc::clone(&session.log);
    let to_log = Box::new(move |line: &str| log.info(line));
    let display = Display::start(style, session.settings.threads, to_log, move || keeper.keep_status())?;
    session.stop.set_open_ended(true);
    let tell = |words: String| display.tell(Doing::Something(words));
    let (server, told) = serve(session, task, &watcher)?;
    let (engine, is_loss) = opening::open(session, Arc::clone(&told), &tell)?;
    let engine = Arc::new(engine);
    watcher.begins(&engine);
    if let Some(server) = &server {
        server.begins(&engine);
    }
    if let Task::UtxoHash = task {
        tell("reading all coins".to_owned());
        let hashes = engine.utxo_hashes()?;
        drop(display);
        finish::tell_hashes(session, &hashes);
        return Ok(exit::DONE);
    }
    let mut imported = Imported { refused: 0, is_loss };
    if session.settings.reindex {
        import_again(session, &engine, &mut imported, &tell)?;
    }
    for path in &session.settings.loadblock {
        imported.add(import(session, &engine, path, false, &tell)?);
    }
    if let Task::Import(path) = task {
        imported.add(import(session, &engine, path, session.settings.copy, &tell)?);
    }
    watcher.aims_at(engine.best_header_height());
    daemon::ready();
    display.tell(Doing::Validating(engine.shared_meter()));
    session.stop.set_open_ended(false);
    let advance = engine.advance(session.stop.cancel(), &*told)?;
    if session.stop.is_asked() {
        session.announce_shutdown();
    } else if matches!(task, Task::Import(_)) || is_over(session, &engine) {
        tell("waiting for the second look at the last blocks".to_owned());
        engine.finish_reviews()?;
    }
    tell("writing to disk".to_owned());
    engine.checkpoint(&*told)?;
    let seconds = watch.seconds();
    let cpu_seconds = seconds.cpu_seconds.unwrap_or_default();
    let figures = Figures::new(&engine.progress(), session.settings.threads, seconds.wall_seconds, cpu_seconds);
    watcher.ends(&engine, &figures);
    let is_told = matches!(task, Task::Import(_)) || style == Style::Terminal;
    display.around(|| finish::tell(session, &engine, &advance, &figures, is_told));
    let code = code_of(&advance, &imported);
    if matches!(task, Task::Import(_)) || ends_by_itself(session, &engine) {
        return Ok(code);
    }
    let figures = peers::stay(session, &engine, server.as_ref(), &watcher, told, style, display)?;
    // Nobody may bring a block any more when the last checkpoint is made.
    drop(server);
    engine.checkpoint(watcher.as_ref())?;
    watcher.ends(&engine, &figures);
    Ok(exit::DONE)
}

/// The RPC server, where there is to be one, and who is told of everything that the engine does.
fn serve(
    session: &Session<'_>,
    task: &Task,
    watcher: &Arc<Watcher>,
) -> Result<(Option<Serving>, Arc<dyn Observer + Send>), Failure> {
    if !matches!(task, Task::Run) || !session.settings.rpc.is_on {
        return Ok((None, Arc::<Watcher>::clone(watcher)));
    }
    let server = Serving::start(session, Arc::<Watcher>::clone(watcher))?;
    let told = server.observer();
    Ok((Some(server), told))
}

/// What files gave.
#[derive(Clone, Copy, Debug)]
struct Imported {
    refused: u64,
    /// Blocks may be missing for what else is in the files, or they are gone.
    is_loss: bool,
}

impl Imported {
    fn add(&mut self, other: Imported) {
        self.refused += other.refused;
        self.is_loss |= other.is_loss;
    }
}

fn code_of(advance: &Advance, imported: &Imported) -> u8 {
    if !advance.invalid.is_empty() || imported.refused > 0 {
        exit::INVALID
    } else if !advance.unreadable.is_empty() || imported.is_loss {
        exit::DISK
    } else {
        exit::DONE
    }
}

/// `-stopatheight` and `-stopafterblockimport`, and a stop that was asked for.
fn ends_by_itself(session: &Session<'_>, engine: &Engine) -> bool {
    if has_stop_height(session, engine) {
        session.log.info("Stopping: the height of -stopatheight is reached");
    } else if session.settings.stopafterblockimport {
        session.log.info("Stopping after block import");
    }
    is_over(session, engine) || session.stop.is_asked()
}

fn is_over(session: &Session<'_>, engine: &Engine) -> bool {
    has_stop_height(session, engine) || session.settings.stopafterblockimport
}

fn has_stop_height(session: &Session<'_>, engine: &Engine) -> bool {
    session.settings.stopatheight.is_some_and(|height| engine.tip().height >= height)
}

/// `-reindex` takes in again what was imported in place.
fn import_again(
    session: &Session<'_>,
    engine: &Engine,
    imported: &mut Imported,
    tell: &dyn Fn(String),
) -> Result<(), Failure> {
    for path in sources::read(session.disk.as_ref(), &session.settings.datadir)? {
        match import(session, engine, &path, false, tell) {
            Ok(found) => imported.add(found),
            Err(Failure::Files(error)) => {
                finish::tell_remarks(
                    session,
                    vec![format!("{error}; blocks were imported from there, they are missing now")],
                );
                imported.is_loss = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Takes block files in; only their headers are looked at.
fn import(
    session: &Session<'_>,
    engine: &Engine,
    path: &Path,
    is_copied: bool,
    tell: &dyn Fn(String),
) -> Result<Imported, Failure> {
    let files = find_block_files(session.disk.as_ref(), path)?;
    if !is_copied {
        sources::add(session.disk.as_ref(), &session.settings.datadir, path)?;
    }
    session.log.info(format!("Importing {} block files of {}", files.len(), path.display()));
    let import = engine.import(ImportFiles { files, is_copied }, i64::from(now()), &mut |file, found| {
        tell(format!("reading headers: {} ({found} blocks so far)", file.display()));
    })?;
    session.log.info(format!("{} blocks in {}, {} of them new", import.blocks, path.display(), import.new_blocks));
    finish::tell_import(session, &import);
    let is_loss = import.remarks.iter().any(|remark| remark.kind.is_loss());
    Ok(Imported { refused: import.refused.len() as u64, is_loss })
}
