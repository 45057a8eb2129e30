//! Tests the client, passes, loads and wallet against a server inside the test that misbehaves as servers may.

use super::client::{Client, Fault, Place};
use super::compare::Digest;
use super::load::{self, load};
use super::protocol::{SCRIPT_QUERIES, ScriptQuery, status_of};
use super::queries::{Answers, Asker, Questions, Stop, ask_all};
use super::wallet::wallet;
use crate::limits::ELECTRUM_LINE_BYTES_MAX;
use lydian_chains::targets::Target;
use lydian_report::electrum::results::{ElectrumSettings, Query};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How the server answers a query about a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Right,
    /// Pads its lines with whitespace, and sends notifications of new blocks in between.
    Padded,
    /// Lists coins from last to first.
    Reversed,
    /// Right for the first three queries only.
    Fickle,
    Wrong,
    Errors,
    Hangs,
    /// Sends a byte now and then, and never ends the line.
    Trickles,
    Endless,
    Disconnects,
    Babbles,
    /// An answer in another form.
    OtherForm,
}

/// Answers on loopback until the test's process ends.
fn serve(habit: Habit) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || talk(habit, &stream, &asked));
        }
    });
    port
}

fn talk(habit: Habit, mut stream: &TcpStream, asked: &AtomicUsize) -> Option<()> {
    for line in BufReader::new(stream).lines() {
        let message: Value = serde_json::from_str(&line.ok()?).ok()?;
        let reply = match &message {
            Value::Array(calls) => Value::Array(calls.iter().rev().map(|call| answer(habit, call, 0)).collect()),
            call => {
                let is_handshake = call["method"] == "server.version";
                let number = asked.fetch_add(usize::from(!is_handshake), Ordering::Relaxed);
                if !is_handshake {
                    misbehave(habit, stream)?;
                }
                answer(if is_handshake { Habit::Right } else { habit }, call, number)
            }
        };
        let mut text = reply.to_string();
        if habit == Habit::Padded {
            stream
                .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"blockchain.headers.subscribe\",\"params\":[{}]}\n")
                .ok()?;
            text.insert_str(text.len() - 1, "      ");
        }
        stream.write_all((text + "\n").as_bytes()).ok()?;
    }
    Some(())
}

/// `None` closes the connection.
fn misbehave(habit: Habit, mut stream: &TcpStream) -> Option<()> {
    match habit {
        Habit::Hangs => loop {
            std::thread::park();
        },
        Habit::Trickles => loop {
            stream.write_all(b" ").ok()?;
            std::thread::sleep(Duration::from_millis(50));
        },
        Habit::Endless => loop {
            stream.write_all(&[b'7'; 1 << 16]).ok()?;
        },
        Habit::Babbles => stream.write_all(b"GET / HTTP/1.1\n").ok(),
        Habit::Disconnects => stream.shutdown(std::net::Shutdown::Both).ok().and(None),
        _ => Some(()),
    }
}

fn coins(script: &str) -> Vec<Value> {
    let entry = |height: u32| json!({"height": height, "tx_hash": script, "tx_pos": 0, "value": 5});
    (1..4).map(entry).collect()
}

/// The right answer for a script; its name serves as its scripthash.
fn right(query: ScriptQuery, script: &str) -> Value {
    match query {
        ScriptQuery::Balance => json!({"confirmed": 15, "unconfirmed": 0}),
        ScriptQuery::History => json!([{"height": 1, "tx_hash": script}, {"height": 2, "tx_hash": "bb"}]),
        ScriptQuery::Utxos => Value::from(coins(script)),
    }
}

fn answer(habit: Habit, call: &Value, number: usize) -> Value {
    let method = call["method"].as_str().unwrap();
    let script = call["params"][0].as_str().unwrap_or_default();
    let of_script = SCRIPT_QUERIES.into_iter().find(|query| query.method("1.4") == method);
    let is_wrong = habit == Habit::Wrong || (habit == Habit::Fickle && number > 2);
    let mut result = match (method, of_script) {
        ("server.version", _) => json!(["fake 1", "1.4"]),
        ("blockchain.scripthash.subscribe", _) => status_of(&right(ScriptQuery::History, script)).into(),
        (_, Some(_)) if habit == Habit::OtherForm => json!("fifteen"),
        (_, Some(ScriptQuery::Balance)) if is_wrong => json!({"confirmed": 16, "unconfirmed": 0}),
        (_, Some(query)) => right(query, script),
        _ => Value::Null,
    };
    if is_wrong && method.ends_with("subscribe") {
        result = json!("00");
    }
    if let (Habit::Reversed, Value::Array(entries)) = (habit, &mut result)
        && of_script.is_some()
    {
        entries.reverse();
    }
    match habit {
        Habit::Errors => {
            json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": 1, "message": "history too large"}})
        }
        _ => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
    }
}

