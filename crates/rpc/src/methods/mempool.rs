//! Methods that show the mempool: Core's rpc/mempool.cpp. They read one snapshot each and wait for nothing;
//! `getorphantxs` asks the peer manager.
//!
//! Input: a snapshot of the pool. Output: answers with Core's fields, in Core's order. Cost: one pass over what is
//! shown; an answer is written entry by entry, without a copy of the whole.

use crate::error::{RpcError, code};
use crate::json::{Amount, Json, write_text};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::methods::net::ask;
use crate::output::Hex;
use crate::result::{Answer, Form, Inline, Time, cases, close, result, write_member};
use lydian_index::TXOSPENDERINDEX_NAME;
use lydian_mempool::policy::{signals_opt_in_rbf, virtual_size};
use lydian_mempool::pool::{Entry, Member, PoolChunk, Snapshot};
use lydian_p2p::manager::Question;
use lydian_p2p::txs::orphanage::OrphanInfo;
use lydian_primitives::{BlockHash, OutPoint, Transaction, Txid, Wtxid};
use std::sync::Arc;

const VERBOSE: Arg = Arg::new("verbose", Kind::Bool, "true for an object, false for an array of ids").default("false");
const TXID: Arg = Arg::new("txid", Kind::Hex, "the transaction id; the transaction must be in the mempool");

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getmempoolancestors",
        category: Category::Blockchain,
        help: "Returns all in-mempool ancestors of a transaction in the mempool.",
        args: &[TXID, VERBOSE],
        examples: &["\"mytxid\""],
        remark: "",
        call: &returns("", getmempoolancestors),
    },
    Method {
        name: "getmempoolcluster",
        category: Category::Blockchain,
        help: "Returns the cluster of a transaction in the mempool: all transactions that are connected with it.",
        args: &[Arg::new("txid", Kind::Hex, "the id of a transaction in the cluster")],
        examples: &["\"txid\""],
        remark: "",
        call: &returns("", getmempoolcluster),
    },
    Method {
        name: "getmempooldescendants",
        category: Category::Blockchain,
        help: "Returns all in-mempool descendants of a transaction in the mempool.",
        args: &[TXID, VERBOSE],
        examples: &["\"mytxid\""],
        remark: "",
        call: &returns("", getmempooldescendants),
    },
    Method {
        name: "getmempoolentry",
        category: Category::Blockchain,
        help: "Returns a transaction in the mempool.",
        args: &[TXID],
        examples: &["\"mytxid\""],
        remark: "",
        call: &returns("", getmempoolentry),
    },
    Method {
        name: "getmempoolfeeratediagram",
        category: Category::Hidden,
        help: "Returns the feerate diagram of the whole mempool.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getmempoolfeeratediagram),
    },
    Method {
        name: "getmempoolinfo",
        category: Category::Blockchain,
        help: "Returns the size, memory usage, limits and minimum fee of the mempool.",
        args: &[],
        examples: &[""],
        remark: "`optimal` is always true: clusters are linearized optimally at once. `usage` is the memory that Core \
                 would need for the same content.",
        call: &returns("", getmempoolinfo),
    },
    Method {
        name: "getorphantxs",
        category: Category::Hidden,
        help: "Returns the transactions whose parents are missing. EXPERIMENTAL: this call may change.",
        args: &[Arg::new(
            "verbosity",
            Kind::Number,
            "0 for ids, which may repeat; 1 for details; 2 for details with the hex",
        )
        .default("0")
        .unchecked()],
        examples: &["2"],
        remark: "",
        call: &returns("", getorphantxs),
    },
    Method {
        name: "getrawmempool",
        category: Category::Blockchain,
        help: "Returns the transactions in the mempool.\nUse getmempoolentry for one of them.",
        args: &[
            VERBOSE,
            Arg::new("mempool_sequence", Kind::Bool, "whether to include the mempool sequence number").default("false"),
        ],
        examples: &["true"],
        remark: "",
        call: &returns("", getrawmempool),
    },
    Method {
        name: "gettxspendingprevout",
        category: Category::Blockchain,
        help: "Finds the transactions that spend any of the given outputs, in the mempool and with -txospenderindex in the chain.",
        args: &[
            Arg::new("outputs", Kind::Array, "the outputs").of(&[Arg::new("", Kind::Object, "").omitted().of(&[
                Arg::new("txid", Kind::Hex, "the transaction id"),
                Arg::new("vout", Kind::Number, "the output number"),
            ])]),
            Arg::new("options", Kind::Options, "").omitted().of(&[
                Arg::new(
                    "mempool_only",
                    Kind::Bool,
                    "if false, outputs that no transaction in the mempool spends are looked up with -txospenderindex, without which they are an error",
                )
                .hint("true if txospenderindex unavailable, otherwise false"),
                Arg::new("return_spending_tx", Kind::Bool, "whether to return the spending transactions").hint("false"),
            ]),
        ],
        examples: &["'[{\"txid\":\"a08e6907dbbd3d809776dbfc5d82e371b764ed838b5655e72f463568df1aadf0\",\"vout\":3}]'"],
        remark: "",
        call: &returns("", gettxspendingprevout),
    },
];

