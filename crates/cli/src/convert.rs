//! Words of the command line as parameters of a method. Input: a method and its arguments. Output: a JSON array, or with `-named` an object.
//!
//! An argument is text unless [`METHODS`] says that it is JSON. Invariants: what is sent is what Bitcoin Core's client would send for the same
//! words; a word that must be JSON and is none is an error, never sent.

use crate::arguments::METHODS;
use lydian_rpc::Json;
use std::fmt;

/// What is known of one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) position: usize,
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}

/// How an argument is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Text,
    /// JSON where it is some, else text.
    Either,
}

pub(crate) const fn json(position: usize, name: &'static str) -> Param {
    Param { position, name, form: Form::Json }
}

pub(crate) const fn text(position: usize, name: &'static str) -> Param {
    Param { position, name, form: Form::Text }
}

pub(crate) const fn either(position: usize, name: &'static str) -> Param {
    Param { position, name, form: Form::Either }
}

/// An argument that must be JSON and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotJson(String);

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error parsing JSON: {}", self.0)
    }
}

/// Arguments by position.
pub(crate) fn positional(method: &str, arguments: &[String]) -> Result<Json, NotJson> {
    let convert = |(position, word): (usize, &String)| value(at(method, position), word);
    arguments.iter().enumerate().map(convert).collect::<Result<_, _>>().map(Json::Array)
}

/// Arguments as `name=value`. Words without `=` keep their order under "args", and so do words with it where no argument has that name
/// and the next position is JSON that they are, or text.
pub(crate) fn named(method: &str, arguments: &[String]) -> Result<Json, NotJson> {
    let mut entries: Vec<(String, Json)> = Vec::new();
    let mut unnamed = Vec::new();
    for word in arguments {
        let next = at(method, unnamed.len());
        let Some((name, rest)) = word.split_once('=') else {
            unnamed.push(value(next, word)?);
            continue;
        };
        let param = by_name(method, name);
        if param.is_none() {
            let whole = match next.map(|param| param.form) {
                Some(Form::Json) => Json::read(word.as_bytes()),
                Some(Form::Text) => Some(Json::Text(word.clone())),
                _ => None,
            };
            if let Some(whole) = whole {
                unnamed.push(whole);
                continue;
            }
        }
        let value = value(param, rest)?;
        // A later value takes the place of an earlier one.
        match entries.iter_mut().find(|(key, _)| key == name) {
            Some(entry) => entry.1 = value,
            None => entries.push((name.to_owned(), value)),
        }
    }
    if !unnamed.is_empty() {
        // Beside an "args" that was given: the server judges that.
        entries.push(("args".to_owned(), Json::Array(unnamed)));
    }
    Ok(Json::Object(entries))
}

fn value(param: Option<&Param>, word: &str) -> Result<Json, NotJson> {
    let plain = || Json::Text(word.to_owned());
    match param.map(|param| param.form) {
        None | Some(Form::Text) => Ok(plain()),
        Some(Form::Either) => Ok(Json::read(word.as_bytes()).unwrap_or_else(plain)),
        Some(Form::Json) => Json::read(word.as_bytes()).ok_or_else(|| NotJson(word.to_owned())),
    }
}

fn params(method: &str) -> &'static [Param] {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, params)| *params).unwrap_or_default()
}

fn at(method: &str, position: usize) -> Option<&'static Param> {
    params(method).iter().find(|param| param.position == position)
}

fn by_name(method: &str, name: &str) -> Option<&'static Param> {
    params(method).iter().find(|param| param.name == name)
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
