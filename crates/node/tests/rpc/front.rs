//! Many wallets. Whole copies: two nodes behind a balancer of TCP connections. Front ends (`lydian serve`): refusals.
//! The other test needs three nodes of Cassandra (`make test-store`): two nodes, one of which writes its index to the
//! store, and two front ends, whose answers must equal those of the nodes while the mempool changes, blocks arrive and
//! leave, nodes restart and end, and front ends are stopped and killed.

use crate::abuse::until;
use crate::electrum::{NO_TLS, NO_WEBSOCKET, script};
use crate::electrum_model::{Wallet, scripthash};
use crate::electrum_operators::SIGNATURE;
use crate::indexes::mine;
use crate::server::Server;
use crate::shared_index::complaint;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::thread;

/// Runs the program where its default data directory would be in `home`.
fn serve(home: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
    command.env("HOME", home).arg("serve").args(arguments).output().unwrap()
}

#[test]
fn a_front_end_is_refused_without_what_it_needs() {
    let scratch = lydian_oracle::Scratch::new("rpc-front-refusals");
    let home = scratch.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let (index, feed) = ("-index=cassandra://127.0.0.1:1/a", "-feed=127.0.0.1:1");
    let only_in_cluster = if cfg!(feature = "cassandra") { "127.0.0.1" } else { "--features cassandra" };
    for (arguments, expected) in [
        (&[feed, "-electrum"][..], "needs the index that it reads: -index="),
        (&[index, "-electrum"], "needs the nodes that it follows: -feed="),
        (&[index, feed], "needs -electrum, -esplora or both"),
        (&[index, feed, "-electrum", "-prune=550"], "lydian serve has no -prune"),
        (&[index, feed, "-electrum", "-datadir=/tmp"], "lydian serve has no -datadir"),
        (&[index, "-feed=1.2.3.4:5", "-electrum"], "-feed"),
        (&[index, feed, "-electrum", "-healthbind=127.0.0.1:0"], "-healthbind"),
        (&[index, feed, "-electrum", "-regtest", "-feedcert=/nowhere/cert.pem"], "/nowhere/cert.pem"),
        (&[index, feed, "-electrum", "-regtest"], only_in_cluster),
    ] {
        let (code, text) = complaint(&serve(&home, arguments));
        assert!(
            code == Some(1) && text.contains("Error: ") && text.contains(expected),
            "{arguments:?}: {code:?} {text}"
        );
    }
    let mut home = std::fs::read_dir(&home).unwrap();
    assert!(home.next().is_none(), "a front end makes no data directory");
}

/// A balancer: gives each connection to the next of these ports that takes it, with a PROXY header, version 2. It ends
/// with the process.
fn balancer(ports: [u16; 2]) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let own = listener.local_addr().unwrap().port();
    let serve = move || {
        for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let ports = [ports[number % 2], ports[(number + 1) % 2]];
            let Some(mut server) = ports.into_iter().find_map(|port| TcpStream::connect(("127.0.0.1", port)).ok())
            else {
                continue;
            };
            let from = client.peer_addr().unwrap();
            let IpAddr::V4(ip) = from.ip() else { unreachable!("it listens on IPv4") };
            let ends = [&ip.octets()[..], &[127, 0, 0, 1], &from.port().to_be_bytes(), &own.to_be_bytes()].concat();
            server.write_all(&[SIGNATURE, &[0x21, 0x11, 0, 12], &ends].concat()).unwrap();
            for (mut from, mut to) in [
                (client.try_clone().unwrap(), server.try_clone().unwrap()),
                (server.try_clone().unwrap(), client.try_clone().unwrap()),
            ] {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    };
    thread::spawn(serve);
    own
}

