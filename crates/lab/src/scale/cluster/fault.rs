//! What is done to an installation while wallets ask: processes are killed, paused and restarted.
//!
//! Input: the running processes. Output: the seconds that recovery took. Invariant: after [`Fault::undo`], everything
//! runs as before and every node has every change. The first node is left alone, since the others are compared with it.

use super::changes::Changes;
use super::oracle::Oracle;
use super::world::World;
use crate::error::LabError;
use crate::runs::system;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `kill -9` of a node of the store; it is started again.
    StoreKill,
    /// SIGSTOP of a node of the store.
    StorePause,
    /// Each node of the store is restarted in turn.
    StoreRestart,
    /// `kill -9` of a front end; it is started again.
    FrontKill,
    /// `kill -9` of the node whose feed is followed; it is started again.
    FeedKill,
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

impl Fault {
    pub const ALL: [Fault; 8] = [
        Fault::StoreKill,
        Fault::StorePause,
        Fault::StoreRestart,
        Fault::FrontKill,
        Fault::FeedKill,
        Fault::CopyKill,
        Fault::CopyPause,
        Fault::CopyRestart,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Fault::StoreKill => "store-kill",
            Fault::StorePause => "store-pause",
            Fault::StoreRestart => "store-restart",
            Fault::FrontKill => "front-kill",
            Fault::FeedKill => "feed-kill",
            Fault::CopyKill => "copy-kill",
            Fault::CopyPause => "copy-pause",
            Fault::CopyRestart => "copy-restart",
        }
    }

    fn needs_own_store(self) -> bool {
        matches!(self, Fault::StoreKill | Fault::StorePause | Fault::StoreRestart)
    }

    fn is_of(self, kind: Kind) -> bool {
        matches!(self, Fault::CopyKill | Fault::CopyPause | Fault::CopyRestart) == (kind == Kind::WholeCopies)
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

    /// Does it. Restarts in turn are over when this returns.
    pub fn inject(self, world: &mut World<'_>, changes: &Changes<'_>) -> Result<(), LabError> {
        let last = world.nodes.len().saturating_sub(1);
        match self {
            Fault::StoreKill => world.kill_store_node(0),
            Fault::StorePause => world.store()?.node_mut(1)?.pause(),
            Fault::StoreRestart => (0..world.store_nodes()).try_for_each(|number| {
                world.stop_store_node(number)?;
                world.start_store_node(number)
            }),
            Fault::FrontKill => world.kill_front(0),
            Fault::FeedKill | Fault::CopyKill => world.kill_node(last),
            Fault::CopyPause => world.pause_node(last),
            Fault::CopyRestart => (1..world.nodes.len()).try_for_each(|number| {
                world.stop_node(number)?;
                bring_back(world, changes, number)
            }),
        }
    }

    /// Undoes it, if that is left to do. Returns the seconds until everything runs again.
    pub fn undo(self, world: &mut World<'_>, changes: &Changes<'_>, oracle: &Oracle) -> Result<Option<f64>, LabError> {
        let (start, last) = (system::now(), world.nodes.len().saturating_sub(1));
        match self {
            Fault::StoreKill => world.start_store_node(0)?,
            Fault::StorePause => {
                world.store()?.node_mut(1)?.resume()?;
                let (timeout, interrupted) = (world.timeout, world.interrupted);
                world.store()?.wait(timeout, interrupted)?;
            }
            Fault::FrontKill => return world.start_front(0, oracle).map(Some),
            Fault::FeedKill | Fault::CopyKill => bring_back(world, changes, last)?,
            Fault::CopyPause => {
                world.resume_node(last)?;
                catch_up(changes, last)?;
            }
            Fault::StoreRestart | Fault::CopyRestart => return Ok(None),
        }
        Ok(Some(start.elapsed().as_secs_f64()))
    }

    /// How long it lasts, if not as long as the other phases.
    pub fn lasts(self, pause: Duration) -> Option<Duration> {
        matches!(self, Fault::StorePause | Fault::CopyPause).then_some(pause)
    }
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
        let front_ends = ["store-kill", "store-pause", "store-restart", "front-kill", "feed-kill"];
        assert_eq!(named(&[], Kind::FrontEnds, true).unwrap(), front_ends);
        assert_eq!(named(&[], Kind::FrontEnds, false).unwrap(), ["front-kill", "feed-kill"]);
        assert_eq!(named(&[], Kind::WholeCopies, false).unwrap(), ["copy-kill", "copy-pause", "copy-restart"]);
        assert_eq!(named(&["none"], Kind::FrontEnds, true).unwrap(), [""; 0]);
        assert_eq!(named(&["feed-kill"], Kind::FrontEnds, true).unwrap(), ["feed-kill"]);
        let error = |names: &[&str], kind, own| named(names, kind, own).unwrap_err().to_string();
        assert!(error(&["store-kill"], Kind::FrontEnds, false).contains("needs a store that the lab starts"));
        assert!(error(&["front-kill"], Kind::WholeCopies, false).contains("there are none, copy-kill, copy-pause"));
    }
}
