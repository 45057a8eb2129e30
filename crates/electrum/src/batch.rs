//! Turns a line into the bytes of its answer: one request, or a batch, whose members are answered in parallel.
//!
//! The members of a batch may be answered in any order, and are answered in theirs. If the memory for answers is used
//! up, the others are answered one after another, each when the client has read those before it, so that a batch takes
//! no more memory than there is. A request without an id is carried out and not answered.

use crate::fault::{Fault, code};
use crate::limits::{BATCH_MAX, VALUES_MAX};
use crate::methods;
use crate::server::Shared;
use crate::session::{Line, Session};
use crate::stream::{Slot, Stream};
use crate::write::{self, Json};
use lydian_serve::{FREE_BYTES, Room, UnreadGuard};
use lydian_stdx::lock;
use serde_json::Value;
use std::collections::VecDeque;
use std::iter::Enumerate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::vec::IntoIter;
use tokio::task::spawn_blocking;

/// Bytes for a client, with their room until they are sent.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Json,
    /// What follows them.
    pub(crate) rest: Option<Rest>,
    _rooms: Vec<Room>,
    _unread: Option<UnreadGuard>,
}

impl Answer {
    /// `kept`: bytes in memory that are not in these.
    fn new(session: &Session, bytes: Json, rooms: Vec<Room>, rest: Option<Rest>, kept: usize) -> Answer {
        let unread = session.connection().count_unread(bytes.len() + kept);
        Answer { bytes, rest, _rooms: rooms, _unread: Some(unread) }
    }

    /// Bytes that are few enough not to be counted.
    fn small(bytes: Json) -> Answer {
        Answer { bytes, ..Answer::default() }
    }
}

/// What is left of the answers to a line.
#[derive(Debug)]
pub(crate) enum Rest {
    /// One answer.
    One(Stream, Room),
    Batch(Batch),
}

impl Rest {
    /// Whether the next part is not made yet.
    pub(crate) fn is_due(&self) -> bool {
        match self {
            Rest::One(..) => true,
            Rest::Batch(batch) => batch.member.is_some() || batch.pieces.front().is_some_and(Piece::is_later),
        }
    }
}

/// What is left of the answers to a batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pieces: VecDeque<Piece>,
    /// Bytes of those that are made.
    made: usize,
    /// The rest of the answer to a member.
    member: Option<(Stream, Room)>,
    has_begun: bool,
    /// The room of the line if requests of it are left.
    _line: Option<Room>,
}

/// The answer to a member of a batch.
#[derive(Debug)]
enum Piece {
    Made(Json, Room),
    /// There was no memory for it: it is made when the client has read those before.
    Later(Value),
}

impl Piece {
    fn is_later(&self) -> bool {
        matches!(self, Piece::Later(_))
    }

    fn bytes(&self) -> usize {
        if let Piece::Made(made, _) = self { made.len() } else { 0 }
    }
}

/// Answers to members of a batch that are sent together, unless one is larger.
const SENT_TOGETHER: usize = 256 << 10;

/// The members of a batch that no thread has taken.
#[derive(Debug)]
struct Members {
    left: Mutex<Enumerate<IntoIter<Value>>>,
    /// There was no memory for one, so that the others are left for later.
    is_full: AtomicBool,
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
            return Some(Answer::small(bytes));
        }
    };
    let Line { bytes, room: line } = line;
    drop(bytes);
    let most = session.meter.threads(shared.live.get().costs, shared.threads);
    let threads = requests.len().div_ceil(MEMBERS_PER_THREAD).min(most).max(1);
    let left = Mutex::new(requests.into_iter().enumerate());
    let members = Arc::new(Members { left, is_full: AtomicBool::new(false) });
    let mut parts = Vec::with_capacity(threads);
    for _ in 0..threads {
        let (shared, session, members) = (Arc::clone(shared), Arc::clone(session), Arc::clone(&members));
        parts.push(spawn_blocking(move || answer_members(&shared, &session, &members)));
    }
    let mut pieces = Vec::new();
    for part in parts {
        pieces.extend(part.await.ok()?);
    }
    pieces.extend(lock(&members.left).by_ref().map(|(index, request)| (index, Piece::Later(request))));
    pieces.sort_unstable_by_key(|(index, _)| *index);
    let pieces: VecDeque<Piece> = pieces.into_iter().map(|(_, piece)| piece).collect();
    let line = pieces.iter().any(Piece::is_later).then_some(line);
    let made = pieces.iter().map(Piece::bytes).sum();
    let rest = Rest::Batch(Batch { pieces, made, member: None, has_begun: false, _line: line });
    Some(next_part(shared, session, rest).await.unwrap_or_default())
}

/// Makes an answer on a thread that may block, and takes room for it.
pub(crate) async fn on_thread(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    make: impl FnOnce(&Shared, &Session) -> (Json, Option<Stream>) + Send + 'static,
) -> Option<Answer> {
    let (shared, session) = (Arc::clone(shared), Arc::clone(session));
    let made = spawn_blocking(move || {
        let (bytes, stream) = make(&shared, &session);
        let kept = stream.as_ref().map_or(0, Stream::bytes);
        let Some(room) = shared.answers.room_for(bytes.len() + kept) else {
            session.close_after_answer();
            return Answer::small(too_long(NO_ROOM));
        };
        match stream {
            Some(stream) => Answer::new(&session, bytes, Vec::new(), Some(Rest::One(stream, room)), kept),
            None => Answer::new(&session, bytes, vec![room], None, 0),
        }
    });
    made.await.ok()
}

