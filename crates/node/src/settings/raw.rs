//! Gives every option its type. Input: [`Sources`] with the chain selected. Output: [`RawSettings`], or the first
//! invalid value. Accesses neither disk nor clock; asks the host for names and for the number of files that may be
//! open.

use super::deployments;
use super::error::{SettingsError, ValueProblem};
use super::net::{NetProblem, NetSettings, has_cjdns};
use super::notice::Notice;
use super::parse;
use super::rpc::RpcSettings;
use super::sources::{Setting, Sources, Value};
use super::table::{Kind, Opt, find};
use super::unused;
use crate::host::Host;
use crate::log::{Categories, Levels, LogForm};
use lydian_consensus::{Chain, Params, U256};
use lydian_engine::TIP_AGE_SECONDS_DEFAULT;
use lydian_primitives::{BlockHash, Height};
use std::path::PathBuf;

/// The options as given; `None` if the default depends on the host.
#[derive(Clone, Debug)]
pub(crate) struct RawSettings {
    pub(crate) params: Params,
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
    /// `None` if every script is verified.
    pub(crate) assumevalid: Option<BlockHash>,
    pub(crate) minimum_chain_work: U256,
    pub(crate) blocksxor: bool,
    pub(crate) loadblock: Vec<PathBuf>,
    /// `None` if there is no pid file.
    pub(crate) pid: Option<PathBuf>,
    pub(crate) alertnotify: Vec<String>,
    pub(crate) blocknotify: Vec<String>,
    pub(crate) startupnotify: Vec<String>,
    pub(crate) shutdownnotify: Vec<String>,
    /// 0 means all.
    pub(crate) checkblocks: u32,
    pub(crate) checklevel: u8,
    /// The engine that verifies signatures.
    pub(crate) sigengine: &'static str,
    pub(crate) stopafterblockimport: bool,
    pub(crate) stopatheight: Option<Height>,
    /// A signet with its own challenge.
    pub(crate) is_signet_of_others: bool,
    /// `-blockversion`: version of blocks generated on demand, on a chain that permits it.
    pub(crate) blockversion: Option<i32>,
    /// `-checkblockindex`: number of operations between two checks of the header tree; 0 means never.
    pub(crate) checkblockindex: u32,
    /// `-checkaddrman`: the same for the address manager.
    pub(crate) checkaddrman: u32,
    /// `-test`.
    pub(crate) test: TestOptions,
    pub(crate) log: LogSettings,
    pub(crate) rpc: RpcSettings,
    pub(crate) net: NetSettings,
    /// `-mocktime`: the time of the clock, for tests.
    pub(crate) mocktime: Option<u32>,
    /// `-maxtipage`: with an older tip, the node is in initial block download.
    pub(crate) max_tip_age_seconds: i64,
}

/// Core's `TEST_OPTIONS_DOC`, without `bip94`, which is a rule of the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// `addrman`: the address manager places addresses as Core's does in its tests.
    pub(crate) deterministic_addrman: bool,
    /// `reindex_after_failure_noninteractive_yes`.
    pub(crate) reindex_after_failure: bool,
}

/// When old block files are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prune {
    Never,
    /// On request.
    OnRequest,
    /// As soon as the files exceed this size.
    Target {
        bytes: u64,
    },
}

/// What is logged, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// `None` if there is no file.
    pub(crate) file: Option<PathBuf>,
    /// `None` if the default applies, which depends on the terminal.
    pub(crate) console: Option<bool>,
    pub(crate) has_micros: bool,
    pub(crate) shrink: bool,
    pub(crate) categories: Categories,
    pub(crate) levels: Levels,
    pub(crate) form: LogForm,
}

