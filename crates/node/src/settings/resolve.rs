//! Resolves settings against disk and host. Input: the words of the command line, the disk, the host. Output:
//! [`Settings`] with absolute paths, and notices for stderr and the log. Reads the configuration files; creates
//! nothing.

use super::conf;
use super::core::{CORE_OPTIONS, Given as Treatment};
use super::deployments;
use super::error::{ConfProblem, IgnoredConf, SettingsError};
use super::file::{SETTINGS_FILENAME, SettingsFile};
use super::net::NetSettings;
use super::notice::Notice;
use super::parse;
use super::raw::{LogSettings, Prune, RawSettings, TestOptions};
use super::rpc::RpcSettings;
use super::sources::{Origin, Setting, Sources, Value};
use super::words::{Key, Known, Words, interpret, lookup};
use crate::host::Host;
use crate::limits::CONF_SIZE_MAX;
use lydian_consensus::{Chain, Params, U256};
use lydian_disk::{Disk, DiskErrorKind, PathKind, read_whole};
use lydian_primitives::{BlockHash, Height};
use std::path::{Component, Path, PathBuf};

/// Core's `MIN_DB_CACHE`.
const DBCACHE_MIB_MIN: i64 = 4;

const DBCACHE_MIB_DEFAULT: i64 = 450;

/// Core's `DBCACHE_WARNING_RESERVED_RAM`, in MiB.
const OTHER_MEMORY_MIB: u64 = 2048;

/// The first that exists is used; Core's own file is read if ours is missing.
const CONF_FILENAMES: [&str; 2] = ["lydian.conf", "bitcoin.conf"];

/// The settings that the node runs with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) params: Params,
    /// The directory of this chain.
    pub(crate) datadir: PathBuf,
    /// The directory of the blk*.dat files.
    pub(crate) blocks: PathBuf,
    /// `None` with `-noconf`.
    pub(crate) conf: Option<PathBuf>,
    pub(crate) has_conf: bool,
    pub(crate) default_datadir: Option<PathBuf>,
    pub(crate) dbcache_bytes: u64,
    /// Number of worker threads, at least one.
    pub(crate) threads: usize,
    pub(crate) prune: Prune,
    /// Whether block files are small.
    pub(crate) fastprune: bool,
    pub(crate) reindex: bool,
    pub(crate) reindex_chainstate: bool,
    pub(crate) daemon: bool,
    pub(crate) daemonwait: bool,
    pub(crate) copy: bool,
    pub(crate) json: bool,
    pub(crate) assumevalid: Option<BlockHash>,
    pub(crate) minimum_chain_work: U256,
    pub(crate) blocksxor: bool,
    pub(crate) loadblock: Vec<PathBuf>,
    pub(crate) pid: Option<PathBuf>,
    pub(crate) alertnotify: Vec<String>,
    pub(crate) blocknotify: Vec<String>,
    pub(crate) startupnotify: Vec<String>,
    pub(crate) shutdownnotify: Vec<String>,
    pub(crate) checkblocks: u32,
    pub(crate) checklevel: u8,
    /// The engine that verifies signatures.
    pub(crate) sigengine: &'static str,
    pub(crate) stopafterblockimport: bool,
    pub(crate) stopatheight: Option<Height>,
    /// Its paths are absolute.
    pub(crate) log: LogSettings,
    /// Its paths are absolute.
    pub(crate) rpc: RpcSettings,
    pub(crate) net: NetSettings,
    /// The time of the clock, for tests.
    pub(crate) mocktime: Option<u32>,
    /// With an older tip, the node is in initial block download.
    pub(crate) max_tip_age_seconds: i64,
    /// `-signetchallenge` on signet.
    pub(crate) is_signet_of_others: bool,
    /// `-blockversion`.
    pub(crate) blockversion: Option<i32>,
    /// `-checkblockindex` and `-checkaddrman`: number of operations between two checks; 0 means never.
    pub(crate) checkblockindex: u32,
    pub(crate) checkaddrman: u32,
    pub(crate) test: TestOptions,
    /// `settings.json`; `None` with `-nosettings`.
    pub(crate) file: Option<SettingsFile>,
    /// For the log, once it is open; the lines for stderr have been printed.
    pub(crate) notices: Vec<Notice>,
    pub(crate) arguments: Vec<String>,
}

