//! `docs/memory.md`: the components that hold memory, the limit of each, the constant that sets it, and the tests that
//! reach it.
//!
//! Input: `docs/memory.tsv` (owner, `crate::CONSTANT`, what is counted) and the constants of each crate's `limits.rs`.
//! Output: the document, with the values of the constants and the tests that carry `/// limit: NAME above`; or an error
//! that names the first row whose constant does not exist. Invariant: no figure is written by hand. It must never
//! depend on a crate of the product.

use crate::tidy::limit_tests;
use crate::tree::Tree;
use std::collections::BTreeMap;
use syn::{BinOp, Expr, Lit};

const PATH: &str = "docs/memory.tsv";

/// The constants of all crates, by crate and name.
type Constants = BTreeMap<(String, String), Expr>;

/// Returns the document.
pub(crate) fn document(tree: &Tree) -> Result<String, String> {
    let table = tree.text(PATH).ok_or_else(|| format!("{PATH} is missing"))?;
    let constants = constants(tree);
    let mut text =
        "<!-- Generated from docs/memory.tsv and the crates' limits.rs by `make generate`. -->\n# Memory\n\n\
        The owners of memory and their upper limits. Each limit is a constant with tests at the limit and\n\
        above it. Not listed: `-dbcache` (450 MiB by default; half of it, at most 1 GiB, for coins that are\n\
        not on disk yet, with `-lowmem` all of it), `-maxmempool` (300 MB by default, as Bitcoin Core counts\n\
        it), `-maxsigcachesize` (32 MiB by default, half of which is used), 9.6 to 13.4 bytes per unspent\n\
        coin (with `-lowmem` 2.1 to 2.4), up to 191 bytes per header, and the socket buffers of the kernel.\n\n\
        | owner | limit | constant | what counts | tests |\n|---|---|---|---|---|\n"
            .to_owned();
    for (number, line) in (1..).zip(table.lines()).filter(|(_, line)| !line.starts_with('#')) {
        let [owner, constant, what] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("{PATH}:{number}: a row has three columns"));
        };
        let wrong = || format!("{PATH}:{number}: `{constant}` is no constant of a limits.rs with a value");
        let (crate_name, name) = constant.split_once("::").ok_or_else(wrong)?;
        let value = value(&constants, crate_name, name).ok_or_else(wrong)?;
        let tests: Vec<_> = limit_tests(crate_name, name, tree).into_iter().map(|test| format!("`{test}`")).collect();
        let (limit, tests) = (figure(name, value), tests.join("<br>"));
        text += &format!("| {owner} | {limit} | `{constant}` | {what} | {tests} |\n");
    }
    Ok(text)
}

/// Formats a limit with its unit: in MiB if it is a multiple of 1 MiB, in MB if it is a multiple of 1,000 bytes.
fn figure(name: &str, value: u64) -> String {
    let is_bytes = ["BYTES", "SIZE", "SHARE"].iter().any(|word| name.contains(word));
    match is_bytes {
        true if value.is_multiple_of(1 << 20) => format!("{} MiB", value >> 20),
        true if value.is_multiple_of(1000) => format!("{}.{:03} MB", value / 1_000_000, value / 1000 % 1000),
        true => format!("{value} bytes"),
        false => value.to_string(),
    }
}

fn constants(tree: &Tree) -> Constants {
    let mut constants = Constants::new();
    for (file, rust) in tree.rust().filter(|(file, _)| file.path.ends_with("/src/limits.rs")) {
        for item in &rust.ast.items {
            if let syn::Item::Const(item) = item {
                let crate_name = file.crate_name().unwrap_or("").to_owned();
                constants.insert((crate_name, item.ident.to_string()), (*item.expr).clone());
            }
        }
    }
    constants
}

fn value(constants: &Constants, crate_name: &str, name: &str) -> Option<u64> {
    evaluate(constants.get(&(crate_name.to_owned(), name.to_owned()))?, constants, crate_name)
}

/// Evaluates integers, their sums, products and shifts, and other constants of the crate.
fn evaluate(expr: &Expr, constants: &Constants, crate_name: &str) -> Option<u64> {
    match expr {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        Expr::Path(path) => value(constants, crate_name, &path.path.get_ident()?.to_string()),
        Expr::Paren(inner) => evaluate(&inner.expr, constants, crate_name),
        Expr::Binary(binary) => {
            let left = evaluate(&binary.left, constants, crate_name)?;
            let right = evaluate(&binary.right, constants, crate_name)?;
            match binary.op {
                BinOp::Add(_) => left.checked_add(right),
                BinOp::Mul(_) => left.checked_mul(right),
                BinOp::Shl(_) => left.checked_shl(u32::try_from(right).ok()?),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: (&str, &str) = (
        "crates/a/src/limits.rs",
        "//! x\npub const A_BYTES: usize = 300_000_000;\npub const B_BYTES: usize = (2 + B_COUNT) << 20;\nconst B_COUNT: usize = 3;\n\
         pub const C_MAX: f64 = 1.5;\n",
    );
    const TESTS: (&str, &str) =
        ("crates/a/tests/b.rs", "/// limit: A_BYTES at\n/// limit: A_BYTES above\n#[test]\nfn at_the_edge() {}\n");

    fn made(table: &str) -> Result<String, String> {
        document(&Tree::of(&[LIMITS, TESTS, (PATH, table)]))
    }

    #[test]
    fn a_row_has_its_value_and_its_tests() {
        let text =
            made("# head\npeers\ta::A_BYTES\tall\nblocks\ta::B_BYTES\tsome\ncount\ta::B_COUNT\tnumber\n").unwrap();
        assert!(text.contains("| peers | 300.000 MB | `a::A_BYTES` | all | `crates/a/tests/b.rs::at_the_edge` |\n"));
        assert!(text.contains("| blocks | 5 MiB | `a::B_BYTES` | some |  |\n"), "{text}");
        assert!(text.contains("| count | 3 |"), "{text}");
    }

    #[test]
    fn a_row_that_does_not_hold_is_an_error() {
        for table in ["peers\ta::Z_BYTES\tall\n", "peers\tb::A_BYTES\tall\n", "peers\ta::C_MAX\tall\n", "peers\tall\n"]
        {
            assert!(made(table).is_err(), "{table}");
        }
    }
}
