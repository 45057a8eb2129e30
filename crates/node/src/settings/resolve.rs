//! Resolves settings against disk and host. Input: the words of the command line, the disk, the host. Output:
//! [`Settings`] with absolute paths, and notices for stderr and the log. Reads the configuration files; creates
//! nothing.

use super::core::{CORE_OPTIONS, Given as Treatment};
use super::deployments;
use super::error::{IgnoredConf, SettingsError, ValueProblem};
use super::front;
use super::given::Given;
use super::logging;
use super::mempool;
use super::net::{NetSettings, has_cjdns};
use super::settled::{Prune, Settings};
use super::shown::{repeated, shown};
use super::table::options;
use super::unused;
use super::values::{self, DBCACHE_MIB_DEFAULT};
use super::words::Words;
use crate::host::Host;
use crate::index;
use lydian_consensus::{Chain, Params};
use lydian_disk::{Disk, PathKind};
use lydian_mempool::pool::BlockOptions;
use lydian_options::{
    CONF_FILENAMES, ConfProblem, ConfigFiles, DatadirProblem, Notice, Setting, SettingsFile, Sources, Value, apply,
    base_chain, chain_name, switch,
};
use std::path::{Component, Path, PathBuf};

/// Core's `DBCACHE_WARNING_RESERVED_RAM`, in MiB.
const OTHER_MEMORY_MIB: u64 = 2048;
/// Memory besides `-dbcache` from which on the coins on disk have an index in memory by default.
const INDEX_MEMORY_MIN_BYTES: u64 = 4 << 30;

/// Reads the files and decides which values count, in Core's order (`InitConfig`, `AppInitParameterInteraction`).
/// Messages are added to `notices`, even if loading fails.
pub(crate) fn load(
    words: &Words,
    host: &Host,
    disk: &dyn Disk,
    notices: &mut Vec<Notice>,
) -> Result<Settings, SettingsError> {
    if words.command == Some(front::COMMAND) {
        return front::load(words, host, disk, notices);
    }
    let mut sources = words.sources.clone();
    let default_datadir = host.default_datadir();
    let files = ConfigFiles {
        disk,
        directory: &host.directory,
        default_datadir: default_datadir.as_deref(),
        is_lenient: false,
    };
    let first_base = files.datadir(&sources)?;
    let conf = files.conf(&sources, &first_base);
    let has_conf = match &conf {
        Some(conf) => files.read(conf, &first_base, &mut sources, notices)?,
        None => false,
    };
    let base = files.datadir(&sources).map_err(in_conf)?;
    let chain: Chain = values::chain(&chain_name(&sources)?)?;
    sources.select_network(chain.name());
    let params = deployments::params(chain, &sources, notices)?;
    look_for_ignored_conf(&sources, conf.as_deref(), &first_base, &base, &files, notices)?;
    let datadir = base.join(folder(chain));
    let file = SettingsFile::load(disk, &datadir, &mut sources, notices)?;
    warn_of_removed(&sources, notices);
    if chain == Chain::Signet {
        let magic = lydian_primitives::to_hex(&params.magic);
        notices.push(Notice::LogInfo(format!("Signet derived magic (message start): {magic}")));
    }
    let names = sources.at_top_only();
    if !names.is_empty() {
        return Err(SettingsError::OtherNetwork { names, chain: chain.name() });
    }
    if chain == Chain::Test {
        notices.push(Notice::LogInfo(TESTNET3_WORDS.to_owned()));
    }
    warn_of_sections(&sources, notices);
    let mut settings = settle(params, datadir, &sources, host, notices)?;
    // `lydian index load` has the address behind it.
    if settings.store_blocks && settings.shared_index.is_none() && words.command != Some(index::COMMAND) {
        return Err(ValueProblem::BlocksWithoutStore.into());
    }
    check_foreign(&sources, notices)?;
    warn_of_memory(settings.dbcache_bytes, host, notices);
    warn_of_relative_datadir(&sources, host, notices);
    check_paths(&mut settings, &sources, host, disk)?;
    settings.conf = conf;
    settings.has_conf = has_conf;
    settings.default_datadir = default_datadir;
    settings.file = file;
    settings.arguments = sources.log_lines();
    settings.shown = shown(&sources);
    settings.repeated = repeated(&sources);
    settings.notices.clone_from(notices);
    Ok(settings)
}