result! {
    /// The answer of `getmempoolinfo`.
    struct MempoolInfo {
        /// true if the initial load attempt of the persisted mempool finished
        loaded: bool,
        /// current tx count
        size: usize,
        /// sum of all virtual transaction sizes as defined in BIP 141
        bytes: u64,
        /// total memory usage for the mempool
        usage: u64,
        /// total fees for the mempool in BTC, ignoring modified fees through prioritisetransaction
        total_fee: Amount,
        /// maximum memory usage for the mempool
        maxmempool: u64,
        /// minimum fee rate in BTC/kvB for tx to be accepted: the maximum of minrelaytxfee and minimum mempool fee
        mempoolminfee: Amount,
        /// current minimum relay fee for transactions
        minrelaytxfee: Amount,
        /// minimum fee rate increment for mempool limiting or replacement in BTC/kvB
        incrementalrelayfee: Amount,
        /// current number of transactions that haven't passed initial broadcast yet
        unbroadcastcount: usize,
        /// true if the mempool accepts transactions with bare multisig outputs
        permitbaremultisig: bool,
        /// maximum number of bytes that can be used by OP_RETURN outputs in the mempool
        maxdatacarriersize: u32,
        /// maximum number of transactions that can be in a cluster
        limitclustercount: u32,
        /// maximum size of a cluster in virtual bytes
        limitclustersize: i64,
        /// if the mempool is in a known-optimal transaction ordering
        optimal: bool,
        /// true (DEPRECATED, only with -deprecatedrpc=fullrbf)
        fullrbf: Option<bool>,
    }
}

fn getmempoolinfo(call: &Call<'_>) -> Result<MempoolInfo, RpcError> {
    let mempool = call.context.mempool()?;
    let (settings, min_fee, snapshot) = (mempool.settings(), mempool.min_fee_at_once(), mempool.snapshot());
    let info = snapshot.info();
    Ok(MempoolInfo {
        loaded: info.is_loaded,
        size: snapshot.len(),
        bytes: info.vsize,
        usage: info.usage,
        total_fee: Amount(info.fees),
        maxmempool: settings.mempool_bytes_max,
        mempoolminfee: Amount(min_fee.max(settings.min_relay_fee).fee_per_kvb()),
        minrelaytxfee: Amount(settings.min_relay_fee.fee_per_kvb()),
        incrementalrelayfee: Amount(settings.incremental_relay_fee.fee_per_kvb()),
        unbroadcastcount: snapshot.unbroadcast().len(),
        permitbaremultisig: settings.permit_bare_multisig,
        maxdatacarriersize: settings.datacarrier_bytes_max.unwrap_or(0),
        limitclustercount: settings.cluster_count_max,
        limitclustersize: settings.cluster_vbytes_max,
        optimal: true,
        fullrbf: call.context.settings.is_deprecated_enabled("fullrbf").then_some(true),
    })
}

