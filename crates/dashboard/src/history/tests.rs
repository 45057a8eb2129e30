//! The history on the simulated disk: what is recorded is found again, at any step, after any crash and any damage; and
//! never anything else.

use super::format::{HEAD_SIZE, HEADS, LAYOUT, Layout, SLOT_SIZE, Tier, slot_offset};
use super::*;
use crate::limits::{HISTORY_FILE_BYTES, HISTORY_POINTS_MAX, HISTORY_SERIES_MAX};
use lydian_disk::{Disk, DiskErrorKind, Fault, SimDisk};
use lydian_stdx::SplitMix64;
use std::path::Path;

/// Two hours in steps of 10 s, four hours in steps of 5 min, eight hours.
const SMALL: Layout =
    Layout { tiers: [Tier { step: 10, count: 720 }, Tier { step: 300, count: 48 }, Tier { step: 3_600, count: 8 }] };

const fn series(name: &'static str, combine: Combine) -> Series {
    Series { name, unit: "items", combine, help: "A test." }
}

const TABLE: &[Series] = &[
    series("last", Combine::Last),
    series("mean", Combine::Mean),
    series("sum", Combine::Sum),
    series("max", Combine::Max),
];

/// A multiple of an hour.
const START: u64 = 3_600 * 400_000;

fn path() -> &'static Path {
    Path::new("history.dat")
}

fn open(disk: &SimDisk, now: u64) -> (History, Vec<Remark>) {
    History::open_as(disk, Path::new(""), TABLE, now, SMALL).unwrap()
}

/// Different at each time, and known from it.
#[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
fn value(time: u64) -> f64 {
    (time / 10 % 100_000) as f64
}

fn record(history: &History, time: u64) -> Result<(), DiskError> {
    history.record(time, &[Some(value(time)); 4])
}

/// The points of one series.
fn points(history: &History, name: &str, from: u64, to: u64) -> (u64, Vec<Option<f64>>) {
    let answer = history.query(&[name], from, to).unwrap();
    assert!(answer.from.is_multiple_of(answer.step) && answer.from >= from.saturating_sub(answer.step));
    (answer.step, answer.series[0].1.clone())
}

#[test]
fn every_tier_has_what_its_intervals_combine_to() {
    let disk = SimDisk::new(1);
    let (history, remarks) = open(&disk, START);
    assert_eq!(remarks, []);
    // Six hours and a half.
    for step in 0..2_340 {
        record(&history, START + 10 * step + 3).unwrap();
    }
    let now = START + 23_400;
    for history in [&history, &open(&disk.kill(), now).0] {
        let (step, found) = points(history, "last", now - 7_200, now);
        assert_eq!((step, found.len()), (10, 720));
        assert!((0..720).zip(&found).all(|(i, found)| *found == Some(value(now - 7_200 + 10 * i))));

        let first = now - 4 * 3_600;
        let of = |name| points(history, name, first, now);
        assert_eq!((of("last").0, of("last").1.len()), (300, 48));
        for (i, start) in (0..48).map(|i| first + 300 * i).enumerate() {
            let values: Vec<f64> = (0..30).map(|i| value(start + 10 * i)).collect();
            let sum: f64 = values.iter().sum();
            let expected = [values[29], sum / 30.0, sum, values[29]].map(Some);
            assert_eq!(["last", "mean", "sum", "max"].map(|name| of(name).1[i]), expected);
        }
        let (step, found) = points(history, "sum", now - 8 * 3_600, now);
        let hour = |start: u64, steps: u64| -> f64 { (0..steps).map(|i| value(start + 10 * i)).sum() };
        let hours = (0..7).map(|i| Some(hour(START + 3_600 * i, if i < 6 { 360 } else { 180 })));
        let expected: Vec<_> = [None, None].into_iter().chain(hours).collect();
        assert_eq!((step, found), (3_600, expected), "the hour that has not ended is combined too");
    }
}

#[test]
fn gaps_have_no_values() {
    let disk = SimDisk::new(1);
    let (history, _) = open(&disk, START);
    record(&history, START).unwrap();
    history.record(START + 20, &[None, Some(f64::NAN), Some(f64::INFINITY)]).unwrap();
    history.record(START + 30, &[Some(7.0)]).unwrap();
    let answer = history.query(&["last", "mean", "sum", "max"], START, START + 40).unwrap();
    let first = Some(value(START));
    let rest = vec![first, None, None, None];
    let names = ["last", "mean", "sum", "max"].map(str::to_owned);
    let values = [vec![first, None, None, Some(7.0)], rest.clone(), rest.clone(), rest];
    assert_eq!(answer, Answer { step: 10, from: START, series: names.into_iter().zip(values).collect() });
    let unknown = HistoryError::UnknownSeries { name: "x".to_owned() };
    assert_eq!(history.query(&["last", "x"], START, START + 1), Err(unknown));
    assert_eq!(history.query(&["last"], START, START), Err(HistoryError::Range));
    assert_eq!(history.query(&[], 0, u64::MAX).unwrap().series, []);
}

