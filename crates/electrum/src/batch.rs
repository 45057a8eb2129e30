//! Turns a line into the bytes of its answer: one request, or a batch, whose members are answered in parallel.
//!
//! The members of a batch may be answered in any order, and are answered in theirs. A request without an id is carried
//! out and not answered.

use crate::fault::{Fault, code};
use crate::limits::{BATCH_MAX, VALUES_MAX};
use crate::methods;
use crate::server::Shared;
use crate::session::{Line, Session};
use crate::stream::{Slot, Stream};
use crate::write::{self, Json};
use lydian_serve::{Room, UnreadGuard};
use serde_json::Value;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Bytes for a client, with their room until they are sent.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) bytes: Json,
    /// What follows them.
    pub(crate) rest: Option<Stream>,
    _rooms: Vec<Room>,
    _unread: Option<UnreadGuard>,
}

/// The error of an answer for which there is no memory.
pub(crate) const NO_ROOM: &str = "too many answers wait to be read";

/// Requests that one thread answers.
const MEMBERS_PER_THREAD: usize = 16;

/// Answers a line. `None` if the server is ending.
pub(crate) async fn answer(shared: &Arc<Shared>, session: &Arc<Session>, line: Line) -> Option<Answer> {
    let requests = match parse(&line.bytes) {
        Ok(Parsed::One(request)) => {
            return on_thread(shared, session, move |shared, session| one(shared, session, request)).await;
        }
        Ok(Parsed::Batch(requests)) => requests,
        Err(fault) => {
            session.meter.no_request();
            let fault = session.check_cost(shared).err().unwrap_or(fault);
            let mut bytes = Vec::new();
            write::answer(&mut bytes, &Value::Null, Err(fault));
            bytes.push(b'\n');
            return Some(Answer { bytes, rest: None, _rooms: Vec::new(), _unread: None });
        }
    };
    drop(line);
    let most = session.meter.threads(shared.live.get().costs, shared.threads);
    let threads = requests.len().div_ceil(MEMBERS_PER_THREAD).min(most).max(1);
    let size = requests.len().div_ceil(threads).max(1);
    let mut parts = Vec::with_capacity(threads);
    let mut requests = requests.into_iter();
    loop {
        let some: Vec<Value> = requests.by_ref().take(size).collect();
        if some.is_empty() {
            break;
        }
        let (shared, session) = (Arc::clone(shared), Arc::clone(session));
        parts.push(spawn_blocking(move || members(&shared, &session, some)));
    }
    let (mut bytes, mut rooms) = (vec![b'['], Vec::with_capacity(threads));
    for part in parts {
        let (part, room) = part.await.ok()?;
        bytes.extend(part);
        rooms.extend(room);
    }
    match bytes.pop_if(|last| *last == b',') {
        Some(_) => bytes.extend_from_slice(b"]\n"),
        // Nothing but notifications.
        None => bytes.clear(),
    }
    let unread = session.connection().count_unread(bytes.len());
    Some(Answer { bytes, rest: None, _rooms: rooms, _unread: Some(unread) })
}

/// Makes an answer on a thread that may block, and takes room for it.
pub(crate) async fn on_thread(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    make: impl FnOnce(&Shared, &Session) -> (Json, Option<Stream>) + Send + 'static,
) -> Option<Answer> {
    let (shared, session) = (Arc::clone(shared), Arc::clone(session));
    let made = spawn_blocking(move || {
        let (bytes, rest) = make(&shared, &session);
        let size = bytes.len() + rest.as_ref().map_or(0, Stream::bytes);
        let Some(room) = shared.answers.room_for(size) else {
            session.close_after_answer();
            return Answer { bytes: too_long(NO_ROOM), rest: None, _rooms: Vec::new(), _unread: None };
        };
        let unread = session.connection().count_unread(size);
        Answer { bytes, rest, _rooms: vec![room], _unread: Some(unread) }
    });
    made.await.ok()
}

/// The next bytes of an answer, and what follows them. `None` at the end, and if the answer cannot be finished: then
/// the session is closing.
pub(crate) async fn next_part(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    mut stream: Stream,
) -> Option<(Json, Stream)> {
    let (shared, session) = (Arc::clone(shared), Arc::clone(session));
    let made = spawn_blocking(move || {
        session.check_cost(&shared).ok()?;
        let next = || stream.next(&shared.query).inspect_err(|_| session.close_after_answer()).ok().flatten();
        let bytes = session.meter.measure_part(0, next, |bytes| bytes.as_ref().map_or(0, Vec::len))?;
        Some((bytes, stream))
    });
    made.await.ok().flatten()
}

/// An error that answers no request.
pub(crate) fn too_long(words: &str) -> Json {
    let mut bytes = Vec::new();
    write::answer(&mut bytes, &Value::Null, Err(Fault::new(code::EXCESSIVE, words)));
    bytes.push(b'\n');
    bytes
}

#[derive(Debug)]
enum Parsed {
    One(Value),
    Batch(Vec<Value>),
}

