//! Free space on the disk, checked when the node starts: Core's step 11 (`AppInitMain`). Input: a session and the
//! height of the chain. Output: nothing, or a failure; a warning if the blocks of the chain will not fit.

use super::failure::Failure;
use crate::run::Session;
use crate::settings::Prune;
use lydian_consensus::Chain;
use lydian_disk::Disk;
use lydian_primitives::Height;
use std::io::{self, Write};
use std::path::Path;

/// Core's `min_disk_space`.
const FREE_BYTES_MIN: u64 = 50 << 20;

/// Core's `CheckDiskSpace`. A file system that does not report its free space passes.
pub(super) fn has_space(disk: &dyn Disk, path: &Path, bytes: u64) -> bool {
    disk.free_bytes(path).map_or(true, |free| free >= FREE_BYTES_MIN.saturating_add(bytes))
}

/// Core's `m_assumed_blockchain_size`: GB of block files for the whole chain.
fn chain_gb(session: &Session<'_>) -> u64 {
    let params = &session.settings.params;
    match params.chain {
        Chain::Main => 856,
        Chain::Test => 245,
        Chain::Testnet4 => 31,
        Chain::Signet if session.settings.is_signet_of_others => 0,
        Chain::Signet => 24,
        Chain::Regtest => 0,
    }
}

/// Checks whether the free space permits a start.
pub(super) fn check(session: &Session<'_>, height: Height) -> Result<(), Failure> {
    let settings = session.settings;
    let disk = session.disk.as_ref();
    for path in [&settings.datadir, &settings.blocks] {
        if !has_space(disk, path, 0) {
            return Err(Failure::Space { path: path.clone() });
        }
    }
    let gb = chain_gb(session);
    let needed = match settings.prune {
        Prune::Target { bytes } => bytes.min(gb << 30),
        Prune::Never | Prune::OnRequest => gb << 30,
    };
    let is_first = height.0 <= 1 && !settings.reindex && !settings.reindex_chainstate;
    if is_first && !has_space(disk, &settings.blocks, needed) {
        let warning = format!(
            "Disk space for \"{}\" may not accommodate the block files. Approximately {gb} GB of data will be stored in this directory.",
            settings.blocks.display()
        );
        session.log.warning(&warning);
        // If stderr is closed, the log has it.
        let _ = writeln!(io::stderr().lock(), "Warning: {warning}");
    }
    Ok(())
}
