//! The keys of generated spends and their encodings in scripts, valid and invalid.
//!
//! Input: a key's number and a form. Output: its bytes. The secret keys are derived from their numbers; they must never
//! hold money.

use std::sync::LazyLock;

use lydian_hash::{hash160, sha256};
use secp256k1::{Keypair, SecretKey};

/// Number of keys: more than a multisig can have.
pub(super) const KEY_COUNT: u8 = 24;

/// The encoding of a key in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    Compressed,
    Uncompressed,
    /// 0x06 or 0x07 before x and y.
    Hybrid,
    /// The hybrid prefix for the other y: libsecp256k1 does not accept it.
    HybridWrong,
    /// BIP-0340.
    XOnly,
    /// An invalid prefix.
    BadPrefix,
    /// 33 bytes whose x is not on the curve.
    OffCurve,
    /// One byte less than the prefix requires.
    Short,
    /// One byte more.
    Long,
    Empty,
    /// One byte: an unknown key type in tapscript.
    OneByte,
}

impl KeyForm {
    pub const ALL: [KeyForm; 11] = [
        KeyForm::Compressed,
        KeyForm::Uncompressed,
        KeyForm::Hybrid,
        KeyForm::HybridWrong,
        KeyForm::XOnly,
        KeyForm::BadPrefix,
        KeyForm::OffCurve,
        KeyForm::Short,
        KeyForm::Long,
        KeyForm::Empty,
        KeyForm::OneByte,
    ];
}

/// A key and its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlan {
    /// Its number; taken modulo [`KEY_COUNT`].
    pub key: u8,
    pub form: KeyForm,
}

impl KeyPlan {
    pub fn compressed(key: u8) -> Self {
        Self { key, form: KeyForm::Compressed }
    }

    pub fn x_only(key: u8) -> Self {
        Self { key, form: KeyForm::XOnly }
    }

    pub fn bytes(self) -> Vec<u8> {
        let public = keypair(self.key).public_key();
        let (mut short, mut long) = (public.serialize().to_vec(), public.serialize_uncompressed().to_vec());
        let parity = long[64] & 1;
        match self.form {
            KeyForm::Compressed => short,
            KeyForm::Uncompressed => long,
            KeyForm::Hybrid | KeyForm::HybridWrong => {
                long[0] = 6 | (parity ^ u8::from(self.form == KeyForm::HybridWrong));
                long
            }
            KeyForm::XOnly => short.split_off(1),
            KeyForm::BadPrefix => {
                short[0] = 5;
                short
            }
            KeyForm::OffCurve => [&[2][..], &[0xff; 32]].concat(),
            KeyForm::Short => {
                short.pop();
                short
            }
            KeyForm::Long => {
                short.push(0);
                short
            }
            KeyForm::Empty => Vec::new(),
            KeyForm::OneByte => vec![1],
        }
    }

    pub fn hash(self) -> [u8; 20] {
        hash160(&self.bytes())
    }
}

/// Returns the key with this number, modulo [`KEY_COUNT`].
pub(super) fn keypair(key: u8) -> &'static Keypair {
    static KEYS: LazyLock<Vec<Keypair>> = LazyLock::new(|| {
        let secrets = (0_u16..).filter_map(|i| SecretKey::from_secret_bytes(sha256(&i.to_le_bytes())).ok());
        secrets.take(usize::from(KEY_COUNT)).map(|secret| secret.keypair()).collect()
    });
    &KEYS[usize::from(key % KEY_COUNT)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use secp256k1::PublicKey;

    #[test]
    fn forms_are_what_their_names_say() {
        for key in 0..KEY_COUNT {
            let parses = |form| PublicKey::from_slice(&KeyPlan { key, form }.bytes()).is_ok();
            let good = [KeyForm::Compressed, KeyForm::Uncompressed, KeyForm::Hybrid];
            assert!(KeyForm::ALL.iter().all(|form| parses(*form) == good.contains(form)), "{key}");
            assert_eq!(KeyPlan::x_only(key).bytes().len(), 32);
        }
    }
}
