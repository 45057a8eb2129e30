//! `-index` and `lydian index load|status|verify cassandra://...`. A program without the driver refuses the option with
//! the command that builds one with it. The other test needs three nodes of Cassandra (`make test-store`): a node
//! writes while blocks arrive and leave, is killed at random moments, loses its store, and meets other writers.

use std::path::Path;
use std::process::{Command, Output};

/// A command of the program on a data directory, without a node.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command.arg(format!("-datadir={}", folder.display())).args(["-regtest", "-printtoconsole=0"]);
    command.args(arguments).output().unwrap()
}

/// The exit code of a command that fails, and what it complains about.
pub(crate) fn complaint(output: &Output) -> (Option<i32>, String) {
    assert!(!output.status.success(), "{output:?}");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The JSON that a command prints, and its exit code.
#[cfg(feature = "cassandra")]
fn document(folder: &Path, arguments: &[&str]) -> (Option<i32>, serde_json::Value) {
    let output = command(folder, &[arguments, &["-json"]].concat());
    let document = serde_json::from_slice(&output.stdout);
    (output.status.code(), document.unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}")))
}

#[cfg(not(feature = "cassandra"))]
#[test]
fn a_program_without_the_driver_says_how_to_build_one() {
    let scratch = lydian_oracle::Scratch::new("rpc-shared-index-driver");
    std::fs::create_dir_all(scratch.path()).unwrap();
    let build = "build it with: cargo build --release -p lydian-node --features cassandra";
    let node = ["-index=cassandra://127.0.0.1/a", "-server=0", "-listen=0", "-noconnect"];
    let (code, text) = complaint(&command(scratch.path(), &node));
    assert!(code == Some(1) && text.contains("-index: ") && text.contains(build), "{code:?} {text}");
    for word in ["load", "status"] {
        let (code, text) = complaint(&command(scratch.path(), &["index", word, "cassandra://127.0.0.1/a"]));
        assert!(code == Some(2) && text.contains(build), "{code:?} {text}");
    }
}

#[cfg(feature = "cassandra")]
#[allow(clippy::print_stdout, reason = "a test of some minutes prints what it measured")]
pub(crate) mod cluster {
    use super::{command, complaint, document};
    use crate::http::send;
    use crate::indexes::{mine, spend};
    use crate::server::Server;
    use lydian_engine::Tip;
    use lydian_index::{IndexKind, Profile, ScriptHash, TxIndex};
    use lydian_index_cassandra::{Settings, open};
    use lydian_lab::store::{Cluster, Join, Recipe, install};
    use lydian_oracle::Scratch;
    use lydian_oracle::copy_folder;
    use lydian_primitives::{RawBlock, hex};
    use lydian_shared_index::{Bucket, Key, PageKey, SharedIndex, Table};
    use lydian_stdx::SplitMix64;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    /// For whatever a cluster on a busy machine has to do.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
    const LOOK: Duration = Duration::from_millis(100);

    pub(crate) static INTERRUPTED: AtomicBool = AtomicBool::new(false);

    fn now() -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
    }

    /// Waits until there is a value.
    pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(LOOK);
        }
    }

    pub(crate) fn start_cluster(folder: &Path) -> Cluster {
        install(&mut |text| println!("{text}")).unwrap();
        let recipe = Recipe { folder, nodes: 3, heap_mib: 512, timeout: PATIENCE, interrupted: &INTERRUPTED };
        Cluster::start(&recipe).unwrap().unwrap()
    }

    struct World {
        cluster: Cluster,
        node: Server,
        address: String,
        options: Vec<String>,
        page: u16,
        _scratch: Scratch,
    }

    impl World {
        fn new() -> World {
            let scratch = Scratch::new("rpc-shared-index");
            let cluster = start_cluster(&scratch.path().join("cluster"));
            let address = format!("cassandra://{}/lydian_node", cluster.hosts());
            let page = lydian_oracle::free_port().unwrap();
            let page_port = format!("-pageport={page}");
            let options = [format!("-index={address}"), "-storeblocks".to_owned(), "-page=1".to_owned(), page_port];
            fs::create_dir(scratch.path().join("new")).unwrap();
            let folder = scratch.path().join("new");
            let (code, text) = complaint(&command(&folder, &[&options[0], "-server=0", "-listen=0", "-noconnect"]));
            assert!(code == Some(1) && text.contains("the keyspace does not exist"), "{text}");
            // The start that was refused has begun an index.
            let empty = scratch.path().join("empty");
            fs::create_dir(&empty).unwrap();
            let (code, text) = complaint(&command(&empty, &["index", "load", &address]));
            assert!(code == Some(3) && text.contains("the keyspace is ready"), "{text}");
            let words: Vec<&str> = options.iter().map(String::as_str).collect();
            let node = Server::lydian("shared-index", &words);
            World { cluster, node, address, options: options.to_vec(), page, _scratch: scratch }
        }

        fn start_again(&mut self) {
            let options = self.options.clone();
            self.node.start_again(&options.iter().map(String::as_str).collect::<Vec<_>>());
        }

        fn stop(&mut self) {
            self.node.result("stop", "[]");
            assert_eq!(self.node.wait(), Some(0));
        }

        fn status(&self) -> Value {
            let (code, status) = document(&self.node.folder, &["index", "status", &self.address]);
            assert_eq!(code, Some(0), "{status}");
            status
        }

        /// Until readers of the store have the tip of the node.
        fn wait_for_tip(&self) -> Value {
            wait("the store does not come to the tip", || {
                let tip = self.node.result("getbestblockhash", "[]");
                let status = self.status();
                (status["hash"] == tip).then_some(status)
            })
        }

        /// Until the store has all blocks of the chain of the node.
        fn wait_for_blocks(&self) -> Value {
            wait("the store does not get the blocks", || {
                let count = self.node.result("getblockcount", "[]").as_u64().unwrap() + 1;
                let status = self.status();
                (status["blocks"] == count).then_some(status)
            })
        }

        fn warnings(&self) -> String {
            self.node.result("getblockchaininfo", "[]")["warnings"].to_string()
        }

        /// A figure of the index in the store.
        fn figure(&self, name: &str) -> Option<u32> {
            let authorization = self.node.authorization();
            let request =
                format!("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic {authorization}\r\n\r\n");
            let body = send(self.page, request.as_bytes()).unwrap().body;
            let start = format!("{name}{{index=\"shared\"}} ");
            body.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok())
        }
    }

    #[test]
    #[ignore = "starts three nodes of Cassandra for two minutes: `lydian-lab store install`; then: cargo test --locked --workspace --features lydian-node/cassandra --test rpc -- --ignored shared_index::cluster::a_node, which make test-store runs"]
    fn a_node_keeps_its_index_in_a_store() {
        let mut world = World::new();
        a_killed_writer_continues(&mut world);
        a_reorganisation_reaches_the_store(&world);
        a_store_that_is_down_delays_no_block(&mut world);
        a_loaded_store_is_equal(&mut world);
        a_damaged_block_ends_the_blocks_only(&mut world);
        others_are_refused(&mut world);
    }

    /// More than a group of blocks, mined while the node is killed again and again.
    fn a_killed_writer_continues(world: &mut World) {
        const KILLS: u32 = 20;
        let mut random = SplitMix64::new(22);
        mine(&world.node, 20, 1);
        mine(&world.node, 110, 5);
        spend(&world.node, 1..10);
        let mut before = 0;
        for _ in 0..KILLS {
            mine(&world.node, 9, 6);
            std::thread::sleep(Duration::from_millis(random.below(1_500) as u64));
            world.node.kill();
            let height = world.status()["height"].as_u64().unwrap_or(0);
            assert!(height >= before, "the store went back from {before} to {height}");
            before = height;
            world.start_again();
        }
        spend(&world.node, 10..20);
        let status = world.wait_for_tip();
        println!("after {KILLS} kills: {status}");
        assert!(world.warnings() == "[]", "{}", world.warnings());
        assert_eq!(wait("the figure", || world.figure("lydian_index_lag_blocks")), 0);
    }

    fn a_reorganisation_reaches_the_store(world: &World) {
        let height = world.node.result("getblockcount", "[]").as_u64().unwrap();
        let first = world.node.result("getblockhash", &json!([height - 5]).to_string());
        world.node.result("invalidateblock", &json!([first]).to_string());
        mine(&world.node, 8, 7);
        let status = world.wait_for_tip();
        assert_eq!(status["height"], height + 2);
        world.wait_for_blocks();
    }

    fn a_store_that_is_down_delays_no_block(world: &mut World) {
        for number in [1, 2] {
            world.cluster.node_mut(number).unwrap().kill().unwrap();
        }
        let height = world.node.result("getblockcount", "[]").as_u64().unwrap();
        mine(&world.node, 5, 8);
        assert_eq!(world.node.result("getblockcount", "[]"), height + 5);
        wait("a warning", || world.warnings().contains("The index is not written to").then_some(()));
        assert_eq!(wait("the figure", || world.figure("lydian_index_lag_blocks")), 5);
        for number in [1, 2] {
            world.cluster.start_node(number, Join::Plainly).unwrap();
        }
        assert!(world.cluster.wait(PATIENCE, &INTERRUPTED).unwrap());
        wait("the warning ends", || (world.warnings() == "[]").then_some(()));
        world.wait_for_tip();
    }

    /// The files of the index go on to their final form when the node stops; then both are the same, page by page, and
    /// so is every answer about every script and transaction.
    fn a_loaded_store_is_equal(world: &mut World) {
        let scripts = scripts(&world.node);
        world.wait_for_blocks();
        world.stop();
        let (code, loaded) = document(&world.node.folder, &["index", "load", &world.address, "-storeblocks"]);
        assert_eq!(code, Some(0), "{loaded}");
        let (code, verified) = document(&world.node.folder, &["index", "verify", &world.address]);
        assert!(code == Some(0) && verified["is_equal"] == true, "{verified}");
        println!("{verified}");
        let status = world.status();
        assert_eq!((&status["lag_blocks"], &status["height"]), (&json!(0), &verified["height"]));
        let blocks = verified["height"].as_u64().unwrap() + 1;
        assert_eq!((&verified["blocks"], &verified["other_blocks"]), (&json!(blocks), &json!(0)));
        assert_eq!((&status["blocks"], &status["first_block"]), (&json!(blocks), &json!(0)));

        let settings = Settings { address: world.address.parse().unwrap(), now };
        let disk = Arc::new(lydian_disk::RealDisk);
        let params = lydian_consensus::Params::new(lydian_consensus::Chain::Regtest);
        let dir = IndexKind::Tables.dir(&world.node.folder.join("regtest"));
        let any = Profile { has_scripts: false, has_txids: false };
        let (_index, own) = TxIndex::open(disk, &dir, params.genesis_hash, any, || [0, 0]).unwrap();
        let shared = SharedIndex::open(open(&settings).unwrap(), &params.genesis_hash).unwrap();
        let mut bytes = 0;
        for (height, hash) in (0..).zip(shared.hashes(0, usize::MAX)) {
            let block = RawBlock::new(shared.stored_block(height, &hash).unwrap().unwrap()).parse().unwrap();
            assert!(block.hash() == hash && block.merkle_root() == block.header().merkle_root, "{height}");
            bytes += block.as_bytes().len();
        }
        assert_eq!(status["block_bytes"], bytes);
        println!("{blocks} blocks of {bytes} bytes are whole");
        let other = shared.snapshot();
        assert_eq!(own.tip().map(|Tip { height, hash }| (height, hash)), other.tip().map(|tip| (tip.height, tip.hash)));
        let mut events = 0;
        for script in &scripts {
            let outputs = own.outputs(script).unwrap();
            events += outputs.outputs.len();
            assert_eq!(other.outputs(script).unwrap().outputs, outputs.outputs);
        }
        assert!(events > 300, "{events} outputs of {} scripts", scripts.len());
        println!("{} scripts with {events} outputs are equal", scripts.len());
    }

    /// Those of all outputs of the chain.
    fn scripts(node: &Server) -> BTreeSet<ScriptHash> {
        let mut all = BTreeSet::new();
        for height in 0..=node.result("getblockcount", "[]").as_u64().unwrap() {
            let hash = node.result("getblockhash", &json!([height]).to_string());
            let block = node.result("getblock", &json!([hash, 2]).to_string());
            for tx in block["tx"].as_array().unwrap() {
                for output in tx["vout"].as_array().unwrap() {
                    let script = hex(output["scriptPubKey"]["hex"].as_str().unwrap()).unwrap();
                    all.insert(ScriptHash::of(&script));
                }
            }
        }
        all
    }

    /// The node that was stopped gets blocks without the store, one of which is damaged while it is stopped.
    fn a_damaged_block_ends_the_blocks_only(world: &mut World) {
        world.node.start_again(&["-addressindex"]);
        let height = world.node.result("getblockcount", "[]").as_u64().unwrap();
        mine(&world.node, 20, 10);
        // Above all that the store has, and below the last six, which are read at the start.
        let hash = world.node.result("getblockhash", &json!([height + 5]).to_string());
        let block = world.node.result("getblock", &json!([hash, 0]).to_string());
        let header = &hex(block.as_str().unwrap()).unwrap()[..80];
        world.stop();
        damage(&world.node.folder.join("regtest/blocks"), header);
        world.start_again();
        wait("a warning", || world.warnings().contains("Blocks are no longer written to").then_some(()));
        world.wait_for_tip();
        wait("the blocks below the damaged one", || (world.status()["blocks"] == height + 5).then_some(()));
        world.stop();
    }

    /// Changes a bit in the coinbase of the block with this header.
    fn damage(blocks: &Path, header: &[u8]) {
        let key = fs::read(blocks.join("xor.dat")).unwrap();
        let mut damaged = 0;
        for entry in fs::read_dir(blocks).unwrap() {
            let entry = entry.unwrap();
            if !entry.file_name().to_str().unwrap().starts_with("blk") {
                continue;
            }
            let mut bytes = fs::read(entry.path()).unwrap();
            let plain: Vec<u8> = bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
            if let Some(at) = plain.windows(header.len()).position(|window| window == header) {
                bytes[at + 100] ^= 1;
                fs::write(entry.path(), &bytes).unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1, "files with the block");
    }

    fn others_are_refused(world: &mut World) {
        // Another salt, and another chain.
        let other = Server::lydian("shared-index-other", &["-addressindex"]);
        let folder = other.folder.clone();
        let options = [world.options[0].as_str(), "-server=0", "-listen=0", "-noconnect"];
        other.result("stop", "[]");
        let mut other = other;
        assert_eq!(other.wait(), Some(0));
        let (code, text) = complaint(&command(&folder, &options));
        assert!(code == Some(1) && text.contains("an index with another salt"), "{text}");
        let mut signet = std::process::Command::new(env!("CARGO_BIN_EXE_lydian"));
        signet.arg(format!("-datadir={}", folder.display())).args(["-signet", "-printtoconsole=0"]).args(options);
        let (code, text) = complaint(&signet.output().unwrap());
        assert!(code == Some(1) && text.contains("the index of the chain with genesis block"), "{text}");

        // A second node with the same index: the one that meets the other's row stops writing, and validates on.
        let copy = folder.with_extension("copy");
        copy_folder(&world.node.folder, &copy).unwrap();
        world.start_again();
        world.wait_for_tip();
        fs::remove_dir_all(&folder).unwrap();
        copy_folder(&copy, &folder).unwrap();
        let _ = fs::remove_dir_all(&copy);
        other.start_again(&[world.options[0].as_str()]);
        mine(&other, 1, 9);
        wait("the other writes", || (world.status()["hash"] == other.result("getbestblockhash", "[]")).then_some(()));
        mine(&world.node, 2, 9);
        wait("the first stops", || world.warnings().contains("another process writes the index").then_some(()));
        assert_eq!(wait("the figure", || world.figure("lydian_index_failed")), 1);
        mine(&world.node, 1, 9);
        assert!(other.result("getblockchaininfo", "[]")["warnings"] == json!([]));
    }

    /// Values of a batch of the writer, and their bytes.
    const BATCH: u32 = 256;
    const PLAIN_BYTES: usize = 4_096;

    /// Writes as many bytes as a load, in values of 4 kB that cannot be compressed; returns the seconds.
    fn plain_writes(settings: &Settings, bytes: u64) -> f64 {
        let store = open(settings).unwrap();
        let mut random = SplitMix64::new(4);
        let count = u32::try_from(bytes / PLAIN_BYTES as u64).unwrap();
        let batches: Vec<Vec<(Key, Vec<u8>)>> = (0..count.div_ceil(BATCH))
            .map(|batch| {
                let pages = batch * BATCH..count.min((batch + 1) * BATCH);
                let value = |page| {
                    let bucket = Bucket { generation: 1 << 40, table: Table::Numbers, page };
                    let words = (0..PLAIN_BYTES / 8).flat_map(|_| random.next_u64().to_le_bytes());
                    (Key::Page(PageKey { bucket, part: 0 }), words.collect())
                };
                pages.map(value).collect()
            })
            .collect();
        let start = Instant::now();
        batches.iter().for_each(|batch| store.write(batch).unwrap());
        start.elapsed().as_secs_f64()
    }

    /// Measures, three times in turn: `lydian index load` of the chain in `LYDIAN_STORE_CHAIN` (of `lydian-lab chain`),
    /// and plain writes of 4 kB by the same driver.
    #[test]
    #[ignore = "a measurement on three nodes of Cassandra, no check: LYDIAN_STORE_CHAIN=DIR cargo test --locked --workspace --features lydian-node/cassandra --test rpc -- --ignored --nocapture shared_index::cluster::bulk"]
    fn bulk_load_beside_plain_writes() {
        let Some(chain) = std::env::var_os("LYDIAN_STORE_CHAIN") else {
            println!("LEFT OUT: LYDIAN_STORE_CHAIN names no chain");
            return;
        };
        let scratch = Scratch::new("rpc-shared-index-load");
        let cluster = start_cluster(&scratch.path().join("cluster"));
        let folder = scratch.path().join("node");
        fs::create_dir(&folder).unwrap();
        let imported = command(&folder, &["import", chain.to_str().unwrap(), "-addressindex=full"]);
        assert!(imported.status.success(), "{imported:?}");
        println!("{}", document(&folder, &["index", "status"]).1["indexes"][0]);
        let mut rates = Vec::new();
        for round in 0..3 {
            let address = format!("cassandra://{}/load_{round}", cluster.hosts());
            let before: u64 = cluster.nodes().iter().map(|node| node.disk_bytes()).sum();
            let (code, loaded) = document(&folder, &["index", "load", &address]);
            assert_eq!(code, Some(0), "{loaded}");
            let after: u64 = cluster.nodes().iter().map(|node| node.disk_bytes()).sum();
            let (code, verified) = document(&folder, &["index", "verify", &address]);
            assert_eq!(code, Some(0), "{verified}");
            let (bytes, seconds) = (verified["bytes"].as_u64().unwrap(), loaded["seconds"].as_f64().unwrap());
            let settings = Settings { address: address.parse().unwrap(), now };
            let plain = plain_writes(&settings, bytes);
            println!(
                "{} values, {bytes} bytes, {} of them pages: load {seconds:.2} s, plain writes {plain:.2} s; the nodes \
                 have {} bytes more on disk",
                verified["values"],
                loaded["page_bytes"],
                after.saturating_sub(before)
            );
            rates.push(plain / seconds);
        }
        println!("load at {rates:.2?} of the rate of plain writes");
    }
}
