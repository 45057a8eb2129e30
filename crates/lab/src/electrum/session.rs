//! Runs one server from its empty index to its end: build, queries, loads, stop.
//!
//! Before each of the script queries the server is restarted, so that their first pass is cold. Input: a contender, the
//! queries with their right answers. Output: its results, as far as it got. Must never: leave a process behind.

use super::adapter::ServerJob;
use super::build::{Setup, build};
use super::client::{Fault, Place};
use super::compare::{Digest, Digests, Order};
use super::daemon::Daemon;
use super::esplora::{self, PATHS};
use super::load::{self, load};
use super::process::{Process, Shares};
use super::protocol::{SCRIPT_QUERIES, ScriptQuery, headers_of, script_params, status_of};
use super::queries::{Answers, Asker, Asks, Questions, Stop, ask_all};
use super::rest::RestAsker;
use super::wallet::wallet;
use super::{Comparison, Contender, arguments_for};
use crate::runs::system;
use lydian_chains::expected::{Expected, Outspends};
use lydian_chains::rng::Random;
use lydian_chains::targets::Targets;
use lydian_report::electrum::WALLET_TRANSACTIONS_MAX;
use lydian_report::electrum::results::ServerResults;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Headers per query, as wallets request them.
const HEADERS: u32 = 2_016;
/// Number of positions in the chain from which headers are queried.
const HEADER_STARTS: u32 = 5;
/// Number of blocks for which a proof is queried, at most; the block with the most transactions is one of them.
const MERKLE_BLOCKS: usize = 20;

/// The time after the index is built within which a server must answer Esplora's REST API too.
const ESPLORA_PATIENCE: Duration = Duration::from_secs(30);
const ESPLORA_POLL: Duration = Duration::from_millis(50);

/// Their names in the results, in the order in which they are sent; the last ones only with `--esplora`.
pub(super) const QUERIES: [&str; 9] = [
    "balance",
    "history",
    "utxos",
    "headers",
    "merkle",
    PATHS[0].name(),
    PATHS[1].name(),
    PATHS[2].name(),
    PATHS[3].name(),
];
const FIRST_PATH: usize = QUERIES.len() - PATHS.len();

/// The queries for all servers, and the right answers.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) targets: &'a Targets,
    /// For balance, history and UTXO list.
    pub(super) expected: [Vec<Digest>; 3],
    /// Statuses that follow from the histories, one per script.
    statuses: Vec<Option<String>>,
    headers: HeightQuestions,
    merkle: HeightQuestions,
    /// Empty if Esplora's REST API is not measured.
    esplora: [esplora::Questions; PATHS.len()],
    postings: u64,
}

#[derive(Debug, Default)]
struct HeightQuestions {
    heights: Vec<u32>,
    params: Vec<Value>,
    expected: Vec<Digest>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(targets: &'a Targets, expected: &Expected, postings: u64) -> Asked<'a> {
        let scripts = 0..targets.scripts.len();
        let digests = |query: ScriptQuery| -> Vec<Digest> {
            let of = |at| match query {
                ScriptQuery::Balance => expected.balance(at),
                ScriptQuery::History => expected.history(at),
                ScriptQuery::Utxos => expected.utxos(at),
            };
            scripts.clone().map(|at| Digest::of(&of(at), query.order())).collect()
        };
        let (headers, merkle) = (header_questions(expected), merkle_questions(expected));
        let statuses = scripts.clone().map(|at| status_of(&expected.history(at))).collect();
        let esplora = Default::default();
        Asked { targets, expected: SCRIPT_QUERIES.map(digests), statuses, headers, merkle, esplora, postings }
    }
}

impl Asked<'_> {
    pub(super) fn add_esplora(&mut self, expected: &Expected, outspends: &Outspends) {
        self.esplora = esplora::Questions::all(self.targets, expected, outspends);
    }

    /// For the query at this index of [`QUERIES`]: what each question asks for, and the right answers.
    pub(super) fn of(&self, number: usize) -> (Vec<String>, &[Digest]) {
        let scripts = || self.targets.scripts.iter().map(|target| target.scripthash.clone()).collect();
        let heights = |of: &HeightQuestions| of.heights.iter().map(|height| format!("height {height}")).collect();
        match number {
            3 => (heights(&self.headers), &self.headers.expected),
            4 => (heights(&self.merkle), &self.merkle.expected),
            FIRST_PATH.. => (scripts(), self.esplora.get(number - FIRST_PATH).map_or(&[], |path| &path.expected)),
            script => (scripts(), self.expected.get(script).map_or(&[], Vec::as_slice)),
        }
    }
}

