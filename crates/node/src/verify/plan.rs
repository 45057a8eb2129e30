//! Turns paths into work. Input: the paths of the command line. Output: sets of block files, one per directory and
//! chain; single blocks with their spent outputs; and a sentence for every path that is neither.
//!
//! Reads only names, and the first magic of block files. Unrelated files found by walking are ignored; a path given by
//! name never is.

use crate::cli::VerifyOptions;
use crate::limits::{WALK_DEPTH_MAX, WALK_ENTRIES_MAX};
use lydian_chain::{BlockFile, BlockFiles, ReadError, find_block_files, is_block_file_name};
use lydian_consensus::{Chain, Params};
use lydian_disk::{Disk, PathKind};
use lydian_primitives::BlockHash;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The work to do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) sets: Vec<BlockSet>,
    pub(super) singles: Vec<Single>,
    pub(super) unreadable: Vec<String>,
}

/// Block files that belong together.
#[derive(Debug)]
pub(super) struct BlockSet {
    pub(super) chain: Chain,
    pub(super) files: Vec<BlockFile>,
    pub(super) is_expected_invalid: bool,
}

/// One block in a file of its own.
#[derive(Debug)]
pub(super) struct Single {
    pub(super) path: PathBuf,
    pub(super) prevouts: Option<PathBuf>,
    pub(super) name: BlockName,
    pub(super) is_expected_invalid: bool,
}

/// The properties of a block that its file name gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockName {
    pub(super) chain: Option<Chain>,
    pub(super) height: Option<u32>,
    pub(super) hash: Option<BlockHash>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    Blocks,
    Single,
    Prevouts,
    /// Ignored if found by walking; if given by name, treated as block files if a magic is found.
    Unknown,
}

pub(super) fn plan(disk: &dyn Disk, options: &VerifyOptions) -> Plan {
    let mut planner = Planner {
        disk,
        options,
        plan: Plan::default(),
        groups: Vec::new(),
        singles: Vec::new(),
        prevouts: Vec::new(),
        seen: BTreeSet::new(),
    };
    for path in options.paths.iter().chain(&options.expect_invalid) {
        planner.add(path);
    }
    planner.finish()
}

struct Planner<'a> {
    disk: &'a dyn Disk,
    options: &'a VerifyOptions,
    plan: Plan,
    /// Block files by origin: all that were given by name together, each directory by itself.
    groups: Vec<(Option<PathBuf>, Vec<BlockFile>)>,
    singles: Vec<PathBuf>,
    prevouts: Vec<PathBuf>,
    /// Paths visited already, so that a path below another is verified once.
    seen: BTreeSet<PathBuf>,
}

