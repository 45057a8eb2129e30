//! The table of events by script: what a segment's blocks paid to a script, and what they spent of it.
//!
//! Input: for each script of the blocks its *creates* (outputs that pay to it, with the spending transaction, or with
//! the value if no block of the segment spends it) and its *external spends* (outputs of earlier segments that these
//! blocks spend). Output: the events of a script. A script is known by its key, a salted hash of 64 bits. The page of a
//! key is computed: `key * pages >> 64`. A page has its keys first, so that a key that is missing costs no more.
//!
//! An entry of more than [`INLINE_MAX`] events is in pages of its own, in a second table, each of which is decoded by
//! itself. Everything follows from the chain: a merge of segments gives the bytes of a segment made at once. Size: a
//! script with one output, spent in the segment, takes about 15 bytes. Cost of a lookup: the keys of one page and half
//! of its entries.

use super::bits::{BitReader, BitWriter};
use super::pages::{Facts, PAGES_AT_ONCE, PageSink, PageSource, page_of_each};
use crate::error::IndexError;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events in a page on average: about 4 kB.
const EVENTS_PER_PAGE: u64 = 360;

/// The most events of an entry that is in the page of its key.
const INLINE_MAX: usize = 64;

/// Events in a page of a longer entry.
const EVENTS_PER_LIST_PAGE: usize = 256;

/// An output of the segment's blocks. Ordered by number and output index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Create {
    /// The number of the transaction.
    pub(super) number: u32,
    pub(super) vout: u32,
    pub(super) fate: Fate,
}

/// What became of an output within the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// The number of the transaction that spends it; its own, if another coin replaced it (BIP-0030).
    Spent(u32),
    /// Not spent, with its value in satoshis.
    Unspent(u64),
}

/// An output of an earlier segment that a block of this one spends. Ordered by number and output index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct External {
    /// The number of the transaction that created it.
    pub(super) number: u32,
    pub(super) vout: u32,
    /// The number of the transaction that spends it.
    pub(super) spender: u32,
}

/// The events of a script in a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) creates: Vec<Create>,
    pub(super) externals: Vec<External>,
}

impl Entry {
    fn len(&self) -> usize {
        self.creates.len() + self.externals.len()
    }

    /// The outputs that it has events of: creates first, each kind in its order.
    fn outputs(&self) -> impl Iterator<Item = (u32, u32)> {
        let creates = self.creates.iter().map(|create| (create.number, create.vout));
        creates.chain(self.externals.iter().map(|external| (external.number, external.vout)))
    }

    /// Adds the events of blocks above: an external spend of one of these creates is joined with it. Returns false if
    /// a spend names an output from `first` on that is missing, or if the blocks are not above.
    pub(super) fn append(&mut self, above: Entry, first: u32) -> bool {
        for external in above.externals {
            if external.number < first {
                self.externals.push(external);
                continue;
            }
            let place = self
                .creates
                .binary_search_by_key(&(external.number, external.vout), |create| (create.number, create.vout));
            match place.ok().and_then(|place| self.creates.get_mut(place)) {
                Some(Create { fate: fate @ Fate::Unspent(_), .. }) => *fate = Fate::Spent(external.spender),
                _ => return false,
            }
        }
        self.creates.extend(above.creates);
        self.externals.sort_unstable();
        self.creates.is_sorted()
    }
}

/// A table of events: the pages of keys, and those of long entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    pub(super) keys: &'a dyn PageSource,
    pub(super) lists: &'a dyn PageSource,
}

/// An entry as its page has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Inline(Entry),
    List(List),
}

/// A long entry: its place among the pages of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// The page that has the key.
    key_page: u32,
    first_page: u32,
    creates: u32,
    externals: u32,
}

impl List {
    /// The pages of its creates; those of its external spends follow.
    fn create_pages(&self) -> u32 {
        self.creates.div_ceil(page_events())
    }

    fn pages(&self) -> u32 {
        self.create_pages().saturating_add(self.externals.div_ceil(page_events()))
    }
}

fn page_events() -> u32 {
    u32::try_from(EVENTS_PER_LIST_PAGE).unwrap_or(u32::MAX)
}

const DAMAGED: &str = "a page of events cannot be decoded";
const DAMAGED_LIST: &str = "a page of a list of events cannot be decoded";
const NO_CREATE: &str = "an output is spent that the tables do not have";

