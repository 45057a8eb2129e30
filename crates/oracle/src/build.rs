//! Builds Bitcoin Core's daemon and the judge, once, in a cache folder outside the checkout.
//!
//! Input -> output: the crate `libbitcoinkernel-sys` (Core's source tree, fetched by cargo through a manifest in the
//! cache folder, so that this workspace never compiles it) -> the `bitcoind`, `bitcoin-cli` and judge of [`Built`].
//! Invariants: a stamp file, written last, records version and options of the build; a build without a matching stamp
//! is resumed; one process builds at a time (a lock file); the file name of a judge contains the hash of all its
//! inputs, and the file appears complete or not at all. Cost: about 530 CPU-s once, then one small file read. Must
//! never write outside the cache folder, or rebuild what is up to date.
#![expect(
    clippy::disallowed_methods,
    reason = "tests only: a separate build tool, outside any data directory of the node"
)]

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Unavailable;
use crate::limits::MAX_SHOWN_LINES;

/// Version of the crate that contains Core's source; Core calls it 31.99.
pub const VERSION: &str = "0.4.1";

const CRATE: &str = "libbitcoinkernel-sys";
const CMAKE_OPTIONS: &[&str] = &[
    "-DCMAKE_BUILD_TYPE=Release",
    "-DENABLE_WALLET=OFF",
    "-DENABLE_IPC=OFF",
    "-DBUILD_TESTS=OFF",
    "-DWITH_EMBEDDED_ASMAP=OFF",
    "-DENABLE_EXTERNAL_SIGNER=OFF",
    "-DBUILD_BITCOIN_BIN=OFF",
];
const JUDGE_SOURCE: &str = include_str!("judge.cpp");
const JUDGE_OPTIONS: &[&str] = &["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror"];
/// In link order. The node library is needed only for `tx_verify.cpp`.
const JUDGE_LIBRARIES: &[&str] = &[
    "lib/libbitcoin_node.a",
    "lib/libbitcoin_common.a",
    "lib/libbitcoin_consensus.a",
    "lib/libbitcoin_util.a",
    "lib/libbitcoin_clientversion.a",
    "src/univalue/libunivalue.a",
    "lib/libbitcoin_crypto.a",
    "src/secp256k1/lib/libsecp256k1.a",
];
/// Debian's package names, for the message about missing packages.
const PACKAGES: &str = "cmake ninja-build libboost-dev libevent-dev g++ pkg-config";

/// The paths of the built programs.
#[derive(Clone, Debug)]
pub struct Built {
    pub bitcoind: PathBuf,
    pub bitcoin_cli: PathBuf,
    pub judge: PathBuf,
    /// Core's source tree that all three were built from.
    pub source: PathBuf,
}

/// Why a build failed.
#[derive(Debug)]
pub enum BuildError {
    /// System packages are missing; contains their names.
    Packages { missing: Vec<&'static str> },
    /// An error on a file or folder of the cache.
    Io { path: PathBuf, error: io::Error },
    /// A command failed; contains its last lines.
    Command { command: String, tail: String },
    /// cargo does not report the location of the crate's source.
    Source,
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Packages { missing } => write!(
                f,
                "Bitcoin Core needs {} to build; install them with: apt-get install -y {PACKAGES}",
                missing.join(", ")
            ),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Command { command, tail } => write!(f, "`{command}` failed:\n{tail}"),
            Self::Source => write!(f, "cargo does not report the source folder of {CRATE} {VERSION}"),
        }
    }
}

impl std::error::Error for BuildError {}

/// Finds the finished build, and links the judge again if its source has changed. Never builds Core itself.
pub fn locate() -> Result<Built, Unavailable> {
    let folder = cache_folder();
    let source = finished(&folder).ok_or_else(|| Unavailable::NotBuilt { folder: folder.clone() })?;
    link_judge(&folder, &source, &mut |_| ()).map_err(|error| Unavailable::Judge { text: error.to_string() })
}

/// Builds whatever is missing, and passes progress to `report`.
pub fn ensure(report: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    let folder = cache_folder();
    fs::create_dir_all(&folder).map_err(|error| BuildError::Io { path: folder.clone(), error })?;
    let source = match finished(&folder) {
        Some(source) => source,
        None => build_core(&folder, report)?,
    };
    link_judge(&folder, &source, report)
}

/// `$XDG_CACHE_HOME/lydian/core-VERSION`; by default under `~/.cache`.
pub fn cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").unwrap_or_else(|| set("HOME").unwrap_or_else(std::env::temp_dir).join(".cache"));
    cache.join("lydian").join(format!("core-{VERSION}"))
}

/// Returns the source folder of a build whose stamp matches and whose files all exist.
fn finished(folder: &Path) -> Option<PathBuf> {
    let stamp = fs::read_to_string(folder.join("stamp")).ok()?;
    let source = PathBuf::from(stamp.strip_prefix(&stamp_head())?.trim_end());
    let build = folder.join("build");
    let files = JUDGE_LIBRARIES.iter().copied().chain(["bin/bitcoind", "bin/bitcoin-cli"]);
    let complete = files.into_iter().all(|file| build.join(file).is_file());
    (complete && source.join("src/script/interpreter.h").is_file()).then_some(source)
}

