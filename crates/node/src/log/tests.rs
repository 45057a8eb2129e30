//! Tests of lines, levels and the log file.

use super::*;
use crate::limits::{LOG_BYTES_PER_PLACE_MAX, LOG_WINDOW_MICROS};
use lydian_consensus::{Chain, U256};
use lydian_disk::{SimDisk, read_whole};
use lydian_primitives::{BlockHash, Height};

fn settings(path: &str) -> LogSettings {
    let (categories, levels) = (Categories::default(), Levels::default());
    let form = LogForm::default();
    LogSettings { file: Some(path.into()), console: None, has_micros: false, shrink: true, categories, levels, form }
}

fn text(disk: &SimDisk, path: &str) -> String {
    String::from_utf8(read_whole(disk, Path::new(path), 1 << 30).unwrap()).unwrap()
}

#[test]
fn lines_have_cores_form() {
    assert_eq!(stamp(1_790_000_000_123_456, false), "2026-09-21T14:13:20Z");
    assert_eq!(stamp(1_790_000_000_123_456, true), "2026-09-21T14:13:20.123456Z");
    assert_eq!(iso8601(0), "1970-01-01T00:00:00Z");
    assert_eq!(iso8601(1_231_006_505), "2009-01-03T18:15:05Z");
    assert_eq!(iso8601(951_782_400), "2000-02-29T00:00:00Z");
    assert_eq!(iso8601(4_107_542_400), "2100-03-01T00:00:00Z", "no leap day in 2100");
    assert_eq!(iso8601(i64::from(u32::MAX)), "2106-02-07T06:28:15Z");
    assert_eq!(prefix(None, Level::Info, false), "");
    assert_eq!(prefix(None, Level::Warning, false), "[warning] ");
    assert_eq!(prefix(Some(Category::COINDB), Level::Debug, false), "[coindb] ");
    assert_eq!(prefix(Some(Category::BENCH), Level::Trace, false), "[bench:trace] ");
    assert_eq!(prefix(None, Level::Info, true), "[all:info] ", "-loglevelalways");
    assert_eq!(prefix(Some(Category::COINDB), Level::Debug, true), "[coindb:debug] ");
    assert_eq!(escape("a\x1b[31m\tb\n"), "a\\x1b[31m\\x09b");
}

/// The first line is the one that Bitcoin Core 31.99 wrote when it started on regtest.
#[test]
fn the_tip_is_logged_as_in_core() {
    let mut tip = TipLine {
        hash: "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206".parse().unwrap(),
        height: Height(0),
        version: 1,
        chain_work: U256::from_u64(2),
        chain_tx_count: 1,
        time: 1_296_688_602,
        headers_height: Height(0),
        cache_bytes: 314_573,
        cache_coins: 0,
    };
    assert_eq!(
        update_tip(&tip, Chain::Regtest, 1_790_000_000),
        "UpdateTip: new best=0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206 height=0 version=0x00000001 log2_work=1.000000 \
         tx=1 date='2011-02-02T23:16:42Z' progress=0.000002 cache=0.3MiB(0txo)"
    );
    tip.hash = BlockHash([0; 32]);
    (tip.version, tip.cache_bytes, tip.cache_coins) = (0x2000_0000, 3 << 19, 7);
    let line = update_tip(&tip, Chain::Main, 1_790_000_000);
    assert!(line.contains("version=0x20000000") && line.ends_with("cache=1.5MiB(7txo)"), "{line}");
    // 1.5 * 2^96: the magnitude of mainnet's total work at block 938,343.
    let work = U256::from_u64(1).shifted_left(96).checked_add(U256::from_u64(1).shifted_left(95)).unwrap();
    assert!((lines::log2(work) - 96.584_962_5).abs() < 1e-6);
    assert_eq!(lines::log2(U256::from_u64(1)), 0.0);
}

