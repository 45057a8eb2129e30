//! Measures the disk and loopback of this machine.
//!
//! Input: a directory and a size; rounds. Output: medians with their spread. Cost: the file is written, read
//! sequentially and read at random once per round; 128 MiB go through loopback once per round. It must never leave the
//! file behind, or connect to anything but loopback.

use super::measure::{Measure, as_f64, seconds_of};
use crate::error::LabError;
use lydian_disk::{Disk, DiskError, RealDisk};
use rustix::fs::{Advice, fadvise};
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

const BLOCK_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4_096;
/// A round of them takes a tenth of a second on a disk with 100 us per read.
const RANDOM_READS: u64 = 1_000;
const LOOPBACK_BYTES: u64 = 128 << 20;
const LOOPBACK_CHUNK_BYTES: usize = 64 << 10;
const ROUND_TRIPS: u32 = 2_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskTimes {
    /// Gigabytes per second, including the sync.
    pub(crate) write: Measure,
    pub(crate) read: Measure,
    pub(crate) random_read_us: Measure,
}

impl DiskTimes {
    /// Measures with a temporary file of this size.
    pub(crate) fn measure(folder: &Path, bytes: u64, rounds: usize) -> Result<DiskTimes, LabError> {
        let path = folder.join(format!("lydian-lab-limits-{}.tmp", std::process::id()));
        let mut buffer = vec![0xc3; BLOCK_BYTES];
        let blocks = bytes.div_ceil(BLOCK_BYTES as u64);
        let gigabytes = as_f64(blocks * BLOCK_BYTES as u64) / 1e9;
        let (mut write, mut read, mut random) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut outcome = Ok(());
            write.push(gigabytes / seconds_of(|| outcome = write_file(&path, &buffer, blocks)));
            if outcome.is_ok() {
                read.push(gigabytes / seconds_of(|| outcome = read_file(&path, &mut buffer, blocks)));
            }
            let at_random = random_read_seconds(&path, blocks);
            // If it remains, the next round appends to it; this measurement is valid all the same.
            let _ = std::fs::remove_file(&path);
            outcome?;
            let seconds = at_random.map_err(|error| LabError::io("read", &path, error))?;
            random.push(seconds / as_f64(RANDOM_READS) * 1e6);
        }
        Ok(DiskTimes { write: Measure::of(write), read: Measure::of(read), random_read_us: Measure::of(random) })
    }
}

fn write_file(path: &Path, buffer: &[u8], blocks: u64) -> Result<(), DiskError> {
    let mut file = RealDisk.append_file(path)?;
    (0..blocks).try_for_each(|_| file.write(buffer))?;
    file.sync()
}

fn read_file(path: &Path, buffer: &mut [u8], blocks: u64) -> Result<(), DiskError> {
    let file = RealDisk.open(path)?;
    let size = buffer.len() as u64;
    (0..blocks).try_for_each(|block| file.read_at(block * size, black_box(&mut *buffer)))
}

/// Drops the file's pages from the page cache first and disables read-ahead.
fn random_read_seconds(path: &Path, blocks: u64) -> io::Result<f64> {
    let file = OpenOptions::new().read(true).open(path)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    fadvise(&file, 0, None, Advice::Random)?;
    let pages = blocks * (BLOCK_BYTES / PAGE_BYTES) as u64;
    let mut page = vec![0; PAGE_BYTES];
    let mut outcome = Ok(());
    let seconds = seconds_of(|| {
        outcome = (1..=RANDOM_READS).try_for_each(|number| {
            // Multiples of 2^64 over the golden ratio are spread evenly.
            let place = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % pages;
            file.read_exact_at(black_box(&mut page), place * PAGE_BYTES as u64)
        });
    });
    outcome.map(|()| seconds)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopbackTimes {
    pub(crate) gigabytes_per_second: Measure,
    pub(crate) round_trip_us: Measure,
}

impl LoopbackTimes {
    pub(crate) fn measure(rounds: usize) -> Result<LoopbackTimes, LabError> {
        let measured = (0..rounds).map(|_| Ok((throughput()?, round_trip()?))).collect::<io::Result<Vec<_>>>();
        let measured = measured.map_err(|error| LabError::program("loopback", error))?;
        let (rates, trips): (Vec<f64>, Vec<f64>) = measured.into_iter().unzip();
        Ok(LoopbackTimes { gigabytes_per_second: Measure::of(rates), round_trip_us: Measure::of(trips) })
    }
}

/// Gigabytes per second from one side to the other.
fn throughput() -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    let writer = thread::spawn(move || -> io::Result<()> {
        let (mut peer, _) = listener.accept()?;
        let chunk = vec![0x5a; LOOPBACK_CHUNK_BYTES];
        (0..LOOPBACK_BYTES / LOOPBACK_CHUNK_BYTES as u64).try_for_each(|_| peer.write_all(&chunk))
    });
    let mut buffer = vec![0; LOOPBACK_CHUNK_BYTES];
    let (mut bytes, mut outcome) = (0_u64, Ok(0));
    let seconds = seconds_of(|| {
        loop {
            outcome = stream.read(black_box(&mut buffer));
            match outcome {
                Ok(size) if size > 0 => bytes += size as u64,
                _ => break,
            }
        }
    });
    outcome?;
    joined(writer)?;
    if bytes == LOOPBACK_BYTES { Ok(as_f64(bytes) / 1e9 / seconds) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Microseconds of a round trip.
fn round_trip() -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut stream = TcpStream::connect(listener.local_addr()?)?;
    stream.set_nodelay(true)?;
    let echo = thread::spawn(move || -> io::Result<()> {
        let (mut peer, _) = listener.accept()?;
        peer.set_nodelay(true)?;
        let mut byte = [0];
        (0..ROUND_TRIPS).try_for_each(|_| {
            peer.read_exact(&mut byte)?;
            peer.write_all(&byte)
        })
    });
    let mut byte = [7];
    let mut outcome = Ok(());
    let seconds = seconds_of(|| {
        outcome = (0..ROUND_TRIPS).try_for_each(|_| {
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)
        });
    });
    outcome?;
    joined(echo)?;
    Ok(seconds / f64::from(ROUND_TRIPS) * 1e6)
}

fn joined(side: thread::JoinHandle<io::Result<()>>) -> io::Result<()> {
    side.join().unwrap_or_else(|_| Err(io::Error::other("the other side panicked")))
}