impl Table<'_> {
    /// The events of a key.
    #[cfg(test)]
    pub(super) fn find(&self, key: u64) -> Result<Option<Stored>, IndexError> {
        Ok(find_in_all(&[*self], key)?.pop().flatten())
    }

    /// The events of a key whose page this is.
    fn find_in(&self, key: u64, page: u32, bytes: &[u8]) -> Result<Option<Stored>, IndexError> {
        let damaged = || self.keys.damaged(page, DAMAGED);
        let mut place = None;
        let mut reader = PageReader::new(bytes, page, self.keys.facts(), |at, found| {
            if found == key {
                place = Some(at);
            }
        })
        .ok_or_else(damaged)?;
        match place {
            Some(before) => reader.nth(before).ok_or_else(damaged).map(Some),
            None => Ok(None),
        }
    }

    /// Hands out the events of a long entry, a page at a time: creates first, each kind in its order.
    fn visit(&self, list: &List, visit: &mut dyn FnMut(Entry)) -> Result<(), IndexError> {
        for from in (0..list.pages()).step_by(PAGES_AT_ONCE as usize) {
            let some = from..list.pages().min(from.saturating_add(PAGES_AT_ONCE));
            let some: Vec<u32> = some.map(|number| list.first_page.saturating_add(number)).collect();
            for (page, bytes) in some.iter().zip(self.lists.list_pages(list.key_page, &some)?) {
                visit(self.decoded(*page, &bytes)?);
            }
        }
        Ok(())
    }

    /// A page of a list, counted from its first.
    fn list_page(&self, list: &List, page: u32) -> Result<Entry, IndexError> {
        let page = list.first_page.saturating_add(page);
        let bytes = self.lists.list_pages(list.key_page, &[page])?.pop();
        self.decoded(page, &bytes.unwrap_or_default())
    }

    fn decoded(&self, page: u32, bytes: &[u8]) -> Result<Entry, IndexError> {
        read_list_page(bytes, self.lists.facts()).ok_or_else(|| self.lists.damaged(page, DAMAGED_LIST))
    }

    /// The events of an entry that are those of the outputs in `wanted`, which are sorted. Of a long entry, only the
    /// pages that may have them are read.
    pub(super) fn load_some(&self, stored: Stored, wanted: &[(u32, u32)]) -> Result<Entry, IndexError> {
        let list = match stored {
            Stored::Inline(mut entry) => {
                retain(&mut entry, wanted);
                return Ok(entry);
            }
            Stored::List(list) => list,
        };
        let mut all = Entry::default();
        let kinds = [(0, list.create_pages()), (list.create_pages(), list.pages())];
        for (first, end) in kinds {
            let (mut left, mut page) = (wanted, first);
            while let Some(next) = left.first().filter(|_| page < end) {
                page = self.page_with(&list, page, end, next)?;
                let mut entry = self.list_page(&list, page)?;
                let last = entry.outputs().last();
                retain(&mut entry, left);
                all.creates.extend(entry.creates);
                all.externals.extend(entry.externals);
                left = &left[left.partition_point(|one| last.is_some_and(|last| *one <= last))..];
                page += 1;
            }
        }
        let is_ordered = all.creates.is_sorted() && all.externals.is_sorted();
        if is_ordered { Ok(all) } else { Err(self.lists.damaged(list.first_page, DAMAGED_LIST)) }
    }

    /// The first page from `page` on whose last event is not below an output; the last page if there is none. Pages are
    /// counted from the first of the list.
    fn page_with(&self, list: &List, page: u32, end: u32, output: &(u32, u32)) -> Result<u32, IndexError> {
        let (mut from, mut to) = (page, end - 1);
        while from < to {
            let middle = from + (to - from) / 2;
            let last = self.list_page(list, middle)?.outputs().last();
            if last.is_some_and(|last| last < *output) { from = middle + 1 } else { to = middle }
        }
        Ok(from)
    }

    /// All events of an entry.
    pub(super) fn load(&self, stored: Stored) -> Result<Entry, IndexError> {
        let list = match stored {
            Stored::Inline(entry) => return Ok(entry),
            Stored::List(list) => list,
        };
        let mut all = Entry::default();
        self.visit(&list, &mut |page| {
            all.creates.extend(page.creates);
            all.externals.extend(page.externals);
        })?;
        let is_whole = (all.creates.len(), all.externals.len()) == (list.creates as usize, list.externals as usize);
        let is_ordered = all.creates.is_sorted() && all.externals.is_sorted();
        if is_whole && is_ordered { Ok(all) } else { Err(self.lists.damaged(list.first_page, DAMAGED_LIST)) }
    }
}

