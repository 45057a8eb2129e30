//! A method of the interface: [`Method`], an entry of [`crate::table::METHODS`], and its arguments.
//!
//! Input: the parameters of a request. Output: the typed arguments, or Core's error if they do not match. Dispatch,
//! argument checks, `help` and `docs/rpc.md` use the same entry. The result section of the help comes from the type of
//! the answer.

mod help;

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::{Json, write_text};
use crate::result::{Answer, Value};
use crate::wait::{Finish, Later, Until, Wait};
use lydian_primitives::{BlockHash, hex};
use lydian_serve::Room;
use std::cell::RefCell;
use std::fmt;

/// The function of a method, with the description of what it returns.
pub(crate) trait Handler: Send + Sync {
    /// Reads the arguments and writes the result.
    fn run(&self, call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError>;

    /// Describes the result.
    fn result(&self) -> Value;
}

/// A function that returns a typed answer.
pub(crate) struct Returns<T> {
    result: Value,
    function: fn(&Call<'_>) -> Result<T, RpcError>,
}

/// The handler of a method. `words` describes the answer as a whole.
pub(crate) const fn returns<T: Answer>(
    words: &'static str,
    function: fn(&Call<'_>) -> Result<T, RpcError>,
) -> Returns<T> {
    Returns { result: Value { form: T::FORM, words, key: "", each: "" }, function }
}

impl<T> Returns<T> {
    /// Describes the elements of an answer that is an array.
    pub(crate) const fn each(self, words: &'static str) -> Returns<T> {
        Returns { result: Value { each: words, ..self.result }, function: self.function }
    }

    /// Describes the keys and values of an answer that is a map.
    pub(crate) const fn each_key(self, key: &'static str, words: &'static str) -> Returns<T> {
        Returns { result: Value { key, each: words, ..self.result }, function: self.function }
    }
}

impl<T: Answer> Handler for Returns<T> {
    fn run(&self, call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
        (self.function)(call)?.write(out);
        Ok(())
    }

    fn result(&self) -> Value {
        self.result
    }
}

/// A method.
#[derive(Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub category: Category,
    /// The help text, one sentence per line.
    pub help: &'static str,
    pub args: &'static [Arg],
    /// Example arguments, as `bitcoin-cli` takes them.
    pub examples: &'static [&'static str],
    /// How it differs from Core's method, for the document; empty if it does not.
    pub remark: &'static str,
    pub(crate) call: &'static dyn Handler,
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
    /// Lydian's own.
    Electrum,
    /// Not listed by `help`.
    Hidden,
    Mining,
    Network,
    Rawtransactions,
    Util,
}

impl Category {
    pub const ALL: [Category; 8] = [
        Category::Blockchain,
        Category::Control,
        Category::Electrum,
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
            Category::Electrum => "Electrum",
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
    /// A number or a string.
    Amount,
    /// A number or an array of two numbers.
    Range,
    Bool,
    Object,
    /// An object with keys that may also be given as named arguments.
    Options,
    Array,
}

impl Kind {
    /// The JSON type it must have; `None` if the method itself checks it.
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

/// Whether an argument is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Required,
    Omitted,
    /// The default value, as JSON.
    Default(&'static str),
    /// The default value, in words.
    Hint(&'static str),
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// The name, followed by its aliases, separated by `|`.
    pub names: &'static str,
    pub kind: Kind,
    pub need: Need,
    pub help: &'static str,
    /// The elements of an object or array.
    pub inner: &'static [Arg],
    /// The method itself checks the type.
    pub is_unchecked: bool,
    /// Not shown in the help.
    pub is_hidden: bool,
    /// Replaces the form of the argument on the first line of the help.
    pub oneline: &'static str,
    /// Replaces the name of the type that follows from `kind`.
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

/// The methods of a server, in the lists of their modules.
#[derive(Clone, Copy, Debug)]
pub struct Methods(&'static [&'static [Method]]);

impl Methods {
    pub const fn new(lists: &'static [&'static [Method]]) -> Methods {
        Methods(lists)
    }

    pub fn iter(self) -> impl Iterator<Item = &'static Method> {
        self.0.iter().copied().flatten()
    }

