//! Long lists that are sent while they are looked up: histories and coins of scripts with very many transactions.
//!
//! Input: the parts of a list. Output: the JSON of its elements, one part at a time, and the end of the answer. A part
//! is made when the client has read the one before, by a thread that no slow client holds. Memory: the numbers of the
//! list's transactions and one part. A list whose blocks leave the chain meanwhile cannot be finished: the connection
//! ends.

use crate::batch::NO_ROOM;
use crate::fault::{Fault, code};
use crate::write::{Json, put, put_hash};
use lydian_query::{Coin, CoinParts, Confirmed, HistoryParts, PART, PoolEntry, Query, QueryError};
use lydian_serve::Room;
use std::cell::{Cell, RefCell};

/// Lists with more elements are sent in parts, unless they are in a batch and there is memory for them.
pub(crate) const STREAMED_FROM: usize = 4 * PART;

/// Bytes of an element at most: a coin, or a transaction of a history.
const ELEMENT_BYTES: usize = 160;

/// A list of a script.
#[derive(Debug)]
pub(crate) enum List {
    History(HistoryParts),
    Coins(CoinParts),
}

/// What is left of an answer.
#[derive(Debug)]
pub(crate) struct Stream {
    list: List,
    is_first: bool,
    is_over: bool,
    /// What is behind the elements.
    end: Json,
}

/// Where the rest of an answer goes, and the memory of the answers that are made whole.
#[derive(Debug)]
pub(crate) enum Slot {
    /// A request alone on its line: long lists are sent in parts.
    Alone(RefCell<Option<Stream>>),
    /// Members of a batch, which are answered by one thread.
    InBatch {
        room: RefCell<Room>,
        /// The bytes of the members so far.
        bytes: Cell<usize>,
        /// There was no room for a list, which was not made.
        was_refused: Cell<bool>,
    },
}

impl Slot {
    pub(crate) fn alone() -> Slot {
        Slot::Alone(RefCell::default())
    }

    pub(crate) fn in_batch(room: Room) -> Slot {
        Slot::InBatch { room: RefCell::new(room), bytes: Cell::new(0), was_refused: Cell::new(false) }
    }

    /// What follows the answer.
    pub(crate) fn take(&self) -> Option<Stream> {
        match self {
            Slot::Alone(stream) => stream.take(),
            Slot::InBatch { .. } => None,
        }
    }

    /// Whether a list was not made, since there was no room for it.
    pub(crate) fn was_refused(&self) -> bool {
        matches!(self, Slot::InBatch { was_refused, .. } if was_refused.get())
    }

    /// Takes room for the answers of a batch, without waiting. False if there is none.
    pub(crate) fn has_room_for(&self, size: usize) -> bool {
        match self {
            Slot::Alone(_) => true,
            Slot::InBatch { room, .. } => room.borrow_mut().try_grow(size),
        }
    }

    /// The answers to the members so far have this size.
    pub(crate) fn has(&self, size: usize) {
        if let Slot::InBatch { bytes, .. } = self {
            bytes.set(size);
        }
    }

    /// Room for an answer besides those that are there.
    fn has_room_for_more(&self, size: usize) -> bool {
        match self {
            Slot::Alone(_) => true,
            Slot::InBatch { bytes, was_refused, .. } => {
                was_refused.set(!self.has_room_for(bytes.get() + size));
                !was_refused.get()
            }
        }
    }

    /// The room of a batch; none of a request alone.
    pub(crate) fn into_room(self) -> Option<Room> {
        match self {
            Slot::Alone(_) => None,
            Slot::InBatch { room, .. } => Some(room.into_inner()),
        }
    }
}

impl List {
    fn count(&self) -> usize {
        match self {
            List::History(parts) => parts.count(),
            List::Coins(parts) => parts.count(),
        }
    }

