//! Partially signed transactions, held against Core: every method's whole answer, and every error, for random PSBTs
//! that are built, signed, combined and mangled, for published vectors, and for outputs of several signers.

mod flows;
mod generate;
mod maps;
mod musig;
mod signer;
mod vectors;
