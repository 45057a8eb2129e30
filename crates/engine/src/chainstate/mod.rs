//! The state of the engine on disk and in memory: the stores, the header tree, the settings, the locks, and how all of
//! it is opened.
//!
//! Input: the directories and the settings. Output: [`manager::ChainstateManager`], which the other folders work on,
//! and [`shared::EngineShared`], which admits one change at a time. It must never decide which
//! chain is active, nor use another folder of the crate.

pub(crate) mod arrivals;
pub(crate) mod assumed;
pub(crate) mod blocks;
pub(crate) mod checked;
pub(crate) mod coins;
pub(crate) mod followers;
pub(crate) mod journal;
#[cfg(test)]
mod journal_tests;
pub(crate) mod links;
pub(crate) mod manager;
pub(crate) mod reviews;
pub(crate) mod settings;
pub(crate) mod settled;
pub(crate) mod shared;
#[cfg(test)]
mod shuttled;
pub(crate) mod start;
pub(crate) mod turns;
pub(crate) mod wipe;

/// The primitives that [`journal`] is built on; its model check provides others.
mod sync {
    pub(super) use std::sync::atomic::{AtomicU64, Ordering};
    pub(super) use std::sync::{Mutex, MutexGuard};
}