/// limit: HISTORY_POINTS_MAX at
/// limit: HISTORY_POINTS_MAX above
/// limit: HISTORY_FILE_BYTES at
/// limit: HISTORY_FILE_BYTES above
#[test]
fn the_finest_step_that_fits_is_chosen() {
    let disk = SimDisk::new(1);
    let now = START + 86_400 * 400;
    let (history, _) = History::open_as(&disk, Path::new(""), TABLE, now, LAYOUT).unwrap();
    assert_eq!(disk.open(path()).unwrap().size(), HISTORY_FILE_BYTES);
    record(&history, now).unwrap();
    let of = |from: u64, seconds: u64| {
        let (step, points) = points(&history, "last", from, from + seconds);
        (step, points.len())
    };
    let back = |seconds: u64| of(now + 10 - seconds, seconds);
    assert_eq!((back(10_000), back(10_010)), ((10, HISTORY_POINTS_MAX), (20, 501)));
    assert_eq!(back(86_400), (120, 721));
    assert_eq!(back(86_400 * 2), (300, 577));
    assert_eq!(back(86_400 * 31).0, 3_600);
    assert_eq!(back(86_400 * 365 * 5).0, 172_800);
    let (step, found) = points(&history, "last", 0, now + 10);
    assert_eq!((step, found.len(), found[found.len() - 1]), (172_800, HISTORY_POINTS_MAX, Some(value(now))));
    // Ranges of which only a coarser tier is left.
    assert_eq!(of(now - 86_400 * 3, 600), (300, 2));
    assert_eq!(of(now - 86_400 * 100, 600), (3_600, 1));
    let last = slot_offset(LAYOUT.slots() - 1);
    assert_eq!(last + SLOT_SIZE, HISTORY_FILE_BYTES);
    let longer = disk.append_file(path()).unwrap().write(b"x");
    assert_eq!(longer, Ok(()), "a longer file is as good");
    let (history, remarks) = History::open_as(&disk, Path::new(""), TABLE, now, LAYOUT).unwrap();
    assert_eq!((remarks, points(&history, "last", now, now + 10).1), (vec![], vec![Some(value(now))]));
}

/// What a process recorded: the last time, and the last time up to which everything was synced.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    recorded: u64,
    synced: u64,
}

/// A process records from `from` on, until the disk fails.
fn process(disk: &SimDisk, from: u64, steps: u64) -> Result<(), HistoryError> {
    let (history, _) = History::open_as(disk, Path::new(""), TABLE, from, SMALL)?;
    for step in 0..steps {
        record(&history, from + 10 * step)?;
    }
    Ok(())
}

/// Two processes in order on a disk that fails as planned; returns what is certain.
fn work(disk: &SimDisk, until: u64) -> Done {
    let mut done = Done::default();
    let middle = START + 3_000;
    for (from, to) in [(START, middle), (middle, until)] {
        let Ok((history, _)) = History::open_as(disk, Path::new(""), TABLE, from, SMALL) else { return done };
        // Opening ends with a sync.
        done.synced = done.recorded;
        for time in (from..to).step_by(10) {
            if record(&history, time).is_err() {
                return done;
            }
            done.recorded = time;
            // An interval of five minutes ended.
            if time % 300 == 0 && time > START {
                done.synced = time;
            }
        }
    }
    done
}

/// Compares everything that a history returns with what was recorded, and requires what is certain.
fn check(disk: &SimDisk, now: u64, certain: u64, words: &str) {
    let (history, remarks) = open(disk, now);
    assert!(!remarks.iter().any(|remark| matches!(remark, Remark::Cut { .. })), "{words}: {remarks:?}");
    let from = now - now % 10 - 7_190;
    let (_, found) = points(&history, "last", from, now + 10);
    for (time, found) in (from..).step_by(10).zip(found) {
        let is_certain = (START..=certain).contains(&time) && time > now - 7_190;
        assert!(found == Some(value(time)) || (found.is_none() && !is_certain), "{words}: {found:?} at {time}");
    }
    // Ended intervals of five minutes are combined from values that were recorded.
    let (step, found) = points(&history, "max", START, now + 10);
    for (start, found) in (START..).step_by(usize::try_from(step).unwrap()).zip(found) {
        let is_of_it = |found: f64| (start..start + step).step_by(10).any(|time| value(time) == found);
        assert!(found.is_none_or(is_of_it), "{words}: {found:?} in {start}");
        let is_certain = step == 300 && start + 290 <= certain && start >= now - 14_000;
        assert!(!is_certain || found == Some(value(start + 290)), "{words}: {found:?} in {start}");
    }
    assert_eq!(open(disk, now).1, [], "{words}: everything was repaired");
}

