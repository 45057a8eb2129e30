//! Compares the simulated disk with the real one: the same calls return the same results. After a power loss, compares
//! what is left on the simulated disk with a small independent model.

use lydian_disk::{AppendFile, Disk, DiskErrorKind, Lock, PathKind, RealDisk, SimDisk, read_whole};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
enum Call {
    CreateDir(usize),
    WriteWhole(usize, Vec<u8>),
    /// Opens a writer, which replaces the previous one.
    Append(usize),
    Write(Vec<u8>),
    Sync,
    Close,
    /// Opens a file as one of fixed size, writes over some bytes, syncs.
    Overwrite(usize, u64, Vec<u8>),
    Truncate(usize, u64),
    Remove(usize),
    SyncDir(usize),
    Lock(usize),
    Unlock,
    Look(usize),
}

const NAMES: [&str; 7] = ["a", "a/b", "a/b/c", "f", "f/g", "a/f", "a/b/f"];

/// The size of files of fixed size; overwrites end at or before it.
const FIXED_SIZE: u64 = 12;

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let name = || 0..NAMES.len();
    let bytes = || prop::collection::vec(any::<u8>(), 0..9);
    let call = prop_oneof![
        name().prop_map(Call::CreateDir),
        (name(), bytes()).prop_map(|(name, bytes)| Call::WriteWhole(name, bytes)),
        name().prop_map(Call::Append),
        bytes().prop_map(Call::Write),
        bytes().prop_map(Call::Write),
        Just(Call::Sync),
        Just(Call::Close),
        (name(), 0..5u64, bytes()).prop_map(|(name, offset, bytes)| Call::Overwrite(name, offset, bytes)),
        (name(), 0..12u64).prop_map(|(name, size)| Call::Truncate(name, size)),
        name().prop_map(Call::Remove),
        name().prop_map(Call::SyncDir),
        name().prop_map(Call::Lock),
        Just(Call::Unlock),
        name().prop_map(Call::Look),
    ];
    prop::collection::vec(call, 0..40)
}

/// A disk, and the writer and lock that a caller holds on it.
struct Caller<'a> {
    disk: &'a dyn Disk,
    root: PathBuf,
    writer: Option<(usize, Box<dyn AppendFile>)>,
    lock: Option<Box<dyn Lock>>,
}

impl Caller<'_> {
    fn call(&mut self, call: &Call) -> Result<Vec<u8>, DiskErrorKind> {
        let path = |name: &usize| self.root.join(NAMES[*name]);
        let done = match call {
            Call::CreateDir(name) => self.disk.create_dir(&path(name)),
            Call::WriteWhole(name, bytes) => self.disk.write_whole(&path(name), bytes),
            Call::Append(name) => {
                self.writer = None;
                self.disk.append_file(&path(name)).map(|writer| self.writer = Some((*name, writer)))
            }
            Call::Write(bytes) => self.writer.as_mut().map_or(Ok(()), |(_, writer)| writer.write(bytes)),
            Call::Sync => self.writer.as_mut().map_or(Ok(()), |(_, writer)| writer.sync()),
            Call::Close => {
                self.writer = None;
                Ok(())
            }
            Call::Overwrite(name, offset, bytes) => {
                self.writer = None;
                self.disk
                    .fixed_file(&path(name), FIXED_SIZE)
                    .and_then(|file| file.write_at(*offset, bytes).and_then(|()| file.sync()))
            }
            Call::Truncate(name, size) => {
                self.writer = None;
                self.disk.truncate_file(&path(name), *size)
            }
            Call::Remove(name) => self.disk.remove_file(&path(name)),
            Call::SyncDir(name) => self.disk.sync_dir(&path(name)),
            Call::Lock(name) => {
                let path = path(name);
                self.disk.lock(&path).map(|lock| self.lock = Some(lock))
            }
            Call::Unlock => {
                self.lock = None;
                Ok(())
            }
            Call::Look(name) => return read_whole(self.disk, &path(name), 1000).map_err(|error| error.kind),
        };
        let size = self.writer.as_ref().map_or(0, |(_, writer)| writer.size());
        done.map(|()| size.to_le_bytes().to_vec()).map_err(|error| error.kind)
    }

    fn everything(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        let mut next = vec![self.root.clone()];
        while let Some(dir) = next.pop() {
            for (path, kind) in self.disk.list(&dir).unwrap() {
                let name = path.strip_prefix(&self.root).unwrap().to_owned();
                assert_eq!(self.disk.kind(&path).unwrap(), kind);
                if kind == PathKind::Directory {
                    next.push(path);
                    found.push((name, None));
                } else {
                    found.push((name, Some(read_whole(self.disk, &path, 1000).unwrap())));
                }
            }
        }
        found
    }
}

/// The allowed content of a disk after a power loss: for each name, the files that may be found. `None`: no file.
#[derive(Default)]
struct Model {
    /// The bytes of each file, by number, and how many of them are synced.
    files: Vec<(Vec<u8>, usize)>,
    /// The file of each name when its directory was last synced, and the files it named since; always at least one.
    names: BTreeMap<usize, Vec<Option<usize>>>,
    writer: Option<usize>,
}