result! {
    /// A transaction in the mempool: Core's `entryToJSON`.
    struct EntryAnswer {
        /// virtual transaction size as defined in BIP 141
        vsize: i32,
        /// transaction weight as defined in BIP 141
        weight: usize,
        /// local time transaction entered pool in seconds since 1 Jan 1970 GMT
        time: Time<i64>,
        /// block height when transaction entered pool
        height: u32,
        /// number of in-mempool descendant transactions (including this one)
        descendantcount: u64,
        /// virtual transaction size of in-mempool descendants (including this one)
        descendantsize: i64,
        /// number of in-mempool ancestor transactions (including this one)
        ancestorcount: u64,
        /// virtual transaction size of in-mempool ancestors (including this one)
        ancestorsize: i64,
        /// hash of serialized transaction, including witness data
        wtxid: Wtxid,
        /// sigops-adjusted weight (as defined in BIP 141 and modified by '-bytespersigop') of this transaction's chunk
        chunkweight: i32,
        fees: EntryFees,
        #[each("parent transaction id")]
        depends: Vec<Txid>,
        #[each("child transaction id")]
        spentby: Vec<Txid>,
        /// whether this transaction is currently unbroadcast (initial broadcast not yet acknowledged by any peers)
        unbroadcast: bool,
        /// whether this transaction or an unconfirmed ancestor signals BIP125 replaceability
        /// (DEPRECATED, only with -deprecatedrpc=bip125)
        #[name("bip125-replaceable")]
        is_replaceable: Option<bool>,
    }
}

result! {
    struct EntryFees {
        /// transaction fee, denominated in BTC
        base: Amount,
        /// transaction fee with fee deltas used for mining priority, denominated in BTC
        modified: Amount,
        /// transaction fees of in-mempool ancestors (including this one) with fee deltas, denominated in BTC
        ancestor: Amount,
        /// transaction fees of in-mempool descendants (including this one) with fee deltas, denominated in BTC
        descendant: Amount,
        /// transaction fees of chunk, denominated in BTC
        chunk: Amount,
    }
}

/// Bytes of an entry as JSON without `depends` and `spentby`, and of an id.
const ENTRY_BYTES: usize = 800;
const ID_BYTES: usize = 67;

impl EntryAnswer {
    fn of(snapshot: &Snapshot, member: &Member, shows_bip125: bool) -> EntryAnswer {
        let (entry, cluster, position) = (member.entry(), member.cluster(), member.position());
        let (ancestors, descendants) = (cluster.ancestors(position), cluster.descendants(position));
        let signals = |entry: &Arc<Entry>| signals_opt_in_rbf(entry.tx().view());
        let is_replaceable = || {
            let mut entries = cluster.entries().enumerate();
            entries.any(|(position, entry)| ancestors.contains(&position) && signals(entry))
        };
        let [of_ancestors, of_descendants] = [&ancestors, &descendants].map(|positions| cluster.sums(positions));
        let chunk = cluster.chunk_of(position).map(|chunk| chunk.feerate).unwrap_or_default();
        let mut depends: Vec<Txid> = snapshot.parents(entry).iter().map(|parent| parent.entry().txid()).collect();
        // Core sorts them as text.
        depends.sort_unstable_by(|a, b| a.0.iter().rev().cmp(b.0.iter().rev()));
        let txid = entry.txid();
        EntryAnswer {
            vsize: entry.vsize(),
            weight: entry.tx().view().weight(),
            time: Time(entry.time()),
            height: entry.height().0,
            descendantcount: of_descendants.count,
            descendantsize: of_descendants.vsize,
            ancestorcount: of_ancestors.count,
            ancestorsize: of_ancestors.vsize,
            wtxid: entry.wtxid(),
            chunkweight: chunk.size,
            fees: EntryFees {
                base: Amount(entry.fee().0),
                modified: Amount(member.modified_fee()),
                ancestor: Amount(of_ancestors.fees),
                descendant: Amount(of_descendants.fees),
                chunk: Amount(chunk.fee),
            },
            depends,
            spentby: snapshot.children(entry).iter().map(|child| child.txid()).collect(),
            unbroadcast: snapshot.unbroadcast().contains(&txid),
            is_replaceable: shows_bip125.then(is_replaceable),
        }
    }
}

