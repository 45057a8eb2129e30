//! The magic bytes of the known chains (Core's `pchMessageStart`, kernel/chainparams.cpp). Data only.

/// A chain's name, as in Core's `-chain`, and the four bytes before each of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownMagic {
    pub name: &'static str,
    pub magic: [u8; 4],
}

/// For signet, the default network. A signet with a custom challenge has its own magic.
pub const MAGICS: &[KnownMagic] = &[
    KnownMagic { name: "main", magic: [0xf9, 0xbe, 0xb4, 0xd9] },
    KnownMagic { name: "test", magic: [0x0b, 0x11, 0x09, 0x07] },
    KnownMagic { name: "testnet4", magic: [0x1c, 0x16, 0x3f, 0x28] },
    KnownMagic { name: "signet", magic: [0x0a, 0x03, 0xcf, 0x40] },
    KnownMagic { name: "regtest", magic: [0xfa, 0xbf, 0xb5, 0xda] },
];

/// The name of the chain with this magic.
pub fn magic_name(magic: [u8; 4]) -> Option<&'static str> {
    MAGICS.iter().find(|known| known.magic == magic).map(|known| known.name)
}
