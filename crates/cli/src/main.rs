//! `lydian-cli`: calls a running node, as Bitcoin Core's `bitcoin-cli` does.
//!
//! Input: the command line, `lydian.conf`, and standard input if an option asks for it. Output: the result on stdout,
//! errors on stderr, and an exit code. [`settings`] reads the options, [`convert`] turns the words after the method
//! into parameters, [`call`] makes the request over [`http`], and the result is printed here. [`grind`] asks
//! no node. Invariants: nothing is written to disk; except for names and help, the same command line prints the same
//! bytes as with Core's client. Only [`clock`] reads the clock.

#![forbid(unsafe_code)]

mod arguments;
mod call;
mod clock;
mod convert;
mod error;
mod getinfo;
mod grind;
mod help;
mod http;
mod limits;
mod netinfo;
mod options;
mod program;
mod settings;
mod stdin;
mod value;

use call::{Question, call};
use error::CallError;
use lydian_options::completions::{self, Shell};
use lydian_options::manual;
use lydian_rpc::Json;
use program::program;
use settings::Settings;
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use value::part;

const FAILURE: u8 = 1;

/// Core's `RPC_WALLET_NOT_SPECIFIED`.
const WALLET_NOT_SPECIFIED: i32 = -19;

fn main() -> ExitCode {
    ExitCode::from(run(env::args_os().skip(1).collect()))
}

fn run(arguments: Vec<OsString>) -> u8 {
    let is_empty = arguments.is_empty();
    let (mut settings, words) = match settings::split(arguments) {
        Ok(parts) => parts,
        Err(error) => return refuse(&error.to_string()),
    };
    if settings.switch("version") {
        print_line(&help::version());
        print_line(&lydian_options::build::line());
        return 0;
    }
    if is_empty || ["help", "h", "?"].into_iter().any(|name| settings.is_set(name)) {
        print_line(&help::help());
        return if is_empty { refuse("Error: too few parameters") } else { 0 };
    }
    if let Some(date) = settings.text("help-manual") {
        print_line(manual::page(&program(), &date).trim_end());
        return 0;
    }
    if let [command, rest @ ..] = &words[..]
        && command == "completions"
    {
        return match rest {
            [name] if let Some(shell) = Shell::named(name) => {
                print_line(completions::script(&program(), shell).trim_end());
                0
            }
            _ => refuse(&format!("error: completions needs the name of a shell: {}", Shell::NAMES.join(", "))),
        };
    }
    if let Some(("grind", header)) = words.split_first().map(|(name, rest)| (name.as_str(), rest)) {
        // No node is asked, and no file is read.
        return match grind::grind(header) {
            Ok(text) => {
                print_line(&text);
                0
            }
            Err(error) => refuse(&error.to_string()),
        };
    }
    if let Err(error) = settings.load() {
        return refuse(&error.to_string());
    }
    match ask(&mut settings, words) {
        Ok(Answer::Result(Json::Null)) => 0,
        Ok(Answer::Result(Json::Text(text))) if text.is_empty() => 0,
        Ok(Answer::Result(Json::Text(text))) => {
            print_line(&text);
            0
        }
        Ok(Answer::Result(value)) => {
            print_line(&value.write_indented(2));
            0
        }
        Ok(Answer::Error(error)) => print_error(&error),
        Err(error) => refuse(&format!("error: {error}")),
    }
}

/// The node's response.
enum Answer {
    Result(Json),
    Error(Json),
}

fn ask(settings: &mut Settings, words: Vec<String>) -> Result<Answer, CallError> {
    let mut words = words;
    stdin::read(settings, &mut words)?;
    let chosen: Vec<_> =
        ["addrinfo", "generate", "getinfo", "netinfo"].into_iter().filter(|name| settings.is_set(name)).collect();
    if chosen.len() > 1 {
        return Err(CallError::Usage(format!("Only one of -{} may be specified.", chosen.join(", -"))));
    }
    // `None` if it is negated.
    let wallet = settings.text("rpcwallet").filter(|_| !settings.is_negated("rpcwallet"));
    let wallet = wallet.as_deref();
    let question = if settings.switch("getinfo") {
        Question::GetInfo { arguments: words }
    } else if settings.switch("netinfo") {
        if words.first().is_some_and(|word| word == "h" || word == "help") {
            return Ok(Answer::Result(Json::Text(netinfo::HELP.to_owned())));
        }
        Question::NetInfo { arguments: words }
    } else if settings.switch("generate") {
        match new_address(settings, wallet)? {
            Ok(address) => Question::Generate { arguments: generate_arguments(&address, words)?, address },
            Err(error) => return Ok(Answer::Error(error)),
        }
    } else if settings.switch("addrinfo") {
        Question::AddrInfo { arguments: words }
    } else if words.is_empty() {
        return Err(CallError::Usage("too few parameters (need at least command)".to_owned()));
    } else {
        let name = words.remove(0);
        Question::Method { name, arguments: words }
    };
    let reply = call(settings, &question, wallet)?;
    let error = part(&reply, "error");
    if !error.is_null() {
        return Ok(Answer::Error(error.clone()));
    }
    let result = part(&reply, "result");
    Ok(Answer::Result(match question {
        Question::GetInfo { .. } => Json::Text(info_page(settings, result, wallet)?),
        _ => result.clone(),
    }))
}

