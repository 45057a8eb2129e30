//! Methods about manual bans. Peers discouraged for misbehaving are not banned and appear in no answer.

use super::net::ask;
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Time, result};
use lydian_p2p::UnixTime;
use lydian_p2p::bans::Ban;
use lydian_p2p::manager::Question;
use lydian_wire::{NetAddr, Network, Subnet};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "clearbanned",
        category: Category::Network,
        help: "Removes all bans.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", clearbanned),
    },
    Method {
        name: "listbanned",
        category: Category::Network,
        help: "Lists the bans made with setban that have not expired.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", listbanned),
    },
    Method {
        name: "setban",
        category: Category::Network,
        help: "Adds or removes the ban of an address or a subnet. A new ban ends the connections that it covers.",
        args: &[
            Arg::new(
                "subnet",
                Kind::Text,
                "the address, or the subnet with its mask; without a mask, a single address",
            ),
            Arg::new("command", Kind::Text, "\"add\" or \"remove\""),
            Arg::new(
                "bantime",
                Kind::Number,
                "the duration in seconds, or the end of the ban if absolute is true; 0 for the value of -bantime",
            )
            .default("0"),
            Arg::new("absolute", Kind::Bool, "whether bantime is a time in seconds since 1970").default("false"),
        ],
        examples: &["\"192.168.0.6\" \"add\" 86400", "\"192.168.0.0/24\" \"add\""],
        remark: "",
        call: &returns("", setban),
    },
];

fn setban(call: &Call<'_>) -> Result<(), RpcError> {
    let is_added = match call.text(1)? {
        "add" => true,
        "remove" => false,
        _ => return Err(RpcError::misc(call.method.help_text())),
    };
    let text = call.text(0)?.to_owned();
    let seconds = call.given(2).map_or(Ok(0), |seconds| seconds.as_integer::<i64>());
    let is_absolute = call.bool_or(3, false);
    let now = UnixTime(u64::try_from(call.context.now()).unwrap_or(0));
    let has_cjdns = ask(call.context, Question::Reachable)?.contains(&Network::Cjdns);
    let (subnet, is_single) = parse(&text, has_cjdns)
        .ok_or_else(|| RpcError::new(code::CLIENT_INVALID_IP_OR_SUBNET, "Error: Invalid IP/Subnet"))?;
    if !is_added {
        if !ask(call.context, |reply| Question::Unban { subnet, reply })? {
            let words = "Error: Unban failed. Requested address/subnet was not previously manually banned.";
            return Err(RpcError::new(code::CLIENT_INVALID_IP_OR_SUBNET, words));
        }
        return Ok(());
    }
    // An address may be covered by the ban of a subnet.
    if ask(call.context, |reply| Question::IsBanned { subnet, is_single, now, reply })? {
        return Err(RpcError::new(code::CLIENT_NODE_ALREADY_ADDED, "Error: IP/Subnet already banned"));
    }
    let (seconds, is_absolute) = (seconds?, is_absolute?);
    if is_absolute && seconds < i64::try_from(now.0).unwrap_or(i64::MAX) {
        return Err(RpcError::parameter("Error: Absolute timestamp is in the past"));
    }
    // A negative number counts as 0: the default time.
    let seconds = u64::try_from(seconds).unwrap_or(0);
    ask(call.context, |reply| Question::Ban { subnet, seconds, is_absolute, reply })?;
    Ok(())
}

/// Parses a subnet, or a single address as a subnet. Also returns whether it is a single address.
fn parse(text: &str, has_cjdns: bool) -> Option<(Subnet, bool)> {
    if text.contains('/') {
        return Subnet::parse(text, has_cjdns).ok().map(|subnet| (subnet, false));
    }
    let addr: NetAddr = text.parse().ok()?;
    let addr = if has_cjdns { addr.maybe_cjdns() } else { addr };
    Subnet::single(addr).filter(|_| addr.is_valid()).map(|subnet| (subnet, true))
}

result! {
    /// A ban in the answer of `listbanned`.
    struct Banned {
        /// the IP/Subnet of the banned node
        address: String,
        /// the UNIX epoch time the ban was created
        ban_created: Time<i64>,
        /// the UNIX epoch time the ban expires
        banned_until: Time<i64>,
        /// the ban duration, in seconds
        ban_duration: Time<i64>,
        /// the time remaining until the ban expires, in seconds
        time_remaining: Time<i64>,
    }
}

fn listbanned(call: &Call<'_>) -> Result<Vec<Banned>, RpcError> {
    let now = call.context.now();
    let at = UnixTime(u64::try_from(now).unwrap_or(0));
    let bans = ask(call.context, |reply| Question::Bans { now: at, reply })?;
    let banned = |(subnet, ban): (&Subnet, &Ban)| Banned {
        address: subnet.to_string(),
        ban_created: Time(ban.created),
        banned_until: Time(ban.until),
        ban_duration: Time(ban.until.saturating_sub(ban.created)),
        time_remaining: Time(ban.until.saturating_sub(now)),
    };
    Ok(bans.iter().map(banned).collect())
}

fn clearbanned(call: &Call<'_>) -> Result<(), RpcError> {
    ask(call.context, Question::ClearBans)
}
