//! What is answered: [`Made`], which becomes a [`Reply`], or [`Refused`].

use lydian_serve::Room;
use lydian_serve::http::{Filled, Pieces};

pub(super) const TEXT_TYPE: &str = "text/plain";
pub(super) const BYTES_TYPE: &str = "application/octet-stream";
pub(super) const JSON_TYPE: &str = "application/json";

/// What a route answers.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) status: u16,
    /// Its `Content-Type`.
    pub(super) kind: &'static str,
    pub(super) content: Content,
}

impl Made {
    pub(super) fn new(kind: &'static str, body: Vec<u8>) -> Made {
        Made { status: 200, kind, content: Content::Whole(body) }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    Whole(Vec<u8>),
    /// Made while it is sent.
    Pieces(Pieces),
}

impl Content {
    /// All bytes. `None` if they cannot be read.
    pub(super) fn collect(self) -> Option<Vec<u8>> {
        let Pieces { size, first: mut body, mut source } = match self {
            Content::Whole(body) => return Some(body),
            Content::Pieces(pieces) => pieces,
        };
        let mut piece = Vec::new();
        while (body.len() as u64) < size {
            if source.next(&mut piece, true) != Filled::Yes {
                return None;
            }
            body.extend_from_slice(&piece);
        }
        Some(body)
    }
}

/// An answer with its room in the budget of all answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) content: Content,
    pub(crate) room: Room,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Refused {
    /// A status and a sentence: Core's `RESTERR`. The sentence repeats parts of the request, which may be any bytes.
    Words(u16, Vec<u8>),
    /// Other answers use all the memory for answers.
    NoRoom,
    /// A method of JSON-RPC failed, with these words. Core's client gets "unknown error" and status 500.
    Failed(String),
}

impl Refused {
    pub(super) fn bad(words: impl Into<Vec<u8>>) -> Refused {
        Refused::Words(400, words.into())
    }

    pub(super) fn missing(words: impl Into<Vec<u8>>) -> Refused {
        Refused::Words(404, words.into())
    }

    /// Something that the node has, and that cannot be read.
    pub(super) fn unreadable(words: impl Into<Vec<u8>>) -> Refused {
        Refused::Words(500, words.into())
    }

    /// The sentence as an answer.
    pub(super) fn reply(self) -> Result<Made, Refused> {
        match self {
            Refused::Words(status, mut body) => {
                body.extend_from_slice(b"\r\n");
                Ok(Made { status, ..Made::new(TEXT_TYPE, body) })
            }
            other => Err(other),
        }
    }
}