/// Transactions of the pool with their ids as keys.
#[derive(Debug)]
struct Entries {
    snapshot: Arc<Snapshot>,
    /// Those that are shown; all in mining order if `None`.
    txids: Option<Vec<Txid>>,
    shows_bip125: bool,
}

impl Answer for Entries {
    const FORM: Form = Form::Map(&EntryAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let mut write = |member: &Member| {
            write_text(&member.entry().txid().to_string(), out);
            write_member(":", &EntryAnswer::of(&self.snapshot, member, self.shows_bip125), out);
        };
        match &self.txids {
            Some(txids) => txids.iter().filter_map(|txid| self.snapshot.get(txid)).for_each(&mut write),
            None => self.snapshot.in_mining_order().into_iter().for_each(&mut write),
        }
        close(b'}', out);
    }
}

/// The snapshot, with room for an answer about `count` of its transactions.
fn entries(call: &Call<'_>, snapshot: Arc<Snapshot>, txids: Option<Vec<Txid>>) -> Result<Entries, RpcError> {
    let count = txids.as_ref().map_or(snapshot.len(), Vec::len);
    // Few transactions have more than four relatives.
    call.expect_bytes(count * (ENTRY_BYTES + 4 * ID_BYTES))?;
    let shows_bip125 = call.context.settings.is_deprecated_enabled("bip125");
    Ok(Entries { snapshot, txids, shows_bip125 })
}

cases! {
    /// The answer of `getrawmempool`.
    enum MempoolResult {
        #[when("for verbose = false")]
        #[each("the transaction id")]
        Ids(Vec<Txid>),
        #[when("for verbose = true")]
        #[each(key "transactionid" "the transaction")]
        Entries(Entries),
        #[when("for verbose = false and mempool_sequence = true")]
        WithSequence(WithSequence),
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
    let snapshot = call.context.mempool()?.snapshot();
    if is_verbose && has_sequence {
        return Err(RpcError::parameter("Verbose results cannot contain mempool sequence values."));
    }
    if is_verbose {
        return entries(call, snapshot, None).map(MempoolResult::Entries);
    }
    call.expect_bytes(snapshot.len() * ID_BYTES)?;
    let txids: Vec<Txid> = snapshot.in_mining_order().into_iter().map(|member| member.entry().txid()).collect();
    Ok(match has_sequence {
        true => MempoolResult::WithSequence(WithSequence { txids, mempool_sequence: snapshot.info().sequence }),
        false => MempoolResult::Ids(txids),
    })
}

fn find<'s>(snapshot: &'s Snapshot, txid: &Txid) -> Result<&'s Member, RpcError> {
    let missing = || RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Transaction not in mempool");
    snapshot.get(txid).ok_or_else(missing)
}

fn getmempoolentry(call: &Call<'_>) -> Result<EntryAnswer, RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let snapshot = call.context.mempool()?.snapshot();
    let member = find(&snapshot, &txid)?;
    Ok(EntryAnswer::of(&snapshot, member, call.context.settings.is_deprecated_enabled("bip125")))
}

cases! {
    /// The answer of `getmempoolancestors` and `getmempooldescendants`.
    enum Relatives {
        #[when("for verbose = false")]
        #[each("the transaction id")]
        Ids(Vec<Txid>),
        #[when("for verbose = true")]
        #[each(key "transactionid" "the transaction")]
        Entries(Entries),
    }
}

fn getmempoolancestors(call: &Call<'_>) -> Result<Relatives, RpcError> {
    relatives(call, |member| member.cluster().ancestors(member.position()))
}

