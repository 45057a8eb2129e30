//! The bytes of a feed: [`Message`] in frames, [`Question`], [`Answer`]. docs/formats/feed.md has the layout.
//!
//! Input: a value, or bytes of a network. Output: bytes, or the value; a [`WireError`] is one sentence. Decoding is
//! total: any bytes give a value or an error, a list is never allocated before its entries were read, and every byte
//! must belong to the value. [`Frames`] cuts the bytes of a stream into messages and holds at most one frame of
//! [`FRAME_SIZE_MAX`] and what was pushed with its end.

use crate::limits::{BLOCK_INPUTS_MAX, BLOCK_TXS_MAX, FRAME_SIZE_MAX, REASON_SIZE_MAX};
use crate::message::{Answer, AnswerError, FEED_VERSION, Hello, Message, PoolTx, Question, State};
use lydian_engine::Tip;
use lydian_index::{Place, ScriptHash};
use lydian_primitives::{BlockHash, Header, Height, ParseError, ParseErrorKind, Reader, Transaction, Txid};
use lydian_query::{BlockInfo, PoolFees, SpentOutput};
use std::fmt;
use std::sync::Arc;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The size of a frame without its first four bytes.
    TooLarge {
        size: usize,
    },
    /// A frame without a kind.
    Empty,
    UnknownKind {
        of: &'static str,
        kind: u8,
    },
    /// An answer to another question.
    OtherKind {
        kind: u8,
    },
    /// A list with more entries than it may have.
    TooMany {
        of: &'static str,
        count: u32,
        most: usize,
    },
    Version(u32),
    /// Too few bytes, or too many.
    Bytes {
        of: &'static str,
        error: ParseError,
    },
    /// A byte that must be 0 or 1.
    Flag {
        of: &'static str,
        byte: u8,
    },
    Text {
        of: &'static str,
    },
    Transaction(ParseError),
    /// An input without the output that it spends, or one of these too many.
    Spent {
        inputs: usize,
        outputs: usize,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::TooLarge { size } => {
                write!(f, "a message of {size} bytes is larger than {FRAME_SIZE_MAX} bytes")
            }
            WireError::Empty => f.write_str("a message has no bytes"),
            WireError::UnknownKind { of, kind } => write!(f, "{of} has the unknown kind {kind}"),
            WireError::OtherKind { kind } => {
                write!(f, "an answer has the kind {kind}, which is that of another question")
            }
            WireError::TooMany { of, count, most } => {
                write!(f, "{of} has a list of {count} entries, and may have {most} at most")
            }
            WireError::Version(version) => {
                write!(f, "the feed has version {version}, and this program reads version {FEED_VERSION}")
            }
            WireError::Bytes { of, error } => write!(f, "{of} cannot be decoded: {error}"),
            WireError::Flag { of, byte } => write!(f, "{of} has the byte {byte} where 0 or 1 must be"),
            WireError::Text { of } => write!(f, "{of} has a text that is not UTF-8"),
            WireError::Transaction(error) => write!(f, "a transaction cannot be parsed: {error}"),
            WireError::Spent { inputs, outputs } => {
                write!(f, "a transaction with {inputs} inputs comes with {outputs} spent outputs")
            }
        }
    }
}

impl std::error::Error for WireError {}

const MESSAGE: &str = "a message";
const QUESTION: &str = "a question";
const ANSWER: &str = "an answer";

/// Kinds of messages.
mod kind {
    pub(super) const HELLO: u8 = 0;
    pub(super) const RESET: u8 = 1;
    pub(super) const ADDED: u8 = 2;
    pub(super) const REMOVED: u8 = 3;
    pub(super) const STATE: u8 = 4;
}

/// Kinds of questions and answers.
mod topic {
    pub(super) const HEADERS: u8 = 0;
    pub(super) const HASHES: u8 = 1;
    pub(super) const TXIDS: u8 = 2;
    pub(super) const BLOCK_INFO: u8 = 3;
    pub(super) const BLOCK: u8 = 4;
    pub(super) const SPENT: u8 = 5;
    pub(super) const TRANSACTIONS: u8 = 6;
    pub(super) const PRUNED: u8 = 7;
    pub(super) const POOL_TXIDS: u8 = 8;
    pub(super) const POOL_CHUNKS: u8 = 9;
    pub(super) const ESTIMATE: u8 = 10;
    pub(super) const UNDO: u8 = 11;
    /// Answers only.
    pub(super) const TRY_ANOTHER: u8 = 254;
    pub(super) const FINAL: u8 = 255;
}

