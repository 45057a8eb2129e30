//! What the options of policy and mempool set, with Core's defaults (kernel/mempool_options.h, kernel/mempool_limits.h,
//! policy/policy.h, init.cpp). Plain values: options are parsed by the node.

use super::fee_rate::FeeRate;
use std::time::Duration;

/// The settings of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `-acceptnonstdtxn=0`: refuse transactions that are not standard. Core allows `-acceptnonstdtxn` on test chains
    /// only.
    pub require_standard: bool,
    /// `-minrelaytxfee`: the rate below which a transaction is not accepted.
    pub min_relay_fee: FeeRate,
    /// `-incrementalrelayfee`: the rate by which a replacement must pay more, and by which the minimum fee rises when
    /// the mempool is full.
    pub incremental_relay_fee: FeeRate,
    /// `-dustrelayfee`: the rate at which the cost of spending an output is compared with its value.
    pub dust_relay_fee: FeeRate,
    /// `-bytespersigop`: bytes that a signature operation counts as at least; in weight units, what one unit of
    /// signature operation cost counts as.
    pub bytes_per_sigop: u32,
    /// `-datacarriersize`: maximum size of all data-carrying scriptPubKeys of a transaction, in bytes. `None` with
    /// `-datacarrier=0`.
    pub datacarrier_bytes_max: Option<u32>,
    /// `-permitbaremultisig`: accept outputs that are bare multisig.
    pub permit_bare_multisig: bool,
    /// `-limitclustercount`: maximum number of transactions in a cluster.
    pub cluster_count_max: u32,
    /// `-limitclustersize`: maximum size of a cluster, in virtual bytes (the option: kilobytes).
    pub cluster_vbytes_max: i64,
    /// `-limitancestorcount`: deprecated in Core, where it limits the selection of coins by the wallet only.
    pub ancestor_count_max: i64,
    /// `-limitdescendantcount`: see [`Settings::ancestor_count_max`].
    pub descendant_count_max: i64,
    /// `-maxmempool`: maximum memory of the mempool in bytes (the option: megabytes).
    pub mempool_bytes_max: u64,
    /// `-mempoolexpiry`: time after which a transaction leaves (the option: hours).
    pub expiry: Duration,
    /// `-persistmempool`: write the mempool to disk when the node stops, and read it when it starts.
    pub persist: bool,
    /// `-persistmempoolv1`: write the file in the older format, without a key.
    pub persist_v1: bool,
    /// `-blocksonly`: accept no transactions from peers. Then [`BLOCKSONLY_MEMPOOL_BYTES`] is the default of
    /// `-maxmempool`.
    pub blocks_only: bool,
    /// `-checkmempool`: check the mempool's consistency after one in this number of changes; 0 is never. Regtest's
    /// default is 1.
    pub check_interval: u32,
    /// `-blockreconstructionextratxn`: number of transactions kept besides the mempool to reconstruct compact blocks.
    pub extra_txs_max: u32,
    /// `-maxsigcachesize`: memory of the caches of verified signatures and scripts in bytes (the option: mebibytes).
    pub sigcache_bytes_max: u64,
}

/// Default of [`Settings::mempool_bytes_max`] with `-blocksonly`: `DEFAULT_BLOCKSONLY_MAX_MEMPOOL_SIZE_MB`.
pub const BLOCKSONLY_MEMPOOL_BYTES: u64 = 5_000_000;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            require_standard: true,
            min_relay_fee: FeeRate::per_kvb(100),
            incremental_relay_fee: FeeRate::per_kvb(100),
            dust_relay_fee: FeeRate::per_kvb(3000),
            bytes_per_sigop: 20,
            datacarrier_bytes_max: Some(100_000),
            permit_bare_multisig: true,
            cluster_count_max: 64,
            cluster_vbytes_max: 101_000,
            ancestor_count_max: 25,
            descendant_count_max: 25,
            mempool_bytes_max: 300_000_000,
            expiry: Duration::from_secs(336 * 60 * 60),
            persist: true,
            persist_v1: false,
            blocks_only: false,
            check_interval: 0,
            extra_txs_max: 100,
            sigcache_bytes_max: 32 << 20,
        }
    }
}

impl Settings {
    /// Sets `-minrelaytxfee` and `-incrementalrelayfee` as given. If only the second is given, the minimum fee is
    /// raised to it (node/mempool_args.cpp).
    pub fn set_relay_fees(&mut self, min: Option<FeeRate>, incremental: Option<FeeRate>) {
        self.incremental_relay_fee = incremental.unwrap_or(self.incremental_relay_fee);
        self.min_relay_fee = min.unwrap_or(self.min_relay_fee.max(self.incremental_relay_fee));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_incremental_fee_alone_raises_the_minimum() {
        let fees = |min: Option<i64>, incremental: Option<i64>| {
            let mut settings = Settings::default();
            settings.set_relay_fees(min.map(FeeRate::per_kvb), incremental.map(FeeRate::per_kvb));
            (settings.min_relay_fee.fee_per_kvb(), settings.incremental_relay_fee.fee_per_kvb())
        };
        assert_eq!(fees(None, None), (100, 100));
        assert_eq!(fees(None, Some(500)), (500, 500));
        assert_eq!(fees(None, Some(50)), (100, 50));
        assert_eq!(fees(Some(10), Some(500)), (10, 500));
        assert_eq!(fees(Some(10), None), (10, 100));
    }
}
