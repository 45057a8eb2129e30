//! [`Fetcher`]: pages and deltas from the store, checked.
//!
//! Input: names. Output: what was written under them, or an error. One replica is asked first; what it does not have,
//! or has damaged, is read from a quorum. A value that is missing there too is an error: the commit row names it.
//!
//! Cost: one round for pages. One more for lists, whose place is kept for [`DIRECTORIES_MAX`] pages. At most
//! [`crate::limits::READS_MAX`] values are asked for at the same time; a question that has waited [`WAIT_MAX`] for its
//! turn ends with an error.

use crate::filter::Filters;
use crate::limits::READS_MAX;
use crate::parts::{self, Directory};
use crate::seal::Sealed;
use crate::store::{Bucket, DeltaHeight, DeltaKey, Key, PageKey, Replicas, Store, StoreError};
use crate::turns::Turns;
use lydian_index::{IndexError, RemotePage, RemotePages, RemoteSegment, Table};
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Pages whose lists' places are kept: of a few bytes each.
const DIRECTORIES_MAX: usize = 4_096;

/// Filters that are read at the same time: about 2 MB.
const FILTERS_AT_ONCE: usize = 64;

/// Values that one question asks for at the same time, so that others get their turn.
pub(crate) const READS_AT_ONCE: usize = 256;

/// How long a question waits while the reads of others are under way.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Reads the store for snapshots.
#[derive(Debug)]
pub(crate) struct Fetcher {
    store: Arc<dyn Store>,
    directories: Mutex<HashMap<Bucket, Arc<Directory>>>,
    turns: Turns,
    pub(crate) filters: Filters,
}

/// The bytes of a page, and where its long lists are.
type PageWithLists = (Vec<u8>, Arc<Directory>);

impl Fetcher {
    pub(crate) fn new(store: Arc<dyn Store>) -> Fetcher {
        let (turns, filters) = (Turns::new(READS_MAX, WAIT_MAX), Filters::default());
        Fetcher { store, directories: Mutex::default(), turns, filters }
    }

    /// Forgets what belongs to generations that are not among these.
    pub(crate) fn retain(&self, segments: &[RemoteSegment]) {
        self.filters.retain(segments);
        let is_named = |bucket: &Bucket| segments.iter().any(|segment| segment.generation == bucket.generation);
        lock(&self.directories).retain(|bucket, _| is_named(bucket));
    }