/// The folder of a chain inside the data directory: Core's `CBaseChainParams::DataDir`.
pub(crate) fn folder(chain: Chain) -> &'static str {
    match chain {
        Chain::Main => "",
        Chain::Test => "testnet3",
        Chain::Testnet4 => "testnet4",
        Chain::Signet => "signet",
        Chain::Regtest => "regtest",
    }
}

/// Reads the files and decides which values count, in Core's order (`InitConfig`, `AppInitParameterInteraction`).
/// Messages are added to `notices`, even if loading fails.
pub(crate) fn load(
    words: &Words,
    host: &Host,
    disk: &dyn Disk,
    notices: &mut Vec<Notice>,
) -> Result<Settings, SettingsError> {
    let mut sources = words.sources.clone();
    let no_directory = |text| SettingsError::NoSuchDataDir { text };
    let first_base = base(&sources, host, disk, no_directory)?;
    let conf = conf_path(&sources, &first_base, disk);
    let has_conf = match &conf {
        Some(conf) => read_main_conf(disk, conf, &first_base, &mut sources, notices)?,
        None => false,
    };
    let base = base(&sources, host, disk, |text| ConfProblem::NoSuchDataDir { text }.into())?;
    let chain = chain(&sources)?;
    sources.select_network(chain.name());
    let params = deployments::params(chain, &sources, notices)?;
    let magic = params.magic.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    look_for_ignored_conf(&sources, conf.as_deref(), &first_base, &base, disk, notices)?;
    let datadir = base.join(folder(chain));
    let file = read_settings_file(disk, &datadir, &mut sources, notices)?;
    warn_of_removed(&sources, notices);
    if chain == Chain::Signet {
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
    let raw = RawSettings::new(params, &sources, host, notices)?;
    check_foreign(&sources, notices)?;
    warn_of_memory(&raw, host, notices);
    warn_of_relative_datadir(&sources, host, notices);
    let mut settings = resolve(raw, datadir, host, disk)?;
    settings.conf = conf;
    settings.has_conf = has_conf;
    settings.file = file;
    settings.arguments = sources.log_lines();
    settings.notices.clone_from(notices);
    Ok(settings)
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

/// The directory of all chains. If it was named, it must exist.
fn base(
    sources: &Sources,
    host: &Host,
    disk: &dyn Disk,
    missing: impl FnOnce(String) -> SettingsError,
) -> Result<PathBuf, SettingsError> {
    match sources.get("datadir").map(|value| value.setting.text()).filter(|text| !text.is_empty()) {
        Some(text) => {
            let path = host.absolute(Path::new(text));
            match disk.kind(&path) {
                Ok(PathKind::Directory) => Ok(path),
                Ok(PathKind::File) | Err(_) => Err(missing(text.to_owned())),
            }
        }
        None => host.default_datadir().ok_or(SettingsError::NoHome),
    }
}

/// The configuration file to read; `None` with `-noconf`.
fn conf_path(sources: &Sources, base: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    match sources.get("conf").map(|value| &value.setting) {
        Some(Setting::Negated) => None,
        Some(setting) if !setting.text().is_empty() => Some(base.join(setting.text()).components().collect()),
        _ => Some(default_conf(base, disk).unwrap_or_else(|| base.join(CONF_FILENAMES[0]))),
    }
}

/// The configuration file in a data directory.
fn default_conf(base: &Path, disk: &dyn Disk) -> Option<PathBuf> {
    CONF_FILENAMES.into_iter().map(|name| base.join(name)).find(|path| disk.kind(path).is_ok())
}

/// Core's `ReadConfigFiles`: reads the file and those that it includes. Returns false if the file is missing and was
/// not named.
fn read_main_conf(
    disk: &dyn Disk,
    path: &Path,
    base: &Path,
    sources: &mut Sources,
    notices: &mut Vec<Notice>,
) -> Result<bool, SettingsError> {
    if disk.kind(path) == Ok(PathKind::Directory) {
        return Err(ConfProblem::IsDirectory { path: path.to_owned() }.into());
    }
    let Some(text) = read_text(disk, path, sources.get("conf").is_some())? else { return Ok(false) };
    read_conf(&text, path, sources, notices)?;
    include(disk, base, sources, notices)?;
    Ok(true)
}

/// The text of a file; `None` if it is missing and was not named.
fn read_text(disk: &dyn Disk, path: &Path, is_named: bool) -> Result<Option<String>, ConfProblem> {
    let unreadable = |reason: String| ConfProblem::Unreadable { path: path.to_owned(), reason };
    let bytes = match read_whole(disk, path, CONF_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DiskErrorKind::NotFound && !is_named => return Ok(None),
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            return Err(ConfProblem::NotOpened { path: path.to_owned() });
        }
        Err(error) => return Err(unreadable(format!("it could not be opened ({error})"))),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        unreadable(format!("line {} is not UTF-8", before.iter().filter(|byte| **byte == b'\n').count() + 1))
    })?;
    Ok(Some(text))
}

