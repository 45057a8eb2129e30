//! Methods about the node itself: `help`, `stop`, `uptime`, `getrpcinfo`, `getmemoryinfo`, `logging`, and the clock for
//! tests.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::help;
use crate::json::{Json, write_text};
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use crate::table::{METHODS as ALL, find};
use crate::wait::{Until, Wait};
use lydian_consensus::Chain;
use serde::Serialize;
use std::time::Duration;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getmemoryinfo",
        category: Category::Control,
        help: "Returns statistics of the memory use.",
        args: &[Arg::new(
            "mode",
            Kind::Text,
            "\"stats\", or \"mallocinfo\", which only programs linked to glibc's allocator support",
        )
        .default("\"stats\"")],
        result: "{\"locked\": {used, free, total, locked, chunks_used, chunks_free}}: bytes of memory that is never swapped out",
        examples: &[""],
        remark: "Lydian holds no keys and locks no memory, so all numbers are 0. `mallocinfo` is refused.",
        call: getmemoryinfo,
    },
    Method {
        name: "getrpcinfo",
        category: Category::Control,
        help: "Returns the state of the RPC server.",
        args: &[],
        result: "{\"active_commands\": [{\"method\", \"duration\"}, ...], \"logpath\"}: running calls with their duration in microseconds, and the path of the log file",
        examples: &[""],
        remark: "",
        call: getrpcinfo,
    },
    Method {
        name: "help",
        category: Category::Control,
        help: "Lists all methods, or returns the help for one.",
        args: &[Arg::new("command", Kind::Text, "the method").hint("all commands")],
        result: "the help text",
        examples: &["", "getblock"],
        remark: "The first line of each text is Core's; the rest is Lydian's own.",
        call: help,
    },
    Method {
        name: "logging",
        category: Category::Control,
        help: "Switches logging categories on and off. Returns which are on.\nA category in both lists is switched off. \"all\" and \"1\" mean every category.",
        args: &[
            Arg::new("include", Kind::Array, "categories to log").omitted().of(&[Arg::new(
                "include_category",
                Kind::Text,
                "a category",
            )
            .omitted()]),
            Arg::new("exclude", Kind::Array, "categories not to log").omitted().of(&[Arg::new(
                "exclude_category",
                Kind::Text,
                "a category",
            )
            .omitted()]),
        ],
        result: "{category: whether it is logged, ...}",
        examples: &["\"[\\\"all\\\"]\" \"[\\\"http\\\"]\""],
        remark: "",
        call: logging,
    },
    Method {
        name: "mockscheduler",
        category: Category::Hidden,
        help: "Bumps the scheduler into the future (-regtest only).",
        args: &[Arg::new("delta_time", Kind::Number, "seconds, 1 to 3600")],
        result: "null",
        examples: &[],
        remark: "The scheduled tasks are saving addresses and bans, and the checks for a stale tip and for extra peers.",
        call: mockscheduler,
    },
    Method {
        name: "setmocktime",
        category: Category::Hidden,
        help: "Sets the clock of the node to a fixed time (-regtest only).",
        args: &[Arg::new("timestamp", Kind::Number, "seconds since 1970; 0 selects the system clock again")],
        result: "null",
        examples: &[],
        remark: "",
        call: setmocktime,
    },
    Method {
        name: "stop",
        category: Category::Control,
        help: "Requests a shutdown of the node.",
        args: &[Arg { is_hidden: true, ..Arg::new("wait", Kind::Number, "milliseconds before the answer").omitted() }],
        result: "\"Lydian stopping\"",
        examples: &[""],
        remark: "Core's answer contains Core's name.",
        call: stop,
    },
    Method {
        name: "uptime",
        category: Category::Control,
        help: "Returns for how long the node has been running.",
        args: &[],
        result: "the time in seconds",
        examples: &[""],
        remark: "",
        call: uptime,
    },
];

fn help(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let text = match call.given(0).map(Json::as_text).transpose()? {
        None | Some("") => help::overview(),
        Some("dump_all_command_conversions") => return dump_conversions(out),
        Some(name) => match find(name) {
            Some(method) => help::of_method(method).trim_end_matches('\n').to_owned() + "\n",
            None => format!("help: unknown command: {name}"),
        },
    };
    write_text(&text, out);
    Ok(())
}