/// The bytes of a frame's length.
const LENGTH_SIZE: usize = 4;

/// The frame of a message.
pub fn encode(message: &Message) -> Vec<u8> {
    let mut out = Out(vec![0; LENGTH_SIZE]);
    match message {
        Message::Hello(Hello { version, genesis, epoch }) => {
            out.u8(kind::HELLO);
            out.u32(*version);
            out.raw(&genesis.0);
            out.u64(*epoch);
        }
        Message::Reset => out.u8(kind::RESET),
        Message::Added(added) => {
            out.u8(kind::ADDED);
            out.pool_tx(added);
        }
        Message::Removed(txid) => {
            out.u8(kind::REMOVED);
            out.raw(&txid.0);
        }
        Message::State(State { sequence, pool_tip, tip, fees }) => {
            out.u8(kind::STATE);
            out.u64(*sequence);
            out.tip(pool_tip);
            out.tip(tip);
            [fees.min, fees.relay, fees.incremental].into_iter().for_each(|fee| out.i64(fee));
        }
    }
    let mut frame = out.0;
    let size = count(frame.len() - LENGTH_SIZE);
    frame[..LENGTH_SIZE].copy_from_slice(&size.to_le_bytes());
    frame
}

/// The message of a frame without its length.
fn decode(bytes: &[u8]) -> Result<Message, WireError> {
    let (kind, body) = bytes.split_first().ok_or(WireError::Empty)?;
    let mut reader = In { reader: Reader::new(body), of: MESSAGE };
    let message = match *kind {
        kind::HELLO => {
            let version = reader.u32()?;
            // What follows may be another layout.
            if version != FEED_VERSION {
                return Err(WireError::Version(version));
            }
            Message::Hello(Hello { version, genesis: reader.block_hash()?, epoch: reader.u64()? })
        }
        kind::RESET => Message::Reset,
        kind::ADDED => Message::Added(reader.pool_tx()?),
        kind::REMOVED => Message::Removed(reader.txid()?),
        kind::STATE => Message::State(State {
            sequence: reader.u64()?,
            pool_tip: reader.tip()?,
            tip: reader.tip()?,
            fees: PoolFees { min: reader.i64()?, relay: reader.i64()?, incremental: reader.i64()? },
        }),
        kind => return Err(WireError::UnknownKind { of: MESSAGE, kind }),
    };
    reader.finish(message)
}

/// The messages of a stream.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// The bytes in front that are decoded.
    done: usize,
}

impl Frames {
    /// Adds bytes of the stream. Call [`Frames::next`] until there is no message before the next call.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, if its last byte is here. After an error, every call fails.
    #[allow(clippy::should_implement_trait, reason = "an iterator would end for good when bytes are missing")]
    pub fn next(&mut self) -> Result<Option<Message>, WireError> {
        let rest = self.bytes.get(self.done..).unwrap_or_default();
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH_SIZE>() else { return Ok(None) };
        let size = size(u32::from_le_bytes(*length));
        if size > FRAME_SIZE_MAX {
            return Err(WireError::TooLarge { size });
        }
        let Some(body) = rest.get(..size) else { return Ok(None) };
        let message = decode(body)?;
        self.done += LENGTH_SIZE + size;
        Ok(Some(message))
    }
}