    /// The contents of values that the commit row names.
    pub(crate) fn read(&self, keys: &[Key]) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut contents = Vec::with_capacity(keys.len());
        for keys in keys.chunks(READS_AT_ONCE) {
            let turn = self.turns.wait(keys.len())?;
            contents.extend(self.read_some(keys)?);
            drop(turn);
        }
        Ok(contents)
    }

    fn read_some(&self, keys: &[Key]) -> Result<Vec<Vec<u8>>, StoreError> {
        let found = self.store.read(keys, Replicas::One)?;
        let mut contents: Vec<Option<Vec<u8>>> = keys
            .iter()
            .zip(&found)
            .map(|(key, value)| {
                let opened = Sealed::Value(*key).open(value.as_deref()?);
                opened.ok().map(<[u8]>::to_vec)
            })
            .collect();
        contents.resize(keys.len(), None);
        let missing: Vec<Key> =
            keys.iter().zip(&contents).filter(|(_, content)| content.is_none()).map(|(key, _)| *key).collect();
        if !missing.is_empty() {
            let mut found = self.store.read(&missing, Replicas::Quorum)?.into_iter();
            for (key, content) in keys.iter().zip(&mut contents).filter(|(_, content)| content.is_none()) {
                let value = found.next().flatten().ok_or_else(|| StoreError::Missing { key: key.to_string() })?;
                *content = Some(Sealed::Value(*key).open(&value)?.to_vec());
            }
        }
        Ok(contents.into_iter().flatten().collect())
    }

    /// Reads some filters of these generations. False if there are none left, or no room.
    pub(crate) fn load_filters(&self, segments: &[RemoteSegment], bytes_max: usize) -> Result<bool, StoreError> {
        let Some(wanted) = self.filters.next(segments, FILTERS_AT_ONCE, bytes_max) else { return Ok(false) };
        self.filters.add(&wanted, self.read(&wanted.keys)?, bytes_max);
        Ok(true)
    }

    /// The deltas of blocks of a series, by height and hash.
    pub(crate) fn deltas(&self, series: u64, blocks: &[(u32, BlockHash)]) -> Result<Vec<Vec<u8>>, StoreError> {
        let key = |(height, hash): &(u32, BlockHash)| {
            Key::Delta(DeltaKey { at: DeltaHeight { series, height: *height }, hash: *hash })
        };
        self.read(&blocks.iter().map(key).collect::<Vec<Key>>())
    }

    /// Pages and the directories of their lists, which are kept.
    fn pages(&self, buckets: &[Bucket]) -> Result<Vec<PageWithLists>, StoreError> {
        let key = |bucket: &Bucket| Key::Page(PageKey { bucket: *bucket, part: 0 });
        let keys: Vec<Key> = buckets.iter().map(key).collect();
        let mut pages = Vec::with_capacity(keys.len());
        for (bucket, content) in buckets.iter().zip(self.read(&keys)?) {
            let decoded = parts::decode(bucket.table, &content);
            let damaged = || Sealed::Value(key(bucket)).damaged("its directory cannot be decoded");
            let (page, directory) = decoded.ok_or_else(damaged)?;
            let directory = Arc::new(directory);
            if *directory != Directory::default() {
                self.keep(*bucket, &directory);
            }
            pages.push((page.to_vec(), directory));
        }
        Ok(pages)
    }

    fn keep(&self, bucket: Bucket, directory: &Arc<Directory>) {
        let mut kept = lock(&self.directories);
        if kept.len() >= DIRECTORIES_MAX {
            kept.clear();
        }
        kept.insert(bucket, Arc::clone(directory));
    }

    /// Where the lists of a page are. Two threads that need the same one may both read it: the page is immutable, so
    /// both get the same directory. Whether it is still kept then does not matter, as others may have taken its place.
    fn directory(&self, bucket: Bucket) -> Result<Arc<Directory>, StoreError> {
        let kept = lock(&self.directories).get(&bucket).cloned();
        match kept {
            Some(directory) => Ok(directory),
            None => Ok(self.pages(&[bucket])?.pop().map(|(_, directory)| directory).unwrap_or_default()),
        }
    }

    fn lists(&self, bucket: Bucket, numbers: &[u32]) -> Result<Vec<Vec<u8>>, StoreError> {
        let directory = self.directory(bucket)?;
        let key = |part: u32| Key::Page(PageKey { bucket, part });
        let missing = || Sealed::Value(key(0)).damaged("it does not have a list that it should have");
        let places: Vec<(u32, Range<u32>)> =
            numbers.iter().map(|number| directory.part_of(*number).ok_or_else(missing)).collect::<Result<_, _>>()?;
        let mut wanted = places.clone();
        wanted.dedup();
        let contents = self.read(&wanted.iter().map(|(part, _)| key(*part)).collect::<Vec<Key>>())?;
        let mut all = Vec::with_capacity(numbers.len());
        for (number, (part, range)) in numbers.iter().zip(&places) {
            let content =
                wanted.iter().zip(&contents).find(|((other, _), _)| other == part).map(|(_, content)| content);
            let pages = content.and_then(|content| parts::pages_of(content, range.len()));
            let page = pages.and_then(|pages| pages.get((number - range.start) as usize).map(|page| page.to_vec()));
            all.push(page.ok_or_else(|| Sealed::Value(key(*part)).damaged("it cannot be decoded"))?);
        }
        Ok(all)
    }
}

pub(crate) fn index_error(error: &StoreError) -> IndexError {
    IndexError::Store { reason: error.to_string() }
}

impl Fetcher {
    /// Like [`RemotePages::read`].
    pub(crate) fn read_pages(&self, wanted: &[RemotePage]) -> Result<Vec<Vec<u8>>, StoreError> {
        let bucket = |page: &RemotePage| Bucket { generation: page.generation, table: page.table, page: page.page };
        let buckets: Vec<Bucket> = wanted.iter().map(bucket).collect();
        Ok(self.pages(&buckets)?.into_iter().map(|(page, _)| page).collect())
    }

    /// Like [`RemotePages::read_lists`].
    pub(crate) fn read_list_pages(
        &self,
        generation: u64,
        page: u32,
        numbers: &[u32],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.lists(Bucket { generation, table: Table::Events, page }, numbers)
    }
}

impl RemotePages for Fetcher {
    fn may_have(&self, page: &RemotePage, key: u64) -> bool {
        self.filters.may_have(page.generation, page.page, key)
    }

    fn read(&self, wanted: &[RemotePage]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.read_pages(wanted).map_err(|error| index_error(&error))
    }

    fn read_lists(&self, generation: u64, page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.read_list_pages(generation, page, numbers).map_err(|error| index_error(&error))
    }
}