#[test]
fn progress_is_cores_guess() {
    let tip = |chain_tx_count, time, height| TipLine {
        hash: BlockHash([0; 32]),
        height: Height(height),
        version: 1,
        chain_work: U256::from_u64(2),
        chain_tx_count,
        time,
        headers_height: Height(100),
        cache_bytes: 0,
        cache_coins: 0,
    };
    let guess = |tip: TipLine, now| lines::progress(&tip, Chain::Main, now);
    assert_eq!(guess(tip(0, 0, 0), 1_800_000_000), 0.0);
    let half = guess(tip(657_902_934, 1_500_000_000, 50), 1_772_055_173);
    assert!((half - 0.5).abs() < 1e-6, "{half}");
    let now = 1_800_000_000;
    assert_eq!(guess(tip(1_400_000_000, 1_799_999_000, 100), now), 1.0, "at the best header");
    let behind = guess(tip(1_400_000_000, 1_799_999_000, 99), now);
    let expected = 1_400_000_000.0 / (1_400_000_000.0 + 600.0 * 5.401_110_064_961_22);
    assert!((behind - expected).abs() < 1e-12, "one block behind");
}

#[test]
fn categories_and_levels_are_cores() {
    let mut categories = Categories::default();
    assert!(!categories.contains(Category::BENCH));
    categories.enable("bench").unwrap();
    assert!(categories.contains(Category::BENCH) && !categories.contains(Category::COINDB));
    categories.enable("1").unwrap();
    categories.disable("coindb").unwrap();
    assert!(categories.contains(Category::BENCH) && !categories.contains(Category::COINDB));
    assert!(categories.enable("Bench").is_err() && categories.enable("noise").is_err());
    let named = [Category::BENCH, Category::COINDB, Category::VALIDATION];
    assert_eq!(named.map(Category::name), ["bench", "coindb", "validation"]);

    let mut levels = Levels::default();
    assert_eq!(levels.of(Category::BENCH), Level::Debug);
    levels.set("info").unwrap();
    levels.set("bench:trace").unwrap();
    assert_eq!((levels.of(Category::BENCH), levels.of(Category::COINDB)), (Level::Trace, Level::Info));
    for bad in ["", "warning", "bench:", "bench:loud", "noise:debug", ":debug"] {
        assert!(levels.set(bad).is_err(), "{bad}");
    }
}

/// limit: LINES_WAITING_MAX at
/// limit: LINES_WAITING_MAX above
#[test]
fn lines_wait_for_the_file_and_the_oldest_are_dropped() {
    let overflow = "Early logging buffer overflowed, 1 log lines discarded.";
    for (count, first) in [(LINES_WAITING_MAX, &["line 0"][..]), (LINES_WAITING_MAX + 1, &[overflow, "line 1"])] {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/d")).unwrap();
        let log = Log::new(Arc::new(disk.clone()), &settings("/d/debug.log"), false);
        (0..count).for_each(|number| log.info(format!("line {number}")));
        log.open(true).unwrap();
        log.warning("after");
        let text = text(&disk, "/d/debug.log");
        let lines: Vec<_> = text.lines().skip(5).collect();
        assert_eq!(lines.len(), LINES_WAITING_MAX + first.len());
        assert!(lines.iter().zip(first).all(|(line, end)| line.ends_with(end)), "{:?}", &lines[..2]);
        assert!(lines[lines.len() - 1].ends_with("Z [warning] after"));
    }
}

#[test]
fn a_moved_log_is_opened_anew_and_a_failing_disk_does_no_harm() {
    let disk = SimDisk::new(0);
    disk.create_dir(Path::new("/d")).unwrap();
    let mut settings = settings("/d/debug.log");
    settings.categories.enable("bench").unwrap();
    let log = Log::new(Arc::new(disk.clone()), &settings, false);
    log.open(true).unwrap();
    log.info("one");
    disk.remove_file(Path::new("/d/debug.log")).unwrap();
    log.reopen();
    log.debug(Category::BENCH, || "two");
    log.debug::<&str>(Category::COINDB, || panic!("the message of a category that is off is not even made"));
    assert!(text(&disk, "/d/debug.log").ends_with("Z [bench] two\n"));
    assert!(!text(&disk, "/d/debug.log").contains("one"));
    let nowhere = Log::new(Arc::new(disk), &LogSettings { file: Some("/dev/null".into()), ..settings }, false);
    nowhere.open(true).unwrap();
    nowhere.info("not written anywhere");
}

