//! One method of the interface: [`Method`], an entry of [`crate::table::METHODS`]; its arguments, and how they are checked. Input: the parameters
//! of a request. Output: Core's error where they do not fit; the arguments, typed.
//!
//! Dispatch, argument checks, `help` and `docs/rpc.md` read the same entry.

use crate::budget::Room;
use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::{Json, write_text};
use crate::wait::Wait;
use lydian_primitives::{BlockHash, hex};
use std::cell::RefCell;
use std::fmt;

/// What a call does: reads its arguments, writes its result.
pub type Handler = fn(&Call<'_>, &mut Vec<u8>) -> Result<(), RpcError>;

/// A method.
#[derive(Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub category: Category,
    /// Sentences, one a line.
    pub help: &'static str,
    pub args: &'static [Arg],
    /// What it answers, in words.
    pub result: &'static str,
    /// Arguments of calls, as `bitcoin-cli` takes them.
    pub examples: &'static [&'static str],
    /// How it differs from Core's, for the document; empty if it does not.
    pub remark: &'static str,
    pub call: Handler,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Method").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Core's categories, in the order of `help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Blockchain,
    Control,
    /// In no list of `help`.
    Hidden,
    Mining,
    Network,
    Rawtransactions,
    Util,
}

impl Category {
    pub const ALL: [Category; 7] = [
        Category::Blockchain,
        Category::Control,
        Category::Hidden,
        Category::Mining,
        Category::Network,
        Category::Rawtransactions,
        Category::Util,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::Blockchain => "Blockchain",
            Category::Control => "Control",
            Category::Hidden => "Hidden",
            Category::Mining => "Mining",
            Category::Network => "Network",
            Category::Rawtransactions => "Rawtransactions",
            Category::Util => "Util",
        }
    }
}

/// The type of an argument: Core's `RPCArg::Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Hex,
    Number,
    /// A number or a text.
    Amount,
    /// A number or an array of two.
    Range,
    Bool,
    Object,
    /// An object whose keys may be given as named arguments.
    Options,
    Array,
}

impl Kind {
    /// The JSON type it must have; `None` where the method itself looks.
    fn expected(self) -> Option<&'static str> {
        match self {
            Kind::Text | Kind::Hex => Some("string"),
            Kind::Number => Some("number"),
            Kind::Amount | Kind::Range => None,
            Kind::Bool => Some("bool"),
            Kind::Object | Kind::Options => Some("object"),
            Kind::Array => Some("array"),
        }
    }

    pub fn is_text(self) -> bool {
        matches!(self, Kind::Text | Kind::Hex)
    }
}

/// Whether an argument must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Required,
    Omitted,
    /// The value that counts where none is given, as JSON.
    Default(&'static str),
    /// The same, in words.
    Hint(&'static str),
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// The name; others by which it is known follow, with `|` between them.
    pub names: &'static str,
    pub kind: Kind,
    pub need: Need,
    pub help: &'static str,
    /// What is in an object or an array.
    pub inner: &'static [Arg],
    /// The method itself looks at the type.
    pub is_unchecked: bool,
    /// In no help.
    pub is_hidden: bool,
    /// What the first line of help shows in place of its form.
    pub oneline: &'static str,
    /// The type in words, where it is not that of `kind`.
    pub type_words: &'static str,
}

impl Arg {
    pub const fn new(names: &'static str, kind: Kind, help: &'static str) -> Arg {
        let (inner, need) = (&[], Need::Required);
        Arg { names, kind, need, help, inner, is_unchecked: false, is_hidden: false, oneline: "", type_words: "" }
    }

    pub const fn omitted(self) -> Arg {
        Arg { need: Need::Omitted, ..self }
    }

    pub const fn default(self, json: &'static str) -> Arg {
        Arg { need: Need::Default(json), ..self }
    }

    pub const fn hint(self, words: &'static str) -> Arg {
        Arg { need: Need::Hint(words), ..self }
    }

    pub const fn unchecked(self) -> Arg {
        Arg { is_unchecked: true, ..self }
    }

    pub const fn of(self, inner: &'static [Arg]) -> Arg {
        Arg { inner, ..self }
    }

    pub fn first_name(&self) -> &'static str {
        self.names.split('|').next().unwrap_or(self.names)
    }

    pub fn is_optional(&self) -> bool {
        self.need != Need::Required
    }

    /// Core's `RPCArg::MatchesType`.
    fn mismatch(&self, value: &Json) -> Option<String> {
        let expected = self.kind.expected()?;
        let fits = self.is_unchecked || (self.is_optional() && value.is_null()) || value.type_name() == expected;
        (!fits).then(|| format!("JSON value of type {} is not of expected type {expected}", value.type_name()))
    }
}

