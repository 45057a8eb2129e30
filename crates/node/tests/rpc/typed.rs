//! Every method with arguments of every JSON type, edge-case numbers, too few and too many arguments, by position and
//! by name: errors and answers are Core's. A short run with a fixed seed; `LYDIAN_RPC_SECONDS` makes it long, with a
//! new seed that a failure reports.

use crate::chain::Pair;
use lydian_rpc::Json;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

/// Calls per HTTP request.
const BATCH: usize = 64;

/// Calls of the short run.
const CALLS: usize = 6_000;

const GENESIS: &str = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";

/// Values of every type, as JSON.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "5",
    "100",
    "101",
    "1.0",
    "1.5",
    "1e3",
    "1E+2",
    "0.00000001",
    "21000000.00000001",
    "1e400",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "1000000",
    "1000001",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "\"\"",
    "\" \"",
    "\"0\"",
    "\"1\"",
    "\"-1\"",
    "\"x\"",
    "\"zz\"",
    "\"00\"",
    "\"0 0\"",
    "\"000\"",
    "\"0x00\"",
    "\"null\"",
    "\"true\"",
    "\"all\"",
    "\"none\"",
    "\"net\"",
    "\"add\"",
    "\"remove\"",
    "\"start\"",
    "\"status\"",
    "\"abort\"",
    "\"stats\"",
    "\"muhash\"",
    "\"hash_serialized_3\"",
    "\"ipv4\"",
    "\"onion\"",
    "\"\\u0000\"",
    "\"\\u00e4\\ud83d\\ude00\"",
    "\"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206\"",
    "\"0F9188F13CB7B2C71F2A335E3A4FC328BF5BEB436012AFCA590B1A11466E2206\"",
    "\"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e220\"",
    "\"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e22066\"",
    "\"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e220g\"",
    "\"0000000000000000000000000000000000000000000000000000000000000000\"",
    "\"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"",
    "\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"",
    "\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081\"",
    "\"mfWxJ45yp2SFn7UciZyNpvDKrzbhyfKrY8\"",
    "\"2N2JD6wb56AfK4tfmM6PwdVmoYk2dCKf4Br\"",
    "\"raw(51)\"",
    "\"raw(51)#8lvh9jxk\"",
    "\"raw(51)#8lvh9jxx\"",
    "\"raw()\"",
    "\"addr(bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080)\"",
    "\"wpkh(tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp/*)\"",
    "\"pk(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)\"",
    "\"127.0.0.1\"",
    "\"127.0.0.1:1\"",
    "\"10.0.0.0/8\"",
    "\"10.0.0.1/255.255.0.0\"",
    "\"10.0.0.0/33\"",
    "\"[::1]:1\"",
    "\"::1\"",
    "\"2001:db8::/32\"",
    "\"outbound-full-relay\"",
    "\"feeler\"",
    "\"minfee\"",
    "\"avgfee\"",
    "[]",
    "[null]",
    "[0]",
    "[1,2]",
    "[2,1]",
    "[0,1000000]",
    "[-1,1]",
    "[0,2147483648]",
    "[\"x\"]",
    "[\"net\",\"rpc\"]",
    "[\"minfee\",\"avgfee\"]",
    "[\"raw(51)\"]",
    "[\"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206\"]",
    "[\"00\"]",
    "[[]]",
    "[{}]",
    "[{\"desc\":\"raw(51)\"}]",
    "[{\"desc\":\"raw(51)\",\"range\":1}]",
    "[{\"desc\":1}]",
    "{}",
    "{\"a\":1}",
    "{\"desc\":\"raw(51)\",\"range\":[0,2]}",
    "{\"mode\":\"x\"}",
];

/// Methods that are not called here: they end the program, or their answer is specific to the program.
const NOT_ASKED: &[&str] = &["stop", "help", "getzmqnotifications"];

/// In the names of methods of Lydian's own, which Core does not know.
const OWN: &str = "electrum";

/// Methods of which only errors are compared, with the reason.
const ERRORS_ONLY: &[(&str, &str)] = &[
    ("addconnection", "the port that is tried is closed, and each notices it in its own time"),
    ("addpeeraddress", "whether an address has a place in the tables depends on a random key"),
    ("getnodeaddresses", "the answer is drawn at random"),
    ("getaddrmaninfo", "what is in the tables depends on a random key"),
    ("getrawaddrman", "places in the tables depend on a random key"),
    ("getaddednodeinfo", "nodes are listed as they were added, and attempts go on meanwhile"),
    ("getrpcinfo", "microseconds"),
    ("listbanned", "each reads the clock for itself"),
];

/// Knuth's generator; any other would do.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// A method with the names of its arguments.
struct Asked {
    name: String,
    args: Vec<String>,
}

