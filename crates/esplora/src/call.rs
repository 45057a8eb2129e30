//! [`Call`]: a request with its arguments.

use crate::fault::Fault;
use crate::server::Sources;
use lydian_descriptor::Address;
use lydian_primitives::{BlockHash, Txid, hex};
use lydian_query::{Query, ScriptHash};
use serde::de::DeserializeOwned;

/// A request for one of the routes.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Sources,
    /// The variable parts of the path, with their names.
    pub(crate) values: &'a [(String, String)],
    /// The query string.
    pub(crate) options: &'a [(String, String)],
    pub(crate) body: &'a [u8],
}

impl Call<'_> {
    pub(crate) fn query(&self) -> &Query {
        &self.shared.query
    }

    /// A variable part of the path; `None` for a route without it.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// A part of the path that the route has.
    fn part(&self, name: &str) -> &str {
        self.value(name).unwrap_or_default()
    }

    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn txid(&self) -> Result<Txid, Fault> {
        txid(self.part("txid"))
    }

    pub(crate) fn block_hash(&self) -> Result<BlockHash, Fault> {
        let text = self.part("hash");
        text.parse().map_err(|_| Fault::bad(format!("\"{text}\" is no block hash: 64 hexadecimal characters")))
    }

    pub(crate) fn number(&self, name: &str) -> Result<u32, Fault> {
        number(name, self.part(name))
    }

    /// The number of a path that may end without it.
    pub(crate) fn number_or(&self, name: &str, default: u32) -> Result<u32, Fault> {
        self.value(name).map_or(Ok(default), |text| number(name, text))
    }

    /// The script that the path names by its address or by its hash.
    pub(crate) fn script(&self) -> Result<ScriptHash, Fault> {
        match self.value("address") {
            Some(text) => self.address(text),
            None => script_hash(self.part("scripthash")),
        }
    }

    pub(crate) fn address(&self, text: &str) -> Result<ScriptHash, Fault> {
        let address = Address::parse(text, self.shared.chain);
        let address =
            address.map_err(|error| Fault::bad(format!("\"{text}\" is no address of this chain: {error}")))?;
        Ok(ScriptHash::of(&address.script()))
    }

    /// How many elements are asked for with `?max_txs=`: at most as many as a page has.
    pub(crate) fn count(&self, page: usize) -> Result<usize, Fault> {
        let asked = self.option("max_txs").map(|text| number("max_txs", text)).transpose()?;
        Ok(asked.map_or(page, |asked| page.min(asked as usize)))
    }

    /// The body as text.
    pub(crate) fn text(&self) -> Result<&str, Fault> {
        std::str::from_utf8(self.body).map(str::trim).map_err(|_| Fault::bad("the body is not UTF-8"))
    }

    /// The body as JSON. `what`: what it must be.
    pub(crate) fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T, Fault> {
        serde_json::from_slice(self.body).map_err(|error| Fault::bad(format!("the body must be {what}: {error}")))
    }
}

pub(crate) fn txid(text: &str) -> Result<Txid, Fault> {
    text.parse().map_err(|_| Fault::bad(format!("\"{text}\" is no txid: 64 hexadecimal characters")))
}

fn number(name: &str, text: &str) -> Result<u32, Fault> {
    text.parse().map_err(|_| Fault::bad(format!("{name} must be a whole number, not \"{text}\"")))
}

/// The SHA-256 of a script, written as it is: only Electrum writes it reversed.
pub(crate) fn script_hash(text: &str) -> Result<ScriptHash, Fault> {
    let bytes = hex(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(ScriptHash).ok_or_else(|| Fault::bad(format!("\"{text}\" is no script hash: 64 hexadecimal characters")))
}

/// Refuses a list that is too long.
pub(crate) fn at_most(count: usize, max: usize, what: &str) -> Result<(), Fault> {
    match count > max {
        true => Err(Fault::bad(format!("{count} {what} are too many: at most {max}"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{OUTSPENDS_MAX, PACKAGE_MAX, SCRIPTS_MAX, TXS_MAX, TXS_SIZE_MAX};

    /// limit: OUTSPENDS_MAX at
    /// limit: OUTSPENDS_MAX above
    /// limit: PACKAGE_MAX at
    /// limit: PACKAGE_MAX above
    /// limit: SCRIPTS_MAX at
    /// limit: SCRIPTS_MAX above
    /// limit: TXS_MAX at
    /// limit: TXS_MAX above
    /// limit: TXS_SIZE_MAX at
    /// limit: TXS_SIZE_MAX above
    #[test]
    fn lists_have_an_end() {
        for max in [OUTSPENDS_MAX, PACKAGE_MAX, SCRIPTS_MAX, TXS_MAX, TXS_SIZE_MAX] {
            assert_eq!(at_most(max, max, "txids"), Ok(()));
            let refused = format!("{} txids are too many: at most {max}", max + 1);
            assert_eq!(at_most(max + 1, max, "txids"), Err(Fault::bad(refused)));
        }
    }

    #[test]
    fn script_hashes_are_not_reversed() {
        assert_eq!(script_hash(&format!("01{}", "00".repeat(31))).unwrap().0[0], 1);
        for text in ["", "01", "zz", &"00".repeat(33)] {
            assert!(script_hash(text).is_err(), "{text}");
        }
    }
}
