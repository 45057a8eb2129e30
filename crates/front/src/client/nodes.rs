//! [`Nodes`]: questions and calls to whichever node answers.
//!
//! Input: a question, and a look at the answer. Output: the first answer that fits. The node that is followed is asked
//! first; the next one, after an error, an answer that does not fit, or [`HEDGE_WAIT`]. What changes a node
//! ([`Nodes::broadcast`]) goes to two of them at the same time.
//!
//! A node that did not answer in time is not asked for [`REST`] while others are left. Every connection begins with a
//! question for the genesis block, so that a node of another chain answers nothing. Connections are kept; there are at
//! most [`CONNECTIONS_MAX`] to a node.

use super::connection::{NodeFault, Route, Sender, Sent};
use crate::limits::CONNECTIONS_MAX;
use crate::message::{Answer, AnswerError, Question};
use crate::timing::{ANSWER_WAIT_MAX, HEDGE_WAIT, REST};
use crate::wire::reason as plain;
use bytes::Bytes;
use lydian_primitives::{BlockHash, Height};
use lydian_query::{CallError, QueryError};
use lydian_stdx::lock;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

const ASK: &str = "/feed/1/ask";
const CALL: &str = "/feed/1/call";
const BINARY: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// Nodes that get what is broadcast.
const BROADCASTS: usize = 2;

/// Core's `RPC_CLIENT_NOT_CONNECTED`.
const NOT_CONNECTED: i32 = -9;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) route: Route,
    genesis: BlockHash,
    idle: Mutex<Vec<Sender>>,
    places: Semaphore,
    pub(crate) requests: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// Until when other nodes are asked instead, since it did not answer in time.
    rests_until: Mutex<Option<Instant>>,
    /// Of questions and calls.
    pub(crate) last_failure: Mutex<Option<String>>,
}

impl Node {
    pub(crate) fn new(route: Route, genesis: BlockHash) -> Node {
        Node {
            route,
            genesis,
            idle: Mutex::default(),
            places: Semaphore::new(CONNECTIONS_MAX),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            rests_until: Mutex::default(),
            last_failure: Mutex::default(),
        }
    }

    fn rests(&self) -> bool {
        lock(&self.rests_until).is_some_and(|until| Instant::now() < until)
    }

    pub(crate) fn name(&self) -> String {
        self.route.address.to_string()
    }

    /// Opens a connection, and checks the chain.
    async fn open(&self) -> Result<Sender, NodeFault> {
        let mut sender = self.route.connect().await?;
        let question = Question::Hashes { from: Height(0), count: 1 };
        let answer = self.route.exchange(&mut sender, ASK, question.encode().into(), BINARY).await;
        match Answer::decode(&answer.map_err(Sent::into_fault)?, &question).map_err(NodeFault::passing)? {
            Answer::Hashes(hashes) if hashes == [self.genesis] => Ok(sender),
            Answer::Hashes(hashes) => Err(match hashes.first() {
                Some(hash) => other_chain(hash, &self.genesis),
                None => NodeFault::passing("the node has no genesis block"),
            }),
            Answer::Failed(AnswerError::TryAnother(reason) | AnswerError::Final(reason)) => {
                Err(NodeFault::passing(reason))
            }
            _ => Err(NodeFault::passing("the node answers another question")),
        }
    }

    async fn exchange(&self, path: &str, body: Bytes, content: &'static str) -> Result<Bytes, NodeFault> {
        let _place = self.places.acquire().await.map_err(|_| stopping())?;
        loop {
            let kept = lock(&self.idle).pop();
            let Some(mut sender) = kept else { break };
            if sender.is_closed() || sender.ready().await.is_err() {
                continue;
            }
            match self.route.exchange(&mut sender, path, body.clone(), content).await {
                Ok(answer) => {
                    lock(&self.idle).push(sender);
                    return Ok(answer);
                }
                // The node may have closed it just now.
                Err(Sent::Broken(_)) => {}
                Err(Sent::Fault(fault)) => return Err(fault),
            }
        }
        let mut sender = self.open().await?;
        let answer = self.route.exchange(&mut sender, path, body, content).await.map_err(Sent::into_fault)?;
        lock(&self.idle).push(sender);
        Ok(answer)
    }

    async fn post(&self, path: &str, body: Bytes, content: &'static str) -> Result<Bytes, NodeFault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(ANSWER_WAIT_MAX, self.exchange(path, body, content)).await;
        *lock(&self.rests_until) = answer.is_err().then(|| Instant::now() + REST);
        let late = |_| NodeFault::passing(format!("no answer within {} seconds", ANSWER_WAIT_MAX.as_secs()));
        answer.map_err(late).and_then(|answer| answer).inspect_err(|fault| self.note(fault))
    }

