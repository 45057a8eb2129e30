//! Every option given its type. Input: [`Sources`] with the chain selected. Output: [`RawSettings`], or the first value that is not
//! understood. Touches nothing, no disk and no clock; the host is asked for names and for how many files may be open.

use super::error::SettingsError;
use super::net::{NetProblem, NetSettings, has_cjdns};
use super::parse;
use super::rpc::RpcSettings;
use super::sources::{Origin, Setting, Sources, Value};
use super::table::{Kind, Opt, find};
use crate::host::Host;
use crate::log::{Categories, Levels};
use lydian_consensus::{Chain, U256};
use lydian_engine::TIP_AGE_SECONDS_DEFAULT;
use lydian_primitives::{BlockHash, Height};
use std::path::PathBuf;

/// The options, as they were given; `None` where the default depends on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawSettings {
    pub(crate) chain: Chain,
    pub(crate) datadir: Option<PathBuf>,
    pub(crate) blocksdir: Option<PathBuf>,
    pub(crate) dbcache_mib: Option<i64>,
    pub(crate) par: i64,
    pub(crate) prune: Prune,
    pub(crate) fastprune: bool,
    pub(crate) reindex: bool,
    pub(crate) reindex_chainstate: bool,
    pub(crate) daemon: bool,
    pub(crate) daemonwait: bool,
    pub(crate) copy: bool,
    pub(crate) json: bool,
    /// None: every script is verified.
    pub(crate) assumevalid: Option<BlockHash>,
    pub(crate) minimum_chain_work: U256,
    pub(crate) blocksxor: bool,
    pub(crate) loadblock: Vec<PathBuf>,
    /// None: no pid file.
    pub(crate) pid: Option<PathBuf>,
    pub(crate) alertnotify: Vec<String>,
    pub(crate) blocknotify: Vec<String>,
    pub(crate) startupnotify: Vec<String>,
    pub(crate) shutdownnotify: Vec<String>,
    /// 0: all.
    pub(crate) checkblocks: u32,
    pub(crate) checklevel: u8,
    /// Who verifies signatures.
    pub(crate) sigengine: &'static str,
    pub(crate) stopafterblockimport: bool,
    pub(crate) stopatheight: Option<Height>,
    pub(crate) testactivationheight: Vec<String>,
    pub(crate) log: LogSettings,
    pub(crate) rpc: RpcSettings,
    pub(crate) net: NetSettings,
    /// `-mocktime`: what the clock says, for tests.
    pub(crate) mocktime: Option<u32>,
    /// `-maxtipage`: with an older tip this node is far behind.
    pub(crate) max_tip_age_seconds: i64,
}

/// What happens to old block files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prune {
    Never,
    /// When somebody asks for it.
    OnRequest,
    /// So that they stay below this size.
    Target {
        bytes: u64,
    },
}

/// What is logged, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// None: no file.
    pub(crate) file: Option<PathBuf>,
    /// None: where it is sensible.
    pub(crate) console: Option<bool>,
    pub(crate) has_micros: bool,
    pub(crate) shrink: bool,
    pub(crate) categories: Categories,
    pub(crate) levels: Levels,
}

