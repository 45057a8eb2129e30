//! As much of the native protocol of Cassandra as it takes to ask one node about the cluster.
//!
//! Input: an address, statements without values. Output: rows whose cells are bytes. One request at a time, with a time
//! limit; answers are bounded. It exists because the driver of the node is optional and needs a runtime; nothing here
//! is measured. Must never: panic on what a node sends.
//!
//! Source: `native_protocol_v4.spec` of Cassandra.

use crate::error::LabError;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

const VERSION: u8 = 4;
/// The highest bit marks an answer.
const ANSWER: u8 = 0x80;
const HEADER_SIZE: usize = 9;
const ANSWER_SIZE_MAX: u32 = 16 << 20;
/// Nesting of collections in the type of a column.
const TYPE_DEPTH_MAX: u32 = 8;

const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
const ROWS: u32 = 2;
/// Flags of a query.
const PAGE_SIZE: u8 = 0x04;
const PAGING_STATE: u8 = 0x08;

/// How many replicas must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    One = 1,
    Quorum = 4,
    All = 5,
}

/// Rows of a result, and where the others begin.
#[derive(Debug, PartialEq)]
struct Page {
    rows: Vec<Row>,
    next: Option<Vec<u8>>,
}

/// The cells of a row; `None` for null.
pub type Row = Vec<Option<Vec<u8>>>;

/// A connection to one node.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    address: SocketAddrV4,
}

impl Connection {
    /// Connects, and fails after this time; the limit also applies to each answer.
    pub fn open(address: SocketAddrV4, timeout: Duration) -> Result<Connection, LabError> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&address.into(), timeout)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(timeout))?;
            Ok(stream)
        };
        let stream = connect().map_err(|error: std::io::Error| LabError::program(name(address), error))?;
        let mut connection = Connection { stream, address };
        let mut body = 1_u16.to_be_bytes().to_vec();
        for text in ["CQL_VERSION", "3.0.0"] {
            body.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
            body.extend(text.as_bytes());
        }
        match connection.ask(STARTUP, &body)? {
            (READY, _) => Ok(connection),
            (opcode, _) => Err(connection.failed(format!("it answers the start with opcode {opcode}, expected READY"))),
        }
    }

    /// Runs a statement; returns the rows of its result, if it has any.
    pub fn query(&mut self, statement: &str, consistency: Consistency) -> Result<Vec<Row>, LabError> {
        match self.page(statement, consistency, &[0])? {
            Page { rows, next: None } => Ok(rows),
            Page { .. } => Err(self.failed(format!("its answer to `{statement}` is not complete"))),
        }
    }

    /// Reads all rows of a statement, so many at a time, and passes each to `sink`.
    pub fn scan(
        &mut self,
        statement: &str,
        consistency: Consistency,
        page_rows: u32,
        sink: &mut dyn FnMut(Row),
    ) -> Result<(), LabError> {
        let mut next = None;
        loop {
            let mut options = vec![if next.is_some() { PAGE_SIZE | PAGING_STATE } else { PAGE_SIZE }];
            options.extend(page_rows.to_be_bytes());
            if let Some(state) = next {
                let state: Vec<u8> = state;
                options.extend(u32::try_from(state.len()).unwrap_or(0).to_be_bytes());
                options.extend(state);
            }
            let page = self.page(statement, consistency, &options)?;
            page.rows.into_iter().for_each(&mut *sink);
            next = page.next;
            if next.is_none() {
                return Ok(());
            }
        }
    }

    fn page(&mut self, statement: &str, consistency: Consistency, options: &[u8]) -> Result<Page, LabError> {
        let size = u32::try_from(statement.len()).map_err(|_| self.failed("the statement is too long".to_owned()))?;
        let mut body = size.to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        body.extend((consistency as u16).to_be_bytes());
        body.extend(options);
        let (opcode, answer) = self.ask(QUERY, &body)?;
        let page = if opcode == RESULT { page(&mut Bytes(&answer)) } else { None };
        page.ok_or_else(|| self.failed(format!("its answer to `{statement}` cannot be read")))
    }

    fn ask(&mut self, opcode: u8, body: &[u8]) -> Result<(u8, Vec<u8>), LabError> {
        let answer = self.exchange(opcode, body).map_err(|error| LabError::program(name(self.address), error))?;
        if let (ERROR, bytes) = &answer {
            let mut bytes = Bytes(bytes);
            let code = bytes.u32().unwrap_or_default();
            let text = bytes.string().unwrap_or_default();
            return Err(self.failed(format!("error 0x{code:04x}: {text}")));
        }
        Ok(answer)
    }

    fn exchange(&mut self, opcode: u8, body: &[u8]) -> std::io::Result<(u8, Vec<u8>)> {
        let invalid = |text: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, text);
        let size = u32::try_from(body.len()).map_err(|_| invalid("the request is too long"))?;
        let mut frame = vec![VERSION, 0, 0, 0, opcode];
        frame.extend(size.to_be_bytes());
        frame.extend(body);
        self.stream.write_all(&frame)?;
        let mut head = [0; HEADER_SIZE];
        self.stream.read_exact(&mut head)?;
        let [version, _, _, _, opcode, size @ ..] = head;
        let size = u32::from_be_bytes(size);
        if version != VERSION | ANSWER || size > ANSWER_SIZE_MAX {
            return Err(invalid("the answer is not of version 4 of the protocol, or too long"));
        }
        let mut answer = vec![0; usize::try_from(size).unwrap_or(0)];
        self.stream.read_exact(&mut answer)?;
        Ok((opcode, answer))
    }

    fn failed(&self, reason: String) -> LabError {
        LabError::program(name(self.address), reason)
    }
}

