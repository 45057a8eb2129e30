//! Turns the body of a request into the body of its answer: Core's `ExecuteHTTPRPC` (httprpc.cpp),
//! `JSONRPCRequest::parse` (rpc/request.cpp) and `CRPCTable::execute` (rpc/server.cpp).
//!
//! Input: bytes and the user. Output: an HTTP status and bytes.
//!
//! Requests with version 1.0, 1.1 or none are answered with `result` and `error`, and an error sets the HTTP status.
//! Requests with version 2.0 are answered with one of the two and status 200, or 204 if they have no id. Batches are
//! answered with 200 whatever their members return, or with 204 if all members are notifications. A bad member of a
//! batch inherits fields from the one before it, as in Core.
//!
//! An [`Execution`] runs on a thread that may block, and leaves that thread while a call waits. Memory: the whole body
//! is checked first, then the members of a batch are parsed one at a time; once the answer to a batch exceeds a size,
//! it is passed to a [`Sink`] while it is produced; see [`crate::limits`]. Bodies and parameters are overwritten when
//! they are freed, see [`crate::wiped`].

mod request;

use crate::context::{ActiveGuard, Context, LogLevel};
use crate::error::{RpcError, code};
use crate::json::{Json, Member, count, member_after, parse};
use crate::limits::{ANSWER_BUFFERED_SIZE_MAX, JSON_VALUES_MAX};
use crate::method::{Call, CallState, Method, Methods, NO_ROOM};
use crate::methods::testing::internal_bug;
use crate::named::positional;
use crate::result::mismatch;
use crate::wait::Wait;
use crate::whitelist::Whitelist;
use crate::wiped::{Wiped, during_call, wiped};
use bytes::Bytes;
use lydian_serve::figures::{Requests, Timer};
use lydian_serve::{FREE_BYTES, Room};
use request::{Request, Version};
use std::net::SocketAddr;
use std::sync::Arc;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// `None`: only a status.
    pub body: Option<Vec<u8>>,
}

/// Shared by all executions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) context: &'a Context,
    pub(crate) methods: Methods,
    pub(crate) whitelist: &'a Whitelist,
    /// Counts the calls; `None` for those of this process.
    pub(crate) requests: Option<&'a Arc<Requests>>,
}

/// Receives parts of an answer of unknown length.
pub(crate) trait Sink {
    /// Blocks until the part is accepted. Returns false if the receiver is gone. `room` is for its bytes.
    fn send(&mut self, part: Vec<u8>, room: Room) -> bool;
}

/// The state of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// It continues when this wait is over.
    Wait(Wait),
    /// A status, and whether [`Execution::take_body`] returns a body for it.
    Done { status: u16, has_body: bool },
    /// The whole answer was sent to the sink, or the receiver is gone.
    Sent,
}

/// A request that is being executed.
#[derive(Debug)]
pub(crate) struct Execution {
    user: String,
    client: Option<SocketAddr>,
    body: Bytes,
    request: Request,
    /// The answer written so far, and the room it takes.
    out: Vec<u8>,
    room: Room,
    /// Start of the answer to the current call.
    start: usize,
    batch: Option<Batch>,
    waiting: Option<Waiting>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Position after the last member that was read.
    at: usize,
    members: usize,
    answers: usize,
    is_sent: bool,
}

/// A waiting call, with the room for its parameters.
#[derive(Debug)]
struct Waiting {
    wait: Wait,
    method: &'static Method,
    _active: ActiveGuard,
    timer: Option<Timer>,
    _parsed: Room,
}

