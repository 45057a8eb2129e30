//! Log lines about disconnections and messages of a peer, with Bitcoin Core's texts.
//!
//! Input: the event. Output: the log line.

use super::{DisconnectReason, Peer};
use lydian_wire::message::Command;
use lydian_wire::{DecodeError, Endpoint};
use std::time::Duration;

impl DisconnectReason {
    /// Returns the log line, without Core's `, disconnecting peer=...`.
    pub fn sentence(&self) -> String {
        match self {
            DisconnectReason::Services { offered, expected } => format!(
                "peer does not offer the expected services ({:08x} offered, {:08x} expected)",
                offered.0, expected.0
            ),
            DisconnectReason::ObsoleteVersion { version } => format!("peer using obsolete version {version}"),
            DisconnectReason::ConnectedToSelf => "connected to self".to_owned(),
            DisconnectReason::FeelerCompleted => "feeler connection completed".to_owned(),
            DisconnectReason::AddrFetchCompleted => "addrfetch connection completed".to_owned(),
            DisconnectReason::AddrFetchTimeout => "addrfetch connection timeout".to_owned(),
            DisconnectReason::AfterVerack { command } => match *command {
                Command::WTXIDRELAY => "wtxidrelay received after verack".to_owned(),
                Command::SENDADDRV2 => "sendaddrv2 received after verack".to_owned(),
                Command::FEATURE => "feature received after verack".to_owned(),
                other => format!("{} received after verack", other.as_str()),
            },
            DisconnectReason::FeatureVersion { version } => {
                format!("feature received with incompatible version {version}")
            }
            DisconnectReason::Payload { command, error } => payload(*command, error),
            DisconnectReason::NotOffered { command } => match *command {
                Command::MEMPOOL => "mempool request with bloom filters disabled".to_owned(),
                Command::FILTERLOAD => "filterload received despite not offering bloom services".to_owned(),
                Command::FILTERADD => "filteradd received despite not offering bloom services".to_owned(),
                _ => "filterclear received despite not offering bloom services".to_owned(),
            },
            DisconnectReason::UnwantedTransaction => "transaction sent in violation of protocol".to_owned(),
            DisconnectReason::NoMessage { seconds, has_received, has_sent } => {
                let received = if *has_received { "" } else { ", never received from peer" };
                let sent = if *has_sent { "" } else { ", never sent to peer" };
                format!("socket no message in first {seconds} seconds{}", [received, sent].concat())
            }
            DisconnectReason::SendTimeout { seconds } => format!("socket sending timeout: {seconds}s"),
            DisconnectReason::ReceiveTimeout { seconds } => format!("socket receive timeout: {seconds}s"),
            DisconnectReason::HandshakeTimeout => "version handshake timeout".to_owned(),
            DisconnectReason::PingTimeout { wait } => format!("ping timeout: {:.6}s", wait.as_secs_f64()),
        }
    }
}

/// Invalid payloads for which Core disconnects without punishment.
fn payload(command: Command, error: &DecodeError) -> String {
    match (command, error) {
        (Command::GETBLOCKS, DecodeError::TooMany { count, limit, .. }) => {
            format!("getblocks locator size {count} > {limit}")
        }
        (Command::GETHEADERS, DecodeError::TooMany { count, limit, .. }) => {
            format!("getheaders locator size {count} > {limit}")
        }
        (Command::FEATURE, _) => "invalid feature payload".to_owned(),
        (command, error) => format!("invalid {} payload: {error}", command.as_str()),
    }
}

/// Returns Core's text for a message that is misbehavior.
pub(crate) fn misbehaviour(command: Command, error: &DecodeError) -> String {
    match (command, error) {
        (_, DecodeError::TooMany { count, .. }) => format!("{} message size = {count}", command.as_str()),
        (_, DecodeError::InvalidAnnounceField { .. }) => "invalid sendcmpct announce field".to_owned(),
        (_, DecodeError::BloomFilterTooLarge { .. }) => "too-large bloom filter".to_owned(),
        (_, DecodeError::FilterAddTooLarge { .. }) => "bad filteradd message".to_owned(),
        (_, error) => format!("{}: {error}", command.as_str()),
    }
}

