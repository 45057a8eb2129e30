//! The program is killed at random moments, again and again, while it imports, reindexes or loads blocks, while it
//! syncs from a peer, and while it leaves its chain for a peer's; without indexes and with all of them. When restarted
//! it continues, and in the end the coins and the indexes are those of an undisturbed run. Also, every file of a data
//! directory is damaged in turn.
//!
//! `LYDIAN_CRASH_RUNS`: the number of kills (by default a few; `make crash` uses a thousand). `LYDIAN_CRASH_SEED`: the
//! seed of their moments. `LYDIAN_DAMAGE_OFFSETS`: the number of bytes of each file that are damaged (by default one;
//! `make crash` uses more). Attacks by peers (`hostile`) and a long run (`soak`) have variables of their own.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and says what it did")]
#![allow(unreachable_pub, reason = "the modules of one test")]

mod attack;
mod damage;
mod datadirs;
mod files;
mod full;
mod hostile;
mod index;
mod indexes;
mod peers;
mod process;
mod soak;
mod stops;
