//! [`Filler`]: the thread that reads the blocks from before this start, the highest first, and saves reorganisations.
//!
//! Input: an engine and the rows that are missing. Output: rows without senders and times; the file of the
//! reorganisations, within about a second of each change. It has the lowest priority, pauses after each block, and
//! reads no blocks while the node catches up. It ends when it is dropped, and saves what has changed.

use super::facts::{Facts, fees};
use super::saved::Saved;
use super::{Blocks, Row};
use lydian_engine::{Engine, EngineError, HeaderInfo, InitialDownload};
use lydian_primitives::Height;
use lydian_stdx::{IgnorePoison, lock};
use std::io;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The lowest priority of a thread.
const LOWEST_PRIORITY: i32 = 19;

/// The pause after a block: 2,016 full blocks take a quarter of a minute more than their reading.
const PAUSE: Duration = Duration::from_millis(5);

/// The wait for something to do.
const IDLE: Duration = Duration::from_secs(1);

/// The thread.
#[derive(Debug)]
pub(crate) struct Filler {
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the thread should end.
#[derive(Debug, Default)]
struct Ending {
    is_ending: Mutex<bool>,
    changed: Condvar,
}

impl Ending {
    /// Waits for this time, or until the end. Returns whether it has come.
    fn wait(&self, time: Duration) -> bool {
        let is_ending = lock(&self.is_ending);
        let (is_ending, _) = self.changed.wait_timeout_while(is_ending, time, |is_ending| !*is_ending).ignore_poison();
        *is_ending
    }
}

impl Filler {
    pub(crate) fn start(
        blocks: &Arc<Blocks>,
        engine: &Arc<Engine>,
        initial_download: &Arc<InitialDownload>,
        saved: Saved,
    ) -> io::Result<Filler> {
        blocks.begins(&engine.tip_update());
        blocks.restore(&saved.read());
        let ending = Arc::<Ending>::default();
        let work = Work {
            blocks: Arc::clone(blocks),
            engine: Arc::downgrade(engine),
            initial_download: Arc::clone(initial_download),
            ending: Arc::clone(&ending),
            saved,
        };
        let thread = Builder::new().name("pageblocks".to_owned()).spawn(move || work.run())?;
        Ok(Filler { ending, thread: Some(thread) })
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        *lock(&self.ending.is_ending) = true;
        self.ending.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Work {
    blocks: Arc<Blocks>,
    // Weak, so that the engine ends when the node wants it to.
    engine: Weak<Engine>,
    initial_download: Arc<InitialDownload>,
    ending: Arc<Ending>,
    saved: Saved,
}

impl Work {
    fn run(&self) {
        // If it fails, the thread has the priority of all others.
        let _ = rustix::process::nice(LOWEST_PRIORITY);
        let (mut pause, mut seen) = (PAUSE, 0);
        let mut save = || {
            if let Some((version, reorgs)) = self.blocks.changed_reorganisations(seen) {
                self.saved.write(&reorgs);
                seen = version;
            }
        };
        while !self.ending.wait(pause) {
            save();
            let missing = self.blocks.missing().filter(|_| !self.initial_download.is_on());
            pause = if missing.is_some_and(|height| self.fill(height)) { PAUSE } else { IDLE };
        }
        save();
    }

    /// Fills one row. Returns whether there is a block at this height.
    fn fill(&self, height: u32) -> bool {
        let Some(engine) = self.engine.upgrade() else { return false };
        let Some(info) = engine.header_info_at(Height(height)) else { return false };
        // A block that cannot be read has a row without figures; the caller that needs it meets the error.
        let facts = read(&engine, &info).unwrap_or_default();
        let is_active = || engine.hash_at(Height(height)) == Some(info.node.hash);
        self.blocks.fill(Row::of_the_chain(&info, facts), is_active);
        true
    }
}

/// The figures of a block; `None` if it is pruned.
fn read(engine: &Engine, info: &HeaderInfo) -> Result<Option<Facts>, EngineError> {
    let Some(block) = engine.block(info)? else { return Ok(None) };
    let spent = engine.spent_coins(info, &block)?;
    let fees = spent.map(|spent| fees(&block, &spent));
    Ok(Some(Facts::of(&block, fees)))
}
