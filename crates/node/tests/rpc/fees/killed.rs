//! A node is killed while it writes `fee_estimates.dat`: every hour, and at its end. It gets SIGKILL at each operation
//! on the file, as the kernel reports them. The file is the old one or the new one, and both programs read it.

use super::{Market, file};
use lydian_oracle::killed::kill_count;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The node is slow on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The hourly writing is asked for again if nothing happens for so long.
const LOOK: Duration = Duration::from_secs(3);

/// Further kills at most, until there is a file of each kind.
const MORE_KILLS: usize = 60;

/// What happens to the file and to the one that replaces it, in their order.
struct Watch {
    inotify: OwnedFd,
    seen: Vec<ReadFlags>,
}

impl Watch {
    fn begin(folder: &Path) -> Watch {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let opened = WatchFlags::CREATE | WatchFlags::OPEN | WatchFlags::MODIFY;
        inotify::add_watch(&inotify, folder, opened | WatchFlags::MOVE).unwrap();
        Watch { inotify, seen: Vec::new() }
    }

    fn is_replaced(&self) -> bool {
        self.seen.contains(&ReadFlags::MOVED_TO)
    }

    /// Waits until there were so many operations, or the new file has replaced the old one. Returns whether it is so.
    fn has_seen(&mut self, count: usize, patience: Duration) -> bool {
        let began = Instant::now();
        let mut buffer = [MaybeUninit::uninit(); 4_096];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        while self.seen.len() < count && !self.seen.contains(&ReadFlags::MOVED_TO) {
            match events.next() {
                Ok(event) => {
                    let is_ours = |name: &std::ffi::CStr| name.to_bytes().starts_with(b"fee_estimates.dat");
                    self.seen.extend(event.file_name().is_some_and(is_ours).then(|| event.events()));
                }
                Err(Errno::AGAIN) if began.elapsed() > patience => return false,
                // A kill should come soon after.
                Err(Errno::AGAIN) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Save {
    Hourly,
    AtTheEnd,
}

impl Market {
    /// Starts Lydian on the file `loaded`, has `old` on the disk, and lets it write what it has loaded until there were
    /// so many operations on the file. Returns what was seen.
    fn save_until(&mut self, save: Save, [loaded, old]: [&[u8]; 2], operations: usize) -> Watch {
        let server = &mut self.story.pair.lydian;
        let path = file(server);
        fs::write(&path, loaded).unwrap();
        server.start_again(&[]);
        fs::write(&path, old).unwrap();
        let mut watch = Watch::begin(path.parent().unwrap());
        let began = Instant::now();
        match save {
            Save::Hourly => loop {
                server.result("mockscheduler", "[3600]");
                if watch.has_seen(operations, LOOK) {
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "the file is written every hour");
            },
            Save::AtTheEnd => {
                server.signal("TERM");
                assert!(watch.has_seen(operations, PATIENCE), "the file is written at the end");
            }
        }
        watch
    }
}

/// The file that replaces the other.
fn temporary(path: &Path) -> PathBuf {
    path.with_file_name("fee_estimates.dat.new")
}

/// `LYDIAN_CRASH_RUNS` is the number of kills.
#[test]
#[allow(clippy::print_stderr, reason = "the number of kills of each kind")]
fn a_killed_node_keeps_its_estimates() {
    let Some(mut market) = Market::begin("fees-killed", 8) else { return };
    let files = [6, 12].map(|last| {
        (last - 5..=last).for_each(|number| market.step(number));
        market.stop();
        let [bytes, _] = market.equal_files("the files are equal");
        market.start(&[]);
        bytes
    });
    market.stop();
    let [old, new] = files.each_ref().map(Vec::as_slice);
    assert!(old != new);
    let path = file(&market.story.pair.lydian);
    // What it reads it writes, without being disturbed.
    let mut most = 0;
    for save in [Save::Hourly, Save::AtTheEnd] {
        let watch = market.save_until(save, [new, old], usize::MAX);
        assert!(watch.is_replaced() && watch.seen.contains(&ReadFlags::MODIFY), "{:?}", watch.seen);
        market.story.pair.lydian.kill();
        assert!(fs::read(&path).unwrap() == new, "{save:?}");
        most = most.max(watch.seen.len());
    }
    let (kills, mut kill) = (kill_count(), 0);
    let (mut found, mut unfinished) = ([0; 2], 0);
    // On a busy machine the node may finish each save before it is killed; then it is killed more often.
    while kill < kills || found.contains(&0) && kill < kills + MORE_KILLS {
        let save = if kill % 2 == 0 { Save::Hourly } else { Save::AtTheEnd };
        let watch = market.save_until(save, [new, old], kill / 2 % most + 1);
        market.story.pair.lydian.kill();
        let bytes = fs::read(&path).unwrap();
        let place = [old, new].iter().position(|expected| *expected == bytes);
        let place = place.unwrap_or_else(|| panic!("kill {kill} {save:?} {:?}: {} bytes", watch.seen, bytes.len()));
        assert!(place == 1 || !watch.is_replaced(), "kill {kill} {save:?} {:?}: the old file", watch.seen);
        found[place] += 1;
        unfinished += usize::from(temporary(&path).exists());
        kill += 1;
    }
    eprintln!("{kill} kills: {found:?} files of each kind, {unfinished} unfinished saves, {most} operations each");
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
    // Both programs go on with either file, whatever else an unfinished save left behind.
    for bytes in [old, new] {
        fs::write(temporary(&path), &new[..new.len() / 2]).unwrap();
        market.files().iter().for_each(|file| fs::write(file, bytes).unwrap());
        market.start(&[]);
        market.compare();
        market.waiting.clear();
        market.step(1);
        market.stop();
        market.equal_files("the files are equal after the kills");
        assert!(!temporary(&path).exists());
    }
}
