//! [`Settings`]: the settings that the node runs with. Data only, with the defaults of the options that
//! depend on nothing else.

use super::electrum::{AddressIndex, ElectrumSettings};
use super::esplora::EsploraSettings;
use super::feed::FeedSettings;
use super::front::{FILTERS_MB_DEFAULT, FrontSettings, filter_bytes};
use super::net::NetSettings;
use super::page::PageSettings;
use super::rpc::RpcSettings;
use super::shown::Shown;
use super::values::{DBCACHE_MIB_DEFAULT, dbcache_bytes};
use super::zmq::ZmqSettings;
use crate::host::Host;
use crate::log::{Categories, Levels, LogForm};
use lydian_consensus::{Chain, Params, U256};
use lydian_engine::TIP_AGE_SECONDS_DEFAULT;
use lydian_mempool::pool::BlockOptions;
use lydian_options::{Notice, SettingsFile};
use lydian_primitives::{BlockHash, Height};
use std::path::PathBuf;

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
    /// Whether the coins on disk have no index in memory: `-lowmem`.
    pub(crate) is_low_memory: bool,
    /// Number of worker threads, at least one.
    pub(crate) threads: usize,
    /// Number of cores of this machine.
    pub(crate) cores: usize,
    pub(crate) prune: Prune,
    /// Whether block files are small.
    pub(crate) fastprune: bool,
    pub(crate) reindex: bool,
    pub(crate) reindex_chainstate: bool,
    pub(crate) blockfilterindex: bool,
    pub(crate) peerblockfilters: bool,
    pub(crate) coinstatsindex: bool,
    pub(crate) txindex: bool,
    pub(crate) txospenderindex: bool,
    /// `-indexrequired`: an error of an index ends the node.
    pub(crate) indexrequired: bool,
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
    /// `-secondopinion`.
    pub(crate) has_second_opinion: bool,
    /// The engine that verifies signatures.
    pub(crate) sigengine: &'static str,
    pub(crate) stopafterblockimport: bool,
    pub(crate) stopatheight: Option<Height>,
    /// Its paths are absolute.
    pub(crate) log: LogSettings,
    /// Its paths are absolute.
    pub(crate) rpc: RpcSettings,
    pub(crate) net: NetSettings,
    pub(crate) mempool: lydian_mempool::policy::Settings,
    /// `-acceptstalefeeestimates`.
    pub(crate) acceptstalefeeestimates: bool,
    /// Of the blocks that the node makes.
    pub(crate) block: BlockOptions,
    pub(crate) zmq: ZmqSettings,
    pub(crate) electrum: ElectrumSettings,
    pub(crate) esplora: EsploraSettings,
    pub(crate) feed: FeedSettings,
    /// `-index`: the store that the index is written to.
    pub(crate) shared_index: Option<lydian_index_cassandra::Address>,
    /// `-storeblocks`: the store gets the blocks too.
    pub(crate) store_blocks: bool,
    /// Of `lydian serve`.
    pub(crate) front: FrontSettings,
    pub(crate) page: PageSettings,
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
    /// Every option, as the page shows it.
    pub(crate) shown: Vec<Shown>,
    /// Options that were given several times in one place, although only one value counts: a sentence for each.
    pub(crate) repeated: Vec<String>,
}

/// Core's `TEST_OPTIONS_DOC`, without `bip94`, which is a rule of the chain, and with one of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    /// `addrman`: the address manager places addresses as Core's does in its tests.
    pub(crate) deterministic_addrman: bool,
    /// `reindex_after_failure_noninteractive_yes`.
    pub(crate) reindex_after_failure: bool,
    /// `secondopinion_lies`: the second opinion rejects everything, and needs no code of Core.
    pub(crate) second_opinion_lies: bool,
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

impl Settings {
    /// What the node keeps of scripts: `-addressindex`, or what a server or `-index` needs.
    pub(crate) fn address_index(&self) -> AddressIndex {
        let is_needed = self.electrum.is_on || self.esplora.is_on || self.shared_index.is_some();
        let needed = if is_needed { AddressIndex::Compact } else { AddressIndex::Off };
        self.electrum.index.unwrap_or(needed)
    }