    fn note(&self, fault: &NodeFault) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        *lock(&self.last_failure) = Some(fault.reason.clone());
    }

    async fn ask(&self, question: &Question) -> Result<Answer, NodeFault> {
        let bytes = self.post(ASK, question.encode().into(), BINARY).await?;
        Answer::decode(&bytes, question).map_err(NodeFault::passing).inspect_err(|fault| self.note(fault))
    }

    async fn call(&self, body: Bytes) -> Result<Result<String, CallError>, NodeFault> {
        read_reply(&self.post(CALL, body, JSON).await?).inspect_err(|fault| self.note(fault))
    }
}

/// The fault of a node of another chain.
pub(crate) fn other_chain(found: &BlockHash, own: &BlockHash) -> NodeFault {
    NodeFault::lasting(format!("the node has the chain with genesis block {found}, not with {own}"))
}

#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<ReplyError<'a>>,
}

#[derive(Deserialize)]
struct ReplyError<'a> {
    code: i32,
    #[serde(borrow)]
    message: Cow<'a, str>,
}

fn read_reply(bytes: &[u8]) -> Result<Result<String, CallError>, NodeFault> {
    let bad = |error: &dyn std::fmt::Display| NodeFault::passing(format!("the answer of a call is wrong: {error}"));
    let reply: Reply<'_> = serde_json::from_slice(bytes).map_err(|error| bad(&error))?;
    Ok(match (reply.error, reply.result) {
        (Some(ReplyError { code, message }), _) => Err(CallError { code, message: plain(&message) }),
        (None, Some(result)) => Ok(result.get().to_owned()),
        (None, None) => Ok("null".to_owned()),
    })
}

/// The nodes of a front end.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) list: Vec<Arc<Node>>,
    /// The number of the node whose mempool is used.
    pub(crate) followed: AtomicUsize,
    runtime: Handle,
}

/// What is done after an answer.
enum Next {
    Done,
    /// One more node is asked.
    Another,
    /// For those that are asked already.
    Wait,
}

/// What comes back from a node, with its number.
type Answered<T> = (usize, Result<T, NodeFault>);
type Answers<T> = (SyncSender<Answered<T>>, Receiver<Answered<T>>);

/// The way back of one node's answer. If it is dropped without one, as with its task when the runtime ends, that is the
/// answer: otherwise the caller would wait for its time.
struct Pending<T> {
    number: usize,
    sender: Option<SyncSender<Answered<T>>>,
}

impl<T> Pending<T> {
    fn send(mut self, answer: Result<T, NodeFault>) {
        self.put(answer);
    }

    fn put(&mut self, answer: Result<T, NodeFault>) {
        if let Some(sender) = self.sender.take() {
            // There is room for the answers of all nodes; without a receiver, an earlier one was taken.
            drop(sender.try_send((self.number, answer)));
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.put(Err(stopping()));
    }
}

fn stopping() -> NodeFault {
    NodeFault::passing("the front end is stopping")
}

impl Nodes {
    pub(crate) fn new(list: Vec<Arc<Node>>, runtime: Handle) -> Nodes {
        Nodes { list, followed: AtomicUsize::new(0), runtime }
    }

    /// The nodes in the order in which they are asked: without those that rest, unless all do.
    fn order(&self) -> Vec<(usize, Arc<Node>)> {
        let first = self.followed.load(Ordering::Relaxed);
        let count = self.list.len();
        let numbers = (0..count).map(|step| (first + step) % count);
        let all = numbers.filter_map(|number| Some((number, Arc::clone(self.list.get(number)?))));
        let (resting, mut order): (Vec<_>, Vec<_>) = all.partition(|(_, node)| node.rests());
        if order.is_empty() {
            order = resting;
        }
        order
    }

    fn name(&self, number: usize) -> String {
        self.list.get(number).map(|node| node.name()).unwrap_or_default()
    }

