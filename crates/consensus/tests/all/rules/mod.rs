//! The rules: `cases` breaks and keeps each of them once, `stories` tests special situations.

mod cases;
mod stories;
