//! Faults of the disk at every operation, for the tests of each index.
//!
//! Input: a disk, and work that opens an index, calls its second argument before the part that may fail, and ends. The
//! fault comes at the first operation after that call, then at the second, until the work ends before the fault.

use lydian_disk::{Fault, SimDisk};
use lydian_engine::EngineError;
use lydian_stdx::SplitMix64;

/// Crashes before, inside and after each operation. `check` gets the disk after a loss of power. The work has more than
/// `operations_min` operations and returns whether it came to its end.
pub(crate) fn crash_everywhere(
    base: &SimDisk,
    operations_min: u64,
    mut work: impl FnMut(&SimDisk, &dyn Fn()) -> bool,
    check: impl Fn(&SimDisk),
) {
    let mut random = SplitMix64::new(3);
    for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
        for operation in 0.. {
            let disk = base.kill();
            let is_complete = work(&disk, &|| disk.fail_at(disk.operation_count() + operation, fault));
            check(&disk.power_loss(random.next_u64()));
            if is_complete && !disk.is_crashed() {
                assert!(operation > operations_min, "{operation} operations");
                break;
            }
        }
    }
}

/// Fills the disk at each operation. An error of the follower names a file of its directory. `check` gets the disk with
/// space again. Returns how often the work came to its end with a full disk.
pub(crate) fn full_everywhere(
    base: &SimDisk,
    (follower, directory): (&str, &str),
    mut work: impl FnMut(&SimDisk, &dyn Fn()) -> Result<(), EngineError>,
    check: impl Fn(&SimDisk),
) -> u64 {
    let (mut of_follower, mut went_on) = (0, 0);
    for operation in 0.. {
        let disk = base.kill();
        let planned = std::cell::Cell::new(0);
        let result = work(&disk, &|| {
            planned.set(disk.operation_count() + operation);
            disk.fail_at(planned.get(), Fault::NoSpace);
        });
        let is_over = disk.operation_count() <= planned.get();
        assert!(result.is_ok() || !is_over, "operation {operation}: {result:?}");
        went_on += u64::from(result.is_ok() && !is_over);
        if let Err(EngineError::Follower { name, reason }) = result {
            assert!(name == follower && reason.starts_with(directory) && reason.contains("no space"), "{reason}");
            of_follower += 1;
        }
        check(&disk.kill());
        if is_over {
            assert!(of_follower > 10, "{of_follower} of {operation} operations");
            break;
        }
    }
    went_on
}
