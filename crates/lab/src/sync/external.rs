//! A peer that the lab did not start, from which the nodes download a chain up to a height.
//!
//! Input: a network, an address, a height. Output: the hash of that block, and the hashes after it that the peer has,
//! so that a node's tip can be judged although nodes that do not stop by themselves go a few blocks further. Cost: the
//! headers of the peer's chain, 80 bytes each, once. Must never: check the peer's proof of work; that is the nodes'
//! task, and a wrong chain shows as a tip that differs.

use crate::error::LabError;
use crate::mempool::peer::Peer;
use lydian_chains::chain_files::{ChainFiles, Facts, Network, StatsFile};
use lydian_primitives::BlockHash;
use lydian_report::project::{Target, TargetCounts};
use lydian_wire::message::Locator;
use lydian_wire::{Message, Services};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// A peer answers a request for headers at once; a busy one takes a while.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(120);
const NONCE: u64 = 0x006c_7964_6961_6e01;

/// The peer and its chain.
#[derive(Clone, Debug)]
pub struct External {
    pub address: SocketAddr,
    /// The services that it offers.
    pub services: Services,
    /// The hashes from the height of the comparison on, at least one, as displayed.
    pub hashes: Vec<String>,
    /// The latest header time up to that height, in seconds since 1970.
    last_time: u32,
}

impl External {
    /// Asks the peer for the headers of its chain.
    pub fn meet(network: &Network, peer: &str, height: u32) -> Result<External, LabError> {
        let failed = |reason: String| LabError::program(format!("--peer {peer}"), reason);
        let address = resolve(peer).map_err(&failed)?;
        let (mut connection, version) =
            Peer::meet(address, network.magic(), NONCE, 0).map_err(|error| failed(error.to_string()))?;
        let mut tip = network.genesis_hash();
        let mut met = External { address, services: version.services, hashes: Vec::new(), last_time: 0 };
        let (mut at, mut last_time) = (0, 0);
        if height == 0 {
            met.hashes.push(tip.to_string());
        }
        loop {
            connection.send(&Message::GetHeaders(Locator { hashes: vec![tip], stop: BlockHash([0; 32]) }))?;
            let is_headers = |message: &Message| matches!(message, Message::Headers(_));
            let answer = connection.wait_for("headers", HEADERS_TIMEOUT, is_headers);
            let Ok(Message::Headers(headers)) = answer.map_err(|error| failed(error.to_string())) else { break };
            if headers.is_empty() {
                break;
            }
            for header in headers {
                if header.prev_block != tip {
                    return Err(failed(format!("its header of height {} does not follow the one before", at + 1)));
                }
                tip = header.hash();
                at += 1;
                last_time = last_time.max(header.time);
                if at == height {
                    met.last_time = last_time;
                }
                if at >= height {
                    met.hashes.push(tip.to_string());
                }
            }
        }
        if met.hashes.is_empty() {
            let text = format!(
                "it serves headers of {} only to height {at}, not to {height}; Bitcoin Core and Lydian serve none of a short \
                 chain without -minimumchainwork=0",
                network.name
            );
            return Err(failed(text));
        }
        Ok(met)
    }

    /// The chain to be downloaded. It has no files; what is known of its checks are mainnet's counts at that height.
    pub fn chain(&self, network: &'static Network, height: u32) -> ChainFiles {
        let tip = self.hashes.first().cloned().unwrap_or_default();
        let stats = stats_at(network, height);
        ChainFiles {
            files: Vec::new(),
            network,
            facts: Facts { sha256: String::new(), file_bytes: 0, height, tip: tip.clone(), stats },
            last_time: self.last_time,
            bytes_at: Vec::new(),
            answer: Some(lydian_chains::chain_files::Answer { height, tip, coins: None, utxo_hash: None }),
        }
    }
}

/// The middle of the bounds for mainnet at heights whose counts are known.
fn stats_at(network: &Network, height: u32) -> StatsFile {
    let target = (network.name == "main").then(|| Target::parse(&format!("mainnet@{height}")).ok()).flatten();
    let Some(target) = target else { return StatsFile::default() };
    let counts = TargetCounts::of(&target);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of a chain are small and positive"
    )]
    let count = |value: f64| Some(value.round() as u64);
    let middle = |name: &str| counts.range(name).middle;
    let schnorr = middle("verifications") * middle("schnorr_share");
    let mut stats = StatsFile::default();
    stats.transactions = count(middle("transactions"));
    stats.inputs = count(middle("inputs"));
    stats.outputs = count(middle("outputs"));
    stats.ecdsa_verifications = count(middle("verifications") - schnorr);
    stats.schnorr_verifications = count(schnorr);
    stats.tweak_checks = count(middle("tweak_checks"));
    stats
}

/// Prefers version 4, which every node's options take.
fn resolve(peer: &str) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = peer.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| "the name has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chains::chain_files::network;

    #[test]
    fn a_peer_needs_a_port_and_must_listen() {
        let main = network("main").unwrap();
        let error = |peer: &str| External::meet(main, peer, 1).unwrap_err().to_string();
        assert!(error("localhost").starts_with("--peer localhost: "), "{}", error("localhost"));
        let port = crate::runs::rpc::free_port().unwrap();
        let text = error(&format!("127.0.0.1:{port}"));
        assert!(text.contains("refused"), "{text}");
    }

    #[test]
    fn checks_are_counted_only_where_mainnet_was() {
        let stats = stats_at(network("main").unwrap(), 928_000);
        assert_eq!(stats.ecdsa_verifications.zip(stats.schnorr_verifications).map(|(a, b)| a + b), Some(3_238_000_000));
        assert_eq!(stats_at(network("main").unwrap(), 4_312), StatsFile::default());
        assert_eq!(stats_at(network("test").unwrap(), 928_000), StatsFile::default());
    }
}