/// As docs/scale.md has it: wallets are given to one of two nodes, which sees their addresses; when it ends, they find
/// the same answers at the other.
#[test]
fn whole_copies_serve_wallets_behind_a_balancer() {
    let ports = [(); 2].map(|()| lydian_oracle::free_port().unwrap());
    let mut nodes = ports.map(|port| {
        let bind = format!("-electrumbind=127.0.0.1:{port}");
        let options = ["-electrum", &bind, NO_TLS, NO_WEBSOCKET, "-electrumproxy=127.0.0.1"];
        Server::lydian("front-copies", &options)
    });
    mine(&nodes[0], 30, 1);
    for height in 1..=30 {
        let hash = nodes[0].result("getblockhash", &json!([height]).to_string());
        let block = nodes[0].result("getblock", &json!([hash, 0]).to_string());
        assert_eq!(nodes[1].result("submitblock", &json!([block]).to_string()), Value::Null);
    }
    let port = balancer(ports);
    let mut wallets: Vec<Wallet> = (0..6).map(|_| Wallet::connect(port, "1.6")).collect();
    let question = |wallet: &mut Wallet| {
        let params = json!([scripthash(&script(1))]);
        let tip = wallet.result("blockchain.headers.subscribe", &json!([]));
        (tip, wallet.result("blockchain.scripthash.get_history", &params))
    };
    let answers: Vec<_> = wallets.iter_mut().map(question).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!((&answers[0].0["height"], answers[0].1.as_array().unwrap().len()), (&json!(30), 30));
    for node in &nodes {
        let sessions = node.result("listelectrumsessions", "[]");
        let sessions = sessions.as_array().unwrap();
        assert_eq!(sessions.len(), 3, "each has a half of the wallets");
        for session in sessions {
            assert!(session["addr"].as_str().unwrap().starts_with("127.0.0.1:"), "{session}");
            // What their answers cost counts, although the balancer is on this machine.
            assert_eq!(session["local"], false, "{session}");
        }
    }
    nodes[0].kill();
    // The balancer closes the connections of the node that is gone.
    let ended = || {
        let has_ended = |wallet: &&Wallet| {
            let stream = wallet.stream.get_ref();
            stream.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
            stream.peek(&mut [0]).is_ok_and(|bytes| bytes == 0)
        };
        wallets.iter().filter(has_ended).count()
    };
    until("half of the wallets are disconnected", || ended() >= 3);
    assert_eq!(ended(), 3);
    for _ in 0..4 {
        assert_eq!(question(&mut Wallet::connect(port, "1.6")), answers[0], "the other node");
    }
}

#[cfg(feature = "cassandra")]
#[allow(clippy::print_stdout, reason = "a test of some minutes prints what it measured")]
mod cluster {
    use crate::electrum::{NO_WEBSOCKET, pay};
    use crate::electrum_model::{Model, Wallet, check_script, scripthash};
    use crate::esplora::{Answer, Site};
    use crate::front_nodes::{Node, coinbase, copy_blocks};
    use crate::front_wallets::{Stage, tell};
    use crate::indexes::mine;
    use crate::shared_index::cluster::{INTERRUPTED, PATIENCE, start_cluster, wait};
    use lydian_lab::store::{Cluster, Join};
    use lydian_oracle::{Scratch, free_port};
    use lydian_primitives::{OutPoint, to_hex};
    use lydian_serve::TlsIdentity;
    use lydian_stdx::SplitMix64;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::io::Read;
    use std::net::TcpStream;
    use std::os::unix::net::UnixDatagram;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// A front end. Killed when dropped.
    struct FrontEnd {
        child: Child,
        electrum: u16,
        site: Site,
        health: u16,
        log: PathBuf,
        home: PathBuf,
        arguments: Vec<String>,
    }

    impl FrontEnd {
        /// `more`: further options, of which `-feed` is one.
        fn start(folder: &Path, name: &str, index: &str, more: &[String]) -> FrontEnd {
            let [electrum, esplora, health] = [(); 3].map(|()| free_port().unwrap());
            let home = folder.join(name);
            fs::create_dir_all(&home).unwrap();
            let log = folder.join(format!("{name}.log"));
            let own = [
                "serve".to_owned(),
                "-regtest".to_owned(),
                format!("-index={index}"),
                "-electrum".to_owned(),
                format!("-electrumbind=127.0.0.1:{electrum}"),
                NO_WEBSOCKET.to_owned(),
                "-esplora".to_owned(),
                format!("-esplorabind=127.0.0.1:{esplora}"),
                format!("-healthbind=127.0.0.1:{health}"),
            ];
            let arguments = [&own, more].concat();
            let child = FrontEnd::spawn(&home, &log, &arguments, None);
            let front = FrontEnd { child, electrum, site: Site(esplora), health, log, home, arguments };
            front.wait_until_up();
            front
        }

