//! [`RpcError`]: the error of a call, with Core's number and text. [`code`]: the numbers (rpc/protocol.h).

use lydian_engine::EngineError;
use std::fmt;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into() }
    }

    /// Core's `RPC_INVALID_PARAMETER`.
    pub fn parameter(message: impl Into<String>) -> RpcError {
        RpcError::new(code::INVALID_PARAMETER, message)
    }

    /// Core's `RPC_MISC_ERROR`.
    pub fn misc(message: impl Into<String>) -> RpcError {
        RpcError::new(code::MISC_ERROR, message)
    }

    pub fn block_not_found() -> RpcError {
        RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Block not found")
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// A failed disk, or an engine that has stopped because of one.
impl From<EngineError> for RpcError {
    fn from(error: EngineError) -> RpcError {
        RpcError::new(code::DATABASE_ERROR, error.to_string())
    }
}

/// Core's `RPCErrorCode`.
pub mod code {
    pub const INVALID_REQUEST: i32 = -32600;
    pub const METHOD_NOT_FOUND: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL_ERROR: i32 = -32603;
    pub const PARSE_ERROR: i32 = -32700;
    pub const MISC_ERROR: i32 = -1;
    pub const TYPE_ERROR: i32 = -3;
    pub const INVALID_ADDRESS_OR_KEY: i32 = -5;
    pub const INVALID_PARAMETER: i32 = -8;
    pub const CLIENT_NOT_CONNECTED: i32 = -9;
    pub const CLIENT_IN_INITIAL_DOWNLOAD: i32 = -10;
    pub const DATABASE_ERROR: i32 = -20;
    pub const DESERIALIZATION_ERROR: i32 = -22;
    pub const CLIENT_NODE_ALREADY_ADDED: i32 = -23;
    pub const CLIENT_NODE_NOT_ADDED: i32 = -24;
    pub const VERIFY_ERROR: i32 = -25;
    pub const VERIFY_REJECTED: i32 = -26;
    pub const VERIFY_ALREADY_IN_UTXO_SET: i32 = -27;
    pub const IN_WARMUP: i32 = -28;
    pub const CLIENT_NODE_NOT_CONNECTED: i32 = -29;
    pub const CLIENT_INVALID_IP_OR_SUBNET: i32 = -30;
    pub const CLIENT_P2P_DISABLED: i32 = -31;
    pub const CLIENT_MEMPOOL_DISABLED: i32 = -33;
    pub const CLIENT_NODE_CAPACITY_REACHED: i32 = -34;
}