#[test]
fn a_kill_at_any_operation_loses_nothing_and_a_power_loss_only_what_was_not_synced() {
    let until = START + 4_200;
    let whole = SimDisk::new(1);
    assert_eq!(work(&whole, until).recorded, until - 10);
    let count = whole.operation_count();
    for number in (0..count).filter(|number| *number < 12 || number % 3 == 0 || count - number < 40) {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let disk = SimDisk::new(number);
            disk.fail_at(number, fault);
            let done = work(&disk, until);
            assert!(disk.is_crashed());
            let now = done.recorded.max(START) + 10;
            check(&disk.kill(), now, done.recorded, &format!("killed at {number}, {fault:?}"));
            for seed in 0..3 {
                let words = format!("power lost at {number}, {fault:?}, seed {seed}");
                check(&disk.power_loss(seed), now, done.synced, &words);
            }
        }
    }
}

#[test]
fn an_error_of_the_disk_loses_one_interval_at_most() {
    for number in 0..40 {
        for fault in [Fault::NoSpace, Fault::Io] {
            let disk = SimDisk::new(number);
            process(&disk, START, 40).unwrap();
            let before = disk.operation_count();
            let (history, _) = open(&disk, START + 400);
            disk.fail_at(disk.operation_count() + number, fault);
            let failed: Vec<u64> =
                (40..80).map(|step| START + 10 * step).filter(|time| record(&history, *time).is_err()).collect();
            assert!(failed.len() == 1 && disk.operation_count() > before, "{failed:?}");
            let (_, found) = points(&history, "last", START + 200, START + 800);
            for (time, found) in (START + 200..).step_by(10).zip(found) {
                assert!(found == Some(value(time)) || (found.is_none() && failed == [time]), "{time}: {found:?}");
            }
        }
    }
}

#[test]
fn without_room_there_is_no_history_until_there_is_room() {
    let disk = SimDisk::new(1);
    disk.set_capacity(SMALL.file_size() - 1);
    let kind = |result: Result<(), HistoryError>| match result {
        Err(HistoryError::Disk(error)) => Some(error.kind),
        _ => None,
    };
    assert_eq!(kind(process(&disk, START, 1)), Some(DiskErrorKind::NoSpace));
    disk.set_capacity(SMALL.file_size());
    process(&disk, START, 10).unwrap();
    assert_eq!(points(&open(&disk, START + 100).0, "last", START, START + 10).1, [Some(value(START))]);
    // Every operation of opening may fail, and the next attempt succeeds.
    for number in 0..8 {
        for fault in [Fault::NoSpace, Fault::Io] {
            let disk = SimDisk::new(number);
            disk.fail_at(number, fault);
            process(&disk, START, 1).unwrap_err();
            process(&disk, START, 10).unwrap();
            assert_eq!(open(&disk, START + 100).1, [], "{number}");
        }
    }
}

#[test]
fn damaged_records_are_skipped_named_and_removed() {
    let now = START + 4_200;
    let disk = SimDisk::new(1);
    work(&disk, now);
    open(&disk, now);
    let size = SMALL.file_size();
    let first_slot = slot_offset(0);
    let mut random = SplitMix64::new(5);
    for seed in 0..200 {
        let disk = disk.kill();
        let count = 1 + seed % 5;
        let mut slots: Vec<u64> = Vec::new();
        for _ in 0..count {
            let at = first_slot + random.next_u64() % (size - first_slot);
            // Behind the values of a slot, damage changes nothing.
            let at = at - at % SLOT_SIZE + at % SLOT_SIZE % (12 + 8 + 4 * 8);
            disk.flip(path(), at, 1 << (seed % 8)).unwrap();
            slots.push(at - at % SLOT_SIZE);
        }
        let before = disk.files();
        let (_, remarks) = open(&disk, now);
        slots.sort_unstable();
        slots.dedup();
        // Zeros with a flipped bit are damage only where a record would begin.
        if let [Remark::Damaged { records, offset, .. }] = remarks[..] {
            assert!(records <= slots.len() as u64 && slots.contains(&offset), "{records} at {offset}: {slots:?}");
            let text = remarks[0].to_string();
            let words =
                format!("history.dat: {records} damaged records of the history were removed, the first at offset");
            assert!(text.starts_with(&words), "{text}");
        } else {
            assert_eq!(remarks, []);
            assert!(before == disk.files(), "nothing was found and nothing was changed");
        }
        check(&disk, now, 0, &format!("flipped, seed {seed}"));
    }
}

