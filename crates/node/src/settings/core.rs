//! Bitcoin Core's options that Lydian does not have, each with what happens to somebody who gives it: an error where ignoring it would
//! break a promise, a warning where nothing depends on it. Data only.
//!
//! An option that is given but switched off (`-txindex=0`, `-nolisten`) asks for nothing and is passed over. A test reads Core's source and
//! finds an option that is in neither table.

/// One option of Core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreOption {
    pub(crate) name: &'static str,
    pub(crate) ignoring: Ignoring,
    /// Why it may be ignored, or what would go wrong.
    pub(crate) reason: &'static str,
}

/// Whether an option may be ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignoring {
    /// A warning: what it would change is not there to be changed.
    IsSafe,
    /// An error: whoever gives it relies on something that would not be so.
    BreaksPromise,
}

const NO_MEMPOOL: &str = "Lydian has no mempool yet";
const NO_MINING: &str = "Lydian makes no blocks";
const NO_I2P: &str = "Lydian does not speak to I2P yet";
const NO_ONION_SERVICE: &str = "Lydian makes no onion service yet";
const NO_WALLET: &str = "Lydian has no wallet";
const NO_WINDOW: &str = "Lydian has no window";
const NO_SUCH_MEMORY: &str = "its store has no such setting; -dbcache sets the memory";
const LOG_FORM: &str = "the form of log lines cannot be changed in this way";
const NO_INDEX: &str = "there would be no such index";
const NO_SERVER: &str = "nothing would answer";
const NO_ZMQ: &str = "nothing would be published";
const NO_ZMQ_QUEUE: &str = "nothing is published";
const NO_NOTICE: &str = "nobody would be told";
const OTHER_RULES: &str = "blocks would be judged by other rules than you ask for";
const OTHER_TEST: &str = "a test that asks for it would test something else";

const fn safe(name: &'static str, reason: &'static str) -> CoreOption {
    CoreOption { name, ignoring: Ignoring::IsSafe, reason }
}

const fn refused(name: &'static str, reason: &'static str) -> CoreOption {
    CoreOption { name, ignoring: Ignoring::BreaksPromise, reason }
}

