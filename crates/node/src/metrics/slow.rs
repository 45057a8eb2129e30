//! [`Slow`]: figures that take longer than an answer may: of the last block, the header tree, the files.
//!
//! Input: the RPC methods' state, folders. Output: the last [`Values`]. If they belong to another block, or are older
//! than [`AGE_MAX`], a thread reads them again, and an answer waits [`PATIENCE`] for it: on a short chain it always has
//! the current values, on a long one those of the block before at most once. Invariant: one such thread at a time; it
//! has ended when [`Slow::end`] returns.

use super::Folders;
use crate::clock::now_nanos;
use lydian_disk::{Disk, PathKind};
use lydian_index::{COINSTATS_DIR, FILTERS_DIR, TABLES_DIR};
use lydian_primitives::BlockHash;
use lydian_rpc::Context;
use lydian_rpc::figures::Leaves;
use lydian_stdx::{IgnorePoison, lock};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::Builder;
use std::time::Duration;

/// How long an answer waits for new values.
pub(super) const PATIENCE: Duration = Duration::from_millis(3);

/// Values of the same block are read again after this time: files grow.
const AGE_MAX: Duration = Duration::from_secs(30);

/// Folders below the data directory that hold indexes.
const INDEX_FOLDERS: [&str; 3] = [TABLES_DIR, FILTERS_DIR, COINSTATS_DIR];

/// Folders that are looked into below those.
const DEPTH_MAX: usize = 4;

/// The values.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) core: Option<Arc<lydian_rpc::figures::Slow>>,
    /// Bytes of the files of the indexes.
    pub(super) index_bytes: u64,
    /// Bytes that can still be written to the data directory and to the blocks directory.
    pub(super) free_bytes: [Option<u64>; 2],
}

#[derive(Debug, Default)]
struct State {
    values: Arc<Values>,
    /// The block that the values belong to, and when they were read; `None` before that.
    of: Option<(Option<BlockHash>, Duration)>,
    is_reading: bool,
    has_ended: bool,
    leaves: Leaves,
}

#[derive(Debug)]
pub(super) struct Slow {
    context: Arc<Context>,
    disk: Arc<dyn Disk>,
    folders: Folders,
    state: Mutex<State>,
    read: Condvar,
}

fn now() -> Duration {
    Duration::from_nanos(now_nanos())
}

impl Slow {
    pub(super) fn new(context: Arc<Context>, disk: Arc<dyn Disk>, folders: Folders) -> Slow {
        Slow { context, disk, folders, state: Mutex::default(), read: Condvar::new() }
    }

    /// The values, of this block if they can be read quickly.
    pub(super) fn get(self: &Arc<Slow>, tip: Option<BlockHash>) -> Arc<Values> {
        let mut state = lock(&self.state);
        let is_fresh = |(of, at): (Option<BlockHash>, Duration)| of == tip && now().saturating_sub(at) < AGE_MAX;
        if state.of.is_some_and(is_fresh) || state.has_ended {
            return Arc::clone(&state.values);
        }
        if !state.is_reading {
            let (slow, leaves) = (Arc::clone(self), std::mem::take(&mut state.leaves));
            let reading = Builder::new().name("figures".to_owned()).spawn(move || slow.read_values(leaves));
            // Without a thread, the values stay as they are.
            state.is_reading = reading.is_ok();
        }
        let (state, _) = self.read.wait_timeout_while(state, PATIENCE, |state| state.is_reading).ignore_poison();
        Arc::clone(&state.values)
    }

    fn read_values(&self, mut leaves: Leaves) {
        let _ends = Ends(self);
        let core = lydian_rpc::figures::Slow::read(&self.context, &mut leaves).map(Arc::new);
        let disk = self.disk.as_ref();
        let index_bytes =
            INDEX_FOLDERS.iter().map(|name| size(disk, &self.folders.datadir.join(name), DEPTH_MAX)).sum();
        let free = |path: &Path| disk.free_bytes(path).ok();
        let free_bytes = [free(&self.folders.datadir), free(&self.folders.blocks)];
        let mut state = lock(&self.state);
        state.of = Some((core.as_ref().map(|core| core.tip), now()));
        state.values = Arc::new(Values { core, index_bytes, free_bytes });
        state.leaves = leaves;
    }

    /// No thread reads any more, and none will.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.has_ended = true;
        drop(self.read.wait_while(state, |state| state.is_reading).ignore_poison());
    }
}

/// Ends the reading, also after a panic.
struct Ends<'a>(&'a Slow);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).is_reading = false;
        self.0.read.notify_all();
    }
}

/// Bytes of the files below a folder; 0 if it does not exist.
fn size(disk: &dyn Disk, folder: &Path, depth: usize) -> u64 {
    let files = disk.list(folder).unwrap_or_default();
    let sizes = files.iter().map(|(path, kind)| match kind {
        PathKind::File => disk.open(path).map_or(0, |file| file.size()),
        PathKind::Directory if depth > 0 => size(disk, path, depth - 1),
        PathKind::Directory => 0,
    });
    sizes.sum()
}
