//! One node of a cluster as a process: start, stop, kill, pause, wipe.
//!
//! Input: its place and the shape of the cluster. Output: a process whose output and log are in the node's folder. It
//! is killed when the value is dropped, also if it is paused. Must never: wipe the data of a node that runs.

use super::config::{Join, Place, Shape};
use super::cql::{Connection, Consistency, Row};
use super::disk::SmallDisk;
use super::install::Installed;
use crate::electrum::process::{Process, Used};
use crate::error::LabError;
use crate::runs::log::end_of;
use crate::runs::{log_end, system};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::time::Duration;

/// For each answer to a question of the lab.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Rows of an answer: keys only, and whole rows, the largest of which have half a megabyte.
const COUNTED_AT_ONCE: u32 = 5_000;
const READ_AT_ONCE: u32 = 8;
/// Bytes of the log in which errors are looked for, and how many lines of it are shown.
const ERRORS_BYTES: u64 = 1 << 20;
const ERROR_LINES: usize = 12;
const STOP_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Node {
    place: Place,
    shape: Shape,
    process: Option<Process>,
    /// For the tables, if they have one of their own.
    disk: Option<SmallDisk>,
    /// The size of the log when the process was started: what is before is of earlier ones.
    log_start: u64,
}

impl Node {
    /// A node that does not run yet, in an empty folder.
    pub(super) fn new(place: Place, shape: Shape) -> Result<Node, LabError> {
        system::create_dir(&place.folder)?;
        Ok(Node { place, shape, process: None, disk: None, log_start: 0 })
    }

    /// Before its first start. Its data cannot be wiped then.
    pub(super) fn give_disk(&mut self, mib: u32) -> Result<(), LabError> {
        self.disk = Some(SmallDisk::new(&self.place.data(), mib)?);
        Ok(())
    }

