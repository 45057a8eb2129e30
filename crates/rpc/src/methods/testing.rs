//! Methods that only tests call: `echo` and similar ones, the removed `generate`, and `sendmsgtopeer`.

use super::net::{ask, peer_id};
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Handler, Kind, Method, returns};
use crate::result::{Empty, Form, Value, write_array};
use lydian_p2p::manager::Question;
use lydian_primitives::hex;
use lydian_wire::Command;
use std::convert::Infallible;

const fn any(name: &'static str) -> Arg {
    Arg::new(name, Kind::Text, "").omitted().unchecked()
}

const ECHO_ARGS: &[Arg] = &[
    any("arg0"),
    any("arg1"),
    any("arg2"),
    any("arg3"),
    any("arg4"),
    any("arg5"),
    any("arg6"),
    any("arg7"),
    any("arg8"),
    any("arg9"),
];

const ECHO: Method = Method {
    name: "echo",
    category: Category::Hidden,
    help: "Returns its arguments. This command is for testing.\nReturns the error of an internal bug if arg9 is \
           \"trigger_internal_bug\".\nlydian-cli and bitcoin-cli send the arguments of echo as strings and those of echojson as JSON; the server treats \
           both methods alike.",
    args: ECHO_ARGS,
    examples: &[],
    remark: "",
    call: &Echo,
};

pub(crate) const METHODS: &[Method] = &[
    ECHO,
    Method { name: "echojson", ..ECHO },
    Method {
        name: "echoipc",
        category: Category::Hidden,
        help: "Returns its argument. This command is for testing.",
        args: &[Arg::new("arg", Kind::Text, "the text to return")],
        examples: &["\"Hello world\""],
        remark: "A multiprocess build of Core sends the text through another process.",
        call: &returns("the echoed string", echoipc),
    },
    Method {
        name: "generate",
        category: Category::Hidden,
        help: "has been replaced by the -generate cli option. Refer to -help for more information.",
        args: &[],
        examples: &[],
        remark: "Every call fails with this text, as in Core.",
        call: &returns("", generate),
    },
    Method {
        name: "sendmsgtopeer",
        category: Category::Hidden,
        help: "Sends a P2P message to a peer. The header is added by the node. This command is for testing.",
        args: &[
            Arg::new("peer_id", Kind::Number, "the id of the peer"),
            Arg::new("msg_type", Kind::Text, "the message type, at most 12 bytes"),
            Arg::new("msg", Kind::Hex, "the serialized message without its header, in hex"),
        ],
        examples: &["0 \"addr\" \"ffffff\""],
        remark: "A message type that is not printable ASCII is refused.",
        call: &returns("", sendmsgtopeer),
    },
];

/// Returns the arguments without a copy of them.
struct Echo;

impl Handler for Echo {
    fn run(&self, call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
        if let Json::Text(text) = call.arg(9)
            && text == "trigger_internal_bug"
        {
            return Err(internal_bug("request.params[9].get_str() != \"trigger_internal_bug\""));
        }
        write_array(call.params, out);
        Ok(())
    }

    fn result(&self) -> Value {
        Value { form: Form::Array(&Form::Any), words: "the arguments", key: "", each: "" }
    }
}

/// The error of a failed `CHECK_NONFATAL` in Core.
pub(crate) fn internal_bug(what: &str) -> RpcError {
    let version = env!("CARGO_PKG_VERSION");
    RpcError::misc(format!(
        "Internal bug detected: {what}\nLydian {version}\nPlease report this issue to the authors of Lydian\n"
    ))
}

fn echoipc(call: &Call<'_>) -> Result<String, RpcError> {
    Ok(call.text(0)?.to_owned())
}

fn generate(call: &Call<'_>) -> Result<Infallible, RpcError> {
    Err(RpcError::new(code::METHOD_NOT_FOUND, call.method.help_text()))
}

/// Core's `CMessageHeader::MESSAGE_TYPE_SIZE`.
const MESSAGE_TYPE_SIZE: usize = 12;

/// Parses hexadecimal text with white space between bytes, but not within one: Core's `TryParseHex`.
fn spaced_hex(text: &str) -> Option<Vec<u8>> {
    let is_space = |letter: char| " \t\n\r\u{b}\u{c}".contains(letter);
    let mut bytes = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        bytes.extend(hex(rest.get(..2)?).ok()?);
        rest = rest[2..].trim_start_matches(is_space);
    }
    Some(bytes)
}

fn sendmsgtopeer(call: &Call<'_>) -> Result<Empty, RpcError> {
    let id: i64 = call.arg(0).as_integer()?;
    let name = call.text(1)?;
    if name.len() > MESSAGE_TYPE_SIZE {
        let message = format!("Error: msg_type too long, max length is {MESSAGE_TYPE_SIZE}");
        return Err(RpcError::parameter(message));
    }
    let payload = spaced_hex(call.text(2)?).ok_or_else(|| RpcError::parameter("Error parsing input for msg"))?;
    let command = Command::new(name).ok_or_else(|| RpcError::parameter("Error: msg_type is not printable ASCII"))?;
    let id = peer_id(id);
    let is_sent = ask(call.context, |reply| Question::SendMessage { id, command, payload, reply })?;
    match is_sent {
        true => Ok(Empty),
        false => Err(RpcError::misc("Error: Could not send message to peer")),
    }
}