/// limit: LOG_SHRINK_BYTES at
/// limit: LOG_SHRINK_BYTES above
/// limit: LOG_KEPT_BYTES at
/// limit: LOG_KEPT_BYTES above
#[test]
fn a_log_that_has_grown_keeps_its_end() {
    let disk = SimDisk::new(0);
    let path = Path::new("/debug.log");
    for (size, kept) in [(LOG_SHRINK_BYTES, LOG_SHRINK_BYTES), (LOG_SHRINK_BYTES + 1, LOG_KEPT_BYTES)] {
        let mut bytes = vec![b'x'; usize::try_from(size).unwrap()];
        let end = bytes.len() - 3;
        bytes[end..].copy_from_slice(b"end");
        disk.write_whole(path, &bytes).unwrap();
        shrink_file(&disk, path).unwrap();
        let after = read_whole(&disk, path, 1 << 30).unwrap();
        assert_eq!(after.len() as u64, kept);
        assert!(after.ends_with(b"end"));
    }
    shrink_file(&disk, Path::new("/none")).unwrap();
}

#[track_caller]
fn caller() -> rate::Place {
    Location::caller()
}

fn elsewhere() -> rate::Place {
    caller()
}

/// Lines that can be provoked from outside do not fill the disk: a place is suppressed after a megabyte, says so, and
/// may write again in the next hour. Other places and lines without a limit are not affected.
/// checklist: 73
/// limit: LOG_BYTES_PER_PLACE_MAX at
/// limit: LOG_BYTES_PER_PLACE_MAX above
/// limit: LOG_WINDOW_MICROS at
/// limit: LOG_WINDOW_MICROS above
#[test]
fn no_place_fills_the_disk() {
    let disk = SimDisk::new(1);
    let log = Log::new(Arc::new(disk.clone()), &settings("debug.log"), false);
    log.open(false).unwrap();
    let here = Location::caller();
    let start = 1_790_000_000_000_000;
    // A timestamp of 20 characters, a space and the line break.
    let message = "x".repeat(1024 - 22);
    let log_at = |now, place| log.line_at(now, None, Level::Info, Source { place, is_limited: true }, &message);
    (0..1024).for_each(|_| log_at(start, here));
    let full = text(&disk, "debug.log");
    assert!(full.len() >= LOG_BYTES_PER_PLACE_MAX && !full.contains("Excessive"), "exactly a megabyte");
    (0..10).for_each(|_| log_at(start, here));
    let quiet = text(&disk, "debug.log");
    assert!(quiet.contains("[warning] Excessive logging detected from") && quiet.len() < full.len() + 2_000);
    log.line_at(start, None, Level::Info, Source::unlimited(here), "a tip");
    let source = Source { place: elsewhere(), is_limited: true };
    log.line_at(start, None, Level::Info, source, "somebody else");
    assert!(text(&disk, "debug.log").contains("somebody else"));
    assert!(text(&disk, "debug.log").contains("[*] 2026-09-21T14:13:20Z a tip"));
    log_at(start + LOG_WINDOW_MICROS - 1, here);
    assert!(!text(&disk, "debug.log").contains("Restarting"));
    log_at(start + LOG_WINDOW_MICROS + 3_600_000_000_000, here);
    let again = text(&disk, "debug.log");
    assert!(again.contains("bytes were dropped during the last 3600s") && again.ends_with(&format!("{message}\n")));
}