/// The events of a key in each of several tables.
pub(super) fn find_in_all(tables: &[Table<'_>], key: u64) -> Result<Vec<Option<Stored>>, IndexError> {
    let page = |table: &Table<'_>| {
        let page = Some(table.keys.facts().pages).filter(|pages| *pages > 0).map(|pages| page_of(key, pages));
        page.filter(|page| table.keys.may_have(*page, key))
    };
    // Asked once: filters may be loaded and removed while the pages are read.
    let numbers: Vec<Option<u32>> = tables.iter().map(page).collect();
    let wanted: Vec<_> =
        tables.iter().zip(&numbers).filter_map(|(table, number)| Some((table.keys, (*number)?))).collect();
    let mut pages = page_of_each(&wanted)?.into_iter();
    let one = |(table, number): (&Table<'_>, &Option<u32>)| {
        let Some(page) = *number else { return Ok(None) };
        let bytes = pages.next().ok_or_else(|| table.keys.damaged(page, "the page was not read"))?;
        table.find_in(key, page, &bytes)
    };
    tables.iter().zip(&numbers).map(one).collect()
}

/// The events of these outputs, sorted by number and output index.
fn retain(entry: &mut Entry, wanted: &[(u32, u32)]) {
    let is_wanted = |number: u32, vout: u32| wanted.binary_search(&(number, vout)).is_ok();
    entry.creates.retain(|create| is_wanted(create.number, create.vout));
    entry.externals.retain(|external| is_wanted(external.number, external.vout));
}

/// The number of pages of a table with so many events.
pub(super) fn pages_of(events: u64) -> u32 {
    u32::try_from(events.div_ceil(EVENTS_PER_PAGE)).unwrap_or(u32::MAX)
}

/// The page of a key. There is at least one.
fn page_of(key: u64, pages: u32) -> u32 {
    u32::try_from((u128::from(key) * u128::from(pages)) >> 64).unwrap_or(u32::MAX)
}

/// The first key of a page; that of the page behind the last one ends the keys.
fn first_key(page: u32, pages: u32) -> u128 {
    (u128::from(page) << 64).div_ceil(u128::from(pages))
}

/// The low bits of the Rice code of the differences of so many keys in a page.
fn rice_width(page: u32, pages: u32, keys: u64) -> u32 {
    let interval = first_key(page + 1, pages) - first_key(page, pages);
    (interval / u128::from(keys + 1)).max(1).ilog2().min(RICE_WIDTH_MAX)
}

/// The bits of a number that the writer takes at once.
const RICE_WIDTH_MAX: u32 = 56;

/// The numbers of a page in few bits: those of its segment relative to the first, those before as they are.
#[derive(Clone, Copy, Debug)]
struct Widths {
    first: u32,
    /// The bits of a number of the segment.
    own: u32,
    /// The bits of a number below.
    external: u32,
}

const WIDTH_BITS: u32 = 6;