impl Question {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::new());
        match self {
            Question::Headers { from, count } => out.range(topic::HEADERS, *from, *count),
            Question::Hashes { from, count } => out.range(topic::HASHES, *from, *count),
            Question::Txids(height) => {
                out.u8(topic::TXIDS);
                out.u32(height.0);
            }
            Question::BlockInfo(hash) => out.about(topic::BLOCK_INFO, hash),
            Question::Block(hash) => out.about(topic::BLOCK, hash),
            Question::Spent(hash) => out.about(topic::SPENT, hash),
            Question::Transactions(places) => {
                out.u8(topic::TRANSACTIONS);
                out.list(places, |out, (place, hash)| {
                    [place.height.0, place.offset, place.size].into_iter().for_each(|number| out.u32(number));
                    out.raw(&hash.0);
                });
            }
            Question::Pruned(heights) => {
                out.u8(topic::PRUNED);
                out.list(heights, |out, height| out.u32(height.0));
            }
            Question::PoolTxids => out.u8(topic::POOL_TXIDS),
            Question::PoolChunks => out.u8(topic::POOL_CHUNKS),
            Question::Estimate { target, is_conservative } => {
                out.u8(topic::ESTIMATE);
                out.u32(*target);
                out.u8(u8::from(*is_conservative));
            }
            Question::Undo { hash, bytes_max } => {
                out.about(topic::UNDO, hash);
                out.u64(*bytes_max);
            }
        }
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Question, WireError> {
        let (kind, body) = bytes.split_first().ok_or(WireError::Empty)?;
        let mut reader = In { reader: Reader::new(body), of: QUESTION };
        let question = match *kind {
            topic::HEADERS => Question::Headers { from: reader.height()?, count: reader.u32()? },
            topic::HASHES => Question::Hashes { from: reader.height()?, count: reader.u32()? },
            topic::TXIDS => Question::Txids(reader.height()?),
            topic::BLOCK_INFO => Question::BlockInfo(reader.block_hash()?),
            topic::BLOCK => Question::Block(reader.block_hash()?),
            topic::SPENT => Question::Spent(reader.block_hash()?),
            topic::TRANSACTIONS => Question::Transactions(reader.list(|reader| {
                let place = Place { height: reader.height()?, offset: reader.u32()?, size: reader.u32()? };
                Ok((place, reader.block_hash()?))
            })?),
            topic::PRUNED => Question::Pruned(reader.list(In::height)?),
            topic::POOL_TXIDS => Question::PoolTxids,
            topic::POOL_CHUNKS => Question::PoolChunks,
            topic::ESTIMATE => Question::Estimate { target: reader.u32()?, is_conservative: reader.flag()? },
            topic::UNDO => Question::Undo { hash: reader.block_hash()?, bytes_max: reader.u64()? },
            kind => return Err(WireError::UnknownKind { of: QUESTION, kind }),
        };
        reader.finish(question)
    }
}