    /// Sends the same to one node after the other until `look` takes an answer. The first `at_once` are asked at the
    /// same time.
    fn each<T: Send + 'static, F>(
        &self,
        at_once: usize,
        start: impl Fn(Arc<Node>) -> F,
        mut look: impl FnMut(usize, Result<T, NodeFault>) -> Next,
    ) where
        F: Future<Output = Result<T, NodeFault>> + Send + 'static,
    {
        let order = self.order();
        let (sender, receiver): Answers<T> = sync_channel(order.len().max(1));
        let mut rest = order.into_iter();
        let (mut under_way, mut due) = (0, at_once);
        loop {
            while due > 0 {
                due -= 1;
                let Some((number, node)) = rest.next() else { break };
                let (answer, pending) = (start(node), Pending { number, sender: Some(sender.clone()) });
                under_way += 1;
                drop(self.runtime.spawn(async move { pending.send(answer.await) }));
            }
            if under_way == 0 {
                return;
            }
            // Every answer comes in time: this is for the case that none does.
            let wait = if rest.len() > 0 { HEDGE_WAIT } else { ANSWER_WAIT_MAX + Duration::from_secs(1) };
            match receiver.recv_timeout(wait) {
                Ok((number, answer)) => {
                    under_way -= 1;
                    match look(number, answer) {
                        Next::Done => return,
                        Next::Another => due = 1,
                        Next::Wait => {}
                    }
                }
                Err(RecvTimeoutError::Timeout) if rest.len() > 0 => due = 1,
                Err(_) => return,
            }
        }
    }

    /// Asks until `take` takes an answer. `None`: what nodes have answered does not fit. If the node that is followed
    /// failed, that is no answer: another one may be behind it.
    pub(crate) fn ask<T>(
        &self,
        question: &Question,
        take: impl Fn(Answer) -> Option<T>,
    ) -> Result<Option<T>, QueryError> {
        self.ask_each(question, take).0
    }

    /// The same, and whether any node gave an answer, even if it does not fit.
    pub(crate) fn ask_each<T>(
        &self,
        question: &Question,
        take: impl Fn(Answer) -> Option<T>,
    ) -> (Result<Option<T>, QueryError>, bool) {
        let question = Arc::new(question.clone());
        let (mut taken, mut is_answered, mut final_reason, mut reasons) = (None, false, None, Vec::new());
        let first = self.followed.load(Ordering::Relaxed);
        let start = |node: Arc<Node>| {
            let question = Arc::clone(&question);
            async move { node.ask(&question).await }
        };
        self.each(1, start, |number, answer| {
            match answer {
                Ok(Answer::Failed(AnswerError::Final(reason))) => final_reason = Some(reason),
                Ok(Answer::Failed(AnswerError::TryAnother(reason))) => reasons.push((number, reason)),
                Ok(answer) => {
                    is_answered = true;
                    taken = take(answer);
                }
                Err(fault) => reasons.push((number, fault.reason)),
            }
            if taken.is_some() { Next::Done } else { Next::Another }
        });
        let is_enough = is_answered && reasons.iter().all(|(number, _)| *number != first);
        let found = match (taken, is_enough, final_reason) {
            (Some(taken), ..) => Ok(Some(taken)),
            (None, true, _) => Ok(None),
            (None, false, Some(reason)) => Err(QueryError::Failed(reason)),
            (None, false, None) => Err(QueryError::Failed(self.no_answer(&reasons))),
        };
        (found, is_answered)
    }

    fn no_answer(&self, reasons: &[(usize, String)]) -> String {
        let reasons: Vec<String> =
            reasons.iter().map(|(number, reason)| format!("{}: {reason}", self.name(*number))).collect();
        let all = if reasons.is_empty() { "none is left".to_owned() } else { reasons.join("; ") };
        format!("no node answers, try again: {all}")
    }

    /// Calls a method of the first node that answers, with an error or without.
    pub(crate) fn call(&self, method: &str, params: &str) -> Result<String, CallError> {
        self.call_some(method, params, 1)
    }

    /// Calls a method of two nodes at the same time. The answer is that of the first without an error; otherwise, that
    /// of the node that is followed.
    pub(crate) fn broadcast(&self, method: &str, params: &str) -> Result<String, CallError> {
        self.call_some(method, params, BROADCASTS)
    }

    fn call_some(&self, method: &str, params: &str, at_once: usize) -> Result<String, CallError> {
        let body: Bytes = format!("{{\"method\":{},\"params\":{params}}}", serde_json::json!(method)).into();
        let (mut result, mut errors, mut reasons): (_, Vec<(usize, CallError)>, _) = (None, Vec::new(), Vec::new());
        let start = |node: Arc<Node>| {
            let body = body.clone();
            async move { node.call(body).await }
        };
        let first = self.followed.load(Ordering::Relaxed);
        self.each(at_once, start, |number, answer| match answer {
            Ok(Ok(found)) => {
                result = Some(found);
                Next::Done
            }
            Ok(Err(error)) => {
                errors.push((number, error));
                // The error of another node is the answer if no node that is asked has a better one.
                let is_over = if at_once == 1 { number == first } else { errors.len() >= at_once };
                if is_over { Next::Done } else { Next::Wait }
            }
            Err(fault) => {
                reasons.push((number, fault.reason));
                Next::Another
            }
        });
        errors.sort_by_key(|(number, _)| *number != first);
        match (result, errors.into_iter().next()) {
            (Some(result), _) => Ok(result),
            (None, Some((_, error))) => Err(error),
            (None, None) => Err(CallError { code: NOT_CONNECTED, message: self.no_answer(&reasons) }),
        }
    }

