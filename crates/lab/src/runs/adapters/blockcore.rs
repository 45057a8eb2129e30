//! Blockcore: `Blockcore.Node`, which went on from Stratis in 2020.
//!
//! Input: the path of its program, which no registry holds. Output: an adapter. Options and what it cannot are read in block-core/blockcore; what it
//! shares with the other is in `dotnet.rs`. Must never: install anything.

use super::dotnet::Dotnet;
use crate::error::LabError;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Result<Dotnet, LabError> {
    Dotnet::locate("blockcore", path, |job| vec!["--chain=BTC".to_owned(), format!("-dbcache={}", job.cache_mib)])
}