        /// `manager`: the socket of a service manager.
        fn spawn(home: &Path, log: &Path, arguments: &[String], manager: Option<&Path>) -> Child {
            let log = File::options().create(true).append(true).open(log).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_lydian"));
            command.envs(manager.map(|socket| ("NOTIFY_SOCKET", socket)));
            command.env("HOME", home).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            command.spawn().unwrap()
        }

        /// The status and the line of `/health`; `None` if it does not answer.
        fn health(&self) -> Option<(u16, String)> {
            TcpStream::connect(("127.0.0.1", self.health)).ok()?;
            Some(Site(self.health).error("GET", "/health", ""))
        }

        fn wait_until_up(&self) {
            wait("a front end starts", || self.health().filter(|(code, _)| *code == 200));
        }

        fn log(&self) -> String {
            fs::read_to_string(&self.log).unwrap()
        }

        fn signal(&self, name: &str) {
            let id = self.child.id().to_string();
            assert!(Command::new("kill").args([format!("-{name}"), id]).status().unwrap().success());
        }

        /// Starts it again on the same addresses after its end.
        fn start_again(&mut self) {
            self.child = FrontEnd::spawn(&self.home, &self.log, &self.arguments, None);
            self.wait_until_up();
        }
    }

    impl Drop for FrontEnd {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    struct World {
        fronts: [FrontEnd; 2],
        /// The first one writes the index.
        nodes: [Node; 2],
        /// Outputs of coinbases that are not spent yet.
        coins: Vec<OutPoint>,
        random: SplitMix64,
        index: String,
        cluster: Cluster,
        scratch: Scratch,
    }

    impl World {
        fn new() -> World {
            let scratch = Scratch::new("rpc-front");
            let cluster = start_cluster(&scratch.path().join("cluster"));
            let index = format!("cassandra://{}/lydian_front", cluster.hosts());
            let empty = scratch.path().join("empty");
            fs::create_dir(&empty).unwrap();
            // It makes the keyspace.
            let _ = crate::shared_index::command(&empty, &["index", "load", &index]);
            let nodes = [Node::start("front-writer", &[format!("-index={index}")]), Node::start("front-other", &[])];
            mine(&nodes[0].server, 150, 1);
            copy_blocks(&nodes[0], &nodes[1]);
            let feed = format!("-feed=127.0.0.1:{},127.0.0.1:{}", nodes[0].feed, nodes[1].feed);
            let began = Instant::now();
            let front = |name: &str| FrontEnd::start(scratch.path(), name, &index, std::slice::from_ref(&feed));
            let fronts = [front("a"), front("b")];
            println!("two front ends started in {:.2} s", began.elapsed().as_secs_f64());
            let coins = (1..=140).map(|height| coinbase(&nodes[0], height)).collect();
            World { fronts, nodes, coins, random: SplitMix64::new(7), index, cluster, scratch }
        }

        /// Sends a transaction to both nodes, by a front end to the one and by RPC to the other if it lacks it.
        fn pay(&mut self, front: usize) {
            let coin = self.coins.remove(0);
            let to: Vec<u8> = (0..3).map(|_| 2 + u8::try_from(self.random.below(14)).unwrap()).collect();
            let (parent, paid) = pay(&[(coin, 5_000_000_000, 1)], &to, 10_000);
            let (child, _) = pay(&paid[..1], &to[..1], 20_000);
            for tx in [parent, child] {
                let raw = to_hex(&tx.encode());
                let mut wallet = Wallet::connect(self.fronts[front].electrum, "1.6");
                let txid = wallet.result("blockchain.transaction.broadcast", &json!([raw]));
                assert_eq!(txid, tx.txid().to_string());
                for node in &self.nodes {
                    wait("both nodes have it", || {
                        let pool = node.server.result("getrawmempool", "[]");
                        pool.as_array().unwrap().contains(&txid).then_some(())
                    });
                }
            }
        }

        /// Mines on the writer, and gives the blocks to the other.
        fn mine(&self, count: u32, number: u8) {
            mine(&self.nodes[0].server, count, number);
            copy_blocks(&self.nodes[0], &self.nodes[1]);
        }

