//! Script verification flags: one bit each, in the order of Core's `script_verify_flag_name` (script/interpreter.h).
//!
//! All are soft forks: a script that passes under more flags passes under fewer. The consensus layer decides which
//! flags a block is verified with; the two sets here are those of Core's policy (policy/policy.h).

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal),* $(,)?) => {
        impl Flags {
            pub const NONE: Flags = Flags(0);
            $($(#[$doc])* pub const $name: Flags = Flags(1 << $bit);)*

            /// Every flag with its name, in bit order.
            pub const ALL: &[(&str, Flags)] = &[$((stringify!($name), Flags::$name)),*];
        }
    };
}

flags! {
    /// Evaluate P2SH redeem scripts (BIP-0016).
    P2SH = 0,
    /// Policy: strict DER, a defined hash type, and a compressed or uncompressed key.
    STRICTENC = 1,
    /// Strict DER (BIP-0066).
    DERSIG = 2,
    /// Policy: s at most half the group order.
    LOW_S = 3,
    /// The extra element of `OP_CHECKMULTISIG` is empty (BIP-0147).
    NULLDUMMY = 4,
    /// Policy: only pushes in the scriptSig.
    SIGPUSHONLY = 5,
    /// Policy: shortest pushes and numbers.
    MINIMALDATA = 6,
    /// Policy: no NOP that is reserved for soft forks.
    DISCOURAGE_UPGRADABLE_NOPS = 7,
    /// Policy: exactly one element is left. Requires `P2SH` and `WITNESS`.
    CLEANSTACK = 8,
    /// BIP-0065.
    CHECKLOCKTIMEVERIFY = 9,
    /// BIP-0112.
    CHECKSEQUENCEVERIFY = 10,
    /// BIP-0141. Requires `P2SH`.
    WITNESS = 11,
    /// Policy: no witness version that is reserved for soft forks.
    DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM = 12,
    /// Policy in witness v0 (consensus in tapscript): the argument of `OP_IF` is empty or 1.
    MINIMALIF = 13,
    /// Policy: the signatures of a failed check are empty.
    NULLFAIL = 14,
    /// Policy: compressed keys in witness v0.
    WITNESS_PUBKEYTYPE = 15,
    /// Policy: no `OP_CODESEPARATOR` and no FindAndDelete match before segwit.
    CONST_SCRIPTCODE = 16,
    /// BIP-0341 and BIP-0342.
    TAPROOT = 17,
    /// Policy: no taproot leaf version that is reserved for soft forks.
    DISCOURAGE_UPGRADABLE_TAPROOT_VERSION = 18,
    /// Policy: no `OP_SUCCESSx`.
    DISCOURAGE_OP_SUCCESS = 19,
    /// Policy: no tapscript key of an unknown type.
    DISCOURAGE_UPGRADABLE_PUBKEYTYPE = 20,
}

impl Flags {
    /// Core's `MANDATORY_SCRIPT_VERIFY_FLAGS`.
    pub const MANDATORY: Flags = Flags(
        Flags::P2SH.0
            | Flags::DERSIG.0
            | Flags::NULLDUMMY.0
            | Flags::CHECKLOCKTIMEVERIFY.0
            | Flags::CHECKSEQUENCEVERIFY.0
            | Flags::WITNESS.0
            | Flags::TAPROOT.0,
    );

    /// Core's `STANDARD_SCRIPT_VERIFY_FLAGS`.
    pub const STANDARD: Flags = Flags(
        Flags::MANDATORY.0
            | Flags::STRICTENC.0
            | Flags::MINIMALDATA.0
            | Flags::DISCOURAGE_UPGRADABLE_NOPS.0
            | Flags::CLEANSTACK.0
            | Flags::MINIMALIF.0
            | Flags::NULLFAIL.0
            | Flags::LOW_S.0
            | Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM.0
            | Flags::WITNESS_PUBKEYTYPE.0
            | Flags::CONST_SCRIPTCODE.0
            | Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION.0
            | Flags::DISCOURAGE_OP_SUCCESS.0
            | Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE.0,
    );

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The flags of `self` that are not in `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether Core's code may be called with this set: `CLEANSTACK` requires `WITNESS`, and `WITNESS` requires `P2SH`.
    /// Core asserts both (`VerifyScript`).
    pub const fn is_legal(self) -> bool {
        let clean_stack = !self.contains(Flags::CLEANSTACK) || self.contains(Flags::WITNESS);
        clean_stack && (!self.contains(Flags::WITNESS) || self.contains(Flags::P2SH))
    }

    /// Parses names separated by commas. An empty string and `NONE` are the empty set. `None` if a name is unknown.
    pub fn from_names(names: &str) -> Option<Flags> {
        let names = names.split(',').filter(|name| !name.is_empty() && *name != "NONE");
        names.map(Flags::from_name).try_fold(Flags::NONE, |flags, flag| Some(flags | flag?))
    }

    fn from_name(name: &str) -> Option<Flags> {
        Flags::ALL.iter().find(|(known, _)| *known == name).map(|(_, flag)| *flag)
    }

    /// The names of the flags that are set, in bit order.
    pub fn names(self) -> Vec<&'static str> {
        Flags::ALL.iter().filter(|(_, flag)| self.contains(*flag)).map(|(name, _)| *name).collect()
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        self.union(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        *self = *self | other;
    }
}

/// Prints the names separated by commas.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(","))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        let flags = Flags::from_names("P2SH,WITNESS,TAPROOT").unwrap();
        assert_eq!(flags, Flags::P2SH | Flags::WITNESS | Flags::TAPROOT);
        assert_eq!(flags.names(), ["P2SH", "WITNESS", "TAPROOT"]);
        assert_eq!(Flags::from_names(&flags.to_string()), Some(flags));
        assert_eq!(Flags::from_names(""), Some(Flags::NONE));
        assert_eq!(Flags::from_names("NONE"), Some(Flags::NONE));
        assert_eq!(Flags::from_names("P2SH,WITNES"), None);
    }

    #[test]
    fn bits_are_in_cores_order() {
        for (bit, (name, flag)) in Flags::ALL.iter().enumerate() {
            assert_eq!(flag.0, 1 << bit, "{name}");
        }
        assert_eq!(Flags::ALL.len(), 21);
        assert_eq!(Flags::MANDATORY.names().len(), 7);
        assert_eq!(Flags::STANDARD.names().len(), 20, "all but SIGPUSHONLY");
        assert!(!Flags::STANDARD.contains(Flags::SIGPUSHONLY));
    }

    #[test]
    fn sets_that_core_asserts_against_are_illegal() {
        assert!(Flags::STANDARD.is_legal() && Flags::MANDATORY.is_legal() && Flags::NONE.is_legal());
        assert!(!Flags::WITNESS.is_legal());
        assert!(!(Flags::CLEANSTACK | Flags::P2SH).is_legal());
        assert!((Flags::CLEANSTACK | Flags::P2SH | Flags::WITNESS).is_legal());
    }
}
