//! Reads a node's `debug.log` in Bitcoin Core's format: when each height was reached.
//!
//! Input: the log of a run. Output: the time of every `UpdateTip` line with its height and hash, and the last lines for
//! a message. Cost: one pass over the file, a bounded line in memory. Lines in another format and lines that are too
//! long are skipped.

use crate::limits::{LOG_LINE_BYTES_MAX, TAIL_BYTES_MAX};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A line `2026-11-21T04:44:25.123456Z UpdateTip: new best=HASH height=N ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct TipLine {
    /// Seconds since 1970.
    pub unix_seconds: f64,
    pub height: u32,
    pub hash: String,
}

/// Returns every such line; none if there is no log.
pub fn tip_lines(path: &Path) -> Vec<TipLine> {
    let Ok(file) = OpenOptions::new().read(true).open(path) else { return Vec::new() };
    let mut reader = BufReader::new(file);
    let mut found = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return found,
            Ok(_) => found.extend(tip_line(&String::from_utf8_lossy(&line))),
        }
    }
}

/// Follows the log of a running node.
#[derive(Debug)]
pub struct Tail<'a> {
    path: &'a Path,
    /// Position up to which the log was read.
    offset: u64,
    height: Option<u32>,
}

impl<'a> Tail<'a> {
    pub fn new(path: &'a Path) -> Tail<'a> {
        Tail { path, offset: 0, height: None }
    }

    /// Returns the height of the last `UpdateTip` line, or `None` while there is none. Cost: reading what was written
    /// since the last call, at most [`TAIL_BYTES_MAX`] of it.
    pub fn height(&mut self) -> Option<u32> {
        // Whatever cannot be read now is read at the next call.
        self.height = self.new_height().ok().flatten().or(self.height);
        self.height
    }

    fn new_height(&mut self) -> std::io::Result<Option<u32>> {
        let mut file = OpenOptions::new().read(true).open(self.path)?;
        let size = file.seek(SeekFrom::End(0))?;
        let from = self.offset.max(size.saturating_sub(TAIL_BYTES_MAX)).min(size);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES_MAX).read_to_end(&mut bytes)?;
        // The last line may be incomplete: it is read again.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |index| index + 1);
        self.offset = from + whole as u64;
        let text = String::from_utf8_lossy(bytes.get(..whole).unwrap_or_default());
        Ok(text.lines().rev().find_map(tip_line).map(|line| line.height))
    }
}

/// Returns the last bytes of a file, starting at the beginning of a line.
pub fn end_of(path: &Path, bytes: u64) -> String {
    let mut tail = Vec::new();
    let read = OpenOptions::new().read(true).open(path).and_then(|mut file| {
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
        file.take(bytes).read_to_end(&mut tail)?;
        Ok(size > bytes)
    });
    let text = String::from_utf8_lossy(&tail);
    let cut = if matches!(read, Ok(true)) { text.find('\n').map_or(0, |index| index + 1) } else { 0 };
    text.get(cut..).unwrap_or("").trim_end().to_owned()
}

fn tip_line(line: &str) -> Option<TipLine> {
    let (time, rest) = line.split_once(' ')?;
    let (_, rest) = rest.split_once("UpdateTip: new best=")?;
    let mut words = rest.split_ascii_whitespace();
    let hash = words.next()?.to_owned();
    let height = words.next()?.strip_prefix("height=")?.parse().ok()?;
    Some(TipLine { unix_seconds: unix_seconds(time)?, height, hash })
}

/// Parses `2026-11-21T04:44:25Z` or `2026-11-21T04:44:25.123456Z`.
fn unix_seconds(time: &str) -> Option<f64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i32>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':');
    let (hours, minutes) = (clock.next()?.parse::<u8>().ok()?, clock.next()?.parse::<u8>().ok()?);
    let seconds: f64 = clock.next()?.parse().ok()?;
    let is_time = hours < 24 && minutes < 60 && (0.0..61.0).contains(&seconds);
    let is_date = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_time || !is_date {
        return None;
    }
    // Days since 1970-01-01, with years that begin in March so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468;
    Some(f64::from(days) * 86_400.0 + f64::from(hours) * 3_600.0 + f64::from(minutes) * 60.0 + seconds)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write their own files")]
mod tests {
    use super::*;

    #[test]
    fn times_of_day() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0.0),
            ("2000-02-29T12:00:01Z", 951_825_601.0),
            ("2000-03-01T00:00:00Z", 951_868_800.0),
            ("2026-11-21T04:44:25.250000Z", 1_795_236_265.25),
            ("2100-03-01T00:00:00Z", 4_107_542_400.0),
        ];
        for (text, expected) in cases {
            assert!((unix_seconds(text).unwrap() - expected).abs() < 1e-6, "{text}: {:?}", unix_seconds(text));
        }
        for text in ["", "Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z", "x-1-1T1:1:1Z"] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn cores_line_is_read_and_others_are_not() {
        let line =
            "2026-11-21T04:44:25.5Z UpdateTip: new best=00ff height=2016 version=0x20000007 log2_work=12.9 tx=2017\n";
        let found = tip_line(line).unwrap();
        assert_eq!((found.height, found.hash.as_str()), (2016, "00ff"));
        let categorised = line.replace("UpdateTip", "[validation] UpdateTip");
        assert_eq!(tip_line(&categorised).unwrap(), found);
        assert_eq!(tip_line("2026-11-21T04:44:25Z Shutdown done"), None);
        assert_eq!(tip_line("UpdateTip: new best=00ff height=1"), None);
        assert_eq!(tip_line("2026-11-21T04:44:25Z UpdateTip: new best=00ff height=-1"), None);
    }

    /// limit: TAIL_BYTES_MAX at
    /// limit: TAIL_BYTES_MAX above
    #[test]
    fn a_tail_reads_what_is_new() {
        let path = std::env::temp_dir().join(format!("lydian-lab-tail-{}", std::process::id()));
        let mut tail = Tail::new(&path);
        assert_eq!(tail.height(), None, "no log yet");
        let line = |height: u32| format!("2026-11-21T04:44:25Z UpdateTip: new best=aa height={height} x\n");
        let mut text = line(1) + &line(2) + "2026-11-21T04:44:25Z UpdateTip: new best=aa height=3";
        std::fs::write(&path, &text).unwrap();
        assert_eq!(tail.height(), Some(2), "the third is half written");
        assert_eq!(tail.height(), Some(2), "nothing new");
        text += "7 x\n";
        std::fs::write(&path, &text).unwrap();
        assert_eq!(tail.height(), Some(37));
        // Enough new text that the line is the first one read, then one byte more, which cuts it.
        let blanks = |count: u64| " ".repeat(usize::try_from(count).unwrap() - 1) + "\n";
        text += &line(40);
        let room = TAIL_BYTES_MAX - line(40).len() as u64;
        std::fs::write(&path, text.clone() + &blanks(room)).unwrap();
        assert_eq!(Tail::new(&path).height(), Some(40));
        std::fs::write(&path, text + &blanks(room + 1)).unwrap();
        assert_eq!(Tail::new(&path).height(), None);
        // A log that was started anew is shorter than what was read of it.
        std::fs::write(&path, line(5)).unwrap();
        assert_eq!(tail.height(), Some(37));
        std::fs::remove_file(&path).unwrap();
    }

    /// limit: LOG_LINE_BYTES_MAX at
    /// limit: LOG_LINE_BYTES_MAX above
    #[test]
    fn a_line_is_read_up_to_its_limit() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("debug.log");
        let tip = "2026-11-21T04:44:25Z UpdateTip: new best=aa height=7";
        let (head, tail) = tip.split_at(tip.find("height").unwrap());
        let limit = usize::try_from(LOG_LINE_BYTES_MAX).unwrap();
        let lines_found = |length: usize| {
            let blanks = " ".repeat(length - tip.len() - 1);
            std::fs::write(&path, format!("{head}{blanks}{tail}\n{tip}\n")).unwrap();
            tip_lines(&path).len()
        };
        // A line at the limit counts; the end of a longer line is cut off, here the height.
        assert_eq!(lines_found(limit), 2);
        assert_eq!(lines_found(limit + 2), 1);
        assert_eq!(end_of(&path, 60), tip);
        assert_eq!(end_of(&folder.join("absent"), 60), "");
        assert!(tip_lines(&folder.join("absent")).is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