impl Widths {
    fn of<'a>(first: u32, entries: impl Iterator<Item = &'a Entry>) -> Widths {
        let (mut own, mut external) = (0, 0);
        for entry in entries {
            let spender = |create: &Create| match create.fate {
                Fate::Spent(spender) => spender,
                Fate::Unspent(_) => create.number,
            };
            // A spender is above what it spends.
            own = entry.creates.iter().map(|create| spender(create) - first).fold(own, u32::max);
            own = entry.externals.iter().map(|spent| spent.spender - first).fold(own, u32::max);
            external = entry.externals.iter().map(|spent| spent.number).fold(external, u32::max);
        }
        Widths { first, own: bit_length(u64::from(own)), external: bit_length(u64::from(external)) }
    }

    fn write(&self, writer: &mut BitWriter) {
        writer.write(u64::from(self.own), WIDTH_BITS);
        writer.write(u64::from(self.external), WIDTH_BITS);
    }

    fn read(reader: &mut BitReader<'_>, first: u32) -> Option<Widths> {
        let mut width =
            || reader.read(WIDTH_BITS).and_then(|width| u32::try_from(width).ok()).filter(|width| *width <= 32);
        Some(Widths { first, own: width()?, external: width()? })
    }

    fn write_own(&self, number: u32, writer: &mut BitWriter) {
        writer.write(u64::from(number - self.first), self.own);
    }

    fn read_own(&self, reader: &mut BitReader<'_>) -> Option<u32> {
        u32::try_from(reader.read(self.own)?).ok()?.checked_add(self.first)
    }

    fn write_create(&self, create: &Create, before: Option<u32>, writer: &mut BitWriter) {
        match before {
            None => self.write_own(create.number, writer),
            Some(before) => write_sized(u64::from(create.number - before), writer),
        }
        write_small(create.vout, writer);
        match create.fate {
            Fate::Spent(spender) => write_sized(u64::from(spender - create.number), writer),
            Fate::Unspent(value) => write_sized(value, writer),
        }
    }

    fn read_create(&self, before: Option<u32>, is_spent: bool, reader: &mut BitReader<'_>) -> Option<Create> {
        let number = match before {
            None => self.read_own(reader)?,
            Some(before) => before.checked_add(read_sized_u32(reader)?)?,
        };
        let vout = read_small(reader)?;
        let fate = match is_spent {
            true => Fate::Spent(number.checked_add(read_sized_u32(reader)?)?),
            false => Fate::Unspent(read_sized(reader)?),
        };
        Some(Create { number, vout, fate })
    }

    fn write_external(&self, external: &External, before: Option<u32>, writer: &mut BitWriter) {
        match before {
            None => writer.write(u64::from(external.number), self.external),
            Some(before) => write_sized(u64::from(external.number - before), writer),
        }
        write_small(external.vout, writer);
        self.write_own(external.spender, writer);
    }

    fn read_external(&self, before: Option<u32>, reader: &mut BitReader<'_>) -> Option<External> {
        let number = match before {
            None => u32::try_from(reader.read(self.external)?).ok()?,
            Some(before) => before.checked_add(read_sized_u32(reader)?)?,
        };
        Some(External { number, vout: read_small(reader)?, spender: self.read_own(reader)? })
    }

    /// The numbers of creates and external spends, then each of them; a bit of a create says whether it is spent.
    fn write_events(&self, creates: &[Create], externals: &[External], writer: &mut BitWriter) {
        write_small(count(creates.len()), writer);
        write_small(count(externals.len()), writer);
        let mut before = None;
        for create in creates {
            writer.write(u64::from(matches!(create.fate, Fate::Spent(_))), 1);
            self.write_create(create, before, writer);
            before = Some(create.number);
        }
        before = None;
        for external in externals {
            self.write_external(external, before, writer);
            before = Some(external.number);
        }
    }

    /// `None` if there are more than `most` events.
    fn read_events(&self, most: usize, reader: &mut BitReader<'_>) -> Option<Entry> {
        let (creates, externals) = (read_small(reader)? as usize, read_small(reader)? as usize);
        let mut entry = Entry::default();
        if creates.checked_add(externals)? > most {
            return None;
        }
        for _ in 0..creates {
            let before = entry.creates.last().map(|create| create.number);
            let is_spent = reader.read(1)? == 1;
            entry.creates.push(self.read_create(before, is_spent, reader)?);
        }
        for _ in 0..externals {
            let before = entry.externals.last().map(|external| external.number);
            entry.externals.push(self.read_external(before, reader)?);
        }
        (entry.creates.is_sorted() && entry.externals.is_sorted()).then_some(entry)
    }
}

/// The four forms of an entry.
const ONE_SPENT: u64 = 0;
const ONE_UNSPENT: u64 = 1;
const ONE_EXTERNAL: u64 = 2;
const SEVERAL: u64 = 3;
const FORM_BITS: u32 = 2;

fn write_entry(widths: &Widths, stored: &Stored, writer: &mut BitWriter) {
    let entry = match stored {
        Stored::Inline(entry) => entry,
        Stored::List(list) => {
            // An entry without events is none: it tells a list.
            writer.write(SEVERAL, FORM_BITS);
            write_small(0, writer);
            write_small(0, writer);
            [list.first_page, list.creates, list.externals]
                .iter()
                .for_each(|number| write_sized(u64::from(*number), writer));
            return;
        }
    };
    match (&entry.creates[..], &entry.externals[..]) {
        ([create], []) => {
            let is_spent = matches!(create.fate, Fate::Spent(_));
            writer.write(if is_spent { ONE_SPENT } else { ONE_UNSPENT }, FORM_BITS);
            widths.write_create(create, None, writer);
        }
        ([], [external]) => {
            writer.write(ONE_EXTERNAL, FORM_BITS);
            widths.write_external(external, None, writer);
        }
        (creates, externals) => {
            writer.write(SEVERAL, FORM_BITS);
            widths.write_events(creates, externals, writer);
        }
    }
}

