//! The kinds of coins of the chain, their shares and their costs, in one table.

/// The kind of script that locks a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    P2pkh,
    P2pkhUncompressed,
    P2shP2wpkh,
    P2wpkh,
    P2wsh2of3,
    P2sh2of3,
    Bare2of3,
    P2trKey,
    P2trScript,
}

/// Twice the expected bytes of an ECDSA signature with its hash type: r has 33 bytes in half of them.
pub const SIGNATURE_SIZE_EXPECTED_X2: u64 = 143;

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::P2pkh,
        Kind::P2pkhUncompressed,
        Kind::P2shP2wpkh,
        Kind::P2wpkh,
        Kind::P2wsh2of3,
        Kind::P2sh2of3,
        Kind::Bare2of3,
        Kind::P2trKey,
        Kind::P2trScript,
    ];

    /// The name in output and in the statistics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::P2pkh => "p2pkh",
            Kind::P2pkhUncompressed => "p2pkh-uncompressed",
            Kind::P2shP2wpkh => "p2sh-p2wpkh",
            Kind::P2wpkh => "p2wpkh",
            Kind::P2wsh2of3 => "p2wsh-2of3",
            Kind::P2sh2of3 => "p2sh-2of3",
            Kind::Bare2of3 => "bare-2of3",
            Kind::P2trKey => "p2tr-key",
            Kind::P2trScript => "p2tr-script",
        }
    }

    /// Share of the inputs of mainnet-mix, per mille.
    pub fn share_per_mille(self) -> u64 {
        match self {
            Kind::P2pkh => 116,
            Kind::P2pkhUncompressed => 5,
            Kind::P2shP2wpkh => 100,
            Kind::P2wpkh => 440,
            Kind::P2wsh2of3 => 50,
            Kind::P2sh2of3 => 30,
            Kind::Bare2of3 => 7,
            Kind::P2trKey => 209,
            Kind::P2trScript => 43,
        }
    }

    /// The kind at a point of the concatenated shares; `point` is below 1000.
    pub fn at(point: u64) -> Kind {
        let mut rest = point;
        for kind in Kind::ALL {
            if rest < kind.share_per_mille() {
                return kind;
            }
            rest -= kind.share_per_mille();
        }
        Kind::P2wpkh
    }

    /// Number of keys of a lock, its internal key included.
    pub fn keys(self) -> u8 {
        match self {
            Kind::P2wsh2of3 | Kind::P2sh2of3 | Kind::Bare2of3 => 3,
            Kind::P2trScript => 2,
            _ => 1,
        }
    }

    /// Whether an input that spends it has a witness.
    pub fn has_witness(self) -> bool {
        !matches!(self, Kind::P2pkh | Kind::P2pkhUncompressed | Kind::P2sh2of3 | Kind::Bare2of3)
    }

    /// Bytes of the output script.
    pub fn script_pubkey_size(self) -> u64 {
        match self {
            Kind::P2pkh | Kind::P2pkhUncompressed => 25,
            Kind::P2shP2wpkh | Kind::P2sh2of3 => 23,
            Kind::P2wpkh => 22,
            Kind::P2wsh2of3 | Kind::P2trKey | Kind::P2trScript => 34,
            Kind::Bare2of3 => 105,
        }
    }

    /// Expected weight of an input that spends it, times two. `leaf_size` is the size of the script of a script path.
    pub fn input_weight_x2(self, leaf_size: u64) -> u64 {
        let (base, witness) = match self {
            Kind::P2pkh => (2 * (41 + 2 + 33) + SIGNATURE_SIZE_EXPECTED_X2, 0),
            Kind::P2pkhUncompressed => (2 * (41 + 2 + 65) + SIGNATURE_SIZE_EXPECTED_X2, 0),
            Kind::P2wpkh => (2 * 41, 2 * (3 + 33) + SIGNATURE_SIZE_EXPECTED_X2),
            Kind::P2shP2wpkh => (2 * (41 + 23), 2 * (3 + 33) + SIGNATURE_SIZE_EXPECTED_X2),
            Kind::P2wsh2of3 => (2 * 41, 2 * (2 + 2 + 1 + 105) + 2 * SIGNATURE_SIZE_EXPECTED_X2),
            // The length takes three bytes unless both signatures are short: in three of four cases.
            Kind::P2sh2of3 => (2 * (40 + 1 + 2 + 2 + 105) + 5 + 2 * SIGNATURE_SIZE_EXPECTED_X2, 0),
            Kind::Bare2of3 => (2 * (41 + 1 + 2) + 2 * SIGNATURE_SIZE_EXPECTED_X2, 0),
            Kind::P2trKey => (2 * 41, 2 * 66),
            Kind::P2trScript => {
                let length = if leaf_size < 253 { 1 } else { 3 };
                (2 * 41, 2 * (1 + 65 + length + leaf_size + 34))
            }
        };
        4 * base + witness
    }

    /// Number of ECDSA signatures in an input.
    pub fn ecdsa_signatures(self) -> u64 {
        match self {
            Kind::P2pkh | Kind::P2pkhUncompressed | Kind::P2shP2wpkh | Kind::P2wpkh => 1,
            Kind::P2wsh2of3 | Kind::P2sh2of3 | Kind::Bare2of3 => 2,
            Kind::P2trKey | Kind::P2trScript => 0,
        }
    }

    /// Number of signatures in an input.
    pub fn signatures(self) -> usize {
        usize::try_from(self.ecdsa_signatures()).unwrap_or_default().max(1)
    }

    /// Pairs of signature and key that a verifier may have to check: m signatures times n - m + 1 keys each.
    pub fn candidate_pairs(self) -> u64 {
        match self.ecdsa_signatures() {
            2 => 4,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_are_found() {
        assert_eq!(Kind::ALL.iter().map(|kind| kind.share_per_mille()).sum::<u64>(), 1000);
        for kind in Kind::ALL {
            let points = (0..1000).filter(|&point| Kind::at(point) == kind).count();
            assert_eq!(points as u64, kind.share_per_mille(), "{}", kind.name());
        }
    }
}