    /// Whether a node has this block at this height; `None` if it does not say within [`HEDGE_WAIT`].
    pub(crate) fn has(&self, number: usize, height: Height, hash: &BlockHash) -> Option<bool> {
        let node = Arc::clone(self.list.get(number)?);
        let question = Question::Hashes { from: height, count: 1 };
        let (sender, receiver) = sync_channel(1);
        // The sender is dropped with the task.
        drop(self.runtime.spawn(async move { drop(sender.try_send(node.ask(&question).await)) }));
        match receiver.recv_timeout(HEDGE_WAIT).ok()?.ok()? {
            Answer::Hashes(hashes) => Some(hashes.first() == Some(hash)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::NodeAddress;
    use crate::limits::{ANSWER_SIZE_MAX, REASON_SIZE_MAX};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::AtomicBool;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::runtime::Runtime;

    const GENESIS: BlockHash = BlockHash([4; 32]);

    fn node(address: SocketAddr) -> Node {
        let address: NodeAddress = address.to_string().parse().unwrap();
        Node::new(Route::new(address, None, Some("secret")).unwrap(), GENESIS)
    }

    /// An answer with a status and a body.
    fn response(status: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    /// limit: REASON_SIZE_MAX at
    /// limit: REASON_SIZE_MAX above
    #[test]
    fn a_reason_has_a_size() {
        Runtime::new().unwrap().block_on(async {
            for (size, is_kept) in [(REASON_SIZE_MAX, true), (REASON_SIZE_MAX + 1, false)] {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let node = node(listener.local_addr().unwrap());
                tokio::spawn(async move {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let count = stream.read(&mut [0; 4_096]).await.unwrap();
                    assert!(count > 0);
                    stream.write_all(&response("503 Busy", &vec![b'x'; size])).await.unwrap();
                    let _ = stream.read(&mut [0; 16]).await;
                });
                let fault = node.ask(&Question::PoolTxids).await.unwrap_err();
                let expected = match is_kept {
                    true => format!("{} (503)", "x".repeat(size)),
                    false => "the node answers with the status 503 Service Unavailable".to_owned(),
                };
                assert_eq!(fault, NodeFault { reason: expected, is_final: false });
            }
        });
    }

    /// limit: ANSWER_SIZE_MAX at
    /// limit: ANSWER_SIZE_MAX above
    #[test]
    fn an_answer_has_a_size() {
        Runtime::new().unwrap().block_on(async {
            for (size, is_read) in [(ANSWER_SIZE_MAX, true), (ANSWER_SIZE_MAX + 1, false)] {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                let node = node(listener.local_addr().unwrap());
                tokio::spawn(async move {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
                    stream.write_all(head.as_bytes()).await.unwrap();
                    let part = vec![0; 1 << 20];
                    let mut left = size;
                    while left > 0 && stream.write_all(&part[..left.min(part.len())]).await.is_ok() {
                        left = left.saturating_sub(part.len());
                    }
                    let _ = stream.read(&mut [0; 16]).await;
                });
                let mut sender = node.route.connect().await.unwrap();
                let answer = node.route.exchange(&mut sender, ASK, Bytes::new(), BINARY).await;
                assert_eq!(answer.map(|bytes| bytes.len()).ok(), is_read.then_some(size));
            }
        });
    }

    /// limit: CONNECTIONS_MAX at
    /// limit: CONNECTIONS_MAX above
    #[test]
    fn more_questions_wait_for_a_connection() {
        Runtime::new().unwrap().block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let node = Arc::new(node(listener.local_addr().unwrap()));
            let (opened, goes_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let (count, waits) = (Arc::clone(&opened), Arc::clone(&goes_on));
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    let goes_on = Arc::clone(&waits);
                    tokio::spawn(async move {
                        let mut is_first = true;
                        while stream.read(&mut [0; 4_096]).await.is_ok_and(|count| count > 0) {
                            // The first question is for the chain.
                            let answer = match std::mem::take(&mut is_first) {
                                true => Answer::Hashes(vec![GENESIS]),
                                false => Answer::PoolTxids(Vec::new()),
                            };
                            while !is_first && matches!(answer, Answer::PoolTxids(_)) && !goes_on.load(Ordering::SeqCst)
                            {
                                tokio::time::sleep(Duration::from_millis(2)).await;
                            }
                            if stream.write_all(&response("200 OK", &answer.encode())).await.is_err() {
                                break;
                            }
                        }
                    });
                }
            });
            let asks: Vec<_> = (0..=CONNECTIONS_MAX)
                .map(|_| {
                    let node = Arc::clone(&node);
                    tokio::spawn(async move { node.ask(&Question::PoolTxids).await })
                })
                .collect();
            while opened.load(Ordering::SeqCst) < CONNECTIONS_MAX {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(opened.load(Ordering::SeqCst), CONNECTIONS_MAX);
            goes_on.store(true, Ordering::SeqCst);
            for ask in asks {
                assert_eq!(ask.await.unwrap(), Ok(Answer::PoolTxids(Vec::new())));
            }
            // The last one went over a connection that was kept.
            assert_eq!(opened.load(Ordering::SeqCst), CONNECTIONS_MAX);
            assert_eq!(lock(&node.idle).len(), CONNECTIONS_MAX);
        });
    }

    /// Nodes that take a question and do not answer, and a runtime that ends meanwhile: callers do not wait for the
    /// time of an answer, nor for the next node's turn.
    #[test]
    fn a_caller_does_not_wait_when_the_front_end_ends() {
        // So many that waits for all of them would take longer than the limit, which is far above a moment in which the
        // computer stops.
        const NODES: usize = 60;
        let limit = HEDGE_WAIT * 30;
        let runtime = Runtime::new().unwrap();
        let asked = Arc::new(tokio::sync::Notify::new());
        let list = runtime.block_on(async {
            let mut list = Vec::new();
            for _ in 0..NODES {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                list.push(Arc::new(node(listener.local_addr().unwrap())));
                let asked = Arc::clone(&asked);
                tokio::spawn(async move {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
                    asked.notify_one();
                    std::future::pending::<()>().await;
                });
            }
            list
        });
        let nodes = Nodes::new(list, runtime.handle().clone());
        let (error, time) = std::thread::scope(|scope| {
            let asking = scope.spawn(|| nodes.ask(&Question::PoolTxids, |_| None::<()>).unwrap_err());
            // One is asked, and the others are left.
            runtime.block_on(asked.notified());
            let began = Instant::now();
            runtime.shutdown_background();
            (asking.join().unwrap().to_string(), began.elapsed())
        });
        // The task of a connection may end before that of its question.
        let [stopping, broken] =
            ["the front end is stopping", "the connection broke"].map(|text| error.matches(text).count());
        assert!(stopping + broken == NODES && stopping > broken, "{error}");
        assert!(time < limit, "{time:?}");
        // Nor do later ones.
        let began = Instant::now();
        let error = nodes.broadcast("sendrawtransaction", "[]").unwrap_err();
        assert!(error.code == NOT_CONNECTED && error.message.contains("the front end is stopping"), "{error:?}");
        for number in 0..NODES {
            assert_eq!(nodes.has(number, Height(1), &GENESIS), None);
        }
        assert!(began.elapsed() < limit);
    }

    #[test]
    fn replies_of_calls_are_read_or_refused() {
        let error = |code, message: &str| Ok(Err(CallError { code, message: message.to_owned() }));
        assert_eq!(read_reply(b"{\"result\":{\"a\":[1,2]}}"), Ok(Ok("{\"a\":[1,2]}".to_owned())));
        assert_eq!(read_reply(b"{\"result\":null}"), Ok(Ok("null".to_owned())));
        assert_eq!(read_reply(b"{\"error\":{\"code\":-26,\"message\":\"no\"}}"), error(-26, "no"));
        let long = format!("{{\"error\":{{\"code\":-26,\"message\":\"a\\n\\u001b[2J{}\"}}}}", "x".repeat(1 << 20));
        let Ok(Err(CallError { message, .. })) = read_reply(long.as_bytes()) else { panic!("an error") };
        assert!(message.starts_with("a??[2Jxx") && message.len() == REASON_SIZE_MAX);
        // What is of another type is in serde's sentence.
        let fault = read_reply(format!("{{\"error\":\"{}\"}}", "x".repeat(1 << 20)).as_bytes()).unwrap_err();
        assert_eq!(fault.reason.len(), REASON_SIZE_MAX);
        for wrong in [&b""[..], b"[]", b"{\"error\":5}", b"{\"result\":1} 2", b"\xff"] {
            assert!(read_reply(wrong).unwrap_err().reason.starts_with("the answer of a call is wrong: "));
        }
    }
}
