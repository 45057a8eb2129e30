//! Bitcoin Core's options that Lydian lacks, and what happens if they are given. An option is accepted without effect
//! if Core accepts it too when built without the part that it belongs to (wallet, GUI), and if no program relies
//! on its effect; it is refused if a promise would be broken. Data only.
//!
//! An option that is given but switched off (`-txindex=0`) asks for nothing and is ignored. A test reads all of Core's
//! source and reports every option that is in neither table.

use lydian_options::Rules;

/// An option of Core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreOption {
    pub(crate) name: &'static str,
    pub(crate) given: Given,
    /// Why it has no effect, or what would go wrong.
    pub(crate) reason: &'static str,
}

/// What happens if the option is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// It has no effect; the log names it.
    Accepted,
    /// It is an error.
    Refused,
}

const REPLACED_BY_CLUSTERS: &str = "Bitcoin Core replaced it by -limitclustersize";
const NO_I2P: &str = "Lydian does not support I2P yet";
const NO_ONION_SERVICE: &str = "Lydian creates no onion service yet";
const NO_WALLET: &str = "Lydian has no wallet";
const NO_WINDOW: &str = "Lydian has no GUI";
const NO_SUCH_MEMORY: &str = "Lydian's store has no such setting; -dbcache sets the memory";
const NO_SERVER: &str = "Lydian has no such server";
const OTHER_TEST: &str = "tests that use it would test something else";

const fn accepted(name: &'static str, reason: &'static str) -> CoreOption {
    CoreOption { name, given: Given::Accepted, reason }
}

const fn refused(name: &'static str, reason: &'static str) -> CoreOption {
    CoreOption { name, given: Given::Refused, reason }
}

/// The rules of such an option: Core's, as far as they matter without its effect.
pub(crate) fn rules(name: &str) -> Option<Rules> {
    let option = CORE_OPTIONS.iter().find(|option| option.name == name)?;
    Some(Rules { is_secret: option.name == "torpassword", ..Rules::plain(option.name) })
}

/// By name.
pub(crate) const CORE_OPTIONS: &[CoreOption] = &[
    accepted("addresstype", NO_WALLET),
    refused("asmap", "peers would be grouped by address, not by your map"),
    accepted("avoidpartialspends", NO_WALLET),
    accepted("changetype", NO_WALLET),
    accepted("checkpoints", "Bitcoin Core removed checkpoints"),
    accepted("choosedatadir", NO_WINDOW),
    accepted("consolidatefeerate", NO_WALLET),
    accepted("dbbatchsize", NO_SUCH_MEMORY),
    refused("dbcrashratio", OTHER_TEST),
    accepted("disablewallet", NO_WALLET),
    accepted("discardfee", NO_WALLET),
    accepted("fallbackfee", NO_WALLET),
    accepted("forcecompactdb", NO_SUCH_MEMORY),
    accepted("i2pacceptincoming", NO_I2P),
    accepted("i2psam", NO_I2P),
    refused("ipcbind", NO_SERVER),
    accepted("keypool", NO_WALLET),
    accepted("lang", NO_WINDOW),
    accepted("limitancestorsize", REPLACED_BY_CLUSTERS),
    accepted("limitdescendantsize", REPLACED_BY_CLUSTERS),
    accepted("listenonion", NO_ONION_SERVICE),
    accepted("maxapsfee", NO_WALLET),
    accepted("maxtxfee", NO_WALLET),
    accepted("min", NO_WINDOW),
    accepted("mintxfee", NO_WALLET),
    accepted("natpmp", "Lydian does not map ports on routers yet"),
    accepted("peerbloomfilters", "Lydian serves no bloom filters"),
    accepted("prevoutfetchthreads", NO_SUCH_MEMORY),
    accepted("printpriority", "Lydian logs no fee rates of the transactions of a block"),
    refused("privatebroadcast", "your transactions would be announced to your peers"),
    accepted("resetguisettings", NO_WINDOW),
    accepted("signer", NO_WALLET),
    accepted("spendzeroconfchange", NO_WALLET),
    accepted("splash", NO_WINDOW),
    accepted("torcontrol", NO_ONION_SERVICE),
    accepted("torpassword", NO_ONION_SERVICE),
    accepted("txconfirmtarget", NO_WALLET),
    accepted("txreconciliation", "Lydian does not support Erlay, which is off by default in Bitcoin Core"),
    accepted("uiplatform", NO_WINDOW),
    accepted("unsafesqlitesync", NO_WALLET),
    accepted("wallet", NO_WALLET),
    accepted("walletbroadcast", NO_WALLET),
    accepted("walletcrosschain", NO_WALLET),
    accepted("walletdir", NO_WALLET),
    accepted("walletnotify", NO_WALLET),
    accepted("walletrbf", NO_WALLET),
    accepted("walletrejectlongchains", NO_WALLET),
];
