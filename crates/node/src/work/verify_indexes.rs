//! `lydian index verify`: compares the indexes of a data directory with a rebuild.
//!
//! Input: a session, which holds the lock of the data directory, and the indexes. Output: a result for each of them,
//! and an exit code. First every byte of an index is read with its checksums; then all are built again from the block
//! files in a scratch directory inside the data directory, with the same salt and up to the same block, and compared
//! file by file. The index itself is only read.
//!
//! Invariants: the scratch directory is removed at the end, however it comes; after a kill the next start removes it.
//! Cost: about that of building the indexes, and their size twice on the disk.

use super::space::has_space;
use super::{Failure, opening};
use crate::display::{Display, Doing, Style, megabytes};
use crate::exit;
use crate::index::{print_json, remove_scratch};
use crate::log::Log;
use crate::run::Session;
use crate::screen::{Screen, Tone, commas, count};
use lydian_disk::DiskError;
use lydian_engine::{Engine, EngineError, Event, Follower, Observer, Standing, Tip};
use lydian_index::{Comparison, IndexError, IndexKind, Rebuild, RebuildProgress, check, compare, inspect, rebuild};
use serde::Serialize;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks at the rebuild.
const LOOK: Duration = Duration::from_millis(100);

/// What the rebuild may need, as a multiple of the index: parts of a segment stay until they are one.
const SPACE_FACTOR: u64 = 2;

/// Why the indexes cannot be compared.
#[derive(Debug)]
enum CannotVerify {
    Index(IndexError),
    Engine(Failure),
    Disk(DiskError),
    Thread(io::Error),
    Reindexing,
    Pruned,
    /// The block of an index is not on the active chain.
    OtherChain(IndexKind, Tip),
    Space {
        needed: u64,
        free: u64,
    },
    /// The rebuild failed.
    Rebuild(String, String),
    Interrupted,
}

impl fmt::Display for CannotVerify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotVerify::Index(error) => error.fmt(f),
            CannotVerify::Engine(error) => error.fmt(f),
            CannotVerify::Disk(error) => error.fmt(f),
            CannotVerify::Thread(error) => write!(f, "a thread could not be started: {error}"),
            CannotVerify::Reindexing => {
                f.write_str("a reindex is in progress: start the node and wait until it has loaded the blocks")
            }
            CannotVerify::Pruned => f.write_str(
                "the checksums of all files match, but the indexes cannot be compared: a rebuild needs every block, and \
                 some were deleted by pruning",
            ),
            CannotVerify::OtherChain(kind, tip) => write!(
                f,
                "the index {} is at block {} of height {}, which is not on the active chain: start the node, which \
                 brings it there",
                kind.name(),
                tip.hash,
                commas(tip.height.0.into())
            ),
            CannotVerify::Space { needed, free } => write!(
                f,
                "the rebuild may need {} MB in the data directory, and {} MB are free",
                megabytes(*needed),
                megabytes(*free)
            ),
            CannotVerify::Rebuild(name, reason) => write!(f, "{name} cannot be built again: {reason}"),
            CannotVerify::Interrupted => f.write_str("stopped on request, before the indexes were compared"),
        }
    }
}

impl CannotVerify {
    fn code(&self) -> u8 {
        match self {
            CannotVerify::Engine(failure) => failure.code(),
            CannotVerify::Reindexing | CannotVerify::Pruned | CannotVerify::OtherChain(..) => exit::DIRECTORY,
            CannotVerify::Index(IndexError::NewerFormat(_) | IndexError::OtherFile { .. }) => exit::DIRECTORY,
            CannotVerify::Interrupted => exit::INTERRUPTED,
            CannotVerify::Index(_)
            | CannotVerify::Disk(_)
            | CannotVerify::Thread(_)
            | CannotVerify::Space { .. }
            | CannotVerify::Rebuild(..) => exit::DISK,
        }
    }
}

impl From<IndexError> for CannotVerify {
    fn from(error: IndexError) -> CannotVerify {
        match error {
            IndexError::Ended => CannotVerify::Interrupted,
            error => CannotVerify::Index(error),
        }
    }
}

impl From<EngineError> for CannotVerify {
    fn from(error: EngineError) -> CannotVerify {
        match error {
            EngineError::BeyondPruned { .. } => CannotVerify::Pruned,
            error => CannotVerify::Engine(error.into()),
        }
    }
}

/// The result for an index, as JSON.
#[derive(Debug, Serialize)]
struct Verified {
    name: &'static str,
    is_equal: bool,
    height: Option<u32>,
    files: u32,
    bytes: u64,
    /// The first file that differs, and where, or that is damaged or missing.
    difference: Option<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    indexes: &'a [Verified],
}

impl Verified {
    fn damaged(kind: IndexKind, error: &IndexError) -> Verified {
        let difference = Some(error.to_string());
        Verified { name: kind.name(), is_equal: false, height: None, files: 0, bytes: 0, difference, notes: Vec::new() }
    }

