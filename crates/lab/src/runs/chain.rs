//! The chain of a comparison: its facts and its answer as results record them, and a copy of its files for a node.
//!
//! Input: a chain. Output: types of results; files. Cost: of a copy, the size of the chain. Must never: change the
//! chain's own files.

use super::system::{copy_durably, create_dir};
use crate::error::LabError;
use lydian_chains::chain_files::{self, ChainFiles, Facts};
use lydian_report::results::{Answer, ChainFacts};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub fn facts(chain: &ChainFiles) -> ChainFacts {
    let Facts { sha256, file_bytes, height, tip, stats } = chain.facts.clone();
    ChainFacts {
        preset: stats.preset,
        network: chain.network.name.to_owned(),
        sha256,
        file_bytes,
        height,
        tip,
        transactions: stats.transactions,
        inputs: stats.inputs,
        outputs: stats.outputs,
        ecdsa_verifications: stats.ecdsa_verifications,
        schnorr_verifications: stats.schnorr_verifications,
        tweak_checks: stats.tweak_checks,
    }
}

/// The state that every node must reach; `None` if it is not known.
pub fn answer(chain: &ChainFiles) -> Option<Answer> {
    let chain_files::Answer { height, tip, coins, utxo_hash } = chain.answer.clone()?;
    Some(Answer { height, tip, coins, utxo_hash })
}

/// Creates a folder, copies the files of the chain into it and waits until they are on disk.
pub fn copy_to(chain: &ChainFiles, folder: &Path) -> Result<(), LabError> {
    copy_files(&chain.files, folder)
}

/// The same for other files.
pub(super) fn copy_files(files: &[PathBuf], folder: &Path) -> Result<(), LabError> {
    create_dir(folder)?;
    for file in files {
        copy_durably(file, &folder.join(file.file_name().unwrap_or(OsStr::new("blk"))))?;
    }
    Ok(())
}
