//! The methods, by theme. Each module has its list of [`crate::Method`]s.

pub(crate) mod control;