/// Every option that changes the form of a line, in the order of Core's `Format`.
#[test]
fn options_change_the_form_of_lines() {
    let line = |change: &dyn Fn(&mut LogForm)| {
        let mut settings = settings("/debug.log");
        change(&mut settings.form);
        let log = Log::new(Arc::new(SimDisk::new(0)), &settings, false);
        log.framed(1_790_000_000_000_000, None, Level::Warning, caller(), "words")
    };
    let plain = "2026-09-21T14:13:20Z [warning] words\n";
    assert_eq!(line(&|_| {}), plain);
    assert_eq!(line(&|form| form.has_timestamps = false), "[warning] words\n");
    assert_eq!(line(&|form| form.has_level_always = true), plain.replace("[warning]", "[all:warning]"));
    let thread = thread::current().name().unwrap().to_owned();
    let named = line(&|form| form.has_thread_names = true);
    assert_eq!(named, plain.replace("[warning]", &format!("[{thread}] [warning]")));
    let located = line(&|form| form.has_source_locations = true);
    assert!(located.contains("log/tests.rs:") && located.contains("] [tests] [warning] words\n"), "{located}");
}

/// `-logratelimit=0`: no place is suppressed.
#[test]
fn without_a_rate_limit_all_is_written() {
    let disk = SimDisk::new(1);
    let mut settings = settings("debug.log");
    settings.form.is_rate_limited = false;
    let log = Log::new(Arc::new(disk.clone()), &settings, false);
    log.open(false).unwrap();
    let half = "x".repeat(LOG_BYTES_PER_PLACE_MAX / 2);
    (0..4).for_each(|_| log.info(&half));
    let text = text(&disk, "debug.log");
    assert!(text.len() > 2 * LOG_BYTES_PER_PLACE_MAX && !text.contains("Excessive"));
}

/// Crates that produce lines check the switches first; the RPC `logging` changes these switches.
#[test]
fn switches_follow_categories_and_levels() {
    let mut settings = settings("/debug.log");
    settings.categories.enable("net").unwrap();
    settings.categories.enable("addrman").unwrap();
    settings.levels.set("addrman:info").unwrap();
    settings.form.has_ips = true;
    let log = Log::new(Arc::new(SimDisk::new(0)), &settings, false);
    let switches = log.switches();
    assert!(switches.is_on("net") && switches.has_ips());
    assert!(!switches.is_on("addrman"), "its level is information");
    assert!(!switches.is_on("validation"));
    log.set_category("validation", true);
    log.set_category("net", false);
    assert!(switches.is_on("validation") && !switches.is_on("net"));
}

/// The page shows what is in the file, as long as it is kept, and nothing else.
#[test]
fn the_last_lines_are_those_of_the_file() {
    let disk = SimDisk::new(1);
    let mut settings = settings("debug.log");
    settings.categories.enable("net").unwrap();
    let log = Log::new(Arc::new(disk.clone()), &settings, false);
    log.info("before");
    log.open(false).unwrap();
    log.warning("a warning\x1b\n");
    log.debug(Category::NET, || "about peers");
    log.debug(Category::ZMQ, || "not logged");
    let half = "x".repeat(LOG_BYTES_PER_PLACE_MAX / 2);
    (0..4).for_each(|_| log.info(&half));
    log.error("last");
    let lines = log.recent();
    assert_eq!((lines.len() as u64, lines[0].0, log.line_count()), (7, 1, 7));
    let of = |(_, line): &(u64, Arc<Line>)| (line.level, line.category, line.text.clone());
    let first: Vec<_> = lines.iter().take(3).map(of).collect();
    let expected = [
        (Level::Info, None, "before".to_owned()),
        (Level::Warning, None, "a warning\\x1b".to_owned()),
        (Level::Debug, Some("net"), "about peers".to_owned()),
    ];
    assert_eq!(first, expected);
    assert_eq!(lines[6].1.text, "last");
    let text = text(&disk, "debug.log");
    assert!(lines.iter().all(|(_, line)| text.contains(line.text.trim_end_matches(" ..."))));
    assert_eq!(text.lines().filter(|line| !line.is_empty()).count(), lines.len());
    assert_eq!(log.path().unwrap(), Path::new("debug.log"));
}
