//! Every limit of script execution, in Core's names (script/script.h, script/interpreter.h). Each has a test at and above.

/// Bytes of one stack element that a script pushes or a v0 or tapscript witness brings.
pub const MAX_SCRIPT_ELEMENT_SIZE: usize = 520;

/// Operations above `OP_16` in one script, keys of `OP_CHECKMULTISIG` added; not in tapscript.
pub const MAX_OPS_PER_SCRIPT: usize = 201;

/// Keys of one `OP_CHECKMULTISIG`.
pub const MAX_PUBKEYS_PER_MULTISIG: usize = 20;

/// Bytes of one script; not of a tapscript.
pub const MAX_SCRIPT_SIZE: usize = 10_000;

/// Elements of the stack and the alternative stack together.
pub const MAX_STACK_SIZE: usize = 1000;

/// Bytes of a number that arithmetic takes.
pub const SCRIPT_NUM_SIZE_MAX: usize = 4;

/// Bytes of a number that `OP_CHECKLOCKTIMEVERIFY` and `OP_CHECKSEQUENCEVERIFY` take.
pub const LOCK_TIME_NUM_SIZE_MAX: usize = 5;

/// Hashes in the path of a taproot control block (BIP-0341).
pub const TAPROOT_CONTROL_MAX_NODE_COUNT: usize = 128;
