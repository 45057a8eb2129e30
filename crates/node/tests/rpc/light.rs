//! `-peerblockfilters` as a light client of others sees it: the crate `bip157` syncs headers and filters over version 1
//! and 2 of the transport, finds the blocks that pay to a script or spend from it, and follows a reorganisation.

use crate::electrum::{pay, script};
use crate::server::Server;
use bip157::chain::{BlockHeaderChanges, IndexedHeader};
use bip157::{BlockHash, Builder, Client, Event, Network, ScriptBuf, ServiceFlags, TrustedPeer};
use lydian_primitives::{OutPoint, Txid, to_hex};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Longer than the client takes for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The client gives up a connection after 2 s and version 2 of the transport after 4 s, which a busy machine exceeds:
/// so often it is all begun anew with a new node.
const ATTEMPTS: usize = 4;

/// The client ended, fell back to version 1 or took longer than [`PATIENCE`]. What it received was right.
type TooSlow = &'static str;

/// The script that the clients look for.
const OWN: u8 = 7;

/// Others get the remaining coins.
const OTHER: u8 = 8;

/// A light client that looks for a script, and what it found.
struct Light {
    client: Client,
    /// The blocks of its chain, and whether their filters match.
    blocks: BTreeMap<u32, (BlockHash, Option<bool>)>,
    /// Blocks that left its chain.
    left: Vec<BlockHash>,
}