fn parse(line: &[u8]) -> Result<Parsed, Fault> {
    if line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > VALUES_MAX {
        return Err(Fault::new(code::EXCESSIVE, format!("a line has more than {VALUES_MAX} values")));
    }
    match serde_json::from_slice(line) {
        Ok(Value::Array(batch)) if batch.is_empty() => Err(Fault::new(code::INVALID_REQUEST, "the batch is empty")),
        Ok(Value::Array(batch)) if batch.len() > BATCH_MAX => {
            let words = format!("a batch may have {BATCH_MAX} requests, this one has {}", batch.len());
            Err(Fault::new(code::EXCESSIVE, words))
        }
        Ok(Value::Array(batch)) => Ok(Parsed::Batch(batch)),
        Ok(one) => Ok(Parsed::One(one)),
        Err(error) => Err(Fault::new(code::PARSE, format!("the line is not JSON: {error}"))),
    }
}

fn one(shared: &Shared, session: &Session, request: Value) -> (Json, Option<Stream>) {
    let mut out = Vec::new();
    let slot = Slot::alone();
    let end = respond(shared, session, request, &mut out, &slot);
    let mut rest = slot.take();
    match (end, &mut rest) {
        (None, _) => return (Vec::new(), None),
        (Some(end), Some(stream)) => {
            stream.end_with(&end);
            stream.end_with(b"\n");
        }
        (Some(end), None) => {
            out.extend(end);
            out.push(b'\n');
        }
    }
    (out, rest)
}

/// The answers to some members of a batch, each with a comma behind it, and their room. A member for which there is
/// none has an error instead.
fn members(shared: &Shared, session: &Session, requests: Vec<Value>) -> (Json, Option<Room>) {
    let (mut out, slot) = (Vec::new(), Slot::in_batch(shared.answers.room()));
    for request in requests {
        let id = request.get("id").filter(|id| !id.is_object() && !id.is_array()).cloned();
        let before = out.len();
        let end = match slot.is_full() {
            true => None,
            false => respond(shared, session, request, &mut out, &slot),
        };
        if let Some(end) = end {
            out.extend(end);
        }
        if !slot.has_room_for(out.len()) {
            out.truncate(before);
            if let Some(id) = id {
                write::answer(&mut out, &id, Err(Fault::new(code::EXCESSIVE, NO_ROOM)));
            }
        }
        if out.len() > before {
            out.push(b',');
            slot.has(out.len());
        }
    }
    (out, slot.into_room())
}

/// Appends the answer to a request up to the end of its result, and returns what is behind that; `None` if the request
/// takes no answer.
fn respond(shared: &Shared, session: &Session, request: Value, out: &mut Json, slot: &Slot) -> Option<Json> {
    let invalid = |words: &str| Err(Fault::new(code::INVALID_REQUEST, words));
    let Value::Object(mut fields) = request else {
        write::begin(out, invalid("a request must be an object"));
        return Some(write::end(&Value::Null));
    };
    let id = fields.remove("id");
    let params = fields.remove("params").unwrap_or_default();
    let result = match fields.remove("method") {
        Some(Value::String(method)) => methods::call(shared, session, &method, params, slot),
        Some(_) => invalid("`method` must be a string"),
        None => invalid("`method` is missing"),
    };
    match id {
        Some(id @ (Value::Object(_) | Value::Array(_))) => {
            drop((id, slot.take()));
            write::begin(out, invalid("`id` must be a string, a number or null"));
            Some(write::end(&Value::Null))
        }
        Some(id) => {
            write::begin(out, result);
            Some(write::end(&id))
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ANSWERS_SIZE_MAX;
    use lydian_serve::Budget;

    fn fault(line: &[u8]) -> (i32, String) {
        let fault = parse(line).unwrap_err();
        (fault.code, fault.message)
    }

    /// limit: BATCH_MAX at
    /// limit: BATCH_MAX above
    #[test]
    fn batches_have_an_end() {
        let batch = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        assert!(matches!(parse(batch(BATCH_MAX).as_bytes()), Ok(Parsed::Batch(all)) if all.len() == BATCH_MAX));
        let words = "a batch may have 5000 requests, this one has 5001".to_owned();
        assert_eq!(fault(batch(BATCH_MAX + 1).as_bytes()), (code::EXCESSIVE, words));
        assert_eq!(fault(b"[]").0, code::INVALID_REQUEST);
    }

    /// limit: VALUES_MAX at
    /// limit: VALUES_MAX above
    #[test]
    fn a_line_has_few_values() {
        let list = |count: usize| format!("{{\"params\":[{}1]}}", "1,".repeat(count - 2));
        assert!(matches!(parse(list(VALUES_MAX).as_bytes()), Ok(Parsed::One(_))));
        assert_eq!(fault(list(VALUES_MAX + 1).as_bytes()).0, code::EXCESSIVE);
    }

    /// limit: ANSWERS_SIZE_MAX at
    /// limit: ANSWERS_SIZE_MAX above
    #[test]
    fn an_answer_waits_until_others_are_read() {
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let unread = answers.room_for(ANSWERS_SIZE_MAX - 1_000_000).unwrap();
        let small = answers.room_for(1_000_000).unwrap();
        let waiting = Arc::clone(&answers);
        let large = std::thread::spawn(move || waiting.room_for(1_000_001).is_some());
        drop(unread);
        assert!(large.join().unwrap());
        drop(small);
        assert!(answers.room_for(10 * ANSWERS_SIZE_MAX).is_some(), "a larger one is sent alone");
    }

    #[test]
    fn nonsense_is_an_error() {
        for line in [&b""[..], b"{", b"\xff\xfe", b"[1,", b"{\"a\":1}}", "[".repeat(50_000).as_bytes()] {
            assert_eq!(fault(line).0, code::PARSE, "{line:?}");
        }
    }
}
