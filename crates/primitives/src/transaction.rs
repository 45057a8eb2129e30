//! Transactions as views over a buffer and its tables. Input: bytes. Output: fields on demand, as slices of the buffer.
//!
//! Invariants: a [`Tx`] exists only over tables filled by this crate's parser, so every offset is inside the buffer;
//! ids are computed once, when parsing. Views are `Copy` and cost nothing. No consensus rule is checked here.

use crate::ids::{Amount, OutPoint, Txid, Wtxid};
use crate::limits::BLOCK_BUFFER_SIZE_MAX;
use crate::reader::{ParseError, ParseErrorKind, Reader, compact_size_len};
use crate::table::{InputEntry, OutputEntry, Tables, TxEntry};
use lydian_hash::{Message, sha256d_many};

/// A transaction that owns its bytes.
#[derive(Clone, Debug)]
pub struct Transaction {
    bytes: Box<[u8]>,
    tables: Tables,
}

impl Transaction {
    /// Parses exactly one transaction, with or without witness. Fails if bytes are left over.
    pub fn parse(bytes: impl Into<Box<[u8]>>) -> Result<Transaction, ParseError> {
        Transaction::parse_with(bytes.into(), Tables::read_transaction)
    }

    /// Parses exactly one transaction without witness, which may have outputs but no inputs. Core's `TX_NO_WITNESS`;
    /// for transactions under construction.
    pub fn parse_without_witness(bytes: impl Into<Box<[u8]>>) -> Result<Transaction, ParseError> {
        Transaction::parse_with(bytes.into(), Tables::read_without_witness)
    }

    fn parse_with(
        bytes: Box<[u8]>,
        read: fn(&mut Tables, &mut Reader<'_>) -> Result<(), ParseError>,
    ) -> Result<Transaction, ParseError> {
        check_buffer_size(&bytes)?;
        let mut tables = Tables::for_one();
        let mut reader = Reader::new(&bytes);
        read(&mut tables, &mut reader)?;
        reader.finish()?;
        fill_ids(&bytes, &mut tables);
        Ok(Transaction { bytes, tables })
    }

    pub fn view(&self) -> Tx<'_> {
        Tx::new(&self.bytes, &self.tables, 0)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Skips one transaction at the cursor, with or without witness. Only parses, for messages that hold several.
pub fn skip(reader: &mut Reader<'_>) -> Result<(), ParseError> {
    skip_with(reader, Tables::read_transaction)
}

/// [`skip`] for a transaction without witness, which may have outputs but no inputs.
pub fn skip_without_witness(reader: &mut Reader<'_>) -> Result<(), ParseError> {
    skip_with(reader, Tables::read_without_witness)
}

fn skip_with(
    reader: &mut Reader<'_>,
    read: fn(&mut Tables, &mut Reader<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    match reader.offset() + reader.remaining() {
        size if size > BLOCK_BUFFER_SIZE_MAX => reader.error(ParseErrorKind::BufferTooLarge { size }),
        _ => read(&mut Tables::default(), reader),
    }
}

pub(crate) fn check_buffer_size(bytes: &[u8]) -> Result<(), ParseError> {
    match bytes.len() {
        size if size > BLOCK_BUFFER_SIZE_MAX => {
            Err(ParseError { offset: 0, kind: ParseErrorKind::BufferTooLarge { size } })
        }
        _ => Ok(()),
    }
}

/// Computes all txids and wtxids in two batches. A wtxid is hashed only if the transaction has a witness.
pub(crate) fn fill_ids(bytes: &[u8], tables: &mut Tables) {
    let slice = |from: u32, to: u32| &bytes[from as usize..to as usize];
    let stripped = |tx: &TxEntry| {
        if tx.has_witness {
            Message::new([slice(tx.start, tx.start + 4), slice(tx.body_start, tx.body_end), slice(tx.end - 4, tx.end)])
        } else {
            Message::new([slice(tx.start, tx.end), &[], &[]])
        }
    };
    let messages: Vec<_> = tables.txs.iter().map(stripped).collect();
    let mut digests = vec![[0; 32]; messages.len()];
    sha256d_many(&messages, &mut digests);

    let with_witness: Vec<usize> = (0..tables.txs.len()).filter(|&i| tables.txs[i].has_witness).collect();
    let whole = |&i: &usize| Message::new([slice(tables.txs[i].start, tables.txs[i].end), &[], &[]]);
    let messages: Vec<_> = with_witness.iter().map(whole).collect();
    let mut witness_digests = vec![[0; 32]; messages.len()];
    sha256d_many(&messages, &mut witness_digests);

    for (tx, digest) in tables.txs.iter_mut().zip(digests) {
        tx.txid = Txid(digest);
        tx.wtxid = Wtxid(digest);
    }
    for (index, digest) in with_witness.into_iter().zip(witness_digests) {
        tables.txs[index].wtxid = Wtxid(digest);
    }
}

/// A view of one transaction: Core's `CTransaction`.
#[derive(Clone, Copy, Debug)]
pub struct Tx<'a> {
    bytes: &'a [u8],
    entry: &'a TxEntry,
    inputs: &'a [InputEntry],
    outputs: &'a [OutputEntry],
}

impl<'a> Tx<'a> {
    pub(crate) fn new(bytes: &'a [u8], tables: &'a Tables, index: usize) -> Tx<'a> {
        let entry = &tables.txs[index];
        let run = |first: u32, count: u32| first as usize..(first + count) as usize;
        Tx {
            bytes,
            entry,
            inputs: &tables.inputs[run(entry.first_input, entry.input_count)],
            outputs: &tables.outputs[run(entry.first_output, entry.output_count)],
        }
    }

    fn slice(&self, from: u32, to: u32) -> &'a [u8] {
        &self.bytes[from as usize..to as usize]
    }