fn methods(pair: &Pair) -> Vec<Asked> {
    let rows = pair.lydian.result("help", "[\"dump_all_command_conversions\"]");
    let overview = pair.lydian.result("help", "[]");
    let listed = overview.as_str().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("=="));
    let mut methods: Vec<Asked> = Vec::new();
    for name in listed.map(|line| line.split(' ').next().unwrap().to_owned()) {
        methods.push(Asked { name, args: Vec::new() });
    }
    for row in rows.as_array().unwrap() {
        let (name, place, arg) = (row[0].as_str().unwrap(), row[1].as_u64().unwrap(), row[2].as_str().unwrap());
        if !methods.iter().any(|method| method.name == name) {
            methods.push(Asked { name: name.to_owned(), args: Vec::new() });
        }
        let method = methods.iter_mut().find(|method| method.name == name).unwrap();
        if method.args.len() == usize::try_from(place).unwrap() {
            method.args.push(arg.to_owned());
        }
    }
    for name in ["generate", "syncwithvalidationinterfacequeue"] {
        methods.push(Asked { name: name.to_owned(), args: Vec::new() });
    }
    methods.retain(|method| !NOT_ASKED.contains(&&method.name[..]) && !method.name.contains(OWN));
    assert!(methods.len() > 60, "{}", methods.len());
    methods
}

/// A value that is usually valid for an argument of this name.
fn good(name: &str, random: &mut Random) -> String {
    match name {
        "blockhash" | "hash_or_height" | "txid" | "current_tip" => format!("\"{GENESIS}\""),
        "descriptor" | "output" => "\"raw(51)#8lvh9jxk\"".to_owned(),
        "address" => random.pick(&["\"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080\"", "\"127.0.0.1\""]).to_owned(),
        "action" => random.pick(&["\"start\"", "\"status\"", "\"add\""]).to_owned(),
        "node" | "subnet" => random.pick(&["\"127.0.0.1:1\"", "\"10.0.0.0/8\""]).to_owned(),
        "command" => random.pick(&["\"add\"", "\"remove\""]).to_owned(),
        "timeout" => "1".to_owned(),
        "scanobjects" => "[\"raw(51)\"]".to_owned(),
        "transactions" => "[]".to_owned(),
        "hash_type" => "\"none\"".to_owned(),
        "txids" => format!("[\"{GENESIS}\"]"),
        "hexstring" => random.pick(&["\"00\"", "\"02000000000000000000\""]).to_owned(),
        "inputs" | "privkeys" | "prevtxs" => random.pick(&["[]", "null"]).to_owned(),
        "outputs" => random.pick(&["[]", "{}", "[{\"data\":\"00\"}]"]).to_owned(),
        "txs" => "[\"02000000000000000000\",\"02000000000000000000\"]".to_owned(),
        "sighashtype" => random.pick(&["\"ALL\"", "\"SINGLE|ANYONECANPAY\"", "null"]).to_owned(),
        _ => random.pick(&["0", "1", "true", "\"00\"", "null"]).to_owned(),
    }
}

/// Whether a call takes for ever, uses the network, or depends on the second in which it arrives.
fn is_harmful(method: &Asked, params: &[String]) -> bool {
    let arg = |name: &str| {
        let place = method.args.iter().position(|arg| arg == name)?;
        Some(params.get(place).map_or("null", |param| &param[..]))
    };
    let number = |text: &str| text.parse::<i128>().ok();
    let too_many = |text: Option<&str>, max| text.and_then(number).is_some_and(|number| number > max);
    match &method.name[..] {
        // Without a timeout, or with a long one.
        name if name.starts_with("waitfor") => arg("timeout")
            .is_some_and(|text| text == "null" || number(text).is_some_and(|millis| millis == 0 || millis > 5)),
        "generatetoaddress" => too_many(arg("nblocks"), 3),
        "generatetodescriptor" => too_many(arg("num_blocks"), 3),
        // The block's time is the clock's if no time is set.
        "setmocktime" => arg("timestamp").and_then(number).is_some_and(|time| (0..=4_294_967_295).contains(&time)),
        // A type that is not printable is refused first; see the remark in docs/rpc.md.
        "sendmsgtopeer" => arg("msg_type").is_some_and(|text| text.contains('\\')),
        // These look up names.
        "addnode" | "addconnection" | "disconnectnode" => arg("command") == Some("\"onetry\""),
        _ => false,
    }
}

/// The parameters of one call, as JSON; `None` if the call would be harmful.
fn call(method: &Asked, random: &mut Random) -> Option<String> {
    let count = match random.below(10) {
        0 => random.below(method.args.len() + 3),
        1 | 2 => random.below(method.args.len() + 1),
        _ => method.args.len(),
    };
    // One argument is odd, or all of them are.
    let odd = random.below(method.args.len().max(1));
    let all_odd = random.below(6) == 0;
    let params: Vec<String> = (0..count)
        .map(|place| match method.args.get(place) {
            Some(name) if place != odd && !all_odd => good(name, random),
            _ => random.pick(VALUES).to_owned(),
        })
        .collect();
    if is_harmful(method, &params) {
        return None;
    }
    let is_named = random.below(5) == 0 && count <= method.args.len();
    if !is_named {
        return Some(format!("[{}]", params.join(",")));
    }
    // Core names one of several unknown names at random, so there is at most one.
    let mut fields: Vec<String> =
        method.args.iter().zip(&params).map(|(name, param)| format!("\"{name}\":{param}")).collect();
    match random.below(8) {
        0 => fields.push(format!("\"nonsense\":{}", random.pick(VALUES))),
        1 => fields.push(format!("\"args\":[{}]", random.pick(VALUES))),
        _ => {}
    }
    if is_harmful_named(method, &fields) { None } else { Some(format!("{{{}}}", fields.join(","))) }
}

