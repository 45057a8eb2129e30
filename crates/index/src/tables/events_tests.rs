use super::*;
use crate::tables::testing::MemoryTable;
use lydian_stdx::SplitMix64;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The tables of a segment in memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tables {
    keys: MemoryTable,
    lists: MemoryTable,
}

impl Tables {
    fn table(&self) -> Table<'_> {
        Table { keys: &self.keys, lists: &self.lists }
    }
}

/// An output of a chain of transactions, one number each, and the transaction that spends it.
#[derive(Clone, Copy, Debug)]
struct Output {
    key: u64,
    number: u32,
    vout: u32,
    value: u64,
    spender: Option<u32>,
}

/// Random outputs; some scripts get many of them.
fn outputs(count: u32, seed: u64) -> Vec<Output> {
    let mut random = SplitMix64::new(seed);
    let hot: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
    let mut all = Vec::new();
    for number in 0..count {
        for vout in 0..1 + u32::try_from(random.below(3)).unwrap() {
            let key = match random.below(10) {
                0 | 1 => hot[random.below(3)],
                _ => random.next_u64(),
            };
            let spender = number + 1 + u32::try_from(random.below(300)).unwrap();
            let spender = (random.below(3) > 0 && spender < count).then_some(spender);
            let value = random.next_u64() >> (14 + random.below(50));
            all.push(Output { key, number, vout: vout * 50, value, spender });
        }
    }
    all
}

/// The entries of the transactions with these numbers, made plainly.
fn entries(outputs: &[Output], range: std::ops::Range<u32>) -> (BTreeMap<u64, Entry>, u64) {
    let (mut entries, mut events) = (BTreeMap::<u64, Entry>::new(), 0);
    for Output { key, number, vout, value, spender } in outputs.iter().copied() {
        let spender = spender.filter(|spender| range.contains(spender));
        events += u64::from(spender.is_some());
        if range.contains(&number) {
            let fate = spender.map_or(Fate::Unspent(value), Fate::Spent);
            entries.entry(key).or_default().creates.push(Create { number, vout, fate });
            events += 1;
        } else if let Some(spender) = spender {
            entries.entry(key).or_default().externals.push(External { number, vout, spender });
        }
    }
    (entries, events)
}

fn tables(outputs: &[Output], range: std::ops::Range<u32>) -> Tables {
    let mut tables = Tables::default();
    let (entries, events) = entries(outputs, range.clone());
    let mut writer = Writer::new(&mut tables.keys, &mut tables.lists, range.start, events);
    entries.into_iter().for_each(|(key, entry)| writer.push(key, entry).unwrap());
    writer.finish().unwrap();
    tables
}

#[test]
fn every_script_is_found_with_its_events() {
    for (count, range) in [(0, 0..0), (1, 0..1), (40, 0..20), (40, 20..40), (9_000, 3_000..8_500)] {
        let outputs = outputs(count, 7);
        let tables = tables(&outputs, range.clone());
        let (entries, events) = entries(&outputs, range);
        assert_eq!(tables.keys.facts().pages, u32::try_from(events.div_ceil(360)).unwrap());
        for (key, entry) in entries {
            let stored = tables.table().find(key).unwrap().unwrap();
            assert_eq!(matches!(stored, Stored::List(_)), entry.len() > INLINE_MAX);
            assert_eq!(tables.table().load(stored).unwrap(), entry);
            assert_eq!(tables.table().find(key ^ 1).unwrap(), None);
        }
        assert_eq!(tables.table().find(u64::MAX).unwrap(), None);
        assert!(tables.keys.pages.iter().all(|page| page.len() < 9_000));
    }
}

/// At the limit of an entry in the page of its key, and above; at the limit of a page of a list, and above.
#[test]
fn long_entries_have_pages_of_their_own() {
    for (length, pages) in [(1, 0), (2, 0), (63, 0), (64, 0), (65, 1), (255, 1), (256, 1), (257, 2), (513, 3)] {
        let creates: Vec<Create> =
            (0..length).map(|number| Create { number, vout: 3, fate: Fate::Unspent(u64::from(number)) }).collect();
        let externals = (0..length).map(|number| External { number, vout: u32::MAX - 1, spender: 900 + number });
        let only_creates = Entry { creates: creates.clone(), externals: Vec::new() };
        let only_externals = Entry { creates: Vec::new(), externals: externals.collect() };
        for (first, entry) in [(0, only_creates), (900, only_externals)] {
            let mut tables = Tables::default();
            let mut writer = Writer::new(&mut tables.keys, &mut tables.lists, first, u64::from(length));
            writer.push(77, entry.clone()).unwrap();
            writer.finish().unwrap();
            assert_eq!(tables.lists.pages.len(), pages, "{length}");
            let stored = tables.table().find(77).unwrap().unwrap();
            assert_eq!(tables.table().load(stored).unwrap(), entry);
        }
    }
}

