//! Converts named arguments to positional ones: Core's `transformNamedArguments` (rpc/server.cpp).
//!
//! Input: an object and the argument names of a method. Output: an array, with null for each omitted argument before
//! the last, or Core's error. The special name `args` holds the first arguments by position.

use crate::error::RpcError;
use crate::json::Json;
use crate::method::{Arg, Kind};

/// Returns the arguments by position.
pub(crate) fn positional(named: &[(String, Json)], args: &[Arg]) -> Result<Vec<Json>, RpcError> {
    let mut left: Vec<&(String, Json)> = named.iter().collect();
    for (index, (name, _)) in named.iter().enumerate() {
        if named[..index].iter().any(|(other, _)| other == name) {
            return Err(RpcError::parameter(format!("Parameter {name} specified multiple times")));
        }
    }
    let mut take = |names: &str| {
        let place = names.split('|').find_map(|name| left.iter().position(|(given, _)| given == name))?;
        Some(left.remove(place))
    };
    let mut params: Vec<Json> = Vec::new();
    let (mut hole, mut hole_at_start) = (0, 0);
    let mut first_given = None;
    for arg in args {
        let mut options = Vec::new();
        if arg.kind == Kind::Options {
            for inner in arg.inner {
                if let Some((name, value)) = take(inner.names) {
                    options.push((name.clone(), value.clone()));
                }
            }
        }
        let given = take(arg.names);
        if given.is_none() && options.is_empty() {
            hole += 1;
            if params.is_empty() {
                hole_at_start = hole;
            }
            continue;
        }
        params.resize(params.len() + hole, Json::Null);
        hole = 0;
        first_given.get_or_insert(arg.names);
        match (given, options.first()) {
            (Some((name, _)), Some((option, _))) => {
                return Err(RpcError::parameter(format!("Parameter {name} conflicts with parameter {option}")));
            }
            (Some((_, value)), None) => params.push(value.clone()),
            (None, _) => params.push(Json::Object(options)),
        }
    }
    let first = left.iter().position(|(name, value)| name == "args" && matches!(value, Json::Array(_)));
    if let Some((_, Json::Array(first))) = first.map(|place| left.remove(place)) {
        if let Some(name) = first_given.filter(|_| hole_at_start < first.len()) {
            let message = format!("Parameter {name} specified twice both as positional and named argument");
            return Err(RpcError::parameter(message));
        }
        let behind = params.split_off(params.len().min(first.len()));
        params.clone_from(first);
        params.extend(behind);
    }
    match left.first() {
        Some((name, _)) => Err(RpcError::parameter(format!("Unknown named parameter {name}"))),
        None => Ok(params),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    const ARGS: &[Arg] = &[
        Arg::new("a", Kind::Number, ""),
        Arg::new("b|old", Kind::Number, "").omitted(),
        Arg::new("c", Kind::Options, "")
            .omitted()
            .of(&[Arg::new("x", Kind::Number, ""), Arg::new("y", Kind::Bool, "")]),
    ];

    fn positional_of(text: &str) -> Result<Vec<Json>, String> {
        let Some(Json::Object(named)) = parse(text.as_bytes()) else { panic!("{text}") };
        positional(&named, ARGS).map_err(|error| error.message)
    }

    #[test]
    fn names_give_places() {
        let array = |text: &str| match parse(text.as_bytes()) {
            Some(Json::Array(values)) => Ok(values),
            _ => panic!("{text}"),
        };
        for (named, places) in [
            ("{}", "[]"),
            ("{\"b\":2}", "[null,2]"),
            ("{\"old\":2,\"a\":1}", "[1,2]"),
            ("{\"y\":true,\"x\":1}", "[null,null,{\"x\":1,\"y\":true}]"),
            ("{\"args\":[1],\"b\":2}", "[1,2]"),
            ("{\"args\":[1,2,3,4]}", "[1,2,3,4]"),
            ("{\"args\":[],\"a\":1}", "[1]"),
        ] {
            assert_eq!(positional_of(named), array(places), "{named}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (named, message) in [
            ("{\"a\":1,\"a\":1}", "Parameter a specified multiple times"),
            ("{\"z\":1}", "Unknown named parameter z"),
            ("{\"args\":1}", "Unknown named parameter args"),
            ("{\"args\":[1],\"a\":1}", "Parameter a specified twice both as positional and named argument"),
            ("{\"args\":[1,2],\"b\":1}", "Parameter b|old specified twice both as positional and named argument"),
            ("{\"c\":{},\"x\":1}", "Parameter c conflicts with parameter x"),
        ] {
            assert_eq!(positional_of(named), Err(message.to_owned()), "{named}");
        }
    }
}
