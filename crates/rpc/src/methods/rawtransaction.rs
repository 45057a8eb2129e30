//! Methods about single transactions: creating, decoding, signing and finding them.
//!
//! Input: transactions in hex, or txids. Output: typed answers in Core's fields (rpc/rawtransaction.cpp).

use super::rawtransaction_create::createrawtransaction;
use super::rawtransaction_sign::{combinerawtransaction, signrawtransactionwithkey};
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::output::{DecodedTransaction, Hex, OwnedTransaction};
use crate::raw_tx::{Reading, decode};
use crate::result::{Inline, Time, cases, result};
use lydian_engine::{Engine, HeaderInfo};
use lydian_index::TXINDEX_NAME;
use lydian_primitives::{Block, BlockHash, Transaction, Txid};

/// The inputs of a transaction that is created.
pub(super) const INPUTS: Arg =
    Arg::new("inputs", Kind::Array, "the inputs").of(&[Arg::new("", Kind::Object, "").omitted().of(&[
        Arg::new("txid", Kind::Hex, "the transaction id"),
        Arg::new("vout", Kind::Number, "the output number"),
        Arg::new("sequence", Kind::Number, "the sequence number").hint("depends on 'replaceable' and 'locktime'"),
    ])]);

/// The lock time, the signal and the version of a transaction that is created.
pub(super) const LOCK_TIME: Arg =
    Arg::new("locktime", Kind::Number, "the lock time; if it is not 0, it takes effect").default("0");
pub(super) const REPLACEABLE: Arg =
    Arg::new("replaceable", Kind::Bool, "whether the transaction signals that it may be replaced (BIP-0125)")
        .default("true");
pub(super) const TX_VERSION: Arg = Arg::new("version", Kind::Number, "the transaction version").default("2");

/// The outputs of a transaction that is created.
pub(super) const OUTPUTS: Arg = Arg::new(
    "outputs",
    Kind::Array,
    "the outputs as objects with one key each; or one object. No address may occur twice, and there is at most one 'data'.",
)
.unchecked()
.of(&[
    Arg {
        oneline: "{\"address\":amount,...}",
        ..Arg::new("", Kind::Object, "")
            .omitted()
            .of(&[Arg::new("address", Kind::Amount, "the address, and the amount in BTC")])
    },
    Arg::new("", Kind::Object, "").omitted().of(&[Arg::new("data", Kind::Hex, "the data of an OP_RETURN output")]),
]);

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "combinerawtransaction",
        category: Category::Rawtransactions,
        help: "Combines the signatures of several copies of a transaction into one transaction, which may still lack some.",
        args: &[Arg::new("txs", Kind::Array, "the partially signed transactions in hex")
            .of(&[Arg::new("hexstring", Kind::Hex, "a transaction").omitted()])],
        examples: &["'[\"myhex1\",\"myhex2\",\"myhex3\"]'"],
        remark: "",
        call: &returns("the transaction with signatures", combinerawtransaction),
    },
    Method {
        name: "createrawtransaction",
        category: Category::Rawtransactions,
        help: "Creates a transaction that spends the given outputs and creates new ones. It is not signed, not stored and not sent.",
        args: &[
            INPUTS,
            OUTPUTS,
            LOCK_TIME,
            REPLACEABLE,
            TX_VERSION,
        ],
        examples: &["'[{\"txid\":\"myid\",\"vout\":0}]' '[{\"address\":0.01}]'"],
        remark: "",
        call: &returns("the transaction", createrawtransaction),
    },
    Method {
        name: "decoderawtransaction",
        category: Category::Rawtransactions,
        help: "Returns the contents of a transaction.",
        args: &[
            Arg::new("hexstring", Kind::Hex, "the transaction"),
            Arg::new("iswitness", Kind::Bool, "true if it is serialized with witnesses, false if without")
                .hint("depends on heuristic tests"),
        ],
        examples: &["\"hexstring\""],
        remark: "",
        call: &returns("", decoderawtransaction),
    },
    Method {
        name: "getrawtransaction",
        category: Category::Rawtransactions,
        help: "Returns a transaction of the mempool, of the given block, or with -txindex of any block.\n\
               Verbosity 0 returns it in hex, 1 an object. 2 adds the fee and the outputs that it spends, if undo data is available.",
        args: &[
            Arg::new("txid", Kind::Hex, "the transaction id"),
            Arg::new("verbosity|verbose", Kind::Number, "0 to 2").default("0").unchecked(),
            Arg::new("blockhash", Kind::Hex, "the block that contains the transaction").omitted(),
        ],
        examples: &["\"mytxid\"", "\"mytxid\" 1 \"myblockhash\""],
        remark: "",
        call: &returns("", getrawtransaction),
    },
    Method {
        name: "signrawtransactionwithkey",
        category: Category::Rawtransactions,
        help: "Signs the inputs of a transaction with the given private keys, and no others. Outputs that are not in the chain are given in prevtxs.",
        args: &[
            Arg::new("hexstring", Kind::Text, "the transaction"),
            Arg::new("privkeys", Kind::Array, "the private keys for signing, in base58").of(&[Arg::new(
                "privatekey",
                Kind::Hex,
                "a private key",
            )
            .omitted()]),
            Arg::new("prevtxs", Kind::Array, "outputs that the transaction spends").omitted().of(&[Arg::new(
                "",
                Kind::Object,
                "",
            )
            .omitted()
            .of(&[
                Arg::new("txid", Kind::Hex, "the transaction id"),
                Arg::new("vout", Kind::Number, "the output number"),
                Arg::new("scriptPubKey", Kind::Hex, "the output script"),
                Arg::new("redeemScript", Kind::Hex, "the redeem script, required for P2SH").omitted(),
                Arg::new("witnessScript", Kind::Hex, "the witness script, required for P2WSH and P2SH-P2WSH").omitted(),
                Arg::new("amount", Kind::Amount, "the amount, required for segwit inputs").omitted(),
            ])]),
            Arg::new(
                "sighashtype",
                Kind::Text,
                "what signatures commit to: DEFAULT, ALL, NONE, SINGLE, ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY",
            )
            .default("\"DEFAULT for Taproot, ALL otherwise\""),
        ],
        examples: &["\"myhex\" '[\"key1\",\"key2\"]'"],
        remark: "",
        call: &returns("", signrawtransactionwithkey),
    },
];

