//! The cost of random reads of 64 bytes: 1, 32 and 256 at a time, by every way this system supports, from memory and
//! from disk.
//!
//! Data: one generated file of 256 MiB (4 MiB in the small mode of `cargo test --benches`). Before timing, the bytes
//! read by each way are compared with the bytes written. "cold" evicts the file's pages from memory before each batch;
//! a disk with its own cache may still have them. Run `cargo bench -p lydian-disk --bench reads`.

#![allow(clippy::unwrap_used, reason = "a benchmark fails at once")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lydian_disk::{Disk, ReadFile, ReadRequest, ReadWay, RealDisk};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const READ_SIZE: usize = 64;
const DEPTHS: [usize; 3] = [1, 32, 256];

criterion_group!(benches, reads);
criterion_main!(benches);

fn reads(criterion: &mut Criterion) {
    let is_small = std::env::args().any(|argument| argument == "--test");
    let word_count: u64 = if is_small { 1 << 19 } else { 1 << 25 };
    let path = make_file(word_count);
    for &way in ReadWay::available() {
        let file = RealDisk.open_by(&path, way).unwrap();
        verify(&*file, word_count);
        for depth in DEPTHS {
            let mut random = Random(1);
            let mut buffers = vec![[0; READ_SIZE]; depth];
            for temperature in ["warm", "cold"] {
                let mut group = criterion.benchmark_group(temperature);
                group.throughput(Throughput::Elements(depth as u64)).sample_size(20);
                group.bench_function(BenchmarkId::new(format!("{way:?}"), depth), |bencher| {
                    bencher.iter_batched(
                        || {
                            if temperature == "cold" {
                                forget_pages(&path);
                            }
                            random.offsets(depth, word_count)
                        },
                        |offsets| read(&*file, &offsets, &mut buffers),
                        BatchSize::PerIteration,
                    );
                });
                group.finish();
            }
        }
    }
    RealDisk.remove_file(&path).unwrap();
}

/// Creates a file in which each word is derived from its position.
fn make_file(word_count: u64) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-reads");
    let _ = RealDisk.remove_file(&path);
    let mut writer = RealDisk.append_file(&path).unwrap();
    for start in (0..word_count).step_by(1 << 17) {
        let bytes: Vec<u8> = (start..start + (1 << 17)).flat_map(|word| mix(word).to_le_bytes()).collect();
        writer.write(&bytes).unwrap();
    }
    writer.sync().unwrap();
    path
}

fn verify(file: &dyn ReadFile, word_count: u64) {
    let offsets = Random(2).offsets(1000, word_count);
    let mut buffers = vec![[0; READ_SIZE]; offsets.len()];
    read(file, &offsets, &mut buffers);
    for (offset, buffer) in offsets.iter().zip(&buffers) {
        let expected: Vec<u8> = (offset / 8..offset / 8 + 8).flat_map(|word| mix(word).to_le_bytes()).collect();
        assert_eq!(buffer[..], expected);
    }
}

fn read(file: &dyn ReadFile, offsets: &[u64], buffers: &mut [[u8; READ_SIZE]]) {
    let requests = offsets.iter().zip(buffers);
    let mut reads: Vec<ReadRequest<'_>> = requests.map(|(&offset, buffer)| ReadRequest { offset, buffer }).collect();
    file.read_many(&mut reads).unwrap();
}

#[allow(clippy::disallowed_methods, reason = "evicting one file from the page cache is not an operation of a node")]
fn forget_pages(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    // SAFETY: the call takes no pointers, and the descriptor is open.
    let answer = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(answer, 0);
}

struct Random(u64);

impl Random {
    fn offsets(&mut self, count: usize, word_count: u64) -> Vec<u64> {
        let mut next = || {
            self.0 += 1;
            mix(self.0) % (word_count - 8) * 8
        };
        (0..count).map(|_| next()).collect()
    }
}

fn mix(word: u64) -> u64 {
    let mixed = (word.wrapping_add(1) ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}
