//! What the defence against chains of little work is set to on each network. Figures only: Core's kernel/chainparams.cpp, which a script computes
//! (contrib/devtools/headerssync-params.py) so that an attacker's work is worth least memory.

use lydian_consensus::Chain;

/// Core's `HeadersSyncParams`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeadersSyncParams {
    /// Headers between two of which one bit is kept.
    pub commitment_period: u32,
    /// Headers that wait, when they come the second time, for the bits above them to be compared.
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
