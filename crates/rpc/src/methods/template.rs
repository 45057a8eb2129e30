//! `getblocktemplate` (BIP-0022, 0023, 0009, 0145): templates for miners, long polls, proposals.
//!
//! Input: the request of a miner. Output: the template that [`crate::templates`] keeps, with the time and the target of
//! now; or the verdict on a proposed block. A long poll holds no thread.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::methods::net::ask;
use crate::methods::submit::parse_leniently;
use crate::output::{Hex, target};
use crate::result::{Empty, Map, Time, cases, result};
use crate::templates::{Commitment, Template, Transactions};
use crate::wait::{Finish, Later, Rules, Until};
use lydian_consensus::limits::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT, WITNESS_SCALE_FACTOR};
use lydian_consensus::{Chain, U256};
use lydian_engine::HeaderInfo;
use lydian_p2p::manager::Question;
use lydian_primitives::{BlockHash, hex};

const STRINGS: &str = "client side supported feature, 'longpoll', 'coinbasevalue', 'proposal', 'serverlist', 'workid'";

pub(crate) const METHODS: &[Method] = &[Method {
    name: "getblocktemplate",
    category: Category::Mining,
    help: "Returns data needed to construct a block to work on, or with the mode 'proposal' the verdict on a block.\n\
           For full specification, see BIPs 22, 23, 9, and 145.",
    args: &[Arg::new("template_request", Kind::Object, "Format of the template").of(&[
        Arg::new("mode", Kind::Text, "This must be set to \"template\", \"proposal\" (see BIP 23), or omitted").omitted(),
        Arg::new("capabilities", Kind::Array, "A list of strings")
            .omitted()
            .of(&[Arg::new("str", Kind::Text, STRINGS).omitted()]),
        Arg::new("rules", Kind::Array, "A list of strings").of(&[
            Arg::new("segwit", Kind::Text, "(literal) indicates client side segwit support"),
            Arg::new("str", Kind::Text, "other client side supported softfork deployment").omitted(),
        ]),
        Arg::new(
            "longpollid",
            Kind::Text,
            "delay processing request until the result would vary significantly from the \"longpollid\" of a prior template",
        )
        .omitted(),
        Arg::new(
            "data",
            Kind::Hex,
            "proposed block data to check, encoded in hexadecimal; valid only for mode=\"proposal\"",
        )
        .omitted(),
    ])],
    examples: &["'{\"rules\": [\"segwit\"]}'"],
    remark: "The errors of a node without peers and of one in initial block download name Lydian instead of Bitcoin Core. \
             A long poll holds no thread of `-rpcthreads`.",
    call: &returns("", getblocktemplate),
}];

cases! {
    enum Answer {
        #[when("if the proposal was accepted with mode=='proposal'")]
        Accepted(()),
        /// according to BIP22
        #[when("if the proposal was not accepted with mode=='proposal'")]
        Refused(String),
        #[when("otherwise")]
        Template(Box<BlockTemplate>),
    }
}