fn decoderawtransaction(call: &Call<'_>) -> Result<DecodedTransaction, RpcError> {
    let reading = match call.given(1).map(Json::as_bool).transpose()? {
        None => Reading::Either,
        Some(true) => Reading::WithWitness,
        Some(false) => Reading::WithoutWitness,
    };
    let tx = decode(call.text(0)?, reading);
    let tx = tx.ok_or_else(|| RpcError::new(code::DESERIALIZATION_ERROR, "TX decode failed"))?;
    call.expect_bytes(tx.as_bytes().len() * TEXT_PER_BYTE)?;
    Ok(DecodedTransaction { tx, chain: call.context.settings.params.chain })
}

/// About the size of Core's JSON per byte of a transaction.
const TEXT_PER_BYTE: usize = 8;

cases! {
    /// The answer of `getrawtransaction`.
    enum RawTransaction {
        /// the serialized transaction
        #[when("if verbosity is not set or set to 0")]
        Raw(Hex<Box<[u8]>>),
        #[when("if verbosity is set to 1 or 2")]
        Details(Box<TransactionDetails>),
    }
}

result! {
    /// Core's `TxToJSON`.
    struct TransactionDetails {
        /// whether the given block is in the active chain (only present with the argument "blockhash")
        in_active_chain: Option<bool>,
        transaction: Inline<OwnedTransaction>,
        /// the block hash
        blockhash: Option<BlockHash>,
        /// the confirmations
        confirmations: Option<i64>,
        /// same as "blocktime"
        time: Option<Time<u32>>,
        /// the block time expressed in UNIX epoch time
        blocktime: Option<Time<u32>>,
    }
}

/// A transaction that was found.
struct Found {
    tx: Transaction,
    /// The block that contains it, if any.
    block: Option<HeaderInfo>,
}

