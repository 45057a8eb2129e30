//! ZMTP 3.1, the protocol of ZeroMQ, from the side of a publisher without encryption (mechanism NULL), without I/O.
//!
//! Input: the bytes of a subscriber, in pieces of any size. Output: the topics it wants, replies, or an error that ends
//! the connection. Both versions of a subscription are understood: a message that begins with 1 (3.0), and the command
//! SUBSCRIBE (3.1). Versions below 3 are refused: libzmq has spoken 3 since 2013.
//!
//! Invariants: foreign bytes never panic; at most a frame of [`FRAME_SIZE_MAX`] and one read are kept. A prefix that no
//! topic begins with is not kept, so the subscriptions are bounded too. Cost: linear in the bytes.
//!
//! Source of the rules: RFC 37/ZMTP of the ZeroMQ project (rfc.zeromq.org).

use crate::limits::FRAME_SIZE_MAX;
use crate::topic::Topic;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;

/// Sent first, by both sides.
const GREETING_SIZE: usize = 64;
/// Where the version, the mechanism and the role stand in a greeting.
const VERSION_AT: usize = 10;
const MECHANISM_AT: usize = 12;
const MECHANISM_SIZE: usize = 20;

/// Bits of the first byte of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A PING carries two bytes of time to live, then up to this many bytes that the PONG returns.
const PING_CONTEXT_SIZE_MAX: usize = 16;

/// What the publisher sends first: version 3.1, mechanism NULL.
pub(crate) fn greeting() -> [u8; GREETING_SIZE] {
    let mut bytes = [0; GREETING_SIZE];
    bytes[0] = 0xff;
    bytes[9] = 0x7f;
    bytes[VERSION_AT] = 3;
    bytes[VERSION_AT + 1] = 1;
    bytes[MECHANISM_AT..MECHANISM_AT + 4].copy_from_slice(b"NULL");
    bytes
}

/// The reply to a greeting: the type of this socket.
fn ready(out: &mut Vec<u8>) {
    let mut body = Vec::with_capacity(32);
    body.extend_from_slice(b"\x05READY\x0bSocket-Type\0\0\0\x03PUB");
    frame(COMMAND, &body, out);
}

/// One message of three frames.
pub(crate) fn message(topic: Topic, body: &[u8], number: u32) -> Bytes {
    let name = topic.name().as_bytes();
    let mut out = Vec::with_capacity(name.len() + body.len() + 20);
    frame(MORE, name, &mut out);
    frame(MORE, body, &mut out);
    frame(0, &number.to_le_bytes(), &mut out);
    out.into()
}

