//! Checks of the data directory: its holder, access to its files, formats, the end of the last run, records that a
//! signature engine was wrong.

use super::{with_directory, with_settings};
use crate::datadir::recognize;
use crate::disagreement;
use crate::doctor::check::Answer;
use crate::doctor::facts::{Facts, Holding};
use crate::doctor::procfs;
use crate::screen::commas;
use crate::settings::Settings;
use crate::status::{Status, StatusError};
use lydian_disk::DiskErrorKind;
use lydian_index::{IndexKind, inspect};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How this program and its tests are called, cut to the length of `/proc/PID/comm`.
const PROGRAM: &str = "lydian";

pub(crate) fn holder(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let Holding::Process(process) = facts.holding else { return Answer::ok("no process holds the directory") };
        let Some(process) = process else {
            return Answer::ok("a process of another user holds the directory");
        };
        let words = procfs::words_of(process);
        match procfs::name_of(process) {
            Some(name) if name != PROGRAM && !is_ours(process) => {
                Answer::bad(format!("{words} holds {}, and is not Lydian", settings.datadir.display()))
            }
            _ => Answer::ok(format!("{words} holds the directory")),
        }
    })
}

/// A thread may have renamed the process, but not its program.
fn is_ours(process: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{process}/exe")).ok();
    program.and_then(|path| Some(path.file_name()?.to_string_lossy().contains(PROGRAM))).unwrap_or(false)
}

/// Files looked at in each folder.
const FILES_MAX: usize = 20_000;

pub(crate) fn permissions(facts: &Facts<'_>) -> Answer {
    with_directory(facts, |settings| {
        let user = expected_user(facts, settings);
        let mut findings = Vec::new();
        for folder in folders(settings).iter().filter(|folder| facts.is_directory(folder)) {
            findings.extend(no_access(folder));
            findings.extend(user.and_then(|user| foreign(facts, folder, user)));
            findings.extend(too_open(folder));
        }
        Answer::worst(findings, || {
            let whose = user.map(|user| format!("to user {user}")).unwrap_or_default();
            Answer::ok(format!("all files belong {whose}, and the folders can be written"))
        })
    })
}

fn folders(settings: &Settings) -> [PathBuf; 5] {
    let indexes = settings.datadir.join("indexes");
    [settings.datadir.clone(), settings.blocks.clone(), settings.index(), settings.coins(), indexes]
}

/// The user whose files they must be: that of the node, or else the one who asks; for root, that of the directory.
fn expected_user(facts: &Facts<'_>, settings: &Settings) -> Option<u32> {
    let own = rustix::process::getuid().as_raw();
    let of_node = facts.node_process().and_then(procfs::user_of);
    of_node.or_else(|| if own == 0 { Some(settings.datadir.metadata().ok()?.uid()) } else { Some(own) })
}

fn no_access(folder: &Path) -> Option<Answer> {
    let path = folder.display();
    match access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(Errno::ROFS) => Some(Answer::bad(format!("{path} is on a file system that is mounted read-only"))),
        Err(error) => Some(Answer::bad(format!("{path} cannot be read and written: {error}"))),
    }
}

/// A file of another user.
fn foreign(facts: &Facts<'_>, folder: &Path, user: u32) -> Option<Answer> {
    let files = facts.disk.list(folder).unwrap_or_default();
    let paths = files.iter().map(|(path, _)| path.as_path()).take(FILES_MAX);
    let found = std::iter::once(folder).chain(paths).find_map(|path| {
        let owner = path.metadata().ok()?.uid();
        (owner != user).then_some((path, owner))
    });
    let (path, owner) = found?;
    Some(Answer::bad(format!("{} belongs to user {owner}, not to user {user}", path.display())))
}

/// Permission of others to write.
const WRITTEN_BY_OTHERS: u32 = 0o002;

fn too_open(folder: &Path) -> Option<Answer> {
    let mode = folder.metadata().ok()?.mode();
    let words = || format!("every user of this machine may write to {}", folder.display());
    (mode & WRITTEN_BY_OTHERS != 0).then(|| Answer::warning(words()))
}

pub(crate) fn formats(facts: &Facts<'_>) -> Answer {
    with_directory(facts, |settings| {
        let mut findings = Vec::new();
        if let Err(error) = recognize(settings, facts.disk) {
            findings.push(Answer::bad(error.to_string()));
        }
        match Status::read(facts.disk, &settings.datadir) {
            Ok(_) => {}
            Err(StatusError::Disk(error)) if error.kind == DiskErrorKind::NotFound => {}
            Err(error) => findings.push(Answer::warning(error.to_string())),
        }
        for kind in IndexKind::ALL {
            if let Err(error) = inspect(facts.disk, &settings.datadir, kind, &settings.params) {
                findings.push(Answer::bad(format!("index {}: {error}", kind.name())));
            }
        }
        Answer::worst(findings, || Answer::ok("all files have formats that this release reads and writes"))
    })
}

pub(crate) fn clean_stop(facts: &Facts<'_>) -> Answer {
    with_directory(facts, |settings| {
        if facts.is_running() {
            return Answer::skipped("a node runs");
        }
        let mut findings = Vec::new();
        if facts.disk.kind(&settings.index().join("reindex")).is_ok() {
            findings.push(Answer::warning("a reindex did not end; the next start continues it"));
        }
        let remains = [settings.pid.as_ref(), settings.rpc.cookie.as_ref()];
        let left = remains.into_iter().flatten().find(|path| facts.disk.kind(path).is_ok());
        let again = facts.status.as_ref().map_or(0, |status| {
            status.durable_height.map_or(0, |durable| u64::from(status.height.saturating_sub(durable)))
        });
        if left.is_some() || again > 0 {
            let file = left.map(|path| format!(" ({} is left)", path.display())).unwrap_or_default();
            let blocks =
                if again > 0 { format!("; {} blocks are validated again", commas(again)) } else { String::new() };
            findings.push(Answer::warning(format!("the last run did not end by itself{file}{blocks}")));
        }
        Answer::worst(findings, || match &facts.status {
            Some(status) => {
                Answer::ok(format!("the last run ended cleanly at height {}", commas(status.height.into())))
            }
            None => Answer::ok("no node has run here yet"),
        })
    })
}

pub(crate) fn disagreements(facts: &Facts<'_>) -> Answer {
    with_directory(facts, |settings| {
        let files = disagreement::files(facts.disk, &settings.index());
        match files.first() {
            None => Answer::ok("no signature engine was wrong"),
            Some(first) => Answer::bad(format!(
                "a signature engine was wrong {} times: {}",
                files.len(),
                settings.index().join(first).display()
            )),
        }
    })
}