/// The timeout is for servers that answer, however busy the computer is.
fn place(port: u16) -> Place {
    let protocol_max = "1.6".to_owned();
    Place { name: "fake".into(), port, timeout: Duration::from_secs(60), protocol_max }
}

fn settings() -> ElectrumSettings {
    ElectrumSettings {
        passes: 2,
        connections: vec![3],
        load_seconds: 1,
        batch: 2,
        timeout_seconds: 1,
        query_seconds_max: 60,
        protocol_max: "1.6".into(),
        esplora: false,
        cache_emptied_by: None,
    }
}

fn targets() -> Vec<Target> {
    ["s0", "s1", "s2"].map(|name| Target { scripthash: name.into(), ..Target::new(vec![1], 2, 3) }).into()
}

fn passes(habit: Habit, query: ScriptQuery) -> (Query, Answers, Option<String>) {
    passes_with(habit, query, &settings())
}

fn passes_with(habit: Habit, query: ScriptQuery, settings: &ElectrumSettings) -> (Query, Answers, Option<String>) {
    let targets = targets();
    let expected: Vec<Digest> =
        targets.iter().map(|target| Digest::of(&right(query, &target.scripthash), query.order())).collect();
    let canonical = |result: &Value| query.canonical(result);
    let questions = Questions {
        name: query.name(),
        method: query.method("1.4"),
        params: targets.iter().map(|target| json!([target.scripthash])).collect(),
        canonical: &canonical,
        order: query.order(),
        expected: &expected,
        heights: Vec::new(),
        always_from: 2,
    };
    let mut place = place(serve(habit));
    if matches!(habit, Habit::Hangs | Habit::Trickles) {
        // Three of them pass. It answers the handshake in this time even if the computer stops for a moment.
        place.timeout = Duration::from_secs(4);
    }
    // A few bytes per connection, so that it changes now and then.
    let mut asker = Asker::new(place, Some(150));
    let (query, answers, done) = ask_all(&mut asker, &questions, settings, &AtomicBool::new(false));
    let reason = match done {
        Ok(()) => None,
        Err(Stop::Failed(reason)) => Some(reason),
        Err(Stop::Interrupted) => panic!("it was not interrupted"),
    };
    (query, answers, reason)
}

#[test]
fn right_answers_have_times_and_count_as_right() {
    for habit in [Habit::Right, Habit::Padded] {
        for query in SCRIPT_QUERIES {
            let (query, answers, stop) = passes(habit, query);
            assert_eq!((query.wrong, query.misordered, query.not_asked, query.passes, stop), (0, 0, 0, 2, None));
            assert!(query.cold_ms.iter().chain(&query.warm_ms).all(Option::is_some), "{habit:?} {query:?}");
            assert!(query.answer_sha256.is_some() && query.errors.is_empty(), "{query:?}");
            assert!(answers.raw.iter().all(Option::is_some));
        }
    }
}

#[test]
fn wrong_answers_are_counted_and_another_order_apart() {
    let (query, ..) = passes(Habit::Wrong, ScriptQuery::Balance);
    assert_eq!((query.wrong, query.misordered), (3, 0));
    let (query, ..) = passes(Habit::Reversed, ScriptQuery::Utxos);
    assert_eq!((query.wrong, query.misordered), (0, 3));
    let right = passes(Habit::Right, ScriptQuery::Utxos).0;
    assert_eq!(query.answer_sha256, right.answer_sha256, "the same coins");
    let (query, ..) = passes(Habit::Reversed, ScriptQuery::History);
    assert_eq!((query.wrong, query.misordered), (3, 0), "a history's order makes its status");
}

#[test]
fn when_time_is_up_only_the_last_ones_are_asked_and_once_more() {
    let none = ElectrumSettings { query_seconds_max: 0, ..settings() };
    let (query, ..) = passes_with(Habit::Right, ScriptQuery::Balance, &none);
    assert_eq!((query.not_asked, query.passes, query.wrong), (2, 1, 0));
    let is_there = |column: &[Option<f64>]| column.iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(
        (is_there(&query.cold_ms), is_there(&query.warm_ms)),
        (vec![false, false, true], vec![false, false, true])
    );
    assert_eq!(query.answer_sha256, None, "not of all");
}

#[test]
fn an_answer_that_changes_is_no_answer() {
    let (query, ..) = passes(Habit::Fickle, ScriptQuery::Balance);
    assert_eq!(query.wrong, 0, "the first pass was right");
    assert!(query.cold_ms.iter().all(Option::is_some) && query.warm_ms.iter().all(Option::is_none), "{query:?}");
    assert!(query.errors[0].contains("differs from the one before"), "{query:?}");
}

