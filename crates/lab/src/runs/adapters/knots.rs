//! Bitcoin Knots: Debian's package, unpacked with its own C library into the cache folder, or any binary by path.
//!
//! Input: optionally a path. Output: an adapter. `lydian-lab peers install knots` installs the package
//! (`peers/knots.rs`). Must never: install anything here.

use super::{cache_folder, core, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, ask};
use crate::runs::rpc::Server;
use lydian_chains::chain_files::Network;
use lydian_report::results::Answer;
use lydian_wire::Services;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Below the cache folder.
pub const FOLDER: &str = "knots";
const PROGRAM: &str = "root/usr/bin/bitcoind";
const LOADER: &str = "root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "root/usr/lib/x86_64-linux-gnu";

/// The service of the nodes that follow its hard fork of mainnet at height 961,640 (`NODE_BLAKE2B`, in the local
/// services of its `getnetworkinfo`; the height in its `getdeploymentinfo`).
const BLAKE2B: Services = Services(1 << 28);
const WANTS_BLAKE2B: &str = "Knots 29.4.3 requests no headers of main from a peer without service bit 28, that of its hard fork, which Bitcoin \
                             Core and Lydian do not offer; it syncs from Knots";

#[derive(Debug)]
pub struct Knots {
    program: PathBuf,
    /// The loader and its libraries, for the package; a binary by path is started directly.
    loader: Option<(PathBuf, PathBuf)>,
}

impl Knots {
    pub fn locate(path: Option<&Path>) -> Result<Knots, LabError> {
        let folder = cache_folder().join(FOLDER);
        let hint =
            "knots: it is not installed; `lydian-lab peers install knots` installs it, or give --node-path knots=PATH";
        let program = found(path, &[folder.join(PROGRAM)], hint)?;
        let loader = path.is_none().then(|| (folder.join(LOADER), folder.join(LIBRARIES)));
        Ok(Knots { program, loader })
    }

    /// The program and the arguments that start it.
    fn start(&self) -> (&Path, Vec<&std::ffi::OsStr>) {
        match &self.loader {
            None => (&self.program, Vec::new()),
            Some((loader, libraries)) => {
                (loader, vec!["--library-path".as_ref(), libraries.as_os_str(), self.program.as_os_str()])
            }
        }
    }

    fn command(&self, job: &Job) -> Command {
        let (program, arguments) = self.start();
        let mut command = job.command(program);
        command.args(arguments);
        command
    }
}

impl Adapter for Knots {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        let (program, arguments) = self.start();
        let mut command = Command::new(program);
        command.args(arguments).arg("-version");
        Ok(ask(command)?.lines().next().unwrap_or_default().to_owned())
    }

    fn wants_service(&self, network: &Network) -> Option<(Services, &'static str)> {
        (network.name == "main").then_some((BLAKE2B, WANTS_BLAKE2B))
    }

    fn reindex(&self, job: &Job) -> Command {
        core::reindex(self.command(job), job)
    }

    fn go_on(&self, job: &Job) -> Option<Command> {
        Some(core::go_on(self.command(job), job))
    }

    fn sync(&self, job: &Job) -> Command {
        core::sync(self.command(job), job)
    }

    fn serve(&self, job: &Job, port: u16) -> Option<Command> {
        Some(core::serve(self.command(job), job, port))
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        Some(core::offline(self.command(job), job))
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Server::with_cookie(job)
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        core::answer(self.command(job), job)
    }
}