/// Core's `ReadConfigStream`: adds the values of a file.
fn read_conf(text: &str, path: &Path, sources: &mut Sources, notices: &mut Vec<Notice>) -> Result<(), SettingsError> {
    let conf = conf::parse(text)?;
    for (section, line) in conf.sections {
        if section.parse::<Chain>().is_err() {
            sources.unknown_sections.push(format!("{}:{line} Section [{section}] is not recognized.", path.display()));
        }
    }
    for entry in conf.entries {
        let origin = Origin::File { path: path.to_owned(), line: entry.line };
        add_entry(&entry, &origin, sources, notices)?;
    }
    Ok(())
}

fn add_entry(
    entry: &conf::Entry,
    origin: &Origin,
    sources: &mut Sources,
    notices: &mut Vec<Notice>,
) -> Result<(), ConfProblem> {
    let key = Key::new(&entry.key);
    if key.name == "conf" {
        return Err(ConfProblem::Conf);
    }
    if key.name == "reindex" {
        notices.push(Notice::LogWarning(
            "reindex=1 is set in the configuration file, which will significantly slow down startup. Consider removing or commenting out this \
             option for better performance, unless there is currently a condition which makes rebuilding the indexes necessary"
                .to_owned(),
        ));
    }
    let known = lookup(key.name);
    if matches!(known, Known::Nothing) {
        notices.push(Notice::LogWarning(format!("Ignoring unknown configuration value {}", entry.key)));
        return Ok(());
    }
    let setting = interpret(&key, Some(&entry.value), known, notices).map_err(ConfProblem::Argument)?;
    sources.add(key.section.unwrap_or_default(), key.name, Value { setting, origin: origin.clone() });
    Ok(())
}

