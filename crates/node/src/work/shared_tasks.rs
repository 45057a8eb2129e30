//! `lydian index load cassandra://...` writes the index of a data directory to a store, and `verify` compares both.
//!
//! Input: a session, which holds the lock of the data directory. Output: text or JSON, and an exit code. No block is
//! validated, and with `-storeblocks` they are read: the index is as the last checkpoint of a node left it. The store
//! is left as it is by `verify`; `load` creates the keyspace if there is none, continues where an earlier one was
//! stopped, and may be stopped at any moment. It never takes the store back: after a crash of the node, the store may
//! be further than the last checkpoint.

use super::opening::secret;
use crate::clock::{Stopwatch, now};
use crate::daemon::complain;
use crate::display::{Display, Doing, Style, megabytes};
use crate::exit;
use crate::index::print_json;
use crate::run::Session;
use crate::screen::{Screen, Tone, commas, count};
use crate::shared_index::{FileBlocks, NoBlocks, code_of, open_or_create, open_store};
use lydian_chain::ChainError;
use lydian_index::{IndexError, IndexKind, Profile, TABLES_DIR, TxIndex, TxIndexReader, inspect};
use lydian_index_cassandra::Address;
use lydian_primitives::BlockHash;
use lydian_shared_index::{
    Ahead, BlockSource, Commit, CommitRead, Compared, Step, Store, StoreError, Writer, WriterError, WriterId, compare,
};
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
    /// The block files.
    Blocks(ChainError),
    /// They do not have the chain of the index.
    NoBlocks,
    /// A block cannot be written.
    Block(String),
    /// The data directory has no index of scripts; whether the keyspace exists.
    NoIndex(bool),
    /// The store has this block, and not the one of the data directory.
    OtherBranch(String, String),
    Interrupted,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Writer(error) => error.fmt(f),
            Problem::Thread(error) => write!(f, "a thread could not be started: {error}"),
            Problem::Blocks(error) => error.fmt(f),
            Problem::NoBlocks => f.write_str(
                "the block files do not have the blocks of the index: start the node and wait until it has loaded them",
            ),
            Problem::Block(reason) => f.write_str(reason),
            Problem::NoIndex(is_ready) => {
                if *is_ready {
                    f.write_str("the keyspace is ready, but ")?;
                }
                f.write_str("the data directory has no index of scripts: start the node with -index, which builds it")
            }
            Problem::OtherBranch(theirs, own) => write!(
                f,
                "the store has the index up to {theirs}, the data directory that up to {own} on another branch, which \
                 is not longer: nothing was written; start the node with -index, which brings both to one chain"
            ),
            Problem::Interrupted => f.write_str("stopped on request; the same command continues"),
        }
    }
}

impl Problem {
    fn code(&self) -> u8 {
        match self {
            Problem::Writer(error) => code_of(error),
            Problem::Thread(_) | Problem::Blocks(_) | Problem::Block(_) => exit::DISK,
            Problem::NoBlocks | Problem::NoIndex(_) | Problem::OtherBranch(..) => exit::DIRECTORY,
            Problem::Interrupted => exit::INTERRUPTED,
        }
    }
}

impl From<WriterError> for Problem {
    fn from(error: WriterError) -> Problem {
        Problem::Writer(error)
    }
}

