//! Facts about the machine and the measuring program for the results, and the floor of this machine.
//!
//! Input: a folder, a chain's counts. Output: facts, where the system reports them; the time that no node can beat if
//! it verifies signatures one at a time. Cost: measuring the floor takes about half a second.

use super::adapter::ask;
use super::procfs;
use super::system::read_proc;
use crate::error::LabError;
use crate::limits_cmd::{CheckTimes, LimitsSettings, check_times};
use lydian_chains::parallel;
use lydian_hash::Sha256;
use lydian_report::results::{ChainFacts, Floor, MachineFacts, NodeFacts, rounded};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::Command;

const FLOOR_CHECKS: u64 = 500;
const FLOOR_ROUNDS: usize = 5;

pub fn machine_facts(work: &Path) -> MachineFacts {
    let text = |path| read_proc(path).unwrap_or_default();
    let work = work.canonicalize().unwrap_or_else(|_| work.to_path_buf());
    let filesystem = procfs::filesystem_of(&text("/proc/self/mountinfo"), &work.to_string_lossy());
    MachineFacts {
        cpu: procfs::cpu_model(&text("/proc/cpuinfo")).unwrap_or("unknown").to_owned(),
        cores: parallel::default_threads(),
        memory_bytes: procfs::memory_total_bytes(&text("/proc/meminfo")),
        kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        filesystem: filesystem.map(|(kind, source)| format!("{kind} on {source}")),
    }
}

/// Distinguishes two builds of the same version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    pub sha256: String,
    pub bytes: u64,
}

impl ProgramFile {
    /// `None` if the file does not exist or cannot be read.
    pub fn of(program: &Path) -> Option<ProgramFile> {
        let mut file = OpenOptions::new().read(true).open(program).ok()?;
        let (mut hasher, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(size) => {
                    hasher.update(buffer.get(..size)?);
                    bytes += u64::try_from(size).ok()?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(ProgramFile { sha256: lydian_primitives::to_hex(&hasher.finalize()), bytes })
    }
}

/// What is known about a node or a server from its program; the caller adds how it takes part.
pub(crate) fn program_facts(name: &str, program: &Path, version: String, notes: Vec<String>) -> NodeFacts {
    let file = ProgramFile::of(program);
    NodeFacts {
        name: name.to_owned(),
        program: program.display().to_string(),
        version,
        program_sha256: file.as_ref().map(|file| file.sha256.clone()),
        program_bytes: file.as_ref().map(|file| file.bytes),
        arguments: Vec::new(),
        source: None,
        cannot: None,
        notes,
        validity: None,
        own_chain: None,
    }
}

/// The version of a program that may be unable to report one, for a table.
pub(crate) fn version_or_reason(version: Result<String, LabError>) -> String {
    version.unwrap_or_else(|error| format!("not told: {error}"))
}

/// The commit of the checkout in which the program was built, if the program is still there.
pub(crate) fn commit() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(program.parent()?).args(arguments);
        ask(command).ok()
    };
    let head = git(&["rev-parse", "HEAD"])?.trim().to_owned();
    let is_changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty();
    Some(if is_changed { head + "-dirty" } else { head })
}

/// `None` for a chain whose checks were not counted, or that has none.
pub fn floor(chain: &ChainFacts, threads: usize) -> Result<Option<Floor>, LabError> {
    let counts = (chain.ecdsa_verifications, chain.schnorr_verifications, chain.tweak_checks);
    let (Some(ecdsa), Some(schnorr), Some(tweaks)) = counts else { return Ok(None) };
    if ecdsa + schnorr + tweaks == 0 {
        return Ok(None);
    }
    let folder = std::env::temp_dir();
    let settings = LimitsSettings { checks: FLOOR_CHECKS, rounds: FLOOR_ROUNDS, disk_bytes: 0, folder, chain: None };
    let times = check_times(&settings)?;
    let (ecdsa_ns, schnorr_ns, tweak_ns) = least(&times);
    let threads = threads.clamp(1, parallel::default_threads());
    let nanoseconds = as_f64(ecdsa) * ecdsa_ns + as_f64(schnorr) * schnorr_ns + as_f64(tweaks) * tweak_ns;
    let seconds = rounded(nanoseconds / 1e9 / as_f64(threads as u64));
    Ok(Some(Floor { ecdsa_ns, schnorr_ns, tweak_ns, threads, seconds }))
}

/// The minimum of the rounds: other load can only make a round longer, and a floor must not be above what the machine
/// can do.
fn least(times: &CheckTimes) -> (f64, f64, f64) {
    (rounded(times.ecdsa.min), rounded(times.schnorr.min), rounded(times.tweak.min))
}

#[allow(clippy::cast_precision_loss, reason = "counts of a chain lie far below 2^52")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_report::results::ChainFacts;

    fn chain(checks: Option<u64>) -> ChainFacts {
        ChainFacts {
            preset: None,
            network: "regtest".into(),
            sha256: String::new(),
            file_bytes: 0,
            height: 1,
            tip: String::new(),
            transactions: None,
            inputs: None,
            outputs: None,
            ecdsa_verifications: checks,
            schnorr_verifications: checks,
            tweak_checks: checks,
        }
    }

    #[test]
    fn the_floor_is_the_checks_one_after_the_other() {
        let floor_of = |checks| floor(&chain(checks), 1).unwrap();
        assert_eq!((floor_of(None), floor_of(Some(0))), (None, None));
        let found = floor_of(Some(1_000_000)).unwrap();
        let sum = found.ecdsa_ns + found.schnorr_ns + found.tweak_ns;
        assert!((found.seconds - sum / 1e3).abs() < 1e-3 && found.ecdsa_ns > 100.0, "{found:?}");
    }

    #[test]
    fn a_program_is_known_by_its_file() {
        let own = std::env::current_exe().unwrap();
        let file = ProgramFile::of(&own).unwrap();
        let all = lydian_disk::read_whole(&lydian_disk::RealDisk, &own, 1 << 32).unwrap();
        assert_eq!(file.bytes, u64::try_from(all.len()).unwrap());
        assert_eq!(file.sha256, lydian_primitives::to_hex(&lydian_hash::sha256(&all)));
        assert_eq!(ProgramFile::of(Path::new("/no/such/program")), None);
        assert_eq!(ProgramFile::of(&std::env::temp_dir()), None, "a folder is no program");
    }

    #[test]
    fn the_floor_is_made_of_the_least_of_the_rounds() {
        let of = |min: f64| crate::limits_cmd::Measure { median: min * 2.0, min, max: min * 3.0 };
        let times = CheckTimes { ecdsa: of(25.0), schnorr: of(26.0), tweak: of(18.0), ecdsa_all_cores: of(12.5) };
        assert_eq!(least(&times), (25.0, 26.0, 18.0));
    }

    #[test]
    fn this_machine_has_facts() {
        let facts = machine_facts(&std::env::temp_dir());
        assert!(facts.cores > 0 && !facts.kernel.is_empty() && facts.memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(facts.filesystem.is_some());
    }
}