/// Lists every argument of every method: name, position, and whether `bitcoin-cli` passes it as a string. For tests, as
/// in Core.
fn dump_conversions(out: &mut Vec<u8>) -> Result<(), RpcError> {
    let mut methods: Vec<&Method> = ALL.iter().copied().flatten().collect();
    methods.sort_by_key(|method| method.name);
    let mut rows: Vec<(&str, usize, &str, bool)> = Vec::new();
    for method in methods {
        for (place, arg) in method.args.iter().enumerate() {
            for name in arg.names.split('|') {
                rows.push((method.name, place, name, arg.kind.is_text()));
                let inner = if arg.kind == Kind::Options { arg.inner } else { &[] };
                for inner in inner {
                    rows.extend(inner.names.split('|').map(|name| (method.name, place, name, inner.kind.is_text())));
                }
            }
        }
    }
    answer(out, &rows)
}

fn stop(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    // The answer is still sent: the server stops last.
    call.context.host.request_stop();
    if let wait @ Json::Number(_) = call.arg(0) {
        let millis = u64::try_from(wait.as_integer::<i32>()?).unwrap_or(0);
        let end_micros = Some(call.context.host.steady_micros() + 1_000 * millis);
        call.wait(Wait { until: Until::Time, end_micros, finish: answer_stop });
        return Ok(());
    }
    answer_stop(call.context, out)
}

fn answer_stop(_: &Context, out: &mut Vec<u8>) -> Result<(), RpcError> {
    write_text("Lydian stopping", out);
    Ok(())
}

fn uptime(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &call.context.uptime_seconds())
}

#[derive(Debug, Serialize)]
struct RpcInfo {
    active_commands: Vec<ActiveCommand>,
    logpath: String,
}

#[derive(Debug, Serialize)]
struct ActiveCommand {
    method: &'static str,
    duration: u64,
}

fn getrpcinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let now = call.context.host.steady_micros();
    let active = call.context.active().into_iter();
    let active_commands = active
        .map(|active| ActiveCommand { method: active.method, duration: now.saturating_sub(active.since_micros) })
        .collect();
    answer(out, &RpcInfo { active_commands, logpath: call.context.host.log_path() })
}

#[derive(Debug, Serialize)]
struct MemoryInfo {
    locked: LockedMemory,
}

#[derive(Debug, Default, Serialize)]
struct LockedMemory {
    used: u64,
    free: u64,
    total: u64,
    locked: u64,
    chunks_used: u64,
    chunks_free: u64,
}

fn getmemoryinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    match call.given(0).map_or(Ok("stats"), Json::as_text)? {
        "stats" => answer(out, &MemoryInfo { locked: LockedMemory::default() }),
        "mallocinfo" => Err(RpcError::parameter("mallocinfo mode not available")),
        mode => Err(RpcError::parameter(format!("unknown mode {mode}"))),
    }
}

fn logging(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    for (place, is_on) in [(0, true), (1, false)] {
        let Some(Json::Array(names)) = call.given(place) else { continue };
        for name in names {
            let name = name.as_text()?;
            if !call.context.host.set_log_category(name, is_on) {
                return Err(RpcError::parameter(format!("unknown logging category {name}")));
            }
        }
    }
    let mut categories = call.context.host.log_categories();
    categories.sort_unstable();
    out.push(b'{');
    for (index, (name, is_on)) in categories.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.extend_from_slice(if is_on { b":true" } else { b":false" });
    }
    out.push(b'}');
    Ok(())
}

fn check_mockable(call: &Call<'_>, method: &str) -> Result<(), RpcError> {
    match call.context.settings.params.chain {
        Chain::Regtest => Ok(()),
        _ => Err(RpcError::misc(format!("{method} is for regression testing (-regtest mode) only"))),
    }
}

fn setmocktime(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    check_mockable(call, "setmocktime")?;
    let time: i64 = call.arg(0).as_integer()?;
    let max = i64::from(u32::MAX);
    if !(0..=max).contains(&time) {
        let message = format!("Mocktime must be in the range [0, {max}], not {time}.");
        return Err(RpcError::new(code::INVALID_PARAMETER, message));
    }
    call.context.set_mock_time(time);
    answer(out, &())
}

fn mockscheduler(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    check_mockable(call, "mockscheduler")?;
    let seconds = call.arg(0).as_integer::<i64>()?;
    let Some(seconds) = u64::try_from(seconds).ok().filter(|seconds| (1..=3600).contains(seconds)) else {
        return Err(RpcError::misc("delta_time must be between 1 and 3600 seconds (1 hr)"));
    };
    // All scheduled tasks belong to the network, so there is nothing to do on a node without one.
    let _ = call.context.ask_peers(move |manager, now| manager.mock_forward(Duration::from_secs(seconds), now));
    answer(out, &())
}