impl RawSettings {
    pub(crate) fn new(
        params: Params,
        sources: &Sources,
        host: &Host,
        notices: &mut Vec<Notice>,
    ) -> Result<RawSettings, SettingsError> {
        let given = Given(sources);
        let chain = params.chain;
        let is_signet_of_others = chain == Chain::Signet && given.is_set("signetchallenge");
        let default_work = if is_signet_of_others { U256::from_u64(0) } else { minimum_chain_work(chain) };
        let net = NetSettings::new(chain, &given, host, notices)?;
        unused::check(chain, &given, net.listens)?;
        let checkblocks = given.integer("checkblocks").unwrap_or(6);
        let number = |name, default| u32::try_from(given.integer(name).unwrap_or(default).max(0)).unwrap_or(u32::MAX);
        Ok(RawSettings {
            params,
            blocksdir: given.path("blocksdir", None),
            dbcache_mib: given.integer("dbcache"),
            par: given.integer("par").unwrap_or(0),
            prune: prune(given.integer("prune").unwrap_or(0))?,
            fastprune: given.switch("fastprune").unwrap_or(false),
            reindex: given.switch("reindex").unwrap_or(false),
            reindex_chainstate: given.switch("reindex-chainstate").unwrap_or(false),
            daemon: given.switch("daemon").unwrap_or(false),
            daemonwait: given.switch("daemonwait").unwrap_or(false),
            copy: given.switch("copy").unwrap_or(false),
            json: given.switch("json").unwrap_or(false),
            assumevalid: given.assumevalid()?,
            minimum_chain_work: given.minimum_chain_work()?.unwrap_or(default_work),
            blocksxor: given.switch("blocksxor").unwrap_or(true),
            loadblock: given.texts("loadblock").into_iter().map(PathBuf::from).collect(),
            pid: given.path("pid", Some("bitcoind.pid")),
            alertnotify: given.command("alertnotify"),
            blocknotify: given.command("blocknotify"),
            startupnotify: given.command("startupnotify"),
            shutdownnotify: given.texts("shutdownnotify"),
            // As in Core, a value that is not positive means all.
            checkblocks: u32::try_from(checkblocks.max(0)).unwrap_or(u32::MAX),
            checklevel: u8::try_from(given.integer("checklevel").unwrap_or(3)).unwrap_or(3),
            sigengine: given.one("sigengine", parse::signature_engine)?.unwrap_or("auto"),
            stopafterblockimport: given.switch("stopafterblockimport").unwrap_or(false),
            stopatheight: given
                .integer("stopatheight")
                .and_then(|height| u32::try_from(height).ok())
                .filter(|height| *height > 0)
                .map(Height),
            is_signet_of_others,
            blockversion: given.integer("blockversion").and_then(|version| i32::try_from(version).ok()),
            // As in Core, the option without a value means 1.
            checkblockindex: match given.text("checkblockindex").as_deref() {
                Some("") => 1,
                _ => number("checkblockindex", 0),
            },
            checkaddrman: number("checkaddrman", 0),
            test: deployments::test_options(chain, &given, notices)?,
            log: log(&given, notices)?,
            rpc: RpcSettings::new(chain, &given, has_cjdns(&given)?)?,
            net,
            mocktime: given.mocktime()?,
            max_tip_age_seconds: given.integer("maxtipage").unwrap_or(TIP_AGE_SECONDS_DEFAULT),
        })
    }
}

/// Core's `nMinimumChainWork` (kernel/chainparams.cpp of 31.99).
pub(crate) fn minimum_chain_work(chain: Chain) -> U256 {
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

fn log(given: &Given<'_>, notices: &mut Vec<Notice>) -> Result<LogSettings, SettingsError> {
    let mut categories = Categories::default();
    let unknown = |option, text: &str| SettingsError::from(ValueProblem::Category { option, text: text.to_owned() });
    given.list("debug", |text| match text {
        // As in Core, everything before the last of these is ignored.
        "0" | "none" => {
            categories = Categories::default();
            Ok(())
        }
        _ => {
            notices.extend(Categories::deprecated(text).map(Notice::LogWarning));
            categories.enable(text).map_err(|_| unknown("debug", text))
        }
    })?;
    given.list("debugexclude", |text| {
        notices.extend(Categories::deprecated(text).map(Notice::LogWarning));
        categories.disable(text).map_err(|_| unknown("debugexclude", text))
    })?;
    let mut levels = Levels::default();
    given.list("loglevel", |text| {
        levels.set(text).map_err(|_| {
            let (text, levels) = (text.to_owned(), Levels::settable());
            // As in Core, a colon among the first three characters does not start a level.
            match text.get(3..).is_some_and(|rest| rest.contains(':')) {
                true => ValueProblem::CategoryLevel { text, categories: Categories::names(), levels }.into(),
                false => ValueProblem::GlobalLevel { text, levels }.into(),
            }
        })
    })?;
    Ok(LogSettings {
        file: given.path("debuglogfile", Some("debug.log")),
        console: given.switch("printtoconsole"),
        has_micros: given.switch("logtimemicros").unwrap_or(false),
        shrink: given.switch("shrinkdebugfile").unwrap_or(categories == Categories::default()),
        categories,
        levels,
        form: log_form(given),
    })
}

fn log_form(given: &Given<'_>) -> LogForm {
    let form = LogForm::default();
    LogForm {
        has_timestamps: given.switch("logtimestamps").unwrap_or(form.has_timestamps),
        has_thread_names: given.switch("logthreadnames").unwrap_or(form.has_thread_names),
        has_source_locations: given.switch("logsourcelocations").unwrap_or(form.has_source_locations),
        has_level_always: given.switch("loglevelalways").unwrap_or(form.has_level_always),
        is_rate_limited: given.switch("logratelimit").unwrap_or(form.is_rate_limited),
        has_ips: given.switch("logips").unwrap_or(form.has_ips),
    }
}

/// Typed access to options by name. The requested type must be that of the table.
pub(super) struct Given<'a>(&'a Sources);

