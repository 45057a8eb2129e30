//! The command line of `verify` and `explain`, parsed by clap; the node's options are parsed in `settings`. Data only:
//! opens no file.

use clap::{Args, Parser, Subcommand};
use lydian_consensus::Chain;
use std::path::PathBuf;

/// The commands that need no data directory and no settings.
#[derive(Debug, Parser)]
#[command(name = "lydian", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 all valid; 1 a block is invalid; 2 something could not be read, or the command line is wrong.\n\
     NO_COLOR=1 turns colours off.";

const VERIFY_HELP: &str = "\
What a path may be:
  blk*.dat, *.blk, *.blk.zst  block files in Bitcoin Core's framing: every rule and every script, from genesis
  X.block with X.prevouts     one block and the outputs it spends: every rule these decide; the others are listed
  X.bin, X.block              one block alone: the rules that need nothing else
  a directory                 all of these in it and below; Core's blocks/ with its xor.dat
Each may be compressed (.zst). The chain comes from --chain, else from the magic of a block file or the name of a
single block (CHAIN-HEIGHT-HASH.block, HEIGHT-HASH.bin), else it is main.

Exit codes: 0 all valid; 1 a block is invalid; 2 something could not be read, or the command line is wrong.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Verify blocks from files
    #[command(after_help = VERIFY_HELP)]
    Verify(VerifyOptions),
    /// Explain what a rule requires, where it comes from, and how Bitcoin Core rejects a block that breaks it
    Explain {
        /// Name of a rule, or a reject reason of Bitcoin Core; without it, all rules in the order of checking
        rule: Option<String>,
    },
}

#[derive(Args, Debug, Default)]
pub(crate) struct VerifyOptions {
    /// Files and directories
    #[arg(required_unless_present = "expect_invalid", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// The chain of all paths: main, test, testnet4, signet or regtest
    #[arg(long)]
    pub(crate) chain: Option<Chain>,

    /// The height of a single block
    #[arg(long)]
    pub(crate) height: Option<u32>,

    /// Blocks that must be rejected; one that is accepted counts as invalid (may be given several times)
    #[arg(long, value_name = "PATH")]
    pub(crate) expect_invalid: Vec<PathBuf>,

    /// Start a soft fork of regtest at another height (bip34, dersig, cltv, csv, segwit), as Bitcoin Core's option does
    #[arg(long, value_name = "NAME@HEIGHT")]
    pub(crate) testactivationheight: Vec<String>,

    /// Print one JSON document (docs/formats/verify-json.md) instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// Print every note and, for each single block, every rule that was not decided and why
    #[arg(long, short)]
    pub(crate) verbose: bool,
}