/// `page`: the one that has the entry.
fn read_entry(page: u32, widths: &Widths, reader: &mut BitReader<'_>) -> Option<Stored> {
    let mut entry = Entry::default();
    match reader.read(FORM_BITS)? {
        form @ (ONE_SPENT | ONE_UNSPENT) => entry.creates.push(widths.read_create(None, form == ONE_SPENT, reader)?),
        ONE_EXTERNAL => entry.externals.push(widths.read_external(None, reader)?),
        _ => {
            entry = widths.read_events(INLINE_MAX, reader)?;
            if entry.len() == 0 {
                let mut next = || read_sized_u32(reader);
                let (first_page, creates, externals) = (next()?, next()?, next()?);
                return Some(Stored::List(List { key_page: page, first_page, creates, externals }));
            }
        }
    }
    Some(Stored::Inline(entry))
}

/// Reads what [`read_entry`] does, and keeps nothing of it.
fn skip_entry(widths: &Widths, reader: &mut BitReader<'_>) -> Option<()> {
    match reader.read(FORM_BITS)? {
        form @ (ONE_SPENT | ONE_UNSPENT) => drop(widths.read_create(None, form == ONE_SPENT, reader)?),
        ONE_EXTERNAL => drop(widths.read_external(None, reader)?),
        _ => {
            let (creates, externals) = (read_small(reader)? as usize, read_small(reader)? as usize);
            let events = creates.checked_add(externals).filter(|events| *events <= INLINE_MAX)?;
            if events == 0 {
                for _ in 0..3 {
                    read_sized_u32(reader)?;
                }
            }
            let mut before = None;
            for _ in 0..creates {
                let is_spent = reader.read(1)? == 1;
                before = Some(widths.read_create(before, is_spent, reader)?.number);
            }
            before = None;
            for _ in 0..externals {
                before = Some(widths.read_external(before, reader)?.number);
            }
        }
    }
    Some(())
}

/// A page whose keys are read.
#[derive(Debug)]
struct PageReader<'a> {
    page: u32,
    widths: Widths,
    reader: BitReader<'a>,
}

impl<'a> PageReader<'a> {
    /// Visits the keys in their order.
    fn new(bytes: &'a [u8], page: u32, facts: &Facts, mut visit: impl FnMut(u64, u64)) -> Option<PageReader<'a>> {
        let mut reader = BitReader::new(bytes);
        let entries = reader.read(16)?;
        let widths = Widths::read(&mut reader, u32::try_from(facts.first).ok()?)?;
        let rice = rice_width(page, facts.pages, entries);
        let (mut next, end) = (first_key(page, facts.pages), first_key(page + 1, facts.pages));
        for at in 0..entries {
            let key = next + u128::from(reader.read_rice(rice)?);
            visit(at, u64::try_from(key).ok().filter(|_| key < end)?);
            next = key + 1;
        }
        Some(PageReader { page, widths, reader })
    }

    /// The entry behind so many others.
    fn nth(&mut self, before: u64) -> Option<Stored> {
        for _ in 0..before {
            skip_entry(&self.widths, &mut self.reader)?;
        }
        read_entry(self.page, &self.widths, &mut self.reader)
    }

    /// The entries of these keys, which are all of the page.
    fn all(mut self, keys: Vec<u64>) -> Option<Vec<(u64, Stored)>> {
        let Self { page, widths, reader } = &mut self;
        keys.into_iter().map(|key| Some((key, read_entry(*page, widths, reader)?))).collect()
    }
}

/// The keys of a page. `None` if it cannot be decoded.
pub(super) fn keys_of(page: u32, bytes: &[u8], facts: &Facts) -> Option<Vec<u64>> {
    let mut keys = Vec::new();
    PageReader::new(bytes, page, facts, |_, key| keys.push(key))?;
    Some(keys)
}

fn read_list_page(bytes: &[u8], facts: &Facts) -> Option<Entry> {
    let mut reader = BitReader::new(bytes);
    let widths = Widths::read(&mut reader, u32::try_from(facts.first).ok()?)?;
    widths.read_events(EVENTS_PER_LIST_PAGE, &mut reader)
}

/// Writes the two tables of a segment, from its entries in the order of their keys.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    keys: &'a mut dyn PageSink,
    lists: &'a mut dyn PageSink,
    facts: Facts,
    first: u32,
    page: u32,
    entries: Vec<(u64, Stored)>,
    list_pages: u32,
    list_rows: u64,
}

