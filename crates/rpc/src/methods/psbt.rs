//! Methods about partially signed transactions: creating, decoding, combining, analysing and finalizing them.
//!
//! Input: PSBTs in base 64. Output: PSBTs again, or typed answers in Core's fields (rpc/rawtransaction.cpp). The work
//! is done by [`lydian_psbt`].

use super::psbt_decode::DecodedPsbt;
use super::psbt_process::{descriptorprocesspsbt, utxoupdatepsbt};
use super::rawtransaction::{INPUTS, LOCK_TIME, OUTPUTS, REPLACEABLE, TX_VERSION};
use super::rawtransaction_create::construct;
use crate::error::{RpcError, code};
use crate::json::{Amount, Json};
use crate::limits::ANSWERS_SIZE_MAX;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::output::Hex;
use crate::raw_tx::{Reading, decode};
use crate::result::result;
use lydian_descriptor::Batch;
use lydian_mempool::policy::{FeeRate, virtual_size};
use lydian_primitives::build::MutTx;
use lydian_psbt::{InputAnalysis, Psbt, join};

const PSBT: Arg = Arg::new("psbt", Kind::Text, "the PSBT in base 64");

const PSBTS: Arg = Arg::new("txs", Kind::Array, "the PSBTs in base 64");

const VERSION: Arg = Arg::new("psbt_version", Kind::Number, "the PSBT version: 2 or 0").default("2");