/// By name.
pub(crate) const CORE_OPTIONS: &[CoreOption] = &[
    safe("acceptnonstdtxn", NO_MEMPOOL),
    safe("acceptstalefeeestimates", NO_MEMPOOL),
    safe("addresstype", NO_WALLET),
    safe("allowignoredconf", "a second configuration file is always an error"),
    refused("asmap", "peers would be grouped by their address and not by your map"),
    safe("avoidpartialspends", NO_WALLET),
    refused("blockfilterindex", NO_INDEX),
    safe("blockmaxweight", NO_MINING),
    safe("blockmintxfee", NO_MINING),
    safe("blockreconstructionextratxn", NO_MEMPOOL),
    safe("blockreservedweight", NO_MINING),
    refused("blockversion", OTHER_TEST),
    safe("bytespersigop", NO_MEMPOOL),
    refused("capturemessages", "no message would be written to a file"),
    safe("changetype", NO_WALLET),
    safe("checkaddrman", "the address manager has no such check"),
    safe("checkblockindex", "Lydian's own checks are always on"),
    safe("checkmempool", NO_MEMPOOL),
    safe("checkpoints", "Core itself dropped it"),
    safe("choosedatadir", NO_WINDOW),
    refused("coinstatsindex", NO_INDEX),
    safe("consolidatefeerate", NO_WALLET),
    safe("datacarrier", NO_MEMPOOL),
    safe("datacarriersize", NO_MEMPOOL),
    safe("dbbatchsize", NO_SUCH_MEMORY),
    refused("dbcrashratio", OTHER_TEST),
    safe("disablewallet", NO_WALLET),
    safe("discardfee", NO_WALLET),
    safe("dustrelayfee", NO_MEMPOOL),
    safe("fallbackfee", NO_WALLET),
    safe("forcecompactdb", NO_SUCH_MEMORY),
    safe("i2pacceptincoming", NO_I2P),
    safe("i2psam", NO_I2P),
    safe("incrementalrelayfee", NO_MEMPOOL),
    refused("ipcbind", NO_SERVER),
    safe("keypool", NO_WALLET),
    safe("lang", NO_WINDOW),
    safe("limitancestorcount", NO_MEMPOOL),
    safe("limitancestorsize", NO_MEMPOOL),
    safe("limitclustercount", NO_MEMPOOL),
    safe("limitclustersize", NO_MEMPOOL),
    safe("limitdescendantcount", NO_MEMPOOL),
    safe("limitdescendantsize", NO_MEMPOOL),
    safe("listenonion", NO_ONION_SERVICE),
    safe("logips", LOG_FORM),
    safe("loglevelalways", LOG_FORM),
    safe("logratelimit", LOG_FORM),
    safe("logsourcelocations", LOG_FORM),
    safe("logthreadnames", LOG_FORM),
    safe("logtimestamps", LOG_FORM),
    safe("maxapsfee", NO_WALLET),
    safe("maxmempool", NO_MEMPOOL),
    safe("maxsigcachesize", NO_SUCH_MEMORY),
    safe("maxtxfee", NO_WALLET),
    safe("mempoolexpiry", NO_MEMPOOL),
    safe("min", NO_WINDOW),
    safe("minrelaytxfee", NO_MEMPOOL),
    safe("mintxfee", NO_WALLET),
    safe("natpmp", "Lydian asks no router for a port"),
    refused("peerblockfilters", "there would be no filters to serve"),
    safe("peerbloomfilters", "Lydian serves no bloom filters"),
    safe("permitbaremultisig", NO_MEMPOOL),
    safe("persistmempool", NO_MEMPOOL),
    safe("persistmempoolv1", NO_MEMPOOL),
    safe("prevoutfetchthreads", NO_SUCH_MEMORY),
    safe("printpriority", NO_MINING),
    refused("privatebroadcast", NO_MEMPOOL),
    safe("resetguisettings", NO_WINDOW),
    refused("rest", NO_SERVER),
    safe("settings", "Lydian has one configuration file and no settings that change while it runs"),
    safe("signer", NO_WALLET),
    refused("signetchallenge", OTHER_RULES),
    safe("spendzeroconfchange", NO_WALLET),
    safe("splash", NO_WINDOW),
    refused("test", OTHER_TEST),
    safe("torcontrol", NO_ONION_SERVICE),
    safe("torpassword", NO_ONION_SERVICE),
    safe("txconfirmtarget", NO_WALLET),
    refused("txindex", NO_INDEX),
    refused("txospenderindex", NO_INDEX),
    safe("txreconciliation", NO_MEMPOOL),
    safe("uiplatform", NO_WINDOW),
    safe("unsafesqlitesync", NO_WALLET),
    refused("vbparams", OTHER_RULES),
    refused("wallet", "Lydian has no wallet, and your coins would not be watched"),
    safe("walletbroadcast", NO_WALLET),
    safe("walletcrosschain", NO_WALLET),
    safe("walletdir", NO_WALLET),
    refused("walletnotify", NO_NOTICE),
    safe("walletrbf", NO_WALLET),
    safe("walletrejectlongchains", NO_WALLET),
    refused("zmqpubhashblock", NO_ZMQ),
    safe("zmqpubhashblockhwm", NO_ZMQ_QUEUE),
    refused("zmqpubhashtx", NO_ZMQ),
    safe("zmqpubhashtxhwm", NO_ZMQ_QUEUE),
    refused("zmqpubrawblock", NO_ZMQ),
    safe("zmqpubrawblockhwm", NO_ZMQ_QUEUE),
    refused("zmqpubrawtx", NO_ZMQ),
    safe("zmqpubrawtxhwm", NO_ZMQ_QUEUE),
    refused("zmqpubsequence", NO_ZMQ),
    safe("zmqpubsequencehwm", NO_ZMQ_QUEUE),
];
