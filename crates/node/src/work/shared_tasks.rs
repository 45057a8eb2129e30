//! `lydian index load cassandra://...` writes the index of a data directory to a store, and `verify` compares both.
//!
//! Input: a session, which holds the lock of the data directory. Output: text or JSON, and an exit code. No block is
//! read and none validated: the index is as the last checkpoint of a node left it. The store is left as it is by
//! `verify`; `load` creates the keyspace if there is none, continues where an earlier one was stopped, and may be
//! stopped at any moment.

use super::opening::secret;
use crate::clock::{Stopwatch, now};
use crate::daemon::complain;
use crate::display::{Display, Doing, Style, megabytes};
use crate::exit;
use crate::index::print_json;
use crate::run::Session;
use crate::screen::{Screen, Tone, commas, count};
use crate::shared_index::{code_of, open_or_create, open_store};
use lydian_index::{IndexError, IndexKind, Profile, TABLES_DIR, TxIndex, TxIndexReader, inspect};
use lydian_index_cassandra::Address;
use lydian_shared_index::{Compared, Step, StoreError, Writer, WriterError, WriterId, compare};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

/// Between two tries while the store is too slow.
const RETRY: Duration = Duration::from_secs(1);

/// Failures in a row after which loading ends.
const FAILURES_MAX: u32 = 30;

/// What is done with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedTask {
    Load,
    Verify,
}

/// Why it cannot be done.
#[derive(Debug)]
enum Problem {
    Writer(WriterError),
    Thread(io::Error),
    /// The data directory has no index of scripts; whether the keyspace exists.
    NoIndex(bool),
    Interrupted,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Writer(error) => error.fmt(f),
            Problem::Thread(error) => write!(f, "a thread could not be started: {error}"),
            Problem::NoIndex(is_ready) => {
                if *is_ready {
                    f.write_str("the keyspace is ready, but ")?;
                }
                f.write_str("the data directory has no index of scripts: start the node with -index, which builds it")
            }
            Problem::Interrupted => f.write_str("stopped on request; the same command continues"),
        }
    }
}

impl Problem {
    fn code(&self) -> u8 {
        match self {
            Problem::Writer(error) => code_of(error),
            Problem::Thread(_) => exit::DISK,
            Problem::NoIndex(_) => exit::DIRECTORY,
            Problem::Interrupted => exit::INTERRUPTED,
        }
    }
}

