//! [`Difference`]: why a comparison cannot continue from an earlier file.

use std::fmt;

/// What differs between the earlier comparison and this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Experiment,
    Chain,
    Settings,
    Machine,
    Nodes,
    Version,
    Build,
    Arguments,
    Server,
    Caches,
}

/// Why the comparison cannot continue from an earlier file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: What,
    pub was: String,
    pub is: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, advice) = match self.what {
            What::Experiment => ("experiment", "take the command of the earlier runs"),
            What::Chain => ("chain", "give that of the earlier runs"),
            What::Settings => ("settings", "give those of the earlier runs"),
            What::Machine => ("machine", "measure where the earlier runs were made"),
            What::Nodes => ("nodes", "give --nodes as before"),
            What::Version => ("version of a node", "give its earlier build with --node-path"),
            What::Build => ("build of a node", "give its earlier build with --node-path"),
            What::Arguments => ("program and arguments of a node", "give those of the earlier runs"),
            What::Server => ("server", "give --server as before"),
            What::Caches => ("state of the cache", "give --cache as before"),
        };
        let (was, is) = (&self.was, &self.is);
        write!(
            f,
            "--resume: not the same {what}: before {was}, now {is}; {advice}, or start over without --resume, into another file"
        )
    }
}