impl Method {
    /// Counts and types of arguments: Core's `RPCMethod::HandleRequest`.
    pub fn check(&self, params: &[Json]) -> Result<(), RpcError> {
        let required = self.args.iter().rposition(|arg| !arg.is_optional()).map_or(0, |last| last + 1);
        if !(required..=self.args.len()).contains(&params.len()) {
            return Err(RpcError::misc(crate::help::of_method(self)));
        }
        let mut mismatches = Vec::new();
        for (index, arg) in self.args.iter().enumerate() {
            if let Some(mismatch) = arg.mismatch(params.get(index).unwrap_or(&Json::Null)) {
                let mut line = b"    ".to_vec();
                write_text(&format!("Position {} ({})", index + 1, arg.names), &mut line);
                line.extend_from_slice(b": ");
                write_text(&mismatch, &mut line);
                mismatches.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        match mismatches.is_empty() {
            true => Ok(()),
            false => {
                let list = mismatches.join(",\n");
                Err(RpcError::new(code::TYPE_ERROR, format!("Wrong type passed:\n{{\n{list}\n}}")))
            }
        }
    }
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub context: &'a Context,
    pub params: &'a [Json],
    pub(crate) state: &'a CallState,
}

/// What a call leaves behind, beside its answer.
#[derive(Debug)]
pub(crate) struct CallState {
    /// The answer is written when this is over.
    pub(crate) wait: RefCell<Option<Wait>>,
    /// Room for the answer.
    pub(crate) room: RefCell<Room>,
    /// Bytes of other answers before it.
    before: usize,
}

impl CallState {
    pub(crate) fn new(room: Room, before: usize) -> CallState {
        CallState { wait: RefCell::new(None), room: RefCell::new(room), before }
    }
}

impl<'a> Call<'a> {
    /// Has the answer written when this is over; until then the call holds no thread. Nothing else may be written.
    pub(crate) fn wait(&self, wait: Wait) {
        *self.state.wait.borrow_mut() = Some(wait);
    }

    /// Waits until there is room for an answer of about so many bytes. A method whose answer may have more than a
    /// megabyte calls it before it makes the answer.
    pub(crate) fn expect_bytes(&self, bytes: usize) -> Result<(), RpcError> {
        match self.state.room.borrow_mut().grow(self.state.before.saturating_add(bytes)) {
            true => Ok(()),
            false => Err(RpcError::misc(NO_ROOM)),
        }
    }

    /// The argument; null where none was given.
    pub fn arg(&self, index: usize) -> &'a Json {
        self.params.get(index).unwrap_or(&Json::Null)
    }

    /// The argument, if it was given.
    pub fn given(&self, index: usize) -> Option<&'a Json> {
        self.params.get(index).filter(|value| !value.is_null())
    }

    pub fn text(&self, index: usize) -> Result<&'a str, RpcError> {
        self.arg(index).as_text()
    }

    pub fn bool_or(&self, index: usize, default: bool) -> Result<bool, RpcError> {
        self.given(index).map_or(Ok(default), Json::as_bool)
    }

    pub fn i32_or(&self, index: usize, default: i32) -> Result<i32, RpcError> {
        self.given(index).map_or(Ok(default), Json::as_integer)
    }

    pub fn hash(&self, index: usize, name: &str) -> Result<BlockHash, RpcError> {
        parse_hash(self.arg(index), name).map(BlockHash)
    }
}

/// A hash as it is shown: Core's `ParseHashV`. The bytes are in internal order.
pub fn parse_hash(value: &Json, name: &str) -> Result<[u8; 32], RpcError> {
    let text = value.as_text()?;
    if let Some(mut bytes) = hex(text).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
        bytes.reverse();
        return Ok(bytes);
    }
    Err(RpcError::parameter(match text.len() {
        64 => format!("{name} must be hexadecimal string (not '{text}')"),
        len => format!("{name} must be of length 64 (not {len}, for '{text}')"),
    }))
}

/// The result as JSON, fields in their order.
pub fn answer<T: serde::Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), RpcError> {
    serde_json::to_writer(out, value).map_err(|error| RpcError::new(code::INTERNAL_ERROR, error.to_string()))
}

/// Core has no limit to run into.
pub(crate) const NO_ROOM: &str = "Answers that clients have not read yet take all the memory there is for answers";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_core_reads_them() {
        let read = |text: &str| parse_hash(&Json::Text(text.to_owned()), "blockhash");
        let shown = format!("{}01", "0".repeat(62));
        assert_eq!(read(&shown).unwrap()[0], 1);
        assert_eq!(read("00").unwrap_err().message, "blockhash must be of length 64 (not 2, for '00')");
        let bad = "g".repeat(64);
        assert_eq!(read(&bad).unwrap_err().message, format!("blockhash must be hexadecimal string (not '{bad}')"));
        assert_eq!(parse_hash(&Json::Null, "x").unwrap_err().code, -3);
    }

    #[test]
    fn arguments_are_counted_and_typed() {
        const ARGS: &[Arg] = &[
            Arg::new("a|b", Kind::Hex, ""),
            Arg::new("c", Kind::Number, "").default("1"),
            Arg::new("d", Kind::Number, "").omitted().unchecked(),
        ];
        let method = Method {
            name: "m",
            category: Category::Util,
            help: "",
            args: ARGS,
            result: "",
            examples: &[],
            remark: "",
            call: |_, _| Ok(()),
        };
        let (text, number) = (Json::Text(String::new()), Json::Number("1".to_owned()));
        assert!(method.check(&[text.clone(), number.clone(), text.clone()]).is_ok());
        assert!(method.check(&[text.clone(), Json::Null]).is_ok());
        assert_eq!(method.check(&[]).unwrap_err().code, -1);
        assert!(method.check(&[]).unwrap_err().message.starts_with("m \"a\" ( c d )\n"));
        let many = [text.clone(), Json::Null, Json::Null, Json::Null];
        assert_eq!(method.check(&many).unwrap_err().code, -1);
        let error = method.check(&[number, text]).unwrap_err();
        assert_eq!(error.code, -3);
        assert_eq!(
            error.message,
            "Wrong type passed:\n{\n    \"Position 1 (a|b)\": \"JSON value of type number is not of expected type string\",\n    \
             \"Position 2 (c)\": \"JSON value of type string is not of expected type number\"\n}"
        );
    }
}