/// `args` may replace arguments whose harm was not seen.
fn is_harmful_named(method: &Asked, fields: &[String]) -> bool {
    let has_args = fields.iter().any(|field| field.starts_with("\"args\""));
    has_args && ["waitfor", "generate", "setmocktime"].iter().any(|name| method.name.starts_with(name))
}

/// Calls both, and returns the differences.
fn ask(pair: &Pair, calls: &[(String, String)]) -> Vec<String> {
    let members: Vec<String> = calls
        .iter()
        .enumerate()
        .map(|(id, (method, params))| format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":{id}}}"))
        .collect();
    let body = format!("[{}]", members.join(","));
    let (ours, cores) = (pair.lydian.post(&body), pair.core.post(&body));
    let ours: Vec<&RawValue> = serde_json::from_str(&ours.body).unwrap();
    let cores: Vec<&RawValue> = serde_json::from_str(&cores.body).unwrap();
    assert_eq!((ours.len(), cores.len()), (calls.len(), calls.len()));
    let mut differing = Vec::new();
    for ((method, params), (ours, cores)) in calls.iter().zip(ours.into_iter().zip(cores)) {
        if let Some(difference) = difference(pair, method, params, ours.get(), cores.get()) {
            differing.push(difference);
        }
    }
    differing
}

fn difference(pair: &Pair, method: &str, params: &str, ours: &str, cores: &str) -> Option<String> {
    let error = |text: &str| {
        let answer = Json::read(text.as_bytes()).unwrap();
        let error = answer.get("error").filter(|error| !error.is_null())?;
        let (code, message) = (error.get("code").unwrap(), error.get("message").unwrap());
        Some((code.as_integer::<i64>().unwrap(), message.as_text().unwrap().to_owned()))
    };
    match (error(ours), error(cores)) {
        (None, None) => {
            if !ERRORS_ONLY.iter().any(|(name, _)| *name == method) {
                pair.comparison.compare(method, &format!("{method} {params}"), ours, cores);
            }
            None
        }
        (Some(ours), Some(cores)) if is_same(method, &ours, &cores) => None,
        (ours, cores) => Some(format!("{method} {params:.300}\n    ours  {ours:?}\n    Core's {cores:?}")),
    }
}

/// Whether two errors are equal. The text of help is our own, but its first line is Core's.
fn is_same(method: &str, (our_code, ours): &(i64, String), (code, cores): &(i64, String)) -> bool {
    let head = |text: &str| match text.starts_with(method) && text.contains('\n') {
        true => text.lines().next().unwrap_or_default().to_owned(),
        false => text.to_owned(),
    };
    our_code == code && head(ours) == head(cores)
}

/// checklist: 98
#[test]
fn arguments_of_every_type() {
    let Some(pair) = Pair::start("arguments_of_every_type", &["-rpcworkqueue=100"]) else { return };
    for server in [&pair.lydian, &pair.core] {
        server.result("setmocktime", "[1700000000]");
        server.result("generatetodescriptor", "[5,\"raw(51)\"]");
    }
    let seconds = std::env::var("LYDIAN_RPC_SECONDS").ok().map(|text| text.parse::<u64>().unwrap());
    let seed = seconds.map_or(1, |_| {
        u64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() & 0xffff_ffff).unwrap()
    });
    let methods = methods(&pair);
    let mut random = Random(seed);
    let (began, mut asked, mut differing) = (Instant::now(), 0, Vec::new());
    let is_over = |asked: usize| match seconds {
        Some(seconds) => began.elapsed() >= Duration::from_secs(seconds),
        None => asked >= CALLS,
    };
    while !is_over(asked) {
        let mut calls = Vec::new();
        while calls.len() < BATCH {
            let method = &methods[(asked + calls.len()) % methods.len()];
            if let Some(params) = call(method, &mut random) {
                calls.push((method.name.clone(), params));
            } else {
                calls.push(("getblockcount".to_owned(), "[]".to_owned()));
            }
        }
        asked += calls.len();
        differing.extend(ask(&pair, &calls));
    }
    let mut lines: Vec<String> = differing.clone();
    lines.dedup();
    assert!(lines.is_empty(), "seed {seed}: {} of {asked} calls differ:\n{}", differing.len(), lines.join("\n"));
    #[allow(clippy::print_stderr, reason = "a test says what it did")]
    {
        eprintln!("arguments_of_every_type: {asked} calls with seed {seed}, no difference");
    }
    pair.comparison.finish();
}
