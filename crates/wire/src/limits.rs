//! Limits of messages and packets, each with its name in Bitcoin Core. Constants only.

/// Bytes of a BIP-0155 address of any network, known or not: Core's `MAX_ADDRV2_SIZE`.
pub const ADDRV2_SIZE_MAX: usize = 512;
