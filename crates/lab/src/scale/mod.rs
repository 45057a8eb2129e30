//! `lydian-lab scale`: what one Electrum server bears: a long history, restarts, connections, subscriptions.
//!
//! Input: the chain of the preset `scale`, the program `lydian`, settings. Output: [`ScaleResults`]. The rows are
//! measured in turn on one data directory, the one that adds blocks last. Invariant: every answer is compared with what
//! follows from the blocks. Must never: measure beside another lab.

pub mod balancer;
pub mod cluster;
pub mod connections;
pub mod expected;
pub mod facts;
pub mod history;
pub mod load;
pub mod model;
pub mod node;
pub mod notifications;
pub mod project;
mod report;
pub mod restart;

pub use facts::ScaleReport;

use crate::error::LabError;
use crate::runs::Folder;
use connections::Connections;
use expected::Expected;
use facts::RunFacts;
use history::LongQuery;
use load::UnderLoad;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::presets::maker::Maker;
use lydian_chains::presets::scale::{COIN_VALUE, witness_script};
use lydian_chains::targets::scripthash;
use lydian_chains::wallet::script::p2wsh;
use node::Home;
use notifications::{Notified, Subscribed, Watch};
use restart::Restarts;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    History,
    Restart,
    Connections,
    Notifications,
}

impl Row {
    pub const ALL: [Row; 4] = [Row::History, Row::Restart, Row::Connections, Row::Notifications];

    pub fn name(self) -> &'static str {
        match self {
            Row::History => "history",
            Row::Restart => "restart",
            Row::Connections => "connections",
            Row::Notifications => "notifications",
        }
    }

    /// The rows with these names; all of them if there are none.
    pub fn named(names: &[String]) -> Result<Vec<Row>, LabError> {
        if names.is_empty() {
            return Ok(Row::ALL.to_vec());
        }
        let unknown = names.iter().find(|name| Row::ALL.iter().all(|row| row.name() != name.as_str()));
        if let Some(name) = unknown {
            let all = Row::ALL.map(Row::name).join(", ");
            return Err(LabError::Usage(format!("--only: there is no row {name}; the rows are {all}")));
        }
        Ok(Row::ALL.into_iter().filter(|row| names.iter().any(|name| name == row.name())).collect())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Rounds of the long history and of the restarts.
    pub rounds: u32,
    pub connections: u32,
    pub at_once: u32,
    /// Scripts of the chain, all of which are subscribed.
    pub scripts: u32,
    /// Scripts that a block touches.
    pub touched: Vec<u32>,
    /// Blocks of each number of touched scripts.
    pub blocks: u32,
    /// Connections of wallets while blocks are connected; 0 leaves that out.
    pub load: u32,
    pub timeout_seconds: u64,
}

/// The inputs of a measurement.
#[derive(Debug)]
pub struct Measurement<'a> {
    pub chain: &'a ChainFiles,
    /// The folder of its files.
    pub folder: &'a Path,
    pub program: &'a Path,
    pub rows: &'a [Row],
    pub settings: Settings,
    /// Arguments for every start of the node.
    pub more: &'a [String],
    /// The folder of the node is made and removed here.
    pub work: &'a Path,
    pub command_line: Vec<String>,
    pub interrupted: &'a AtomicBool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ScaleResults {
    #[serde(flatten)]
    pub facts: RunFacts,
    pub settings: Settings,
    pub history: Vec<LongQuery>,
    pub restarts: Option<Restarts>,
    pub connections: Option<Connections>,
    pub subscribed: Option<Subscribed>,
    pub notified: Vec<Notified>,
    pub under_load: Option<UnderLoad>,
    /// Every answer and every notification was the right one.
    pub is_right: bool,
}

impl Measurement<'_> {
    pub fn run(&self, print_progress: &mut dyn FnMut(&str)) -> Result<ScaleResults, LabError> {
        let place = Folder::new(&self.work.join("scale"))?;
        let home = Home {
            program: self.program,
            network: self.chain.network,
            data: place.0.join("data"),
            output: place.0.join("output.txt"),
            timeout: Duration::from_secs(self.settings.timeout_seconds),
            more: self.more,
            interrupted: self.interrupted,
        };
        print_progress("computing the right answers from the blocks");
        let expected = Expected::of(self.chain, self.settings.scripts)?;
        let mut results = self.begin();
        print_progress("the node validates the chain and builds its index");
        home.import(self.folder)?;
        let height = self.chain.facts.height;
        // Segments are merged after the last block.
        home.start_at(height)?.stop()?;
        for row in self.rows {
            print_progress(row.name());
            self.measure(*row, &home, &expected, &mut results)?;
        }
        results.is_right = results.are_all_right();
        Ok(results)
    }

    fn measure(
        &self,
        row: Row,
        home: &Home<'_>,
        expected: &Expected,
        results: &mut ScaleResults,
    ) -> Result<(), LabError> {
        let (settings, height) = (&self.settings, self.chain.facts.height);
        if row == Row::Restart {
            results.restarts = Some(restart::measure(home, height, expected, settings.rounds)?);
            return Ok(());
        }
        let node = home.start_at(height)?;
        match row {
            Row::History => results.history = history::measure(&node, expected, settings.rounds)?,
            Row::Connections => {
                let script = scripthash(&p2wsh(&witness_script(0)));
                let (count, at_once) = (settings.connections, settings.at_once);
                results.connections = Some(connections::measure(&node, &script, COIN_VALUE, count, at_once)?);
            }
            Row::Notifications => {
                let maker = Maker::on(facts::tip(self.chain)?, height);
                let (mut watch, subscribed) = Watch::new(&node, &expected.others, maker)?;
                results.subscribed = Some(subscribed);
                for touched in &settings.touched {
                    results.notified.push(watch.blocks(*touched, settings.blocks)?);
                }
                if let Some(touched) = settings.touched.last().filter(|_| settings.load > 0) {
                    let under_load = load::measure(&node, &mut watch, settings.load, *touched, settings.blocks)?;
                    results.under_load = Some(under_load);
                }
            }
            Row::Restart => {}
        }
        node.stop().map(|_| ())
    }

    fn begin(&self) -> ScaleResults {
        ScaleResults {
            facts: RunFacts::of(self.chain, self.program, self.more, self.work, &self.command_line),
            settings: self.settings.clone(),
            history: Vec::new(),
            restarts: None,
            connections: None,
            subscribed: None,
            notified: Vec::new(),
            under_load: None,
            is_right: false,
        }
    }
}

impl ScaleResults {
    fn are_all_right(&self) -> bool {
        let connections =
            self.connections.iter().map(|all| u64::from(all.failed) + u64::from(all.wallet_wrong) + all.left);
        let restarts = self.restarts.iter().map(|restarts| u64::from(restarts.wrong));
        let subscribed = self.subscribed.iter().map(|subscribed| subscribed.wrong as u64);
        let notified = self.notified.iter().map(|notified| notified.wrong as u64);
        let under_load = self.under_load.iter().map(|all| all.failed + (all.idle.wrong + all.loaded.wrong) as u64);
        let wrong: u64 = connections.chain(restarts).chain(subscribed).chain(notified).chain(under_load).sum();
        wrong == 0 && self.history.iter().all(|query| query.is_right)
    }
}

impl ScaleReport for ScaleResults {
    fn to_markdown(&self) -> String {
        report::to_markdown(self)
    }

    fn is_right(&self) -> bool {
        self.is_right
    }
}