    fn compared(kind: IndexKind, height: Option<u32>, comparison: Comparison) -> Verified {
        let Comparison { files, bytes, difference, notes } = comparison;
        let difference = difference.map(|difference| match difference.offset {
            Some(offset) => format!("{}:{offset}: differs from the rebuild", difference.path.display()),
            None => format!("{}: missing", difference.path.display()),
        });
        Verified { name: kind.name(), is_equal: difference.is_none(), height, files, bytes, difference, notes }
    }

    fn print(&self, screen: &Screen) {
        let text = match (&self.difference, self.height) {
            (Some(difference), _) => format!("{}: NOT EQUAL: {difference}", self.name),
            (None, Some(height)) => {
                let (files, size) = (count(u64::from(self.files), "file"), megabytes(self.bytes));
                let height = commas(height.into());
                format!("{}: equal to a rebuild up to height {height}, {files}, {size} MB", self.name)
            }
            (None, None) => format!("{}: no block", self.name),
        };
        screen.line(&screen.tone(if self.is_equal { Tone::Good } else { Tone::Bad }, &text));
        self.notes.iter().for_each(|note| screen.line(&format!("  {note}")));
    }
}

pub(super) fn run(session: &Session<'_>, kinds: &[IndexKind], style: Style) -> u8 {
    let (disk, datadir) = (session.disk.as_ref(), &session.settings.datadir);
    let mut verified = Vec::new();
    let result = verify(session, kinds, style, &mut verified);
    let result = result.and(remove_scratch(disk, datadir).map_err(CannotVerify::from));
    let code = report(session, &verified, result.is_ok());
    match result {
        Ok(()) => code,
        Err(error) => {
            session.log.error(&error);
            crate::daemon::complain(&error.to_string());
            error.code()
        }
    }
}

/// Prints the results so far.
fn report(session: &Session<'_>, verified: &[Verified], is_done: bool) -> u8 {
    let screen = Screen::new();
    match session.settings.json {
        true => print_json(&screen, &Document { indexes: verified }),
        false if verified.is_empty() && is_done => screen.line("There is no index."),
        false => verified.iter().for_each(|index| index.print(&screen)),
    }
    for index in verified {
        let result = index.difference.as_deref().unwrap_or("equal to a rebuild");
        session.log.info(format!("Index {} verified: {result}", index.name));
    }
    if verified.iter().all(|index| index.is_equal) { exit::DONE } else { exit::INVALID }
}

/// Adds the results to `verified`, as far as there are any.
fn verify(
    session: &Session<'_>,
    kinds: &[IndexKind],
    style: Style,
    verified: &mut Vec<Verified>,
) -> Result<(), CannotVerify> {
    let display =
        Display::start(style, session.settings.threads, Box::new(|_| {}), |_| {}).map_err(CannotVerify::Thread)?;
    let verifier = Verifier { session, display };
    // That of an earlier process which was killed.
    remove_scratch(session.disk.as_ref(), &session.settings.datadir)?;
    let (mut whole, mut bytes) = (Vec::new(), 0);
    for kind in kinds {
        match verifier.check(*kind) {
            Ok(None) => {}
            Ok(Some(size)) => {
                whole.push(*kind);
                bytes += size;
            }
            Err(CannotVerify::Index(error)) if error.is_damage() => verified.push(Verified::damaged(*kind, &error)),
            Err(error) => return Err(error),
        }
    }
    if !whole.is_empty() {
        verifier.check_space(bytes)?;
        verified.extend(verifier.rebuild_and_compare(&whole)?);
    }
    Ok(())
}

struct Verifier<'a> {
    session: &'a Session<'a>,
    display: Display,
}

