//! Watches the commit row of the store during the load: does it ever go back?
//!
//! Input: the hosts of the store, the keyspace. Output: [`Commits`]. A value that a quorum returned was acknowledged by
//! one, and reading it at a quorum writes it to a quorum; so every later answer must have the same sequence or a higher
//! one. Invariant: while nodes are down, the next one is asked. Cost: one read in 100 ms.

use crate::error::LabError;
use crate::runs::system;
use crate::store::{Connection, Consistency};
use lydian_report::results::rounded;
use serde::Serialize;
use std::net::{SocketAddr, SocketAddrV4, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Between two reads.
const PERIOD: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Of Cassandra, if an address has none.
const PORT: u16 = 9042;

/// What became of the commits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Commits {
    /// Answers of a quorum, and different commits among them.
    pub reads: u64,
    pub seen: u64,
    /// Answers with an earlier commit than one before.
    pub lost: u64,
    /// The first of these.
    pub example: Option<String>,
    /// The sequence of the last one.
    pub last: Option<i64>,
    /// The longest time without a new one.
    pub gap_ms: f64,
}

impl Commits {
    /// An answer; `None` for a row without a sequence, or for no row.
    fn add(&mut self, sequence: Option<i64>) {
        self.reads += 1;
        if sequence > self.last {
            self.seen += 1;
            self.last = sequence;
        } else if sequence < self.last {
            self.lost += 1;
            let last = self.last;
            self.example.get_or_insert_with(|| format!("commit {last:?}, and {sequence:?} after it"));
        }
    }
}

/// The addresses in `cassandra://HOST[:PORT],.../KEYSPACE`, and the keyspace.
pub fn parts_of(url: &str) -> Result<(Vec<SocketAddrV4>, String), LabError> {
    let odd = |reason: String| LabError::Usage(format!("{url}: {reason}"));
    let (hosts, keyspace) = url
        .strip_prefix("cassandra://")
        .and_then(|rest| rest.split_once('/'))
        .ok_or_else(|| odd("not cassandra://HOST,HOST/KEYSPACE".to_owned()))?;
    let address = |host: &str| {
        let name = if host.contains(':') { host.to_owned() } else { format!("{host}:{PORT}") };
        let mut found = name.to_socket_addrs().map_err(|error| odd(format!("{host}: {error}")))?;
        let found = found.find_map(|address| match address {
            SocketAddr::V4(address) => Some(address),
            SocketAddr::V6(_) => None,
        });
        found.ok_or_else(|| odd(format!("{host} has no IPv4 address")))
    };
    Ok((hosts.split(',').map(address).collect::<Result<_, _>>()?, keyspace.to_owned()))
}

/// Watches until the end.
pub fn watch(hosts: &[SocketAddrV4], keyspace: &str, is_over: &AtomicBool) -> Commits {
    let statement = format!("SELECT sequence FROM {keyspace}.commits WHERE id = 0");
    let mut commits = Commits::default();
    let mut hosts = hosts.iter().cycle();
    let mut connection: Option<Connection> = None;
    let mut since = system::now();
    while !is_over.load(Ordering::Relaxed) {
        let answer = match &mut connection {
            Some(connection) => connection.query(&statement, Consistency::Quorum),
            None => match hosts.next().map(|host| Connection::open(*host, TIMEOUT)) {
                Some(Ok(opened)) => {
                    connection = Some(opened);
                    continue;
                }
                Some(Err(_)) | None => {
                    thread::sleep(PERIOD);
                    continue;
                }
            },
        };
        match answer {
            Ok(rows) => {
                let cell = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
                let before = commits.last;
                commits.add(cell.and_then(|cell| cell.try_into().ok()).map(i64::from_be_bytes));
                if before != commits.last {
                    let gap = rounded(since.elapsed().as_secs_f64() * 1e3);
                    commits.gap_ms = if before.is_some() { commits.gap_ms.max(gap) } else { 0.0 };
                    since = system::now();
                }
            }
            // Its node was ended, or is without a quorum.
            Err(_) => connection = None,
        }
        thread::sleep(PERIOD);
    }
    commits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_comes_back_is_lost() {
        let mut commits = Commits::default();
        [None, Some(4), Some(4), Some(6), Some(5), Some(6), None].into_iter().for_each(|one| commits.add(one));
        assert_eq!((commits.reads, commits.seen, commits.lost, commits.last), (7, 2, 2, Some(6)));
        assert_eq!(commits.example.as_deref(), Some("commit Some(6), and Some(5) after it"));
    }

    #[test]
    fn addresses_of_a_store_are_read() {
        let (hosts, keyspace) = parts_of("cassandra://127.0.0.1:7,127.0.0.2/lydian").unwrap();
        assert_eq!(hosts.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:7", "127.0.0.2:9042"]);
        assert_eq!(keyspace, "lydian");
        for odd in ["cassandra://a", "127.0.0.1/x", "cassandra://:x/y"] {
            assert!(parts_of(odd).unwrap_err().to_string().starts_with(odd), "{odd}");
        }
    }
}