fn name(address: SocketAddrV4) -> String {
    format!("Cassandra at {address}")
}

/// `None` if the bytes end early or have an unknown form.
fn page(bytes: &mut Bytes<'_>) -> Option<Page> {
    if bytes.u32()? != ROWS {
        return Some(Page { rows: Vec::new(), next: None });
    }
    let (flags, columns) = (bytes.u32()?, bytes.u32()?);
    let (is_global, has_more, has_no_columns) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    let next = if has_more { Some(bytes.cell()??) } else { None };
    if is_global && !has_no_columns {
        bytes.string()?;
        bytes.string()?;
    }
    for _ in 0..if has_no_columns { 0 } else { columns } {
        if !is_global {
            bytes.string()?;
            bytes.string()?;
        }
        bytes.string()?;
        skip_type(bytes, 0)?;
    }
    let count = bytes.u32()?;
    // Each cell has at least its size, so that the bytes bound the rows.
    if columns == 0 {
        return (count == 0).then_some(Page { rows: Vec::new(), next });
    }
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut row = Vec::new();
        for _ in 0..columns {
            row.push(bytes.cell()?);
        }
        rows.push(row);
    }
    Some(Page { rows, next })
}

/// Types of user-defined types and tuples are not used by the tables that are asked for.
fn skip_type(bytes: &mut Bytes<'_>, depth: u32) -> Option<()> {
    let inner = match bytes.u16()? {
        0x0000 => return bytes.string().map(|_| ()),
        0x0020 | 0x0022 => 1,
        0x0021 => 2,
        kind if kind < 0x0020 => 0,
        _ => return None,
    };
    for _ in 0..inner {
        skip_type(bytes, (depth < TYPE_DEPTH_MAX).then_some(depth + 1)?)?;
    }
    Some(())
}

/// The rest of an answer.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    fn string(&mut self) -> Option<String> {
        let size = usize::from(self.u16()?);
        self.take(size).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// A negative size means null.
    fn cell(&mut self) -> Option<Option<Vec<u8>>> {
        let size = self.u32()?;
        match i32::from_be_bytes(size.to_be_bytes()) {
            ..0 => Some(None),
            _ => self.take(usize::try_from(size).ok()?).map(|bytes| Some(bytes.to_vec())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&u16::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
    }

    /// Two columns, a text and a set of texts, with one row; the second cell is null.
    fn answer(next: Option<&[u8]>) -> Vec<u8> {
        let ints = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
        let columns = [text("a"), vec![0, 0x0d], text("b"), vec![0, 0x22, 0, 0x0d]].concat();
        let cells = [ints(&[1, 2]), b"xy".to_vec(), ints(&[u32::MAX])].concat();
        let flags = if next.is_some() { 3 } else { 1 };
        let state = next.map(|next| [ints(&[u32::try_from(next.len()).unwrap()]), next.to_vec()].concat());
        [ints(&[ROWS, flags, 2]), state.unwrap_or_default(), text("k"), text("t"), columns, cells].concat()
    }

    #[test]
    fn rows_are_read() {
        let rows = vec![vec![Some(b"xy".to_vec()), None]];
        assert_eq!(page(&mut Bytes(&answer(None))), Some(Page { rows: rows.clone(), next: None }));
        let next = Some(b"there".to_vec());
        assert_eq!(page(&mut Bytes(&answer(Some(b"there")))), Some(Page { rows, next }));
        let none = Page { rows: Vec::new(), next: None };
        assert_eq!(page(&mut Bytes(&1_u32.to_be_bytes())), Some(none));
    }

    #[test]
    fn no_bytes_panic() {
        let whole = answer(Some(b"there"));
        for end in 0..whole.len() {
            assert_eq!(page(&mut Bytes(&whole[..end])), None, "{end}");
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[end] = value;
                let _ = page(&mut Bytes(&damaged));
            }
        }
        let no_columns = [ROWS, 4, 0, u32::MAX].map(u32::to_be_bytes).concat();
        assert_eq!(page(&mut Bytes(&no_columns)), None);
        let nested = [0, 0x20].repeat(1_000);
        assert_eq!(skip_type(&mut Bytes(&nested), 0), None);
    }
}
