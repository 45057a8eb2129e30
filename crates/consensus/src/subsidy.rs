//! The block subsidy. Core's `GetBlockSubsidy` (validation.cpp), BIP-0042.

use crate::limits::SUBSIDY_HALVINGS_MAX;
use crate::params::Params;
use lydian_primitives::{Amount, Height};

/// 50 coins, halved every interval; zero from the 64th halving on, where a shift would wrap.
pub fn block_subsidy(height: Height, params: &Params) -> Amount {
    let halvings = height.0 / params.subsidy_halving_interval;
    if halvings >= SUBSIDY_HALVINGS_MAX { Amount(0) } else { Amount((50 * Amount::COIN.0) >> halvings) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Chain;

    /// limit: SUBSIDY_HALVINGS_MAX at
    /// limit: SUBSIDY_HALVINGS_MAX above
    /// checklist: 9
    #[test]
    fn halvings_and_their_end() {
        let params = Params::new(Chain::Main);
        let at = |height| block_subsidy(Height(height), &params).0;
        assert_eq!(at(0), 50 * Amount::COIN.0);
        assert_eq!(at(209_999), 50 * Amount::COIN.0);
        assert_eq!(at(210_000), 25 * Amount::COIN.0);
        assert_eq!(at(210_000 * 32), 1);
        assert_eq!(at(210_000 * 33), 0);
        assert_eq!(at(210_000 * 64), 0);
        assert_eq!(at(210_000 * 65), 0);
        assert_eq!(at(u32::MAX), 0);
        let total: i64 = (0..64).map(|era| at(era * 210_000) * 210_000).sum();
        assert_eq!(total, 2_099_999_997_690_000);
    }
}
