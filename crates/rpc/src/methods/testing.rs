//! Methods that only tests call: `echo` and similar ones, the removed `generate`, and `sendmsgtopeer`.

use super::net::ask;
use crate::error::{RpcError, code};
use crate::help;
use crate::json::{Json, write_text, write_value};
use crate::method::{Arg, Call, Category, Kind, Method};
use crate::table::find;
use lydian_p2p::manager::PeerId;
use lydian_primitives::hex;
use lydian_wire::Command;

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
    result: "the arguments, as an array or an object",
    examples: &[],
    remark: "",
    call: echo,
};

pub(crate) const METHODS: &[Method] = &[
    ECHO,
    Method { name: "echojson", ..ECHO },
    Method {
        name: "echoipc",
        category: Category::Hidden,
        help: "Returns its argument. This command is for testing.",
        args: &[Arg::new("arg", Kind::Text, "the text to return")],
        result: "the text",
        examples: &["\"Hello world\""],
        remark: "A multiprocess build of Core sends the text through another process.",
        call: echoipc,
    },
    Method {
        name: "generate",
        category: Category::Hidden,
        help: "has been replaced by the -generate cli option. Refer to -help for more information.",
        args: &[],
        result: "",
        examples: &[],
        remark: "Every call fails with this text, as in Core.",
        call: generate,
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
        result: "{}",
        examples: &["0 \"addr\" \"ffffff\""],
        remark: "A message type that is not printable ASCII is refused.",
        call: sendmsgtopeer,
    },
];

fn echo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if let Json::Text(text) = call.arg(9)
        && text == "trigger_internal_bug"
    {
        return Err(internal_bug("request.params[9].get_str() != \"trigger_internal_bug\""));
    }
    out.push(b'[');
    for (index, param) in call.params.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(param, out);
    }
    out.push(b']');
    Ok(())
}

/// The error of a failed `CHECK_NONFATAL` in Core.
pub(crate) fn internal_bug(what: &str) -> RpcError {
    let version = env!("CARGO_PKG_VERSION");
    RpcError::misc(format!(
        "Internal bug detected: {what}\nLydian {version}\nPlease report this issue to the authors of Lydian\n"
    ))
}

fn echoipc(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    write_text(call.text(0)?, out);
    Ok(())
}

fn generate(_: &Call<'_>, _: &mut Vec<u8>) -> Result<(), RpcError> {
    let text = find("generate").map(help::of_method).unwrap_or_default();
    Err(RpcError::new(code::METHOD_NOT_FOUND, text))
}

/// Core's `CMessageHeader::MESSAGE_TYPE_SIZE`.
const MESSAGE_TYPE_SIZE: usize = 12;

fn sendmsgtopeer(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let id: i64 = call.arg(0).as_integer()?;
    let name = call.text(1)?;
    if name.len() > MESSAGE_TYPE_SIZE {
        let message = format!("Error: msg_type too long, max length is {MESSAGE_TYPE_SIZE}");
        return Err(RpcError::parameter(message));
    }
    // Core ignores white space between bytes.
    let text: String = call.text(2)?.chars().filter(|letter| !" \t\n\r\u{b}\u{c}".contains(*letter)).collect();
    let payload = hex(&text).map_err(|_| RpcError::parameter("Error parsing input for msg"))?;
    let command = Command::new(name).ok_or_else(|| RpcError::parameter("Error: msg_type is not printable ASCII"))?;
    let is_sent = ask(call.context, move |manager, now| {
        u64::try_from(id).is_ok_and(|id| manager.send_raw(PeerId(id), command, payload, now))
    })?;
    match is_sent {
        true => {
            out.extend_from_slice(b"{}");
            Ok(())
        }
        false => Err(RpcError::misc("Error: Could not send message to peer")),
    }
}