fn getrawtransaction(call: &Call<'_>) -> Result<RawTransaction, RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "parameter 1")?);
    let engine = call.context.engine()?;
    if engine.params().genesis_block().parse().is_ok_and(|genesis| genesis.header().merkle_root == txid.0) {
        let words = "The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved";
        return Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, words));
    }
    let verbosity = match call.given(1) {
        None => 0,
        Some(Json::Bool(is_verbose)) => i32::from(*is_verbose),
        Some(value) => value.as_integer()?,
    };
    let given = call.given(2).map(|_| {
        let hash = call.hash(2, "parameter 3")?;
        let info = engine.header_info(&hash);
        info.ok_or_else(|| RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Block hash not found"))
    });
    let given = given.transpose()?;
    let in_active_chain = given.as_ref().map(|info| info.is_active);
    let found = match given {
        Some(info) => find_in_block(&engine, &txid, info)?,
        None => find_anywhere(call, &engine, &txid)?,
    };
    let size = found.tx.as_bytes().len();
    if verbosity <= 0 {
        call.expect_bytes(2 * size + 64)?;
        return Ok(RawTransaction::Raw(Hex(found.tx.as_bytes().into())));
    }
    call.expect_bytes(size * TEXT_PER_BYTE)?;
    let spent = match &found.block {
        Some(info) if verbosity >= 2 && !found.tx.view().is_coinbase() => spent_coins(&engine, info, &txid)?,
        _ => None,
    };
    let active = found.block.as_ref().filter(|info| info.is_active);
    let time = active.map(|info| info.node.header.time);
    Ok(RawTransaction::Details(Box::new(TransactionDetails {
        in_active_chain,
        transaction: Inline(OwnedTransaction { tx: found.tx, spent, chain: engine.params().chain }),
        blockhash: found.block.as_ref().map(|info| info.node.hash),
        confirmations: found.block.as_ref().map(|info| info.confirmations().max(0)),
        time: time.map(Time),
        blocktime: time.map(Time),
    })))
}

const NOT_A_WALLET: &str = "Use gettransaction for wallet transactions.";

fn not_found(words: &str) -> RpcError {
    RpcError::new(code::INVALID_ADDRESS_OR_KEY, format!("{words}. {NOT_A_WALLET}"))
}

fn find_in_block(engine: &Engine, txid: &Txid, info: HeaderInfo) -> Result<Found, RpcError> {
    if info.node.block.is_none() {
        return Err(RpcError::misc("Block not available"));
    }
    // A block that cannot be read contains nothing, as in Core.
    let block = engine.block(&info).ok().flatten();
    let tx = block.as_ref().and_then(|block| block.txs().find(|tx| tx.txid() == *txid));
    let tx = tx.and_then(|tx| Transaction::parse(tx.bytes()).ok());
    let tx = tx.ok_or_else(|| not_found("No such transaction found in the provided block"))?;
    Ok(Found { tx, block: Some(info) })
}

/// Looks in the mempool, then in the index.
fn find_anywhere(call: &Call<'_>, engine: &Engine, txid: &Txid) -> Result<Found, RpcError> {
    let index = call.context.indexes().transactions.as_ref();
    let synced = index.map_or(Ok(false), |index| index.wait_until_synced());
    if let Some(tx) = call.context.mempool_transaction(txid) {
        return Ok(Found { tx: Transaction::clone(&tx), block: None });
    }
    let found = index.map(|index| index.find(txid)).transpose().map_err(RpcError::misc)?;
    if let Some((tx, hash)) = found.flatten() {
        return Ok(Found { tx, block: engine.header_info(&hash) });
    }
    let is_synced = synced.map_err(RpcError::misc)?;
    if let Some(reason) = call.context.indexes().unopened(TXINDEX_NAME) {
        return Err(RpcError::misc(reason));
    }
    Err(not_found(match (index, is_synced) {
        (None, _) => {
            "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries"
        }
        (_, false) => "No such mempool transaction. Blockchain transactions are still in the process of being indexed",
        (_, true) => "No such mempool or blockchain transaction",
    }))
}

/// The coins that a transaction of a block spent; `None` if the block was pruned meanwhile.
fn spent_coins(
    engine: &Engine,
    info: &HeaderInfo,
    txid: &Txid,
) -> Result<Option<Vec<lydian_consensus::Coin>>, RpcError> {
    let unreadable = |what: &str| {
        let words = format!(
            "{what} data expected but can't be read. This could be due to disk corruption or a conflict with a pruning event."
        );
        RpcError::new(code::INTERNAL_ERROR, words)
    };
    if info.node.block.is_none() {
        return Ok(None);
    }
    let block: Block = engine.block(info).ok().flatten().ok_or_else(|| unreadable("Block"))?;
    let coins = engine.spent_coins(info, &block).ok().flatten().ok_or_else(|| unreadable("Undo"))?;
    let mut coins = coins.into_iter();
    for tx in block.txs().skip(1) {
        let own = coins.by_ref().take(tx.input_count());
        if tx.txid() == *txid {
            return Ok(Some(own.collect()));
        }
        own.for_each(drop);
    }
    Ok(None)
}
