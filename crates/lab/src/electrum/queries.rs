//! Sends one query after another over one connection: a first, cold pass, then warm passes, with each answer compared.
//!
//! Input: a server, queries with the answers that follow from the blocks. Output: the columns of [`Query`]. The
//! measured time is from the first byte sent to the last one received; parsing JSON and comparing are not included.
//! Invariant: a column has a time only for a valid answer. The canonical form of the first pass's answer is kept and
//! compared with the expected one, and every later answer must be the same. Cost: bounded by the time budget, whatever
//! the server does.

use super::client::{Client, ClientError, Fault, Place, request, result_of};
use super::compare::{Digest, Digests, Order, misordered, sha256_of, wrong};
use crate::error::LabError;
use crate::runs::system;
use lydian_hash::sha256;
use lydian_report::electrum::percentile;
use lydian_report::electrum::results::{ElectrumSettings, Query};
use serde_json::Value;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Errors kept per query in the results.
const ERRORS_MAX: usize = 5;
/// A query that took longer is repeated at most [`SLOW_PASSES`] times.
const SLOW_MS: f64 = 500.0;
const SLOW_PASSES: usize = 3;
/// Consecutive timeouts after which a server counts as hanging.
const TIMEOUTS_MAX: u32 = 3;
/// The first pass gets the budget divided by this.
const COLD_SHARE: u32 = 2;

/// Why the work on a server ends early.
#[derive(Debug)]
pub enum Stop {
    Interrupted,
    Failed(String),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

/// What to query, and how to read the answers.
pub struct Questions<'a> {
    /// The name of the query in the results.
    pub name: &'a str,
    pub method: String,
    pub params: Vec<Value>,
    /// Converts a result to the form in which it is compared.
    pub canonical: &'a dyn Fn(&Value) -> Result<Value, Fault>,
    pub order: Order,
    pub expected: &'a [Digest],
    pub heights: Vec<u32>,
    /// Queries from this index on are sent in the first pass even if its time is up.
    pub always_from: usize,
}

impl Debug for Questions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} questions of {}", self.params.len(), self.method)
    }
}

/// What is stored of the answers, besides their times.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    pub digests: Digests,
    /// SHA-256 of each answer without whitespace: the server's next answer is compared with it.
    pub raw: Vec<Option<[u8; 32]>>,
}

/// How queries are sent to a server, and what an answer says.
pub trait Asks {
    /// A query in the form in which it is sent.
    fn request(&self, method: &str, params: &Value) -> Vec<u8>;

    fn ask(&mut self, method: &str, request: &[u8]) -> Result<Reply, ClientError>;

    /// Parses the line of a reply.
    fn result_of(&self, line: &[u8]) -> Result<Value, Fault>;

    /// After a line that was not a valid answer, it is unknown which query the next line answers.
    fn distrust(&mut self, fault: &Fault);
}

/// Sends queries in the Electrum protocol, and makes a new connection if the old one failed or the server requires it.
#[derive(Debug)]
pub struct Asker {
    place: Place,
    client: Option<Client>,
    /// See `ElectrumServer::bytes_per_connection`.
    bytes_max: Option<usize>,
    bytes: usize,
}

/// One answer.
#[derive(Debug)]
pub struct Reply {
    pub milliseconds: f64,
    pub line: Vec<u8>,
    pub raw: [u8; 32],
}

impl Asker {
    pub fn new(place: Place, bytes_max: Option<usize>) -> Asker {
        Asker { place, client: None, bytes_max, bytes: 0 }
    }

    pub fn client(&mut self) -> Result<&mut Client, ClientError> {
        if self.client.is_none() || self.bytes_max.is_some_and(|most| self.bytes >= most) {
            // Close the old connection first: some servers limit the number of connections.
            self.client = None;
            self.client = Some(Client::connect(&self.place)?);
            self.bytes = 0;
        }
        self.client.as_mut().ok_or_else(|| self.place.error("connect", Fault::Disconnected))
    }
}

impl Asks for Asker {
    fn request(&self, method: &str, params: &Value) -> Vec<u8> {
        request(method, params)
    }

    fn result_of(&self, line: &[u8]) -> Result<Value, Fault> {
        result_of(line)
    }

    fn distrust(&mut self, fault: &Fault) {
        if !matches!(fault, Fault::Refused { .. }) {
            self.client = None;
        }
    }

    fn ask(&mut self, method: &str, request: &[u8]) -> Result<Reply, ClientError> {
        let asked = self.client()?.ask(method, request).map(|answer| {
            let squeezed = squeezed(answer.line);
            (
                squeezed.len(),
                Reply { milliseconds: answer.milliseconds, line: answer.line.to_vec(), raw: sha256(&squeezed) },
            )
        });
        match asked {
            Ok((bytes, reply)) => {
                self.bytes += bytes;
                Ok(reply)
            }
            Err(error) => {
                self.client = None;
                Err(error)
            }
        }
    }
}

/// Servers may pad a line with whitespace; no string in an answer contains whitespace that matters.
pub fn squeezed(line: &[u8]) -> Vec<u8> {
    line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

/// The state of a query while it runs.
struct Run<'a> {
    questions: &'a Questions<'a>,
    settings: &'a ElectrumSettings,
    interrupted: &'a AtomicBool,
    start: Instant,
    requests: Vec<Vec<u8>>,
    query: Query,
    answers: Answers,
    /// Milliseconds of each query's later passes.
    warm: Vec<Vec<f64>>,
    timeouts: u32,
}

/// Runs all passes, as far as possible.
pub fn ask_all(
    asker: &mut dyn Asks,
    questions: &Questions<'_>,
    settings: &ElectrumSettings,
    interrupted: &AtomicBool,
) -> (Query, Answers, Result<(), Stop>) {
    let mut run = Run::new(asker, questions, settings, interrupted);
    let done = run.cold(asker).and_then(|()| run.warm(asker));
    run.finish();
    (run.query, run.answers, done)
}