/// Descriptors with their ranges, as strings or objects.
const DESCRIPTORS: Arg = Arg::new("descriptors", Kind::Array, "the descriptors").of(&[
    Arg::new("", Kind::Text, "a descriptor").omitted(),
    Arg::new("", Kind::Object, "a descriptor with its range").omitted().of(&[
        Arg::new("desc", Kind::Text, "the descriptor"),
        Arg::new("range", Kind::Range, "the end, or [begin,end], of the range to derive").default("1000"),
    ]),
]);

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "analyzepsbt",
        category: Category::Rawtransactions,
        help: "Returns what a PSBT and its inputs still need, and who has to handle them next.",
        args: &[PSBT],
        examples: &["\"psbt\""],
        remark: "",
        call: &returns("", analyzepsbt),
    },
    Method {
        name: "combinepsbt",
        category: Category::Rawtransactions,
        help: "Combines several PSBTs of one transaction into one PSBT: the Combiner of BIP-0174.",
        args: &[PSBTS.of(&[Arg::new("psbt", Kind::Text, "a PSBT").omitted()])],
        examples: &["'[\"mybase64_1\",\"mybase64_2\",\"mybase64_3\"]'"],
        remark: "",
        call: &returns("the combined PSBT in base 64", combinepsbt),
    },
    Method {
        name: "converttopsbt",
        category: Category::Rawtransactions,
        help: "Converts a transaction to a PSBT. Use it with createrawtransaction only; createpsbt makes a PSBT at once.",
        args: &[
            Arg::new("hexstring", Kind::Hex, "the transaction"),
            Arg::new("permitsigdata", Kind::Bool, "true to discard signatures; false to fail if there are any")
                .default("false"),
            Arg::new("iswitness", Kind::Bool, "true if it is serialized with witnesses, false if without")
                .hint("depends on heuristic tests"),
            VERSION,
        ],
        examples: &["\"rawtransaction\""],
        remark: "",
        call: &returns("the PSBT in base 64", converttopsbt),
    },
    Method {
        name: "createpsbt",
        category: Category::Rawtransactions,
        help: "Creates a PSBT that spends the given outputs and creates new ones: the Creator of BIP-0174. It is not signed, not stored and not sent.",
        args: &[
            INPUTS,
            OUTPUTS,
            LOCK_TIME,
            REPLACEABLE,
            TX_VERSION,
            VERSION,
        ],
        examples: &["'[{\"txid\":\"myid\",\"vout\":0}]' '[{\"address\":0.01}]'"],
        remark: "",
        call: &returns("the PSBT in base 64", createpsbt),
    },
    Method {
        name: "decodepsbt",
        category: Category::Rawtransactions,
        help: "Returns the contents of a PSBT.",
        args: &[PSBT],
        examples: &["\"psbt\""],
        remark: "",
        call: &returns("", decodepsbt),
    },
    Method {
        name: "descriptorprocesspsbt",
        category: Category::Rawtransactions,
        help: "Adds to a PSBT what the given descriptors, the chain and the mempool know about its inputs and outputs, and signs the inputs with the private keys of the descriptors.",
        args: &[
            PSBT,
            DESCRIPTORS,
            Arg::new(
                "sighashtype",
                Kind::Text,
                "what signatures commit to if the PSBT does not say it: DEFAULT, ALL, NONE, SINGLE, ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY",
            )
            .default("\"DEFAULT for Taproot, ALL otherwise\""),
            Arg::new("bip32derivs", Kind::Bool, "whether to add the derivation paths of public keys").default("true"),
            Arg::new("finalize", Kind::Bool, "whether to finalize inputs that are complete").default("true"),
        ],
        examples: &[
            "\"psbt\" '[\"descriptor1\",\"descriptor2\"]'",
            "\"psbt\" '[{\"desc\":\"mydescriptor\",\"range\":21}]'",
        ],
        remark: "",
        call: &returns("", descriptorprocesspsbt),
    },
    Method {
        name: "finalizepsbt",
        category: Category::Rawtransactions,
        help: "Makes final scripts of the inputs that have all signatures: the Finalizer and the Extractor of BIP-0174. Returns the transaction if all inputs are final, and the PSBT otherwise.",
        args: &[
            PSBT,
            Arg::new("extract", Kind::Bool, "whether to return a complete transaction instead of the PSBT")
                .default("true"),
        ],
        examples: &["\"psbt\""],
        remark: "",
        call: &returns("", finalizepsbt),
    },
    Method {
        name: "joinpsbts",
        category: Category::Rawtransactions,
        help: "Joins PSBTs of version 0 with different inputs into one with all inputs and outputs, in random order. No input may be in two of them.",
        args: &[PSBTS.of(&[Arg::new("psbt", Kind::Text, "a PSBT")])],
        examples: &["\"psbt\""],
        remark: "",
        call: &returns("the joined PSBT in base 64", joinpsbts),
    },
    Method {
        name: "utxoupdatepsbt",
        category: Category::Rawtransactions,
        help: "Adds to a PSBT what the given descriptors, the chain, the mempool and -txindex know about its inputs and outputs.",
        args: &[PSBT, DESCRIPTORS.omitted()],
        examples: &["\"psbt\""],
        remark: "",
        call: &returns("the updated PSBT in base 64", utxoupdatepsbt),
    },
];

/// About the memory that a PSBT takes per byte of its text, many small outputs being the worst.
const MEMORY_PER_BYTE: usize = 24;

/// Waits for room for PSBTs of these texts. The largest ones wait until they are alone.
fn reserve<'t>(call: &Call<'_>, texts: impl IntoIterator<Item = &'t str>) -> Result<(), RpcError> {
    let size: usize = texts.into_iter().map(str::len).sum();
    call.expect_bytes(size.saturating_mul(MEMORY_PER_BYTE).min(ANSWERS_SIZE_MAX / 2))
}

fn decode_text(text: &str) -> Result<Psbt, RpcError> {
    let failed = |error| RpcError::new(code::DESERIALIZATION_ERROR, format!("TX decode failed {error}"));
    Psbt::from_base64(text).map_err(failed)
}

/// Reads a PSBT.
pub(super) fn read(call: &Call<'_>, text: &str) -> Result<Psbt, RpcError> {
    reserve(call, [text])?;
    decode_text(text)
}

fn decodepsbt(call: &Call<'_>) -> Result<DecodedPsbt, RpcError> {
    Ok(DecodedPsbt::new(read(call, call.text(0)?)?, call.context.settings.params.chain))
}