    fn u32_at(&self, offset: u32) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(self.slice(offset, offset + 4));
        u32::from_le_bytes(word)
    }

    pub fn txid(&self) -> Txid {
        self.entry.txid
    }

    pub fn wtxid(&self) -> Wtxid {
        self.entry.wtxid
    }

    /// Unsigned, as consensus compares it (BIP-0068; checklist 31).
    pub fn version(&self) -> u32 {
        self.u32_at(self.entry.start)
    }

    #[inline]
    pub fn lock_time(&self) -> u32 {
        self.u32_at(self.entry.end - 4)
    }

    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// Panics if `index` is not below [`Tx::input_count`].
    #[inline]
    pub fn input(&self, index: usize) -> Input<'a> {
        self.view_input(&self.inputs[index])
    }

    /// Panics if `index` is not below [`Tx::output_count`].
    #[inline]
    pub fn output(&self, index: usize) -> Output<'a> {
        self.view_output(&self.outputs[index])
    }

    pub fn inputs(self) -> impl ExactSizeIterator<Item = Input<'a>> + Clone {
        self.inputs.iter().map(move |entry| self.view_input(entry))
    }

    pub fn outputs(self) -> impl ExactSizeIterator<Item = Output<'a>> + Clone {
        self.outputs.iter().map(move |entry| self.view_output(entry))
    }

    #[inline]
    fn view_input(&self, entry: &InputEntry) -> Input<'a> {
        let mut txid = [0; 32];
        txid.copy_from_slice(self.slice(entry.start, entry.start + 32));
        Input {
            prevout: OutPoint { txid: Txid(txid), vout: self.u32_at(entry.start + 32) },
            script_sig: self.slice(entry.script_start, entry.script_end),
            sequence: self.u32_at(entry.script_end),
            witness: Witness {
                bytes: self.slice(entry.witness_start, entry.witness_end),
                count: entry.witness_count as usize,
            },
        }
    }

    #[inline]
    fn view_output(&self, entry: &OutputEntry) -> Output<'a> {
        let mut value = [0; 8];
        value.copy_from_slice(self.slice(entry.start, entry.start + 8));
        Output {
            value: Amount(i64::from_le_bytes(value)),
            script_pubkey: self.slice(entry.script_start, entry.script_end),
        }
    }

    /// The serialised outputs without their count, as hashed by BIP-0143 and BIP-0341.
    #[inline]
    pub fn outputs_bytes(&self) -> &'a [u8] {
        match (self.outputs.first(), self.outputs.last()) {
            (Some(first), Some(last)) => self.slice(first.start, last.script_end),
            _ => &[],
        }
    }

    /// One serialised output.
    pub fn output_bytes(&self, index: usize) -> &'a [u8] {
        self.slice(self.outputs[index].start, self.outputs[index].script_end)
    }

    /// The serialised outpoint of one input: 36 bytes.
    pub fn prevout_bytes(&self, index: usize) -> &'a [u8] {
        self.slice(self.inputs[index].start, self.inputs[index].start + 36)
    }

    /// The serialised sequence of one input: 4 bytes.
    pub fn sequence_bytes(&self, index: usize) -> &'a [u8] {
        self.slice(self.inputs[index].script_end, self.inputs[index].script_end + 4)
    }

    /// The serialised transaction, with its witness.
    pub fn bytes(&self) -> &'a [u8] {
        self.slice(self.entry.start, self.entry.end)
    }

    /// Offset of the transaction in its buffer, in bytes.
    pub fn offset(&self) -> u32 {
        self.entry.start
    }

    /// Core's `IsCoinBase`: exactly one input, whose prevout is null.
    #[inline]
    pub fn is_coinbase(&self) -> bool {
        self.inputs.len() == 1 && self.input(0).prevout.is_null()
    }

    pub fn has_witness(&self) -> bool {
        self.entry.has_witness
    }

    /// Serialised size in bytes, with the witness.
    pub fn total_size(&self) -> usize {
        (self.entry.end - self.entry.start) as usize
    }

    /// Serialised size in bytes, without the witness.
    pub fn base_size(&self) -> usize {
        if self.entry.has_witness {
            8 + (self.entry.body_end - self.entry.body_start) as usize
        } else {
            self.total_size()
        }
    }

    /// Weight units (BIP-0141): three times the base size plus the total size.
    pub fn weight(&self) -> usize {
        3 * self.base_size() + self.total_size()
    }
}

