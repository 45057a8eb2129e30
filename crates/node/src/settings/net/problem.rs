//! [`NetProblem`]: errors in the settings of connections, in Bitcoin Core's words. One sentence each.

use crate::limits::USER_AGENT_LENGTH_MAX;
use lydian_p2p::permissions::PermissionError;
use std::fmt;

/// Why the settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetProblem {
    /// `-forcednsseed` with `-dnsseed=0`.
    ForcedWithoutDnsSeed,
    BindWithoutListen,
    NegativeConnections,
    Descriptors {
        available: u64,
        required: u64,
    },
    PeerTimeout,
    UploadTarget {
        text: String,
    },
    Port {
        option: &'static str,
        text: String,
    },
    UnknownNetwork {
        text: String,
    },
    CjdnsNotReachable,
    UnsafeComment {
        text: String,
    },
    LongUserAgent {
        length: usize,
    },
    DnsSeedUnreachable,
    ProxyEndsWithEquals {
        text: String,
    },
    Proxy {
        option: &'static str,
        text: String,
    },
    ProxyNetwork {
        text: String,
        network: String,
    },
    OnionForbidden,
    OnionWithoutProxy,
    Unresolved {
        option: &'static str,
        text: String,
    },
    Permission(PermissionError),
    I2pWithoutSam,
    DuplicateBind {
        address: String,
    },
}

impl fmt::Display for NetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForcedWithoutDnsSeed => {
                f.write_str("Cannot set -forcednsseed to true when setting -dnsseed to false.")
            }
            Self::BindWithoutListen => f.write_str("Cannot set -bind or -whitebind together with -listen=0"),
            Self::NegativeConnections => f.write_str("-maxconnections must be greater or equal than zero"),
            Self::Descriptors { available, required } => {
                write!(f, "Not enough file descriptors available. {available} available, {required} required.")
            }
            Self::PeerTimeout => f.write_str("peertimeout must be a positive integer."),
            Self::UploadTarget { text } => write!(f, "Unable to parse -maxuploadtarget: '{text}'"),
            Self::Port { option, text } => write!(f, "Invalid port specified in -{option}: '{text}'"),
            Self::UnknownNetwork { text } => write!(f, "Unknown network specified in -onlynet: '{text}'"),
            Self::CjdnsNotReachable => f.write_str(
                "Outbound connections restricted to CJDNS (-onlynet=cjdns) but -cjdnsreachable is not provided",
            ),
            Self::UnsafeComment { text } => write!(f, "User Agent comment ({text}) contains unsafe characters."),
            Self::LongUserAgent { length } => write!(
                f,
                "Total length of network version string ({length}) exceeds maximum length ({USER_AGENT_LENGTH_MAX}). Reduce the number or size of \
                 uacomments."
            ),
            Self::DnsSeedUnreachable => f.write_str(
                "Incompatible options: -dnsseed=1 was explicitly specified, but -onlynet forbids connections to IPv4/IPv6",
            ),
            Self::ProxyEndsWithEquals { text } => {
                write!(f, "Invalid -proxy address or hostname, ends with '=': '{text}'")
            }
            Self::Proxy { option: "proxy", text } => write!(f, "Invalid -proxy address or hostname: '{text}'"),
            Self::Proxy { option: "onion", text } => write!(f, "Invalid -onion address or hostname: '{text}'"),
            Self::Proxy { text, .. } => write!(f, "Invalid -i2psam address or hostname: '{text}'"),
            Self::ProxyNetwork { text, network } => write!(f, "Unrecognized network in -proxy='{text}': '{network}'"),
            Self::OnionForbidden => f.write_str(
                "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is explicitly forbidden: \
                 -onion=0",
            ),
            Self::OnionWithoutProxy => f.write_str(
                "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is not provided: none of \
                 -proxy, -onion or -listenonion is given",
            ),
            Self::Unresolved { option, text } => write!(f, "Cannot resolve -{option} address: '{text}'"),
            Self::Permission(error) => error.fmt(f),
            Self::I2pWithoutSam => {
                f.write_str("Outbound connections restricted to i2p (-onlynet=i2p) but -i2psam is not provided")
            }
            Self::DuplicateBind { address } => write!(
                f,
                "Duplicate binding configuration for address {address}. Please check your -bind, -bind=...=onion and -whitebind settings."
            ),
        }
    }
}
