//! The help of a method, and the list of all methods.
//!
//! Input: methods. Output: text. The first line of a method's help is exactly Core's, since programs read it; the rest
//! is our own.

use super::{Arg, Category, Kind, Method, Methods, Need};
use crate::result::{sections, table};

/// Core's `RPCMethod::ToString`.
pub(super) fn of_method(method: &Method) -> String {
    let mut text = format!("{}\n\n{}\n", signature(method), method.help.trim());
    let shown: Vec<&Arg> = method.args.iter().take_while(|arg| !arg.is_hidden).collect();
    let mut rows = Vec::new();
    for (index, arg) in shown.iter().enumerate() {
        rows.push((format!("{}. {}", index + 1, arg.first_name()), describe(arg, true)));
        if matches!(arg.kind, Kind::Object | Kind::Array) {
            nested(arg, 5, false, true, &mut rows);
        }
    }
    if !rows.is_empty() {
        text += "\nArguments:\n";
        text += &table(&rows);
    }
    text += &sections(&method.call.result());
    if !method.examples.is_empty() {
        text += "\nExamples:\n";
        for example in method.examples {
            let space = if example.is_empty() { "" } else { " " };
            text += &format!("> bitcoin-cli {}{space}{example}\n", method.name);
        }
    }
    text
}

/// All methods except hidden ones: Core's `CRPCTable::help`.
pub(super) fn overview(methods: Methods) -> String {
    let mut methods: Vec<&Method> = methods.iter().filter(|method| method.category != Category::Hidden).collect();
    methods.sort_by_key(|method| (method.category.name(), method.name));
    let mut text = String::new();
    let mut last = None;
    for method in methods {
        if last != Some(method.category) {
            if last.is_some() {
                text.push('\n');
            }
            text += &format!("== {} ==\n", method.category.name());
            last = Some(method.category);
        }
        text += &signature(method);
        text.push('\n');
    }
    text.pop();
    text
}

/// `getblock "blockhash" ( verbosity )`.
fn signature(method: &Method) -> String {
    let mut text = method.name.to_owned();
    let mut was_optional = false;
    for arg in method.args.iter().take_while(|arg| !arg.is_hidden) {
        text.push(' ');
        match (was_optional, arg.is_optional()) {
            (false, true) => text += "( ",
            (true, false) => text += ") ",
            _ => {}
        }
        was_optional = arg.is_optional();
        text += &form(arg);
    }
    if was_optional {
        text += " )";
    }
    text
}

/// The form of an argument on the first line.
fn form(arg: &Arg) -> String {
    if !arg.oneline.is_empty() {
        return arg.oneline.to_owned();
    }
    match arg.kind {
        Kind::Text | Kind::Hex => format!("\"{}\"", arg.first_name()),
        Kind::Number | Kind::Range | Kind::Amount | Kind::Bool => arg.first_name().to_owned(),
        Kind::Object | Kind::Options => {
            let inner: Vec<String> =
                arg.inner.iter().map(|inner| format!("\"{}\":{}", inner.first_name(), value_form(inner))).collect();
            let more = if arg.kind == Kind::Object { "" } else { ",..." };
            format!("{{{}{more}}}", inner.join(","))
        }
        Kind::Array => {
            let inner: String = arg.inner.iter().map(|inner| form(inner) + ",").collect();
            format!("[{inner}...]")
        }
    }
}

/// The form of a value in an object.
fn value_form(arg: &Arg) -> String {
    match arg.kind {
        Kind::Text => "\"str\"".to_owned(),
        Kind::Hex => "\"hex\"".to_owned(),
        Kind::Number => "n".to_owned(),
        Kind::Range => "n or [n,n]".to_owned(),
        Kind::Amount => "amount".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::Object | Kind::Options | Kind::Array => form(arg),
    }
}

fn nested(arg: &Arg, indent: usize, has_name: bool, is_top: bool, rows: &mut Vec<(String, String)>) {
    let space = " ".repeat(indent);
    let name = if has_name { format!("\"{}\": ", arg.first_name()) } else { String::new() };
    let comma = if is_top { "" } else { "," };
    let right = if is_top { String::new() } else { describe(arg, has_name) };
    let (open, close) = match arg.kind {
        Kind::Array => ("[", "]"),
        Kind::Object => ("{", "}"),
        _ => {
            let form = if has_name { value_form(arg) } else { form(arg) };
            rows.push((format!("{space}{name}{form},"), right));
            return;
        }
    };
    rows.push((format!("{space}{name}{open}"), right));
    for inner in arg.inner {
        nested(inner, indent + 2, arg.kind == Kind::Object, false, rows);
    }
    if arg.kind == Kind::Array {
        rows.push((format!("{space}  ..."), String::new()));
    }
    rows.push((format!("{space}{close}{comma}"), String::new()));
}

/// `(numeric, optional, default=1) description`.
fn describe(arg: &Arg, is_named: bool) -> String {
    let words = match arg.kind {
        _ if !arg.type_words.is_empty() => arg.type_words,
        Kind::Text | Kind::Hex => "string",
        Kind::Number => "numeric",
        Kind::Amount => "numeric or string",
        Kind::Range => "numeric or array",
        Kind::Bool => "boolean",
        Kind::Object | Kind::Options => "json object",
        Kind::Array => "json array",
    };
    let need = match arg.need {
        Need::Required => ", required".to_owned(),
        Need::Omitted if is_named => ", optional".to_owned(),
        Need::Omitted => String::new(),
        Need::Default(value) | Need::Hint(value) => format!(", optional, default={value}"),
    };
    let help = if arg.help.is_empty() { String::new() } else { format!(" {}", arg.help) };
    format!("({words}{need}){help}")
}
