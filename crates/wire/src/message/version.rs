//! `version`: the first message of a peer. Input: the payload. Output: [`Version`], with Core's defaults for the fields
//! that old peers omit.
//!
//! Invariants: the time is not negative; for peers that are too old for Core, the fields after the receiver's address
//! are not read. Total.

use crate::address::{Encoding, Endpoint, Services};
use crate::codec::limited;
use crate::error::DecodeError;
use crate::limits::USER_AGENT_SIZE_MAX;
use lydian_primitives::Reader;
use lydian_primitives::build::write_var_bytes;

/// The protocol version of this software: Core's `PROTOCOL_VERSION`.
pub const PROTOCOL_VERSION: i32 = 70017;
/// Peers with a lower version are disconnected: Core's `MIN_PEER_PROTO_VERSION`.
pub const MIN_PEER_PROTO_VERSION: i32 = 31800;
/// Above this version, `ping` has a nonce and is answered.
pub const BIP0031_VERSION: i32 = 60000;
pub const SENDHEADERS_VERSION: i32 = 70012;
pub const FEEFILTER_VERSION: i32 = 70013;
pub const SHORT_IDS_BLOCKS_VERSION: i32 = 70014;
pub const INVALID_CB_NO_BAN_VERSION: i32 = 70015;
pub const WTXID_RELAY_VERSION: i32 = 70016;
pub const FEATURE_VERSION: i32 = 70017;

/// The first message of each side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub version: i32,
    /// The services of the sender.
    pub services: Services,
    /// Seconds since 1970 by the sender's clock, not negative.
    pub time: i64,
    /// The services that the sender believes the receiver has; not used by any node.
    pub receiver_services: Services,
    /// The receiver's address as the sender sees it.
    pub receiver: Endpoint,
    /// Detects connections to self.
    pub nonce: u64,
    /// As sent: any bytes. For printing, use [`Version::clean_user_agent`].
    pub user_agent: Vec<u8>,
    pub start_height: i32,
    /// Whether the sender wants transaction announcements.
    pub relay: bool,
}

impl Version {
    /// The user agent without characters that could harm a terminal or a log: Core's `SanitizeString`.
    pub fn clean_user_agent(&self) -> String {
        let safe = |byte: &&u8| byte.is_ascii_alphanumeric() || b" .,;-_/:?@()".contains(byte);
        self.user_agent.iter().filter(safe).map(|byte| char::from(*byte)).collect()
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Version, DecodeError> {
        let version = i32::from_le_bytes(reader.array()?);
        let services = Services(u64::from_le_bytes(reader.array()?));
        let time = reader.i64()?.max(0);
        let receiver_services = Services(u64::from_le_bytes(reader.array()?));
        let receiver = Endpoint::decode(reader, Encoding::V1)?;
        let mut read = Version {
            version,
            services,
            time,
            receiver_services,
            receiver,
            nonce: 1,
            user_agent: Vec::new(),
            start_height: -1,
            relay: true,
        };
        if version < MIN_PEER_PROTO_VERSION {
            return Ok(read);
        }
        if reader.remaining() > 0 {
            reader.take(26)?;
            read.nonce = u64::from_le_bytes(reader.array()?);
        }
        if reader.remaining() > 0 {
            read.user_agent = limited(reader, USER_AGENT_SIZE_MAX)?.to_vec();
        }
        if reader.remaining() > 0 {
            read.start_height = i32::from_le_bytes(reader.array()?);
        }
        if reader.remaining() > 0 {
            read.relay = reader.u8()? != 0;
        }
        Ok(read)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.services.0.to_le_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.receiver_services.0.to_le_bytes());
        self.receiver.encode(out, Encoding::V1);
        out.extend_from_slice(&self.services.0.to_le_bytes());
        Endpoint::default().encode(out, Encoding::V1);
        out.extend_from_slice(&self.nonce.to_le_bytes());
        write_var_bytes(out, &self.user_agent);
        out.extend_from_slice(&self.start_height.to_le_bytes());
        out.push(u8::from(self.relay));
    }
}
