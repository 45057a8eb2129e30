//! Stratis: `Stratis.BitcoinD`, the Bitcoin node in C# of 2016 to 2020.
//!
//! Input: the path of its program, which is in no registry. Output: an adapter. Its options and limits are taken from
//! the source in stratisproject/StratisBitcoinFullNode; what it shares with Blockcore is in `dotnet.rs`. Must never:
//! install anything.

use super::dotnet::Dotnet;
use crate::error::LabError;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Result<Dotnet, LabError> {
    Dotnet::locate("stratis", path, |_| Vec::new())
}
