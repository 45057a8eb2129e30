//! A node for which `lab.toml` sets additional arguments.
//!
//! It wraps any adapter and adds these arguments to every start, before those of the command line. A fork of a node is
//! a wrapped adapter with the fork's program. Input: an adapter and arguments. Output: an adapter. Must never: fail to
//! forward a method of the trait; a test compares the lists.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::rpc::Server;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment, Stage};
use lydian_wire::Services;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub struct Configured {
    inner: Box<dyn Adapter>,
    args: Vec<String>,
}

impl Configured {
    pub fn new(inner: Box<dyn Adapter>, args: &[String]) -> Configured {
        Configured { inner, args: args.to_vec() }
    }

    fn job(&self, job: &Job) -> Job {
        Job { more: [self.args.as_slice(), job.more.as_slice()].concat(), ..job.clone() }
    }
}

impl Adapter for Configured {
    fn program(&self) -> &Path {
        self.inner.program()
    }

    fn version(&self) -> Result<String, LabError> {
        self.inner.version()
    }

    fn absent(&self) -> Option<&str> {
        self.inner.absent()
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        self.inner.cannot(experiment)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        self.inner.refuses(network)
    }

    fn wants_service(&self, network: &Network) -> Option<(Services, &'static str)> {
        self.inner.wants_service(network)
    }

    fn take_over(&self, job: &Job) -> Result<(), LabError> {
        self.inner.take_over(&self.job(job))
    }

    fn reindex(&self, job: &Job) -> Command {
        self.inner.reindex(&self.job(job))
    }

    fn go_on(&self, job: &Job) -> Option<Command> {
        self.inner.go_on(&self.job(job))
    }

    fn sync(&self, job: &Job) -> Command {
        self.inner.sync(&self.job(job))
    }

    fn serve(&self, job: &Job, port: u16) -> Option<Command> {
        self.inner.serve(&self.job(job), port)
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        self.inner.tip(&self.job(job))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        self.inner.stop(&self.job(job))
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        self.inner.offline(&self.job(job))
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        self.inner.rpc(&self.job(job))
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }

    fn stages(&self, job: &Job) -> Vec<Stage> {
        self.inner.stages(&self.job(job))
    }

    fn log(&self, job: &Job) -> PathBuf {
        self.inner.log(&self.job(job))
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        self.inner.answer(&self.job(job))
    }
}

#[cfg(test)]
mod tests {
    /// The names of the methods with one level of indentation in a block of a source file.
    fn methods(source: &str, head: &str) -> Vec<String> {
        let block = source.split_once(head).unwrap().1;
        let block = &block[..block.find("\n}").unwrap()];
        let names =
            block.lines().filter_map(|line| line.strip_prefix("    fn ")?.split_once('(').map(|(name, _)| name));
        names.map(str::to_owned).collect()
    }

    #[test]
    fn every_method_of_the_trait_is_passed_on() {
        let mut of_trait = methods(include_str!("../adapter.rs"), "pub trait Adapter");
        let mut ours = methods(include_str!("configured.rs"), "impl Adapter for Configured");
        assert!(of_trait.len() >= 13, "{of_trait:?}");
        of_trait.sort();
        ours.sort();
        assert_eq!(of_trait, ours);
    }
}
