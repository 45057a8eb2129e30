//! [`Params`]: the arguments of a request, by position or by name.

use crate::fault::Fault;
use lydian_consensus::Chain;
use lydian_descriptor::Address;
use lydian_primitives::{BlockHash, Txid, hex};
use lydian_query::ScriptHash;
use serde_json::Value;

/// The name of an argument that stands for a script by its address.
pub(crate) const ADDRESS: &str = "address";

/// The arguments of a method, in the order of its names.
#[derive(Debug)]
pub(crate) struct Params {
    names: &'static [&'static str],
    values: Vec<Value>,
}

impl Params {
    /// `names`: those of the method, of which the first `required` must be given.
    pub(crate) fn read(params: Value, names: &'static [&'static str], required: usize) -> Result<Params, Fault> {
        let values = match params {
            Value::Null => Vec::new(),
            Value::Array(values) => values,
            Value::Object(mut fields) => {
                let values: Vec<Value> = names.iter().map(|name| fields.remove(*name).unwrap_or_default()).collect();
                if let Some(name) = fields.keys().next() {
                    return Err(Fault::params(format!("there is no argument `{name}`")));
                }
                values
            }
            _ => return Err(Fault::params("params must be an array or an object")),
        };
        if values.len() > names.len() {
            let words = format!("{} arguments were given, at most {} are allowed", values.len(), names.len());
            return Err(Fault::params(words));
        }
        let params = Params { names, values };
        match (0..required).find(|index| params.value(*index).is_none()) {
            Some(index) => Err(Fault::params(format!("argument {} is missing", params.label(index)))),
            None => Ok(params),
        }
    }

    fn label(&self, index: usize) -> String {
        format!("{} ({})", index + 1, self.names.get(index).copied().unwrap_or("?"))
    }

    fn wrong(&self, index: usize, what: &str) -> Fault {
        Fault::params(format!("argument {} must be {what}", self.label(index)))
    }

    /// `None` if it is not given, or null.
    pub(crate) fn value(&self, index: usize) -> Option<&Value> {
        self.values.get(index).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, index: usize) -> Result<&str, Fault> {
        self.value(index).and_then(Value::as_str).ok_or_else(|| self.wrong(index, "a string"))
    }

    pub(crate) fn number_or(&self, index: usize, default: u32) -> Result<u32, Fault> {
        let Some(value) = self.value(index) else { return Ok(default) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| self.wrong(index, "a non-negative integer below 2^32"))
    }

    pub(crate) fn signed_or(&self, index: usize, default: i64) -> Result<i64, Fault> {
        let Some(value) = self.value(index) else { return Ok(default) };
        value.as_i64().ok_or_else(|| self.wrong(index, "an integer"))
    }

    pub(crate) fn number(&self, index: usize) -> Result<u32, Fault> {
        self.number_or(index, 0)
    }

    /// Clients also send 0 and 1.
    pub(crate) fn switch(&self, index: usize) -> Result<bool, Fault> {
        match self.value(index) {
            None => Ok(false),
            Some(Value::Bool(is_on)) => Ok(*is_on),
            Some(value) => match value.as_u64() {
                Some(0) => Ok(false),
                Some(1) => Ok(true),
                _ => Err(self.wrong(index, "true or false")),
            },
        }
    }

    pub(crate) fn txid(&self, index: usize) -> Result<Txid, Fault> {
        self.text(index)?.parse().map_err(|_| self.wrong(index, "a txid: 64 hexadecimal characters"))
    }

    /// By its hash. A number was read by then.
    pub(crate) fn block_hash(&self, index: usize) -> Result<BlockHash, Fault> {
        let hash = self.value(index).and_then(Value::as_str).and_then(|text| text.parse().ok());
        hash.ok_or_else(|| self.wrong(index, "the hash of a block, 64 hexadecimal characters, or its height"))
    }

    /// The protocol writes it reversed, as a txid.
    pub(crate) fn scripthash(&self, index: usize) -> Result<ScriptHash, Fault> {
        let text = self.text(index)?;
        let reversed: Result<Txid, _> = text.parse();
        reversed
            .map(|hash| ScriptHash(hash.0))
            .map_err(|_| self.wrong(index, "a script hash: 64 hexadecimal characters"))
    }

    /// Whether the argument is an address: see [`crate::methods`].
    pub(crate) fn is_address(&self, index: usize) -> bool {
        self.names.get(index) == Some(&ADDRESS)
    }

    pub(crate) fn address(&self, index: usize, chain: Chain) -> Result<ScriptHash, Fault> {
        let text = self.text(index)?;
        let address = Address::parse(text.trim(), chain);
        let address = address.map_err(|error| {
            Fault::params(format!("argument {}: \"{text}\" is no address of this chain: {error}", self.label(index)))
        })?;
        Ok(ScriptHash::of(&address.script()))
    }

    pub(crate) fn bytes(&self, index: usize) -> Result<Vec<u8>, Fault> {
        hex(self.text(index)?).map_err(|_| self.wrong(index, "hexadecimal"))
    }

    /// A list of hexadecimal texts.
    pub(crate) fn hex_list(&self, index: usize) -> Result<Vec<&str>, Fault> {
        let list = self.value(index).and_then(Value::as_array).ok_or_else(|| self.wrong(index, "an array"))?;
        let texts: Option<Vec<&str>> = list.iter().map(|value| value.as_str().filter(|text| is_hex(text))).collect();
        texts.ok_or_else(|| self.wrong(index, "an array of hexadecimal strings"))
    }

    /// A hexadecimal text as it was given.
    pub(crate) fn hex_text(&self, index: usize) -> Result<&str, Fault> {
        let text = self.text(index)?;
        if is_hex(text) { Ok(text) } else { Err(self.wrong(index, "hexadecimal")) }
    }
}