    pub(crate) fn has_address_index(&self) -> bool {
        self.address_index() != AddressIndex::Off
    }

    /// Makes the paths of the servers absolute.
    pub(super) fn make_absolute(&mut self, host: &Host) {
        let ElectrumSettings { certificate, key, banner, .. } = &mut self.electrum;
        let page = [&mut self.page.certificate, &mut self.page.key];
        let feed = [&mut self.feed.certificate, &mut self.feed.key];
        for path in [certificate, key, banner].into_iter().chain(page).chain(feed).flatten() {
            *path = host.absolute(path);
        }
    }

    /// The settings of the coin store. The coins that are not on disk yet are a part of `-dbcache`.
    pub(crate) fn coin_store(&self) -> lydian_coins::Settings {
        match self.is_low_memory {
            false => lydian_coins::Settings::new(self.dbcache_bytes),
            true => lydian_coins::Settings::low_memory(self.dbcache_bytes),
        }
    }

    /// The defaults of the options; the directory is that of the chain.
    pub(super) fn new(params: Params, is_signet_of_others: bool, datadir: PathBuf, net: NetSettings) -> Settings {
        let chain = params.chain;
        Settings {
            params,
            blocks: datadir.join("blocks"),
            conf: None,
            has_conf: false,
            default_datadir: None,
            dbcache_bytes: dbcache_bytes(DBCACHE_MIB_DEFAULT),
            is_low_memory: false,
            threads: 1,
            cores: 1,
            prune: Prune::Never,
            fastprune: false,
            reindex: false,
            reindex_chainstate: false,
            blockfilterindex: false,
            peerblockfilters: false,
            coinstatsindex: false,
            txindex: false,
            txospenderindex: false,
            indexrequired: false,
            daemon: false,
            daemonwait: false,
            copy: false,
            json: false,
            assumevalid: None,
            minimum_chain_work: if is_signet_of_others { U256::from_u64(0) } else { minimum_chain_work(chain) },
            blocksxor: true,
            loadblock: Vec::new(),
            pid: Some(datadir.join("bitcoind.pid")),
            alertnotify: Vec::new(),
            blocknotify: Vec::new(),
            startupnotify: Vec::new(),
            shutdownnotify: Vec::new(),
            checkblocks: 6,
            checklevel: 3,
            has_second_opinion: false,
            sigengine: "auto",
            stopafterblockimport: false,
            stopatheight: None,
            log: LogSettings { file: Some(datadir.join("debug.log")), ..LogSettings::default() },
            rpc: RpcSettings::default(),
            net,
            mempool: lydian_mempool::policy::Settings::default(),
            acceptstalefeeestimates: false,
            block: BlockOptions::default(),
            zmq: ZmqSettings::default(),
            electrum: ElectrumSettings::default(),
            esplora: EsploraSettings::default(),
            feed: FeedSettings::default(),
            shared_index: None,
            store_blocks: false,
            front: FrontSettings { filter_bytes: filter_bytes(FILTERS_MB_DEFAULT), ..FrontSettings::default() },
            page: PageSettings::default(),
            mocktime: None,
            max_tip_age_seconds: TIP_AGE_SECONDS_DEFAULT,
            is_signet_of_others,
            blockversion: None,
            checkblockindex: 0,
            checkaddrman: 0,
            test: TestOptions::default(),
            file: None,
            notices: Vec::new(),
            arguments: Vec::new(),
            shown: Vec::new(),
            repeated: Vec::new(),
            datadir,
        }
    }

    /// The directory of the block index.
    pub(crate) fn index(&self) -> PathBuf {
        self.blocks.join("index")
    }

    /// The directory of the coins.
    pub(crate) fn coins(&self) -> PathBuf {
        self.datadir.join("chainstate")
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