    /// The elements of the next part, each with a comma behind it; `None` at the end.
    fn part(&mut self, query: &Query) -> Result<Option<Json>, QueryError> {
        let mut out = Vec::with_capacity(PART.min(self.count()) * ELEMENT_BYTES);
        match self {
            List::History(parts) => {
                let found = parts.part(query)?;
                if found.is_empty() {
                    return Ok(None);
                }
                found.iter().for_each(|tx| put_confirmed(&mut out, tx));
            }
            List::Coins(parts) => {
                let Some(found) = parts.part(query)? else { return Ok(None) };
                found.iter().for_each(|coin| put_coin(&mut out, coin));
            }
        }
        Ok(Some(out))
    }

    /// What the mempool adds, in the same form.
    fn pool(&self) -> Json {
        let mut out = Vec::new();
        match self {
            List::History(parts) => parts.pool.iter().for_each(|entry| put_entry(&mut out, entry)),
            List::Coins(parts) => parts.pool.iter().for_each(|coin| put_coin(&mut out, coin)),
        }
        out
    }
}

/// The JSON of a list, with `begin` before its elements and `end` behind them; the beginning only if the rest is in the
/// slot.
pub(crate) fn put_list(query: &Query, list: List, begin: &str, end: &str, slot: &Slot) -> Result<Json, Fault> {
    let count = list.count();
    let mut stream = Stream { list, is_first: true, is_over: false, end: end.as_bytes().to_vec() };
    let mut out = begin.as_bytes().to_vec();
    match slot {
        Slot::Alone(rest) if count > STREAMED_FROM => {
            *rest.borrow_mut() = Some(stream);
            return Ok(out);
        }
        Slot::Alone(_) | Slot::InBatch { .. } => {}
    }
    if !slot.has_room_for_more(count * ELEMENT_BYTES) {
        // Its answer is made later, alone.
        return Err(Fault::new(code::EXCESSIVE, NO_ROOM));
    }
    while let Some(part) = stream.next(query)? {
        out.extend(part);
    }
    Ok(out)
}

impl Stream {
    /// Bytes in memory, with those of a part.
    pub(crate) fn bytes(&self) -> usize {
        let item = match self.list {
            List::History(_) => 4,
            List::Coins(_) => 16,
        };
        self.list.count() * item + PART * ELEMENT_BYTES
    }

    /// Adds what is behind the list in the answer.
    pub(crate) fn end_with(&mut self, end: &[u8]) {
        self.end.extend_from_slice(end);
    }

    /// The next bytes; `None` at the end.
    pub(crate) fn next(&mut self, query: &Query) -> Result<Option<Json>, QueryError> {
        if self.is_over {
            return Ok(None);
        }
        let mut out = match self.list.part(query)? {
            Some(part) => part,
            None => {
                self.is_over = true;
                self.list.pool()
            }
        };
        // Each element was written with a comma behind it, which belongs before the next one.
        let had_some = out.pop().is_some();
        if had_some && !self.is_first {
            out.insert(0, b',');
        }
        self.is_first &= !had_some;
        if self.is_over {
            out.append(&mut self.end);
        }
        Ok(Some(out))
    }
}

fn put_confirmed(out: &mut Json, tx: &Confirmed) {
    put(out, format_args!("{{\"height\":{},\"tx_hash\":", tx.height));
    put_hash(out, &tx.txid.0);
    out.extend_from_slice(b"},");
}

pub(crate) fn put_entry(out: &mut Json, entry: &PoolEntry) {
    put(out, format_args!("{{\"fee\":{},\"height\":{},\"tx_hash\":", entry.fee, entry.height()));
    put_hash(out, &entry.txid.0);
    out.extend_from_slice(b"},");
}

fn put_coin(out: &mut Json, coin: &Coin) {
    put(out, format_args!("{{\"height\":{},\"tx_hash\":", coin.height));
    put_hash(out, &coin.txid.0);
    put(out, format_args!(",\"tx_pos\":{},\"value\":{}}},", coin.vout, coin.value));
}
