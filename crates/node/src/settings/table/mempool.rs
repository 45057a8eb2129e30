//! Options of the mempool and of what is relayed. Data only: entries of the option table.

use super::{Opt, SWITCH, Set, TEXT, group, integer};
use crate::settings::mempool::{check_interval, clamped, hours, wrapped};

/// An amount in BTC per 1,000 virtual bytes.
const AMOUNT: Opt = Opt { argument: "<amt>", group: group::RELAY, ..TEXT };

/// Whole numbers as Core reads them.
const NUMBER: Opt = integer(i64::MIN, i64::MAX);

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "blockreconstructionextratxn",
        default: "100",
        help: "Keep <n> transactions that are not in the mempool to reconstruct compact blocks with",
        set: Set::Integer(|settings, count| settings.mempool.extra_txs_max = clamped(count)),
        ..NUMBER
    },
    Opt {
        name: "blocksonly",
        help: "Whether to reject transactions from network peers and not to broadcast any, unless the peer has the 'forcerelay' permission. RPC transactions are not affected",
        ..SWITCH
    },
    Opt {
        name: "maxmempool",
        default: "300, with -blocksonly 5",
        help: "Keep the memory that Bitcoin Core would need for the mempool below <n> megabytes",
        ..NUMBER
    },
    Opt {
        name: "mempoolexpiry",
        default: "336",
        help: "Do not keep transactions in the mempool longer than <n> hours",
        set: Set::Integer(|settings, count| settings.mempool.expiry = hours(count)),
        ..NUMBER
    },
    Opt {
        name: "persistmempool",
        default: "1",
        help: "Whether to save the mempool on shutdown and load it on restart",
        set: Set::Switch(|settings, is_on| settings.mempool.persist = is_on),
        ..SWITCH
    },
    Opt {
        name: "persistmempoolv1",
        help: "Whether a mempool.dat file created by -persistmempool or the savemempool RPC is written in the format that versions of Core before 27.0 can read",
        set: Set::Switch(|settings, is_on| settings.mempool.persist_v1 = is_on),
        ..SWITCH
    },
    Opt {
        name: "bytespersigop",
        group: group::RELAY,
        default: "20",
        help: "Equivalent bytes per sigop in transactions for relay and mining",
        set: Set::Integer(|settings, bytes| settings.mempool.bytes_per_sigop = wrapped(bytes)),
        ..NUMBER
    },
    Opt {
        name: "datacarrier",
        group: group::RELAY,
        default: "1",
        help: "Relay and mine data carrier transactions",
        ..SWITCH
    },
    Opt {
        name: "datacarriersize",
        group: group::RELAY,
        default: "100000",
        help: "Relay and mine transactions whose data-carrying raw scriptPubKeys in aggregate are of this size or less, allowing multiple outputs",
        ..NUMBER
    },
    Opt {
        name: "minrelaytxfee",
        default: "0.000001",
        help: "Fees (in BTC/kvB) smaller than this are considered zero fee for relaying, mining and transaction creation",
        ..AMOUNT
    },
    Opt {
        name: "permitbaremultisig",
        group: group::RELAY,
        default: "1",
        help: "Relay transactions creating non-P2SH multisig outputs",
        set: Set::Switch(|settings, is_on| settings.mempool.permit_bare_multisig = is_on),
        ..SWITCH
    },
    Opt {
        name: "acceptnonstdtxn",
        group: group::DEBUG,
        help: "Relay and mine \"non-standard\" transactions (test networks only)",
        ..SWITCH
    },
    Opt {
        name: "acceptstalefeeestimates",
        group: group::DEBUG,
        help: "Read fee estimates even if they are stale (regtest only); fee estimates are considered stale if they are 60 hours old",
        set: Set::Switch(|settings, is_on| settings.acceptstalefeeestimates = is_on),
        ..SWITCH
    },
    Opt {
        name: "incrementalrelayfee",
        group: group::DEBUG,
        default: "0.000001",
        help: "Fee rate (in BTC/kvB) used to define cost of relay, used for mempool limiting and replacement policy",
        ..AMOUNT
    },
    Opt {
        name: "dustrelayfee",
        group: group::DEBUG,
        default: "0.00003",
        help: "Fee rate (in BTC/kvB) used to define dust, the value of an output such that it will cost more than its value in fees at this fee rate to spend it",
        ..AMOUNT
    },
    Opt {
        name: "checkmempool",
        group: group::DEBUG,
        default: "0, regtest: 1",
        help: "Run mempool consistency checks every <n> transactions. Use 0 to disable",
        set: Set::Integer(|settings, every| settings.mempool.check_interval = check_interval(every)),
        ..NUMBER
    },
    Opt {
        name: "limitancestorcount",
        group: group::DEBUG,
        default: "25",
        help: "Deprecated in Core: the selection of coins by its wallet uses it, and nothing else; see -limitclustercount",
        set: Set::Integer(|settings, count| settings.mempool.ancestor_count_max = count),
        ..NUMBER
    },
    Opt {
        name: "limitdescendantcount",
        group: group::DEBUG,
        default: "25",
        help: "Deprecated in Core: the selection of coins by its wallet uses it, and nothing else; see -limitclustercount",
        set: Set::Integer(|settings, count| settings.mempool.descendant_count_max = count),
        ..NUMBER
    },
    Opt {
        name: "limitclustercount",
        group: group::DEBUG,
        default: "64",
        help: "Do not accept transactions into mempool which are directly or indirectly connected to <n> or more other unconfirmed transactions (maximum: 64)",
        ..NUMBER
    },
    Opt {
        name: "limitclustersize",
        group: group::DEBUG,
        default: "101",
        help: "Do not accept transactions whose virtual size with all in-mempool connected transactions exceeds <n> kilobytes",
        set: Set::Integer(|settings, kvb| settings.mempool.cluster_vbytes_max = kvb.saturating_mul(1_000)),
        ..NUMBER
    },
    Opt {
        name: "maxsigcachesize",
        group: group::DEBUG,
        default: "32",
        help: "Limit the memory for verified scripts to <n> MiB; half of it is used, since Core keeps signatures in the other half",
        set: Set::Integer(|settings, mib| {
            settings.mempool.sigcache_bytes_max = u64::try_from(mib).unwrap_or(0).saturating_mul(1 << 20);
        }),
        ..NUMBER
    },
];