fn header_questions(expected: &Expected) -> HeightQuestions {
    let last = (expected.tip_height() + 1).saturating_sub(HEADERS);
    let starts: BTreeSet<u32> = (0..HEADER_STARTS)
        .map(|step| u64::from(last) * u64::from(step) / u64::from(HEADER_STARTS - 1))
        .filter_map(|start| u32::try_from(start).ok())
        .collect();
    let mut questions = HeightQuestions::default();
    for start in starts {
        questions.heights.push(start);
        questions.params.push(json!([start, HEADERS]));
        questions.expected.push(Digest::of(&Value::from(expected.headers(start, HEADERS)), Order::Counts));
    }
    questions
}

fn merkle_questions(expected: &Expected) -> HeightQuestions {
    let mut random = Random::new(1, "electrum merkle");
    let mut heights = BTreeSet::from([expected.largest_block()]);
    for _ in 1..MERKLE_BLOCKS {
        heights.insert(u32::try_from(random.between(1, u64::from(expected.tip_height().max(1)))).unwrap_or(1));
    }
    let mut questions = HeightQuestions::default();
    for height in heights {
        let txids = expected.block_txids(height);
        let Some(txid) = txids.get(random.index(txids.len())) else { continue };
        let Some(proof) = expected.merkle(txid, height) else { continue };
        questions.heights.push(height);
        questions.params.push(json!([txid, height]));
        questions.expected.push(Digest::of(&proof, Order::Counts));
    }
    questions
}

/// The fields that belong to the proof.
fn merkle_of(result: &Value) -> Result<Value, Fault> {
    let pick = |name: &str| result.get(name).cloned().ok_or_else(|| Fault::Unexpected(format!("no `{name}` in it")));
    Ok(json!({ "block_height": pick("block_height")?, "merkle": pick("merkle")?, "pos": pick("pos")? }))
}

/// A server may open the port of the API after that of the Electrum protocol.
fn wait_for_esplora(asker: &mut RestAsker, height: u32) -> Result<(), Stop> {
    let start = system::now();
    loop {
        let last = match asker.get("/blocks/tip/height") {
            Ok(body) if body == height.to_string().as_bytes() => return Ok(()),
            Ok(body) => format!("its tip is at height {}", String::from_utf8_lossy(&body)),
            Err(error) => error.to_string(),
        };
        if start.elapsed() > ESPLORA_PATIENCE {
            return Err(Stop::Failed(format!("Esplora's REST API is not ready: {last}")));
        }
        std::thread::sleep(ESPLORA_POLL);
    }
}

pub(super) struct Session<'a> {
    comparison: &'a Comparison<'a>,
    asked: &'a Asked<'a>,
    daemon: &'a Daemon,
    setup: Setup<'a>,
    print_progress: &'a mut dyn FnMut(&str),
    answers: [Answers; 3],
    /// Answers to the queries for headers and proofs.
    heights: [Digests; 2],
    /// Answers of Esplora's REST API.
    paths: [Digests; PATHS.len()],
    /// The negotiated protocol version.
    protocol: String,
    /// CPU time of the server during the queries.
    asked_cpu_seconds: f64,
    /// How the page cache was emptied.
    pub(super) emptied_by: Option<&'static str>,
}