/// A view of one input: Core's `CTxIn`.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub prevout: OutPoint,
    pub script_sig: &'a [u8],
    pub sequence: u32,
    pub witness: Witness<'a>,
}

/// A view of one output: Core's `CTxOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    pub value: Amount,
    pub script_pubkey: &'a [u8],
}

/// The witness stack of one input, still serialised.
#[derive(Clone, Copy, Debug, Default)]
pub struct Witness<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Witness<'a> {
    /// Checks that `count` items fill `bytes` exactly. For witnesses that do not come with a transaction.
    pub fn parse(bytes: &'a [u8], count: usize) -> Result<Witness<'a>, ParseError> {
        let mut reader = Reader::new(bytes);
        for _ in 0..count {
            reader.var_bytes()?;
        }
        reader.finish()?;
        Ok(Witness { bytes, count })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> WitnessIter<'a> {
        WitnessIter { reader: Reader::new(self.bytes), left: self.count }
    }

    /// Serialised size of the whole stack in bytes, with its count: the size on which the tapscript sigops budget is
    /// based (BIP-0342).
    pub fn serialized_size(&self) -> usize {
        compact_size_len(self.count) + self.bytes.len()
    }
}

/// Iterator over the items of a [`Witness`], first to last.
#[derive(Clone, Debug)]
pub struct WitnessIter<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Iterator for WitnessIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        self.reader.var_bytes().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for WitnessIter<'_> {}