#[test]
fn one_copy_of_the_head_is_enough() {
    let now = START + 100;
    let original = SimDisk::new(1);
    process(&original, START, 10).unwrap();
    for copy in 0..HEADS {
        let disk = original.kill();
        disk.flip(path(), copy * HEAD_SIZE + 20, 1).unwrap();
        let (history, remarks) = open(&disk, now);
        assert_eq!((remarks, points(&history, "last", START, START + 10).1), (vec![], vec![Some(value(START))]));
        assert_eq!(disk.files(), original.files(), "the copy was repaired");
    }
    let disk = original.kill();
    for copy in 0..HEADS {
        disk.flip(path(), copy * HEAD_SIZE + 20, 1).unwrap();
    }
    let (history, remarks) = open(&disk, now);
    assert_eq!(remarks, [Remark::BegunAnew { path: path().to_owned() }]);
    assert_eq!(points(&history, "last", START, START + 10).1, [None]);
    record(&history, now).unwrap();
    assert_eq!(points(&open(&disk, now).0, "last", now, now + 10).1, [Some(value(now))]);
}

#[test]
fn a_file_that_was_cut_keeps_the_rest() {
    let now = START + 4_200;
    let original = SimDisk::new(1);
    work(&original, now);
    for size in (0..SMALL.file_size()).step_by(1_777) {
        let disk = original.kill();
        disk.truncate_file(path(), size).unwrap();
        let (history, remarks) = open(&disk, now);
        let has_head = size >= 300;
        let is_cut =
            |remark: &Remark| matches!(remark, Remark::Cut { missing, .. } if *missing == SMALL.file_size() - size);
        assert_eq!(remarks.iter().any(is_cut), has_head, "{size}: {remarks:?}");
        assert!(size == 0 || has_head || remarks.len() == 1, "{size}: {remarks:?}");
        let (_, found) = points(&history, "last", now - 590, now);
        for (time, found) in (now - 590..).step_by(10).zip(found) {
            let is_whole = slot_offset(SMALL.slot(0, time)) + SLOT_SIZE <= size;
            assert!(found == Some(value(time)) || (found.is_none() && !is_whole), "{size}: {found:?} at {time}");
        }
        assert_eq!(open(&disk, now).1, []);
    }
}

#[test]
fn a_file_of_another_version_is_left_alone() {
    let disk = SimDisk::new(1);
    let mut bytes = Vec::new();
    lydian_disk::record::encode_record(b"lydian history 2\n", 0, &mut bytes);
    bytes.resize(usize::try_from(SMALL.file_size()).unwrap(), 0);
    disk.write_whole(path(), &bytes).unwrap();
    let error = process(&disk, START, 1).unwrap_err();
    assert_eq!(error.to_string(), super::HISTORY_FORMAT.newer("history.dat", 2_u32).unwrap().to_string());
    assert!(disk.files()[path()] == bytes);
}

const NEWER: &[Series] = &[
    series("new", Combine::Last),
    series("max", Combine::Sum),
    series("last", Combine::Last),
    series("other", Combine::Max),
];

#[test]
fn series_may_come_and_go() {
    let disk = SimDisk::new(1);
    process(&disk, START, 10).unwrap();
    let now = START + 100;
    {
        let (history, remarks) = History::open_as(&disk, Path::new(""), NEWER, now, SMALL).unwrap();
        assert_eq!(remarks, []);
        history.record(now, &[Some(1.0), Some(2.0), Some(3.0), Some(4.0)]).unwrap();
        let names = ["new", "max", "last", "other", "mean"];
        let of = |name| points(&history, name, now - 10, now + 10).1;
        let old = Some(value(now - 10));
        let expected = [[None, Some(1.0)], [old, Some(2.0)], [old, Some(3.0)], [None, Some(4.0)], [old, None]];
        assert_eq!(names.map(of), expected.map(|values| values.to_vec()));
    }
    // An earlier version of the program keeps the values of the later one.
    let (history, remarks) = open(&disk, now + 10);
    assert_eq!(remarks, []);
    record(&history, now + 10).unwrap();
    assert_eq!(points(&history, "new", now, now + 20).1, [Some(1.0), None]);
    assert_eq!(points(&history, "last", now, now + 20).1, [Some(3.0), Some(value(now + 10))]);
}