/// The next bytes of an answer, and what follows them. `None` at the end, and if the answer cannot be finished: then
/// the session is closing.
pub(crate) async fn next_part(shared: &Arc<Shared>, session: &Arc<Session>, rest: Rest) -> Option<Answer> {
    let is_due = rest.is_due();
    match rest {
        // Nothing that blocks.
        Rest::Batch(batch) if !is_due => batch.next(shared, session),
        rest => {
            let (shared, session) = (Arc::clone(shared), Arc::clone(session));
            let made = spawn_blocking(move || match rest {
                Rest::One(mut stream, room) => {
                    let (bytes, kept) = (part_of(&shared, &session, &mut stream)??, stream.bytes());
                    Some(Answer::new(&session, bytes, Vec::new(), Some(Rest::One(stream, room)), kept))
                }
                Rest::Batch(batch) => batch.next(&shared, &session),
            });
            made.await.ok().flatten()
        }
    }
}

/// The next bytes of a list: `Some(None)` at its end, `None` if it cannot be finished.
fn part_of(shared: &Shared, session: &Session, stream: &mut Stream) -> Option<Option<Json>> {
    session.check_cost(shared).ok()?;
    let next = || stream.next(&shared.query).inspect_err(|_| session.close_after_answer()).ok();
    session.meter.measure_part(0, next, |bytes| bytes.iter().flatten().map(Vec::len).sum())
}

impl Batch {
    /// The next bytes; `None` if the answer cannot be finished.
    fn next(mut self, shared: &Shared, session: &Session) -> Option<Answer> {
        if let Some((stream, _)) = &mut self.member {
            match part_of(shared, session, stream)? {
                Some(bytes) => {
                    let kept = stream.bytes() + self.made;
                    return Some(Answer::new(session, bytes, Vec::new(), Some(Rest::Batch(self)), kept));
                }
                None => self.member = None,
            }
        }
        let (mut bytes, mut rooms) = (Vec::new(), Vec::new());
        while bytes.len() < SENT_TOGETHER && self.member.is_none() {
            match self.pieces.pop_front() {
                Some(Piece::Made(made, room)) => {
                    self.begin_member(&mut bytes);
                    self.made -= made.len();
                    bytes.extend(made);
                    rooms.push(room);
                }
                // What is there is sent first, so that its room is free.
                Some(later) if !bytes.is_empty() => {
                    self.pieces.push_front(later);
                    break;
                }
                Some(Piece::Later(request)) => rooms.extend(self.make(shared, session, request, &mut bytes)),
                None => {
                    // Nothing but notifications take no answer.
                    if self.has_begun {
                        bytes.extend_from_slice(b"]\n");
                    }
                    return Some(Answer::new(session, bytes, rooms, None, 0));
                }
            }
        }
        let kept = self.made + self.member.as_ref().map_or(0, |(stream, _)| stream.bytes());
        Some(Answer::new(session, bytes, rooms, Some(Rest::Batch(self)), kept))
    }

    fn begin_member(&mut self, out: &mut Json) {
        out.push(if self.has_begun { b',' } else { b'[' });
        self.has_begun = true;
    }

    /// Answers a member alone, in parts if its list is long. Returns the room of an answer that is not.
    fn make(&mut self, shared: &Shared, session: &Session, request: Value, out: &mut Json) -> Option<Room> {
        let id = id_of(&request);
        let (mut made, slot) = (Vec::new(), Slot::alone());
        let end = respond(shared, session, request, &mut made, &slot)?;
        let mut stream = slot.take();
        match &mut stream {
            Some(stream) => stream.end_with(&end),
            None => made.extend(end),
        }
        self.begin_member(out);
        let room = shared.answers.room_for(made.len() + stream.as_ref().map_or(0, Stream::bytes));
        if room.is_none() {
            write::answer(out, &id.unwrap_or_default(), Err(Fault::new(code::EXCESSIVE, NO_ROOM)));
            return None;
        }
        out.extend(made);
        match stream {
            Some(stream) => {
                self.member = room.map(|room| (stream, room));
                None
            }
            None => room,
        }
    }
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

/// The id of a request that is to be answered.
fn id_of(request: &Value) -> Option<Value> {
    request.get("id").filter(|id| !id.is_object() && !id.is_array()).cloned()
}

/// Answers members of a batch until all are taken, or there is no memory for one.
fn answer_members(shared: &Shared, session: &Session, members: &Members) -> Vec<(usize, Piece)> {
    let slot = Slot::in_batch(shared.answers.room());
    let (mut made, mut later) = (Vec::new(), None);
    let (mut all, mut largest) = (0, 0);
    while !members.is_full.load(Ordering::Relaxed) {
        let Some((index, request)) = lock(&members.left).next() else { break };
        // Most members of a batch have answers of one size.
        if !slot.has_room_for(all + largest) {
            later = Some((index, request));
            break;
        }
        let (again, mut out) = (request.clone(), Vec::new());
        let Some(end) = respond(shared, session, request, &mut out, &slot) else { continue };
        out.extend(end);
        // A small answer is kept in any case: what the request did may not be done again.
        if slot.was_refused() || out.len() > FREE_BYTES && !slot.has_room_for(all + out.len()) {
            later = Some((index, again));
            break;
        }
        (all, largest) = (all + out.len(), largest.max(out.len()));
        slot.has(all);
        made.push((index, out));
    }
    if later.is_some() {
        members.is_full.store(true, Ordering::Relaxed);
    }
    let mut room = slot.into_room().unwrap_or_else(|| shared.answers.room());
    let mut piece = |(index, out): (usize, Json)| {
        let room = room.split(out.len());
        (index, Piece::Made(out, room))
    };
    let mut pieces: Vec<(usize, Piece)> = made.into_iter().map(&mut piece).collect();
    pieces.extend(later.map(|(index, request)| (index, Piece::Later(request))));
    pieces
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