    pub fn disk(&self) -> Result<&SmallDisk, LabError> {
        self.disk.as_ref().ok_or_else(|| self.failed("its tables have no disk of their own"))
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.place.address(), self.shape.cql_port)
    }

    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(|process| !process.has_ended())
    }

    /// Whether it was started, and ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(Process::has_ended)
    }

    /// What the process has used so far; `None` if it does not run.
    pub fn used(&self) -> Option<Used> {
        self.process.as_ref().map(Process::used)
    }

    /// Bytes on disk of everything the node wrote.
    pub fn disk_bytes(&self) -> u64 {
        system::disk_bytes(&self.place.folder)
    }

    pub(super) fn start(&mut self, installed: &Installed, join: Join) -> Result<(), LabError> {
        if self.is_running() {
            return Err(self.failed("it runs already"));
        }
        self.process = None;
        self.log_start = self.log_size();
        self.place.write_files(&self.shape, join)?;
        let command = self.place.command(installed, &self.shape, join)?;
        let command = match &self.disk {
            Some(disk) => disk.within(&command),
            None => command,
        };
        self.process = Some(Process::start(command, &self.output())?);
        Ok(())
    }

    /// Stops the node as an operator would (SIGTERM), and waits until it has ended.
    pub fn stop(&mut self) -> Result<(), LabError> {
        match self.process.take() {
            Some(mut process) => process.stop(Signal::TERM, STOP_PATIENCE),
            None => Err(self.failed("it does not run")),
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) -> Result<(), LabError> {
        // Dropping the process kills it.
        self.process.take().map(drop).ok_or_else(|| self.failed("it does not run"))
    }

    /// Stops the process from running at all, so that its connections stay open and it answers nothing.
    pub fn pause(&self) -> Result<(), LabError> {
        self.signal(Signal::STOP)
    }

    /// Lets a paused node run again.
    pub fn resume(&self) -> Result<(), LabError> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), LabError> {
        let process = self.process.as_ref().ok_or_else(|| self.failed("it does not run"))?;
        let pid = i32::try_from(process.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| self.failed("it has no process"))?;
        kill_process(pid, signal).map_err(|error| self.failed(error))
    }

    /// Removes everything that the node stored.
    pub fn wipe(&self) -> Result<(), LabError> {
        self.must_not_run()?;
        self.place.folders().iter().try_for_each(|folder| system::remove_dir(folder))
    }

    /// Removes what the node stored of one keyspace. It keeps its place in the cluster and does not know that anything
    /// is missing.
    pub fn wipe_keyspace(&self, keyspace: &str) -> Result<(), LabError> {
        self.must_not_run()?;
        if keyspace.is_empty() || keyspace.contains(['/', '.']) {
            return Err(self.failed(format!("`{keyspace}` is no keyspace")));
        }
        let data: PathBuf = self.place.data().join(keyspace);
        if !data.is_dir() {
            return Err(self.failed(format!("there is no {}", data.display())));
        }
        let [_, commit_log, hints, ..] = self.place.folders();
        [data, commit_log, hints].iter().try_for_each(|folder| system::remove_dir(folder))
    }

    fn must_not_run(&self) -> Result<(), LabError> {
        if self.disk.is_some() {
            return Err(self.failed("its tables have a disk of their own"));
        }
        if self.is_running() { Err(self.failed("it runs: stop it before its data is removed")) } else { Ok(()) }
    }

    /// The rows of a table that the node itself has, if it is a replica of each: a node asks itself first.
    pub fn count(&self, table: &str, column: &str) -> Result<u64, LabError> {
        let mut count = 0;
        let mut connection = Connection::open(self.address(), ANSWER_TIMEOUT)?;
        let statement = format!("SELECT {column} FROM {table}");
        connection.scan(&statement, Consistency::One, COUNTED_AT_ONCE, &mut |_| count += 1)?;
        Ok(count)
    }

    /// Reads all rows of a table from all replicas, which writes each row to the replicas that lack it. It fails while
    /// a replica is down.
    pub fn read_from_all(&self, table: &str) -> Result<u64, LabError> {
        let mut count = 0;
        let mut connection = Connection::open(self.address(), ANSWER_TIMEOUT)?;
        let statement = format!("SELECT * FROM {table}");
        connection.scan(&statement, Consistency::All, READ_AT_ONCE, &mut |_| count += 1)?;
        Ok(count)
    }

    /// Asks the node itself.
    pub fn query(&self, statement: &str, consistency: Consistency) -> Result<Vec<Row>, LabError> {
        Connection::open(self.address(), ANSWER_TIMEOUT)?.query(statement, consistency)
    }

    fn log_size(&self) -> u64 {
        std::fs::metadata(self.place.log()).map_or(0, |file| file.len())
    }

    /// The last errors in the log of this process, then the end of the log and of its output. What a node does while it
    /// ends may push the reason far up.
    pub(super) fn said(&self) -> String {
        let end = log_end(&self.place.log(), &self.output());
        let bytes = self.log_size().saturating_sub(self.log_start).min(ERRORS_BYTES);
        let errors = errors_of(&end_of(&self.place.log(), bytes));
        [errors, end].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n...\n")
    }

    pub(super) fn failed(&self, reason: impl std::fmt::Display) -> LabError {
        LabError::program(format!("Cassandra at {}", self.address()), reason)
    }

    fn output(&self) -> PathBuf {
        self.place.folder.join("output.txt")
    }
}

/// The last lines of errors, each with the first line of its exception: lines that begin with a time and `ERROR`.
fn errors_of(log: &str) -> String {
    let mut found = Vec::new();
    let mut left = 0;
    for line in log.lines() {
        let is_error = line.split_ascii_whitespace().nth(2) == Some("ERROR");
        left = if is_error { 2 } else { left };
        if left > 0 {
            found.push(line);
            left -= 1;
        }
    }
    found.split_off(found.len().saturating_sub(ERROR_LINES)).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_a_log_are_found_with_their_exceptions() {
        let log = "2026-11-28 09:00:00,000 INFO  [main] Gossiper: ERROR is a word\n\
                   2026-11-28 09:00:01,000 ERROR [main] CassandraDaemon: Exception encountered during startup\n\
                   java.lang.IllegalStateException: Unable to contact any seeds\n\
                   \tat org.apache.cassandra.service.StorageService.bootstrap(StorageService.java:1)\n\
                   2026-11-28 09:00:02,000 INFO  [hook] StorageService: Cassandra shutdown complete";
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(errors_of(log), lines[1..3].join("\n"));
        assert_eq!(errors_of(lines[0]), "");
        let many = vec![lines[1]; 20].join("\n");
        assert_eq!(errors_of(&many).lines().count(), ERROR_LINES);
    }
}