impl<'a> Session<'a> {
    /// `None` if there are no scripts.
    pub(super) fn new(
        comparison: &'a Comparison<'a>,
        contender: &'a Contender,
        asked: &'a Asked<'a>,
        daemon: &'a Daemon,
        job: ServerJob,
        print_progress: &'a mut dyn FnMut(&str),
    ) -> Option<Session<'a>> {
        let target = asked.targets.scripts.iter().min_by_key(|target| target.transactions)?;
        let setup = Setup {
            name: &contender.name,
            server: contender.server.as_ref(),
            job,
            daemon,
            height: comparison.chain.facts.height,
            target,
            timeout: comparison.build_timeout,
            protocol_max: &comparison.settings.protocol_max,
            interrupted: comparison.interrupted,
        };
        let (answers, protocol) = (Default::default(), String::new());
        Some(Session {
            comparison,
            asked,
            daemon,
            setup,
            print_progress,
            answers,
            heights: Default::default(),
            paths: Default::default(),
            protocol,
            asked_cpu_seconds: 0.0,
            emptied_by: None,
        })
    }

    /// In every case the results say how far the server got and why no further.
    pub(super) fn run(&mut self, results: &mut ServerResults) {
        let reason = match self.all(results) {
            Ok(()) => return,
            Err(Stop::Interrupted) => "interrupted".to_owned(),
            Err(Stop::Failed(reason)) => reason,
        };
        self.report(&reason);
        results.failure = Some(reason);
        results.log_end = Some(self.setup.log_end());
    }

    /// The answers in the order of [`QUERIES`].
    pub(super) fn into_digests(self) -> [Digests; QUERIES.len()] {
        let ([balance, history, utxos], [headers, merkle]) =
            (self.answers.map(|answers| answers.digests), self.heights);
        let [script, txs, coins, outspends] = self.paths;
        [balance, history, utxos, headers, merkle, script, txs, coins, outspends]
    }

    fn report(&mut self, text: &str) {
        (self.print_progress)(&format!("{}: {text}", self.setup.name));
    }

    fn all(&mut self, results: &mut ServerResults) -> Result<(), Stop> {
        results.facts.arguments = arguments_for(self.setup.server, &self.setup.job)?;
        self.report("builds its index");
        let (build, protocol) = build(&self.setup, self.asked.postings)?;
        let (seconds, mib) = (build.wall_seconds, build.index_bytes >> 20);
        self.report(&format!("built in {seconds:.1} s, {mib} MiB; speaks {protocol}"));
        results.build = Some(build);
        results.protocol = Some(protocol.clone());
        self.protocol = protocol;
        let shares = Shares::now();
        let daemon_before = self.daemon.process().used().cpu_seconds;
        let mut process = None;
        let mut asked = Ok(());
        for query in SCRIPT_QUERIES {
            asked = self
                .end(&mut process, results)
                .and_then(|()| self.cold_start(&mut process))
                .and_then(|()| self.query(query, results));
            if asked.is_err() {
                break;
            }
        }
        let asked = asked.and_then(|()| self.rest(results)).and_then(|()| self.esplora(&mut process, results));
        let ended = self.end(&mut process, results);
        let daemon = self.daemon.process().used().cpu_seconds - daemon_before;
        results.machine = shares.until_now(self.asked_cpu_seconds + daemon);
        asked.and(ended)
    }

    fn end(&mut self, process: &mut Option<Process>, results: &mut ServerResults) -> Result<(), Stop> {
        let Some(mut running) = process.take() else { return Ok(()) };
        let used = running.used();
        self.asked_cpu_seconds += used.cpu_seconds;
        let peak = Some(used.peak_rss_bytes).filter(|&peak| peak > 0);
        results.serving_peak_rss_bytes = results.serving_peak_rss_bytes.max(peak);
        if running.has_ended() {
            return Err(Stop::Failed("it ended while it was asked".to_owned()));
        }
        Ok(self.setup.stop(&mut running)?)
    }

    /// Starts the server on its existing index, with no file of the index or of the node in the page cache.
    fn cold_start(&mut self, process: &mut Option<Process>) -> Result<(), Stop> {
        self.emptied_by =
            Some(match self.comparison.may_drop_caches && system::drop_caches(Path::new(system::DROP_CACHES)) {
                true => "drop_caches",
                false => {
                    system::forget_files(&self.setup.job.folder);
                    system::forget_files(self.daemon.data());
                    "posix_fadvise"
                }
            });
        let started = self.setup.start()?;
        let ready = self.setup.wait(&started);
        *process = Some(started);
        ready.map(drop)
    }

    fn asker(&self) -> Asker {
        let timeout = Duration::from_secs(self.comparison.settings.timeout_seconds);
        Asker::new(self.setup.place(timeout), self.setup.server.bytes_per_connection())
    }

    fn query(&mut self, query: ScriptQuery, results: &mut ServerResults) -> Result<(), Stop> {
        let place = SCRIPT_QUERIES.iter().position(|&one| one == query).unwrap_or(0);
        let scripts = &self.asked.targets.scripts;
        let canonical = |result: &Value| query.canonical(result);
        let questions = Questions {
            name: query.name(),
            method: query.method(&self.protocol),
            params: scripts.iter().map(|target| script_params(target, &self.protocol)).collect(),
            canonical: &canonical,
            order: query.order(),
            expected: &self.asked.expected[place],
            heights: Vec::new(),
            always_from: scripts.partition_point(|target| target.transactions <= WALLET_TRANSACTIONS_MAX),
        };
        self.answers[place] = self.ask(&questions, results)?;
        Ok(())
    }

    /// Each path of Esplora's REST API, with a cold first pass, if the server serves it.
    fn esplora(&mut self, process: &mut Option<Process>, results: &mut ServerResults) -> Result<(), Stop> {
        let Some(port) = self.setup.job.esplora_port else { return Ok(()) };
        let scripts = &self.asked.targets.scripts;
        for (number, path) in PATHS.into_iter().enumerate() {
            self.end(process, results)?;
            self.cold_start(process)?;
            let timeout = Duration::from_secs(self.comparison.settings.timeout_seconds);
            let mut asker = RestAsker::new(Place { port, ..self.setup.place(timeout) });
            wait_for_esplora(&mut asker, self.setup.height)?;
            let asked = &self.asked.esplora[number];
            let canonical = |body: &Value| path.canonical(body);
            let questions = Questions {
                name: path.name(),
                method: path.path().to_owned(),
                params: asked.params.clone(),
                canonical: &canonical,
                order: path.order(),
                expected: &asked.expected,
                heights: Vec::new(),
                always_from: scripts.partition_point(|target| target.transactions <= WALLET_TRANSACTIONS_MAX),
            };
            self.paths[number] = self.ask_by(&mut asker, &questions, results)?.digests;
        }
        self.stop_if_interrupted()
    }

    fn ask(&mut self, questions: &Questions<'_>, results: &mut ServerResults) -> Result<Answers, Stop> {
        let mut asker = self.asker();
        // If the handshake fails, report the reason.
        asker.client()?;
        self.ask_by(&mut asker, questions, results)
    }

    fn ask_by(
        &mut self,
        asker: &mut dyn Asks,
        questions: &Questions<'_>,
        results: &mut ServerResults,
    ) -> Result<Answers, Stop> {
        let settings = &self.comparison.settings;
        let (query, answers, done) = ask_all(asker, questions, settings, self.comparison.interrupted);
        let asked = questions.params.len() - usize::try_from(query.not_asked).unwrap_or(0);
        let text = format!(
            "{}: {asked} of {} asked, {} passes more, {} wrong, {} in another order{}",
            query.name,
            questions.params.len(),
            query.passes,
            query.wrong,
            query.misordered,
            query.errors.first().map_or(String::new(), |error| format!("; {error}"))
        );
        self.report(&text);
        results.queries.push(query);
        done.map(|()| answers)
    }

    /// Queries for headers and proofs, loads, the wallet.
    fn rest(&mut self, results: &mut ServerResults) -> Result<(), Stop> {
        let headers = |result: &Value| headers_of(result).map(Value::from);
        self.heights(0, "blockchain.block.headers", &headers, &self.asked.headers, results)?;
        self.heights(1, "blockchain.transaction.get_merkle", &merkle_of, &self.asked.merkle, results)?;
        self.loads(results)?;
        self.report("a wallet subscribes to all scripts");
        let settings = &self.comparison.settings;
        let place = self.setup.place(Duration::from_secs(settings.timeout_seconds));
        let scripts = &self.asked.targets.scripts;
        match wallet(&place, scripts, &self.asked.statuses, settings.batch, self.comparison.interrupted) {
            Ok((wallet, error)) => {
                results.wallet = Some(wallet);
                results.notes.extend(error.map(|error| format!("wallet: {error}")));
            }
            Err(error) => results.notes.push(format!("wallet: {error}")),
        }
        self.stop_if_interrupted()
    }

    fn heights(
        &mut self,
        place: usize,
        method: &str,
        canonical: &dyn Fn(&Value) -> Result<Value, Fault>,
        questions: &HeightQuestions,
        results: &mut ServerResults,
    ) -> Result<(), Stop> {
        let questions = Questions {
            name: QUERIES[SCRIPT_QUERIES.len() + place],
            method: method.to_owned(),
            params: questions.params.clone(),
            canonical,
            order: Order::Counts,
            expected: &questions.expected,
            heights: questions.heights.clone(),
            always_from: 0,
        };
        self.heights[place] = self.ask(&questions, results)?.digests;
        Ok(())
    }

    fn loads(&mut self, results: &mut ServerResults) -> Result<(), Stop> {
        let settings = &self.comparison.settings;
        let place = self.setup.place(Duration::from_secs(settings.timeout_seconds));
        let scripts = &self.asked.targets.scripts;
        let questions = load::Questions::new(scripts, &self.answers, &self.protocol, WALLET_TRANSACTIONS_MAX);
        for &connections in &settings.connections {
            let duration = Duration::from_secs(u64::from(settings.load_seconds));
            let (done, error) = load(&place, &questions, connections, duration, self.comparison.interrupted);
            if let Some(load) = &done {
                let text =
                    format!("{connections} connections: {:.0} requests/s, p99 {:.1} ms", load.per_second, load.p99_ms);
                self.report(&text);
            }
            results.loads.extend(done);
            results.notes.extend(error.map(|error| format!("{connections} connections: {error}")));
            self.stop_if_interrupted()?;
        }
        Ok(())
    }

    fn stop_if_interrupted(&self) -> Result<(), Stop> {
        use std::sync::atomic::Ordering;
        if self.comparison.interrupted.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { Ok(()) }
    }
}
