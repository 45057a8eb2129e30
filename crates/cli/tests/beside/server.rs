//! Runs Lydian and Core as processes, each with its own data directory and port.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// No peers, and a clock that is stopped, so that two clients that ask in turn get the same reply.
const CORE_OPTIONS: &[&str] =
    &["-listen=0", "-connect=0", "-dnsseed=0", "-fixedseeds=0", "-par=2", "-printtoconsole=0", "-mocktime=1700000000"];

/// A running node. It is killed when this is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// The data directory; it is removed together with the process.
    pub(crate) folder: PathBuf,
    child: Child,
}

impl Server {
    pub(crate) fn core(program: &Path) -> Server {
        Server::with(program, CORE_OPTIONS)
    }

    pub(crate) fn lydian(program: &Path) -> Server {
        Server::with(program, &["-par=2", "-printtoconsole=0", "-listen=0", "-connect=0"])
    }

    pub(crate) fn with(program: &Path, options: &[&str]) -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lydian-cli-{}-{count}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let port = lydian_oracle::free_port().unwrap();
        let child = Command::new(program)
            .arg(format!("-datadir={}", folder.display()))
            .args(["-regtest", &format!("-rpcport={port}")])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Server { port, folder, child };
        for _ in 0..2_400 {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(server.child.try_wait().unwrap(), None, "{} ended", program.display());
            if server.folder.join("regtest/.cookie").is_file()
                && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
            {
                return server;
            }
        }
        panic!("{} does not answer", program.display());
    }

    /// Returns a command line for this server; it waits until the node is ready.
    pub(crate) fn words(&self, words: &[&str]) -> Vec<String> {
        let own = [format!("-datadir={}", self.folder.display()), format!("-rpcport={}", self.port)];
        own.into_iter().chain(["-regtest", "-rpcwait"].iter().chain(words).map(|word| (*word).to_owned())).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
