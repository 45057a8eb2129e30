//! `-index`: writes the index of this node to a store, on a thread of its own.
//!
//! Input: a session, the reader of the index, the engine. Output: the store at the tip of the index; how far it is
//! ([`Progress`]), a warning while the store fails, lines in the log. A store that is down or slow delays nothing: the
//! thread tries again every second. The start waits up to [`START_WAIT`] for the first answer of the store: what a
//! further try cannot change (another chain, salt or format, a single copy, a clock that is off) ends it. Later, as
//! when the store was slower, or like another writer, it ends the writing, not the node.

use super::alerts::Alarm;
use super::failure::Failure;
use super::opening::secret;
use crate::clock::now;
use crate::log::Log;
use crate::run::Session;
use crate::shared_index::open_store;
use lydian_engine::{Engine, InitialDownload, Standing};
use lydian_index::TxIndexReader;
use lydian_index_cassandra::Address;
use lydian_rpc::Warning;
use lydian_shared_index::{EngineBlocks, Step, Writer, WriterError, WriterId};
use lydian_stdx::{IgnorePoison, lock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How long the start of the node waits for the first answer of the store.
const START_WAIT: Duration = Duration::from_secs(2);

/// How often the index is asked for new blocks.
const LOOK: Duration = Duration::from_millis(50);

/// Between two tries while the store fails.
const RETRY: Duration = Duration::from_secs(1);

/// Failures in a row before the operator is warned: a single time-out is no news.
const FAILURES_MAX: u32 = 3;

/// How far the store is, for figures.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of blocks that readers of the store have.
    blocks: AtomicU32,
    /// Whether the writing ended by an error.
    has_failed: AtomicBool,
}

impl Progress {
    /// The height of the last block; `None` before the first.
    pub(crate) fn height(&self) -> Option<u32> {
        self.blocks.load(Ordering::Relaxed).checked_sub(1)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }
}