#[test]
fn errors_and_other_forms_are_kept_in_the_servers_words() {
    for (habit, words) in [
        (Habit::Errors, "error 1: history too large"),
        (Habit::OtherForm, "another form"),
        (Habit::Babbles, "not JSON"),
        (Habit::Disconnects, "the server ended the connection"),
    ] {
        let (query, _, stop) = passes(habit, ScriptQuery::Balance);
        assert!(query.cold_ms.iter().all(Option::is_none) && query.answer_sha256.is_none(), "{habit:?}");
        assert!(query.errors[0].contains(words) && stop.is_none(), "{habit:?}: {query:?} {stop:?}");
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let is_given_up = |habit| {
        let (query, _, stop) = passes(habit, ScriptQuery::Balance);
        let reason = stop.unwrap();
        assert!(reason.contains("fake, blockchain.scripthash.get_balance: no whole answer within"), "{reason}");
        assert!(query.cold_ms.iter().all(Option::is_none));
    };
    std::thread::scope(|scope| {
        for habit in [Habit::Hangs, Habit::Trickles] {
            scope.spawn(move || is_given_up(habit));
        }
    });
}

#[test]
fn an_endless_line_ends_at_the_limit() {
    let place = Place { timeout: Duration::from_secs(60), ..place(serve(Habit::Endless)) };
    let error = Client::connect(&place).unwrap().call("x", &json!([])).unwrap_err();
    assert_eq!(error.fault, Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX });
}

/// Runs a server that sends one line of this length after the handshake.
fn one_line(bytes: usize) -> Result<usize, Fault> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        lines.next();
        stream.write_all(b"{\"id\":0,\"result\":[\"fake\",\"1.4\"]}\n").unwrap();
        lines.next();
        let mut line = vec![b' '; bytes];
        line.push(b'\n');
        // The client closes the connection once it has read enough.
        let _ = stream.write_all(&line);
    });
    let place = Place { timeout: Duration::from_secs(60), ..place(port) };
    let mut client = Client::connect(&place).unwrap();
    let size = client.ask("x", b"{}\n").map(|answer| answer.line.len()).map_err(|error| error.fault);
    drop(client);
    server.join().unwrap();
    size
}

/// limit: ELECTRUM_LINE_BYTES_MAX at
/// limit: ELECTRUM_LINE_BYTES_MAX above
#[test]
fn a_line_has_a_limit() {
    assert_eq!(one_line(ELECTRUM_LINE_BYTES_MAX), Ok(ELECTRUM_LINE_BYTES_MAX));
    let above = one_line(ELECTRUM_LINE_BYTES_MAX + 1);
    assert_eq!(above, Err(Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX }));
}

#[test]
fn a_missing_server_is_reported() {
    let port = crate::runs::rpc::free_port().unwrap();
    let error = Client::connect(&place(port)).unwrap_err();
    assert!(matches!(error.fault, Fault::Connection(_)) && error.to_string().starts_with("fake, connect: "), "{error}");
}

#[test]
fn a_batch_is_put_in_order_and_statuses_are_compared() {
    let statuses = |script: &str| status_of(&right(ScriptQuery::History, script));
    let known: Vec<_> = ["s0", "s1", "s2"].map(statuses).into();
    let ask = |habit| wallet(&place(serve(habit)), &targets(), &known, 2, &AtomicBool::new(false)).unwrap();
    let (load, error) = ask(Habit::Right);
    assert_eq!((load.scripts, load.batch, load.errors, error), (3, 2, 0, None));
    let (load, error) = ask(Habit::Wrong);
    assert_eq!(load.errors, 3);
    assert_eq!(error.unwrap(), "s0: a status that is not its history's");
    let unknown = wallet(&place(serve(Habit::Right)), &targets(), &[], 2, &AtomicBool::new(false)).unwrap().0;
    assert_eq!(unknown.errors, 3, "a status that cannot be compared is an error");
    let (load, error) = ask(Habit::Errors);
    assert!(load.errors == 3 && error.unwrap().contains("history too large"));
}

#[test]
fn a_load_counts_answers_and_errors() {
    let answers = SCRIPT_QUERIES.map(|query| passes(Habit::Right, query).1);
    let questions = load::Questions::new(&targets(), &answers, "1.4", 999);
    let run = |habit| load(&place(serve(habit)), &questions, 3, Duration::from_millis(200), &AtomicBool::new(false));
    let (found, error) = run(Habit::Right);
    let found = found.unwrap();
    assert_eq!((found.connections, found.errors, error), (3, 0, None));
    assert!(found.requests >= 3 && found.p50_ms <= found.p90_ms && found.p99_ms <= found.max_ms, "{found:?}");
    let (found, error) = run(Habit::Reversed);
    assert!(found.unwrap().errors > 0 && error.unwrap() == "another history than before");
    let (found, error) = run(Habit::Errors);
    assert!(found.is_none() && error.unwrap().contains("history too large"));
    let none = load::Questions::new(&targets(), &answers, "1.4", 1);
    let (found, error) = load(&place(1), &none, 3, Duration::from_secs(1), &AtomicBool::new(false));
    assert!(found.is_none() && error.is_some());
}
