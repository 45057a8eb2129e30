//! [`Coins`]. Input and output as in the head of the crate.
//!
//! All coins lie in memory, as the bytes they have on disk; a checkpoint writes them all to a new file and then replaces the manifest that
//! names it. Cost: a hash table of about 120 bytes a coin; every checkpoint writes every coin. A file is never changed once it is named.

use crate::PARTITIONS;
use crate::coin::{parse_coin, write_coin};
use crate::key::{Secret, partition_of};
use crate::{CheckpointReport, CoinsError, CoinsStats, Key, Settings, Tip};
use lydian_consensus::{Coin, CoinRef};
use lydian_disk::{Disk, DiskErrorKind};
use lydian_primitives::{BlockHash, Height, OutPoint, Txid};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

const MANIFEST: &str = "manifest";
const MAGIC: [u8; 8] = *b"lydcoins";
const VERSION: u32 = 0;
/// Magic, version, secret, whether there is a tip, height, hash, number of the file, its bytes, its checksum, checksum of all before.
const MANIFEST_SIZE: usize = 8 + 4 + 16 + 1 + 4 + 32 + 8 + 8 + 8 + 8;

/// All unspent outputs.
#[derive(Debug)]
pub struct Coins {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    settings: Settings,
    secret: Secret,
    partitions: [Mutex<HashMap<OutPoint, Box<[u8]>>>; PARTITIONS],
    state: Mutex<State>,
    pending_bytes: AtomicU64,
    is_poisoned: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    tip: Option<Tip>,
    file: u64,
    file_bytes: u64,
    file_checksum: u64,
    bytes_written: u64,
    checkpoints: u64,
}