fn getmempooldescendants(call: &Call<'_>) -> Result<Relatives, RpcError> {
    relatives(call, |member| member.cluster().descendants(member.position()))
}

/// Transactions of the cluster but the one that is asked for, sorted by txid as in Core.
fn relatives(call: &Call<'_>, positions: impl Fn(&Member) -> Vec<usize>) -> Result<Relatives, RpcError> {
    let is_verbose = call.bool_or(1, false)?;
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let snapshot = call.context.mempool()?.snapshot();
    let member = find(&snapshot, &txid)?;
    let positions = positions(member);
    let entries_of = member.cluster().entries().enumerate();
    let others = entries_of.filter(|(position, _)| *position != member.position() && positions.contains(position));
    let mut txids: Vec<Txid> = others.map(|(_, entry)| entry.txid()).collect();
    txids.sort_unstable();
    match is_verbose {
        true => entries(call, Arc::clone(&snapshot), Some(txids)).map(Relatives::Entries),
        false => Ok(Relatives::Ids(txids)),
    }
}

result! {
    /// The answer of `getmempoolcluster`.
    struct ClusterAnswer {
        /// total sigops-adjusted weight (as defined in BIP 141 and modified by '-bytespersigop')
        clusterweight: i32,
        /// number of transactions
        txcount: usize,
        /// chunks in this cluster (in mining order)
        chunks: Vec<ChunkAnswer>,
    }
}

result! {
    struct ChunkAnswer {
        /// fees of the transactions in this chunk
        chunkfee: Amount,
        /// sigops-adjusted weight of all transactions in this chunk
        chunkweight: i32,
        /// transactions in this chunk in mining order
        #[each("transaction id")]
        txs: Vec<Txid>,
    }
}

fn getmempoolcluster(call: &Call<'_>) -> Result<ClusterAnswer, RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let snapshot = call.context.mempool()?.snapshot();
    let cluster = find(&snapshot, &txid)?.cluster();
    let chunks = cluster.chunks().map(|(chunk, range)| {
        let entries = PoolChunk { cluster, chunk, range }.entries();
        let txs = entries.map(|entry| entry.txid()).collect();
        ChunkAnswer { chunkfee: Amount(chunk.feerate.fee), chunkweight: chunk.feerate.size, txs }
    });
    let chunks: Vec<ChunkAnswer> = chunks.collect();
    let clusterweight = chunks.iter().fold(0_i32, |sum, chunk| sum.saturating_add(chunk.chunkweight));
    Ok(ClusterAnswer { clusterweight, txcount: cluster.len(), chunks })
}

result! {
    /// A point of the feerate diagram.
    struct DiagramPoint {
        /// cumulative sigops-adjusted weight
        weight: i64,
        /// cumulative fee
        fee: Amount,
    }
}

fn getmempoolfeeratediagram(call: &Call<'_>) -> Result<Vec<DiagramPoint>, RpcError> {
    let snapshot = call.context.mempool()?.snapshot();
    call.expect_bytes((snapshot.chunk_count() + 1) * 50)?;
    let mut points = vec![DiagramPoint { weight: 0, fee: Amount(0) }];
    let (mut weight, mut fee) = (0_i64, 0_i64);
    for chunk in snapshot.chunks_in_mining_order() {
        weight += i64::from(chunk.chunk.feerate.size);
        fee = fee.saturating_add(chunk.chunk.feerate.fee);
        points.push(DiagramPoint { weight, fee: Amount(fee) });
    }
    Ok(points)
}

cases! {
    /// The answer of `getorphantxs`.
    enum Orphans {
        #[when("for verbose = 0")]
        #[each("the transaction hash in hex")]
        Ids(Vec<Txid>),
        #[when("for verbose = 1")]
        Details(Vec<OrphanAnswer>),
        #[when("for verbose = 2")]
        WithHex(Vec<OrphanWithHex>),
    }
}