impl<'a> Run<'a> {
    fn new(
        asker: &dyn Asks,
        questions: &'a Questions<'a>,
        settings: &'a ElectrumSettings,
        interrupted: &'a AtomicBool,
    ) -> Run<'a> {
        let count = questions.params.len();
        let query = Query {
            name: questions.name.to_owned(),
            method: questions.method.clone(),
            heights: questions.heights.clone(),
            cold_ms: vec![None; count],
            warm_ms: vec![None; count],
            passes: 0,
            not_asked: 0,
            wrong: 0,
            misordered: 0,
            answer_sha256: None,
            errors: Vec::new(),
        };
        Run {
            requests: questions.params.iter().map(|params| asker.request(&questions.method, params)).collect(),
            questions,
            settings,
            interrupted,
            start: system::now(),
            query,
            answers: Answers { digests: vec![None; count], raw: vec![None; count] },
            warm: vec![Vec::new(); count],
            timeouts: 0,
        }
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(self.settings.query_seconds_max)
    }

    fn cold(&mut self, asker: &mut dyn Asks) -> Result<(), Stop> {
        for index in 0..self.requests.len() {
            if index < self.questions.always_from && self.start.elapsed() > self.budget() / COLD_SHARE {
                self.query.not_asked += 1;
                continue;
            }
            let Some(reply) = self.one(asker, index)? else { continue };
            let canonical = asker.result_of(&reply.line).and_then(|result| (self.questions.canonical)(&result));
            match canonical {
                Ok(canonical) => {
                    self.query.cold_ms[index] = Some(to_microseconds(reply.milliseconds));
                    self.answers.digests[index] = Some(Digest::of(&canonical, self.questions.order));
                    self.answers.raw[index] = Some(reply.raw);
                }
                Err(fault) => {
                    asker.distrust(&fault);
                    self.note(fault.to_string());
                }
            }
        }
        Ok(())
    }

    fn warm(&mut self, asker: &mut dyn Asks) -> Result<(), Stop> {
        for pass in 0..self.settings.passes {
            let begun = self.start.elapsed();
            for index in 0..self.requests.len() {
                let is_slow =
                    self.warm[index].last().or(self.query.cold_ms[index].as_ref()).is_some_and(|&ms| ms > SLOW_MS);
                if self.answers.raw[index].is_none() || (is_slow && self.warm[index].len() >= SLOW_PASSES) {
                    continue;
                }
                let Some(reply) = self.one(asker, index)? else { continue };
                if self.is_same(asker, index, &reply) {
                    self.warm[index].push(reply.milliseconds);
                }
            }
            self.query.passes = pass + 1;
            let last = self.start.elapsed().saturating_sub(begun);
            if self.start.elapsed() + last > self.budget() {
                break;
            }
        }
        Ok(())
    }

    /// `None`: the error is recorded and the next query may be sent.
    fn one(&mut self, asker: &mut dyn Asks, index: usize) -> Result<Option<Reply>, Stop> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let error = match asker.ask(&self.questions.method, &self.requests[index]) {
            Ok(reply) => {
                self.timeouts = 0;
                return Ok(Some(reply));
            }
            Err(error) => error,
        };
        match &error.fault {
            // After a disconnection the next query makes a new connection; if that fails, the server is gone.
            Fault::Connection(_) => return Err(error.into()),
            Fault::TimedOut { .. } => {
                self.timeouts += 1;
                if self.timeouts >= TIMEOUTS_MAX {
                    return Err(Stop::Failed(format!("{error}, {TIMEOUTS_MAX} times in a row")));
                }
            }
            _ => {}
        }
        self.note(error.to_string());
        Ok(None)
    }

    /// Whether the answer is that of the first pass: byte for byte except for whitespace, otherwise after parsing.
    fn is_same(&mut self, asker: &mut dyn Asks, index: usize, reply: &Reply) -> bool {
        if self.answers.raw[index] == Some(reply.raw) {
            return true;
        }
        let canonical = asker.result_of(&reply.line).and_then(|result| (self.questions.canonical)(&result));
        let again = canonical.as_ref().map(|canonical| Digest::of(canonical, self.questions.order).content);
        let before = self.answers.digests[index].as_ref().map(|digest| digest.content);
        let is_same = again.is_ok_and(|again| Some(again) == before);
        if !is_same {
            canonical.as_ref().inspect_err(|fault| asker.distrust(fault)).ok();
            let what = &self.questions.params[index];
            let reason = canonical.err().map_or("it differs from the one before".to_owned(), |fault| fault.to_string());
            self.note(format!("a later answer to {what}: {reason}"));
        }
        is_same
    }

    fn note(&mut self, error: String) {
        if self.query.errors.len() < ERRORS_MAX && !self.query.errors.contains(&error) {
            self.query.errors.push(error);
        }
    }

    fn finish(&mut self) {
        for (times, median) in self.warm.iter_mut().zip(&mut self.query.warm_ms) {
            times.sort_by(f64::total_cmp);
            *median = percentile(times, 50).map(to_microseconds);
        }
        self.query.answer_sha256 = sha256_of(&self.answers.digests);
        self.query.misordered = misordered(&self.answers.digests, self.questions.expected);
        self.query.wrong = wrong(&self.answers.digests, self.questions.expected);
    }
}

/// Rounds milliseconds to three decimals: finer than anything measured here.
pub fn to_microseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_do_not_count() {
        assert_eq!(squeezed(b"{\"a\": [1, 2]   }"), b"{\"a\":[1,2]}");
    }
}