impl From<ChainError> for Problem {
    fn from(error: ChainError) -> Problem {
        Problem::Blocks(error)
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

/// The blocks of the data directory.
fn open_blocks(session: &Session<'_>, reader: &TxIndexReader) -> Result<FileBlocks, Problem> {
    FileBlocks::open(&session.disk, session.settings, reader.tip())?.ok_or(Problem::NoBlocks)
}

fn display(session: &Session<'_>, style: Style) -> Result<Display, Problem> {
    Display::start(style, session.settings.threads, Box::new(|_| {}), |_| {}).map_err(Problem::Thread)
}

/// The document of `load`.
#[derive(Debug, Serialize)]
struct Loaded {
    store: String,
    height: Option<u32>,
    /// The store was further than the data directory, so that nothing was written.
    is_further: bool,
    /// What this run wrote of pages, with their heads.
    page_bytes: u64,
    /// The blocks that the store has, and what this run wrote of them.
    blocks: u32,
    block_bytes: u64,
    seconds: f64,
}

fn load(session: &Session<'_>, address: &Address, style: Style) -> Result<u8, Problem> {
    let display = display(session, style)?;
    display.show(Doing::Something("opening the store".to_owned()));
    let store = open_or_create(address)?;
    let (_index, reader) = open_index(session)?.ok_or(Problem::NoIndex(true))?;
    let watch = Stopwatch::start();
    let own = reader.tip();
    let blocks = session.settings.store_blocks.then(|| open_blocks(session, &reader)).transpose()?;
    let mut writer = Writer::open(store, Box::new(reader), WriterId(secret()))?.of_fixed_index();
    if let Some(blocks) = blocks {
        writer = writer.with_blocks(Box::new(blocks));
    }
    let (mut page_bytes, mut block_bytes, mut failures) = (0_u64, 0_u64, 0);
    let is_further = loop {
        if session.stop.is_asked() {
            return Err(Problem::Interrupted);
        }
        match writer.step(now().into()) {
            Ok(Step::Idle) => break false,
            Ok(Step::Waits(Ahead::Further)) => break true,
            Ok(Step::Waits(Ahead::OtherBranch)) => {
                let own = own.map(|tip| (tip.height.0, tip.hash));
                return Err(Problem::OtherBranch(block_text(writer.tip()), block_text(own)));
            }
            Ok(step) => {
                failures = 0;
                match step {
                    Step::Wrote(bytes) => page_bytes = page_bytes.saturating_add(bytes as u64),
                    Step::Stored(bytes) => block_bytes = block_bytes.saturating_add(bytes as u64),
                    _ => {}
                }
                let behind = count(writer.lag().into(), "block");
                let mut words = format!("writing the index: {} MB, {behind} behind", megabytes(page_bytes));
                if block_bytes > 0 {
                    let blocks = count(writer.stored_blocks().into(), "block");
                    words = format!("writing blocks: {} MB, the store has {blocks}", megabytes(block_bytes));
                }
                display.show(Doing::Something(words));
            }
            Err(error) if error.may_pass() && failures < FAILURES_MAX => {
                failures += 1;
                session.log.warning(&error);
                session.stop.wait(RETRY, || false);
            }
            Err(error) => return Err(error.into()),
        }
    };
    if let Some(reason) = writer.block_fault() {
        return Err(Problem::Block(reason.to_owned()));
    }
    drop(display);
    let (blocks, seconds) = (writer.stored_blocks(), watch.seconds().wall_seconds);
    let height = writer.tip().map(|(height, _)| height);
    let loaded = Loaded { store: address.to_string(), height, is_further, page_bytes, blocks, block_bytes, seconds };
    let screen = Screen::new();
    if session.settings.json {
        print_json(&screen, &loaded);
    } else {
        screen.line(&screen.tone(Tone::Good, &loaded.sentence(own.map(|tip| tip.height.0))));
    }
    Ok(exit::DONE)
}

impl Loaded {
    /// `own`: the height of the data directory.
    fn sentence(&self, own: Option<u32>) -> String {
        let Loaded { store, height, is_further, page_bytes, blocks, block_bytes, seconds } = self;
        let height = height_text(*height);
        if *is_further {
            let own = height_text(own);
            return format!(
                "{store} has the index up to {height} already, the data directory up to {own}, its last checkpoint: \
                 nothing was written"
            );
        }
        let mut what = format!("{} MB of pages", megabytes(*page_bytes));
        let mut has = format!("the index up to {height}");
        if *blocks > 0 {
            what = format!("{what} and {} MB of blocks", megabytes(*block_bytes));
            has = format!("{has} and {}", count((*blocks).into(), "block"));
        }
        format!("{store} has {has}: {what} in {seconds:.1} s")
    }
}

fn height_text(height: Option<u32>) -> String {
    height.map_or("no block".to_owned(), |height| format!("height {}", commas(height.into())))
}

fn block_text(block: Option<(u32, BlockHash)>) -> String {
    block.map_or("no block".to_owned(), |(height, hash)| format!("block {hash} at height {}", commas(height.into())))
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
    blocks: u64,
    other_blocks: u64,
    difference: Option<String>,
}

/// The blocks to compare; none if the store has none, or this node.
fn blocks_to_compare(
    session: &Session<'_>,
    store: &dyn Store,
    reader: &TxIndexReader,
) -> Result<Box<dyn BlockSource>, Problem> {
    let row = store.commit(CommitRead::Quorum)?.map(|stored| Commit::read(&stored)).transpose()?;
    match row.is_some_and(|row| row.stored_blocks() > 0) {
        true => Ok(Box::new(open_blocks(session, reader)?)),
        false => Ok(Box::new(NoBlocks)),
    }
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
    let source = blocks_to_compare(session, store.as_ref(), &reader)?;
    let found = compare(store.as_ref(), &reader, source.as_ref(), &mut told)?.ok_or(Problem::Interrupted)?;
    drop(display);
    let Compared { sequence, height, values, bytes, blocks, other_blocks, difference } = found;
    let is_equal = difference.is_none();
    let result = difference.as_deref().unwrap_or("equal").to_owned();
    let store = address.to_string();
    let verified = Verified { store, is_equal, sequence, height, values, bytes, blocks, other_blocks, difference };
    session.log.info(format!("Index in {address} compared: {result}"));
    let screen = Screen::new();
    match (session.settings.json, is_equal) {
        (true, _) => print_json(&screen, &verified),
        (false, true) => {
            let mut text = format!(
                "{address}: equal to the index of this node up to {}, {}, {} MB",
                height_text(height),
                count(values, "value"),
                megabytes(bytes)
            );
            if blocks + other_blocks > 0 {
                text = format!("{text}; {} of them", count(blocks, "block"));
            }
            if other_blocks > 0 {
                text = format!("{text}, and {} not compared: this node has pruned them", commas(other_blocks));
            }
            screen.line(&screen.tone(Tone::Good, &text));
        }
        (false, false) => screen.line(&screen.tone(Tone::Bad, &format!("{address}: NOT EQUAL: {result}"))),
    }
    Ok(if is_equal { exit::DONE } else { exit::INVALID })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_index::documented::assert_fields;

    #[test]
    fn the_documents_have_the_fields_that_are_documented() {
        let (store, height) = ("cassandra://h:9042/k".to_owned(), Some(120_000));
        let mut loaded = Loaded {
            store: store.clone(),
            height,
            is_further: false,
            page_bytes: 7_000_000,
            blocks: 0,
            block_bytes: 0,
            seconds: 2.0,
        };
        assert_fields("load", &loaded);
        let text = "cassandra://h:9042/k has the index up to height 120,000: 7.0 MB of pages in 2.0 s";
        assert_eq!(loaded.sentence(Some(120_000)), text);
        (loaded.blocks, loaded.block_bytes) = (120_001, 9_500_000);
        let text = "cassandra://h:9042/k has the index up to height 120,000 and 120,001 blocks: 7.0 MB of pages and \
                    9.5 MB of blocks in 2.0 s";
        assert_eq!(loaded.sentence(Some(120_000)), text);
        loaded.is_further = true;
        let text = "cassandra://h:9042/k has the index up to height 120,000 already, the data directory up to height \
                    119,990, its last checkpoint: nothing was written";
        assert_eq!(loaded.sentence(Some(119_990)), text);
        let difference = Some("a delta is missing".to_owned());
        let (blocks, other_blocks) = (6, 7);
        let verified = Verified {
            store,
            is_equal: false,
            sequence: 3,
            height,
            values: 4,
            bytes: 5,
            blocks,
            other_blocks,
            difference,
        };
        assert_fields("verify", &verified);
    }
}