fn frame(flags: u8, body: &[u8], out: &mut Vec<u8>) {
    match u8::try_from(body.len()) {
        Ok(size) => out.extend_from_slice(&[flags, size]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The first bytes are not those of ZMTP 3.
    NotZmtp3,
    /// The subscriber wants encryption or a password.
    Mechanism,
    /// The frame has unknown flags, or is too large.
    Frame { flags: u8, size: u64 },
    /// A command has no name, or its content ends early.
    Command,
    /// The handshake has something else than READY.
    NotReady,
    /// Only SUB and XSUB may connect to a publisher.
    SocketType,
    /// The subscriber reports an error.
    Reported,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProtocolError::NotZmtp3 => f.write_str("the first bytes are not those of ZMTP 3"),
            ProtocolError::Mechanism => f.write_str("the security mechanism is not NULL"),
            ProtocolError::Frame { flags, size } => write!(f, "a frame has flags {flags:#x} and {size} bytes"),
            ProtocolError::Command => f.write_str("a command is malformed"),
            ProtocolError::NotReady => f.write_str("the handshake does not begin with READY"),
            ProtocolError::SocketType => f.write_str("the other socket is not a SUB"),
            ProtocolError::Reported => f.write_str("the subscriber reports an error"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// The state of one connection.
#[derive(Debug, Default)]
pub struct Session {
    stage: Stage,
    input: Vec<u8>,
    /// The frame before belongs to the same message.
    is_inside_message: bool,
    /// Prefixes of topics, each with the number of subscriptions. As in libzmq, each one needs its own cancellation.
    subscriptions: BTreeMap<Vec<u8>, u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Greeting,
    Handshake,
    Open,
}

impl Session {
    /// Takes bytes of the subscriber. What has to be sent is appended to `replies`.
    pub fn receive(&mut self, bytes: &[u8], replies: &mut Vec<u8>) -> Result<(), ProtocolError> {
        self.input.extend_from_slice(bytes);
        let mut input = std::mem::take(&mut self.input);
        let mut at = 0;
        loop {
            match self.take(&input[at..], replies)? {
                0 => break,
                used => at += used,
            }
        }
        input.drain(..at);
        self.input = input;
        Ok(())
    }

    /// Whether the handshake is complete.
    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    pub fn wants(&self, topic: Topic) -> bool {
        self.subscriptions.keys().any(|prefix| topic.name().as_bytes().starts_with(prefix))
    }

    /// Takes the greeting or one frame. Returns the bytes used; 0 if it is not complete.
    fn take(&mut self, input: &[u8], replies: &mut Vec<u8>) -> Result<usize, ProtocolError> {
        if self.stage == Stage::Greeting {
            return self.take_greeting(input, replies);
        }
        let Some((flags, size, start)) = frame_head(input) else { return Ok(0) };
        let length = usize::try_from(size).ok().filter(|length| *length <= FRAME_SIZE_MAX);
        let is_known = flags & !(MORE | LONG | COMMAND) == 0 && flags & (MORE | COMMAND) != MORE | COMMAND;
        let Some(length) = length.filter(|_| is_known) else { return Err(ProtocolError::Frame { flags, size }) };
        let Some(body) = input.get(start..start + length) else { return Ok(0) };
        match (self.stage, flags & COMMAND != 0) {
            (Stage::Open, true) => self.take_command(body, replies)?,
            (Stage::Open, false) => self.take_message(body, flags & MORE != 0),
            (_, true) => self.take_ready(body)?,
            (_, false) => return Err(ProtocolError::NotReady),
        }
        Ok(start + length)
    }

    fn take_greeting(&mut self, input: &[u8], replies: &mut Vec<u8>) -> Result<usize, ProtocolError> {
        // What is wrong with an incomplete greeting is reported at once: a peer of version 1 or 2 waits for an answer.
        let is_wrong = |at: usize, is_good: fn(u8) -> bool| input.get(at).is_some_and(|byte| !is_good(*byte));
        if is_wrong(0, |byte| byte == 0xff)
            || is_wrong(9, |byte| byte & 1 == 1)
            || is_wrong(VERSION_AT, |major| major >= 3)
        {
            return Err(ProtocolError::NotZmtp3);
        }
        let Some(greeting) = input.get(..GREETING_SIZE) else { return Ok(0) };
        let mechanism = &greeting[MECHANISM_AT..MECHANISM_AT + MECHANISM_SIZE];
        if mechanism.strip_prefix(b"NULL").is_none_or(|rest| rest.iter().any(|byte| *byte != 0)) {
            return Err(ProtocolError::Mechanism);
        }
        ready(replies);
        self.stage = Stage::Handshake;
        Ok(GREETING_SIZE)
    }

    fn take_ready(&mut self, body: &[u8]) -> Result<(), ProtocolError> {
        let (name, mut properties) = split_name(body).ok_or(ProtocolError::Command)?;
        match name {
            b"READY" => {}
            b"ERROR" => return Err(ProtocolError::Reported),
            _ => return Err(ProtocolError::NotReady),
        }
        let mut socket_type: &[u8] = b"";
        while !properties.is_empty() {
            let (key, rest) = split_name(properties).ok_or(ProtocolError::Command)?;
            let (value, rest) = split_value(rest).ok_or(ProtocolError::Command)?;
            if key.eq_ignore_ascii_case(b"Socket-Type") {
                socket_type = value;
            }
            properties = rest;
        }
        if !matches!(socket_type, b"SUB" | b"XSUB") {
            return Err(ProtocolError::SocketType);
        }
        self.stage = Stage::Open;
        Ok(())
    }

    fn take_command(&mut self, body: &[u8], replies: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let (name, content) = split_name(body).ok_or(ProtocolError::Command)?;
        match name {
            b"SUBSCRIBE" => self.subscribe(content),
            b"CANCEL" => self.cancel(content),
            b"PING" => {
                let context = content.get(2..).ok_or(ProtocolError::Command)?;
                let mut pong = b"\x04PONG".to_vec();
                pong.extend(context.iter().take(PING_CONTEXT_SIZE_MAX));
                frame(COMMAND, &pong, replies);
            }
            b"ERROR" => return Err(ProtocolError::Reported),
            // As in libzmq, other commands mean nothing to a publisher.
            _ => {}
        }
        Ok(())
    }

    /// Subscriptions of version 3.0. As in libzmq, every other message is ignored, and only first frames count.
    fn take_message(&mut self, body: &[u8], has_more: bool) {
        let is_first = !std::mem::replace(&mut self.is_inside_message, has_more);
        match body.split_first() {
            Some((1, prefix)) if is_first => self.subscribe(prefix),
            Some((0, prefix)) if is_first => self.cancel(prefix),
            _ => {}
        }
    }

    fn subscribe(&mut self, prefix: &[u8]) {
        if Topic::ALL.iter().any(|topic| topic.name().as_bytes().starts_with(prefix)) {
            let count = self.subscriptions.entry(prefix.to_vec()).or_default();
            *count = count.saturating_add(1);
        }
    }

    fn cancel(&mut self, prefix: &[u8]) {
        if let Some(count) = self.subscriptions.get_mut(prefix) {
            *count -= 1;
            if *count == 0 {
                self.subscriptions.remove(prefix);
            }
        }
    }
}

/// The flags and the size of a frame, and where its body begins; `None` if that is not complete.
fn frame_head(input: &[u8]) -> Option<(u8, u64, usize)> {
    let flags = *input.first()?;
    match flags & LONG {
        0 => Some((flags, u64::from(*input.get(1)?), 2)),
        _ => {
            let size = input.get(1..9)?.try_into().ok()?;
            Some((flags, u64::from_be_bytes(size), 9))
        }
    }
}

/// A name behind its length, and what follows.
fn split_name(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// The value of a property behind its length, and what follows.
fn split_value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests;