        /// Every answer of both front ends equals that of a node, and the histories follow from its blocks.
        fn check(&self, node: &Node, what: &str) {
            let model = Model::of(&node.server);
            for front in &self.fronts {
                settle(front, node);
                let mut ours = Wallet::connect(front.electrum, "1.6");
                let mut other = Wallet::connect(node.electrum, "1.6");
                for script in model.scripts.values() {
                    check_script(&mut ours, script);
                }
                for (method, params) in electrum_questions(&model) {
                    let (ours, other) = (ours.call(&method, &params), other.call(&method, &params));
                    let parts = |answer: &Value| (answer["result"].clone(), answer["error"].clone());
                    assert_eq!(parts(&ours), parts(&other), "{what}: {method} {params}");
                }
                for path in esplora_paths(&model) {
                    let (ours, other) = (front.site.ask("GET", &path, ""), node.site.ask("GET", &path, ""));
                    let text = |answer: &Answer| String::from_utf8_lossy(&answer.body).into_owned();
                    assert_eq!((ours.code, text(&ours)), (other.code, text(&other)), "{what}: {path}");
                    assert_eq!(ours.body, other.body, "{what}: {path}");
                }
            }
            println!("{what}: {} scripts of {} blocks are equal", model.scripts.len(), model.hashes.len());
        }
    }

    /// For wallets of others: the first front end.
    impl Stage for World {
        fn electrum(&self) -> u16 {
            self.fronts[0].electrum
        }

        fn nodes(&mut self) -> &mut [Node; 2] {
            &mut self.nodes
        }

        fn coin(&mut self) -> OutPoint {
            self.coins.remove(0)
        }

        fn followed(&self) -> Option<usize> {
            let log = self.fronts[0].log();
            let line = log.lines().rfind(|line| line.contains("following the mempool of"))?;
            self.nodes.iter().position(|node| line.contains(&format!("127.0.0.1:{}:", node.feed)))
        }
    }

    /// Waits until a front end has the block and the mempool of a node.
    fn settle(front: &FrontEnd, node: &Node) {
        let state = |site: &Site| {
            let tip = site.error("GET", "/blocks/tip/hash", "");
            let (code, pool) = site.error("GET", "/mempool/txids", "");
            let pool: BTreeSet<String> = serde_json::from_str(&pool).unwrap_or_default();
            (tip, code, pool)
        };
        wait("a front end has the block and the mempool of the node", || {
            (state(&front.site) == state(&node.site)).then_some(())
        });
    }

    fn electrum_questions(model: &Model) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let mut add = |method: &str, params: Value| all.push((format!("blockchain.{method}"), params));
        for script in model.scripts.keys() {
            for method in ["get_history", "listunspent", "get_mempool", "get_balance", "subscribe"] {
                add(&format!("scripthash.{method}"), json!([script]));
            }
        }
        add("scripthash.get_history", json!([scripthash(b"never used")]));
        let tip = model.hashes.len() - 1;
        for height in (0..=tip + 1).step_by(7).chain([tip]) {
            add("block.header", json!([height, tip]));
            add("block.headers", json!([height, 10]));
            add("transaction.id_from_pos", json!([height, 0, true]));
        }
        for (height, txids) in model.blocks.iter().enumerate().skip(tip.saturating_sub(20)) {
            for txid in txids {
                add("transaction.get", json!([txid]));
                add("transaction.get", json!([txid, true]));
                add("transaction.get_merkle", json!([txid, height]));
            }
        }
        add("headers.subscribe", json!([]));
        add("estimatefee", json!([6]));
        add("relayfee", json!([]));
        all.push(("mempool.get_fee_histogram".to_owned(), json!([])));
        all
    }

    fn esplora_paths(model: &Model) -> Vec<String> {
        let paths =
            ["/blocks/tip/height", "/blocks/tip/hash", "/blocks", "/mempool", "/mempool/txids", "/fee-estimates"];
        let mut all: Vec<String> = paths.map(str::to_owned).into();
        for script in model.scripts.values() {
            // Esplora's hash of a script is the other way round.
            let hash = to_hex(&lydian_hash::sha256(&script.script));
            all.extend(
                ["", "/utxo", "/txs", "/txs/mempool", "/txs/chain"].map(|rest| format!("/scripthash/{hash}{rest}")),
            );
        }
        let tip = model.hashes.len() - 1;
        for height in (0..=tip).step_by(13).chain([tip]) {
            let hash = &model.hashes[height];
            all.push(format!("/block-height/{height}"));
            let parts = ["", "/header", "/status", "/txids", "/txs", "/raw"];
            all.extend(parts.map(|rest| format!("/block/{hash}{rest}")));
        }
        let mined = model.blocks.iter().skip(tip.saturating_sub(20)).flatten();
        let pool: BTreeSet<String> =
            model.scripts.values().flat_map(|script| script.pool.iter().map(|(_, txid, _)| txid.clone())).collect();
        for txid in mined.cloned().chain(pool) {
            let parts = ["", "/status", "/hex", "/outspends", "/merkle-proof"];
            all.extend(parts.map(|rest| format!("/tx/{txid}{rest}")));
        }
        all
    }