/// The PSBT of a new transaction, in the version that the argument wants.
fn create(tx: &MutTx, version: Option<&Json>) -> Result<String, RpcError> {
    match version.map_or(Ok(2), Json::as_integer::<u32>)? {
        version @ (0 | 2) => Ok(Psbt::new(tx, version).to_base64()),
        _ => Err(RpcError::parameter("The PSBT version can only be 2 or 0")),
    }
}

fn createpsbt(call: &Call<'_>) -> Result<String, RpcError> {
    create(&construct(call)?, call.given(5))
}

fn converttopsbt(call: &Call<'_>) -> Result<String, RpcError> {
    let undecodable = |words: &str| RpcError::new(code::DESERIALIZATION_ERROR, words);
    let permits_signatures = call.bool_or(1, false)?;
    let reading = match call.given(2).map(Json::as_bool).transpose()? {
        None => Reading::Either,
        Some(true) => Reading::WithWitness,
        Some(false) => Reading::WithoutWitness,
    };
    let tx = decode(call.text(0)?, reading).ok_or_else(|| undecodable("TX decode failed"))?;
    let mut tx = MutTx::from(tx.view());
    for input in &mut tx.inputs {
        let is_signed = !input.script_sig.is_empty() || !input.witness.is_empty();
        if is_signed && !permits_signatures {
            return Err(undecodable("Inputs must not have scriptSigs and scriptWitnesses"));
        }
        input.script_sig.clear();
        input.witness.clear();
    }
    create(&tx, call.given(3))
}

fn combinepsbt(call: &Call<'_>) -> Result<String, RpcError> {
    let texts = call.arg(0).as_array()?;
    if texts.is_empty() {
        return Err(RpcError::parameter("Parameter 'txs' cannot be empty"));
    }
    reserve(call, texts.iter().filter_map(|text| text.as_text().ok()))?;
    let mut psbts = Vec::with_capacity(texts.len());
    for text in texts {
        psbts.push(decode_text(text.as_text()?)?);
    }
    let mut psbts = psbts.into_iter();
    let mut combined = psbts.next().unwrap_or_default();
    match psbts.all(|psbt| combined.merge(psbt)) {
        true => Ok(combined.to_base64()),
        false => Err(RpcError::parameter("PSBTs not compatible (different transactions)")),
    }
}

fn joinpsbts(call: &Call<'_>) -> Result<String, RpcError> {
    let texts = call.arg(0).as_array()?;
    if texts.len() <= 1 {
        return Err(RpcError::parameter("At least two PSBTs are required to join PSBTs."));
    }
    reserve(call, texts.iter().filter_map(|text| text.as_text().ok()))?;
    let mut psbts = Vec::with_capacity(texts.len());
    for text in texts {
        let psbt = decode_text(text.as_text()?)?;
        if psbt.version != 0 {
            return Err(RpcError::parameter("joinpsbts only operates on version 0 PSBTs"));
        }
        psbts.push(psbt);
    }
    let host = &call.context.host;
    let joined = join(psbts, |count| {
        // Each number is sorted by random bytes.
        let mut order: Vec<([u8; 16], usize)> = (0..count).map(|index| ([0; 16], index)).collect();
        order.iter_mut().for_each(|(bytes, _)| host.fill_random(bytes));
        order.sort_unstable();
        order.into_iter().map(|(_, index)| index).collect()
    });
    let twice = |prevout: lydian_primitives::OutPoint| {
        RpcError::parameter(format!("Input {}:{} exists in multiple PSBTs", prevout.txid, prevout.vout))
    };
    Ok(joined.map_err(twice)?.to_base64())
}

result! {
    /// The answer of `finalizepsbt`.
    struct FinalizedAnswer {
        /// the PSBT in base 64, if the transaction is not extracted
        psbt: Option<String>,
        /// the transaction, if it is extracted
        hex: Option<Hex<Vec<u8>>>,
        /// whether the transaction has a complete set of signatures
        complete: bool,
    }
}

