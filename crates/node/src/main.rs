//! `lydian`: the program. Input: the command line and `lydian.conf`. Output: a node, text or JSON on stdout, progress
//! on stderr, and an exit code (`exit`).
//!
//! Wiring only: settings, files, the clock, the terminal, signals. `consensus` decides what is valid.

#![forbid(unsafe_code)]

mod answers;
mod blocks;
mod build;
mod cli;
mod client;
mod clock;
mod daemon;
mod datadir;
mod disagreement;
mod display;
mod doctor;
mod edits;
mod electrum;
mod esplora;
mod exit;
mod explain;
mod feed;
mod floor;
mod formats;
mod front;
mod host;
mod index;
mod info;
mod limits;
mod listening;
mod log;
mod metrics;
mod net;
mod notify;
mod page;
mod process;
mod progress;
mod pruned;
mod reload;
mod report;
mod run;
mod screen;
mod serve;
mod service;
mod settings;
mod shared_index;
mod signals;
mod status;
mod verify;
mod warnings;
mod work;

use clap::Parser;
use cli::{Cli, Command};
use display::Style;
use host::Host;
use lydian_disk::{RealDisk, WipingAllocator};
use lydian_options::completions::{self, Shell};
use lydian_options::{Notice, manual};
use rustix::fs::Mode;
use screen::Screen;
use settings::{Settings, Words, help};
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use work::Task;

/// Requests bring private keys, which must not stay in freed memory.
#[global_allocator]
static ALLOCATOR: WipingAllocator = WipingAllocator;

fn main() -> ExitCode {
    lydian_disk::bound_free_memory();
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let first_word = arguments.iter().find(|argument| !argument.to_string_lossy().starts_with('-'));
    let code = match first_word.and_then(|word| word.to_str()) {
        // These two need no data directory and have their own command lines.
        Some("verify" | "explain") => match Cli::parse().command {
            Command::Verify(options) => verify::run(&options),
            Command::Explain { rule } => explain::run(rule.as_deref()),
        },
        _ => live(arguments),
    };
    ExitCode::from(code)
}

/// Runs the node on a thread of its own, so that the process can exit while work that cannot be interrupted continues.
fn live(arguments: Vec<OsString>) -> u8 {
    // A front end has the exit codes of a node.
    let is_daemon = settings::command(&arguments).is_none_or(|command| command == settings::front::COMMAND);
    let (leave, left) = sync_channel(1);
    let body = move || {
        let code = node(arguments, &leave);
        // It is full only if the process is exiting already.
        let _ = leave.try_send(code);
    };
    let code = match thread::Builder::new().name("init".to_owned()).spawn(body) {
        // If the thread panics, nothing is sent; the panic message is printed by then.
        Ok(_) => left.recv().unwrap_or(exit::PANIC),
        Err(error) => {
            daemon::complain(&format!("a thread could not be started: {error}"));
            exit::DIRECTORY
        }
    };
    if is_daemon { exit::of_daemon(code) } else { code }
}