/// The thread. It ends when this is dropped, after at most one call of the store, or one try to connect.
#[derive(Debug)]
pub(super) struct SharedWriter {
    progress: Arc<Progress>,
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl SharedWriter {
    /// Fails if the store refuses this index at once. A store that does not answer is tried again later. The thread
    /// begins to write once the blocks on disk are loaded.
    pub(super) fn start(
        session: &Session<'_>,
        address: &Address,
        reader: &TxIndexReader,
        engine: &Arc<Engine>,
    ) -> Result<SharedWriter, Failure> {
        let (progress, end) = (Arc::<Progress>::default(), Arc::<(Mutex<bool>, Condvar)>::default());
        let work = Work {
            address: address.clone(),
            reader: reader.clone(),
            engine: Arc::clone(engine),
            id: WriterId(secret()),
            writer: None,
            failures: 0,
            has_waited: false,
            stores_blocks: session.settings.store_blocks,
            progress: Arc::clone(&progress),
            initial_download: Arc::clone(&session.initial_download),
            log: Arc::clone(&session.log),
            alarm: Alarm::new(session),
        };
        // `peers::stay`, which comes next, ends it.
        session.initial_download.set_loading(true);
        let (ends, (start, answers)) = (Arc::clone(&end), sync_channel(0));
        let thread = Builder::new().name("index-store".to_owned()).spawn(move || work.run(&ends, start))?;
        let writer = SharedWriter { progress, end, thread: Some(thread) };
        wait_for_first(answers, START_WAIT).map_err(Failure::SharedIndex)?;
        Ok(writer)
    }

    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

/// Waits for the result of the first try to connect. Fails if the store refuses the index in this time.
fn wait_for_first(answers: Receiver<Result<(), WriterError>>, wait: Duration) -> Result<(), WriterError> {
    // Dropping the receiver says that nothing waits any more.
    answers.recv_timeout(wait).unwrap_or(Ok(()))
}

/// Passes the result of the first try on to the start. Returns a refusal for which the start did not wait.
fn pass_first(result: Result<(), WriterError>, start: SyncSender<Result<(), WriterError>>) -> Option<WriterError> {
    start.send(result).err().and_then(|unsent| unsent.0.err())
}

impl Drop for SharedWriter {
    fn drop(&mut self) {
        *lock(&self.end.0) = true;
        self.end.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
}

struct Work {
    address: Address,
    reader: TxIndexReader,
    engine: Arc<Engine>,
    id: WriterId,
    /// `None` while the store was not reached yet.
    writer: Option<Writer>,
    /// Failures since the last step that succeeded.
    failures: u32,
    /// The log says that the store is further.
    has_waited: bool,
    /// `-storeblocks`. False once that has failed.
    stores_blocks: bool,
    progress: Arc<Progress>,
    initial_download: Arc<InitialDownload>,
    log: Arc<Log>,
    alarm: Alarm,
}

/// What the thread does next.
enum Next {
    Step,
    Wait(Duration),
    End,
}

impl Work {
    fn connect(&mut self) -> Result<(), WriterError> {
        let mut writer = Writer::open(open_store(&self.address)?, Box::new(self.reader.clone()), self.id)?;
        if self.stores_blocks {
            writer = writer.with_blocks(Box::new(EngineBlocks::new(&self.engine)));
            self.log.info(format!("Index: the blocks that this node has are written to {} too", self.address));
        }
        self.shows(&writer);
        self.writer = Some(writer);
        Ok(())
    }

    /// The first try, whose refusal goes to the start of the node, or to the log if the start went on. Returns whether
    /// to go on.
    fn begin(&mut self, start: SyncSender<Result<(), WriterError>>) -> bool {
        let refused = match self.connect() {
            Ok(()) => {
                self.log.info(format!("Index: written to {}", self.address));
                None
            }
            Err(error) if error.may_pass() => {
                self.failures = FAILURES_MAX;
                self.failed(&error);
                None
            }
            Err(error) => Some(error),
        };
        let is_refused = refused.is_some();
        if let Some(error) = pass_first(refused.map_or(Ok(()), Err), start) {
            self.ended(&error);
        }
        !is_refused
    }

    fn run(mut self, end: &(Mutex<bool>, Condvar), start: SyncSender<Result<(), WriterError>>) {
        if !self.begin(start) {
            return;
        }
        let has_ended = || *lock(&end.0);
        while !has_ended() {
            match self.turn() {
                Next::Step => {}
                Next::Wait(time) => {
                    let guard = lock(&end.0);
                    drop(end.1.wait_timeout_while(guard, time, |is_ended| !*is_ended).ignore_poison());
                }
                Next::End => return,
            }
        }
    }

    fn turn(&mut self) -> Next {
        // After a crash the coins, and the index behind them, are lower for a while; the row would follow them back.
        let standing = self.engine.follower(self.reader.name()).map(|index| index.standing);
        if self.initial_download.is_loading() || !matches!(standing, Some(Standing::InStep)) {
            return Next::Wait(LOOK);
        }
        match self.step() {
            Ok(step) => {
                self.succeeded();
                self.waits(matches!(step, Step::Waits(_)));
                if matches!(step, Step::Idle | Step::Waits(_)) { Next::Wait(LOOK) } else { Next::Step }
            }
            Err(error) if error.may_pass() => {
                self.failures = self.failures.saturating_add(1);
                self.failed(&error);
                Next::Wait(RETRY)
            }
            Err(error) => {
                self.ended(&error);
                Next::End
            }
        }
    }

    fn step(&mut self) -> Result<Step, WriterError> {
        let Some(writer) = &mut self.writer else {
            self.connect()?;
            return Ok(Step::Adopted);
        };
        let step = writer.step(now().into());
        if let Some(writer) = &self.writer {
            self.shows(writer);
        }
        if let Some(fault) = self.writer.as_ref().and_then(Writer::block_fault).filter(|_| self.stores_blocks) {
            let text = format!("Blocks are no longer written to {}: {fault}", self.address);
            self.log.error(&text);
            self.alarm.keep(Warning::SharedBlocks, Some(&text));
            self.stores_blocks = false;
        }
        step
    }

    fn shows(&self, writer: &Writer) {
        // Between two rows none is known.
        if let Some((height, _)) = writer.tip() {
            self.progress.blocks.store(height.saturating_add(1), Ordering::Relaxed);
        }
    }

    fn succeeded(&mut self) {
        if self.failures >= FAILURES_MAX {
            self.log.info(format!("Index: {} answers again", self.address));
        }
        if self.failures > 0 {
            self.alarm.unwarn(Warning::SharedIndex);
        }
        self.failures = 0;
    }

    /// Says once that the store is further, as after a crash of this node.
    fn waits(&mut self, does_wait: bool) {
        if does_wait && !self.has_waited {
            let height = self.writer.as_ref().and_then(Writer::tip).map_or(0, |(height, _)| height);
            self.log.info(format!(
                "Index: {} has blocks up to height {height}, which this node does not have yet: it is written again \
                 from there on",
                self.address
            ));
        }
        self.has_waited = does_wait;
    }

    fn failed(&self, error: &WriterError) {
        if self.failures == FAILURES_MAX {
            let text = format!("The index is not written to {}: {error}", self.address);
            self.log.warning(&text);
            self.alarm.keep(Warning::SharedIndex, Some(&text));
        }
    }

    fn ended(&self, error: &WriterError) {
        let text = format!("The index is no longer written to {}: {error}", self.address);
        self.log.error(&text);
        self.progress.has_failed.store(true, Ordering::Relaxed);
        self.alarm.keep(Warning::SharedIndex, Some(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_shared_index::StoreError;

    fn refusal() -> Result<(), WriterError> {
        Err(StoreError::Refused { reason: "another chain".to_owned() }.into())
    }

    /// For a thread that must do something, on a machine that is busy.
    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_refusal_ends_the_start_if_it_comes_in_time_and_the_writing_if_it_comes_later() {
        let (start, answers) = sync_channel(0);
        let thread = std::thread::spawn(move || pass_first(refusal(), start));
        assert_eq!(wait_for_first(answers, PATIENCE), refusal());
        assert_eq!(thread.join().unwrap(), None);

        // A store that hangs: the start goes on while the thread waits for it.
        let ((start, answers), (answer, hangs)) = (sync_channel(0), sync_channel(0));
        let thread = std::thread::spawn(move || pass_first(hangs.recv().unwrap(), start));
        assert_eq!(wait_for_first(answers, Duration::from_millis(1)), Ok(()));
        answer.send(refusal()).unwrap();
        assert_eq!(thread.join().unwrap(), refusal().err());

        // A store that was reached later, and a thread that ended by a panic.
        let (start, answers) = sync_channel(0);
        drop(answers);
        assert_eq!(pass_first(Ok(()), start), None);
        let (start, answers) = sync_channel::<Result<(), WriterError>>(0);
        drop(start);
        assert_eq!(wait_for_first(answers, PATIENCE), Ok(()));
    }
}
