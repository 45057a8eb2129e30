//! Settings against disk and host. Input: the words of the command line, the disk, what the host is. Output: [`Settings`] with absolute
//! paths, and warnings for the log. Reads the configuration files; creates nothing.

use super::conf;
use super::core::{CORE_OPTIONS, Ignoring};
use super::error::SettingsError;
use super::nearest::nearest;
use super::net::NetSettings;
use super::parse;
use super::raw::{LogSettings, Prune, RawSettings};
use super::rpc::RpcSettings;
use super::sources::{Origin, Setting, Sources, Value};
use super::table::find;
use super::words::{Key, Known, Words, interpret, known_names, lookup};
use crate::host::Host;
use crate::limits::CONF_SIZE_MAX;
use lydian_consensus::{Chain, Params, U256};
use lydian_disk::{Disk, DiskErrorKind, PathKind, read_whole};
use lydian_primitives::{BlockHash, Height};
use std::path::{Path, PathBuf};

/// Core's `MIN_DB_CACHE`.
const DBCACHE_MIB_MIN: i64 = 4;

const DBCACHE_MIB_DEFAULT: i64 = 450;

const CONF_FILENAME: &str = "lydian.conf";

/// What the node runs with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) params: Params,
    /// The directory of this chain.
    pub(crate) datadir: PathBuf,
    /// Where blk*.dat lie.
    pub(crate) blocks: PathBuf,
    /// None: `-noconf`.
    pub(crate) conf: Option<PathBuf>,
    pub(crate) has_conf: bool,
    pub(crate) default_datadir: Option<PathBuf>,
    pub(crate) dbcache_bytes: u64,
    /// Worker threads, one at least.
    pub(crate) threads: usize,
    pub(crate) prune: Prune,
    /// Small block files.
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
    /// Who verifies signatures.
    pub(crate) sigengine: &'static str,
    pub(crate) stopafterblockimport: bool,
    pub(crate) stopatheight: Option<Height>,
    /// Its paths are absolute.
    pub(crate) log: LogSettings,
    /// Its paths are absolute.
    pub(crate) rpc: RpcSettings,
    pub(crate) net: NetSettings,
    /// What the clock says, for tests.
    pub(crate) mocktime: Option<u32>,
    /// With an older tip this node is far behind.
    pub(crate) max_tip_age_seconds: i64,
    /// For the log, once it is open.
    pub(crate) warnings: Vec<String>,
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

/// Reads the files, and decides what counts.
pub(crate) fn load(words: &Words, host: &Host, disk: &dyn Disk) -> Result<Settings, SettingsError> {
    let mut sources = words.sources.clone();
    let mut warnings = words.warnings.clone();
    let first_base = base(&sources, host, disk)?;
    let conf = conf_path(&sources, &first_base);
    let mut has_conf = false;
    if let Some(conf) = &conf {
        let must_exist = sources.get("conf").is_some();
        has_conf = read_conf(disk, conf, must_exist, &mut sources, &mut warnings)?;
        if has_conf {
            include(disk, &first_base, &mut sources, &mut warnings)?;
        }
    }
    let chain = chain(&sources)?;
    sources.select_network(chain.name());
    judge_foreign(&sources, &mut warnings)?;
    let lost = sources.at_top_only();
    if !lost.is_empty() {
        return Err(SettingsError::OtherNetwork { names: lost, chain: chain.name() });
    }
    let base = base(&sources, host, disk)?;
    let ignored = base.join(CONF_FILENAME);
    if let Some(used) = conf.as_ref().filter(|used| **used != ignored && disk.kind(&ignored).is_ok()) {
        return Err(SettingsError::IgnoredConf { ignored, used: used.clone() });
    }
    let raw = RawSettings::new(chain, &sources, host)?;
    warnings.extend(raw.net.warnings.iter().cloned());
    let mut settings = resolve(raw, base, host, disk)?;
    settings.conf = conf;
    settings.has_conf = has_conf;
    settings.warnings = warnings;
    settings.arguments = sources.log_lines(find);
    Ok(settings)
}

