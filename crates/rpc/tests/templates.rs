//! Templates beside other calls: no call returns a template for a tip that the others do not report yet, and what is
//! made ahead shows only once a call returns it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Node, context_of, node_of};
use lydian_engine::{ConnectedBlock, Follower, FollowerError, Left, LogLine, Rows, Tip};
use lydian_primitives::{Height, Transaction, hex};
use lydian_rpc::exec::execute;
use lydian_rpc::{Context, Host, ProgressOf, Whitelist, table};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any answer takes here.
const PATIENCE: Duration = Duration::from_secs(60);

const NOW: i64 = 1_700_000_000;

/// A program whose steady clock is set, and whose log is kept.
#[derive(Debug, Default)]
struct Program {
    steady_micros: AtomicU64,
    log: Mutex<Vec<String>>,
}

impl Program {
    /// The blocks that were logged as assembled.
    fn assembled(&self) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line.starts_with("CreateNewBlock(): ")).count()
    }
}

impl Host for Program {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000
    }

    fn steady_micros(&self) -> u64 {
        self.steady_micros.load(Ordering::Relaxed)
    }

    fn set_mock_time(&self, _: i64) {}

    fn request_stop(&self) {}

    fn fill_random(&self, _: &mut [u8]) {}

    fn log_path(&self) -> String {
        String::new()
    }

    fn log_categories(&self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    fn set_log_category(&self, _: &str, _: bool) -> bool {
        false
    }

    fn log_line(&self, line: &LogLine) {
        self.log.lock().unwrap().push(line.text.clone());
    }

    fn verification_progress(&self, _: &ProgressOf, _: i64) -> f64 {
        1.0
    }
}

fn ask(context: &Context, method: &str, params: &Value) -> Value {
    let body = json!({"method": method, "params": params, "id": 1}).to_string();
    let reply = execute(context, table::METHODS, &Whitelist::default(), "user", body.as_bytes());
    serde_json::from_slice(&reply.body.unwrap()).unwrap()
}

fn result(context: &Context, method: &str, params: &Value) -> Value {
    let answer = ask(context, method, params);
    assert!(answer["error"].is_null(), "{method} {params}: {answer}");
    answer["result"].clone()
}

fn rules() -> Value {
    json!([{"rules": ["segwit"]}])
}

/// A gate that an index waits at before it takes a block, as one on a slow disk.
#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }
}

/// Opens the gate when it is dropped, so that a failed test ends.
struct Opener<'a>(&'a Gate);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[derive(Debug)]
struct Slow(Arc<Gate>);

impl Follower for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn has_files(&self) -> bool {
        false
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn connect(&mut self, _: &ConnectedBlock<'_>, _: Option<Rows>) -> Result<(), FollowerError> {
        let is_closed = self.0.is_closed.lock().unwrap();
        drop(self.0.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        Ok(())
    }

    fn disconnect(&mut self, _: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, _: Tip) -> Result<(), FollowerError> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        Ok(())
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// Some milliseconds after a block was connected, templates were for it while `getbestblockhash` returned its parent,
/// and a proposal on it was "inconclusive-not-best-prevblk".
#[test]
fn a_template_is_for_a_tip_that_other_calls_report() {
    let gate = Arc::new(Gate::default());
    let host: Arc<dyn Host> = Arc::new(Program::default());
    let Node { context, engine, mempool: _mempool } =
        node_of(context_of(host), vec![Box::new(Slow(Arc::clone(&gate)))]);
    let (mine, context) = (json!([1, "raw(51)"]), &context);
    let genesis = result(context, "getbestblockhash", &json!([]));
    result(context, "getblocktemplate", &rules());
    gate.set(true);
    std::thread::scope(|scope| {
        let _opener = Opener(&gate);
        let mining = scope.spawn(|| result(context, "generatetodescriptor", &mine));
        until("the block is connected", || engine.tip().height == Height(1));
        assert_eq!(result(context, "getbestblockhash", &json!([])), genesis);
        assert_eq!(result(context, "getmininginfo", &json!([]))["blocks"], 0);
        let (answers, templates) = sync_channel(1);
        scope.spawn(move || answers.send(result(context, "getblocktemplate", &rules())));
        let on_tip = [&[0; 4][..], &engine.tip().hash.0, &[0; 44], &[0]].concat();
        let data: String = on_tip.iter().map(|byte| format!("{byte:02x}")).collect();
        let (verdicts, proposals) = sync_channel(1);
        let params = json!([{"mode": "proposal", "data": data}]);
        scope.spawn(move || verdicts.send(result(context, "getblocktemplate", &params)));
        let early = templates.recv_timeout(Duration::from_millis(300));
        let is_early = proposals.try_recv();
        gate.set(false);
        assert!(early == Err(RecvTimeoutError::Timeout) && is_early.is_err(), "{early:?} {is_early:?}");
        let template = templates.recv_timeout(PATIENCE).unwrap();
        assert_eq!(template["previousblockhash"], result(context, "getbestblockhash", &json!([])));
        assert_eq!(template["height"], 2);
        // It is looked at, and has no transactions.
        assert_eq!(proposals.recv_timeout(PATIENCE).unwrap(), "bad-blk-length");
        assert_eq!(mining.join().unwrap()[0], template["previousblockhash"]);
    });
}

/// The builder's templates were counted as assembled, and a long poll without an id of a template did not see the
/// changes of the mempool before them.
#[test]
fn what_is_made_ahead_shows_when_a_call_returns_it() {
    let program = Arc::new(Program::default());
    let host: Arc<dyn Host> = Arc::<Program>::clone(&program);
    let Node { context, engine: _engine, mempool } = node_of(context_of(host), Vec::new());
    let context = Arc::new(context);
    let made = result(&context, "generatetodescriptor", &json!([101, "raw(51)"]));
    let coinbase = result(&context, "getblock", &json!([made[0]]))["tx"][0].clone();
    let address = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let spend = json!([[{"txid": coinbase, "vout": 0}], {address: 1}]);
    let spend = result(&context, "createrawtransaction", &spend);
    let tx = Transaction::parse(hex(spend.as_str().unwrap()).unwrap()).unwrap();

    let assembled = || result(&context, "getmininginfo", &json!([]))["currentblocktx"].clone();
    let template = result(&context, "getblocktemplate", &rules());
    let logged = program.assembled();
    assert_eq!((assembled(), template["transactions"].as_array().unwrap().len()), (json!(0), 0));
    let _builder = context.start_builder().unwrap();
    mempool.submit(Arc::new(tx), false).unwrap();
    // The builder makes the next one, most likely within this time.
    context.set_mock_time(NOW + 5);
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!((assembled(), program.assembled()), (json!(0), logged));

    let (answers, polls) = sync_channel(1);
    let polled = Arc::clone(&context);
    let poll = std::thread::spawn(move || {
        let params = json!([{"rules": ["segwit"], "longpollid": 1}]);
        answers.send(result(&polled, "getblocktemplate", &params)).unwrap();
    });
    let minute = 61_000_000;
    let answer = (0..PATIENCE.as_millis() / 50).find_map(|_| {
        program.steady_micros.fetch_add(minute, Ordering::Relaxed);
        polls.recv_timeout(Duration::from_millis(50)).ok()
    });
    context.stop();
    poll.join().unwrap();
    assert_eq!(answer.expect("a change of the mempool ends the poll")["transactions"].as_array().unwrap().len(), 1);
    assert_eq!((assembled(), program.assembled()), (json!(1), logged + 1));
}