impl Answer {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Out(Vec::new());
        match self {
            Answer::Headers(headers) => {
                out.u8(topic::HEADERS);
                out.list(headers, |out, header| out.raw(&header.to_bytes()));
            }
            Answer::Hashes(hashes) => {
                out.u8(topic::HASHES);
                out.list(hashes, |out, hash| out.raw(&hash.0));
            }
            Answer::Txids(found) => {
                out.u8(topic::TXIDS);
                out.option(found.as_ref(), |out, (hash, txids)| {
                    out.raw(&hash.0);
                    out.list(txids, |out, txid| out.raw(&txid.0));
                });
            }
            Answer::BlockInfo(found) => {
                out.u8(topic::BLOCK_INFO);
                out.option(found.as_ref(), Out::block_info);
            }
            Answer::Block(found) => out.found(topic::BLOCK, found.as_ref()),
            Answer::Spent(found) => {
                out.u8(topic::SPENT);
                out.option(found.as_ref(), |out, outputs| {
                    out.list(outputs, |out, output| {
                        out.i64(output.value);
                        out.bytes(&output.script_pubkey);
                    });
                });
            }
            Answer::Transactions(found) => {
                out.u8(topic::TRANSACTIONS);
                out.list(found, |out, found| out.option(found.as_ref(), |out, bytes| out.bytes(bytes)));
            }
            Answer::Pruned(flags) => {
                out.u8(topic::PRUNED);
                out.list(flags, |out, flag| out.u8(u8::from(*flag)));
            }
            Answer::PoolTxids(txids) => {
                out.u8(topic::POOL_TXIDS);
                out.list(txids, |out, txid| out.raw(&txid.0));
            }
            Answer::PoolChunks(chunks) => {
                out.u8(topic::POOL_CHUNKS);
                out.list(chunks, |out, (fee, vsize)| {
                    out.i64(*fee);
                    out.i64(*vsize);
                });
            }
            Answer::Estimate(feerate) => {
                out.u8(topic::ESTIMATE);
                out.option(feerate.as_ref(), |out, feerate| out.i64(*feerate));
            }
            Answer::Undo(found) => out.found(topic::UNDO, found.as_ref()),
            Answer::Failed(AnswerError::TryAnother(reason)) => {
                out.u8(topic::TRY_ANOTHER);
                out.bytes(reason.as_bytes());
            }
            Answer::Failed(AnswerError::Final(reason)) => {
                out.u8(topic::FINAL);
                out.bytes(reason.as_bytes());
            }
        }
        out.0
    }

    /// The answer to a question. Another kind than the question's, or more entries than it asks for, are an error.
    pub fn decode(bytes: &[u8], question: &Question) -> Result<Answer, WireError> {
        let (kind, body) = bytes.split_first().ok_or(WireError::Empty)?;
        let mut reader = In { reader: Reader::new(body), of: ANSWER };
        let answer = match (*kind, question) {
            (topic::HEADERS, Question::Headers { count, .. }) => {
                Answer::Headers(reader.list_up_to(size(*count), In::header)?)
            }
            (topic::HASHES, Question::Hashes { count, .. }) => {
                Answer::Hashes(reader.list_up_to(size(*count), In::block_hash)?)
            }
            (topic::TXIDS, Question::Txids(_)) => Answer::Txids(
                reader.option(|reader| Ok((reader.block_hash()?, reader.list_up_to(BLOCK_TXS_MAX, In::txid)?)))?,
            ),
            (topic::BLOCK_INFO, Question::BlockInfo(_)) => Answer::BlockInfo(reader.option(In::block_info)?),
            (topic::BLOCK, Question::Block(_)) => Answer::Block(reader.option(In::bytes)?),
            (topic::SPENT, Question::Spent(_)) => Answer::Spent(reader.option(|reader| {
                reader.list_up_to(BLOCK_INPUTS_MAX, |reader| {
                    Ok(SpentOutput { value: reader.i64()?, script_pubkey: reader.bytes()?.into_boxed_slice() })
                })
            })?),
            (topic::TRANSACTIONS, Question::Transactions(places)) => {
                Answer::Transactions(reader.list_up_to(places.len(), |reader| reader.option(In::bytes))?)
            }
            (topic::PRUNED, Question::Pruned(heights)) => Answer::Pruned(reader.list_up_to(heights.len(), In::flag)?),
            // These entries take as many bytes in memory as here.
            (topic::POOL_TXIDS, Question::PoolTxids) => Answer::PoolTxids(reader.list(In::txid)?),
            (topic::POOL_CHUNKS, Question::PoolChunks) => {
                Answer::PoolChunks(reader.list(|reader| Ok((reader.i64()?, reader.i64()?)))?)
            }
            (topic::ESTIMATE, Question::Estimate { .. }) => Answer::Estimate(reader.option(In::i64)?),
            (topic::UNDO, Question::Undo { .. }) => Answer::Undo(reader.option(In::bytes)?),
            (topic::TRY_ANOTHER, _) => Answer::Failed(AnswerError::TryAnother(reader.reason()?)),
            (topic::FINAL, _) => Answer::Failed(AnswerError::Final(reader.reason()?)),
            (..=topic::UNDO, _) => return Err(WireError::OtherKind { kind: *kind }),
            (kind, _) => return Err(WireError::UnknownKind { of: ANSWER, kind }),
        };
        reader.finish(answer)
    }
}