impl Coins {
    /// Opens the store in a directory, or makes one there; `seed` is the secret of a new one. `threads` build the index.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        settings: Settings,
        seed: [u8; 16],
        _threads: usize,
    ) -> Result<Coins, CoinsError> {
        disk.create_dir(dir)?;
        let path = dir.join(MANIFEST);
        let manifest = match lydian_disk::read_whole(disk.as_ref(), &path, 4096) {
            Ok(bytes) => Some(decode_manifest(&path, &bytes)?),
            Err(error) if error.kind == DiskErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let (secret, state) = manifest.unwrap_or((Secret::from_bytes(seed), State::default()));
        let store = Coins {
            disk,
            dir: dir.to_owned(),
            settings,
            secret,
            partitions: std::array::from_fn(|_| Mutex::default()),
            state: Mutex::new(state),
            pending_bytes: AtomicU64::new(0),
            is_poisoned: AtomicBool::new(false),
        };
        if manifest.is_none() {
            store.disk.write_whole(&path, &encode_manifest(secret, &state))?;
        }
        store.remove_others(&state)?;
        if state.tip.is_some() {
            store.load(&state)?;
        }
        Ok(store)
    }

    /// The tip of the last checkpoint; `None` if there was none.
    pub fn tip(&self) -> Option<Tip> {
        lock(&self.state).tip
    }

    pub fn key(&self, outpoint: OutPoint) -> Key {
        self.secret.key(outpoint)
    }

    /// The partition of a key, below [`PARTITIONS`].
    pub fn partition(key: &Key) -> usize {
        partition_of(key.hash)
    }

    /// Looks up keys of one partition; appends one answer for each.
    pub fn get(&self, partition: usize, keys: &[Key], found: &mut Vec<Option<Coin>>) -> Result<(), CoinsError> {
        self.check_poison()?;
        let coins = lock(&self.partitions[partition]);
        for key in keys {
            let coin = coins.get(&key.outpoint).and_then(|bytes| parse_coin(bytes).ok());
            found.push(coin.map(|coin| coin.to_coin()));
        }
        Ok(())
    }

    /// Whether keys of one partition are there; appends one answer for each.
    pub fn contains(&self, partition: usize, keys: &[Key], found: &mut Vec<bool>) -> Result<(), CoinsError> {
        self.check_poison()?;
        let coins = lock(&self.partitions[partition]);
        found.extend(keys.iter().map(|key| coins.contains_key(&key.outpoint)));
        Ok(())
    }

    /// Spends, then creates, coins of one partition. What is spent must be there; what is created replaces what is there.
    pub fn apply<'a>(
        &self,
        partition: usize,
        spends: impl Iterator<Item = Key>,
        creates: impl Iterator<Item = (Key, CoinRef<'a>)>,
    ) -> Result<(), CoinsError> {
        self.check_poison()?;
        let mut coins = lock(&self.partitions[partition]);
        let mut pending = 0;
        for key in spends {
            coins.remove(&key.outpoint).ok_or(CoinsError::Missing { outpoint: key.outpoint })?;
            pending += 8;
        }
        for (key, coin) in creates {
            let mut bytes = Vec::with_capacity(64);
            write_coin(coin, &mut bytes);
            pending += 36 + bytes.len() as u64;
            coins.insert(key.outpoint, bytes.into_boxed_slice());
        }
        self.pending_bytes.fetch_add(pending, Ordering::Relaxed);
        Ok(())
    }

    /// Makes everything applied so far durable, as the state at `tip`. No other call may run meanwhile.
    pub fn checkpoint(&self, tip: Tip, _threads: usize) -> Result<CheckpointReport, CoinsError> {
        self.check_poison()?;
        let result = self.write_checkpoint(tip);
        self.is_poisoned.store(result.is_err(), Ordering::Relaxed);
        result
    }

    /// Whether so much is not yet on disk that a checkpoint is due.
    pub fn needs_checkpoint(&self) -> bool {
        self.pending_bytes.load(Ordering::Relaxed) >= self.settings.pending_bytes_max
    }

    /// The number of coins.
    pub fn len(&self) -> u64 {
        self.partitions.iter().map(|partition| lock(partition).len() as u64).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> u64 {
        self.len() * 120
    }

    pub fn stats(&self) -> CoinsStats {
        let state = lock(&self.state);
        CoinsStats {
            coins: self.len(),
            pending_bytes: self.pending_bytes.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes(),
            disk_bytes: state.file_bytes,
            segments: u64::from(state.tip.is_some()),
            disk_reads: 0,
            bytes_written: state.bytes_written,
            checkpoints: state.checkpoints,
        }
    }

    /// Visits all coins, ordered by txid bytes and output index. No other call but lookups may run meanwhile.
    pub fn export<E: From<CoinsError>>(
        &self,
        visit: &mut dyn FnMut(&OutPoint, &Coin) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut all: Vec<(OutPoint, Coin)> = Vec::new();
        for partition in &self.partitions {
            for (outpoint, bytes) in lock(partition).iter() {
                let coin = parse_coin(bytes).map_err(|_| CoinsError::damaged(&self.dir, 0, "a coin in memory"))?;
                all.push((*outpoint, coin.to_coin()));
            }
        }
        all.sort_unstable_by_key(|(outpoint, _)| *outpoint);
        all.iter().try_for_each(|(outpoint, coin)| visit(outpoint, coin))
    }

    fn check_poison(&self) -> Result<(), CoinsError> {
        if self.is_poisoned.load(Ordering::Relaxed) { Err(CoinsError::Poisoned) } else { Ok(()) }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:08}.coins"))
    }

    fn write_checkpoint(&self, tip: Tip) -> Result<CheckpointReport, CoinsError> {
        let mut state = lock(&self.state);
        let old = *state;
        let mut bytes = Vec::new();
        let mut count = 0;
        for partition in &self.partitions {
            for (outpoint, coin) in lock(partition).iter() {
                bytes.extend_from_slice(&outpoint.to_bytes());
                bytes.extend_from_slice(coin);
                count += 1;
            }
        }
        let mut next = State { tip: Some(tip), file: old.file + 1, file_bytes: bytes.len() as u64, ..old };
        next.file_checksum = xxh3_64(&bytes);
        let mut file = self.disk.append(&self.file(next.file))?;
        file.write(&bytes)?;
        file.sync()?;
        self.disk.write_whole(&self.dir.join(MANIFEST), &encode_manifest(self.secret, &next))?;
        let bytes_written = next.file_bytes + MANIFEST_SIZE as u64;
        next.bytes_written += bytes_written;
        next.checkpoints += 1;
        *state = next;
        self.pending_bytes.store(0, Ordering::Relaxed);
        // A file that cannot be removed is removed when the store is opened.
        let _ = self.disk.remove(&self.file(old.file));
        Ok(CheckpointReport { bytes_written, coins_written: count, coins_rewritten: 0 })
    }

    /// Removes what a checkpoint that did not come to its end left, and what one could not remove.
    fn remove_others(&self, state: &State) -> Result<(), CoinsError> {
        let named = [self.dir.join(MANIFEST), self.file(state.file)];
        for (path, _) in self.disk.list(&self.dir)? {
            if !named.contains(&path) {
                self.disk.remove(&path)?;
            }
        }
        Ok(())
    }

    fn load(&self, state: &State) -> Result<(), CoinsError> {
        let path = self.file(state.file);
        let bytes = lydian_disk::read_whole(self.disk.as_ref(), &path, u64::MAX)?;
        if bytes.len() as u64 != state.file_bytes || xxh3_64(&bytes) != state.file_checksum {
            return Err(CoinsError::damaged(&path, 0, "the checksum of the coins differs"));
        }
        let mut rest = &bytes[..];
        while let Some((outpoint, tail)) = rest.split_first_chunk::<36>() {
            let offset = (bytes.len() - rest.len()) as u64;
            let coin =
                parse_coin(tail).map_err(|_| CoinsError::damaged(&path, offset, "a coin that cannot be read"))?;
            let key = self.key(outpoint_of(outpoint));
            let (coin, tail) = tail.split_at(coin.size);
            lock(&self.partitions[Coins::partition(&key)]).insert(key.outpoint, coin.into());
            rest = tail;
        }
        if rest.is_empty() { Ok(()) } else { Err(CoinsError::damaged(&path, state.file_bytes, "bytes left over")) }
    }
}