fn stamp_head() -> String {
    format!("{CRATE} {VERSION}\n{}\n", CMAKE_OPTIONS.join(" "))
}

fn build_core(folder: &Path, report: &mut dyn FnMut(&str)) -> Result<PathBuf, BuildError> {
    let _lock = lock(folder, report)?;
    if let Some(source) = finished(folder) {
        return Ok(source); // another process built it while this one waited
    }
    check_packages()?;
    report("fetching Bitcoin Core's source");
    let source = fetch_source(folder)?;
    let build = folder.join("build");
    let cached = fs::read_to_string(build.join("CMakeCache.txt")).unwrap_or_default();
    let home = cached.lines().find_map(|line| line.strip_prefix("CMAKE_HOME_DIRECTORY:INTERNAL="));
    if home.is_some_and(|home| Path::new(home) != source) {
        // cmake refuses a build folder that belongs to another source folder.
        fs::remove_dir_all(&build).map_err(|error| BuildError::Io { path: build.clone(), error })?;
    }
    report("configuring Bitcoin Core");
    let log = folder.join("make.log");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&source).arg("-B").arg(&build).arg("-GNinja").args(CMAKE_OPTIONS);
    run(&mut configure, &log, &mut |_| ())?;
    report("building Bitcoin Core: about 530 CPU-seconds, once");
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut ninja = Command::new("ninja");
    ninja.arg("-C").arg(&build).arg(format!("-j{jobs}")).env("NINJA_STATUS", "[%f/%t] ");
    let mut shown = 0;
    run(&mut ninja, &log, &mut |line| {
        if let Some(percent) = percent(line).filter(|percent| percent / 5 > shown / 5) {
            shown = percent;
            report(&format!("building Bitcoin Core: {percent} %"));
        }
    })?;
    let stamp = format!("{}{}\n", stamp_head(), source.display());
    put_file(&folder.join("stamp"), stamp.as_bytes())?;
    finished(folder).ok_or_else(|| BuildError::Command { command: "ninja".into(), tail: "a library is missing".into() })
}

/// Returns 4 for a line `[12/297] ...`.
fn percent(line: &str) -> Option<u32> {
    let (done, total) = line.strip_prefix('[')?.split_once(']')?.0.split_once('/')?;
    (done.parse::<u32>().ok()? * 100).checked_div(total.parse().ok()?)
}

/// Lets cargo fetch the crate through a separate manifest, and returns its source folder.
fn fetch_source(folder: &Path) -> Result<PathBuf, BuildError> {
    let fetch = folder.join("fetch");
    let manifest = fetch.join("Cargo.toml");
    fs::create_dir_all(fetch.join("src")).map_err(|error| BuildError::Io { path: fetch.clone(), error })?;
    put_file(&fetch.join("src/lib.rs"), b"")?;
    let text = format!(
        "[package]\nname = \"core-source\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{CRATE} = \
         \"={VERSION}\"\n\n[workspace]\n"
    );
    put_file(&manifest, text.as_bytes())?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ask = |offline: bool| {
        let mut command = Command::new(&cargo);
        command.args(["metadata", "--format-version=1", "--quiet", "--manifest-path"]).arg(&manifest);
        command.args(offline.then_some("--offline")).stdin(Stdio::null()).output()
    };
    let output = match ask(true) {
        Ok(output) if output.status.success() => output,
        _ => ask(false).map_err(|error| BuildError::Io { path: PathBuf::from(&cargo), error })?,
    };
    if !output.status.success() {
        let tail = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BuildError::Command { command: "cargo metadata".into(), tail });
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| BuildError::Source)?;
    let packages = metadata["packages"].as_array().ok_or(BuildError::Source)?;
    let package = packages.iter().find(|package| package["name"] == CRATE && package["version"] == VERSION);
    let manifest = package.and_then(|package| package["manifest_path"].as_str()).ok_or(BuildError::Source)?;
    let source = Path::new(manifest).with_file_name("bitcoin");
    if source.join("CMakeLists.txt").is_file() { Ok(source) } else { Err(BuildError::Source) }
}

/// Compiles and links the judge, unless one with exactly these inputs exists.
fn link_judge(folder: &Path, source: &Path, report: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    let build = folder.join("build");
    let recipe = [JUDGE_SOURCE, &stamp_head(), &JUDGE_OPTIONS.join(" "), &JUDGE_LIBRARIES.join(" ")].join("\n");
    let judge = folder.join(format!("judge-{:016x}", fnv1a(recipe.as_bytes())));
    if !judge.is_file() {
        let _lock = lock(folder, report)?;
        if !judge.is_file() {
            report("linking the judge");
            let made = folder.join(format!("judge-new-{}", std::process::id()));
            let file = made.with_extension("cpp");
            put_file(&file, JUDGE_SOURCE.as_bytes())?;
            let mut compile = Command::new("c++");
            compile.args(JUDGE_OPTIONS).arg("-isystem").arg(build.join("src"));
            for include in ["src", "src/secp256k1/include", "src/univalue/include"] {
                compile.arg("-isystem").arg(source.join(include));
            }
            compile.arg("-o").arg(&made).arg(&file).args(JUDGE_LIBRARIES.iter().map(|library| build.join(library)));
            let result = run(&mut compile, &folder.join("judge.log"), &mut |_| ());
            let _ = fs::remove_file(&file);
            result?;
            fs::rename(&made, &judge).map_err(|error| BuildError::Io { path: made, error })?;
        }
    }
    let bin = build.join("bin");
    Ok(Built {
        bitcoind: bin.join("bitcoind"),
        bitcoin_cli: bin.join("bitcoin-cli"),
        judge,
        source: source.to_path_buf(),
    })
}

