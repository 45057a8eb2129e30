//! The chains that both programs are asked about: one with every kind of script, one with competing branches.

use crate::compare::Comparison;
use crate::server::Server;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::ledger::read_cases;
use lydian_chains::presets::reorg::REORG_NOW;
use lydian_chains::presets::{mainnet_mix, reorg};
use lydian_oracle::{Scratch, build, or_skip};
use lydian_primitives::to_hex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mix, from height 1: full blocks with outputs and inputs of every kind. Also returns a time one hour after its
/// last block.
pub(crate) fn mix() -> (Vec<Vec<u8>>, u32) {
    let mut blocks = Vec::new();
    let settings = MixSettings { blocks: 442, full: 2, seed: 5, reuse_per_mille: 0 };
    mainnet_mix::generate(settings, 2, |block| {
        blocks.push(block.to_vec());
        Ok(())
    })
    .unwrap();
    blocks.remove(0);
    let time = u32::from_le_bytes(blocks[blocks.len() - 1][68..72].try_into().unwrap());
    (blocks, time + 3_600)
}

/// Both programs, on the same chain.
pub(crate) struct Pair {
    pub(crate) lydian: Server,
    pub(crate) core: Server,
    pub(crate) built: build::Built,
    pub(crate) comparison: Comparison,
}

impl Pair {
    /// `None` if Core is not built.
    pub(crate) fn start(test: &str, options: &[&str]) -> Option<Pair> {
        let built = or_skip(test, build::locate())?;
        let pair = Pair {
            lydian: Server::lydian(test, options),
            core: Server::core(&built.bitcoind, test, options),
            built,
            comparison: Comparison::default(),
        };
        Some(pair)
    }

    /// Deletes the files of an index below `indexes` while the node is stopped, and waits until it is built anew.
    pub(crate) fn rebuild_index(&mut self, dir: &str, name: &str, option: &str) {
        let path = self.lydian.folder.join("regtest/indexes").join(dir);
        self.lydian.restart(&[]);
        std::fs::remove_dir_all(path).unwrap();
        self.lydian.restart(&[option]);
        let is_synced = |_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.lydian.result("getindexinfo", "[]")[name]["synced"] == true
        };
        assert!((0..2_400).any(is_synced), "{name} is built within two minutes");
    }

    /// Sends the same call to both.
    pub(crate) fn ask(&self, method: &str, params: &str) {
        self.ask_body(method, &format!("{{\"method\":\"{method}\",\"params\":{params},\"id\":1}}"));
    }

    /// Like [`Pair::ask`]; if both answer with their help, only the status is compared, since the text is our own.
    pub(crate) fn ask_about_help(&self, method: &str, params: &str) {
        let (ours, cores) = (self.lydian.call(method, params), self.core.call(method, params));
        let is_help = |body: &str| body.contains(&format!("\"message\":\"{method}"));
        if is_help(&ours.body) && is_help(&cores.body) {
            assert_eq!(ours.status, cores.status, "{method} {params:.200}");
        } else {
            self.ask(method, params);
        }
    }

    /// Sends the same body to both; compares status and body of the answers.
    pub(crate) fn ask_body(&self, method: &str, body: &str) {
        let (ours, cores) = (self.lydian.post(body), self.core.post(body));
        assert_eq!(ours.status, cores.status, "{body:.200}: {} {}", ours.body, cores.body);
        if ours.body.is_empty() || cores.body.is_empty() {
            assert_eq!(ours.body, cores.body, "{body:.200}");
        } else {
            self.comparison.compare(method, body, &ours.body, &cores.body);
        }
    }

    /// Submits the mix. Both clocks are an hour ahead of its last block. Returns its height.
    pub(crate) fn feed_mix(&self) -> u32 {
        let (blocks, now) = mix();
        self.both("setmocktime", &format!("[{now}]"));
        for block in &blocks {
            self.both("submitblock", &format!("[\"{}\"]", to_hex(block)));
        }
        u32::try_from(blocks.len()).unwrap()
    }

    /// Submits the branches; every answer to `submitblock` is compared.
    pub(crate) fn feed_branches(&self) {
        // Tests of one process run at the same time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = Scratch::new(&format!("rpc-reorg-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
        reorg::write(folder.path()).unwrap();
        self.both("setmocktime", &format!("[{REORG_NOW}]"));
        for (line, bytes) in read_cases(folder.path()).unwrap() {
            let ours = self.lydian.call("submitblock", &format!("[\"{}\"]", to_hex(&bytes)));
            let cores = self.core.call("submitblock", &format!("[\"{}\"]", to_hex(&bytes)));
            assert_eq!(ours.body, cores.body, "{} at {}", line.name, line.height);
        }
    }

    fn both(&self, method: &str, params: &str) {
        let (ours, cores) = (self.lydian.call(method, params), self.core.call(method, params));
        assert_eq!(ours.body, cores.body, "{method}");
        assert!(ours.body.contains("\"error\":null"), "{method}: {}", ours.body);
    }
}