/// A foreign text for errors and the log: at most [`REASON_SIZE_MAX`] bytes, without control characters.
pub(crate) fn reason(text: &str) -> String {
    let mut end = text.len().min(REASON_SIZE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default();
    text.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A count or a size. No value of this program has one above 32 bits.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Bytes that are being written.
struct Out(Vec<u8>);

impl Out {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn u32(&mut self, number: u32) {
        self.raw(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.raw(&number.to_le_bytes());
    }

    fn i64(&mut self, number: i64) {
        self.raw(&number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(count(bytes.len()));
        self.raw(bytes);
    }

    fn list<T>(&mut self, list: &[T], one: impl Fn(&mut Out, &T)) {
        self.u32(count(list.len()));
        list.iter().for_each(|entry| one(self, entry));
    }

    fn option<T>(&mut self, value: Option<&T>, one: impl FnOnce(&mut Out, &T)) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            one(self, value);
        }
    }

    fn range(&mut self, kind: u8, from: Height, count: u32) {
        self.u8(kind);
        self.u32(from.0);
        self.u32(count);
    }

    fn about(&mut self, kind: u8, hash: &BlockHash) {
        self.u8(kind);
        self.raw(&hash.0);
    }

    fn found(&mut self, kind: u8, bytes: Option<&Vec<u8>>) {
        self.u8(kind);
        self.option(bytes, |out, bytes| out.bytes(bytes));
    }

    fn tip(&mut self, tip: &Tip) {
        self.u32(tip.height.0);
        self.raw(&tip.hash.0);
    }

    fn pool_tx(&mut self, added: &PoolTx) {
        let PoolTx { tx, fee, vsize, sequence, time, spent } = added;
        self.i64(*fee);
        self.i64(*vsize);
        self.u64(*sequence);
        self.i64(*time);
        self.bytes(tx.as_bytes());
        self.list(spent, |out, (script, value)| {
            out.raw(&script.0);
            out.i64(*value);
        });
    }

    fn block_info(&mut self, info: &BlockInfo) {
        let BlockInfo { hash, header, height, median_time, is_active, next } = info;
        self.raw(&hash.0);
        self.raw(&header.to_bytes());
        self.u32(*height);
        self.i64(*median_time);
        self.u8(u8::from(*is_active));
        self.option(next.as_ref(), |out, next| out.raw(&next.0));
    }
}

/// Bytes that are being read, and what they should be.
struct In<'a> {
    reader: Reader<'a>,
    of: &'static str,
}

impl<'a> In<'a> {
    fn read<T>(&self, result: Result<T, ParseError>) -> Result<T, WireError> {
        result.map_err(|error| WireError::Bytes { of: self.of, error })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let array = self.reader.array();
        self.read(array)
    }

    fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_le_bytes)
    }

    fn height(&mut self) -> Result<Height, WireError> {
        self.u32().map(Height)
    }

    fn block_hash(&mut self) -> Result<BlockHash, WireError> {
        self.array().map(BlockHash)
    }

    fn txid(&mut self) -> Result<Txid, WireError> {
        self.array().map(Txid)
    }

    fn header(&mut self) -> Result<Header, WireError> {
        self.array().map(|bytes| Header::parse(&bytes))
    }

    fn tip(&mut self) -> Result<Tip, WireError> {
        Ok(Tip { height: self.height()?, hash: self.block_hash()? })
    }

    fn flag(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(WireError::Flag { of: self.of, byte }),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>, WireError> {
        self.slice().map(<[u8]>::to_vec)
    }

    fn slice(&mut self) -> Result<&'a [u8], WireError> {
        let size = size(self.u32()?);
        let taken = self.reader.take(size);
        self.read(taken)
    }

    /// A text for errors and the log.
    fn reason(&mut self) -> Result<String, WireError> {
        let text = std::str::from_utf8(self.slice()?).map_err(|_| WireError::Text { of: self.of })?;
        Ok(reason(text))
    }

    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let count = self.u32()?;
        self.entries(count, one)
    }

    /// The entries of a list, which grows with those that were read.
    fn entries<T>(&mut self, count: u32, one: impl Fn(&mut Self) -> Result<T, WireError>) -> Result<Vec<T>, WireError> {
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// A list with at most so many entries. None of a longer one is read.
    fn list_up_to<T>(
        &mut self,
        most: usize,
        one: impl Fn(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let count = self.u32()?;
        if size(count) > most {
            return Err(WireError::TooMany { of: self.of, count, most });
        }
        self.entries(count, one)
    }

    fn option<T>(&mut self, one: impl FnOnce(&mut Self) -> Result<T, WireError>) -> Result<Option<T>, WireError> {
        if self.flag()? { one(self).map(Some) } else { Ok(None) }
    }

    fn pool_tx(&mut self) -> Result<PoolTx, WireError> {
        let (fee, vsize, sequence, time) = (self.i64()?, self.i64()?, self.u64()?, self.i64()?);
        let tx = Transaction::parse(self.bytes()?).map_err(WireError::Transaction)?;
        let spent = self.list(|reader| Ok((ScriptHash(reader.array()?), reader.i64()?)))?;
        let inputs = tx.view().input_count();
        if inputs != spent.len() {
            return Err(WireError::Spent { inputs, outputs: spent.len() });
        }
        Ok(PoolTx { tx: Arc::new(tx), fee, vsize, sequence, time, spent })
    }

    fn block_info(&mut self) -> Result<BlockInfo, WireError> {
        Ok(BlockInfo {
            hash: self.block_hash()?,
            header: self.header()?,
            height: self.u32()?,
            median_time: self.i64()?,
            is_active: self.flag()?,
            next: self.option(Self::block_hash)?,
        })
    }

    /// The value, if no byte is left.
    fn finish<T>(&self, value: T) -> Result<T, WireError> {
        match self.reader.remaining() {
            0 => Ok(value),
            count => self.read(self.reader.error(ParseErrorKind::TrailingBytes { count })),
        }
    }
}

#[cfg(test)]
mod tests;