/// Reads the files that the file includes, one level deep, as in Core those of the chain's section first.
fn include(
    disk: &dyn Disk,
    base: &Path,
    sources: &mut Sources,
    notices: &mut Vec<Notice>,
) -> Result<(), SettingsError> {
    if !sources.on_command_line("includeconf").is_empty() {
        return Ok(());
    }
    let network = chain_name(sources)?;
    let sections = [network.as_str(), ""];
    let named = |sources: &Sources, section: &str| {
        let values = sources.in_section(section, "includeconf");
        let start = values.iter().rposition(|value| value.setting == Setting::Negated).map_or(0, |index| index + 1);
        values[start..].to_vec()
    };
    let counts = sections.map(|section| sources.in_section(section, "includeconf").len());
    for value in sections.map(|section| named(sources, section)).concat() {
        let name = value.setting.text();
        let path: PathBuf = base.join(name).components().collect();
        if disk.kind(&path) == Ok(PathKind::Directory) {
            return Err(ConfProblem::IncludeIsDirectory { path }.into());
        }
        let missing = || ConfProblem::NotIncluded { name: name.to_owned() };
        let text = read_text(disk, &path, false)?.ok_or_else(missing)?;
        // Core names an included file as the including file does.
        read_conf(&text, Path::new(name), sources, notices)?;
        notices.push(Notice::LogInfo(format!("Included configuration file {name}")));
    }
    let mut nested: Vec<String> = Vec::new();
    let mut add = |section: &str, skip: usize| {
        let values = sources.in_section(section, "includeconf").iter().skip(skip);
        nested.extend(values.map(|value| value.setting.text().to_owned()));
    };
    sections.iter().zip(counts).for_each(|(section, count)| add(section, count));
    let last_network = chain_name(sources)?;
    if last_network != network {
        add(&last_network, 0);
    }
    notices.extend(nested.iter().map(|name| {
        Notice::Stderr(format!(
            "warning: -includeconf cannot be used from included files; ignoring -includeconf={name}"
        ))
    }));
    Ok(())
}

/// Core's `GetChainTypeString`: the name as given.
fn chain_name(sources: &Sources) -> Result<String, SettingsError> {
    let switches = [("regtest", Chain::Regtest), ("signet", Chain::Signet), ("testnet", Chain::Test)];
    let mut chosen = Vec::new();
    for (name, chain) in switches.into_iter().chain([("testnet4", Chain::Testnet4)]) {
        if sources.get_for_chain(name).is_some_and(|value| parse::switch(value.setting.text())) {
            chosen.push(chain.name().to_owned());
        }
    }
    chosen.extend(sources.get("chain").map(|value| value.setting.text().to_owned()));
    match &chosen[..] {
        [] => Ok(Chain::Main.name().to_owned()),
        [chain] => Ok(chain.clone()),
        _ => Err(SettingsError::ChainCombination),
    }
}

/// Core's `GetChainType`.
fn chain(sources: &Sources) -> Result<Chain, SettingsError> {
    parse::chain(&chain_name(sources)?)
}