fn finalizepsbt(call: &Call<'_>) -> Result<FinalizedAnswer, RpcError> {
    let mut psbt = read(call, call.text(0)?)?;
    let extracts = call.bool_or(1, true)?;
    let engine = call.context.engine()?;
    let tx = psbt.finalize(&Batch::new(engine.signatures().as_ref(), [0; 32]));
    let complete = tx.is_some();
    let hex = tx.filter(|_| extracts).map(|tx| Hex(tx.encode()));
    Ok(FinalizedAnswer { psbt: hex.is_none().then(|| psbt.to_base64()), hex, complete })
}

result! {
    /// The answer of `analyzepsbt`.
    struct AnalysisAnswer {
        inputs: Option<Vec<InputAnswer>>,
        /// estimated vsize of the final signed transaction
        estimated_vsize: Option<i64>,
        /// estimated feerate of the final signed transaction in BTC/kvB, if the amounts of all inputs are known
        estimated_feerate: Option<Amount>,
        /// the transaction fee, if the amounts of all inputs are known
        fee: Option<Amount>,
        /// role of the next person that the PSBT needs to go to
        next: &'static str,
        /// error message (if there is one)
        error: Option<String>,
    }
}

result! {
    struct InputAnswer {
        /// whether the spent output is known
        has_utxo: bool,
        /// whether the input is final
        is_final: bool,
        /// role of the next person that the input needs to go to
        next: &'static str,
        /// what is missing to complete the input
        missing: Option<MissingAnswer>,
    }
}

result! {
    struct MissingAnswer {
        #[each("the hash160 of a public key whose derivation path is missing")]
        pubkeys: Option<Vec<Hex<[u8; 20]>>>,
        /// the hash160 of the redeem script that is missing
        redeemscript: Option<Hex<[u8; 20]>>,
        /// the SHA-256 of the witness script that is missing
        witnessscript: Option<Hex<[u8; 32]>>,
        #[each("the hash160 of a public key whose signature is missing")]
        signatures: Option<Vec<Hex<[u8; 20]>>>,
    }
}

fn input_answer(input: InputAnalysis) -> InputAnswer {
    let list = |hashes: Vec<[u8; 20]>| (!hashes.is_empty()).then(|| hashes.into_iter().map(Hex).collect());
    let missing = input.missing;
    let missing = MissingAnswer {
        pubkeys: list(missing.keys),
        redeemscript: missing.redeem_script.filter(|hash| *hash != [0; 20]).map(Hex),
        witnessscript: missing.witness_script.filter(|hash| *hash != [0; 32]).map(Hex),
        signatures: list(missing.signatures),
    };
    let is_any = missing.pubkeys.is_some()
        || missing.redeemscript.is_some()
        || missing.witnessscript.is_some()
        || missing.signatures.is_some();
    InputAnswer {
        has_utxo: input.has_utxo,
        is_final: input.is_final,
        next: input.next.name(),
        missing: is_any.then_some(missing),
    }
}

fn analyzepsbt(call: &Call<'_>) -> Result<AnalysisAnswer, RpcError> {
    let analysis = read(call, call.text(0)?)?.analyze();
    let bytes_per_sigop = call.context.mempool()?.settings().bytes_per_sigop;
    let vsize = analysis.estimate.map(|of| virtual_size(of.weight, of.sigops_cost, bytes_per_sigop));
    let fee_rate = analysis.fee.zip(vsize).map(|(fee, vsize)| FeeRate::new(fee.0, vsize).fee_per_kvb());
    let inputs: Vec<InputAnswer> = analysis.inputs.into_iter().map(input_answer).collect();
    Ok(AnalysisAnswer {
        inputs: (!inputs.is_empty()).then_some(inputs),
        estimated_vsize: vsize,
        estimated_feerate: fee_rate.map(Amount),
        fee: analysis.fee.map(|fee| Amount(fee.0)),
        next: analysis.next.name(),
        error: analysis.error,
    })
}