fn is_hex(text: &str) -> bool {
    text.len().is_multiple_of(2) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_come_by_position_or_by_name() {
        let read = |params: Value| Params::read(params, &["height", "cp_height"], 1);
        assert_eq!(read(json!([7])).unwrap().number(0), Ok(7));
        let named = read(json!({"cp_height": 9, "height": 7})).unwrap();
        assert_eq!((named.number(0), named.number_or(1, 0)), (Ok(7), Ok(9)));
        let message = |params: Value| read(params).unwrap_err().message;
        assert_eq!(message(json!([])), "argument 1 (height) is missing");
        assert_eq!(message(json!([1, 2, 3])), "3 arguments were given, at most 2 are allowed");
        assert_eq!(message(json!({"hight": 1})), "there is no argument `hight`");
        assert_eq!(message(json!("7")), "params must be an array or an object");
        let number = |value: Value| read(json!([value])).unwrap().number(0).unwrap_err().message;
        for value in [json!(-1), json!(1.5), json!("7"), json!(4_294_967_296_u64), json!(true)] {
            assert_eq!(number(value), "argument 1 (height) must be a non-negative integer below 2^32");
        }
        let of = |text: &str| Params::read(json!([text]), &[ADDRESS], 1).unwrap().address(0, Chain::Regtest);
        let genesis = "bcrt1qft5p2uhsdcdc3l2ua4ap5qqfg4pjaqlp250x7us7a8qqhrxrxfsqseac85";
        assert_eq!(of(genesis), of(&format!(" {} ", genesis.to_uppercase())));
        let wrong = of("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4").unwrap_err().message;
        assert!(
            wrong.starts_with("argument 1 (address): \"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4\" is no"),
            "{wrong}"
        );
        let hash = read(json!(["00"])).unwrap();
        assert_eq!(hash.txid(0).unwrap_err().message, "argument 1 (height) must be a txid: 64 hexadecimal characters");
        let hash = read(json!([format!("01{}", "00".repeat(31))])).unwrap();
        assert_eq!(hash.scripthash(0).unwrap().0[31], 1);
    }
}