result! {
    struct OrphanAnswer {
        /// the transaction hash in hex
        txid: Txid,
        /// the transaction witness hash in hex
        wtxid: Wtxid,
        /// the serialized transaction size in bytes
        bytes: usize,
        /// the virtual transaction size as defined in BIP 141
        vsize: i64,
        /// the transaction weight as defined in BIP 141
        weight: usize,
        #[each("peer ID")]
        from: Vec<u64>,
    }
}

result! {
    struct OrphanWithHex {
        details: Inline<OrphanAnswer>,
        /// the serialized, hex-encoded transaction data
        hex: Hex<Box<[u8]>>,
    }
}

impl OrphanAnswer {
    fn of(orphan: &OrphanInfo) -> OrphanAnswer {
        let tx = orphan.tx.view();
        OrphanAnswer {
            txid: tx.txid(),
            wtxid: tx.wtxid(),
            bytes: tx.total_size(),
            // Without its signature operations, which nothing has counted.
            vsize: virtual_size(tx.weight(), 0, 0),
            weight: tx.weight(),
            from: orphan.announcers.iter().map(|peer| peer.0).collect(),
        }
    }
}

fn getorphantxs(call: &Call<'_>) -> Result<Orphans, RpcError> {
    let orphans = ask(call.context, Question::Orphans)?;
    let verbosity: i32 = match call.given(0) {
        None => 0,
        Some(Json::Bool(_)) => {
            return Err(RpcError::new(code::TYPE_ERROR, "Verbosity was boolean but only integer allowed"));
        }
        Some(value) => value.as_integer()?,
    };
    let hex = |orphan: &OrphanInfo| Hex(orphan.tx.as_bytes().into());
    Ok(match verbosity {
        0 => Orphans::Ids(orphans.iter().map(|orphan| orphan.tx.view().txid()).collect()),
        1 => Orphans::Details(orphans.iter().map(OrphanAnswer::of).collect()),
        2 => {
            call.expect_bytes(orphans.iter().map(|orphan| 2 * orphan.tx.as_bytes().len() + 400).sum())?;
            let with_hex = |orphan| OrphanWithHex { details: Inline(OrphanAnswer::of(orphan)), hex: hex(orphan) };
            Orphans::WithHex(orphans.iter().map(with_hex).collect())
        }
        other => return Err(RpcError::parameter(format!("Invalid verbosity value {other}"))),
    })
}

result! {
    /// An element of the answer of `gettxspendingprevout`, for its description.
    struct SpendingForm {
        /// the transaction id of the checked output
        txid: Txid,
        /// the vout value of the checked output
        vout: u32,
        /// the transaction id of the transaction spending this output (omitted if unspent)
        spendingtxid: Option<Txid>,
        /// the transaction spending this output (only if return_spending_tx is set, omitted if unspent)
        spendingtx: Option<Hex<Vec<u8>>>,
        /// the hash of the spending block (omitted if unspent or the spending tx is not confirmed)
        blockhash: Option<BlockHash>,
    }
}

/// An output as it was given, and what spends it.
#[derive(Debug)]
struct Spending {
    given: Vec<(String, Json)>,
    spender: Option<Spender>,
    has_tx: bool,
}

/// A transaction that spends an output.
#[derive(Debug)]
enum Spender {
    Unconfirmed(Arc<Entry>),
    Confirmed(Transaction, BlockHash),
}

impl Spender {
    fn txid(&self) -> Txid {
        match self {
            Spender::Unconfirmed(entry) => entry.txid(),
            Spender::Confirmed(tx, _) => tx.view().txid(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Spender::Unconfirmed(entry) => entry.tx().as_bytes(),
            Spender::Confirmed(tx, _) => tx.as_bytes(),
        }
    }
}

impl Answer for Spending {
    const FORM: Form = SpendingForm::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        for (name, value) in &self.given {
            write_text(name, out);
            write_member(":", value, out);
        }
        if let Some(spender) = &self.spender {
            write_member("\"spendingtxid\":", &spender.txid(), out);
            if self.has_tx {
                write_member("\"spendingtx\":", &Hex(spender.bytes()), out);
            }
            if let Spender::Confirmed(_, block) = spender {
                write_member("\"blockhash\":", block, out);
            }
        }
        close(b'}', out);
    }
}

