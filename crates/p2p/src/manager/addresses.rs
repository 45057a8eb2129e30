//! The addresses of the network: the tables, their seeding, their exchange with peers, and the files of them.
//!
//! Input: addresses from peers, seeds and the operator, the time. Output: addresses for peers, files to write.

mod saving;

pub(super) use saving::SAVE_INTERVAL;
pub use saving::SavedFile;
