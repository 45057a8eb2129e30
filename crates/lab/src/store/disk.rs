//! A small disk of its own for the tables of one node, which can be filled.
//!
//! Input: a folder, a size. Output: a file system in memory that this node alone sees, in a mount namespace that a
//! waiting process keeps; so no right of the administrator is needed where the kernel lets users have namespaces.
//! Invariants: nothing is mounted for others; the file system ends with the value. Cost: the bytes in memory.

use crate::electrum::process::Process;
use crate::error::LabError;
use crate::runs::system;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FILLER: &str = "filler";
/// What the waiting process prints.
const MOUNTED: &str = "mounted";
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// `$1`: the folder, `$2`: the size in MiB.
const MOUNT: &str = r#"mount -t tmpfs -o "size=$2m,mode=700" lydian "$1" && echo mounted && exec sleep infinity"#;
/// The working directory is looked up in the namespace.
const ENTER: &str = r#"cd "$1" && shift && exec "$@""#;

#[derive(Debug)]
pub struct SmallDisk {
    keeper: Process,
    folder: PathBuf,
}

impl SmallDisk {
    /// Fails if the system does not let this user have a mount namespace.
    pub fn new(folder: &Path, mib: u32) -> Result<SmallDisk, LabError> {
        system::create_dir(folder)?;
        let output = folder.with_extension("disk.txt");
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c", MOUNT, "sh"]);
        command.arg(folder).arg(mib.to_string());
        let keeper = Process::start(command, &output)?;
        let said = || system::read_proc(&output.to_string_lossy()).unwrap_or_default();
        let start = system::now();
        while !said().lines().any(|line| line == MOUNTED) {
            if keeper.has_ended() || start.elapsed() > PATIENCE {
                let reason =
                    format!("no disk of {mib} MiB can be mounted in a namespace of its own: {}", said().trim());
                return Err(LabError::program("unshare", reason));
            }
            std::thread::sleep(POLL);
        }
        Ok(SmallDisk { keeper, folder: folder.to_owned() })
    }

    /// A command in place of another one that sees the disk.
    pub(super) fn within(&self, inner: &Command) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.keeper.pid().to_string(), "--user", "--mount", "--preserve-credentials"]);
        command.args(["--", "sh", "-c", ENTER, "sh"]).arg(inner.get_current_dir().unwrap_or(&self.folder));
        command.arg(inner.get_program()).args(inner.get_args());
        command
    }

    fn filler(&self) -> PathBuf {
        self.folder.join(FILLER)
    }

    /// Writes until no byte is left. Returns the bytes that it took.
    pub fn fill(&self) -> Result<u64, LabError> {
        let mut command = Command::new("dd");
        command.args(["if=/dev/zero", "bs=65536"]).arg(format!("of={}", self.filler().display()));
        // It ends with an error when the disk is full.
        self.ask(&command)?;
        let mut command = Command::new("stat");
        command.args(["--file-system", "--format=%a"]).arg(&self.folder);
        let free = self.ask(&command)?;
        if free.trim() != "0" {
            return Err(LabError::program("dd", format!("the disk is not full: {free} blocks are free")));
        }
        let mut command = Command::new("stat");
        command.arg("--format=%s").arg(self.filler());
        Ok(self.ask(&command)?.trim().parse().unwrap_or(0))
    }

    /// Removes what [`SmallDisk::fill`] wrote.
    pub fn clear(&self) -> Result<(), LabError> {
        let mut command = Command::new("rm");
        command.arg(self.filler());
        self.ask(&command).map(|_| ())
    }

    /// What a command prints.
    fn ask(&self, inner: &Command) -> Result<String, LabError> {
        let mut command = self.within(inner);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().map_err(|error| LabError::program("nsenter", error))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_oracle::Scratch;

    #[test]
    fn a_disk_is_full_for_those_who_see_it() {
        let scratch = Scratch::new("lab-small-disk");
        let folder = scratch.path().join("data");
        // Where the kernel lets users have no namespaces, the failure is left out of a run.
        let Ok(disk) = SmallDisk::new(&folder, 2) else { return };
        assert_eq!(disk.fill().unwrap(), 2 << 20);
        let mut touch = Command::new("sh");
        touch.args(["-c", "echo x > more && echo written; ls"]);
        assert_eq!(disk.ask(&touch).unwrap(), "filler\nmore\n", "the file has no bytes");
        disk.clear().unwrap();
        assert_eq!(disk.ask(&touch).unwrap(), "written\nmore\n");
        assert!(!folder.join("more").exists(), "others do not see it");
    }
}