    #[test]
    #[ignore = "needs Cassandra, of which it starts three nodes for some minutes: `lydian-lab store install`; then: cargo test --locked --workspace --features lydian-node/cassandra --test rpc -- --ignored front::cluster, which make test-store runs"]
    fn front_ends_answer_as_their_nodes_do() {
        let mut world = World::new();
        the_mempool_and_blocks_reach_wallets(&mut world);
        a_reorganisation_reaches_wallets(&mut world);
        nodes_end_and_return(&mut world);
        tell(&mut world);
        world.check(&world.nodes[0], "after the story of the wallets");
        a_front_end_reports_to_the_service_manager(&mut world);
        prometheus_evaluates_what_is_for_front_ends(&world);
        a_killed_front_end_takes_no_other_with_it(&mut world);
        a_node_gets_another_certificate(&world);
        sessions_end_one_after_the_other(&mut world);
        a_front_end_without_nodes_ends_its_sessions(&mut world);
        a_store_without_a_quorum_gives_no_wrong_answer(&mut world);
        for front in &world.fronts {
            assert!(fs::read_dir(&front.home).unwrap().next().is_none(), "a front end makes no data directory");
        }
    }

    fn the_mempool_and_blocks_reach_wallets(world: &mut World) {
        world.check(&world.nodes[0], "at the start");
        for front in [0, 1, 0] {
            world.pay(front);
        }
        world.check(&world.nodes[0], "with a mempool");
        let mut wallet = Wallet::connect(world.fronts[1].electrum, "1.6");
        let subscribed = wallet.result("blockchain.headers.subscribe", &json!([]));
        let mut delays = Vec::new();
        for round in 0..10 {
            let began = Instant::now();
            world.mine(1, 5);
            let notice = wallet.line();
            assert_eq!(notice["params"][0]["height"], subscribed["height"].as_u64().unwrap() + round + 1, "{notice}");
            delays.push(began.elapsed());
        }
        delays.sort();
        println!("from the request for a block to its notification by a front end: {delays:?}");
        world.check(&world.nodes[0], "after blocks");
    }

    fn a_reorganisation_reaches_wallets(world: &mut World) {
        world.pay(0);
        world.mine(6, 6);
        world.check(&world.nodes[0], "before the reorganisation");
        let height = world.nodes[0].height();
        let first = world.nodes[0].hash(height - 5);
        world.nodes[0].server.result("invalidateblock", &json!([first]).to_string());
        world.mine(8, 7);
        assert_eq!(world.nodes[0].height(), height + 2);
        world.check(&world.nodes[0], "after a reorganisation of 6 blocks");
    }

    fn nodes_end_and_return(world: &mut World) {
        world.pay(1);
        // The mempool that counts is that of the node that remains.
        for gone in [0, 1] {
            world.nodes[gone].server.kill();
            let began = Instant::now();
            let stays = &world.nodes[1 - gone];
            world.check(stays, &format!("after the end of node {gone}"));
            println!("checked {:.1} s after the end of node {gone}", began.elapsed().as_secs_f64());
            for front in &world.fronts {
                assert_eq!(front.health().unwrap().0, 200, "{}", front.log());
            }
            world.nodes[gone].start_again();
            copy_blocks(&world.nodes[1 - gone], &world.nodes[gone]);
        }
        world.mine(2, 8);
        world.pay(0);
        world.check(&world.nodes[0], "when both are back");
    }

