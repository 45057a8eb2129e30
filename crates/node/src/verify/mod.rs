//! `lydian verify`. Input: options. Output: text or JSON, and the exit code of the worst item.

mod chain;
mod plan;
mod single;
mod text;

use crate::cli::VerifyOptions;
use crate::clock::{Stopwatch, now};
use crate::progress::Progress;
use crate::report::{FORMAT, Item, Report, Totals, Verdict};
use crate::screen::{Screen, count};
use lydian_consensus::{Chain, Params};
use lydian_disk::{Disk, RealDisk};
use std::io::{self, Write};

/// State that every part of a run needs.
#[derive(Debug)]
struct Context<'a> {
    disk: &'a dyn Disk,
    options: &'a VerifyOptions,
    /// Start of the run, in seconds since 1970.
    now: u32,
}

impl Context<'_> {
    /// The chain's parameters, with the soft forks of regtest moved as the options say (which are checked at the start
    /// of the run).
    fn params(&self, chain: Chain) -> Params {
        let plain = Params::new(chain);
        if chain != Chain::Regtest {
            return plain;
        }
        let move_fork =
            |params: Params, setting: &String| params.clone().with_activation_height(setting).unwrap_or(params);
        self.options.testactivationheight.iter().fold(plain, move_fork)
    }
}

pub(crate) fn run(options: &VerifyOptions) -> u8 {
    let watch = Stopwatch::start();
    for setting in &options.testactivationheight {
        if let Err(error) = Params::new(Chain::Regtest).with_activation_height(setting) {
            return refuse(&error.to_string());
        }
    }
    let context = Context { disk: &RealDisk, options, now: now() };
    let screen = Screen::new();
    let mut progress = Progress::new(options.json);
    let plan = plan::plan(context.disk, options);
    if options.height.is_some() && plan.singles.len() > 1 {
        return refuse("--height is the height of one block, and more than one single block is given");
    }
    let mut unreadable = plan.unreadable;
    let mut items = Vec::new();
    let mut done = |item: Item, progress: &Progress| {
        if !options.json {
            progress.around(|| text::item(&screen, &item, options.verbose));
        }
        items.push(item);
    };
    for set in &plan.sets {
        match chain::verify_set(&context, set, &mut progress) {
            Ok(item) => done(Item::Chain(item), &progress),
            Err(error) => unreadable.push(error.to_string()),
        }
    }
    if !plan.singles.is_empty() {
        progress.begin(
            &format!("verifying {}", count(plan.singles.len() as u64, "single block")),
            plan.singles.len() as u64,
        );
    }
    for (index, single) in plan.singles.iter().enumerate() {
        progress.advance(index as u64);
        match single::verify_single(&context, single) {
            Ok(item) => done(Item::Block(item), &progress),
            Err(sentence) => unreadable.push(sentence),
        }
    }
    progress.clear();
    let report = report(items, unreadable, watch);
    if options.json {
        match serde_json::to_string_pretty(&report) {
            Ok(json) => screen.line(&json),
            Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
        }
    } else {
        text::summary(&screen, &report);
    }
    report.exit_code
}

/// Reports a command line that cannot be used.
fn refuse(sentence: &str) -> u8 {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(io::stderr().lock(), "error: {sentence}");
    Verdict::Unreadable.exit_code()
}

fn report(items: Vec<Item>, unreadable: Vec<String>, watch: Stopwatch) -> Report {
    let mut totals = Totals::default();
    for item in &items {
        totals.add(match item {
            Item::Chain(chain) => &chain.totals,
            Item::Block(block) => &block.totals,
        });
    }
    let unread = if unreadable.is_empty() { Verdict::Valid } else { Verdict::Unreadable };
    let verdict = items.iter().map(Item::verdict).fold(unread, Verdict::max);
    Report {
        format: FORMAT,
        lydian: env!("CARGO_PKG_VERSION"),
        verdict,
        exit_code: verdict.exit_code(),
        items,
        unreadable,
        totals,
        seconds: watch.seconds(),
    }
}
