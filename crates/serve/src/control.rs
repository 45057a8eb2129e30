//! [`Control`]: what an operator does with the clients of a running server.
//!
//! Input: ids of connections, subnets. Output: connections that end. A client on this machine cannot be banned, so that
//! no ban locks the operator out. [`Drain`] ends all connections, a few at a time, so that the servers to which their
//! clients go next are not flooded.

use crate::allow::Subnet;
use crate::bans::{Ban, BanError};
use crate::places::Places;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The clients of a server. It outlives the server, and does nothing then.
#[derive(Clone, Debug)]
pub struct Control(pub(crate) Arc<Places>);

impl Control {
    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.0.count()
    }

    /// Ends a connection soon. Returns whether it was open.
    pub fn disconnect(&self, id: u64) -> bool {
        self.0.close(id)
    }

    /// Ends the connections of a subnet, and refuses new ones for so long.
    pub fn ban(&self, subnet: Subnet, time: Duration) -> Result<(), BanError> {
        self.0.ban(subnet, time)
    }

    /// Returns whether there was a ban of exactly this subnet.
    pub fn unban(&self, subnet: &Subnet) -> bool {
        self.0.unban(subnet)
    }

    /// In the order in which they were made.
    pub fn bans(&self) -> Vec<Ban> {
        self.0.bans()
    }

    pub fn clear_bans(&self) {
        self.0.clear_bans();
    }

    /// Ends the connections that are open now at a steady pace, as its caller takes its steps.
    pub fn drain(&self) -> Drain {
        Drain::new(Arc::clone(&self.0))
    }
}

/// The time in which [`Drain`] asks all connections to end: 5 % of them each second.
pub const DRAIN_TIME: Duration = Duration::from_secs(20);

/// Ends the connections of a server at a steady pace, the oldest first. One that answers a request finishes it.
#[derive(Debug)]
pub struct Drain {
    places: Arc<Places>,
    /// The connections that were open when it began.
    total: usize,
    asked: usize,
}

impl Drain {
    pub(crate) fn new(places: Arc<Places>) -> Drain {
        Drain { total: places.count(), places, asked: 0 }
    }

    /// Asks as many connections to end as are due at a time since the beginning; all from [`DRAIN_TIME`] on. Returns
    /// the number of those that are still open.
    pub fn step(&mut self, elapsed: Duration) -> usize {
        let due = match elapsed < DRAIN_TIME {
            true => due(self.total, elapsed).saturating_sub(self.asked),
            // Also those that came meanwhile.
            false => usize::MAX,
        };
        self.asked += self.places.leave(due);
        self.places.count()
    }
}

/// How many of so many connections are to end within a time: 5 % each second, and one at least.
fn due(total: usize, elapsed: Duration) -> usize {
    let share = total as u128 * elapsed.as_millis() / DRAIN_TIME.as_millis();
    let share = share.max(u128::from(elapsed.as_secs()));
    usize::try_from(share).unwrap_or(total).min(total)
}

/// A client that has a session, for operators. It names nothing that the client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The number of the connection, as in the log.
    pub id: u64,
    pub address: SocketAddr,
    /// Whether it is on this machine.
    pub is_local: bool,
    /// The version of the protocol that was agreed on.
    pub version: Option<String>,
    /// The name that the client gave itself.
    pub client: String,
    /// Time since the connection was accepted, and since its last byte.
    pub age: Duration,
    pub idle: Duration,
    pub subscriptions: usize,
    pub requests: u64,
    pub bytes_received: u64,
    pub bytes_sent: u64,
    /// What its answers cost so far.
    pub cost: u64,
    /// The sum of its subnet now.
    pub subnet_cost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_leaves_each_second() {
        let millis = Duration::from_millis;
        for (total, elapsed, expected) in [
            (0, 20_000, 0),
            (1, 999, 0),
            (1, 1_000, 1),
            (7, 3_000, 3),
            (7, 20_000, 7),
            (20, 1_000, 1),
            (41, 1_000, 2),
            (10_000, 100, 50),
            (10_000, 1_000, 500),
            (10_000, 19_999, 9_999),
            (10_000, 20_000, 10_000),
            (10_000, 90_000, 10_000),
        ] {
            assert_eq!(due(total, millis(elapsed)), expected, "{total} after {elapsed} ms");
        }
    }
}