impl From<WriterError> for Problem {
    fn from(error: WriterError) -> Problem {
        Problem::Writer(error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::Writer(error.into())
    }
}

impl From<IndexError> for Problem {
    fn from(error: IndexError) -> Problem {
        Problem::Writer(error.into())
    }
}

pub(super) fn run(session: &Session<'_>, task: SharedTask, address: &Address, style: Style) -> u8 {
    let done = match task {
        SharedTask::Load => load(session, address, style),
        SharedTask::Verify => verify(session, address, style),
    };
    match done {
        Ok(code) => code,
        Err(problem) => {
            session.log.error(&problem);
            complain(&problem.to_string());
            problem.code()
        }
    }
}

/// The index of the data directory, without a chain that it follows; `None` if there is none of scripts. Its threads
/// bring segments to their final form.
fn open_index(session: &Session<'_>) -> Result<Option<(TxIndex, TxIndexReader)>, Problem> {
    let (settings, disk) = (session.settings, &session.disk);
    // Opening would create one.
    if inspect(disk.as_ref(), &settings.datadir, IndexKind::Tables, &settings.params)?.is_none() {
        return Ok(None);
    }
    // Whatever tables it has: none is asked for, so that none is missing.
    let any = Profile { has_scripts: false, has_txids: false };
    let new_salt = || [u64::from_le_bytes(secret()), u64::from_le_bytes(secret())];
    let dir = settings.datadir.join(TABLES_DIR);
    let (index, reader) = TxIndex::open(Arc::clone(disk), &dir, settings.params.genesis_hash, any, new_salt)?;
    if !reader.profile().has_scripts {
        return Ok(None);
    }
    index.wait_until_idle();
    Ok(Some((index, reader)))
}

fn display(session: &Session<'_>, style: Style) -> Result<Display, Problem> {
    Display::start(style, session.settings.threads, Box::new(|_| {}), |_| {}).map_err(Problem::Thread)
}

/// The document of `load`.
#[derive(Debug, Serialize)]
struct Loaded {
    store: String,
    height: Option<u32>,
    /// What this run wrote of pages, with their heads.
    page_bytes: u64,
    seconds: f64,
}

fn load(session: &Session<'_>, address: &Address, style: Style) -> Result<u8, Problem> {
    let display = display(session, style)?;
    display.show(Doing::Something("opening the store".to_owned()));
    let store = open_or_create(address)?;
    let (_index, reader) = open_index(session)?.ok_or(Problem::NoIndex(true))?;
    let watch = Stopwatch::start();
    let mut writer = Writer::open(store, Box::new(reader), WriterId(secret()))?;
    let (mut page_bytes, mut failures) = (0_u64, 0);
    loop {
        if session.stop.is_asked() {
            return Err(Problem::Interrupted);
        }
        match writer.step(now().into()) {
            Ok(Step::Idle) => break,
            Ok(step) => {
                failures = 0;
                if let Step::Wrote(bytes) = step {
                    page_bytes = page_bytes.saturating_add(bytes as u64);
                }
                let blocks = count(writer.lag().into(), "block");
                display.show(Doing::Something(format!(
                    "writing the index: {} MB, {blocks} behind",
                    megabytes(page_bytes)
                )));
            }
            Err(error) if error.may_pass() && failures < FAILURES_MAX => {
                failures += 1;
                session.log.warning(&error);
                session.stop.wait(RETRY, || false);
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop(display);
    let seconds = watch.seconds().wall_seconds;
    let height = writer.tip().map(|(height, _)| height);
    let loaded = Loaded { store: address.to_string(), height, page_bytes, seconds };
    let screen = Screen::new();
    if session.settings.json {
        print_json(&screen, &loaded);
    } else {
        let height = height.map_or("no block".to_owned(), |height| format!("height {}", commas(height.into())));
        let text =
            format!("{address} has the index up to {height}: {} MB of pages in {seconds:.1} s", megabytes(page_bytes));
        screen.line(&screen.tone(Tone::Good, &text));
    }
    Ok(exit::DONE)
}

/// The document of `verify`.
#[derive(Debug, Serialize)]
struct Verified {
    store: String,
    is_equal: bool,
    sequence: u64,
    height: Option<u32>,
    values: u64,
    bytes: u64,
    difference: Option<String>,
}

fn verify(session: &Session<'_>, address: &Address, style: Style) -> Result<u8, Problem> {
    let display = display(session, style)?;
    let (_index, reader) = open_index(session)?.ok_or(Problem::NoIndex(false))?;
    display.show(Doing::Something("opening the store".to_owned()));
    let store = open_store(address)?;
    let mut told = |values| {
        display.show(Doing::Something(format!("comparing with the store: {} values", commas(values))));
        !session.stop.is_asked()
    };
    let found = compare(store.as_ref(), &reader, &mut told)?.ok_or(Problem::Interrupted)?;
    drop(display);
    let Compared { sequence, height, values, bytes, difference } = found;
    let is_equal = difference.is_none();
    let result = difference.as_deref().unwrap_or("equal").to_owned();
    let verified = Verified { store: address.to_string(), is_equal, sequence, height, values, bytes, difference };
    session.log.info(format!("Index in {address} compared: {result}"));
    let screen = Screen::new();
    match (session.settings.json, is_equal) {
        (true, _) => print_json(&screen, &verified),
        (false, true) => {
            let height = height.map_or("no block".to_owned(), |height| format!("height {}", commas(height.into())));
            let text = format!(
                "{address}: equal to the index of this node up to {height}, {}, {} MB",
                count(values, "value"),
                megabytes(bytes)
            );
            screen.line(&screen.tone(Tone::Good, &text));
        }
        (false, false) => screen.line(&screen.tone(Tone::Bad, &format!("{address}: NOT EQUAL: {result}"))),
    }
    Ok(if is_equal { exit::DONE } else { exit::INVALID })
}