/// A method that was called, and its mark as active.
type Called = (&'static Method, ActiveGuard);

/// Executes the body of a request on this thread, including waits.
pub fn execute(context: &Context, methods: Methods, whitelist: &Whitelist, user: &str, body: &[u8]) -> Reply {
    let calls = Calls { context, methods, whitelist, requests: None };
    let mut execution = Execution::new(context, user.to_owned(), None, Bytes::copy_from_slice(body));
    let mut parts = Parts(Vec::new());
    loop {
        match execution.run(&calls, &mut parts) {
            Step::Wait(wait) => wait.block(context),
            Step::Done { status, has_body } => {
                return Reply { status, body: has_body.then(|| execution.take_body().0) };
            }
            Step::Sent => return Reply { status: 200, body: Some(parts.0) },
        }
    }
}

/// Collects the parts of an answer.
struct Parts(Vec<u8>);

impl Sink for Parts {
    fn send(&mut self, part: Vec<u8>, _: Room) -> bool {
        self.0.extend_from_slice(&part);
        true
    }
}

/// Approximate bytes that a parsed value takes.
const VALUE_BYTES: usize = 72;

impl Execution {
    /// `client`: the address for the log, if it is known.
    pub(crate) fn new(context: &Context, user: String, client: Option<SocketAddr>, body: Bytes) -> Execution {
        let (request, room) = (Request::new(), context.answers.room());
        Execution { user, client, body, request, out: Vec::new(), room, start: 0, batch: None, waiting: None }
    }

    /// Runs until the answer is complete or a call waits.
    pub(crate) fn run(&mut self, calls: &Calls<'_>, sink: &mut dyn Sink) -> Step {
        if let Some(mut waiting) = self.waiting.take() {
            let start = self.out.len();
            let mut result = waiting.wait.finish(calls.context, &mut self.out);
            if result.is_ok() && calls.context.settings.checks_help {
                result = check_answer(waiting.method, &self.out[start..]);
            }
            let result = self.end_call(result);
            answered(&mut waiting.timer, &result);
            return match self.batch {
                None => self.single(result),
                Some(batch) => match self.end_member(batch, result, sink) {
                    Some(batch) => self.batch(calls, batch, sink),
                    None => Step::Sent,
                },
            };
        }
        let Some(values) = count(&self.body) else {
            return self.refuse(&RpcError::new(code::PARSE_ERROR, "Parse error"));
        };
        if calls.whitelist.is_shut_out(&self.user) {
            let words = format!("RPC User {} not allowed to call any methods", self.user);
            calls.context.host.log(LogLevel::Warning, &words);
            return status(403);
        }
        match self.body.trim_ascii_start().first() {
            Some(b'{') => {
                let whole = Member { start: 0, end: self.body.len(), values };
                self.object(calls, whole)
            }
            Some(b'[') => match self.check_batch(calls) {
                Ok(()) => {
                    self.out.push(b'[');
                    self.batch(calls, Batch::default(), sink)
                }
                Err(step) => step,
            },
            _ => self.refuse(&RpcError::new(code::PARSE_ERROR, "Top-level object parse error")),
        }
    }

    /// Takes the answer and its room.
    pub(crate) fn take_body(&mut self) -> (Vec<u8>, Room) {
        (std::mem::take(&mut self.out), self.room.take())
    }

    /// Executes a request with a single call.
    fn object(&mut self, calls: &Calls<'_>, whole: Member) -> Step {
        let mut parsed = calls.context.parsed.room();
        let read = self.parsed(whole, &mut parsed).and_then(|value| self.request.read(value));
        if let Err(error) = read {
            return self.refuse(&error);
        }
        if !self.is_allowed(calls, &self.request.method) {
            return status(403);
        }
        match self.call(calls, parsed) {
            Ok(Some(wait)) => Step::Wait(wait),
            result => wiped(|| self.single(result.map(drop))),
        }
    }

    /// Finishes the answer to a request with a single call.
    fn single(&mut self, result: Result<(), RpcError>) -> Step {
        match result {
            Err(error) if self.request.version == Version::Legacy => return self.refuse(&error),
            Err(error) => self.request.write_error(&error, &mut self.out),
            Ok(()) => {}
        }
        if self.request.is_notification() {
            return status(204);
        }
        self.done(200)
    }

    /// Core's `JSONErrorReply`.
    fn refuse(&mut self, error: &RpcError) -> Step {
        let status = match error.code {
            code::INVALID_REQUEST => 400,
            code::METHOD_NOT_FOUND => 404,
            _ => 500,
        };
        self.out.clear();
        self.request.write_error(error, &mut self.out);
        self.done(status)
    }

    fn done(&mut self, status: u16) -> Step {
        self.out.push(b'\n');
        if !self.room.grow(self.out.len()) {
            let error = RpcError::misc(NO_ROOM);
            self.out = Vec::new();
            self.request.write_error(&error, &mut self.out);
            self.out.push(b'\n');
            return Step::Done { status: 500, has_body: true };
        }
        self.out.shrink_to_fit();
        self.room.shrink(self.out.len());
        Step::Done { status, has_body: true }
    }

    fn is_allowed(&self, calls: &Calls<'_>, method: &str) -> bool {
        let is_allowed = calls.whitelist.allows(&self.user, method);
        if !is_allowed {
            let words = format!("RPC User {} not allowed to call method {method}", self.user);
            calls.context.host.log(LogLevel::Warning, &words);
        }
        is_allowed
    }

    /// Parses a member of the body. `parsed` grows for it.
    fn parsed(&self, member: Member, parsed: &mut Room) -> Result<Json, RpcError> {
        if member.values > JSON_VALUES_MAX {
            let message = format!("Request has more than {JSON_VALUES_MAX} JSON values");
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        if !parsed.grow(parsed_bytes(member)) {
            return Err(RpcError::misc("Other requests use all the memory for parameters"));
        }
        let value = wiped(|| self.body.get(member.start..member.end).and_then(parse));
        value.ok_or_else(|| RpcError::new(code::PARSE_ERROR, "Parse error"))
    }

    /// Checks that a user with a whitelist may call all methods of a batch.
    fn check_batch(&mut self, calls: &Calls<'_>) -> Result<(), Step> {
        let mut at = 0;
        while calls.whitelist.has(&self.user)
            && let Some(member) = member_after(&self.body, at)
        {
            at = member.end;
            let mut room = calls.context.parsed.room();
            let value = Wiped(self.parsed(member, &mut room).map_err(|error| self.refuse(&error))?);
            if !matches!(value.0, Json::Object(_)) {
                return Err(self.refuse(&RpcError::new(code::INVALID_REQUEST, "Invalid Request object")));
            }
            let method = value.0.get("method").unwrap_or(&Json::Null).as_text();
            let method = method.map_err(|error| self.refuse(&RpcError::new(code::PARSE_ERROR, error.message)))?;
            if !self.is_allowed(calls, method) {
                return Err(status(403));
            }
        }
        Ok(())
    }

    /// Executes the members of a batch after a position, in order.
    fn batch(&mut self, calls: &Calls<'_>, mut batch: Batch, sink: &mut dyn Sink) -> Step {
        while let Some(member) = member_after(&self.body, batch.at) {
            batch.at = member.end;
            batch.members += 1;
            let mut parsed = calls.context.parsed.room();
            // A thread that holds room for its answer must not wait for room for parameters.
            let must_wait = !parsed.try_grow(parsed_bytes(member));
            if must_wait && self.out.len() > FREE_BYTES && !self.send(&mut batch, sink) {
                return Step::Sent;
            }
            self.start = self.out.len();
            if batch.answers > 0 {
                self.out.push(b',');
            }
            let read = self.parsed(member, &mut parsed).and_then(|value| self.request.read(value));
            let result = match read.and_then(|()| self.call(calls, parsed)) {
                Ok(Some(wait)) => {
                    self.batch = Some(batch);
                    return Step::Wait(wait);
                }
                result => result.map(drop),
            };
            batch = match self.end_member(batch, result, sink) {
                Some(batch) => batch,
                None => return Step::Sent,
            };
        }
        if batch.answers == 0 && batch.members > 0 {
            return status(204);
        }
        self.out.push(b']');
        if !batch.is_sent {
            return self.done(200);
        }
        self.out.push(b'\n');
        self.send(&mut batch, sink);
        Step::Sent
    }

    /// Finishes the answer to a member, and sends the output if it has become too long. Returns `None` if the receiver
    /// is gone.
    fn end_member(&mut self, mut batch: Batch, result: Result<(), RpcError>, sink: &mut dyn Sink) -> Option<Batch> {
        if let Err(error) = result {
            self.request.write_error(&error, &mut self.out);
            // Some errors quote a parameter.
            wiped(|| drop(error));
        }
        match self.request.is_notification() {
            true => self.out.truncate(self.start),
            false => batch.answers += 1,
        }
        let max = if batch.is_sent { PART_SIZE } else { ANSWER_BUFFERED_SIZE_MAX };
        let is_long = self.out.len() > max || !self.room.try_grow(self.out.len());
        (!is_long || self.send(&mut batch, sink)).then_some(batch)
    }

    /// Sends what is written so far.
    fn send(&mut self, batch: &mut Batch, sink: &mut dyn Sink) -> bool {
        batch.is_sent = true;
        let (part, mut room) = self.take_body();
        room.grow(part.len()) && sink.send(part, room)
    }

    /// Calls the method and writes the whole answer, or stores a wait. After an error, nothing has been written.
    fn call(&mut self, calls: &Calls<'_>, parsed: Room) -> Result<Option<Wait>, RpcError> {
        let method = self.request.method.clone();
        during_call(&method, || self.call_here(calls, parsed))
    }

    fn call_here(&mut self, calls: &Calls<'_>, parsed: Room) -> Result<Option<Wait>, RpcError> {
        let client = self.client.filter(|_| calls.context.host.log_switches().has_ips());
        calls.context.host.debug("rpc", || self.request.log_line(&self.user, client));
        let start = self.out.len();
        self.request.write_head(&mut self.out);
        let state = CallState::new(self.room.take(), start);
        let mut timer = calls.requests.map(|requests| requests.begin(&self.request.method));
        let called = self.dispatch(calls, &state);
        self.room = state.room.into_inner();
        match called {
            Ok((method, active)) => match state.wait.into_inner() {
                Some(wait) => {
                    self.waiting = Some(Waiting { wait, method, _active: active, timer, _parsed: parsed });
                    Ok(Some(wait))
                }
                None => {
                    answered(&mut timer, &Ok(()));
                    self.request.write_tail(&mut self.out);
                    Ok(None)
                }
            },
            Err(error) => {
                self.out.truncate(start);
                Err(error)
            }
        }
    }

    /// Finishes the answer to a call that has waited.
    fn end_call(&mut self, result: Result<(), RpcError>) -> Result<(), RpcError> {
        match result {
            Ok(()) => self.request.write_tail(&mut self.out),
            Err(_) => {
                self.out.truncate(self.start);
                if self.batch.is_some_and(|batch| batch.answers > 0) {
                    self.out.push(b',');
                }
            }
        }
        result
    }

    fn dispatch(&mut self, calls: &Calls<'_>, state: &CallState) -> Result<Called, RpcError> {
        let context = calls.context;
        context.check_ready()?;
        let method = calls
            .methods
            .find(&self.request.method)
            .ok_or_else(|| RpcError::new(code::METHOD_NOT_FOUND, "Method not found"))?;
        let active = context.begin(method.name);
        let ordered;
        let params = match &self.request.params {
            Json::Object(named) => {
                ordered = Wiped(wiped(|| positional(named, method.args))?);
                &ordered.0[..]
            }
            Json::Array(params) => params,
            _ => &[],
        };
        method.check(params)?;
        let start = self.out.len();
        method.call.run(&Call { context, method, methods: calls.methods, params, state }, &mut self.out)?;
        if context.settings.checks_help && state.wait.borrow().is_none() {
            check_answer(method, &self.out[start..])?;
        }
        Ok((method, active))
    }
}

/// The body and the parameters are overwritten.
impl Drop for Execution {
    fn drop(&mut self) {
        wiped(|| {
            self.body = Bytes::new();
            self.request = Request::new();
        });
    }
}

/// Notes the end of a call that is counted.
fn answered(timer: &mut Option<Timer>, result: &Result<(), RpcError>) {
    if let (Some(timer), Ok(())) = (timer, result) {
        timer.answered();
    }
}

/// Compares an answer with the description of the method's result: `-rpcdoccheck`.
fn check_answer(method: &Method, answer: &[u8]) -> Result<(), RpcError> {
    let answer = parse(answer).unwrap_or_default();
    match mismatch(&method.call.result().form, &answer) {
        None => Ok(()),
        Some(found) => {
            let found = found.write_indented(4);
            Err(internal_bug(&format!("RPC call \"{}\" returned incorrect type:\n{found}", method.name)))
        }
    }
}

/// Size of the parts in which a batch's answer is sent.
const PART_SIZE: usize = 1 << 20;

fn parsed_bytes(member: Member) -> usize {
    member.values.saturating_mul(VALUE_BYTES).saturating_add(member.end - member.start)
}

fn status(status: u16) -> Step {
    Step::Done { status, has_body: false }
}