/// Waits until no other process builds. The lock is released when the file is dropped, also if the process is killed.
fn lock(folder: &Path, report: &mut dyn FnMut(&str)) -> Result<File, BuildError> {
    let path = folder.join("lock");
    let io = |error| BuildError::Io { path: path.clone(), error };
    let file = File::create(&path).map_err(io)?;
    if file.try_lock().is_err() {
        report("waiting for another process that builds Bitcoin Core");
        file.lock().map_err(io)?;
    }
    Ok(file)
}

/// Reports all missing packages at once.
fn check_packages() -> Result<(), BuildError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let header = |name: &str| {
        let mut child = Command::new("c++")
            .args(["-E", "-xc++", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(format!("#include <{name}>\n").as_bytes())?;
        }
        child.wait().map(|status| status.success())
    };
    let mut missing = Vec::new();
    for (program, package) in
        [("cmake", "cmake"), ("ninja", "ninja-build"), ("c++", "g++"), ("pkg-config", "pkg-config")]
    {
        if !found(program) {
            missing.push(package);
        }
    }
    for (name, package) in [("boost/multi_index_container.hpp", "libboost-dev"), ("event2/event.h", "libevent-dev")] {
        if !header(name).unwrap_or(false) {
            missing.push(package);
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(BuildError::Packages { missing }) }
}

/// Runs a command and writes its output to `log` and, line by line, to `see`.
fn run(command: &mut Command, log: &Path, see: &mut dyn FnMut(&str)) -> Result<(), BuildError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let io = |error| BuildError::Io { path: log.to_path_buf(), error };
    let mut file = File::create(log).map_err(io)?;
    let (reader, writer) = io::pipe().map_err(io)?;
    let errors = writer.try_clone().map_err(io)?;
    let failed = |tail: String| BuildError::Command { command: name.clone(), tail };
    command.stdin(Stdio::null()).stdout(writer).stderr(errors);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    // The write ends held by `command` must be closed, or the loop below would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut tail = std::collections::VecDeque::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(io)?).into_owned();
        writeln!(file, "{line}").map_err(io)?;
        see(&line);
        tail.push_back(line);
        if tail.len() > MAX_SHOWN_LINES {
            tail.pop_front();
        }
    }
    let status = child.wait().map_err(io)?;
    if status.success() { Ok(()) } else { Err(failed(Vec::from(tail).join("\n"))) }
}

/// Writes a file atomically: it exists with its whole content or not at all.
fn put_file(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    let fresh = path.with_extension(format!("new-{}", std::process::id()));
    let written = fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
    written.map_err(|error| BuildError::Io { path: path.to_path_buf(), error })
}

/// FNV-1a, 64 bits. Only used to distinguish recipes.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_of_a_line_of_ninja() {
        assert_eq!(percent("[12/297] Building CXX object x.o"), Some(4));
        assert_eq!(percent("[297/297] Linking"), Some(100));
        for line in ["", "[", "[x/2]", "[1/0] y", "ninja: no work to do."] {
            assert_eq!(percent(line), None, "{line}");
        }
    }

    #[test]
    fn fnv1a_of_known_inputs() {
        // From the test vectors in the appendix of draft-eastlake-fnv, the reference of the FNV hash.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn a_stamp_of_other_options_is_no_build() {
        let folder = std::env::temp_dir().join(format!("lydian-oracle-stamp-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stamp"), "libbitcoinkernel-sys 0.4.1\n-DOTHER\n/nowhere\n").unwrap();
        assert!(finished(&folder).is_none());
        fs::write(folder.join("stamp"), format!("{}/nowhere\n", stamp_head())).unwrap();
        assert!(finished(&folder).is_none(), "the stamp matches, but the files are missing");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_failed_command_shows_its_last_lines() {
        let log = std::env::temp_dir().join(format!("lydian-oracle-log-{}", std::process::id()));
        let mut seen = 0;
        let mut command = Command::new("sh");
        command.args(["-c", "seq 100; echo broken >&2; exit 3"]);
        let error = run(&mut command, &log, &mut |_| seen += 1).unwrap_err().to_string();
        assert_eq!(seen, 101);
        assert!(error.contains("broken") && error.contains("\n72\n") && !error.contains("\n71\n"), "{error}");
        fs::remove_file(&log).unwrap();
    }
}
