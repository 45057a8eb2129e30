//! Methods about keys that the request itself brings: `createmultisig`, `signmessagewithprivkey`, `verifymessage`.
//!
//! Input: public keys in hex; a private key; messages and signatures. Output: addresses, signatures, verdicts. The
//! private key is wiped at the end of the call. No log line contains it, and no error unless it is given as a public
//! key, which the error quotes as in Core.

use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::output::Hex;
use crate::result::result;
use lydian_descriptor::{Address, Multisig, MultisigType, PrivateKey, sign_message, verify_message};
use lydian_primitives::hex;
use lydian_script::uncompressed_key;
use lydian_stdx::{base64, decode_base64};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "createmultisig",
        category: Category::Util,
        help: "Creates an address that needs several signatures, and its redeem script.",
        args: &[
            Arg::new("nrequired", Kind::Number, "how many of the keys have to sign"),
            Arg::new("keys", Kind::Array, "the public keys")
                .of(&[Arg::new("key", Kind::Hex, "a public key").omitted()]),
            Arg::new("address_type", Kind::Text, "\"legacy\", \"p2sh-segwit\" or \"bech32\"").default("\"legacy\""),
        ],
        examples: &[
            "2 \"[\\\"03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd\\\",\\\"03dbc6764b8884a92e871274b87583e6d5c2a58819473e17e107ef3f6aa5a61626\\\"]\"",
        ],
        remark: "",
        call: &returns("", createmultisig),
    },
    Method {
        name: "signmessagewithprivkey",
        category: Category::Util,
        help: "Signs a message with a private key. `verifymessage` verifies it with the address of the key.",
        args: &[
            Arg::new("privkey", Kind::Text, "the private key"),
            Arg::new("message", Kind::Text, "the message to sign"),
        ],
        examples: &["\"privkey\" \"my message\""],
        remark: "The key is wiped at the end of the call.",
        call: &returns("the signature of the message encoded in base 64", signmessagewithprivkey),
    },
    Method {
        name: "verifymessage",
        category: Category::Util,
        help: "Returns whether a message was signed by the key of an address.",
        args: &[
            Arg::new("address", Kind::Text, "the address of the key, pay-to-pubkey-hash"),
            Arg::new("signature", Kind::Text, "the signature in base 64"),
            Arg::new("message", Kind::Text, "the message that was signed"),
        ],
        examples: &["\"1D1ZrZNe3JUo7ZycKEYQQiQAWd9y54F4XX\" \"signature\" \"my message\""],
        remark: "",
        call: &returns("whether the signature is from the key of the address", verifymessage),
    },
];

/// Core's `MAX_PUBKEYS_PER_MULTISIG` and `MAX_SCRIPT_ELEMENT_SIZE`.
const KEYS_MAX: usize = 20;
const REDEEM_SCRIPT_MAX: usize = 520;

result! {
    /// The answer of `createmultisig`.
    struct MultisigAnswer {
        /// the value of the new multisig address
        address: String,
        /// the redemption script
        #[name("redeemScript")]
        script: Hex<Vec<u8>>,
        /// the descriptor for this multisig
        descriptor: String,
        /// any warnings resulting from the creation of this multisig
        #[each("a warning")]
        warnings: Option<Vec<&'static str>>,
    }
}

fn bad_key(words: impl Into<String>) -> RpcError {
    RpcError::new(code::INVALID_ADDRESS_OR_KEY, words)
}

fn createmultisig(call: &Call<'_>) -> Result<MultisigAnswer, RpcError> {
    let required: i32 = call.arg(0).as_integer()?;
    let keys = call.arg(1).as_array()?.iter().map(|key| parse_key(key.as_text()?));
    let keys: Vec<Vec<u8>> = keys.collect::<Result<_, _>>()?;
    let asked = match call.given(2).map_or(Ok("legacy"), Json::as_text)? {
        "legacy" => MultisigType::Legacy,
        "p2sh-segwit" => MultisigType::P2shSegwit,
        "bech32" => MultisigType::Bech32,
        "bech32m" => return Err(bad_key("createmultisig cannot create bech32m multisig addresses")),
        other => return Err(bad_key(format!("Unknown address type '{other}'"))),
    };
    let required = check_count(required, keys.len())?;
    let chain = call.context.settings.params.chain;
    let multisig = Multisig::new(required, &keys, asked, chain);
    let size = multisig.script.len();
    if multisig.made == MultisigType::Legacy && size > REDEEM_SCRIPT_MAX {
        let words = format!("redeemScript exceeds size limit: {size} > {REDEEM_SCRIPT_MAX}");
        return Err(RpcError::parameter(words));
    }
    let warning = "Unable to make chosen address type, please ensure no uncompressed public keys are present.";
    Ok(MultisigAnswer {
        address: multisig.address.text(chain),
        script: Hex(multisig.script),
        descriptor: multisig.descriptor,
        warnings: (multisig.made != asked).then(|| vec![warning]),
    })
}

/// Core's `HexToPubKey`.
fn parse_key(text: &str) -> Result<Vec<u8>, RpcError> {
    let bytes = hex(text).ok().filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| bad_key(format!("Pubkey \"{text}\" must be a hex string")))?;
    if !matches!(bytes.len(), 33 | 65) {
        return Err(bad_key(format!("Pubkey \"{text}\" must have a length of either 33 or 65 bytes")));
    }
    match uncompressed_key(&bytes) {
        Some(_) => Ok(bytes),
        None => Err(bad_key(format!("Pubkey \"{text}\" must be cryptographically valid."))),
    }
}

/// The checks of Core's `AddAndGetMultisigDestination`.
fn check_count(required: i32, count: usize) -> Result<u8, RpcError> {
    let Some(needed) = usize::try_from(required).ok().filter(|needed| *needed >= 1) else {
        return Err(RpcError::parameter("a multisignature address must require at least one key to redeem"));
    };
    if count < needed {
        let words = format!("not enough keys supplied (got {count} keys, but need at least {required} to redeem)");
        return Err(RpcError::parameter(words));
    }
    // With at most 20 keys, the number of signatures is small too.
    u8::try_from(needed).ok().filter(|_| count <= KEYS_MAX).ok_or_else(|| {
        RpcError::parameter(format!(
            "Number of keys involved in the multisignature address creation > {KEYS_MAX}\nReduce the number"
        ))
    })
}

fn signmessagewithprivkey(call: &Call<'_>) -> Result<String, RpcError> {
    let key = PrivateKey::from_wif(call.text(0)?, call.context.settings.params.chain);
    let key = key.ok_or_else(|| bad_key("Invalid private key"))?;
    let signature = sign_message(&key, call.text(1)?).ok_or_else(|| bad_key("Sign failed"))?;
    Ok(base64(&signature))
}

fn verifymessage(call: &Call<'_>) -> Result<bool, RpcError> {
    let type_error = |words: &str| RpcError::new(code::TYPE_ERROR, words);
    let address = Address::parse(call.text(0)?, call.context.settings.params.chain);
    let key_hash = match address.map_err(|_| bad_key("Invalid address"))? {
        Address::PubkeyHash(hash) => hash,
        _ => return Err(type_error("Address does not refer to key")),
    };
    let signature = decode_base64(call.text(1)?.as_bytes());
    let signature = signature.ok_or_else(|| type_error("Malformed base64 encoding"))?;
    Ok(verify_message(&key_hash, &signature, call.text(2)?))
}
