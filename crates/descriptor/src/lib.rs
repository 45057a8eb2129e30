//! Addresses, output descriptors, and the types of output scripts, between text and scripts.
//!
//! Input: text, or an output script; the chain. Output: scripts, or text, as Core converts them; for bad text, an error
//! that is displayed with Core's message.
//!
//! [`Multisig`]: multisig outputs from keys. [`sign_message`], [`verify_message`]: signed messages.
//!
//! [`Address`]: addresses. [`Descriptors`]: descriptors and miniscript. [`solve`]: the type of a script.
//! [`write_inferred`]: the descriptor of a script alone; [`OffCurve`]: for many scripts. [`write_asm`]: its operations
//! by name. [`sign_transaction`]: signatures with given keys; [`Signer`]: of one input, for partially signed
//! transactions.
//!
//! Invariants: no input causes a panic; private keys are in no text that this crate writes, nor in `Debug`. No I/O, no
//! clock, no chain state.

#![forbid(unsafe_code)]

mod address;
mod asm;
mod base58;
mod bech32;
mod checksum;
mod expression;
mod infer;
mod infer_wsh;
pub mod limits;
mod multisig;
mod provide;
mod sign;
mod solver;

pub use address::{Address, AddressError, UnknownProgram};
pub use asm::write_asm;
pub use base58::encode_check as encode_base58_check;
pub use bech32::{Bech32Error, Bech32Fault};
pub use checksum::ChecksumError;
pub use expression::{DescriptorError, Descriptors, KeyError, MiniscriptFault, Output};
pub use infer::{OffCurve, write_inferred};
pub use infer_wsh::infer_wsh;
pub use multisig::{Multisig, MultisigType};
pub use sign::{
    AMOUNT_NOT_GIVEN, Batch, CompressedKey, ControlBlock, InputError, KeyOrigin, Keystore, LeafScripts, Missing,
    MusigMemo, MusigNonces, MusigPartials, MusigParticipants, MusigSession, Preimages, PrivateKey, SignatureData,
    Signatures, Signed, Signer, TaprootLeaf, TaprootSpend, TaprootTree, combine, sign_message, sign_transaction,
    verify_message,
};
pub use solver::{TxoutType, solve};