fn outpoint_of(bytes: &[u8; 36]) -> OutPoint {
    let (txid, vout) = bytes.split_at(32);
    let mut outpoint = OutPoint { txid: Txid::ZERO, vout: 0 };
    outpoint.txid.0.copy_from_slice(txid);
    outpoint.vout = u32::from_le_bytes([vout[0], vout[1], vout[2], vout[3]]);
    outpoint
}

fn encode_manifest(secret: Secret, state: &State) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&secret.to_bytes());
    out.push(u8::from(state.tip.is_some()));
    let tip = state.tip.unwrap_or(Tip { height: Height(0), hash: BlockHash::ZERO });
    out.extend_from_slice(&tip.height.0.to_le_bytes());
    out.extend_from_slice(&tip.hash.0);
    for number in [state.file, state.file_bytes, state.file_checksum] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
    out
}

fn decode_manifest(path: &Path, bytes: &[u8]) -> Result<(Secret, State), CoinsError> {
    let Some((magic, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(CoinsError::NotAManifest { path: path.to_owned() });
    };
    if *magic != MAGIC {
        return Err(CoinsError::NotAManifest { path: path.to_owned() });
    }
    let damaged = CoinsError::damaged(path, 0, "the manifest is not whole");
    let mut reader = lydian_primitives::Reader::new(rest);
    let version = reader.u32().map_err(|_| damaged.clone())?;
    if version != VERSION {
        return Err(CoinsError::NewerFormat { path: path.to_owned(), version, known: VERSION });
    }
    let Some((content, checksum)) = bytes.split_last_chunk::<8>() else { return Err(damaged) };
    if bytes.len() != MANIFEST_SIZE || xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err(damaged);
    }
    let mut parse = || {
        let secret = Secret::from_bytes(reader.array()?);
        let has_tip = reader.u8()? == 1;
        let tip = Tip { height: Height(reader.u32()?), hash: BlockHash(reader.array()?) };
        let mut number = || reader.array().map(u64::from_le_bytes);
        let (file, file_bytes, file_checksum) = (number()?, number()?, number()?);
        let state = State { tip: has_tip.then_some(tip), file, file_bytes, file_checksum, ..State::default() };
        Ok::<_, lydian_primitives::ParseError>((secret, state))
    };
    parse().map_err(|_| damaged)
}

/// A partition whose user panicked is as good as before: what is in memory is thrown away with the process.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
