//! The parameters of the protection against low-work chains, for each network.
//!
//! They are the values of Core's kernel/chainparams.cpp, which a script computes
//! (contrib/devtools/headerssync-params.py) so that an attacker's work costs us the least memory.

use lydian_consensus::Chain;

/// Core's `HeadersSyncParams`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadersSyncParams {
    /// The distance between two headers of which one bit is stored.
    pub commitment_period: u32,
    /// The number of headers that are held back in the second download until the bits above them were compared.
    pub redownload_buffer_size: usize,
}

impl HeadersSyncParams {
    pub fn of(chain: Chain) -> HeadersSyncParams {
        let (commitment_period, redownload_buffer_size) = match chain {
            Chain::Main => (641, 15_218),
            Chain::Test => (673, 14_460),
            Chain::Testnet4 => (606, 16_092),
            Chain::Signet => (620, 15_724),
            Chain::Regtest => (275, 7_017),
        };
        HeadersSyncParams { commitment_period, redownload_buffer_size }
    }
}
