//! Bitcoin Core's option syntax, for every program that has Core's options. Input: a table of options, the words of a
//! command line, configuration files, `settings.json`. Output: the values that count, errors in Core's words, and the
//! help text.
//!
//! A program has one table of [`Opt`]; everything that is known about an option is in its entry. [`Sources`] collects
//! the values and decides which one counts, [`ConfigFiles`] reads the configuration files, [`SettingsFile`] is
//! `settings.json`, [`apply`] hands each value to its entry, and [`help`] prints the table. From a [`Program`] come its
//! manual page ([`manual`]) and its completions ([`completions`]).
//!
//! Invariants: only [`SettingsFile::write`] writes to disk; a value is read as Core reads it, and is an error if it is
//! one in Core. No option of a program is named here, except those that choose files and the chain. Cost: a few small
//! files are read.

#![forbid(unsafe_code)]

pub mod build;
mod chain;
pub mod completions;
mod conf;
mod config_files;
mod error;
pub mod help;
mod limits;
pub mod manual;
mod notice;
mod program;
mod rules;
mod settings_file;
mod sources;
mod table;
mod value;
mod words;

pub use chain::{BaseChain, ChainCombination, base_chain, chain_name};
pub use config_files::{CONF_FILENAMES, ConfigFiles, DatadirProblem, ReadProblem};
pub use error::{ArgumentProblem, ConfProblem, FileProblem};
pub use notice::Notice;
pub use program::{Entry, Program, Then, Word};
pub use rules::Rules;
pub use settings_file::{SETTINGS_FILES, SettingsFile};
pub use sources::{Origin, Setting, Sources, Value};
pub use table::{Group, Kind, Opt, Set, apply};
pub use value::{atoi, switch};