#[test]
fn a_script_with_one_output_takes_about_fifteen_bytes() {
    let mut random = SplitMix64::new(1);
    let outputs = (0..300_000_u32).map(|number| {
        let spender = number + 1 + u32::try_from(random.below(20_000)).unwrap();
        Output { key: random.next_u64(), number, vout: 0, value: 0, spender: Some(spender) }
    });
    let tables = tables(&outputs.collect::<Vec<_>>(), 0..330_000);
    let bytes: usize = tables.keys.pages.iter().map(Vec::len).sum();
    // 48 bits of key, 19 of number, 21 of the distance to the spender, 3 of form and output.
    let bits = bytes as f64 * 8.0 / 300_000.0;
    assert!((85.0..95.0).contains(&bits), "{bits}");
}

/// A spend of an output that no table has, and a second spend of one.
#[test]
fn a_spend_without_its_create_is_damage() {
    let part = |first: u32, entry: Entry| {
        let mut tables = Tables::default();
        let mut writer = Writer::new(&mut tables.keys, &mut tables.lists, first, 1);
        writer.push(5, entry).unwrap();
        writer.finish().unwrap();
        tables
    };
    let create = |fate| Entry { creates: vec![Create { number: 1, vout: 0, fate }], externals: Vec::new() };
    let spend = |vout| Entry { creates: Vec::new(), externals: vec![External { number: 1, vout, spender: 12 }] };
    for (below, above) in [(create(Fate::Unspent(9)), spend(1)), (create(Fate::Spent(3)), spend(0))] {
        let (below, above) = (part(0, below), part(10, above));
        let mut out = Tables::default();
        let error = merge(&[below.table(), above.table()], &mut out.keys, &mut out.lists).unwrap_err();
        assert!(error.to_string().contains(NO_CREATE), "{error}");
    }
}

proptest! {
    /// Byte-equal: however a chain was cut into segments.
    #[test]
    fn a_merge_is_the_table_of_all_blocks(cuts in prop::collection::vec(0_u32..1_500, 1..7), seed in any::<u64>()) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let outputs = outputs(1_500, seed);
        let (first, last) = (cuts[0], cuts[cuts.len() - 1]);
        let parts: Vec<Tables> = cuts.windows(2).map(|pair| tables(&outputs, pair[0]..pair[1])).collect();
        prop_assume!(!parts.is_empty());
        let mut merged = Tables::default();
        let sources: Vec<Table<'_>> = parts.iter().map(Tables::table).collect();
        merge(&sources, &mut merged.keys, &mut merged.lists).unwrap();
        prop_assert_eq!(merged, tables(&outputs, first..last));
    }

    #[test]
    fn any_page_is_events_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        list in prop::collection::vec(any::<u8>(), 0..400),
        keys in 0_u8..20,
        key in any::<u64>(),
        first in any::<u32>(),
    ) {
        let mut bytes = bytes;
        if let [high, low, ..] = &mut bytes[..] {
            (*high, *low) = (0, keys);
        }
        let facts = Facts { first: u64::from(first), rows: 9, pages: 1 };
        let tables = Tables {
            keys: MemoryTable { facts, pages: vec![bytes] },
            lists: MemoryTable { facts, pages: vec![list] },
        };
        if let Ok(Some(stored)) = tables.table().find(key) {
            let _ = tables.table().load(stored);
        }
        let mut all = AllEntries::new(tables.table());
        while let Ok(Some((_, stored))) = all.next() {
            let _ = tables.table().load(stored);
        }
        let mut out = Tables::default();
        let _ = merge(&[tables.table()], &mut out.keys, &mut out.lists);
    }

    #[test]
    fn numbers_come_back(numbers in prop::collection::vec((0_u64..1 << 56, any::<u32>()), 0..50)) {
        let mut writer = BitWriter::default();
        for (sized, small) in &numbers {
            write_sized(*sized, &mut writer);
            write_small(*small, &mut writer);
        }
        let bytes = writer.finish();
        let mut reader = BitReader::new(&bytes);
        for (sized, small) in &numbers {
            prop_assert_eq!((read_sized(&mut reader), read_small(&mut reader)), (Some(*sized), Some(*small)));
        }
    }
}
