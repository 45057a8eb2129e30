//! [`Fetcher`]: pages and deltas from the store, checked.
//!
//! Input: names. Output: what was written under them, or an error. One replica is asked first; what it does not have,
//! or has damaged, is read from a quorum. A value that is missing there too is an error: the commit row names it.
//!
//! Cost: one round for pages. One more for lists, whose place is kept for [`DIRECTORIES_MAX`] pages.

use crate::filter::Filters;
use crate::parts::{self, Directory};
use crate::seal::Sealed;
use crate::store::{Bucket, DeltaHeight, DeltaKey, Key, PageKey, Replicas, Store, StoreError};
use lydian_index::{IndexError, RemotePage, RemotePages, RemoteSegment, Table};
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Pages whose lists' places are kept: of a few bytes each.
const DIRECTORIES_MAX: usize = 4_096;

/// Filters that are read at the same time: about 2 MB.
const FILTERS_AT_ONCE: usize = 64;

/// Reads the store for snapshots.
#[derive(Debug)]
pub(crate) struct Fetcher {
    store: Arc<dyn Store>,
    directories: Mutex<HashMap<Bucket, Arc<Directory>>>,
    pub(crate) filters: Filters,
}

impl Fetcher {
    pub(crate) fn new(store: Arc<dyn Store>) -> Fetcher {
        Fetcher { store, directories: Mutex::default(), filters: Filters::default() }
    }

    /// The contents of values that the commit row names.
    fn read(&self, keys: &[Key]) -> Result<Vec<Vec<u8>>, StoreError> {
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
        let Some(wanted) = self.filters.next(segments, FILTERS_AT_ONCE) else { return Ok(false) };
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

    /// Pages without the directories of their lists, which are kept.
    fn pages(&self, buckets: &[Bucket]) -> Result<Vec<Vec<u8>>, StoreError> {
        let key = |bucket: &Bucket| Key::Page(PageKey { bucket: *bucket, part: 0 });
        let keys: Vec<Key> = buckets.iter().map(key).collect();
        let mut pages = Vec::with_capacity(keys.len());
        for (bucket, content) in buckets.iter().zip(self.read(&keys)?) {
            let decoded = parts::decode(bucket.table, &content);
            let damaged = || Sealed::Value(key(bucket)).damaged("its directory cannot be decoded");
            let (page, directory) = decoded.ok_or_else(damaged)?;
            if directory != Directory::default() {
                self.keep(*bucket, directory);
            }
            pages.push(page.to_vec());
        }
        Ok(pages)
    }

    fn keep(&self, bucket: Bucket, directory: Directory) {
        let mut kept = lock(&self.directories);
        if kept.len() >= DIRECTORIES_MAX {
            kept.clear();
        }
        kept.insert(bucket, Arc::new(directory));
    }

    /// Where the lists of a page are.
    fn directory(&self, bucket: Bucket) -> Result<Arc<Directory>, StoreError> {
        let kept = || lock(&self.directories).get(&bucket).cloned();
        if let Some(directory) = kept() {
            return Ok(directory);
        }
        self.pages(&[bucket])?;
        Ok(kept().unwrap_or_default())
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

impl RemotePages for Fetcher {
    fn may_have(&self, page: &RemotePage, key: u64) -> bool {
        self.filters.may_have(page.generation, page.page, key)
    }

    fn read(&self, wanted: &[RemotePage]) -> Result<Vec<Vec<u8>>, IndexError> {
        let bucket = |page: &RemotePage| Bucket { generation: page.generation, table: page.table, page: page.page };
        let buckets: Vec<Bucket> = wanted.iter().map(bucket).collect();
        self.pages(&buckets).map_err(|error| index_error(&error))
    }

    fn read_lists(&self, generation: u64, page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        let bucket = Bucket { generation, table: Table::Events, page };
        self.lists(bucket, numbers).map_err(|error| index_error(&error))
    }
}
