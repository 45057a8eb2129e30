//! Partially signed transactions: BIP-0174, BIP-0370, BIP-0371 and BIP-0373, as far as Core knows them (psbt.h).
//!
//! Input: bytes or base 64. Output: a [`Psbt`], and bytes again; combined, analysed, signed and finalized PSBTs.
//!
//! Invariants: any bytes give a PSBT or an error with Core's words; what is written is what Core writes, with fields in
//! Core's order and with unknown and proprietary fields kept; memory grows with the bytes read, never with a declared
//! count. Signatures are made by [`lydian_descriptor`], which also signs plain transactions. No I/O, no clock, no chain
//! state.

#![forbid(unsafe_code)]

mod analyze;
mod combine;
mod error;
mod fields;
mod finalize;
mod input;
mod output;
mod read;
mod sign;
mod signature_data;
mod stream;
mod transaction;
mod types;
mod write;

pub use analyze::{Analysis, Estimate, InputAnalysis, Role};
pub use combine::join;
pub use error::ReadError;
pub use sign::{Prepared, SignError, SignOptions};
pub use types::{Input, Output, Proprietary, Psbt, TaprootOrigins, Unknown, Xpub};

#[cfg(test)]
mod tests;
