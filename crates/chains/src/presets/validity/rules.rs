//! The rules that the groups break, in one table.
//!
//! Output: name, title, and the deployment since which a block that breaks the rule is invalid. A test compares it with
//! the groups.

use std::fmt;

/// A change of the rules that a regtest implementation may enforce late or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deployment {
    /// Height in the coinbase.
    Bip34,
    /// CHECKLOCKTIMEVERIFY, and block versions below 4.
    Bip65,
    /// Strict DER.
    Bip66,
    /// BIP-0068, BIP-0112 and BIP-0113.
    Csv,
    /// BIP-0141, BIP-0143 and BIP-0147.
    Segwit,
    /// BIP-0341 and BIP-0342.
    Taproot,
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deployment::Bip34 => "BIP-0034",
            Deployment::Bip65 => "BIP-0065",
            Deployment::Bip66 => "BIP-0066",
            Deployment::Csv => "CSV",
            Deployment::Segwit => "segwit",
            Deployment::Taproot => "taproot",
        })
    }
}

/// The rule that a group breaks.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Unique; for a script also the name of the case in the preset `invalid`.
    pub name: &'static str,
    /// The text of a table row.
    pub title: &'static str,
    /// The deployment that makes the block invalid; `None` if it always was.
    pub since: Option<Deployment>,
}

use Deployment::{Bip34, Bip65, Bip66, Csv, Segwit, Taproot};

/// In the order of the groups: scripts, transactions, blocks.
pub const RULES: &[Rule] = &[
    rule("p2pkh-signature-false-by-a-bit", "ECDSA signature of P2PKH", None),
    rule("p2sh-multisig-signature-false-by-a-bit", "ECDSA signature of P2SH multisig", None),
    rule("p2wpkh-signature-false-by-a-bit", "ECDSA signature of P2WPKH", Some(Segwit)),
    rule("p2wsh-multisig-signature-false-by-a-bit", "ECDSA signature of P2WSH multisig", Some(Segwit)),
    rule("key-path-signature-false-by-a-bit", "Schnorr signature of a taproot key path", Some(Taproot)),
    rule("tapscript-signature-false-by-a-bit", "Schnorr signature of a tapscript", Some(Taproot)),
    rule("control-block-other-internal-key", "taproot commitment (control block)", Some(Taproot)),
    rule("tapscript-one-check-above-the-budget", "tapscript signature budget", Some(Taproot)),
    rule("tapscript-if-on-2", "MINIMALIF in tapscript", Some(Taproot)),
    rule("tapscript-ends-false", "tapscript that ends false", Some(Taproot)),
    rule("p2pkh-key-of-another", "key of P2PKH", None),
    rule("p2sh-redeem-script-false", "P2SH redeem script (BIP-0016)", None),
    rule("p2wsh-ends-false", "P2WSH script", Some(Segwit)),
    rule("p2wsh-script-of-another", "hash of a P2WSH script", Some(Segwit)),
    rule("p2wpkh-legacy-message", "message of BIP-0143", Some(Segwit)),
    rule("der-r-padded", "strict DER (BIP-0066)", Some(Bip66)),
    rule("multisig-dummy-not-empty", "NULLDUMMY (BIP-0147)", Some(Segwit)),
    rule("cltv-a-block-too-early", "CHECKLOCKTIMEVERIFY (BIP-0065)", Some(Bip65)),
    rule("csv-a-block-too-many", "CHECKSEQUENCEVERIFY (BIP-0112)", Some(Csv)),
    rule("cat-not-run", "disabled opcodes", None),
    rule("operations-202", "201 operations in a script", None),
    rule("push-of-521-bytes", "520 bytes in a push", None),
    rule("outputs-a-satoshi-above-inputs", "outputs above inputs", None),
    rule("outputs-together-overflow", "sum of outputs (CVE-2010-5139)", None),
    rule("output-of-minus-1", "negative outputs", None),
    rule("spends-what-never-was", "coins that never were", None),
    rule("spent-twice-in-the-block", "double spend in a block", None),
    rule("spent-in-an-earlier-block", "double spend of an earlier block", None),
    rule("same-input-twice", "same input twice (CVE-2018-17144)", None),
    rule("child-before-its-parent", "order of transactions", None),
    rule("coinbase-after-99-blocks", "maturity of coinbases", None),
    rule("locked-to-this-height", "lock time", None),
    rule("locked-to-the-median-time", "lock time against the median (BIP-0113)", Some(Csv)),
    rule("sequence-a-block-too-many", "relative lock time (BIP-0068)", Some(Csv)),
    rule("hash-above-target", "proof of work", None),
    rule("bits-not-the-ones-asked-for", "difficulty", None),
    rule("time-at-the-median", "median time of the header", None),
    rule("time-in-the-far-future", "time two hours ahead", None),
    rule("version-3", "block version", Some(Bip65)),
    rule("merkle-root-of-another-block", "merkle root", None),
    rule("coinbase-pays-fees-and-a-satoshi", "subsidy and fees", None),
    rule("two-coinbases", "one coinbase", None),
    rule("coinbase-script-of-101-bytes", "size of the coinbase script", None),
    rule("height-one-too-low", "height in the coinbase (BIP-0034)", Some(Bip34)),
    rule("weight-4000001", "block weight", Some(Segwit)),
    rule("checksig-20001", "signature operations in outputs", None),
    rule("cost-80001-witness-scripts", "signature operations in witnesses", Some(Segwit)),
    rule("commitment-false-by-a-bit", "witness commitment", Some(Segwit)),
    rule("witness-without-commitment", "witness without a commitment", Some(Segwit)),
];

const fn rule(name: &'static str, title: &'static str, since: Option<Deployment>) -> Rule {
    Rule { name, title, since }
}

/// The rule of this name.
pub fn rule_of(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}
