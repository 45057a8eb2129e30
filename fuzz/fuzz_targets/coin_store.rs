//! The files of a coin store with any bytes: the store opens and every coin can be read, or the error names one of the
//! files.
//!
//! Checksums are not verified here (`cfg(fuzzing)`), so that the fuzzer reaches the code after them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lydian_coins::{Coins, CoinsError, Settings};
use lydian_disk::{Disk, SimDisk};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// The files of the example in `docs/formats/coins.md`, which is the seed. In the input, each is preceded by its size
/// in 2 bytes.
const NAMES: [&str; 4] = ["manifest", "00000001.coins", "00000001.index", "00000002.deaths"];

fuzz_target!(|input: &[u8]| {
    let dir = Path::new("/c");
    let disk = SimDisk::new(1);
    disk.create_dir(dir).expect("an empty disk");
    let mut rest = input;
    for name in NAMES {
        let Some((size, tail)) = rest.split_first_chunk::<2>() else { break };
        let (bytes, tail) = tail.split_at(tail.len().min(usize::from(u16::from_le_bytes(*size))));
        disk.write_whole(&dir.join(name), bytes).expect("there is room");
        rest = tail;
    }
    for settings in [Settings::new(1 << 20), Settings::low_memory(1 << 20)] {
        match read(&disk, dir, settings) {
            Ok(exported) => assert_eq!(read(&disk, dir, settings), Ok(exported)),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("/c") && !text.contains('\n'), "{text}");
            }
        }
    }
});

/// Opens the store, visits every coin and looks up each.
fn read(disk: &SimDisk, dir: &Path, settings: Settings) -> Result<u64, CoinsError> {
    let coins = Coins::open(Arc::new(disk.clone()), dir, settings, [1; 16], 1)?;
    let mut outpoints = Vec::new();
    let _: ControlFlow<()> = coins.pin()?.export(&mut |outpoint, _| {
        outpoints.push(*outpoint);
        ControlFlow::Continue(())
    })?;
    let mut count = 0;
    let _: ControlFlow<()> = coins.each(&mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    assert_eq!((count, outpoints.len() as u64), (coins.len(), coins.len()));
    for outpoint in outpoints {
        let key = coins.key(outpoint);
        coins.get(Coins::partition(&key), &[key], &mut Vec::new())?;
    }
    Ok(count)
}