impl<'a> Writer<'a> {
    /// Tables of blocks whose first transaction has the number `first`. `events` is the number of outputs that have an
    /// entry and of inputs in these blocks: it is the same in a merge, where a spend is joined with its create.
    pub(super) fn new(keys: &'a mut dyn PageSink, lists: &'a mut dyn PageSink, first: u32, events: u64) -> Writer<'a> {
        let facts = Facts { first: u64::from(first), rows: events, pages: pages_of(events) };
        Writer { keys, lists, facts, first, page: 0, entries: Vec::new(), list_pages: 0, list_rows: 0 }
    }

    /// Adds the events of the next key.
    pub(super) fn push(&mut self, key: u64, entry: Entry) -> Result<(), IndexError> {
        debug_assert!(entry.len() > 0 && entry.creates.is_sorted() && entry.externals.is_sorted());
        let page = page_of(key, self.facts.pages);
        while self.page < page {
            self.end_page()?;
        }
        let stored =
            if entry.len() > INLINE_MAX { Stored::List(self.push_list(&entry)?) } else { Stored::Inline(entry) };
        self.entries.push((key, stored));
        Ok(())
    }

    /// Writes the last pages. The tables are durable on return.
    pub(super) fn finish(mut self) -> Result<(), IndexError> {
        while self.page < self.facts.pages {
            self.end_page()?;
        }
        self.keys.finish(&self.facts)?;
        self.lists.finish(&Facts { first: self.facts.first, rows: self.list_rows, pages: self.list_pages })
    }

    fn push_list(&mut self, entry: &Entry) -> Result<List, IndexError> {
        let first_page = self.list_pages;
        for creates in entry.creates.chunks(EVENTS_PER_LIST_PAGE) {
            self.push_list_page(Entry { creates: creates.to_vec(), externals: Vec::new() })?;
        }
        for externals in entry.externals.chunks(EVENTS_PER_LIST_PAGE) {
            self.push_list_page(Entry { creates: Vec::new(), externals: externals.to_vec() })?;
        }
        self.list_rows += entry.len() as u64;
        let (creates, externals) = (count(entry.creates.len()), count(entry.externals.len()));
        Ok(List { key_page: self.page, first_page, creates, externals })
    }

    fn push_list_page(&mut self, entry: Entry) -> Result<(), IndexError> {
        let (widths, mut writer) = (Widths::of(self.first, std::iter::once(&entry)), BitWriter::default());
        widths.write(&mut writer);
        widths.write_events(&entry.creates, &entry.externals, &mut writer);
        self.list_pages += 1;
        self.lists.push(&writer.finish())
    }

    fn end_page(&mut self) -> Result<(), IndexError> {
        let (entries, page, pages) = (std::mem::take(&mut self.entries), self.page, self.facts.pages);
        let Ok(length) = u16::try_from(entries.len()) else { unreachable!("{} keys of 360 in a page", entries.len()) };
        let inline = entries.iter().filter_map(|(_, stored)| match stored {
            Stored::Inline(entry) => Some(entry),
            Stored::List(_) => None,
        });
        let (widths, mut writer) = (Widths::of(self.first, inline), BitWriter::default());
        writer.write(u64::from(length), 16);
        widths.write(&mut writer);
        let rice = rice_width(page, pages, u64::from(length));
        let mut next = first_key(page, pages);
        for (key, _) in &entries {
            writer.write_rice(u64::try_from(u128::from(*key) - next).unwrap_or(0), rice);
            next = u128::from(*key) + 1;
        }
        entries.iter().for_each(|(_, stored)| write_entry(&widths, stored, &mut writer));
        self.page += 1;
        self.keys.push(&writer.finish())
    }
}

/// All entries of a table in the order of their keys, a page at a time.
#[derive(Debug)]
struct AllEntries<'a> {
    table: Table<'a>,
    page: u32,
    entries: std::vec::IntoIter<(u64, Stored)>,
}

