//! Advice for errors of the stores: start again, `-reindex-chainstate` or `-reindex`. Input: the error. Output: the end
//! of its sentence; empty if the sentence has the advice already. Each piece of advice was tried on every file of a
//! data directory (`tests/crash/damage.rs`).

use lydian_chain::{ChainError, ReadError};
use lydian_coins::CoinsError;
use lydian_disk::{DiskError, DiskErrorKind};
use lydian_engine::EngineError;
use std::borrow::Cow;

const AGAIN: &str = "; everything durable is kept: start again to continue";
const COINS: &str = "; -reindex-chainstate rebuilds the coins from the blocks on disk";
const UNDO: &str = "; -reindex-chainstate rewrites the undo data from the blocks on disk";
const INDEX: &str = "; -reindex rebuilds the index from the block files";
const BLOCKS: &str = "; -reindex rebuilds the index from the remaining blocks";
const KEY: &str = "; restore it from a copy: without it the blocks in this directory cannot be read";
const DEVICE: &str = "; check the disk, then start again to continue";
const PERMISSIONS: &str = "; correct its permissions and start again: nothing is lost";
const ROOM: &str = "; free some space and start again: everything durable is kept";

pub(super) fn advice(error: &EngineError) -> Cow<'static, str> {
    let always = |advice: &'static str| Cow::Borrowed(advice);
    match error {
        EngineError::Coins(
            CoinsError::Damaged { .. }
            | CoinsError::ManifestMissing { .. }
            | CoinsError::NotAManifest { .. }
            | CoinsError::Missing { .. },
        ) => always(COINS),
        EngineError::Coins(CoinsError::Disk(error)) => of_disk(error, COINS),
        EngineError::Chain(ChainError::UndoDamaged { .. } | ChainError::UndoMissing { .. }) => always(UNDO),
        EngineError::Chain(ChainError::Disk(error)) => of_disk(error, rebuild_of(error)),
        EngineError::Chain(ChainError::Read(ReadError::XorKeySize { .. })) => always(KEY),
        EngineError::Chain(ChainError::Read(_)) => always(BLOCKS),
        EngineError::Chain(ChainError::Poisoned { first }) => match first.as_ref() {
            ChainError::Disk(error) => of_disk(error, rebuild_of(error)),
            _ => always(AGAIN),
        },
        EngineError::Disk(error) => of_disk(error, AGAIN),
        // That of a full disk under an index.
        EngineError::Poisoned { reason } if reason.ends_with(ROOM) => always(""),
        EngineError::Coins(CoinsError::Full { .. } | CoinsError::Poisoned) | EngineError::Poisoned { .. } => {
            always(AGAIN)
        }
        _ => always(""),
    }
}

/// The advice that restores a file of the block store.
fn rebuild_of(error: &DiskError) -> &'static str {
    let name = error.path.file_name().unwrap_or_default().to_string_lossy();
    match () {
        () if name.starts_with("blk") => BLOCKS,
        () if name.starts_with("rev") => UNDO,
        () if name == "xor.dat" => KEY,
        () => INDEX,
    }
}

/// Returns `rebuild` if the file itself is damaged or missing.
fn of_disk(error: &DiskError, rebuild: &'static str) -> Cow<'static, str> {
    let advice = match error.kind {
        DiskErrorKind::NotFound
        | DiskErrorKind::UnexpectedEnd { .. }
        | DiskErrorKind::CompressedDataTruncated
        | DiskErrorKind::CompressedDataInvalid { .. }
        | DiskErrorKind::TooLarge { .. } => rebuild,
        DiskErrorKind::IsADirectory | DiskErrorKind::NotADirectory | DiskErrorKind::NotAFile => {
            return Cow::Owned(format!("; move it away{rebuild}"));
        }
        DiskErrorKind::PermissionDenied => PERMISSIONS,
        DiskErrorKind::NoSpace => ROOM,
        DiskErrorKind::Io => DEVICE,
        DiskErrorKind::NotOurs => "",
        DiskErrorKind::Locked | DiskErrorKind::Poisoned | DiskErrorKind::Other { .. } => AGAIN,
    };
    Cow::Borrowed(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_index::IndexError;

    const MOVED_COINS: &str = "; move it away; -reindex-chainstate rebuilds the coins from the blocks on disk";

    fn disk_error(path: &str, kind: DiskErrorKind) -> DiskError {
        DiskError { path: path.into(), offset: None, kind }
    }

    /// Regression test. Whatever was wrong with a file of the stores, the error ended with "start again to go on". If a
    /// file is missing or access to it is denied, starting again gives the same error for ever.
    #[test]
    fn the_advice_fits_the_error() {
        let full_index = IndexError::from(disk_error("i/stats.log", DiskErrorKind::NoSpace)).to_string();
        let coins = |kind| EngineError::Coins(CoinsError::Disk(disk_error("c/00000001.coins", kind)));
        let chain = |path: &str, kind| EngineError::Chain(ChainError::Disk(disk_error(path, kind)));
        for (error, expected) in [
            (coins(DiskErrorKind::NotFound), COINS),
            (coins(DiskErrorKind::UnexpectedEnd { missing: 1 }), COINS),
            (coins(DiskErrorKind::IsADirectory), MOVED_COINS),
            (coins(DiskErrorKind::PermissionDenied), PERMISSIONS),
            (coins(DiskErrorKind::NoSpace), ROOM),
            (coins(DiskErrorKind::Io), DEVICE),
            (coins(DiskErrorKind::Poisoned), AGAIN),
            (chain("b/index/index.log", DiskErrorKind::NotFound), INDEX),
            (chain("b/index/index.log", DiskErrorKind::PermissionDenied), PERMISSIONS),
            (chain("b/blk00000.dat", DiskErrorKind::NotFound), BLOCKS),
            (chain("b/xor.dat", DiskErrorKind::NotFound), KEY),
            (chain("b/rev00000.dat", DiskErrorKind::UnexpectedEnd { missing: 3 }), UNDO),
            (EngineError::Chain(ChainError::UndoMissing { path: "r".into(), offset: 8 }), UNDO),
            (EngineError::Disk(disk_error("c/wipe", DiskErrorKind::PermissionDenied)), PERMISSIONS),
            (EngineError::Poisoned { reason: String::new() }, AGAIN),
            (EngineError::Poisoned { reason: full_index }, ""),
        ] {
            assert_eq!(advice(&error), expected, "{error}");
        }
        let first = Box::new(ChainError::Disk(disk_error("b/index/index.log", DiskErrorKind::NotFound)));
        assert_eq!(advice(&EngineError::Chain(ChainError::Poisoned { first })), INDEX);
    }
}
