//! The state of the engine on disk and in memory: the stores, the header tree, the settings, and how they are opened.
//!
//! Input: the directories and the settings. Output: [`manager::ChainstateManager`], which every other folder works on.

pub(crate) mod assumed;
pub(crate) mod blocks;
pub(crate) mod links;
pub(crate) mod manager;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod totals;
pub(crate) mod wipe;