impl<'a> Given<'a> {
    pub(super) fn new(sources: &'a Sources) -> Given<'a> {
        Given(sources)
    }

    pub(super) fn switch(&self, name: &'static str) -> Option<bool> {
        let _ = option(name, |kind| kind == Kind::Switch);
        self.0.get(name).map(|value| parse::switch(value.setting.text()))
    }

    /// The value as Core reads it, clamped to the limits of the table.
    pub(super) fn integer(&self, name: &'static str) -> Option<i64> {
        let opt = option(name, |kind| matches!(kind, Kind::Integer { .. }));
        let Kind::Integer { min, max } = opt.kind else { return None };
        self.0.get(name).map(|value| parse::atoi(value.setting.text()).clamp(min, max))
    }

    fn assumevalid(&self) -> Result<Option<BlockHash>, SettingsError> {
        let hash = self.one("assumevalid", |text| {
            parse::hash(text).ok_or_else(|| ValueProblem::AssumeValid { text: text.to_owned() }.into())
        })?;
        Ok(hash.filter(|bytes| *bytes != [0; 32]).map(BlockHash))
    }

    fn minimum_chain_work(&self) -> Result<Option<U256>, SettingsError> {
        let hash = self.one("minimumchainwork", |text| {
            parse::hash(text).ok_or_else(|| ValueProblem::MinimumWork { text: text.to_owned() }.into())
        })?;
        Ok(hash.map(|bytes| parse::work(&bytes)))
    }

    /// As in Core, 0 means that no time is set.
    fn mocktime(&self) -> Result<Option<u32>, SettingsError> {
        let time = self.one("mocktime", |text| {
            let value = parse::atoi(text);
            u32::try_from(value).map_err(|_| ValueProblem::MockTime { value }.into())
        })?;
        Ok(time.filter(|time| *time > 0))
    }

    /// Returns `default` if the option is missing or its value is empty, `None` if it is negated.
    pub(super) fn path(&self, name: &'static str, default: Option<&str>) -> Option<PathBuf> {
        let _ = option(name, |kind| kind == Kind::Path);
        match self.0.get(name).map(|value| &value.setting) {
            Some(Setting::Negated) => None,
            Some(setting) if !setting.text().is_empty() => Some(PathBuf::from(setting.text())),
            _ => default.map(PathBuf::from),
        }
    }

    /// All values that count and are not empty.
    pub(super) fn texts(&self, name: &'static str) -> Vec<String> {
        let _ = option(name, |_| true);
        let texts = self.0.list(name).into_iter().map(|value| value.setting.text());
        texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }

    /// The one command that counts, if any.
    fn command(&self, name: &'static str) -> Vec<String> {
        let _ = option(name, |kind| kind == Kind::Command);
        let value = self.0.get(name).filter(|value| value.setting != Setting::Negated);
        value.map(|value| value.setting.text().to_owned()).into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// Any text; `None` if the option is missing.
    pub(super) fn text(&self, name: &'static str) -> Option<String> {
        let _ = option(name, |_| true);
        self.0.get(name).map(|value| value.setting.text().to_owned())
    }

    /// The value of an option that may have no effect here.
    pub(super) fn core(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.setting.text())
    }

    /// All its values that count.
    pub(super) fn core_all(&self, name: &str) -> Vec<&'a str> {
        self.0.list(name).into_iter().map(|value| value.setting.text()).collect()
    }

    /// Whether the option is given in any way, also negated: Core's `IsArgSet`.
    pub(super) fn is_set(&self, name: &'static str) -> bool {
        self.0.get(name).is_some()
    }

    /// Core's `IsArgNegated`.
    pub(super) fn is_negated(&self, name: &'static str) -> bool {
        let _ = option(name, |_| true);
        self.0.get(name).is_some_and(|value| value.setting == Setting::Negated)
    }

    /// The value that counts, or Core's error for it.
    pub(super) fn net_one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Option<T>, SettingsError> {
        self.one(name, |text| parse(text).map_err(SettingsError::from))
    }

    /// All values that count, or Core's error for the first invalid one.
    pub(super) fn net_list<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, NetProblem>,
    ) -> Result<Vec<T>, SettingsError> {
        self.list(name, |text| parse(text).map_err(SettingsError::from))
    }

    pub(super) fn one<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, SettingsError>,
    ) -> Result<Option<T>, SettingsError> {
        let _ = option(name, |_| true);
        self.0.get(name).map(|value| parse(value.setting.text())).transpose()
    }

    pub(super) fn list<T>(
        &self,
        name: &'static str,
        mut parse: impl FnMut(&str) -> Result<T, SettingsError>,
    ) -> Result<Vec<T>, SettingsError> {
        let _ = option(name, |_| true);
        let read = |value: &Value| parse(value.setting.text());
        self.0.list(name).into_iter().map(read).collect()
    }
}

/// The table's entry. Asking for an option that is not in the table, or for another type, is a bug.
fn option(name: &str, fits: impl Fn(Kind) -> bool) -> &'static Opt {
    let option = find(name);
    assert!(option.is_some_and(|option| fits(option.kind)), "-{name} is not of this kind in the table");
    option.unwrap_or(&super::table::OPTIONS[0])
}