/// An event of a peer that is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Our `version` is sent.
    SendVersion {
        version: i32,
        blocks: i32,
        them: Endpoint,
        relays_transactions: bool,
    },
    /// Its `version` was received.
    ReceiveVersion {
        us: Endpoint,
        relays_transactions: bool,
    },
    RedundantVersion,
    /// A message before `version` (`NonVersion`) or before `verack` (`BeforeVerack`).
    NonVersion {
        command: Command,
    },
    BeforeVerack {
        command: Command,
    },
    RedundantVerack,
    DuplicateWtxidRelay,
    OldWtxidRelay {
        version: i32,
    },
    UnknownFeature {
        id: String,
    },
    Reconciliation,
    UnknownMessage {
        command: Command,
    },
    IgnoredAddresses {
        command: Command,
    },
    ReceivedAddresses {
        count: usize,
        processed: usize,
        rate_limited: usize,
    },
    IgnoredGetAddr,
    RepeatedGetAddr,
    /// A `pong` that does not answer our ping.
    Pong {
        problem: &'static str,
        expected: u64,
        received: u64,
        bytes: usize,
    },
    Undecodable {
        command: Command,
        bytes: usize,
        error: DecodeError,
    },
    /// Our address is sent to the peer.
    Advertised {
        address: Endpoint,
    },
}

impl Note {
    /// Returns the log line. `log_peer` is Core's `LogPeer`.
    pub fn sentence(&self, id: u64, peer: &Peer, log_peer: &str, has_ips: bool) -> String {
        match self {
            Note::SendVersion { version, blocks, them, relays_transactions } => format!(
                "send version message: version={version}, blocks={blocks}{}, txrelay={}, peer={id}",
                if has_ips { format!(", them={them}") } else { String::new() },
                u8::from(*relays_transactions)
            ),
            Note::ReceiveVersion { us, relays_transactions } => format!(
                "receive version message: {}: version {}, blocks={}, us={us}, txrelay={}, {log_peer}{}",
                if peer.user_agent.is_empty() { "<no user agent>" } else { &peer.user_agent },
                peer.version,
                peer.start_height,
                u8::from(*relays_transactions),
                ""
            ),
            Note::RedundantVersion => format!("redundant version message from peer={id}"),
            Note::NonVersion { command } => {
                format!("non-version message before version handshake. Message \"{}\" from peer={id}", command.as_str())
            }
            Note::BeforeVerack { command } => {
                format!("Unsupported message \"{}\" prior to verack from peer={id}", command.as_str())
            }
            Note::RedundantVerack => format!("ignoring redundant verack message from peer={id}"),
            Note::DuplicateWtxidRelay => format!("ignoring duplicate wtxidrelay from peer={id}"),
            Note::OldWtxidRelay { version } => {
                format!("ignoring wtxidrelay due to old common version={version} from peer={id}")
            }
            Note::UnknownFeature { id } => format!("unknown feature advertised: {id}"),
            Note::Reconciliation => {
                format!("sendtxrcncl from peer={id} ignored, as our node does not have txreconciliation enabled")
            }
            Note::UnknownMessage { command } => {
                format!("Unknown message type \"{}\" from peer={id}", command.as_str())
            }
            Note::IgnoredAddresses { command } => {
                format!("ignoring {} message from {} peer={id}", command.as_str(), peer.connection.kind.name())
            }
            Note::ReceivedAddresses { count, processed, rate_limited } => format!(
                "Received addr: {count} addresses ({processed} processed, {rate_limited} rate-limited) from peer={id}"
            ),
            Note::IgnoredGetAddr => {
                format!("Ignoring \"getaddr\" from {} connection. peer={id}", peer.connection.kind.name())
            }
            Note::RepeatedGetAddr => format!("Ignoring repeated \"getaddr\". peer={id}"),
            Note::Pong { problem, expected, received, bytes } => {
                format!("pong peer={id}: {problem}, {expected:x} expected, {received:x} received, {bytes} bytes")
            }
            Note::Undecodable { command, bytes, error } => format!(
                "ProcessMessages({}, {bytes} bytes): Exception '{}' ({}) caught",
                command.as_str(),
                error,
                "DecodeError"
            ),
            Note::Advertised { address } => format!("Advertising address {address} to peer={id}"),
        }
    }
}

/// Returns whole seconds.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs()
}