    fn a_front_end_reports_to_the_service_manager(world: &mut World) {
        let height = world.nodes[0].height();
        let front = &mut world.fronts[1];
        front.signal("KILL");
        front.child.wait().unwrap();
        let path = world.scratch.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        front.child = FrontEnd::spawn(&front.home, &front.log, &front.arguments, Some(&path));
        let find = |wanted: &str| loop {
            let mut bytes = [0; 4_096];
            let count = socket.recv(&mut bytes).unwrap();
            let message = String::from_utf8(bytes[..count].to_vec()).unwrap();
            if message.contains(wanted) {
                return message;
            }
        };
        find("READY=1");
        let state = format!("STATUS=ok height={height}\n");
        find(&state);
        let began = Instant::now();
        // The same state again.
        assert!(find(&state).contains("WATCHDOG=1"));
        assert!(began.elapsed() > Duration::from_secs(4), "it is reported every five seconds");
        front.signal("TERM");
        find("STOPPING=1");
        let status = wait("the end", || front.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", front.log());
        front.start_again();
    }

    fn prometheus_evaluates_what_is_for_front_ends(world: &World) {
        let ports: Vec<u16> = world.fronts.iter().map(|front| front.health).collect();
        crate::metrics::check_front_ends(&ports, || {
            for front in &world.fronts {
                let mut wallet = Wallet::connect(front.electrum, "1.6");
                wallet.error("blockchain.nonsense", &json!([]));
                front.site.error("GET", "/nonsense", "");
            }
        });
    }

    fn a_killed_front_end_takes_no_other_with_it(world: &mut World) {
        let mut wallet = Wallet::connect(world.fronts[1].electrum, "1.6");
        world.fronts[0].signal("KILL");
        world.fronts[0].child.wait().unwrap();
        wallet.result("blockchain.headers.subscribe", &json!([]));
        world.mine(1, 9);
        assert_eq!(wallet.line()["method"], "blockchain.headers.subscribe");
        let began = Instant::now();
        world.fronts[0].start_again();
        println!("a killed front end answers {:.2} s after its start", began.elapsed().as_secs_f64());
        world.check(&world.nodes[0], "after kill -9 of a front end");
    }

    /// A front end trusts the new certificate of its node after SIGHUP, without a restart.
    fn a_node_gets_another_certificate(world: &World) {
        let folder = world.scratch.path().join("certificates");
        fs::create_dir(&folder).unwrap();
        let [certificate, key, trusted] = ["cert.pem", "key.pem", "trusted.pem"].map(|name| folder.join(name));
        let made = [(); 2].map(|()| TlsIdentity::self_made().unwrap());
        let put = |of: usize| {
            fs::write(&certificate, &made[of].certificate).unwrap();
            fs::write(&key, &made[of].key).unwrap();
        };
        put(0);
        fs::copy(&certificate, &trusted).unwrap();
        let files = [format!("-feedcert={}", certificate.display()), format!("-feedkey={}", key.display())];
        let mut node = Node::start("front-tls", &files);
        copy_blocks(&world.nodes[0], &node);
        let feed = format!("-feed=https://localhost:{}", node.feed);
        let front = FrontEnd::start(
            world.scratch.path(),
            "tls",
            &world.index,
            &[feed, format!("-feedcert={}", trusted.display())],
        );
        settle(&front, &node);
        put(1);
        node.server.kill();
        node.start_again();
        wait("the new certificate is refused", || front.log().contains("TLS fails: ").then_some(()));
        fs::write(&trusted, "no certificate").unwrap();
        front.signal("HUP");
        wait("the file is refused", || {
            front.log().contains("Feed: the certificates stay as they were: ").then_some(())
        });
        fs::copy(&certificate, &trusted).unwrap();
        front.signal("HUP");
        world.mine(1, 11);
        copy_blocks(&world.nodes[0], &node);
        settle(&front, &node);
        assert_eq!(front.health().unwrap().0, 200, "{}", front.log());
    }

    /// Whether the other side has closed the connection.
    fn is_closed(wallet: &mut Wallet) -> bool {
        let stream = wallet.stream.get_mut();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let closed = match stream.read(&mut [0; 1_000]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        closed
    }

    fn sessions_end_one_after_the_other(world: &mut World) {
        const SESSIONS: usize = 60;
        let front = &mut world.fronts[1];
        let mut wallets: Vec<Wallet> = (0..SESSIONS).map(|_| Wallet::connect(front.electrum, "1.6")).collect();
        let began = Instant::now();
        front.signal("TERM");
        let (code, line) = wait("health fails", || front.health().filter(|(code, _)| *code == 503));
        assert_eq!((code, line.as_str()), (503, "stopping\n"));
        wait("no more clients", || TcpStream::connect(("127.0.0.1", front.electrum)).is_err().then_some(()));
        // Those that are not asked to end are answered; the newest one is the last.
        let last = wallets.last_mut().unwrap();
        last.result("blockchain.headers.subscribe", &json!([]));
        let mut open = wallets.len();
        let mut half = None;
        while open > 0 {
            wallets.retain_mut(|wallet| !is_closed(wallet));
            open = wallets.len();
            if open <= SESSIONS / 2 {
                half.get_or_insert(began.elapsed());
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{open} sessions are open");
        }
        println!("half of the sessions ended after {:?}, all after {:?}", half, began.elapsed());
        assert!(half.unwrap() > Duration::from_secs(8), "they end too fast");
        let status = wait("the end", || front.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", front.log());
        front.start_again();
        // A second signal ends it at once.
        let wallet = Wallet::connect(front.electrum, "1.6");
        front.signal("TERM");
        wait("health fails", || front.health().filter(|(code, _)| *code == 503));
        front.signal("TERM");
        let status = wait("the end", || front.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{}", front.log());
        drop(wallet);
        front.start_again();
        world.check(&world.nodes[0], "after a restart of a front end");
    }

    fn a_front_end_without_nodes_ends_its_sessions(world: &mut World) {
        let mut wallet = Wallet::connect(world.fronts[0].electrum, "1.6");
        for node in &mut world.nodes {
            node.server.kill();
        }
        let began = Instant::now();
        wallet.result("blockchain.headers.subscribe", &json!([]));
        let (_, line) = wait("health fails", || world.fronts[0].health().filter(|(code, _)| *code == 503));
        println!("health is 503 {:.1} s after the last node ended: {}", began.elapsed().as_secs_f64(), line.trim());
        wait("the session ends", || is_closed(&mut wallet).then_some(()));
        for node in &mut world.nodes {
            node.start_again();
        }
        for front in &world.fronts {
            front.wait_until_up();
        }
        world.check(&world.nodes[0], "after all nodes were gone");
        // What it refuses at the start.
        let signet =
            ["-signet", &format!("-index={}", world.index), "-feed=127.0.0.1:1", "-electrum"].map(str::to_owned);
        let (code, text) = super::complaint(&super::serve(
            world.scratch.path(),
            &signet.iter().map(String::as_str).collect::<Vec<_>>(),
        ));
        assert!(code == Some(1) && text.contains("genesis"), "{code:?} {text}");
    }

    fn a_store_without_a_quorum_gives_no_wrong_answer(world: &mut World) {
        let model = Model::of(&world.nodes[0].server);
        let mut other = Wallet::connect(world.nodes[0].electrum, "1.6");
        // One that starts has nothing in memory that it asked for before.
        world.fronts[0].signal("KILL");
        world.fronts[0].child.wait().unwrap();
        world.fronts[0].start_again();
        for number in [1, 2] {
            world.cluster.node_mut(number).unwrap().kill().unwrap();
        }
        let (mut right, mut failed, mut longest) = (0, 0, Duration::ZERO);
        for front in &world.fronts {
            let mut wallet = Wallet::connect(front.electrum, "1.6");
            for script in model.scripts.keys() {
                let (method, params) = ("blockchain.scripthash.get_history", json!([script]));
                let began = Instant::now();
                let answer = wallet.call(method, &params);
                longest = longest.max(began.elapsed());
                match answer.get("error") {
                    None => {
                        assert_eq!(answer["result"], other.result(method, &params), "{script}");
                        right += 1;
                    }
                    Some(_) => failed += 1,
                }
            }
        }
        println!(
            "without a quorum of the store: {right} right answers, {failed} errors, the slowest after {longest:.2?}"
        );
        for number in [1, 2] {
            world.cluster.start_node(number, Join::Plainly).unwrap();
        }
        assert!(world.cluster.wait(PATIENCE, &INTERRUPTED).unwrap());
        world.mine(1, 10);
        for front in &world.fronts {
            front.wait_until_up();
        }
        world.check(&world.nodes[0], "after a quorum of the store was gone");
    }
}