/// The directory of all chains; one that was named must exist.
fn base(sources: &Sources, host: &Host, disk: &dyn Disk) -> Result<PathBuf, SettingsError> {
    match sources.get("datadir").map(|value| value.setting.text()).filter(|text| !text.is_empty()) {
        Some(text) => {
            let path = host.absolute(Path::new(text));
            match disk.kind(&path) {
                Ok(PathKind::Directory) => Ok(path),
                Ok(PathKind::File) | Err(_) => Err(SettingsError::NoSuchDataDir { path: PathBuf::from(text) }),
            }
        }
        None => host.default_datadir().ok_or(SettingsError::NoHome),
    }
}

fn conf_path(sources: &Sources, base: &Path) -> Option<PathBuf> {
    match sources.get("conf").map(|value| &value.setting) {
        Some(Setting::Negated) => None,
        Some(setting) if !setting.text().is_empty() => Some(base.join(setting.text()).components().collect()),
        _ => Some(base.join(CONF_FILENAME)),
    }
}

/// Adds what a file says; false if there is none and none was named.
fn read_conf(
    disk: &dyn Disk,
    path: &Path,
    must_exist: bool,
    sources: &mut Sources,
    warnings: &mut Vec<String>,
) -> Result<bool, SettingsError> {
    let fail = |reason: String| SettingsError::ConfUnreadable { path: path.to_owned(), reason };
    let bytes = match read_whole(disk, path, CONF_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DiskErrorKind::NotFound && !must_exist => return Ok(false),
        Err(error) => return Err(fail(format!("it could not be opened ({error})"))),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        fail(format!(
            "line {} is not UTF-8",
            error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1
        ))
    })?;
    let conf = conf::parse(&text, path)?;
    for (section, line) in conf.sections {
        if section.parse::<Chain>().is_err() {
            warnings.push(format!("{}:{line}: Section [{section}] is not recognized.", path.display()));
        }
    }
    for entry in conf.entries {
        let origin = Origin::File { path: path.to_owned(), line: entry.line };
        add_entry(&entry, &origin, sources, warnings)?;
    }
    Ok(true)
}

fn add_entry(
    entry: &conf::Entry,
    origin: &Origin,
    sources: &mut Sources,
    warnings: &mut Vec<String>,
) -> Result<(), SettingsError> {
    let key = Key::new(&entry.key);
    if key.name == "conf" {
        let must = "given on the command line; use includeconf= to include additional config files".to_owned();
        return Err(SettingsError::BadValue { origin: origin.clone(), name: "conf", value: entry.value.clone(), must });
    }
    let known = lookup(key.name);
    if matches!(known, Known::Nothing) {
        let hint = nearest(key.name, known_names()).map(|name| format!("; the nearest is {name}")).unwrap_or_default();
        warnings.push(format!("{origin}Ignoring unknown configuration value {}{hint}", entry.key));
        return Ok(());
    }
    if key.name == "reindex" && !key.is_negated {
        warnings.push(format!(
            "{origin}reindex={} is set in the configuration file, which makes every start validate everything again",
            entry.value
        ));
    }
    let setting = interpret(&key, Some(&entry.value), known, origin, warnings)?;
    sources.add(key.section.unwrap_or_default(), key.name, Value { setting, origin: origin.clone() });
    Ok(())
}