impl Planner<'_> {
    /// Adds a path of the command line.
    fn add(&mut self, path: &Path) {
        match self.disk.kind(path) {
            Err(error) => self.plan.unreadable.push(error.to_string()),
            Ok(PathKind::Directory) => {
                let before = self.plan.unreadable.len();
                if !self.walk(path, 0) && self.plan.unreadable.len() == before {
                    let sentence = "there is nothing to verify here (block files, X.block, X.bin)";
                    self.plan.unreadable.push(format!("{}: {sentence}", path.display()));
                }
            }
            Ok(PathKind::File) if !self.seen.insert(path.to_owned()) => {}
            Ok(PathKind::File) => match kind_of(path) {
                FileKind::Blocks | FileKind::Unknown => match BlockFile::at(self.disk, path) {
                    Ok(file) => self.add_block_file(None, file),
                    Err(error) => self.plan.unreadable.push(error.to_string()),
                },
                FileKind::Single => self.singles.push(path.to_owned()),
                FileKind::Prevouts => self.prevouts.push(path.to_owned()),
            },
        }
    }

    /// Walks a directory; returns whether it contains anything to verify.
    fn walk(&mut self, path: &Path, depth: usize) -> bool {
        let entries = match self.disk.list(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.plan.unreadable.push(error.to_string());
                return false;
            }
        };
        let mut has_found = false;
        if entries.iter().any(|(path, kind)| *kind == PathKind::File && is_block_file_name(path)) {
            has_found = true;
            match find_block_files(self.disk, path) {
                Ok(files) => {
                    for file in files {
                        if self.seen.insert(file.path.clone()) {
                            self.add_block_file(Some(path), file);
                        }
                    }
                }
                Err(error) => self.plan.unreadable.push(error.to_string()),
            }
        }
        for (entry, kind) in entries {
            if self.seen.len() >= WALK_ENTRIES_MAX {
                let sentence = format!("more than {WALK_ENTRIES_MAX} files and directories; the rest was left out");
                self.plan.unreadable.push(format!("{}: {sentence}", path.display()));
                break;
            }
            if is_block_file_name(&entry) || !self.seen.insert(entry.clone()) {
                // Block files were added above, in Core's order.
                has_found |= kind == PathKind::File;
                continue;
            }
            has_found |= match (kind, kind_of(&entry)) {
                (PathKind::Directory, _) if depth < WALK_DEPTH_MAX => self.walk(&entry, depth + 1),
                (PathKind::Directory, _) => {
                    let sentence = format!("this is more than {WALK_DEPTH_MAX} directories deep and was left out");
                    self.plan.unreadable.push(format!("{}: {sentence}", entry.display()));
                    true
                }
                (PathKind::File, FileKind::Single) => {
                    self.singles.push(entry);
                    true
                }
                (PathKind::File, FileKind::Prevouts) => {
                    self.prevouts.push(entry);
                    true
                }
                (PathKind::File, _) => false,
            };
        }
        has_found
    }

    fn add_block_file(&mut self, directory: Option<&Path>, file: BlockFile) {
        match self.groups.iter_mut().find(|(group, _)| group.as_deref() == directory) {
            Some((_, files)) => files.push(file),
            None => self.groups.push((directory.map(Path::to_owned), vec![file])),
        }
    }

    fn finish(mut self) -> Plan {
        for (_, files) in std::mem::take(&mut self.groups) {
            self.split_by_chain(files);
        }
        self.pair();
        self.plan
    }

    /// Splits a group of files by chain into sets. A file without any magic joins the chain of the file before it: Core
    /// allocates files before it writes to them.
    fn split_by_chain(&mut self, files: Vec<BlockFile>) {
        let mut sets: Vec<BlockSet> = Vec::new();
        let mut last = None;
        for file in files {
            let found = match self.options.chain {
                Some(chain) => Ok(chain),
                None => self.detect(&file),
            };
            let chain = match (found, last) {
                (Ok(chain), _) => chain,
                (Err(ReadError::NoMagic { .. }), Some(chain)) => chain,
                (Err(error), _) => {
                    self.plan.unreadable.push(error.to_string());
                    continue;
                }
            };
            last = Some(chain);
            let is_expected_invalid = self.is_expected_invalid(&file.path);
            let belongs = |set: &&mut BlockSet| set.chain == chain && set.is_expected_invalid == is_expected_invalid;
            match sets.iter_mut().find(belongs) {
                Some(set) => set.files.push(file),
                None => sets.push(BlockSet { chain, files: vec![file], is_expected_invalid }),
            }
        }
        self.plan.sets.extend(sets);
    }

    fn detect(&self, file: &BlockFile) -> Result<Chain, ReadError> {
        let magic = BlockFiles::new(self.disk, vec![file.clone()]).detect_magic(0)?;
        // The known magics are those of the chains; a test compares them.
        Ok(Chain::ALL.into_iter().find(|chain| Params::new(*chain).magic == magic).unwrap_or(Chain::Main))
    }

    /// Joins blocks and spent outputs of the same name: first those in the same directory, then those from elsewhere.
    fn pair(&mut self) {
        let mut prevouts = std::mem::take(&mut self.prevouts);
        for path in std::mem::take(&mut self.singles) {
            let (stem, _) = split_name(&path);
            let fits = |other: &PathBuf| split_name(other).0 == stem;
            let beside = prevouts.iter().position(|other| fits(other) && other.parent() == path.parent());
            let at = beside.or_else(|| prevouts.iter().position(fits));
            let found = at.map(|at| prevouts.remove(at)).or_else(|| self.prevouts_beside(&path));
            let name = parse_name(&stem);
            let is_expected_invalid = self.is_expected_invalid(&path);
            self.plan.singles.push(Single { path, prevouts: found, name, is_expected_invalid });
        }
        // A single block and a single file of spent outputs belong together, whatever their names.
        if let ([single], [_]) = (&mut self.plan.singles[..], &prevouts[..])
            && single.prevouts.is_none()
        {
            single.prevouts = prevouts.pop();
        }
        for path in prevouts {
            self.plan.unreadable.push(format!("{}: the block that spends these outputs is missing", path.display()));
        }
    }

    fn prevouts_beside(&self, block: &Path) -> Option<PathBuf> {
        let (stem, _) = split_name(block);
        let candidates = ["prevouts", "prevouts.zst"].map(|ending| block.with_file_name(format!("{stem}.{ending}")));
        candidates.into_iter().find(|path| self.disk.kind(path) == Ok(PathKind::File))
    }

    fn is_expected_invalid(&self, path: &Path) -> bool {
        self.options.expect_invalid.iter().any(|expected| path.starts_with(expected))
    }
}

/// A file name without `.zst` and its last extension, and that extension.
fn split_name(path: &Path) -> (String, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    (stem.to_owned(), ending.to_owned())
}

fn kind_of(path: &Path) -> FileKind {
    if is_block_file_name(path) {
        return FileKind::Blocks;
    }
    match split_name(path).1.as_str() {
        "block" | "bin" => FileKind::Single,
        "prevouts" => FileKind::Prevouts,
        _ => FileKind::Unknown,
    }
}

