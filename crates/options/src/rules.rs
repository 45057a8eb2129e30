//! [`Rules`] of the syntax of one option: the part of a table entry that the parser needs. Data only.

/// What the parser must know about an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub name: &'static str,
    pub may_negate: bool,
    pub needs_value: bool,
    pub is_secret: bool,
    pub is_of_chain: bool,
}

impl Rules {
    /// An option that accepts everything.
    pub const fn plain(name: &'static str) -> Rules {
        Rules { name, may_negate: true, needs_value: false, is_secret: false, is_of_chain: false }
    }
}
