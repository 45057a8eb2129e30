//! Bitcoin Core: the build that the tests use as their judge, or any `bitcoind` by path.
//!
//! Input: optionally a path. Output: an adapter. Must never: build anything.

use super::{cache_folder, core, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, ask};
use crate::runs::rpc::Server;
use lydian_report::results::Answer;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Build of the crate that contains Core's source; the judge of the tests is built from the same source.
const BUILD: &str = "core-0.4.1/build/bin/bitcoind";

#[derive(Debug)]
pub struct Bitcoind {
    program: PathBuf,
}

impl Bitcoind {
    pub fn locate(path: Option<&Path>) -> Result<Bitcoind, LabError> {
        let build = cache_folder().join(BUILD);
        let hint = format!(
            "bitcoind: {} does not exist; `make judge` builds it, or give --node-path bitcoind=PATH",
            build.display()
        );
        Ok(Bitcoind { program: found(path, &[build], &hint)? })
    }
}

impl Adapter for Bitcoind {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        let mut command = Command::new(&self.program);
        command.arg("-version");
        Ok(ask(command)?.lines().next().unwrap_or_default().to_owned())
    }

    fn reindex(&self, job: &Job) -> Command {
        core::reindex(job.command(&self.program), job)
    }

    fn go_on(&self, job: &Job) -> Option<Command> {
        Some(core::go_on(job.command(&self.program), job))
    }

    fn sync(&self, job: &Job) -> Command {
        core::sync(job.command(&self.program), job)
    }

    fn serve(&self, job: &Job, port: u16) -> Option<Command> {
        Some(core::serve(job.command(&self.program), job, port))
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        Some(core::offline(job.command(&self.program), job))
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Server::with_cookie(job)
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        core::answer(job.command(&self.program), job)
    }
}