/// Parses `CHAIN-HEIGHT-HASH`, with or without the chain.
fn parse_name(stem: &str) -> BlockName {
    let mut parts: Vec<&str> = stem.split('-').collect();
    let chain = match parts.first().copied() {
        Some("main") => Some(Chain::Main),
        Some("test" | "test3" | "testnet3") => Some(Chain::Test),
        Some("test4" | "testnet4") => Some(Chain::Testnet4),
        Some("signet") => Some(Chain::Signet),
        Some("regtest") => Some(Chain::Regtest),
        _ => None,
    };
    if chain.is_some() {
        parts.remove(0);
    }
    match parts[..] {
        [height, hash] => BlockName { chain, height: height.parse().ok(), hash: hash.parse().ok() },
        _ => BlockName { chain, ..BlockName::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chain::MAGICS;
    use lydian_disk::{AppendFile, DiskError, DiskErrorKind, FixedFile, Lock, ReadFile};

    #[test]
    fn names_contain_chain_height_and_hash() {
        let hash = "00000000152340ca42227603908689183edc47355204e7aca59383b0aaac1fd8";
        let full = parse_name(&format!("test3-057043-{hash}"));
        assert_eq!((full.chain, full.height, full.hash), (Some(Chain::Test), Some(57_043), hash.parse().ok()));
        assert_eq!(parse_name(&format!("74638-{hash}")).height, Some(74_638));
        assert_eq!(
            parse_name(&format!("unknown-{hash}")),
            BlockName { hash: hash.parse().ok(), ..BlockName::default() }
        );
        assert_eq!(parse_name("genesis"), BlockName::default());
        let kinds = ["a.block.zst", "a.bin", "a.prevouts", "a.json", "blk00000.dat", "x.blk.zst"]
            .map(|name| kind_of(Path::new(name)));
        use FileKind::{Blocks, Prevouts, Single, Unknown};
        assert_eq!(kinds, [Single, Single, Prevouts, Unknown, Blocks, Blocks]);
    }

    /// A disk of names without content: each directory has `count` files, and another directory `s` down to `depth`.
    #[derive(Debug)]
    struct Names {
        count: usize,
        depth: usize,
    }

    impl Disk for Names {
        fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
            let is_file = path.extension().is_some();
            Ok(if is_file { PathKind::File } else { PathKind::Directory })
        }
        fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
            let mut entries: Vec<_> =
                (0..self.count).map(|i| (path.join(format!("{i}.bin")), PathKind::File)).collect();
            if path.components().count() <= self.depth {
                entries.push((path.join("s"), PathKind::Directory));
            }
            Ok(entries)
        }
        fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
            Err(DiskError { path: path.to_owned(), offset: None, kind: DiskErrorKind::NotFound })
        }
        fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
            self.open(path).map(|_| ())
        }
        fn write_whole(&self, path: &Path, _: &[u8]) -> Result<(), DiskError> {
            self.open(path).map(|_| ())
        }
        fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
            Err(DiskError { path: path.to_owned(), offset: None, kind: DiskErrorKind::NotFound })
        }
        fn fixed_file(&self, path: &Path, _: u64) -> Result<Box<dyn FixedFile>, DiskError> {
            Err(DiskError { path: path.to_owned(), offset: None, kind: DiskErrorKind::NotFound })
        }
        fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
            self.open(path).map(|_| ())
        }
        fn truncate_file(&self, path: &Path, _: u64) -> Result<(), DiskError> {
            self.open(path).map(|_| ())
        }
        fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
            self.open(path).map(|_| ())
        }
        fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
            Err(DiskError { path: path.to_owned(), offset: None, kind: DiskErrorKind::NotFound })
        }
        fn free_bytes(&self, _: &Path) -> Result<u64, DiskError> {
            Ok(0)
        }
    }

    fn plan_of(count: usize, depth: usize) -> Plan {
        let options = VerifyOptions { paths: vec!["d".into()], ..VerifyOptions::default() };
        plan(&Names { count, depth }, &options)
    }

    /// limit: WALK_DEPTH_MAX at
    /// limit: WALK_DEPTH_MAX above
    #[test]
    fn walks_end_at_a_depth() {
        let at = plan_of(1, WALK_DEPTH_MAX);
        assert_eq!((at.singles.len(), at.unreadable.len()), (WALK_DEPTH_MAX + 1, 0));
        let above = plan_of(1, WALK_DEPTH_MAX + 1);
        assert_eq!(above.singles.len(), WALK_DEPTH_MAX + 1);
        assert!(above.unreadable[0].contains("16 directories deep"), "{:?}", above.unreadable);
    }

    /// limit: WALK_ENTRIES_MAX at
    /// limit: WALK_ENTRIES_MAX above
    #[test]
    fn walks_end_after_a_number_of_files() {
        let at = plan_of(WALK_ENTRIES_MAX, 0);
        assert_eq!((at.singles.len(), at.unreadable.len()), (WALK_ENTRIES_MAX, 0));
        let above = plan_of(WALK_ENTRIES_MAX + 1, 0);
        assert_eq!((above.singles.len(), above.unreadable.len()), (WALK_ENTRIES_MAX, 1));
    }

    #[test]
    fn every_known_magic_is_that_of_its_chain() {
        assert_eq!(MAGICS.len(), Chain::ALL.len());
        for known in MAGICS {
            assert_eq!(Params::new(known.name.parse().unwrap()).magic, known.magic, "{}", known.name);
        }
    }
}