impl Light {
    fn start(port: u16, services: ServiceFlags) -> Light {
        let mut peer = TrustedPeer::from_socket_addr(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        peer.set_services(services);
        let builder = Builder::new(Network::Regtest).add_peer(peer).whitelist_only();
        let (node, client) = builder.response_timeout(PATIENCE).fetch_witness_data().build();
        tokio::spawn(node.run());
        Light { client, blocks: BTreeMap::new(), left: Vec::new() }
    }

    fn connect(&mut self, header: &IndexedHeader) {
        self.blocks.insert(header.height, (header.block_hash(), None));
    }

    fn take(&mut self, event: Event) -> Option<BlockHash> {
        match event {
            Event::ChainUpdate(BlockHeaderChanges::Connected(header)) => self.connect(&header),
            Event::ChainUpdate(BlockHeaderChanges::Reorganized { accepted, reorganized }) => {
                for header in &reorganized {
                    let (hash, _) = self.blocks.remove(&header.height).unwrap();
                    assert_eq!(hash, header.block_hash());
                    self.left.push(hash);
                }
                accepted.iter().for_each(|header| self.connect(header));
            }
            Event::ChainUpdate(BlockHeaderChanges::ForkAdded(_)) => {}
            Event::IndexedFilter(filter) => {
                let own = ScriptBuf::from_bytes(script(OWN));
                let (hash, is_match) = self.blocks.get_mut(&filter.height()).unwrap();
                assert_eq!(*hash, filter.block_hash(), "a filter of its chain");
                *is_match = Some(filter.contains_any([&own].into_iter()));
            }
            Event::FiltersSynced(update) => return Some(update.tip().hash),
        }
        None
    }

    /// Waits until it has all filters up to a block. Returns the heights of the blocks that match, from height 1 on.
    async fn sync(&mut self, tip: &Value) -> Result<Vec<u32>, TooSlow> {
        let all = async {
            loop {
                let event = self.client.event_rx.recv().await.ok_or("the client has ended")?;
                if self.take(event).is_some_and(|hash| hash.to_string() == *tip) {
                    return Ok::<(), TooSlow>(());
                }
            }
        };
        tokio::time::timeout(PATIENCE, all).await.map_err(|_| "filters do not arrive")??;
        let matches = |(height, (_, is_match)): (&u32, &(BlockHash, Option<bool>))| {
            is_match.unwrap_or_else(|| panic!("no filter of block {height}")).then_some(*height)
        };
        Ok(self.blocks.iter().filter_map(matches).collect())
    }

    /// The transactions of a block that pay to the script, from the block itself.
    async fn paying(&self, height: u32) -> Result<Vec<String>, TooSlow> {
        let block = tokio::time::timeout(PATIENCE, self.client.requester.get_block(self.blocks[&height].0));
        let block = block.await.map_err(|_| "a block does not arrive")?;
        let block = block.map_err(|_| "a block was not fetched")?;
        assert_eq!(block.height, height);
        let txs = block.block.txdata.iter();
        let own = txs.filter(|tx| tx.output.iter().any(|output| output.script_pubkey.as_bytes() == script(OWN)));
        Ok(own.map(|tx| tx.compute_txid().to_string()).collect())
    }
}

/// Mines blocks to a script; returns their hashes.
fn mine(server: &Server, count: u32, number: u8) -> Vec<Value> {
    let params = format!("[{count},\"raw({})\"]", to_hex(&script(number)));
    server.result("generatetodescriptor", &params).as_array().unwrap().clone()
}

/// The transactions of the block at a height.
fn txids(server: &Server, height: u32) -> Vec<String> {
    let hash = server.result("getblockhash", &json!([height]).to_string());
    let block = server.result("getblock", &json!([hash]).to_string());
    block["tx"].as_array().unwrap().iter().map(|txid| txid.as_str().unwrap().to_owned()).collect()
}

/// Syncs the clients to the tip: the blocks at these heights match.
async fn check(server: &Server, clients: &mut [Light], tip: &Value, expected: &[u32]) -> Result<(), TooSlow> {
    for light in clients {
        assert_eq!(light.sync(tip).await?, expected);
        let count = u32::try_from(light.blocks.len()).unwrap();
        assert_eq!(server.result("getblockcount", "[]"), count);
        for (height, (hash, _)) in &light.blocks {
            assert_eq!(server.result("getblockhash", &json!([height]).to_string()), hash.to_string());
        }
    }
    Ok(())
}

async fn follow(server: &Server, port: u16) -> Result<(), TooSlow> {
    // Blocks 1 and 22 pay to the script, block 123 spends what the first one paid.
    mine(server, 1, OWN);
    mine(server, 20, OTHER);
    mine(server, 1, OWN);
    mine(server, 100, OTHER);
    let coinbase: Txid = txids(server, 1)[0].parse().unwrap();
    let paid = (OutPoint { txid: coinbase, vout: 0 }, 5_000_000_000, OWN);
    let (spend, _) = pay(&[paid], &[OTHER], 10_000);
    let sent = server.result("sendrawtransaction", &json!([to_hex(&spend.encode())]).to_string());
    assert_eq!(sent, spend.txid().to_string());
    let mined = mine(server, 1, OTHER);
    let mut clients = [ServiceFlags::NONE, ServiceFlags::P2P_V2].map(|services| Light::start(port, services));
    check(server, &mut clients, &mined[0], &[1, 22, 123]).await?;
    let transports = server.result("getpeerinfo", "[]");
    let mut transports: Vec<&Value> =
        transports.as_array().unwrap().iter().map(|peer| &peer["transport_protocol_type"]).collect();
    transports.sort_by_key(|transport| transport.to_string());
    if transports != ["v1", "v2"] {
        return Err("version 2 of the transport was given up");
    }
    for light in &clients {
        assert_eq!(light.paying(22).await?, [txids(server, 22)[0].as_str()]);
        assert!(light.paying(123).await?.is_empty(), "what it spends from is in its filter");
    }

    // A block is announced to them.
    let before = mine(server, 1, OWN);
    check(server, &mut clients, &before[0], &[1, 22, 123, 124]).await?;

    // A longer branch from height 122 on, in which another block spends.
    server.result("invalidateblock", &json!([mined[0]]).to_string());
    let other = format!("raw({})", to_hex(&script(OTHER)));
    server.result("generateblock", &json!([other, []]).to_string());
    server.result("generateblock", &json!([other, [to_hex(&spend.encode())]]).to_string());
    let tip = server.result("generateblock", &json!([other, []]).to_string())["hash"].clone();
    check(server, &mut clients, &tip, &[1, 22, 124]).await?;
    for light in clients {
        let mut left: Vec<String> = light.left.iter().map(ToString::to_string).collect();
        left.sort();
        let mut expected = [&mined[0], &before[0]].map(|hash| hash.as_str().unwrap().to_owned());
        expected.sort();
        assert_eq!(left, expected, "blocks that left its chain");
        light.client.requester.shutdown().unwrap();
    }
    Ok(())
}

#[test]
fn a_light_client_follows_the_chain_by_its_filters() {
    let mut slow = Vec::new();
    while slow.len() < ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(error) => slow.push(error),
        }
    }
    panic!("{slow:?}");
}

fn attempt() -> Result<(), TooSlow> {
    let port = lydian_oracle::free_port().unwrap();
    let bind = format!("-bind=127.0.0.1:{port}");
    let options = ["-listen=1", &bind, "-discover=0", "-blockfilterindex=basic", "-peerblockfilters"];
    let server = Server::lydian("a_light_client_follows_the_chain_by_its_filters", &options);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(follow(&server, port))
}
