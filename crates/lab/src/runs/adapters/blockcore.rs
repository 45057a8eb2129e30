//! Blockcore: `Blockcore.Node`, which was forked from Stratis in 2020.
//!
//! Input: the path of its program, which is in no registry. Output: an adapter. Its options and limits are taken from
//! the source in block-core/blockcore; what it shares with Stratis is in `dotnet.rs`. Must never: install anything.

use super::dotnet::Dotnet;
use crate::error::LabError;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Result<Dotnet, LabError> {
    Dotnet::locate("blockcore", path, |job| vec!["--chain=BTC".to_owned(), format!("-dbcache={}", job.cache_mib)])
}
