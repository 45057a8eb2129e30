//! Partially signed transactions, held against Core: every method's whole answer, and every error, for random PSBTs
//! that are built, signed, combined and mangled, and for published vectors.

mod flows;
mod generate;
mod maps;
mod vectors;
