//! Methods about the mempool and ZeroMQ notifications. There is no mempool yet: the answers are those of an empty one.

use crate::context::Notifier;
use crate::error::RpcError;
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Answer, Form, Map, cases, result};
use lydian_primitives::Txid;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getmempoolinfo",
        category: Category::Blockchain,
        help: "Returns the state of the mempool.",
        args: &[],
        examples: &[""],
        remark: "There is no mempool yet: it is always empty, and its limits are Core's defaults.",
        call: &returns("", getmempoolinfo),
    },
    Method {
        name: "getrawmempool",
        category: Category::Blockchain,
        help: "Returns the transactions in the mempool.",
        args: &[
            Arg::new("verbose", Kind::Bool, "true for an object, false for an array of ids").default("false"),
            Arg::new("mempool_sequence", Kind::Bool, "whether to include the mempool sequence number").default("false"),
        ],
        examples: &["true"],
        remark: "There is no mempool yet: it is always empty.",
        call: &returns("", getrawmempool),
    },
    Method {
        name: "getzmqnotifications",
        category: Category::Util,
        help: "Returns information about the active ZeroMQ notifications.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getzmqnotifications),
    },
];

result! {
    /// The answer of `getmempoolinfo`.
    struct MempoolInfo {
        /// true if the initial load attempt of the persisted mempool finished
        loaded: bool,
        /// current tx count
        size: u64,
        /// sum of all virtual transaction sizes as defined in BIP 141
        bytes: u64,
        /// total memory usage for the mempool
        usage: u64,
        /// total fees for the mempool in BTC, ignoring modified fees through prioritisetransaction
        total_fee: Amount,
        /// maximum memory usage for the mempool
        maxmempool: u64,
        /// minimum fee rate in BTC/kvB for tx to be accepted
        mempoolminfee: Amount,
        /// current minimum relay fee for transactions
        minrelaytxfee: Amount,
        /// minimum fee rate increment for mempool limiting or replacement in BTC/kvB
        incrementalrelayfee: Amount,
        /// current number of transactions that haven't passed initial broadcast yet
        unbroadcastcount: u64,
        /// true if the mempool accepts transactions with bare multisig outputs
        permitbaremultisig: bool,
        /// maximum number of bytes that can be used by OP_RETURN outputs in the mempool
        maxdatacarriersize: u64,
        /// maximum number of transactions that can be in a cluster
        limitclustercount: u64,
        /// maximum size of a cluster in virtual bytes
        limitclustersize: u64,
        /// if the mempool is in a known-optimal transaction ordering
        optimal: bool,
    }
}

fn getmempoolinfo(_: &Call<'_>) -> Result<MempoolInfo, RpcError> {
    Ok(MempoolInfo {
        loaded: true,
        size: 0,
        bytes: 0,
        usage: 0,
        total_fee: Amount(0),
        maxmempool: 300_000_000,
        mempoolminfee: Amount(100),
        minrelaytxfee: Amount(100),
        incrementalrelayfee: Amount(100),
        unbroadcastcount: 0,
        permitbaremultisig: true,
        maxdatacarriersize: 100_000,
        limitclustercount: 64,
        limitclustersize: 101_000,
        optimal: true,
    })
}

cases! {
    /// The answer of `getrawmempool`.
    enum MempoolResult {
        #[when("for verbose = false")]
        #[each("the transaction id")]
        Ids(Vec<Txid>),
        #[when("for verbose = true")]
        #[each(key "transactionid" "the transaction")]
        Entries(Map<String, MempoolEntry>),
        #[when("for verbose = false and mempool_sequence = true")]
        WithSequence(WithSequence),
    }
}

/// A transaction in the mempool. There is none yet.
#[derive(Debug)]
enum MempoolEntry {}

impl Answer for MempoolEntry {
    const FORM: Form = Form::Object(&[]);

    fn write(&self, _: &mut Vec<u8>) {
        match *self {}
    }
}

result! {
    struct WithSequence {
        #[each("the transaction id")]
        txids: Vec<Txid>,
        /// the mempool sequence value
        mempool_sequence: u64,
    }
}

fn getrawmempool(call: &Call<'_>) -> Result<MempoolResult, RpcError> {
    let (is_verbose, has_sequence) = (call.bool_or(0, false)?, call.bool_or(1, false)?);
    match (is_verbose, has_sequence) {
        (true, true) => Err(RpcError::parameter("Verbose results cannot contain mempool sequence values.")),
        (true, false) => Ok(MempoolResult::Entries(Map(Vec::new()))),
        (false, true) => Ok(MempoolResult::WithSequence(WithSequence { txids: Vec::new(), mempool_sequence: 1 })),
        (false, false) => Ok(MempoolResult::Ids(Vec::new())),
    }
}

result! {
    /// A notifier: an element of the answer of `getzmqnotifications`.
    struct Notification {
        /// type of notification
        #[name("type")]
        kind: &'static str,
        /// address of the publisher
        address: String,
        /// outbound message high water mark
        hwm: i64,
    }
}

fn getzmqnotifications(call: &Call<'_>) -> Result<Vec<Notification>, RpcError> {
    let of_notifier = |notifier: &Notifier| Notification {
        kind: notifier.kind,
        address: notifier.address.clone(),
        hwm: i64::from(notifier.high_water_mark),
    };
    Ok(call.context.settings.notifiers.iter().map(of_notifier).collect())
}