impl RawSettings {
    pub(crate) fn new(chain: Chain, sources: &Sources, host: &Host) -> Result<RawSettings, SettingsError> {
        let given = Given(sources);
        let checkblocks = given.integer("checkblocks")?.unwrap_or(6);
        Ok(RawSettings {
            chain,
            datadir: given.path("datadir", None)?,
            blocksdir: given.path("blocksdir", None)?,
            dbcache_mib: given.integer("dbcache")?,
            par: given.integer("par")?.unwrap_or(0),
            prune: prune(given.integer("prune")?.unwrap_or(0))?,
            fastprune: given.switch("fastprune")?.unwrap_or(false),
            reindex: given.switch("reindex")?.unwrap_or(false),
            reindex_chainstate: given.switch("reindex-chainstate")?.unwrap_or(false),
            daemon: given.switch("daemon")?.unwrap_or(false),
            daemonwait: given.switch("daemonwait")?.unwrap_or(false),
            copy: given.switch("copy")?.unwrap_or(false),
            json: given.switch("json")?.unwrap_or(false),
            assumevalid: given.hash("assumevalid")?.filter(|bytes| *bytes != [0; 32]).map(BlockHash),
            minimum_chain_work: given
                .hash("minimumchainwork")?
                .map_or_else(|| minimum_chain_work(chain), |bytes| parse::work(&bytes)),
            blocksxor: given.switch("blocksxor")?.unwrap_or(true),
            loadblock: given.texts("loadblock")?.into_iter().map(PathBuf::from).collect(),
            pid: given.path("pid", Some("bitcoind.pid"))?,
            alertnotify: given.texts("alertnotify")?,
            blocknotify: given.texts("blocknotify")?,
            startupnotify: given.texts("startupnotify")?,
            shutdownnotify: given.texts("shutdownnotify")?,
            // Core: what is not above zero means all.
            checkblocks: u32::try_from(checkblocks.max(0)).unwrap_or(0),
            checklevel: u8::try_from(given.integer("checklevel")?.unwrap_or(3)).unwrap_or(3),
            sigengine: given.signature_engine("sigengine")?.unwrap_or("auto"),
            stopafterblockimport: given.switch("stopafterblockimport")?.unwrap_or(false),
            stopatheight: given
                .integer("stopatheight")?
                .and_then(|height| u32::try_from(height).ok())
                .filter(|height| *height > 0)
                .map(Height),
            testactivationheight: given.list("testactivationheight", parse::fork)?,
            log: log(&given)?,
            rpc: RpcSettings::new(chain, &given, has_cjdns(&given)?)?,
            net: NetSettings::new(chain, &given, host)?,
            // Core: a time that was never set is none.
            mocktime: given.integer("mocktime")?.and_then(|time| u32::try_from(time).ok()).filter(|time| *time > 0),
            max_tip_age_seconds: given.integer("maxtipage")?.unwrap_or(TIP_AGE_SECONDS_DEFAULT),
        })
    }
}

/// Core's `nMinimumChainWork` (kernel/chainparams.cpp of 31.99).
fn minimum_chain_work(chain: Chain) -> U256 {
    let (high, low) = match chain {
        Chain::Main => (0x1, 0x1287_50f8_2f4c_3661_53a3_a030),
        Chain::Test => (0, 0x17dd_e1c6_49f3_708d_14b6),
        Chain::Testnet4 => (0, 0x09a0_fe15_d017_7d08_6304),
        Chain::Signet => (0, 0x0b46_3ea0_a4b8),
        Chain::Regtest => (0u64, 0u128),
    };
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&low.to_le_bytes());
    U256::from_le_bytes(&bytes).checked_add(U256::from_u64(high).shifted_left(96)).unwrap_or(U256::from_u64(0))
}

fn prune(mib: i64) -> Result<Prune, SettingsError> {
    match u64::try_from(mib) {
        Err(_) => Err(SettingsError::PruneNegative),
        Ok(0) => Ok(Prune::Never),
        Ok(1) => Ok(Prune::OnRequest),
        Ok(_) if mib < parse::PRUNE_MIB_MIN => Err(SettingsError::PruneTooSmall),
        Ok(mib) => Ok(Prune::Target { bytes: mib.saturating_mul(1 << 20) }),
    }
}

fn log(given: &Given<'_>) -> Result<LogSettings, SettingsError> {
    let mut categories = Categories::default();
    given.list("debug", |text| match text {
        // Core: what stands before the last of these does not count.
        "0" | "none" => {
            categories = Categories::default();
            Ok(())
        }
        _ => categories.enable(text),
    })?;
    given.list("debugexclude", |text| categories.disable(text))?;
    let mut levels = Levels::default();
    given.list("loglevel", |text| levels.set(text))?;
    Ok(LogSettings {
        file: given.path("debuglogfile", Some("debug.log"))?,
        console: given.switch("printtoconsole")?,
        has_micros: given.switch("logtimemicros")?.unwrap_or(false),
        shrink: given.switch("shrinkdebugfile")?.unwrap_or(categories == Categories::default()),
        categories,
        levels,
    })
}

/// Typed reading by name. The type asked for must be the table's.
pub(super) struct Given<'a>(&'a Sources);