impl<'a> AllEntries<'a> {
    fn new(table: Table<'a>) -> AllEntries<'a> {
        AllEntries { table, page: 0, entries: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<(u64, Stored)>, IndexError> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some(entry));
            }
            let (page, keys) = (self.page, self.table.keys);
            if page == keys.facts().pages {
                return Ok(None);
            }
            let bytes = keys.page(page)?;
            let mut all = Vec::new();
            let reader = PageReader::new(&bytes, page, keys.facts(), |_, key| all.push(key));
            let entries = reader.and_then(|reader| reader.all(all));
            self.entries = entries.ok_or_else(|| keys.damaged(page, DAMAGED))?.into_iter();
            self.page += 1;
        }
    }
}

/// Writes the tables of segments that follow each other as those of one. The result is the same as that of tables made
/// of these blocks at once. Memory: a page of each, and the longest entry.
pub(super) fn merge(tables: &[Table<'_>], keys: &mut dyn PageSink, lists: &mut dyn PageSink) -> Result<(), IndexError> {
    let first = tables.first().map_or(0, |table| table.keys.facts().first);
    let Ok(first) = u32::try_from(first) else { unreachable!("transactions have numbers of 32 bits") };
    let events = tables.iter().map(|table| table.keys.facts().rows).sum();
    let mut writer = Writer::new(keys, lists, first, events);
    let mut all: Vec<AllEntries<'_>> = tables.iter().map(|table| AllEntries::new(*table)).collect();
    // By key, then from the lowest blocks on.
    let mut heads = BinaryHeap::new();
    let mut stored: Vec<Option<Stored>> = vec![None; tables.len()];
    let mut advance = |index: usize, heads: &mut BinaryHeap<_>, stored: &mut Vec<Option<Stored>>| {
        let Some(next) = all.get_mut(index).map(AllEntries::next).transpose()?.flatten() else { return Ok(()) };
        heads.push(Reverse((next.0, index)));
        stored[index] = Some(next.1);
        Ok::<(), IndexError>(())
    };
    for index in 0..tables.len() {
        advance(index, &mut heads, &mut stored)?;
    }
    while let Some(Reverse((key, _))) = heads.peek().copied() {
        let mut joined = Entry::default();
        while let Some(Reverse((next, index))) = heads.peek().copied()
            && next == key
        {
            heads.pop();
            let (Some(table), Some(found)) = (tables.get(index), stored[index].take()) else { continue };
            if !joined.append(table.load(found)?, first) {
                return Err(table.keys.damaged(page_of(key, table.keys.facts().pages), NO_CREATE));
            }
            advance(index, &mut heads, &mut stored)?;
        }
        writer.push(key, joined)?;
    }
    writer.finish()
}

fn bit_length(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The bits of the length of a sized number.
const LENGTH_BITS: u32 = 6;

/// A number of any size, at most 56 bits: the number of its bits, and those below the highest.
fn write_sized(number: u64, writer: &mut BitWriter) {
    let length = bit_length(number);
    writer.write(u64::from(length), LENGTH_BITS);
    let low = length.saturating_sub(1);
    writer.write(number & ((1 << low) - 1), low);
}

fn read_sized(reader: &mut BitReader<'_>) -> Option<u64> {
    let length = u32::try_from(reader.read(LENGTH_BITS)?).ok().filter(|length| *length <= RICE_WIDTH_MAX)?;
    let Some(low) = length.checked_sub(1) else { return Some(0) };
    Some(1 << low | reader.read(low)?)
}

fn read_sized_u32(reader: &mut BitReader<'_>) -> Option<u32> {
    u32::try_from(read_sized(reader)?).ok()
}

/// A number that is mostly 0 or 1: as many ones as the bits of its successor below the highest, a zero, and these bits.
fn write_small(number: u32, writer: &mut BitWriter) {
    let number = u64::from(number) + 1;
    let low = bit_length(number) - 1;
    writer.write_rice(u64::from(low), 0);
    writer.write(number & ((1 << low) - 1), low);
}

fn read_small(reader: &mut BitReader<'_>) -> Option<u32> {
    let low = u32::try_from(reader.read_rice(0)?).ok().filter(|low| *low <= 32)?;
    u32::try_from((1 << low | reader.read(low)?) - 1).ok()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