    /// Returns the method with this name.
    pub fn find(self, name: &str) -> Option<&'static Method> {
        self.iter().find(|method| method.name == name)
    }

    /// The help of all methods: Core's `CRPCTable::help`.
    pub(crate) fn help_text(self) -> String {
        help::overview(self)
    }
}

impl Method {
    /// The help of the method: Core's `RPCMethod::ToString`.
    pub(crate) fn help_text(&self) -> String {
        help::of_method(self)
    }

    /// Checks number and types of the arguments: Core's `RPCMethod::HandleRequest`.
    pub(crate) fn check(&self, params: &[Json]) -> Result<(), RpcError> {
        let required = self.args.iter().rposition(|arg| !arg.is_optional()).map_or(0, |last| last + 1);
        if !(required..=self.args.len()).contains(&params.len()) {
            return Err(RpcError::misc(self.help_text()));
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

/// A call in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) context: &'a Context,
    pub(crate) method: &'static Method,
    /// All methods of the server.
    pub(crate) methods: Methods,
    pub(crate) params: &'a [Json],
    pub(crate) state: &'a CallState,
}

/// What a call returns in addition to its answer.
#[derive(Debug)]
pub(crate) struct CallState {
    /// The answer is written when this wait is over.
    pub(crate) wait: RefCell<Option<Wait>>,
    /// Room for the answer.
    pub(crate) room: RefCell<Room>,
    /// Bytes of other answers before this one.
    before: usize,
}

impl CallState {
    pub(crate) fn new(room: Room, before: usize) -> CallState {
        CallState { wait: RefCell::new(None), room: RefCell::new(room), before }
    }
}

impl<'a> Call<'a> {
    /// Has the answer written when the wait is over; the call holds no thread until then.
    pub(crate) fn wait<T: Finish>(&self, until: Until, end_micros: Option<u64>) -> Later<T> {
        *self.state.wait.borrow_mut() = Some(Wait::new::<T>(until, end_micros));
        Later::Waiting
    }

    /// Waits until there is room for an answer of about `bytes` bytes. A method with an answer that may exceed a
    /// megabyte calls it before producing the answer.
    pub(crate) fn expect_bytes(&self, bytes: usize) -> Result<(), RpcError> {
        match self.state.room.borrow_mut().grow(self.state.before.saturating_add(bytes)) {
            true => Ok(()),
            false => Err(RpcError::misc(NO_ROOM)),
        }
    }

    /// The argument; null if it was not given.
    pub(crate) fn arg(&self, index: usize) -> &'a Json {
        self.params.get(index).unwrap_or(&Json::Null)
    }

    /// The argument, if it was given.
    pub(crate) fn given(&self, index: usize) -> Option<&'a Json> {
        self.params.get(index).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, index: usize) -> Result<&'a str, RpcError> {
        self.arg(index).as_text()
    }

    pub(crate) fn bool_or(&self, index: usize, default: bool) -> Result<bool, RpcError> {
        self.given(index).map_or(Ok(default), Json::as_bool)
    }

    pub(crate) fn i32_or(&self, index: usize, default: i32) -> Result<i32, RpcError> {
        self.given(index).map_or(Ok(default), Json::as_integer)
    }

    pub(crate) fn hash(&self, index: usize, name: &str) -> Result<BlockHash, RpcError> {
        parse_hash(self.arg(index), name).map(BlockHash)
    }
}

/// Parses a hash in its displayed form: Core's `ParseHashV`. The result is in internal byte order.
pub(crate) fn parse_hash(value: &Json, name: &str) -> Result<[u8; 32], RpcError> {
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

/// The error for an exhausted budget of answers. Core has no such limit.
pub(crate) const NO_ROOM: &str = "Answers that clients have not read yet use all the memory for answers";

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
        const METHOD: Method = Method {
            name: "m",
            category: Category::Util,
            help: "",
            args: ARGS,
            examples: &[],
            remark: "",
            call: &returns("", |_| Ok(())),
        };
        let method = METHOD;
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
