//! Methods about the sessions of the Electrum server: Lydian's own, which Core does not have.

use crate::electrum::ElectrumServer;
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Time, result};
use lydian_serve::{Ban, SessionInfo, Subnet};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "clearelectrumbans",
        category: Category::Electrum,
        help: "Removes all bans of the Electrum server.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", clearelectrumbans),
    },
    Method {
        name: "disconnectelectrumsession",
        category: Category::Electrum,
        help: "Ends a session of the Electrum server. Its client may connect again.",
        args: &[Arg::new("id", Kind::Number, "the id of the session, from listelectrumsessions")],
        examples: &["7"],
        remark: "",
        call: &returns("", disconnectelectrumsession),
    },
    Method {
        name: "listelectrumbans",
        category: Category::Electrum,
        help: "Lists the bans made with setelectrumban that have not expired.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", listelectrumbans),
    },
    Method {
        name: "listelectrumsessions",
        category: Category::Electrum,
        help: "Lists the sessions of the Electrum server, the oldest first. Scripts and transactions that wallets ask for are not shown.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", listelectrumsessions),
    },
    Method {
        name: "setelectrumban",
        category: Category::Electrum,
        help: "Adds or removes the ban of an address or a subnet by the Electrum server. A new ban ends the sessions that it covers.\nClients on this machine cannot be banned. Bans are kept over restarts of the node.",
        args: &[
            Arg::new(
                "subnet",
                Kind::Text,
                "the address, or the subnet with its mask; without a mask, a single address",
            ),
            Arg::new("command", Kind::Text, "\"add\" or \"remove\""),
            Arg::new("bantime", Kind::Number, "the duration in seconds; 0 for a day").default("0"),
        ],
        examples: &["\"203.0.113.6\" \"add\" 86400", "\"203.0.113.0/24\" \"add\""],
        remark: "",
        call: &returns("", setelectrumban),
    },
];

/// Seconds of a ban without a duration, as in Core.
const BAN_SECONDS: u64 = 24 * 60 * 60;

fn server<'a>(call: &'a Call<'_>) -> Result<&'a Arc<dyn ElectrumServer>, RpcError> {
    call.context.electrum().ok_or_else(|| RpcError::misc("The Electrum server is not running (-electrum)"))
}

result! {
    /// A session in the answer of `listelectrumsessions`.
    struct Session {
        /// the number of the connection, as in the log
        id: u64,
        /// (host:port) the address of the client; behind a proxy, the one that the proxy named
        addr: String,
        /// whether the client is on this machine
        local: bool,
        /// the version of the protocol (only present once it was agreed on)
        protocol: Option<String>,
        /// the name that the client gave itself
        client: String,
        /// the seconds since it connected
        conntime: Time<u64>,
        /// the seconds since its last byte
        idletime: Time<u64>,
        /// the number of its subscriptions
        subscriptions: usize,
        /// the number of its requests
        requests: u64,
        /// the total bytes received
        bytesrecv: u64,
        /// the total bytes sent
        bytessent: u64,
        /// the units that its answers cost so far
        cost: u64,
        /// the units of its subnet now
        subnet_cost: u64,
    }
}

fn listelectrumsessions(call: &Call<'_>) -> Result<Vec<Session>, RpcError> {
    let session = |session: SessionInfo| Session {
        id: session.id,
        addr: session.address.to_string(),
        local: session.is_local,
        protocol: session.version,
        client: session.client,
        conntime: Time(session.age.as_secs()),
        idletime: Time(session.idle.as_secs()),
        subscriptions: session.subscriptions,
        requests: session.requests,
        bytesrecv: session.bytes_received,
        bytessent: session.bytes_sent,
        cost: session.cost,
        subnet_cost: session.subnet_cost,
    };
    Ok(server(call)?.sessions().into_iter().map(session).collect())
}

fn disconnectelectrumsession(call: &Call<'_>) -> Result<(), RpcError> {
    let id = call.arg(0).as_integer::<u64>()?;
    match server(call)?.disconnect(id) {
        true => Ok(()),
        false => Err(RpcError::new(code::CLIENT_NODE_NOT_CONNECTED, "Session not found")),
    }
}

fn setelectrumban(call: &Call<'_>) -> Result<(), RpcError> {
    let is_added = match call.text(1)? {
        "add" => true,
        "remove" => false,
        _ => return Err(RpcError::misc(call.method.help_text())),
    };
    let wrong = |words: &str| RpcError::new(code::CLIENT_INVALID_IP_OR_SUBNET, words);
    let subnet = Subnet::parse(call.text(0)?, false).map_err(|_| wrong("Error: Invalid IP/Subnet"))?;
    if !is_added {
        let words = "Error: Unban failed. Requested address/subnet was not previously manually banned.";
        return if server(call)?.unban(&subnet) { Ok(()) } else { Err(wrong(words)) };
    }
    let seconds = match call.given(2).map_or(Ok(0), |seconds| seconds.as_integer::<u64>())? {
        0 => BAN_SECONDS,
        seconds => seconds,
    };
    let banned = server(call)?.ban(subnet, Duration::from_secs(seconds));
    banned.map_err(|error| RpcError::parameter(error.to_string()))
}

result! {
    /// A ban in the answer of `listelectrumbans`.
    struct Banned {
        /// the IP/Subnet of the banned clients
        address: String,
        /// the time remaining until the ban expires, in seconds
        time_remaining: Time<u64>,
    }
}

fn listelectrumbans(call: &Call<'_>) -> Result<Vec<Banned>, RpcError> {
    let banned = |ban: Ban| Banned { address: ban.subnet.to_string(), time_remaining: Time(ban.left.as_secs()) };
    Ok(server(call)?.bans().into_iter().map(banned).collect())
}

fn clearelectrumbans(call: &Call<'_>) -> Result<(), RpcError> {
    server(call)?.clear_bans();
    Ok(())
}