/// Reports a configuration file in the data directory that is not the one in use: an error, as in Core.
fn look_for_ignored_conf(
    sources: &Sources,
    used: Option<&Path>,
    first_base: &Path,
    base: &Path,
    disk: &dyn Disk,
    notices: &mut Vec<Notice>,
) -> Result<(), SettingsError> {
    let Some(ignored) = default_conf(base, disk).filter(|ignored| Some(ignored.as_path()) != used) else {
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
    if sources.get("allowignoredconf").is_some_and(|value| parse::switch(value.setting.text())) {
        notices.push(Notice::LogWarning(ignored.to_string()));
        return Ok(());
    }
    Err(ConfProblem::Ignored(ignored).into())
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

/// Reads `settings.json` in the chain's directory and adds its values. Returns `None` with `-nosettings`.
fn read_settings_file(
    disk: &dyn Disk,
    datadir: &Path,
    sources: &mut Sources,
    notices: &mut Vec<Notice>,
) -> Result<Option<SettingsFile>, SettingsError> {
    let name = match sources.get("settings").map(|value| &value.setting) {
        Some(Setting::Negated) => return Ok(None),
        Some(setting) if !setting.text().is_empty() => setting.text().to_owned(),
        _ => SETTINGS_FILENAME.to_owned(),
    };
    let file = SettingsFile::read(disk, &datadir.join(name))?;
    for (name, value) in &file.values {
        if matches!(lookup(Key::new(name).name), Known::Nothing) {
            notices.push(Notice::LogWarning(format!("Ignoring unknown rw_settings value {name}")));
        }
        sources.settings_lines.push(format!("Setting file arg: {name} = {value}"));
        for setting in SettingsFile::settings(value)? {
            sources.add("", name, Value { setting, origin: Origin::Settings });
        }
    }
    Ok(Some(file))
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
    if !sources.unknown_sections.is_empty() {
        let lines = sources.unknown_sections.iter().map(|line| format!("{line}\n"));
        notices.push(Notice::Warning(lines.collect()));
    }
}

/// Core's `LogOversizedDbCache`.
fn warn_of_memory(raw: &RawSettings, host: &Host, notices: &mut Vec<Notice>) {
    let Some(memory_mib) = host.memory_bytes.map(|bytes| bytes >> 20) else { return };
    let cache_mib = u64::try_from(raw.dbcache_mib.unwrap_or(DBCACHE_MIB_DEFAULT).max(DBCACHE_MIB_MIN)).unwrap_or(0);
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

impl Settings {
    /// The directory of the block index.
    pub(crate) fn index(&self) -> PathBuf {
        self.blocks.join("index")
    }

    /// The directory of the coins.
    pub(crate) fn coins(&self) -> PathBuf {
        self.datadir.join("chainstate")
    }
}

fn resolve(raw: RawSettings, datadir: PathBuf, host: &Host, disk: &dyn Disk) -> Result<Settings, SettingsError> {
    if raw.prune != Prune::Never && raw.reindex_chainstate {
        return Err(SettingsError::PruneWithReindexChainstate);
    }
    let blocks = match &raw.blocksdir {
        None => datadir.join("blocks"),
        Some(path) => {
            let text = path.display().to_string();
            let path = host.absolute(path);
            if disk.kind(&path) != Ok(PathKind::Directory) {
                return Err(SettingsError::NoSuchBlocksDir { text });
            }
            path.join(folder(raw.params.chain)).join("blocks")
        }
    };
    let dbcache_mib = raw.dbcache_mib.unwrap_or(DBCACHE_MIB_DEFAULT).max(DBCACHE_MIB_MIN);
    let below = |path: &PathBuf| datadir.join(path);
    Ok(Settings {
        params: raw.params,
        blocks,
        conf: None,
        has_conf: false,
        default_datadir: host.default_datadir(),
        dbcache_bytes: u64::try_from(dbcache_mib).unwrap_or(0).saturating_mul(1 << 20),
        threads: threads(raw.par, host.cores),
        prune: raw.prune,
        reindex: raw.reindex,
        reindex_chainstate: raw.reindex_chainstate,
        daemon: raw.daemon || raw.daemonwait,
        daemonwait: raw.daemonwait,
        copy: raw.copy,
        json: raw.json,
        assumevalid: raw.assumevalid,
        minimum_chain_work: raw.minimum_chain_work,
        blocksxor: raw.blocksxor,
        loadblock: raw.loadblock.iter().map(|path| host.absolute(path)).collect(),
        fastprune: raw.fastprune,
        pid: raw.pid.as_ref().map(below),
        alertnotify: raw.alertnotify,
        blocknotify: raw.blocknotify,
        startupnotify: raw.startupnotify,
        shutdownnotify: raw.shutdownnotify,
        checkblocks: raw.checkblocks,
        checklevel: raw.checklevel,
        sigengine: raw.sigengine,
        stopafterblockimport: raw.stopafterblockimport,
        stopatheight: raw.stopatheight,
        log: LogSettings { file: raw.log.file.as_ref().map(below), ..raw.log },
        rpc: RpcSettings { cookie: raw.rpc.cookie.as_ref().map(below), ..raw.rpc },
        net: raw.net,
        mocktime: raw.mocktime,
        max_tip_age_seconds: raw.max_tip_age_seconds,
        is_signet_of_others: raw.is_signet_of_others,
        blockversion: raw.blockversion,
        checkblockindex: raw.checkblockindex,
        checkaddrman: raw.checkaddrman,
        test: raw.test,
        file: None,
        notices: Vec::new(),
        arguments: Vec::new(),
        datadir,
    })
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