/// Gives every option its type: those that depend on others first, then the others in the order of the table.
fn settle(
    params: Params,
    datadir: PathBuf,
    sources: &Sources,
    host: &Host,
    notices: &mut Vec<Notice>,
) -> Result<Settings, SettingsError> {
    let given = Given::new(sources);
    let chain = params.chain;
    let is_signet_of_others = chain == Chain::Signet && given.is_set("signetchallenge");
    let mut net = NetSettings::new(chain, &given, host, notices)?;
    let mut policy = lydian_mempool::policy::Settings::default();
    mempool::blocks_only(net.blocks_only, &given, &mut policy, &mut net.notes);
    let mut block = BlockOptions::default();
    unused::check(&given, net.listens, &mut block)?;
    mempool::read(chain, &given, &mut policy, notices)?;
    unused::check_later(chain, &given)?;
    mempool::check_size(&given, &mut policy)?;
    let mut settings = Settings::new(params, is_signet_of_others, datadir, net);
    settings.mempool = policy;
    settings.block = block;
    apply(options(), sources, &mut settings)?;
    settings.cores = host.cores;
    settings.threads = threads(given.integer("par").unwrap_or(0), host.cores);
    settings.is_low_memory = given.switch("lowmem").unwrap_or_else(|| is_memory_low(settings.dbcache_bytes, host));
    settings.loadblock = given.texts("loadblock").iter().map(|path| host.absolute(Path::new(path))).collect();
    settings.test = deployments::test_options(chain, &given, notices)?;
    logging::read(&given, &mut settings.log, notices)?;
    settings.rpc.read(chain, &given, has_cjdns(&given)?)?;
    settings.electrum.read(chain, &given)?;
    settings.esplora.read(chain, &given)?;
    settings.feed.read(chain, &given)?;
    settings.page.read(chain, &given)?;
    if settings.shared_index.is_some() && !settings.has_address_index() {
        return Err(ValueProblem::StoreWithoutIndex.into());
    }
    settings.make_absolute(host);
    settings.rpc.cookie = settings.rpc.cookie.map(|path| settings.datadir.join(path));
    Ok(settings)
}

/// The error for a data directory that a configuration file names.
fn in_conf(problem: DatadirProblem) -> SettingsError {
    match problem {
        DatadirProblem::Missing { text } => ConfProblem::NoSuchDataDir { text }.into(),
        DatadirProblem::NoHome => SettingsError::NoHome,
    }
}

/// Core's name for the folder of the chain.
fn folder(chain: Chain) -> &'static str {
    base_chain(chain.name()).map_or("", |chain| chain.folder)
}

/// Core's warning about a chain that will be removed.
const TESTNET3_WORDS: &str = "Warning: Support for testnet3 is deprecated and will be removed in an upcoming release. Consider \
                              switching to testnet4.";

fn warn_of_relative_datadir(sources: &Sources, host: &Host, notices: &mut Vec<Notice>) {
    let Some(value) = sources.get("datadir") else { return };
    let text = value.setting.text();
    if Path::new(text).is_relative() {
        let directory = host.absolute(Path::new(""));
        notices.push(Notice::LogWarning(format!(
            "Relative datadir option '{text}' specified, which will be interpreted relative to the current working directory '{}'. This is \
             fragile, because if bitcoin is started in the future from a different location, it will be unable to locate the current data \
             files. There could also be data loss if bitcoin is started while in a temporary directory.",
            directory.display()
        )));
    }
}

/// Reports a configuration file in the data directory that is not the one in use: an error, as in Core.
fn look_for_ignored_conf(
    sources: &Sources,
    used: Option<&Path>,
    first_base: &Path,
    base: &Path,
    files: &ConfigFiles<'_>,
    notices: &mut Vec<Notice>,
) -> Result<(), SettingsError> {
    let Some(ignored) = files.default_conf(base).filter(|ignored| Some(ignored.as_path()) != used) else {
        return Ok(());
    };
    let name = CONF_FILENAMES.into_iter().find(|name| ignored.ends_with(name)).unwrap_or(CONF_FILENAMES[0]);
    let directory = base.to_owned();
    let Some(used) = used else {
        let (directory, name) = (format!("\"{}\"", directory.display()), format!("\"{name}\""));
        notices.push(Notice::LogInfo(format!(
            "Data directory {directory} contains a {name} file which is explicitly ignored using -noconf."
        )));
        return Ok(());
    };
    let source = match sources.get("conf").map(|value| value.setting.text()).unwrap_or_default() {
        "" => format!("data directory \"{}\"", first_base.display()),
        conf => format!("command line argument \"-conf={conf}\""),
    };
    let ignored = IgnoredConf { directory, name, used: lexically_normal(used), source };
    if sources.get("allowignoredconf").is_some_and(|value| switch(value.setting.text())) {
        notices.push(Notice::LogWarning(ignored.to_string()));
        return Ok(());
    }
    Err(SettingsError::IgnoredConf(ignored))
}