result! {
    struct BlockTemplate {
        /// a supported feature
        #[each("such as 'proposal'")]
        capabilities: [&'static str; 1],
        /// the preferred block version
        version: i32,
        /// specific block rules that are to be enforced
        #[each("name of a rule the client must understand to some extent; see BIP 9 for format")]
        rules: Vec<&'static str>,
        /// set of pending, supported versionbit (BIP 9) softfork deployments
        #[each(key "rulename" "identifies the bit number as indicating acceptance and readiness for the named softfork rule")]
        vbavailable: Map<&'static str, u32>,
        /// bit mask of versionbits the server requires set in submissions
        vbrequired: u32,
        /// the hash of current highest block
        previousblockhash: BlockHash,
        /// contents of non-coinbase transactions that should be included in the next block
        transactions: Transactions,
        /// data that should be included in the coinbase's scriptSig content
        coinbaseaux: Empty,
        /// maximum allowable input to coinbase transaction, including the generation award and transaction fees (in
        /// satoshis)
        coinbasevalue: i64,
        /// an id to include with a request to longpoll on an update to this template
        longpollid: String,
        /// the hash target
        target: U256,
        /// the minimum timestamp appropriate for the next block time, adjusted for the proposed BIP94 timewarp rule
        mintime: Time<i64>,
        /// list of ways the block template may be changed
        #[each("a way the block template may be changed, e.g. 'time', 'transactions', 'prevblock'")]
        mutable: [&'static str; 3],
        /// a range of valid nonces
        noncerange: Hex<[u8; 8]>,
        /// limit of sigops in blocks
        sigoplimit: usize,
        /// limit of block size
        sizelimit: usize,
        /// limit of block weight
        weightlimit: Option<usize>,
        /// current timestamp, adjusted for the proposed BIP94 timewarp rule
        curtime: Time<u32>,
        /// compressed target of next block
        bits: Hex<[u8; 4]>,
        /// the height of the next block
        height: u32,
        /// only on signet
        signet_challenge: Option<Hex<Vec<u8>>>,
        /// a valid witness commitment for the unmodified block template
        default_witness_commitment: Hex<Commitment>,
    }
}

/// Core's `MAX_BLOCK_SERIALIZED_SIZE`.
const SIZE_MAX: usize = 4_000_000;

/// The only deployment that Core knows.
const TESTDUMMY: &str = "testdummy";

fn getblocktemplate(call: &Call<'_>) -> Result<Later<Answer>, RpcError> {
    let request = call.arg(0);
    let mode = match request.field("mode") {
        Json::Null => "template",
        Json::Text(mode) => mode.as_str(),
        _ => return Err(invalid_mode()),
    };
    if mode == "proposal" {
        return propose(call, request.field("data")).map(Later::Now);
    }
    let mut names = Vec::new();
    if let Json::Array(rules) = request.field("rules") {
        for rule in rules {
            names.push(rule.as_text()?);
        }
    }
    if mode != "template" {
        return Err(invalid_mode());
    }
    check_connected(call.context)?;
    let rules = Rules { has_segwit: names.contains(&"segwit"), has_signet: names.contains(&"signet") };
    // Core says so before it waits.
    call.context.mempool()?;
    if let Some(until) = poll(call.context, request.field("longpollid"), rules)? {
        return Ok(call.wait(until, None));
    }
    let answer = template(call.context, rules)?;
    if let Answer::Template(template) = &answer {
        call.expect_bytes(template.transactions.len())?;
    }
    Ok(Later::Now(answer))
}

fn invalid_mode() -> RpcError {
    RpcError::parameter("Invalid mode")
}

/// On a chain that is not for tests, a template needs peers and a tip that is up to date.
fn check_connected(context: &Context) -> Result<(), RpcError> {
    if context.settings.params.chain != Chain::Main {
        return Ok(());
    }
    if ask(context, Question::Peers)?.is_empty() {
        return Err(RpcError::new(code::CLIENT_NOT_CONNECTED, "Lydian is not connected!"));
    }
    if context.is_initial_block_download() {
        let words = "Lydian is in initial sync and waiting for blocks...";
        return Err(RpcError::new(code::CLIENT_IN_INITIAL_DOWNLOAD, words));
    }
    Ok(())
}

/// What a long poll waits for; `None` without an id.
fn poll(context: &Context, id: &Json, rules: Rules) -> Result<Option<Until>, RpcError> {
    let (tip, updates) = match id {
        Json::Null => return Ok(None),
        Json::Text(text) => {
            let (tip, updates) = text.split_at_checked(BLOCK_HASH_DIGITS).unwrap_or((text, ""));
            (BlockHash(parse_hash(&Json::Text(tip.to_owned()), "longpollid")?), wrapped_number(updates))
        }
        _ => (context.engine()?.settled_tip().hash, context.templates.returned_updates()),
    };
    Ok(Some(Until::OtherTemplate { tip, updates, since_micros: context.host.steady_micros(), rules }))
}

const BLOCK_HASH_DIGITS: usize = 64;

/// The number at the start of a text, modulo 2^32: Core's `LocaleIndependentAtoi<int64_t>`, assigned to an unsigned
/// int.
fn wrapped_number(text: &str) -> u32 {
    let text = text.trim_matches([' ', '\u{c}', '\n', '\r', '\t', '\u{b}']);
    let text = text.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(text);
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let value = if end == 0 { 0 } else { digits[..end].parse::<i128>().unwrap_or(i128::MAX) };
    let value = if is_negative { -value } else { value };
    let value = i64::try_from(value).unwrap_or(if is_negative { i64::MIN } else { i64::MAX });
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The end of a long poll.
impl Finish for Answer {
    fn finish(context: &Context, until: Until) -> Result<Answer, RpcError> {
        if context.is_stopping() {
            return Err(shutting_down());
        }
        let Until::OtherTemplate { rules, .. } = until else { unreachable!("a template is waited for like this") };
        template(context, rules)
    }
}

fn shutting_down() -> RpcError {
    RpcError::new(code::CLIENT_NOT_CONNECTED, "Shutting down")
}

fn template(context: &Context, rules: Rules) -> Result<Answer, RpcError> {
    let is_signet = context.settings.params.signet_challenge.is_some();
    if is_signet && !rules.has_signet {
        return Err(RpcError::parameter(
            "getblocktemplate must be called with the signet rule set (call with {\"rules\": [\"segwit\", \"signet\"]})",
        ));
    }
    if !rules.has_segwit {
        return Err(RpcError::parameter(
            "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
        ));
    }
    let template = context.template()?.ok_or_else(shutting_down)?;
    Ok(Answer::Template(Box::new(shown(context, &template)?)))
}

/// A template with the time and the target of now.
fn shown(context: &Context, template: &Template) -> Result<BlockTemplate, RpcError> {
    let (engine, params, next) = (context.engine()?, &context.settings.params, &template.next);
    let time = template.time.max(next.time(context.now()));
    let header = next.header(&engine, time);
    let mut version = header.version;
    if next.signalling.is_locked_in {
        version |= next.signalling.mask();
    }
    let mut rules = vec!["csv"];
    if next.is_segwit {
        rules.extend(["!segwit", "taproot"]);
    }
    if params.signet_challenge.is_some() {
        rules.push("!signet");
    }
    if next.signalling.is_active {
        rules.push(TESTDUMMY);
    }
    // Before segwit, limits are those of blocks without witnesses.
    let scale = if next.is_segwit { 1 } else { WITNESS_SCALE_FACTOR };
    Ok(BlockTemplate {
        capabilities: ["proposal"],
        version,
        rules,
        vbavailable: Map(next.signalling.bit.map(|bit| (TESTDUMMY, bit)).into_iter().collect()),
        vbrequired: 0,
        previousblockhash: next.parent.hash,
        transactions: template.transactions.clone(),
        coinbaseaux: Empty,
        coinbasevalue: template.reward.0,
        longpollid: format!("{}{}", next.parent.hash, template.updates),
        target: target(header.bits, params),
        mintime: Time(next.min_time),
        mutable: ["time", "transactions", "prevblock"],
        noncerange: Hex([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        sigoplimit: MAX_BLOCK_SIGOPS_COST / scale,
        sizelimit: SIZE_MAX / scale,
        weightlimit: next.is_segwit.then_some(MAX_BLOCK_WEIGHT),
        curtime: Time(time),
        bits: Hex(header.bits.to_be_bytes()),
        height: next.height.0,
        signet_challenge: params.signet_challenge.clone().map(Hex),
        default_witness_commitment: Hex(template.commitment),
    })
}

/// The verdict on a proposed block.
fn propose(call: &Call<'_>, data: &Json) -> Result<Answer, RpcError> {
    let Json::Text(data) = data else {
        return Err(RpcError::new(code::TYPE_ERROR, "Missing data String key for proposal"));
    };
    let undecodable = || RpcError::new(code::DESERIALIZATION_ERROR, "Block decode failed");
    let bytes = hex(data).map_err(|_| undecodable())?;
    let block = parse_leniently(bytes).ok_or_else(undecodable)?;
    let engine = call.context.engine()?;
    if let Some(info) = engine.header_info(&block.hash()) {
        return Ok(Answer::Refused(known(&info).to_owned()));
    }
    Ok(match engine.check_proposal(block, call.context.now())? {
        Ok(()) => Answer::Accepted(()),
        Err(bad) => Answer::Refused(bad.reason()),
    })
}

/// What Core says about a block that it has the header of.
fn known(info: &HeaderInfo) -> &'static str {
    // The scripts of a block are verified when it is connected; those of the genesis block never are.
    let was_connected = info.node.parent.is_some() && (info.is_active || info.node.undo.is_some());
    match was_connected {
        _ if info.node.is_invalid => "duplicate-invalid",
        true => "duplicate",
        false => "duplicate-inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_long_polls_wrap_around() {
        let texts = ["", "17", " +17x", "-1", "4294967297", "99999999999999999999", "+-1", "x"];
        assert_eq!(texts.map(wrapped_number), [0, 17, 17, u32::MAX, 1, u32::MAX, 0, 0]);
    }
}
