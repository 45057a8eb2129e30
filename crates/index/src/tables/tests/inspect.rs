//! What `lydian index` reads: reports, checks of every byte, and the comparison with a rebuild.

use super::*;
use crate::files::{Comparison, Difference};
use crate::rebuild::Rebuild;
use crate::tables::inspect;
use lydian_disk::Disk;
use lydian_engine::BlockWithSpent;

const GENESIS: BlockHash = BlockHash([1; 32]);
const SCRATCH: &str = "scratch";

fn on(_: u64) -> bool {
    true
}

/// Builds the index of a disk again from these blocks, and compares.
fn verify(disk: &SimDisk, chain: &Chain) -> Comparison {
    for path in disk.files().into_keys().filter(|path| path.starts_with(SCRATCH)) {
        disk.remove_file(&path).unwrap();
    }
    let (dir, scratch) = (Path::new(DIR), Path::new(SCRATCH));
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let (index, until) = inspect::rebuild(&shared, dir, scratch, GENESIS).unwrap().unwrap();
    let mut rebuild = Rebuild::new(index, until);
    let preparer = rebuild.follower.preparer().unwrap();
    for step in &chain.active {
        let block = connected(step);
        let BlockWithSpent { height, .. } = block.with_spent();
        let rows = preparer.prepare(&block.with_spent());
        rebuild.follower.connect(&block, Some(rows)).unwrap();
        assert_eq!(rebuild.progress.blocks(), (height.0 + 1).min(rebuild.blocks()));
    }
    drop(rebuild);
    inspect::compare(disk, dir, scratch, &GENESIS, &mut on).unwrap()
}

/// A chain with segments, and the disk of its index, which has ended.
fn settled(seed: u64) -> (Chain, SimDisk) {
    let mut chain = Chain::new(seed);
    chain.grow(1_700);
    let disk = SimDisk::new(1);
    let (mut index, reader) = open(&disk);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    drop(index);
    (chain, disk)
}

fn check(disk: &SimDisk) -> Result<(), crate::IndexError> {
    inspect::check(disk, Path::new(DIR), &GENESIS, &mut on)
}

/// As the index was built, stopped or cut: what a rebuild has follows from the record of its last checkpoint.
#[test]
fn an_index_is_equal_to_its_rebuild_wherever_it_stopped() {
    for (profile, name) in [(FULL, "full"), (COMPACT, "compact"), (TRANSACTIONS, "transactions")] {
        let mut chain = Chain::new(11);
        let disk = SimDisk::new(1);
        let (mut index, mut reader) = open_as(&disk, profile);
        let check_all = |chain: &Chain, disk: &SimDisk, what: &str| {
            assert_eq!(check(disk), Ok(()), "{what}");
            let comparison = verify(disk, chain);
            assert_eq!(comparison.difference, None, "{what}");
            // A kill may leave a part of a segment.
            assert!(comparison.notes.iter().all(|note| note.contains("left over")), "{:?}", comparison.notes);
            assert!(comparison.files >= 2 && comparison.bytes > 0, "{what}: {comparison:?}");
            let report = inspect::report(disk, Path::new(DIR), &GENESIS).unwrap().unwrap();
            let blocks = report.tip.unwrap().height.0 as usize + 1;
            let count = |blocks: usize| chain.active.iter().take(blocks).map(|step| step.block.tx_count() as u64).sum();
            let sealed = report.sealed.unwrap() as usize;
            assert_eq!(report.transactions, Some(count(blocks)), "{what}");
            assert_eq!(report.sealed_transactions, Some(count(sealed)), "{what}");
            assert_eq!(report.profile, Some(name));
            let all: usize =
                disk.files().iter().filter(|(path, _)| path.starts_with(DIR)).map(|(_, bytes)| bytes.len()).sum();
            assert_eq!(report.bytes(), all as u64, "{what}");
        };
        // Nothing sealed; one segment; a checkpoint before the sealing thread is done; eight segments merged.
        for blocks in [1, 300, 1_343, 1_344, 2_900, 4_500] {
            chain.grow(blocks - chain.active.len());
            chain.feed(&mut index, &reader);
            index.checkpoint(reader.tip().unwrap()).unwrap();
            check_all(&chain, &disk.kill(), &format!("{blocks} blocks, at once"));
            settle(&mut index, &reader);
            check_all(&chain, &disk.kill(), &format!("{blocks} blocks"));
        }
        // After a kill, blocks above the checkpoint are in no file.
        chain.grow(100);
        chain.feed(&mut index, &reader);
        check_all(&chain, &disk.kill(), "killed");
        // Blocks that left the chain: more is sealed than at this height otherwise.
        settle(&mut index, &reader);
        chain.cut(4_400);
        chain.feed(&mut index, &reader);
        index.checkpoint(reader.tip().unwrap()).unwrap();
        check_all(&chain, &disk.kill(), "cut");
        // Over the border of segments.
        chain.cut(2_500);
        chain.feed(&mut index, &reader);
        settle(&mut index, &reader);
        check_all(&chain, &disk.kill(), "cut deeply");
        drop(index);
        (index, reader) = open_as(&disk.kill(), profile);
        drop((index, reader));
    }
}

