//! Many reads at once: every way that this system supports returns the bytes of the file.

use lydian_disk::limits::{READER_THREADS_MAX, RING_DEPTH};
use lydian_disk::{Disk, ReadFile, ReadRequest, ReadWay, RealDisk, SimDisk};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SIZE: usize = 300_000;

fn content() -> Vec<u8> {
    (0..SIZE as u64 / 4).flat_map(|i| (i.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[..4].to_vec()).collect()
}

fn path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let write = || {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("many-reads");
        RealDisk.write_whole(&path, &content()).unwrap();
        path
    };
    PATH.get_or_init(write).clone()
}

fn read(file: &dyn ReadFile, spans: &[(usize, usize)]) -> Vec<Vec<u8>> {
    let mut buffers: Vec<Vec<u8>> = spans.iter().map(|span| vec![0xee; span.1]).collect();
    let requests = spans.iter().zip(&mut buffers);
    let mut reads: Vec<ReadRequest<'_>> =
        requests.map(|(span, buffer)| ReadRequest { offset: span.0 as u64, buffer }).collect();
    file.read_many(&mut reads).unwrap();
    buffers
}

fn check(spans: &[(usize, usize)]) {
    let content = content();
    let expected: Vec<&[u8]> = spans.iter().map(|&(offset, size)| &content[offset..offset + size]).collect();
    for &way in ReadWay::available() {
        assert!(read(&*RealDisk.open_by(&path(), way).unwrap(), spans) == expected, "{way:?}");
    }
    let disk = SimDisk::new(0);
    disk.write_whole(Path::new("f"), &content).unwrap();
    assert!(read(&*disk.open(Path::new("f")).unwrap(), spans) == expected, "simulated");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_gives_the_same_bytes(
        spans in prop::collection::vec((0..SIZE, prop_oneof![4 => 0..200usize, 1 => 0..40_000usize]), 0..600)
    ) {
        let spans: Vec<_> = spans.into_iter().map(|(offset, size)| (offset, size.min(SIZE - offset))).collect();
        check(&spans);
    }
}

fn small(count: usize) -> Vec<(usize, usize)> {
    (0..count).map(|index| (index * 7919 % (SIZE - 64), 64)).collect()
}

/// limit: RING_DEPTH at
/// limit: READER_THREADS_MAX at
#[test]
fn a_batch_may_fill_the_ring_and_the_threads() {
    check(&small(RING_DEPTH));
    check(&small(READER_THREADS_MAX));
}

/// limit: RING_DEPTH above
/// limit: READER_THREADS_MAX above
#[test]
fn a_batch_may_be_longer_than_ring_and_threads() {
    check(&small(RING_DEPTH + 1));
    check(&small(10 * RING_DEPTH + 3));
    check(&small(READER_THREADS_MAX + 1));
}

#[test]
fn many_callers_do_not_disturb_each_other() {
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                for round in 1..30 {
                    check(&small(thread * 50 + round));
                }
            });
        }
    });
}

/// One bad request fails its batch, and later batches are unaffected.
#[test]
fn a_request_beyond_the_end_is_named_by_every_way() {
    for &way in ReadWay::available() {
        let file = RealDisk.open_by(&path(), way).unwrap();
        let (mut good, mut bad) = ([0; 8], [0; 8]);
        let offset = SIZE as u64 - 3;
        let mut reads = [ReadRequest { offset: 0, buffer: &mut good }, ReadRequest { offset, buffer: &mut bad }];
        let error = file.read_many(&mut reads).unwrap_err();
        assert_eq!(error.to_string(), format!("{}:{offset}: the file ends 5 bytes too early", path().display()));
        assert_eq!(read(&*file, &[(0, 2), (2, 2)]), [&content()[..2], &content()[2..4]]);
    }
}
