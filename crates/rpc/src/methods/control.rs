//! Methods about the node itself: `help`, `stop`, `uptime`, `getrpcinfo`, `getmemoryinfo`, `logging`, and the clock for
//! tests.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, Methods, returns};
use crate::result::{Answer, Form, Map, cases, result};
use crate::wait::{Finish, Later, Until};
use lydian_consensus::Chain;
use lydian_p2p::manager::Question;
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
        examples: &[""],
        remark: "Lydian holds no keys and locks no memory, so all numbers are 0. `mallocinfo` is refused.",
        call: &returns("", getmemoryinfo),
    },
    Method {
        name: "getrpcinfo",
        category: Category::Control,
        help: "Returns the state of the RPC server.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getrpcinfo),
    },
    Method {
        name: "help",
        category: Category::Control,
        help: "Lists all methods, or returns the help for one.",
        args: &[Arg::new("command", Kind::Text, "the method").hint("all commands")],
        examples: &["", "getblock"],
        remark: "The first line of each text is Core's; the rest is Lydian's own.",
        call: &returns("", help),
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
        examples: &["\"[\\\"all\\\"]\" \"[\\\"http\\\"]\""],
        remark: "",
        call: &returns("", logging).each_key("category", "if being debug logged or not. false:inactive, true:active"),
    },
    Method {
        name: "mockscheduler",
        category: Category::Hidden,
        help: "Bumps the scheduler into the future (-regtest only).",
        args: &[Arg::new("delta_time", Kind::Number, "seconds, 1 to 3600")],
        examples: &[],
        remark: "The scheduled tasks are saving addresses, bans and fee estimates, and the checks for a stale tip and for \
                 extra peers.",
        call: &returns("", mockscheduler),
    },
    Method {
        name: "setmocktime",
        category: Category::Hidden,
        help: "Sets the clock of the node to a fixed time (-regtest only).",
        args: &[Arg::new("timestamp", Kind::Number, "seconds since 1970; 0 selects the system clock again")],
        examples: &[],
        remark: "",
        call: &returns("", setmocktime),
    },
    Method {
        name: "stop",
        category: Category::Control,
        help: "Requests a shutdown of the node.",
        args: &[Arg { is_hidden: true, ..Arg::new("wait", Kind::Number, "milliseconds before the answer").omitted() }],
        examples: &[""],
        remark: "Core's answer contains Core's name.",
        call: &returns("\"Lydian stopping\"", stop),
    },
    Method {
        name: "uptime",
        category: Category::Control,
        help: "Returns for how long the node has been running.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the number of seconds that the node has been running", uptime),
    },
];

cases! {
    /// The answer of `help`.
    enum HelpResult {
        /// the help text
        Text(String),
        /// every argument of every method: the method, the position, the name, and whether it is passed as a string
        #[when("for command = \"dump_all_command_conversions\"")]
        Conversions(Vec<Conversion>),
    }
}

/// An argument of a method: an array of its method, its position, its name, and whether it is passed as a string.
#[derive(Debug)]
struct Conversion(&'static str, usize, &'static str, bool);

impl Answer for Conversion {
    const FORM: Form = Form::Array(&Form::Any);

    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        self.0.write(out);
        out.push(b',');
        self.1.write(out);
        out.push(b',');
        self.2.write(out);
        out.push(b',');
        self.3.write(out);
        out.push(b']');
    }
}

fn help(call: &Call<'_>) -> Result<HelpResult, RpcError> {
    let text = match call.given(0).map(Json::as_text).transpose()? {
        None | Some("") => call.methods.help_text(),
        Some("dump_all_command_conversions") => return Ok(HelpResult::Conversions(conversions(call.methods))),
        Some(name) => match call.methods.find(name) {
            Some(method) => method.help_text().trim_end_matches('\n').to_owned() + "\n",
            None => format!("help: unknown command: {name}"),
        },
    };
    Ok(HelpResult::Text(text))
}

/// Lists every argument of every method: name, position, and whether `bitcoin-cli` passes it as a string. For tests, as
/// in Core.
fn conversions(methods: Methods) -> Vec<Conversion> {
    let mut methods: Vec<&Method> = methods.iter().collect();
    methods.sort_by_key(|method| method.name);
    let mut rows = Vec::new();
    for method in methods {
        for (place, arg) in method.args.iter().enumerate() {
            for name in arg.names.split('|') {
                rows.push(Conversion(method.name, place, name, arg.kind.is_text()));
                let inner = if arg.kind == Kind::Options { arg.inner } else { &[] };
                for inner in inner {
                    let names = inner.names.split('|');
                    rows.extend(names.map(|name| Conversion(method.name, place, name, inner.kind.is_text())));
                }
            }
        }
    }
    rows
}