/// Returns the page of `-getinfo`, with the balances of all wallets if there are several and none was named.
fn info_page(settings: &Settings, info: &Json, wallet: Option<&str>) -> Result<String, CallError> {
    let balances = if wallet.is_none() { balances(settings)? } else { None };
    let has_colors = getinfo::has_colors(settings.text("color").as_deref(), io::stdout().is_terminal())?;
    getinfo::page(info, balances.as_deref(), has_colors)
}

fn balances(settings: &Settings) -> Result<Option<Vec<(String, Json)>>, CallError> {
    let method = |name: &str| Question::Method { name: name.to_owned(), arguments: Vec::new() };
    let reply = call(settings, &method("listwallets"), None)?;
    let wallets = match part(&reply, "result") {
        Json::Array(wallets) if part(&reply, "error").is_null() && wallets.len() > 1 => wallets,
        _ => return Ok(None),
    };
    let mut balances = Vec::new();
    for wallet in wallets {
        let name = wallet.as_text()?;
        let reply = call(settings, &method("getbalances"), Some(name))?;
        balances.push((name.to_owned(), part(part(part(&reply, "result"), "mine"), "trusted").clone()));
    }
    Ok(Some(balances))
}

/// Returns a new address of the wallet, or the node's error.
fn new_address(settings: &Settings, wallet: Option<&str>) -> Result<Result<String, Json>, CallError> {
    let question = Question::Method { name: "getnewaddress".to_owned(), arguments: Vec::new() };
    let reply = call(settings, &question, wallet)?;
    let error = part(&reply, "error");
    Ok(match error.is_null() {
        true => Ok(part(&reply, "result").as_text()?.to_owned()),
        false => Err(error.clone()),
    })
}

/// Returns number of blocks, address, and maximum number of tries.
fn generate_arguments(address: &str, mut words: Vec<String>) -> Result<Vec<String>, CallError> {
    let refuse = |sentence: &str| Err(CallError::Usage(sentence.to_owned()));
    match words.first().map(String::as_str) {
        _ if words.len() > 2 => return refuse("too many arguments (maximum 2 for nblocks and maxtries)"),
        None => words.push("1".to_owned()),
        Some("0") => {
            return refuse(
                "the first argument (number of blocks to generate, default: 1) must be an integer value greater than zero",
            );
        }
        Some(_) => {}
    }
    words.insert(1, address.to_owned());
    Ok(words)
}

/// Prints the node's error and returns its code as the exit code.
fn print_error(error: &Json) -> u8 {
    let number = part(error, "code").as_integer::<i32>();
    let mut text = String::new();
    match error {
        Json::Object(_) => {
            let code = part(error, "code");
            if !code.is_null() {
                text += &format!("error code: {}\n", value::plain(code));
            }
            if let Json::Text(message) = part(error, "message") {
                text += &format!("error message:\n{message}");
            }
            if number.as_ref() == Ok(&WALLET_NOT_SPECIFIED) {
                text += " Or for the CLI, specify the \"-rpcwallet=<walletname>\" option before the command (run \"lydian-cli -h\" for \
                         help or \"lydian-cli listwallets\" to see which wallets are currently loaded).";
            }
        }
        other => text = format!("error: {}", other.write()),
    }
    match number {
        // The shell keeps the lowest eight bits.
        Ok(number) => {
            refuse(&text);
            number.unsigned_abs().to_le_bytes()[0]
        }
        Err(error) => refuse(&format!("error: {}", error.message)),
    }
}

fn print_line(text: &str) {
    // A failed write to stdout cannot be reported anywhere.
    let _ = writeln!(io::stdout().lock(), "{text}");
}

/// Prints a line on stderr and returns the exit code for a failure.
fn refuse(text: &str) -> u8 {
    let _ = writeln!(io::stderr().lock(), "{text}");
    FAILURE
}
