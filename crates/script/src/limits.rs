//! Limits of script execution, under Core's names (script/script.h, script/interpreter.h), each tested at and above.

/// Maximum size in bytes of a stack element that is pushed by a script or comes from a v0 or tapscript witness.
pub const MAX_SCRIPT_ELEMENT_SIZE: usize = 520;

/// Maximum number of operations above `OP_16` in a script, plus the keys of each `OP_CHECKMULTISIG`. Not in tapscript.
pub const MAX_OPS_PER_SCRIPT: usize = 201;

/// Maximum number of keys of one `OP_CHECKMULTISIG`.
pub const MAX_PUBKEYS_PER_MULTISIG: usize = 20;

/// Maximum size of a script in bytes. Not for a tapscript.
pub const MAX_SCRIPT_SIZE: usize = 10_000;

/// Maximum number of elements on the stack and the alternative stack together.
pub const MAX_STACK_SIZE: usize = 1000;

/// Maximum size in bytes of an operand of arithmetic.
pub const SCRIPT_NUM_SIZE_MAX: usize = 4;

/// Maximum size in bytes of the operand of `OP_CHECKLOCKTIMEVERIFY` and `OP_CHECKSEQUENCEVERIFY`.
pub const LOCK_TIME_NUM_SIZE_MAX: usize = 5;

/// Maximum number of hashes in the path of a taproot control block (BIP-0341).
pub const TAPROOT_CONTROL_MAX_NODE_COUNT: usize = 128;
