//! What is done to an installation while wallets ask: processes are killed, paused and restarted, data is lost.
//!
//! Input: the running processes. Output: how many were struck, and the seconds that recovery took. Invariant: after
//! [`Fault::undo`], everything runs as before, every node has every change, and every server has the tip. The first
//! node is left alone, since the others are compared with it.

use super::changes::Changes;
use super::oracle::Oracle;
use super::world::World;
use crate::error::LabError;
use crate::runs::system;
use crate::store::SMALL_DISK;
use lydian_chains::rng::Random;
use std::thread;
use std::time::Duration;

/// Nodes of an installation with front ends: one that the others are compared with, the one that writes the index, and
/// the one whose feed is followed.
pub const NODES: usize = 3;
pub const WRITER: usize = 1;
pub const FOLLOWED: usize = 2;
/// The node of the store that loses its data.
const LOSER: usize = 2;
/// Under load, tables are written to disk all the time.
const FLUSH_MS: u32 = 1_000;
const STEP: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9` of a node of the store; it is started again.
    StoreKill,
    /// SIGSTOP of a node of the store.
    StorePause,
    /// Each node of the store is restarted in turn.
    StoreRestart,
    /// A node of the store loses everything; another one takes its place.
    StoreReplace,
    /// A node of the store loses the files of the index, and does not know it; reading from all replicas repairs that.
    StoreRepair,
    /// The disk of a node of the store is full.
    StoreFull,
    /// `kill -9` of all nodes of the store but one.
    StoreQuorum,
    /// `kill -9` of a front end; it is started again.
    FrontKill,
    /// `kill -9` of the node whose feed is followed; it is started again.
    FeedKill,
    /// `kill -9` of the node that writes the index, at random moments; it is started again each time.
    WriterKill,
    /// The same for one of several whole nodes.
    CopyKill,
    CopyPause,
    CopyRestart,
}

/// How an installation answers wallets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    FrontEnds,
    WholeCopies,
}

/// What the failures of a run need beside the processes.
#[derive(Debug)]
pub struct Means<'a> {
    pub changes: &'a Changes<'a>,
    pub oracle: &'a Oracle,
    pub random: Random,
    /// Of the node that writes, and the longest time before each.
    pub kills: u32,
    pub kill_within: Duration,
}

impl Fault {
    pub const ALL: [Fault; 13] = [
        Fault::StoreKill,
        Fault::StorePause,
        Fault::StoreRestart,
        Fault::StoreReplace,
        Fault::StoreRepair,
        Fault::StoreFull,
        Fault::StoreQuorum,
        Fault::FrontKill,
        Fault::FeedKill,
        Fault::WriterKill,
        Fault::CopyKill,
        Fault::CopyPause,
        Fault::CopyRestart,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Fault::StoreKill => "store-kill",
            Fault::StorePause => "store-pause",
            Fault::StoreRestart => "store-restart",
            Fault::StoreReplace => "store-replace",
            Fault::StoreRepair => "store-repair",
            Fault::StoreFull => "store-full",
            Fault::StoreQuorum => "store-quorum",
            Fault::FrontKill => "front-kill",
            Fault::FeedKill => "feed-kill",
            Fault::WriterKill => "writer-kill",
            Fault::CopyKill => "copy-kill",
            Fault::CopyPause => "copy-pause",
            Fault::CopyRestart => "copy-restart",
        }
    }

    fn needs_own_store(self) -> bool {
        self.name().starts_with("store-")
    }

    fn is_of(self, kind: Kind) -> bool {
        matches!(self, Fault::CopyKill | Fault::CopyPause | Fault::CopyRestart) == (kind == Kind::WholeCopies)
    }

    /// Whether requests may fail: a store without a quorum says so.
    pub fn may_fail(self) -> bool {
        self == Fault::StoreQuorum
    }

    /// Whether [`Fault::inject`] takes as long as the failure.
    pub fn is_whole(self) -> bool {
        matches!(self, Fault::StoreRestart | Fault::WriterKill | Fault::CopyRestart)
    }

    /// Those with these names; without names, all that this installation can have.
    pub fn named(names: &[String], kind: Kind, has_own_store: bool) -> Result<Vec<Fault>, LabError> {
        let all = || Fault::ALL.into_iter().filter(|fault| fault.is_of(kind));
        if names.is_empty() {
            return Ok(all().filter(|fault| has_own_store || !fault.needs_own_store()).collect());
        }
        if names.iter().any(|name| name == "none") {
            return Ok(Vec::new());
        }
        let find = |name: &String| {
            let found = all().find(|fault| fault.name() == name);
            let names = || all().map(Fault::name).collect::<Vec<_>>().join(", ");
            let fault = found.ok_or_else(|| {
                LabError::Usage(format!("--failures: there is no {name} here; there are none, {}", names()))
            })?;
            match fault.needs_own_store() && !has_own_store {
                true => Err(LabError::Usage(format!("--failures: {name} needs a store that the lab starts"))),
                false => Ok(fault),
            }
        };
        names.iter().map(find).collect()
    }

    /// Does it; returns how many processes it struck. Restarts in turn are over when this returns.
    pub fn inject(self, world: &mut World<'_>, means: &mut Means<'_>) -> Result<u32, LabError> {
        let (last, stores) = (world.nodes.len().saturating_sub(1), world.store_nodes());
        match self {
            Fault::StoreKill => world.kill_store_node(0)?,
            Fault::StorePause => world.store()?.node_mut(1)?.pause()?,
            Fault::StoreRestart => {
                for number in 0..stores {
                    world.stop_store_node(number)?;
                    world.restart_store_node(number)?;
                }
                return Ok(count(stores));
            }
            Fault::StoreReplace => {
                world.kill_store_node(LOSER)?;
                world.store()?.node_mut(LOSER)?.wipe()?;
            }
            Fault::StoreRepair => {
                world.stop_store_node(LOSER)?;
                let keyspace = world.store.as_ref().map(|store| store.keyspace.clone()).unwrap_or_default();
                world.store()?.node_mut(LOSER)?.wipe_keyspace(&keyspace)?;
                world.restart_store_node(LOSER)?;
            }
            Fault::StoreFull => {
                world.store()?.node_mut(SMALL_DISK)?.disk()?.fill()?;
                world.flush_often(0, FLUSH_MS)?;
            }
            Fault::StoreQuorum => {
                (1..stores).try_for_each(|number| world.kill_store_node(number))?;
                return Ok(count(stores.saturating_sub(1)));
            }
            Fault::FrontKill => world.kill_front(0)?,
            Fault::FeedKill | Fault::CopyKill => world.kill_node(last)?,
            Fault::WriterKill => {
                for _ in 0..means.kills {
                    pause(world, means)?;
                    world.kill_node(WRITER)?;
                    bring_back(world, means.changes, WRITER)?;
                }
                return Ok(means.kills);
            }
            Fault::CopyPause => {
                means.changes.nodes.get(last).into_iter().for_each(|node| means.changes.leave_out(node));
                world.pause_node(last)?;
            }
            Fault::CopyRestart => {
                for number in 1..world.nodes.len() {
                    world.stop_node(number)?;
                    bring_back(world, means.changes, number)?;
                }
                return Ok(count(last));
            }
        }
        Ok(1)
    }

    /// Undoes it, if that is left to do. Returns the seconds until everything runs again.
    pub fn undo(self, world: &mut World<'_>, means: &Means<'_>) -> Result<f64, LabError> {
        let (start, last) = (system::now(), world.nodes.len().saturating_sub(1));
        match self {
            Fault::StoreKill => world.restart_store_node(0)?,
            Fault::StorePause => {
                world.store()?.node_mut(1)?.resume()?;
                world.wait_for_store()?;
            }
            Fault::StoreReplace => {
                world.replace_store_node(LOSER)?;
                world.wait_for_rows(LOSER)?;
            }
            Fault::StoreRepair => {
                world.read_from_all()?;
                world.wait_for_rows(LOSER)?;
            }
            Fault::StoreFull => {
                world.store()?.node_mut(SMALL_DISK)?.disk()?.clear()?;
                world.kill_store_node(SMALL_DISK)?;
                world.restart_store_node(SMALL_DISK)?;
                world.flush_often(0, 0)?;
            }
            Fault::StoreQuorum => {
                (1..world.store_nodes()).try_for_each(|number| world.start_store_node(number))?;
                world.wait_for_store()?;
            }
            Fault::FrontKill => {
                world.start_front(0, means.oracle)?;
            }
            Fault::FeedKill | Fault::CopyKill => bring_back(world, means.changes, last)?,
            Fault::CopyPause => {
                world.resume_node(last)?;
                catch_up(means.changes, last)?;
            }
            Fault::StoreRestart | Fault::WriterKill | Fault::CopyRestart => {}
        }
        world.wait_for_tip()?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// How long it lasts, if not as long as the other phases.
    pub fn lasts(self, pause: Duration) -> Option<Duration> {
        matches!(self, Fault::StorePause | Fault::CopyPause).then_some(pause)
    }
}

fn count(processes: usize) -> u32 {
    u32::try_from(processes).unwrap_or(u32::MAX)
}

/// Waits for a random time.
fn pause(world: &World<'_>, means: &mut Means<'_>) -> Result<(), LabError> {
    let most = usize::try_from(means.kill_within.as_millis()).unwrap_or(usize::MAX);
    let length = Duration::from_millis(means.random.index(most.max(1)) as u64);
    let start = system::now();
    while start.elapsed() < length {
        world.check_interrupted()?;
        thread::sleep(STEP.min(length));
    }
    Ok(())
}

/// Starts a node that ended, and gives it what it missed.
fn bring_back(world: &mut World<'_>, changes: &Changes<'_>, number: usize) -> Result<(), LabError> {
    world.start_node(number)?;
    catch_up(changes, number)
}

fn catch_up(changes: &Changes<'_>, number: usize) -> Result<(), LabError> {
    changes.nodes.get(number).map_or(Ok(()), |node| changes.catch_up(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_those_that_an_installation_can_have() {
        let named = |names: &[&str], kind, own| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            Fault::named(&names, kind, own).map(|faults| faults.into_iter().map(Fault::name).collect::<Vec<_>>())
        };
        let all = named(&[], Kind::FrontEnds, true).unwrap();
        let (of_store, others) = all.split_at(7);
        assert!(of_store.iter().all(|name| name.starts_with("store-")), "{all:?}");
        assert_eq!(others, ["front-kill", "feed-kill", "writer-kill"]);
        assert_eq!(named(&[], Kind::FrontEnds, false).unwrap(), others);
        assert_eq!(named(&[], Kind::WholeCopies, false).unwrap(), ["copy-kill", "copy-pause", "copy-restart"]);
        assert_eq!(named(&["none"], Kind::FrontEnds, true).unwrap(), [""; 0]);
        assert_eq!(named(&["feed-kill"], Kind::FrontEnds, true).unwrap(), ["feed-kill"]);
        let error = |names: &[&str], kind, own| named(names, kind, own).unwrap_err().to_string();
        assert!(error(&["store-kill"], Kind::FrontEnds, false).contains("needs a store that the lab starts"));
        assert!(error(&["front-kill"], Kind::WholeCopies, false).contains("there are none, copy-kill, copy-pause"));
    }
}
