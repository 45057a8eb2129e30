//! The opcodes, under Core's names (`opcodetype`, script/script.h). Their effects are not defined here.

macro_rules! opcodes {
    ($($name:ident = $value:literal $text:literal),* $(,)?) => {
        $(pub const $name: u8 = $value;)*

        /// Core's `GetOpName`: the printed name of an opcode.
        pub fn opcode_name(opcode: u8) -> &'static str {
            match opcode {
                $($name => $text,)*
                _ => "OP_UNKNOWN",
            }
        }

        /// Every named opcode with its name.
        pub const OPCODES: &[(u8, &str)] = &[$(($name, $text)),*];
    };
}

opcodes! {
    OP_0 = 0x00 "0",
    OP_PUSHDATA1 = 0x4c "OP_PUSHDATA1",
    OP_PUSHDATA2 = 0x4d "OP_PUSHDATA2",
    OP_PUSHDATA4 = 0x4e "OP_PUSHDATA4",
    OP_1NEGATE = 0x4f "-1",
    OP_RESERVED = 0x50 "OP_RESERVED",
    OP_1 = 0x51 "1",
    OP_2 = 0x52 "2",
    OP_3 = 0x53 "3",
    OP_4 = 0x54 "4",
    OP_5 = 0x55 "5",
    OP_6 = 0x56 "6",
    OP_7 = 0x57 "7",
    OP_8 = 0x58 "8",
    OP_9 = 0x59 "9",
    OP_10 = 0x5a "10",
    OP_11 = 0x5b "11",
    OP_12 = 0x5c "12",
    OP_13 = 0x5d "13",
    OP_14 = 0x5e "14",
    OP_15 = 0x5f "15",
    OP_16 = 0x60 "16",
    OP_NOP = 0x61 "OP_NOP",
    OP_VER = 0x62 "OP_VER",
    OP_IF = 0x63 "OP_IF",
    OP_NOTIF = 0x64 "OP_NOTIF",
    OP_VERIF = 0x65 "OP_VERIF",
    OP_VERNOTIF = 0x66 "OP_VERNOTIF",
    OP_ELSE = 0x67 "OP_ELSE",
    OP_ENDIF = 0x68 "OP_ENDIF",
    OP_VERIFY = 0x69 "OP_VERIFY",
    OP_RETURN = 0x6a "OP_RETURN",
    OP_TOALTSTACK = 0x6b "OP_TOALTSTACK",
    OP_FROMALTSTACK = 0x6c "OP_FROMALTSTACK",
    OP_2DROP = 0x6d "OP_2DROP",
    OP_2DUP = 0x6e "OP_2DUP",
    OP_3DUP = 0x6f "OP_3DUP",
    OP_2OVER = 0x70 "OP_2OVER",
    OP_2ROT = 0x71 "OP_2ROT",
    OP_2SWAP = 0x72 "OP_2SWAP",
    OP_IFDUP = 0x73 "OP_IFDUP",
    OP_DEPTH = 0x74 "OP_DEPTH",
    OP_DROP = 0x75 "OP_DROP",
    OP_DUP = 0x76 "OP_DUP",
    OP_NIP = 0x77 "OP_NIP",
    OP_OVER = 0x78 "OP_OVER",
    OP_PICK = 0x79 "OP_PICK",
    OP_ROLL = 0x7a "OP_ROLL",
    OP_ROT = 0x7b "OP_ROT",
    OP_SWAP = 0x7c "OP_SWAP",
    OP_TUCK = 0x7d "OP_TUCK",
    OP_CAT = 0x7e "OP_CAT",
    OP_SUBSTR = 0x7f "OP_SUBSTR",
    OP_LEFT = 0x80 "OP_LEFT",
    OP_RIGHT = 0x81 "OP_RIGHT",
    OP_SIZE = 0x82 "OP_SIZE",
    OP_INVERT = 0x83 "OP_INVERT",
    OP_AND = 0x84 "OP_AND",
    OP_OR = 0x85 "OP_OR",
    OP_XOR = 0x86 "OP_XOR",
    OP_EQUAL = 0x87 "OP_EQUAL",
    OP_EQUALVERIFY = 0x88 "OP_EQUALVERIFY",
    OP_RESERVED1 = 0x89 "OP_RESERVED1",
    OP_RESERVED2 = 0x8a "OP_RESERVED2",
    OP_1ADD = 0x8b "OP_1ADD",
    OP_1SUB = 0x8c "OP_1SUB",
    OP_2MUL = 0x8d "OP_2MUL",
    OP_2DIV = 0x8e "OP_2DIV",
    OP_NEGATE = 0x8f "OP_NEGATE",
    OP_ABS = 0x90 "OP_ABS",
    OP_NOT = 0x91 "OP_NOT",
    OP_0NOTEQUAL = 0x92 "OP_0NOTEQUAL",
    OP_ADD = 0x93 "OP_ADD",
    OP_SUB = 0x94 "OP_SUB",
    OP_MUL = 0x95 "OP_MUL",
    OP_DIV = 0x96 "OP_DIV",
    OP_MOD = 0x97 "OP_MOD",
    OP_LSHIFT = 0x98 "OP_LSHIFT",
    OP_RSHIFT = 0x99 "OP_RSHIFT",
    OP_BOOLAND = 0x9a "OP_BOOLAND",
    OP_BOOLOR = 0x9b "OP_BOOLOR",
    OP_NUMEQUAL = 0x9c "OP_NUMEQUAL",
    OP_NUMEQUALVERIFY = 0x9d "OP_NUMEQUALVERIFY",
    OP_NUMNOTEQUAL = 0x9e "OP_NUMNOTEQUAL",
    OP_LESSTHAN = 0x9f "OP_LESSTHAN",
    OP_GREATERTHAN = 0xa0 "OP_GREATERTHAN",
    OP_LESSTHANOREQUAL = 0xa1 "OP_LESSTHANOREQUAL",
    OP_GREATERTHANOREQUAL = 0xa2 "OP_GREATERTHANOREQUAL",
    OP_MIN = 0xa3 "OP_MIN",
    OP_MAX = 0xa4 "OP_MAX",
    OP_WITHIN = 0xa5 "OP_WITHIN",
    OP_RIPEMD160 = 0xa6 "OP_RIPEMD160",
    OP_SHA1 = 0xa7 "OP_SHA1",
    OP_SHA256 = 0xa8 "OP_SHA256",
    OP_HASH160 = 0xa9 "OP_HASH160",
    OP_HASH256 = 0xaa "OP_HASH256",
    OP_CODESEPARATOR = 0xab "OP_CODESEPARATOR",
    OP_CHECKSIG = 0xac "OP_CHECKSIG",
    OP_CHECKSIGVERIFY = 0xad "OP_CHECKSIGVERIFY",
    OP_CHECKMULTISIG = 0xae "OP_CHECKMULTISIG",
    OP_CHECKMULTISIGVERIFY = 0xaf "OP_CHECKMULTISIGVERIFY",
    OP_NOP1 = 0xb0 "OP_NOP1",
    OP_CHECKLOCKTIMEVERIFY = 0xb1 "OP_CHECKLOCKTIMEVERIFY",
    OP_CHECKSEQUENCEVERIFY = 0xb2 "OP_CHECKSEQUENCEVERIFY",
    OP_NOP4 = 0xb3 "OP_NOP4",
    OP_NOP5 = 0xb4 "OP_NOP5",
    OP_NOP6 = 0xb5 "OP_NOP6",
    OP_NOP7 = 0xb6 "OP_NOP7",
    OP_NOP8 = 0xb7 "OP_NOP8",
    OP_NOP9 = 0xb8 "OP_NOP9",
    OP_NOP10 = 0xb9 "OP_NOP10",
    OP_CHECKSIGADD = 0xba "OP_CHECKSIGADD",
    OP_INVALIDOPCODE = 0xff "OP_INVALIDOPCODE",
}

/// Opcodes of tapscript that make the script succeed immediately (BIP-0342; Core's `IsOpSuccess`).
pub fn is_op_success(opcode: u8) -> bool {
    matches!(opcode,
        80 | 98 | 126..=129 | 131..=134 | 137..=138 | 141..=142 | 149..=153 | 187..=254)
}

/// Opcodes that fail a script even if they are not executed (CVE-2010-5137).
pub fn is_disabled(opcode: u8) -> bool {
    matches!(opcode,
        OP_CAT..=OP_RIGHT | OP_INVERT..=OP_XOR | OP_2MUL | OP_2DIV | OP_MUL..=OP_RSHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sets() {
        assert_eq!(opcode_name(OP_CHECKSIGADD), "OP_CHECKSIGADD");
        assert_eq!(opcode_name(0xbb), "OP_UNKNOWN");
        // BIP-0342 lists 87 of them.
        assert_eq!((0..=255).filter(|&opcode| is_op_success(opcode)).count(), 87);
        assert_eq!((0..=255).filter(|&opcode| is_disabled(opcode)).count(), 15);
        assert!(OPCODES.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, each once");
    }
}
