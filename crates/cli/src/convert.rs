//! Converts words of the command line to the parameters of a method.
//!
//! Input: a method and its arguments. Output: a JSON array, or an object with `-named`. An argument is text unless
//! [`METHODS`] lists it as JSON. Invariants: the parameters are those that Bitcoin Core's client would send for the
//! same words; a word that must be JSON and is not is an error and never sent.

use crate::arguments::METHODS;
use lydian_rpc::Json;
use std::fmt;

/// An entry for one argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) position: usize,
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}

/// How an argument is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Text,
    /// JSON if it parses as JSON, else text.
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

/// An argument that must be JSON and is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotJson(String);

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error parsing JSON: {}", self.0)
    }
}

/// Converts arguments by position.
pub(crate) fn positional(method: &str, arguments: &[String]) -> Result<Json, NotJson> {
    let convert = |(position, word): (usize, &String)| value(at(method, position), word);
    arguments.iter().enumerate().map(convert).collect::<Result<_, _>>().map(Json::Array)
}

/// Converts arguments written as `name=value`. Words without `=` are collected under "args", in order. So are words
/// with `=` if no argument has that name and the word fits the next position, either as JSON or as text.
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
        // A later value replaces an earlier one.
        match entries.iter_mut().find(|(key, _)| key == name) {
            Some(entry) => entry.1 = value,
            None => entries.push((name.to_owned(), value)),
        }
    }
    if !unnamed.is_empty() {
        // Even if "args" was also given by name: the server decides about that.
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
