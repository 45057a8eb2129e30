//! The row `restart`: start and stop of the node with its index, and the start after a kill while the index is built.
//!
//! Input: a data directory with the validated chain. Output: seconds. Invariant: after the kill and the start, the
//! index answers what follows from the blocks.

use super::expected::Expected;
use super::history::{self, is_whole};
use super::node::Home;
use crate::error::LabError;
use crate::runs::system;
use lydian_report::results::rounded;
use serde::Serialize;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(5);

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Restarts {
    pub index_bytes: u64,
    /// From the start of the process until a wallet is answered with the chain's tip, and until a script is answered.
    pub port_seconds: Vec<f64>,
    pub index_seconds: Vec<f64>,
    /// From the signal to the end of the process.
    pub stop_seconds: Vec<f64>,
    /// Heights of the index when the node was killed.
    pub killed_at: Vec<u32>,
    /// The same after the kill.
    pub killed_port_seconds: Vec<f64>,
    pub killed_index_seconds: Vec<f64>,
    /// Starts after which the answers about the long history were wrong.
    pub wrong: u32,
}

pub fn measure(home: &Home<'_>, height: u32, expected: &Expected, rounds: u32) -> Result<Restarts, LabError> {
    let mut restarts = Restarts { index_bytes: system::disk_bytes(&home.indexes()), ..Restarts::default() };
    for _ in 0..rounds {
        let node = home.start()?;
        restarts.port_seconds.push(rounded(node.wait_for_port(height)?));
        restarts.index_seconds.push(rounded(node.wait_for_index(height)?));
        restarts.wrong += u32::from(!is_whole(&mut node.connect()?, expected)?);
        restarts.stop_seconds.push(rounded(node.stop()?));
    }
    for _ in 0..rounds {
        system::remove_dir(&home.indexes())?;
        let node = home.start()?;
        let is_in_the_middle = || {
            // Until its RPC server is ready, it does not say.
            Ok(node.indexed().ok().filter(|indexed| *indexed >= expected.middle()))
        };
        restarts.killed_at.push(home.wait_until(is_in_the_middle, "building the index", POLL)?);
        node.kill()?;
        let node = home.start()?;
        restarts.killed_port_seconds.push(rounded(node.wait_for_port(height)?));
        restarts.killed_index_seconds.push(rounded(node.wait_for_index(height)?));
        let is_right = history::measure(&node, expected, 1)?.iter().all(|query| query.is_right);
        restarts.wrong += u32::from(!is_right);
        node.stop()?;
    }
    Ok(restarts)
}