/// The new columns are in slots only after both copies of the head name them.
#[test]
fn a_crash_while_series_are_added_confuses_no_columns() {
    let now = START + 100;
    for number in 0..14 {
        for fault in [Fault::CrashInside, Fault::CrashAfter] {
            let disk = SimDisk::new(number);
            process(&disk, START, 10).unwrap();
            disk.fail_at(disk.operation_count() + number, fault);
            if let Ok((history, _)) = History::open_as(&disk, Path::new(""), NEWER, now, SMALL) {
                let _ = history.record(now, &[Some(1.0), Some(2.0), Some(3.0), Some(4.0)]);
            }
            for disk in [disk.kill(), disk.power_loss(1), disk.power_loss(2), disk.power_loss(3)] {
                let (history, _) = History::open_as(&disk, Path::new(""), NEWER, now, SMALL).unwrap();
                let of = |name| points(&history, name, now - 10, now + 10).1;
                assert_eq!(of("last")[0], Some(value(now - 10)), "{number} {fault:?}");
                assert_eq!((of("new")[0], of("other")[0]), (None, None));
                for (name, value) in [("new", 1.0), ("max", 2.0), ("last", 3.0), ("other", 4.0)] {
                    assert!(of(name)[1].is_none_or(|found| found == value), "{name}: {:?}", of(name));
                }
            }
        }
    }
}

#[test]
fn series_beyond_the_maximum_are_not_kept_and_named() {
    let disk = SimDisk::new(1);
    process(&disk, START, 1).unwrap();
    let table: Vec<Series> =
        (0..HISTORY_SERIES_MAX - 3).map(|number| series(format!("s{number}").leak(), Combine::Last)).collect();
    let table: &'static [Series] = table.leak();
    let (history, remarks) = History::open_as(&disk, Path::new(""), table, START, SMALL).unwrap();
    assert_eq!(remarks, [Remark::Full { path: path().to_owned(), name: "s121" }]);
    history.record(START, &vec![Some(5.0); table.len()]).unwrap();
    assert_eq!(points(&history, "s120", START, START + 10).1, [Some(5.0)]);
    assert!(history.query(&["s121"], START, START + 10).is_err());
}

/// A clock that was wrong for a while leaves intervals of the future, which do not count until their time.
#[test]
fn a_clock_that_goes_back_is_followed() {
    let disk = SimDisk::new(1);
    process(&disk, START + 86_400, 35).unwrap();
    process(&disk, START, 35).unwrap();
    let now = START + 350;
    let (history, remarks) = open(&disk, now);
    assert_eq!(remarks, []);
    let (_, found) = points(&history, "last", now - 600, now);
    assert_eq!(found.iter().flatten().count(), 35);
    for back in [START + 100, START + 400] {
        record(&history, back).unwrap();
        assert_eq!(points(&history, "last", back, back + 10).1, [Some(value(back))]);
    }
}

/// Queries while a process records see whole values only.
#[test]
fn readers_see_whole_values_while_others_are_recorded() {
    let disk = SimDisk::new(1);
    let (history, _) = open(&disk, START);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..2_000).try_for_each(|step| record(&history, START + 10 * step)));
        while !writer.is_finished() {
            let last = history.last.load(Ordering::Acquire).max(START);
            let (_, found) = points(&history, "last", last - 590, last + 10);
            for (time, found) in (last - 590..).step_by(10).zip(found) {
                assert!(found.is_none_or(|found| found == value(time)), "{found:?} at {time}");
            }
        }
        writer.join().unwrap().unwrap();
    });
}

/// A part of the disk that cannot be read costs the values there.
#[test]
fn bad_sectors_cost_the_records_on_them() {
    let now = START + 4_200;
    let original = SimDisk::new(1);
    work(&original, now);
    let disk = original.kill();
    let reads = {
        open(&disk, now);
        disk.read_count()
    };
    let mut seen = 0;
    for number in 0..reads {
        let disk = original.kill();
        disk.fail_read_at(number);
        let (_, remarks) = open(&disk, now);
        seen += remarks.len();
        check(&disk, now, 0, &format!("read {number}"));
    }
    assert_eq!(seen, 0, "a second read of each slot alone succeeds");
    // The piece and one of its slots.
    let disk = original.kill();
    disk.fail_read_at(2);
    disk.fail_read_at(3);
    let (_, remarks) = open(&disk, now);
    let first = Remark::Damaged { path: path().to_owned(), records: 1, offset: slot_offset(0) };
    assert_eq!(remarks, [first]);
}