/// Runs every command that has settings.
fn node(arguments: Vec<OsString>, leave: &SyncSender<u8>) -> u8 {
    daemon::detach();
    // As in Core, only the owner has access to what a node writes.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let words = match settings::split(arguments) {
        Ok(words) => words,
        Err(error) => return refuse(&error),
    };
    if print_and_exit(&words) {
        return exit::DONE;
    }
    if let (Some("completions"), [shell, ..]) = (words.command, &words.arguments[..]) {
        return print_completions(shell);
    }
    let host = Host::this();
    if words.command == Some("doctor") {
        return doctor::run(&words, &host);
    }
    let mut notices = words.notices.clone();
    let settings = settings::load(&words, &host, &RealDisk, &mut notices);
    for line in notices.iter().filter_map(Notice::stderr) {
        // If stderr is closed, there is no other place for it; the log has it too.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => return refuse(&error),
    };
    // Absolute, because it is stored.
    let argument = words.arguments.first().map(|word| host.absolute(Path::new(word)));
    let task = match (words.command, argument) {
        (Some("info"), _) => return info::run(&settings, &RealDisk),
        (Some(settings::front::COMMAND), _) => return front::run(&settings, leave),
        (Some("page"), _) => return page::print_link(&settings, &RealDisk),
        (Some("index"), _) => match index::run(&settings, &RealDisk, &words.arguments) {
            index::Next::Verify(kinds) => Task::VerifyIndexes(kinds),
            index::Next::Store(task, address) => Task::Store(task, address),
            index::Next::Exit(code) => return code,
        },
        (Some("import"), Some(directory)) => Task::Import(directory),
        (Some("utxohash"), _) => Task::UtxoHash,
        _ => Task::Run,
    };
    let is_node = matches!(task, Task::Run);
    let style = style(&settings, is_node);
    if matches!(task, Task::UtxoHash)
        && let Some(code) = work::beside::utxohash(&settings, style)
    {
        return code;
    }
    // Bitcoin Core's default, except that on a terminal the display takes its place.
    let has_console = is_node && style != Style::Terminal && !io::stdout().is_terminal();
    run::run(&settings, has_console, leave, |session| work::work(session, &task, style))
}

/// Where progress is shown.
fn style(settings: &Settings, is_node: bool) -> Style {
    match () {
        () if settings.json => Style::Silent,
        () if !settings.daemon && settings.log.console != Some(true) && io::stderr().is_terminal() => Style::Terminal,
        // A node without a terminal reports progress in its log.
        () if is_node => Style::Log,
        () if settings.daemon || settings.log.console == Some(true) => Style::Silent,
        () => Style::Lines,
    }
}

/// Handles `-version`, `-help` and the like, which need no settings; returns whether one is given: then the
/// process exits.
fn print_and_exit(words: &Words) -> bool {
    let screen = Screen::new();
    if words.has_switch("version") {
        screen.line(version().trim_end());
    } else if words.wants_help() && words.command == Some(settings::front::COMMAND) {
        screen.line(help::front_help(screen.width()).trim_end());
    } else if words.wants_help() {
        screen.line(help::help(screen.width(), words.has_switch("help-debug")).trim_end());
    } else if words.has_switch("help-config") {
        screen.line(settings::document().trim_end());
    } else if words.has_switch("help-doctor") {
        screen.line(doctor::document().trim_end());
    } else if words.has_switch("help-metrics") {
        screen.line(metrics::documents::all().trim_end());
    } else if words.has_switch("help-rpc") {
        screen.line(lydian_rpc::document().trim_end());
    } else if words.has_switch("help-interface") {
        screen.line(lydian_rpc::interface(&lydian_zmq::Topic::ALL.map(lydian_zmq::Topic::name)).trim_end());
    } else if words.has_switch("help-formats") {
        screen.line(formats::document::page().trim_end());
    } else if let Some(date) = words.text("help-manual") {
        screen.line(manual::page(&settings::program::program(), &date).trim_end());
    } else {
        return false;
    }
    true
}

/// `lydian completions SHELL`.
fn print_completions(name: &str) -> u8 {
    let Some(shell) = Shell::named(name) else {
        return refuse(&settings::SettingsError::UnknownShell { name: name.to_owned() });
    };
    Screen::new().line(completions::script(&settings::program::program(), shell).trim_end());
    exit::DONE
}

/// The text of `bitcoind -version`, which programs parse: the version is the word after "version".
pub(crate) fn version() -> String {
    format!(
        "Lydian daemon version v{} lydian\n{}\n{}\n\nCopyright (C) 2025-2026 The Lydian developers\n\nThis is experimental software.\nDistributed under the \
         MIT software license or the Apache License 2.0, see the\naccompanying files LICENSE-MIT and LICENSE-APACHE\n",
        env!("CARGO_PKG_VERSION"),
        build::line(),
        build::kernels()
    )
}

fn refuse(error: &settings::SettingsError) -> u8 {
    daemon::complain(&error.to_string());
    exit::SETTINGS
}