/// The path without `.` and `..`; symbolic links are not resolved: C++'s `lexically_normal`.
fn lexically_normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir if normal.has_root() => {}
            part => normal.push(part),
        }
    }
    normal
}

/// Warns about options that Core removed and still warns about.
fn warn_of_removed(sources: &Sources, notices: &mut Vec<Notice>) {
    let removed = [
        ("checkpoints", "Option '-checkpoints' is set but checkpoints were removed. This option has no effect."),
        (
            "limitancestorsize",
            "Option '-limitancestorsize' is given but ancestor size limits have been replaced with cluster size limits (see -limitclustersize). \
             This option has no effect.",
        ),
        (
            "limitdescendantsize",
            "Option '-limitdescendantsize' is given but descendant size limits have been replaced with cluster size limits (see \
             -limitclustersize). This option has no effect.",
        ),
    ];
    let given = removed.into_iter().filter(|(name, _)| sources.get(name).is_some());
    notices.extend(given.map(|(_, words)| Notice::Warning(words.to_owned())));
}

/// One warning for all of them, each on its own line.
fn warn_of_sections(sources: &Sources, notices: &mut Vec<Notice>) {
    if !sources.unknown_sections().is_empty() {
        let lines = sources.unknown_sections().iter().map(|line| format!("{line}\n"));
        notices.push(Notice::Warning(lines.collect()));
    }
}

/// Whether `-dbcache` leaves less memory of the machine than the index of all coins and the rest of the node need.
fn is_memory_low(dbcache_bytes: u64, host: &Host) -> bool {
    host.memory_bytes.is_some_and(|bytes| bytes.saturating_sub(dbcache_bytes) < INDEX_MEMORY_MIN_BYTES)
}

/// Core's `LogOversizedDbCache`.
fn warn_of_memory(dbcache_bytes: u64, host: &Host, notices: &mut Vec<Notice>) {
    let Some(memory_mib) = host.memory_bytes.map(|bytes| bytes >> 20) else { return };
    let cache_mib = dbcache_bytes >> 20;
    let default_mib = u64::try_from(DBCACHE_MIB_DEFAULT).unwrap_or(0);
    if cache_mib > (memory_mib.saturating_sub(OTHER_MEMORY_MIB) / 4 * 3).max(default_mib) {
        notices.push(Notice::Warning(format!(
            "A {cache_mib} MiB dbcache may be too large for a system memory of only {memory_mib} MiB."
        )));
    }
}

/// Handles Core's options that Lydian lacks: they are refused, or have no effect, which is logged.
fn check_foreign(sources: &Sources, notices: &mut Vec<Notice>) -> Result<(), SettingsError> {
    for option in CORE_OPTIONS {
        let Some(Value { setting, origin }) = sources.get(option.name) else { continue };
        if *setting == Setting::Negated || setting.text() == "0" {
            continue;
        }
        match option.given {
            Treatment::Accepted => {
                notices.push(Notice::LogInfo(format!("-{} has no effect: {}", option.name, option.reason)));
            }
            Treatment::Refused => {
                return Err(SettingsError::NotInLydian {
                    origin: origin.clone(),
                    name: option.name.to_owned(),
                    reason: option.reason,
                });
            }
        }
    }
    Ok(())
}

/// Checks `-blocksdir` and what cannot be combined with `-prune`.
fn check_paths(settings: &mut Settings, sources: &Sources, host: &Host, disk: &dyn Disk) -> Result<(), SettingsError> {
    if settings.prune != Prune::Never && settings.reindex_chainstate {
        return Err(SettingsError::PruneWithReindexChainstate);
    }
    if let Some(path) = Given::new(sources).path("blocksdir", None) {
        let text = path.display().to_string();
        let path = host.absolute(&path);
        if disk.kind(&path) != Ok(PathKind::Directory) {
            return Err(SettingsError::NoSuchBlocksDir { text });
        }
        settings.blocks = path.join(folder(settings.params.chain)).join("blocks");
    }
    Ok(())
}

/// `-par`: 0 means every core, a negative number leaves that many cores free; there is at least one worker.
fn threads(par: i64, cores: usize) -> usize {
    let cores = i64::try_from(cores).unwrap_or(i64::MAX);
    let count = if par <= 0 { cores.saturating_add(par) } else { par };
    usize::try_from(count).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_by_par_and_cores() {
        let counts = [(0, 8), (1, 8), (16, 8), (-1, 8), (-7, 8), (-8, 8), (-100, 8), (0, 1), (-1, 1)];
        assert_eq!(counts.map(|(par, cores)| threads(par, cores)), [8, 1, 16, 7, 1, 1, 1, 1, 1]);
    }
}