impl Given<'_> {
    pub(super) fn switch(&self, name: &'static str) -> Result<Option<bool>, SettingsError> {
        let _ = option(name, |kind| kind == Kind::Switch);
        self.one(name, parse::switch)
    }

    pub(super) fn integer(&self, name: &'static str) -> Result<Option<i64>, SettingsError> {
        let opt = option(name, |kind| matches!(kind, Kind::Integer { .. }));
        let Kind::Integer { min, max } = opt.kind else { return Ok(None) };
        match self.0.get(name) {
            Some(Value { setting: Setting::Text(text), origin }) if text.is_empty() => {
                Err(SettingsError::NoValue { origin: origin.clone(), name: opt.name })
            }
            _ => self.one(name, |text| parse::integer(text, min, max)),
        }
    }

    fn hash(&self, name: &'static str) -> Result<Option<[u8; 32]>, SettingsError> {
        let _ = option(name, |kind| kind == Kind::Hash);
        self.one(name, parse::hash)
    }

    fn signature_engine(&self, name: &'static str) -> Result<Option<&'static str>, SettingsError> {
        let _ = option(name, |kind| kind == Kind::SignatureEngine);
        self.one(name, parse::signature_engine)
    }

    /// `default` counts where nothing is given, or nothing after `=`; a negation is no path.
    pub(super) fn path(&self, name: &'static str, default: Option<&str>) -> Result<Option<PathBuf>, SettingsError> {
        let _ = option(name, |kind| kind == Kind::Path);
        Ok(match self.0.get(name).map(|value| &value.setting) {
            Some(Setting::Negated) => None,
            Some(setting) if !setting.text().is_empty() => Some(PathBuf::from(setting.text())),
            _ => default.map(PathBuf::from),
        })
    }

    pub(super) fn texts(&self, name: &'static str) -> Result<Vec<String>, SettingsError> {
        self.list(name, |text| match text {
            "" => Err("more than nothing".to_owned()),
            _ => Ok(text.to_owned()),
        })
    }

    /// Any text; `None` where nothing is given.
    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        let _ = option(name, |kind| kind == Kind::Text);
        self.0.get(name).map(|value| value.setting.text().to_owned())
    }

    /// Given in any way, negated too: Core's `IsArgSet`.
    pub(super) fn is_set(&self, name: &'static str) -> bool {
        let _ = option(name, |_| true);
        self.0.get(name).is_some()
    }

    /// Core's `IsArgNegated`.
    pub(super) fn is_negated(&self, name: &'static str) -> bool {
        let _ = option(name, |_| true);
        self.0.get(name).is_some_and(|value| value.setting == Setting::Negated)
    }

    /// The value that counts, with Core's words for what is wrong with it.
    pub(super) fn net_one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Option<T>, SettingsError> {
        let _ = option(name, |_| true);
        let read = |value: &Value| parse(value.setting.text()).map_err(|problem| net_problem(value, problem));
        self.0.get(name).map(read).transpose()
    }

    /// All values that count, with Core's words for what is wrong with the first that is.
    pub(super) fn net_list<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Vec<T>, SettingsError> {
        let _ = option(name, |_| true);
        let read = |value: &Value| parse(value.setting.text()).map_err(|problem| net_problem(value, problem));
        self.0.list(name).into_iter().map(read).collect()
    }

    /// What is wrong with options together, said of one of them.
    pub(super) fn problem(&self, name: &'static str, problem: NetProblem) -> SettingsError {
        let origin = self.0.get(name).map_or(Origin::CommandLine, |value| value.origin.clone());
        SettingsError::Net { origin, problem }
    }

    pub(super) fn one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, SettingsError> {
        let value = self.0.get(name);
        value.map(|value| parse(value.setting.text()).map_err(|must| bad_value(name, value, must))).transpose()
    }

    pub(super) fn list<T>(
        &self,
        name: &'static str,
        mut parse: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, SettingsError> {
        let _ = option(name, |_| true);
        let read = |value: &Value| parse(value.setting.text()).map_err(|must| bad_value(name, value, must));
        self.0.list(name).into_iter().map(read).collect()
    }
}

/// The table's entry. Asking for an option that is not there, or as something else, is our mistake.
fn option(name: &str, fits: impl Fn(Kind) -> bool) -> &'static Opt {
    let option = find(name);
    assert!(option.is_some_and(|option| fits(option.kind)), "-{name} is not of this kind in the table");
    option.unwrap_or(&super::table::OPTIONS[0])
}

fn net_problem(value: &Value, problem: NetProblem) -> SettingsError {
    SettingsError::Net { origin: value.origin.clone(), problem }
}

fn bad_value(name: &'static str, value: &Value, must: String) -> SettingsError {
    let origin: Origin = value.origin.clone();
    SettingsError::BadValue { origin, name, value: value.setting.text().to_owned(), must }
}