fn gettxspendingprevout(call: &Call<'_>) -> Result<Vec<Spending>, RpcError> {
    let outputs = call.arg(0).as_array()?;
    if outputs.is_empty() {
        return Err(RpcError::parameter("Invalid parameter, outputs are missing"));
    }
    let mut flags = [None; 2];
    if let Some(options) = call.given(1) {
        let names = ["mempool_only", "return_spending_tx"];
        check_fields(options, &names.map(|name| (name, "bool")), false)?;
        for (flag, name) in flags.iter_mut().zip(names) {
            *flag = options.get(name).map(Json::as_bool).transpose()?;
        }
    }
    let index = call.context.indexes().spenders.as_ref();
    let unopened = call.context.indexes().unopened(TXOSPENDERINDEX_NAME);
    let is_off = index.is_none() && unopened.is_none();
    let [is_mempool_only, has_tx] = [flags[0].unwrap_or(is_off), flags[1].unwrap_or(false)];
    let mut wanted = Vec::with_capacity(outputs.len());
    for output in outputs {
        let given = output.as_object()?;
        check_fields(output, &[("txid", "string"), ("vout", "number")], true)?;
        let txid = Txid(parse_hash(output.field("txid"), "txid")?);
        let vout: i32 = output.field("vout").as_integer()?;
        let negative = |_| RpcError::parameter("Invalid parameter, vout cannot be negative");
        wanted.push((OutPoint { txid, vout: u32::try_from(vout).map_err(negative)? }, given));
    }
    let snapshot = call.context.mempool()?.snapshot();
    // As in Core, the outputs that the mempool answers come first.
    let (mut found, mut open) = (Vec::with_capacity(wanted.len()), Vec::new());
    for (outpoint, given) in wanted {
        let spender = snapshot.spender(&outpoint).map(|entry| Spender::Unconfirmed(Arc::clone(entry)));
        match spender {
            None if !is_mempool_only => open.push((outpoint, given)),
            spender => found.push(Spending { given: given.to_vec(), spender, has_tx }),
        }
    }
    if !open.is_empty() {
        if let Some(reason) = unopened {
            return Err(RpcError::misc(reason));
        }
        let is_synced = index.map_or(Ok(false), |index| index.wait_until_synced()).map_err(RpcError::misc)?;
        let Some(index) = index.filter(|_| is_synced) else {
            return Err(RpcError::misc("Mempool lacks a relevant spend, and txospenderindex is unavailable."));
        };
        for (outpoint, given) in open {
            let spender = index.find_spender(&outpoint).map_err(RpcError::misc)?;
            let spender = spender.map(|(tx, block)| Spender::Confirmed(tx, block));
            found.push(Spending { given: given.to_vec(), spender, has_tx });
        }
    }
    let bytes = |one: &Spending| one.spender.as_ref().map_or(0, |spender| 2 * spender.bytes().len());
    if has_tx {
        call.expect_bytes(found.iter().map(bytes).sum())?;
    }
    Ok(found)
}

/// Core's `RPCTypeCheckObj` with `fStrict`: the types of all fields, then that there are no others.
fn check_fields(object: &Json, fields: &[(&str, &str)], are_required: bool) -> Result<(), RpcError> {
    for (name, expected) in fields {
        object.typed_field(name, expected, are_required)?;
    }
    let is_unknown = |(key, _): &&(String, Json)| !fields.iter().any(|(name, _)| name == key);
    match object.as_object()?.iter().find(is_unknown) {
        Some((key, _)) => Err(RpcError::new(code::TYPE_ERROR, format!("Unexpected key {key}"))),
        None => Ok(()),
    }
}
