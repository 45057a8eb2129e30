//! [`Facts`]: what the checks look at. Input: the words of the command line and the host. Output: the settings as far
//! as they can be read, the process that holds the data directory, the last status, the answers of the running node,
//! and the limits of this process as they were at its start. Gathered once; changes nothing.

use super::procfs;
use super::rpc::{Answers, ask};
use crate::clock::now_nanos;
use crate::host::Host;
use crate::page::folder_sizes;
use crate::process::memory_bytes;
use crate::settings::{self, Settings, Words};
use crate::status::Status;
use lydian_disk::probe::{Holder, lock_holder};
use lydian_disk::{Disk, PathKind};
use lydian_options::Notice;
use lydian_stdx::SplitMix64;
use rustix::process::{Resource, getrlimit};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The process that holds the data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holding {
    None,
    /// `None` if the process belongs to another user, so that its number is not known.
    Process(Option<u32>),
}

/// What the checks look at.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// `None` if no data directory follows from them. Without the files if these cannot be used.
    pub(crate) settings: Option<Settings>,
    /// Why the node would not start with these settings.
    pub(crate) refusal: Option<String>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) holding: Holding,
    /// `None` if no node runs; otherwise its answers, or why there are none.
    pub(crate) answers: Option<Result<Answers, String>>,
    pub(crate) status: Option<Status>,
    /// The hard limit on open files; `u64::MAX` if there is none.
    pub(crate) files_max: u64,
    pub(crate) memory_bytes: Option<u64>,
    folders: OnceCell<BTreeMap<String, u64>>,
    random: RefCell<SplitMix64>,
}

impl<'a> Facts<'a> {
    pub(crate) fn gather(words: &Words, host: &Host, disk: &'a dyn Disk) -> Facts<'a> {
        let files_max = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        // The limit on open files is a check of its own, and must not hide the others.
        let host = Host { descriptors: |wanted| wanted, ..host.clone() };
        let mut notices = words.notices.clone();
        let (settings, refusal) = match settings::load(words, &host, disk, &mut notices) {
            Ok(settings) => (Some(settings), None),
            Err(error) => (without_files(words, &host, disk), Some(error.to_string())),
        };
        let holding = settings.as_ref().map_or(Holding::None, |settings| holding(&settings.datadir));
        let is_running = holding != Holding::None;
        let answers = settings.as_ref().filter(|_| is_running).map(|settings| ask(settings, disk));
        let status = settings.as_ref().and_then(|settings| Status::read(disk, &settings.datadir).ok());
        Facts {
            disk,
            settings,
            refusal,
            notices,
            holding,
            answers,
            status,
            files_max,
            memory_bytes: memory_bytes(),
            folders: OnceCell::new(),
            random: RefCell::new(SplitMix64::new(now_nanos() ^ u64::from(std::process::id()) << 32)),
        }
    }

    /// The process to look at: the node, or this one if none runs.
    pub(crate) fn process(&self) -> u32 {
        self.node_process().unwrap_or_else(std::process::id)
    }

    pub(crate) fn node_process(&self) -> Option<u32> {
        match self.holding {
            Holding::Process(process) => process,
            Holding::None => None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.holding != Holding::None
    }

    /// Whether there is a data directory.
    pub(crate) fn has_directory(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| self.is_directory(&settings.datadir))
    }

    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        self.disk.kind(path) == Ok(PathKind::Directory)
    }

    /// Bytes of each folder of the data directory.
    pub(crate) fn folders(&self, settings: &Settings) -> &BTreeMap<String, u64> {
        self.folders.get_or_init(|| folder_sizes(&settings.datadir, &settings.blocks))
    }

    /// A random number below this one, which is not 0.
    pub(crate) fn below(&self, count: u64) -> u64 {
        self.random.borrow_mut().next_u64() % count
    }

    /// The answers of the running node, or the words for a check that needs them.
    pub(crate) fn answers(&self) -> Result<&Answers, String> {
        match &self.answers {
            None => Err("no node runs".to_owned()),
            Some(Err(words)) => Err(words.clone()),
            Some(Ok(answers)) => Ok(answers),
        }
    }
}

/// The settings of the command line alone.
fn without_files(words: &Words, host: &Host, disk: &dyn Disk) -> Option<Settings> {
    let mut words = words.clone();
    let mut notices = Vec::new();
    for argument in ["-noconf", "-nosettings"] {
        words.sources.add_argument(argument, &mut notices).ok()?;
    }
    settings::load(&words, host, disk, &mut notices).ok()
}

/// The holder of the lock of a data directory; the lock is not taken.
fn holding(datadir: &Path) -> Holding {
    let path = datadir.join(".lock");
    match lock_holder(&path) {
        Ok(Holder::Process(process)) => Holding::Process(Some(process)),
        Ok(Holder::Unnamed) => {
            let whole = path.canonicalize().unwrap_or(path);
            Holding::Process(procfs::process_with(&whole))
        }
        // One that cannot be read is reported by the check of permissions.
        Ok(Holder::Free) | Err(_) => Holding::None,
    }
}

/// The directory itself, or the nearest above it that exists.
pub(crate) fn existing(path: &Path) -> PathBuf {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_owned()
}