impl Verifier<'_> {
    fn show(&self, words: String) {
        self.display.show(Doing::Something(words));
    }

    /// Reads an index with its checksums. Returns its size; `None` if there is none.
    fn check(&self, kind: IndexKind) -> Result<Option<u64>, CannotVerify> {
        let Session { settings, disk, .. } = self.session;
        let (disk, datadir, params) = (disk.as_ref(), &settings.datadir, &settings.params);
        let Some(report) = inspect(disk, datadir, kind, params)? else { return Ok(None) };
        let (name, size) = (kind.name(), report.bytes());
        self.with_progress(&format!("reading the checksums of {name}"), size, |told| {
            check(disk, datadir, kind, params, told)
        })?;
        Ok(Some(size))
    }

    /// Runs work that counts bytes, until a stop is requested.
    fn with_progress<T>(
        &self,
        words: &str,
        size: u64,
        work: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> Result<T, IndexError>,
    ) -> Result<T, CannotVerify> {
        let mut done = 0_u64;
        let mut told = |bytes: u64| {
            done = done.saturating_add(bytes);
            self.show(format!("{words}: {} of {} MB", megabytes(done), megabytes(size)));
            !self.session.stop.is_asked()
        };
        Ok(work(&mut told)?)
    }

    fn check_space(&self, bytes: u64) -> Result<(), CannotVerify> {
        let Session { settings, disk, .. } = self.session;
        let needed = bytes.saturating_mul(SPACE_FACTOR);
        if has_space(disk.as_ref(), &settings.datadir, needed) {
            return Ok(());
        }
        Err(CannotVerify::Space { needed, free: disk.free_bytes(&settings.datadir).map_err(CannotVerify::Disk)? })
    }

    fn rebuild_and_compare(&self, kinds: &[IndexKind]) -> Result<Vec<Verified>, CannotVerify> {
        let Session { settings, disk, .. } = self.session;
        let (datadir, params) = (&settings.datadir, &settings.params);
        let mut followers: Vec<Box<dyn Follower>> = Vec::new();
        let mut ends: Vec<(IndexKind, Option<End>)> = Vec::new();
        for kind in kinds {
            ends.push(match rebuild(disk, datadir, *kind, params)? {
                Some(rebuild) => {
                    let end = End::of(&rebuild);
                    followers.push(rebuild.follower);
                    (*kind, Some(end))
                }
                None => (*kind, None),
            });
        }
        self.rebuild(followers, &ends)?;
        let compare_one = |(kind, end): &(IndexKind, Option<End>)| {
            let Some(end) = end else { return Ok(Verified::compared(*kind, None, Comparison::default())) };
            let size = inspect(disk.as_ref(), datadir, *kind, params)?.map_or(0, |report| report.bytes());
            let words = format!("comparing {}", kind.name());
            let comparison =
                self.with_progress(&words, size, |told| compare(disk.as_ref(), datadir, *kind, params, told))?;
            Ok(Verified::compared(*kind, Some(end.tip.height.0), comparison))
        };
        ends.iter().map(compare_one).collect()
    }

    /// Feeds the followers from the block files until all have reached their ends.
    fn rebuild(
        &self,
        followers: Vec<Box<dyn Follower>>,
        ends: &[(IndexKind, Option<End>)],
    ) -> Result<(), CannotVerify> {
        let Session { settings, disk, stop, log, .. } = self.session;
        let engine_settings = lydian_engine::Settings {
            cache_bytes: settings.dbcache_bytes,
            is_low_memory: settings.is_low_memory,
            background: Arc::new(ToLog(Arc::clone(log))),
            ..lydian_engine::Settings::new(settings.threads)
        };
        self.show("opening the stores".to_owned());
        // Opening cannot be interrupted, and need not be.
        stop.set_open_ended(true);
        let opened = Engine::open_with(
            Arc::clone(disk),
            &opening::layout(settings),
            settings.params.clone(),
            engine_settings,
            followers,
            &mut |file, found| self.show(format!("looking for blocks: {} ({found} so far)", file.display())),
        );
        stop.set_open_ended(false);
        let engine = opened?.engine;
        let ends: Vec<(IndexKind, &End)> = ends.iter().filter_map(|(kind, end)| Some((*kind, end.as_ref()?))).collect();
        check_chain(&engine, &ends)?;
        let all: u64 = ends.iter().map(|(_, end)| u64::from(end.blocks)).sum();
        loop {
            let done: u64 = ends.iter().map(|(_, end)| u64::from(end.progress.blocks())).sum();
            let names: Vec<&str> = ends.iter().map(|(kind, _)| kind.name()).collect();
            let share = done.saturating_mul(100) / all.max(1);
            self.show(format!("building {} again: {share} % of the blocks", names.join(", ")));
            if done == all {
                return Ok(());
            }
            if stop.is_asked() {
                return Err(CannotVerify::Interrupted);
            }
            if let Some(error) = engine.follower_failure() {
                return Err(error.into());
            }
            let failed = engine.followers().into_iter().find(|follower| follower.standing == Standing::Failed);
            if let Some(failed) = failed {
                return Err(CannotVerify::Rebuild(failed.name, failed.error.unwrap_or_default()));
            }
            stop.wait(LOOK, || false);
        }
    }
}

/// Where a rebuild ends.
struct End {
    tip: Tip,
    blocks: u32,
    progress: RebuildProgress,
}

impl End {
    fn of(rebuild: &Rebuild) -> End {
        End { tip: rebuild.until, blocks: rebuild.blocks(), progress: rebuild.progress.clone() }
    }
}

/// Checks that the indexes are of blocks of the active chain.
fn check_chain(engine: &Engine, ends: &[(IndexKind, &End)]) -> Result<(), CannotVerify> {
    if engine.is_reindexing() {
        return Err(CannotVerify::Reindexing);
    }
    for (kind, end) in ends {
        if engine.hash_at(end.tip.height) != Some(end.tip.hash) {
            return Err(CannotVerify::OtherChain(*kind, end.tip));
        }
    }
    Ok(())
}

/// Writes the engine's lines to the log.
#[derive(Debug)]
struct ToLog(Arc<Log>);

impl Observer for ToLog {
    fn event(&self, event: &Event<'_>) {
        if let Event::Log { level, text, place } = event {
            self.0.take(*level, place, text);
        }
    }
}