/// Every file, damaged at several places: the check names the file. Content that is wrong with the right checksums is
/// found by the comparison.
#[test]
fn damage_is_named_with_the_file() {
    let (chain, disk) = settled(12);
    assert_eq!(check(&disk), Ok(()));
    let files = disk.files();
    assert!(files.len() > 12, "{:?}", files.keys());
    for (path, bytes) in &files {
        for place in 0..16 {
            let mut damaged = bytes.clone();
            let at = (bytes.len() - 1) * place / 15;
            damaged[at] ^= 1;
            disk.write_whole(path, &damaged).unwrap();
            let error = check(&disk).expect_err(&format!("{} at {at}", path.display())).to_string();
            assert!(error.starts_with(&path.display().to_string()), "{at}: {error}");
        }
        disk.write_whole(path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(check(&disk).unwrap_err().to_string().starts_with(&path.display().to_string()));
        disk.write_whole(path, bytes).unwrap();
    }
    // The same heights of another chain, with the same salt.
    let mut other = Chain::new(13);
    other.grow(1_700);
    let others = other.files();
    for (path, bytes) in files.iter().filter(|(path, _)| !path.ends_with("commit")) {
        disk.write_whole(path, &others[path]).unwrap();
        assert_eq!(check(&disk), Ok(()), "{}", path.display());
        let Some(Difference { path: found, offset: Some(_) }) = verify(&disk, &chain).difference else {
            panic!("{}: no difference", path.display());
        };
        assert_eq!(found, *path);
        disk.write_whole(path, bytes).unwrap();
    }
    disk.remove_file(&Path::new(DIR).join("0000000-0000256.sizes")).unwrap();
    assert!(check(&disk).is_err());
    assert_eq!(verify(&disk, &chain).difference.unwrap().offset, None);
}

/// Every file, removed: the check and the report name it. A log may be missing after a crash.
#[test]
fn a_missing_file_is_named() {
    let (_, disk) = settled(15);
    let report = || inspect::report(&disk, Path::new(DIR), &GENESIS).map(drop);
    for (path, bytes) in disk.files() {
        disk.remove_file(&path).unwrap();
        let is_log = path.extension().is_some_and(|end| end == "log");
        for result in [check(&disk), report()] {
            match result {
                Ok(()) => assert!(is_log, "{}", path.display()),
                Err(error) => {
                    assert!(!is_log && error.is_damage(), "{error}");
                    assert!(error.to_string().starts_with(&format!("{}: there is no such file", path.display())));
                }
            }
        }
        disk.write_whole(&path, &bytes).unwrap();
    }
    assert_eq!((check(&disk), report()), (Ok(()), Ok(())));
}

/// Files that the next start removes, and bytes that it cuts off, are notes.
#[test]
fn what_is_not_used_is_no_difference() {
    let (chain, disk) = settled(14);
    let last = Path::new(DIR).join("0001536.log");
    let log = disk.files()[&last].clone();
    disk.write_whole(&last, &[&log[..], b"torn"].concat()).unwrap();
    disk.write_whole(&Path::new(DIR).join("0009984-0010240.sizes"), b"part of a page").unwrap();
    assert_eq!(check(&disk), Ok(()));
    let comparison = verify(&disk, &chain);
    assert_eq!((comparison.difference, comparison.notes.len()), (None, 2));
    // A checkpoint that was interrupted when it had cut the log: the index goes on from the block below.
    disk.write_whole(&last, &[]).unwrap();
    assert_eq!(check(&disk), Ok(()));
    let comparison = verify(&disk, &chain);
    assert_eq!((comparison.difference, comparison.notes.len()), (None, 3), "{:?}", comparison.notes);
}