impl Model {
    fn current(&mut self, name: usize) -> &mut Vec<Option<usize>> {
        self.names.entry(name).or_insert_with(|| vec![None])
    }

    fn settle(&mut self, dir: &str) {
        for (name, values) in &mut self.names {
            if Path::new(NAMES[*name]).parent() == Some(Path::new(dir)) {
                values.drain(..values.len() - 1);
            }
        }
    }

    fn parent(name: usize) -> &'static str {
        Path::new(NAMES[name]).parent().unwrap().to_str().unwrap()
    }

    /// The name has a file now, durably.
    fn open(&mut self, name: usize) {
        if self.current(name).last() == Some(&None) {
            self.files.push((Vec::new(), 0));
            let file = self.files.len() - 1;
            self.current(name).push(Some(file));
        }
        self.settle(Model::parent(name));
    }

    /// Records a call that succeeded.
    fn note(&mut self, call: &Call) {
        match call {
            Call::WriteWhole(name, bytes) => {
                self.files.push((bytes.clone(), bytes.len()));
                let file = self.files.len() - 1;
                self.current(*name).push(Some(file));
                self.settle(Model::parent(*name));
            }
            Call::Append(name) => {
                self.open(*name);
                self.writer = *self.current(*name).last().unwrap();
            }
            Call::Write(bytes) => self.writer.into_iter().for_each(|file| self.files[file].0.extend(bytes)),
            Call::Sync => self.writer.into_iter().for_each(|file| self.files[file].1 = self.files[file].0.len()),
            Call::Close => self.writer = None,
            Call::Overwrite(name, offset, new) => {
                self.open(*name);
                let file = self.current(*name).last().copied().flatten().unwrap();
                let (bytes, synced) = &mut self.files[file];
                bytes.resize(bytes.len().max(FIXED_SIZE.try_into().unwrap()), 0);
                let start = usize::try_from(*offset).unwrap();
                bytes[start..start + new.len()].copy_from_slice(new);
                *synced = bytes.len();
                self.writer = None;
            }
            Call::Truncate(name, size) => {
                let file = self.current(*name).last().copied().flatten().unwrap();
                let size = usize::try_from(*size).unwrap();
                self.files[file].0.truncate(size);
                self.files[file].1 = size;
                self.writer = None;
            }
            Call::Remove(name) => self.current(*name).push(None),
            Call::SyncDir(name) => self.settle(NAMES[*name]),
            Call::Lock(name) => {
                if self.current(*name).last() == Some(&None) {
                    self.files.push((Vec::new(), 0));
                    let file = self.files.len() - 1;
                    self.current(*name).push(Some(file));
                }
            }
            Call::CreateDir(_) | Call::Unlock | Call::Look(_) => {}
        }
    }

    fn allows(&self, name: usize, found: Option<&[u8]>) -> bool {
        let candidates = self.names.get(&name).map_or(&[None][..], Vec::as_slice);
        candidates.iter().any(|candidate| match (candidate, found) {
            (None, None) => true,
            (Some(file), Some(found)) => {
                let (bytes, synced) = &self.files[*file];
                found.len() <= bytes.len() && found.starts_with(&bytes[..*synced])
            }
            _ => false,
        })
    }
}

fn scratch() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("twins");
    let _ = std::fs::remove_dir_all(&path);
    RealDisk.create_dir(&path).unwrap();
    path
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_calls_get_the_same_answers(calls in calls()) {
        let sim = SimDisk::new(0);
        let mut caller = Caller { disk: &sim, root: PathBuf::new(), writer: None, lock: None };
        let mut real = Caller { disk: &RealDisk, root: scratch(), writer: None, lock: None };
        for call in &calls {
            prop_assert_eq!(real.call(call), caller.call(call), "{:?}", call);
            prop_assert_eq!(real.everything(), caller.everything(), "{:?}", call);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn power_loss_takes_only_what_was_not_synced(calls in calls(), seed: u64) {
        let sim = SimDisk::new(0);
        let mut caller = Caller { disk: &sim, root: PathBuf::new(), writer: None, lock: None };
        let mut model = Model::default();
        for call in &calls {
            let is_same = matches!(call, Call::Append(_) | Call::Overwrite(..) | Call::Truncate(..));
            let result = caller.call(call);
            if is_same {
                model.writer = None;
            }
            if result.is_ok() {
                model.note(call);
            }
            let after = sim.power_loss(seed);
            for (name, path) in NAMES.iter().enumerate() {
                let found = match read_whole(&after, Path::new(path), 1000) {
                    Ok(bytes) => Some(bytes),
                    Err(error) if error.kind == DiskErrorKind::IsADirectory => continue,
                    Err(_) => None,
                };
                prop_assert!(model.allows(name, found.as_deref()), "{}: {:?} after {:?}", path, found, call);
            }
        }
    }
}