/// Reads the files that the file includes, one level deep, those of the chain's section first, as Core does.
fn include(
    disk: &dyn Disk,
    base: &Path,
    sources: &mut Sources,
    warnings: &mut Vec<String>,
) -> Result<(), SettingsError> {
    if !sources.on_command_line("includeconf").is_empty() {
        return Ok(());
    }
    let network = chain(sources)?.name();
    let named = |sources: &Sources, section: &str| {
        let values = sources.in_section(section, "includeconf");
        let start = values.iter().rposition(|value| value.setting == Setting::Negated).map_or(0, |index| index + 1);
        values[start..].to_vec()
    };
    let before: Vec<Value> = ["main", "test", "testnet4", "signet", "regtest", ""]
        .into_iter()
        .flat_map(|section| sources.in_section(section, "includeconf").to_vec())
        .collect();
    for value in [named(sources, network), named(sources, "")].concat() {
        let path: PathBuf = base.join(value.setting.text()).components().collect();
        read_conf(disk, &path, true, sources, warnings)?;
    }
    for section in [network, ""] {
        for value in sources.in_section(section, "includeconf").iter().filter(|value| !before.contains(value)) {
            let Value { setting, origin } = value;
            warnings.push(format!(
                "{origin}-includeconf cannot be used from included files; ignoring -includeconf={}",
                setting.text()
            ));
        }
    }
    Ok(())
}

/// Core's `GetChainArg`.
fn chain(sources: &Sources) -> Result<Chain, SettingsError> {
    let switches = [
        ("regtest", Chain::Regtest),
        ("signet", Chain::Signet),
        ("testnet", Chain::Test),
        ("testnet4", Chain::Testnet4),
    ];
    let mut chosen = Vec::new();
    for (name, chain) in switches {
        if let Some(value) = sources.get_for_chain(name)
            && parse::switch(value.setting.text()).map_err(|must| bad(name, value, must))?
        {
            chosen.push(chain);
        }
    }
    if let Some(value) = sources.get("chain") {
        chosen.push(parse::chain(value.setting.text()).map_err(|must| bad("chain", value, must))?);
    }
    match chosen[..] {
        [] => Ok(Chain::Main),
        [chain] => Ok(chain),
        _ => Err(SettingsError::ChainCombination),
    }
}

fn bad(name: &'static str, value: &Value, must: String) -> SettingsError {
    SettingsError::BadValue { origin: value.origin.clone(), name, value: value.setting.text().to_owned(), must }
}

/// Core's options that we do not have: an error, or a warning.
fn judge_foreign(sources: &Sources, warnings: &mut Vec<String>) -> Result<(), SettingsError> {
    for option in CORE_OPTIONS {
        let Some(Value { setting, origin }) = sources.get(option.name) else { continue };
        if *setting == Setting::Negated || setting.text() == "0" {
            continue;
        }
        match option.ignoring {
            Ignoring::IsSafe => warnings.push(format!("{origin}-{} has no effect: {}", option.name, option.reason)),
            Ignoring::BreaksPromise => {
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
    /// Where the index of the blocks lies.
    pub(crate) fn index(&self) -> PathBuf {
        self.blocks.join("index")
    }

    /// Where the coins lie.
    pub(crate) fn coins(&self) -> PathBuf {
        self.datadir.join("chainstate")
    }
}

fn resolve(raw: RawSettings, base: PathBuf, host: &Host, disk: &dyn Disk) -> Result<Settings, SettingsError> {
    if raw.prune != Prune::Never && raw.reindex_chainstate {
        return Err(SettingsError::PruneWithReindexChainstate);
    }
    let mut params = Params::new(raw.chain);
    for fork in &raw.testactivationheight {
        params =
            params.with_activation_height(fork).map_err(|error| SettingsError::Fork { sentence: error.to_string() })?;
    }
    let datadir = base.join(folder(raw.chain));
    let blocks = match &raw.blocksdir {
        None => datadir.join("blocks"),
        Some(path) => {
            let path = host.absolute(path);
            if disk.kind(&path) != Ok(PathKind::Directory) {
                return Err(SettingsError::NoSuchBlocksDir { path });
            }
            path.join(folder(raw.chain)).join("blocks")
        }
    };
    let dbcache_mib = raw.dbcache_mib.unwrap_or(DBCACHE_MIB_DEFAULT).max(DBCACHE_MIB_MIN);
    let below = |path: &PathBuf| datadir.join(path);
    Ok(Settings {
        params,
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
        warnings: Vec::new(),
        arguments: Vec::new(),
        datadir,
    })
}

/// `-par`: 0 is every core, below zero that many stay free, and one works at least.
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