/// The answer of `stop`.
#[derive(Debug)]
struct Stopping;

impl Answer for Stopping {
    const FORM: Form = Form::Text;

    fn write(&self, out: &mut Vec<u8>) {
        "Lydian stopping".write(out);
    }
}

impl Finish for Stopping {
    fn finish(_: &Context, _: Until) -> Result<Stopping, RpcError> {
        Ok(Stopping)
    }
}

fn stop(call: &Call<'_>) -> Result<Later<Stopping>, RpcError> {
    // The answer is still sent: the server stops last.
    call.context.host.request_stop();
    let wait @ Json::Number(_) = call.arg(0) else { return Ok(Later::Now(Stopping)) };
    let millis = u64::try_from(wait.as_integer::<i32>()?).unwrap_or(0);
    Ok(call.wait(Until::Time, Some(call.context.host.steady_micros() + 1_000 * millis)))
}

fn uptime(call: &Call<'_>) -> Result<u64, RpcError> {
    Ok(call.context.uptime_seconds())
}

result! {
    /// The answer of `getrpcinfo`.
    struct RpcInfo {
        /// all active commands
        #[each("information about an active command")]
        active_commands: Vec<ActiveCommand>,
        /// the complete file path to the debug log
        logpath: String,
    }
}

result! {
    struct ActiveCommand {
        /// the name of the RPC command
        method: &'static str,
        /// the running time in microseconds
        duration: u64,
    }
}

fn getrpcinfo(call: &Call<'_>) -> Result<RpcInfo, RpcError> {
    let now = call.context.host.steady_micros();
    let active = call.context.active().into_iter();
    let active_commands = active
        .map(|active| ActiveCommand { method: active.method, duration: now.saturating_sub(active.since_micros) })
        .collect();
    Ok(RpcInfo { active_commands, logpath: call.context.host.log_path() })
}

result! {
    /// The answer of `getmemoryinfo`.
    struct MemoryInfo {
        /// information about memory that is never swapped out
        locked: LockedMemory,
    }
}

result! {
    struct LockedMemory {
        /// number of bytes used
        used: u64,
        /// number of bytes available in current arenas
        free: u64,
        /// total number of bytes managed
        total: u64,
        /// number of bytes that succeeded locking
        locked: u64,
        /// number of allocated chunks
        chunks_used: u64,
        /// number of unused chunks
        chunks_free: u64,
    }
}

fn getmemoryinfo(call: &Call<'_>) -> Result<MemoryInfo, RpcError> {
    match call.given(0).map_or(Ok("stats"), Json::as_text)? {
        "stats" => {
            let locked = LockedMemory { used: 0, free: 0, total: 0, locked: 0, chunks_used: 0, chunks_free: 0 };
            Ok(MemoryInfo { locked })
        }
        "mallocinfo" => Err(RpcError::parameter("mallocinfo mode not available")),
        mode => Err(RpcError::parameter(format!("unknown mode {mode}"))),
    }
}

fn logging(call: &Call<'_>) -> Result<Map<&'static str, bool>, RpcError> {
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
    Ok(Map(categories))
}

fn check_mockable(call: &Call<'_>, method: &str) -> Result<(), RpcError> {
    match call.context.settings.params.chain {
        Chain::Regtest => Ok(()),
        _ => Err(RpcError::misc(format!("{method} is for regression testing (-regtest mode) only"))),
    }
}

fn setmocktime(call: &Call<'_>) -> Result<(), RpcError> {
    check_mockable(call, "setmocktime")?;
    let time: i64 = call.arg(0).as_integer()?;
    let max = i64::from(u32::MAX);
    if !(0..=max).contains(&time) {
        let message = format!("Mocktime must be in the range [0, {max}], not {time}.");
        return Err(RpcError::new(code::INVALID_PARAMETER, message));
    }
    call.context.set_mock_time(time);
    Ok(())
}

fn mockscheduler(call: &Call<'_>) -> Result<(), RpcError> {
    check_mockable(call, "mockscheduler")?;
    let seconds = call.arg(0).as_integer::<i64>()?;
    let Some(seconds) = u64::try_from(seconds).ok().filter(|seconds| (1..=3600).contains(seconds)) else {
        return Err(RpcError::misc("delta_time must be between 1 and 3600 seconds (1 hr)"));
    };
    if let Some(fees) = call.context.mempool().ok().and_then(|mempool| mempool.fees()) {
        fees.forward(seconds);
    }
    // The other scheduled tasks belong to the network, so there is nothing to do on a node without one.
    let delta = Duration::from_secs(seconds);
    let _ = call.context.ask_peers(|reply| Question::MockForward { delta, reply });
    Ok(())
}
