//! The types of expressions: where each may be used, and the properties of its satisfactions (BIP-0379; Core's
//! `ComputeType`).
//!
//! A type is a set of letters. B V K W: what it leaves on the stack. z o n: what it takes from the stack. d f e m u s
//! x: as in the BIP. g h i j k: its timelocks: relative in seconds, relative in blocks, absolute in seconds, absolute
//! in blocks, and no satisfaction mixes them.

use super::{Fragment, Kind};

pub(super) type Type = u32;

const LETTERS: &[u8] = b"BVKWzondfemusxghijk";

/// The set of these letters.
const fn set(letters: &str) -> Type {
    let letters = letters.as_bytes();
    let (mut found, mut index) = (0, 0);
    while index < letters.len() {
        let mut place = 0;
        while LETTERS[place] != letters[index] {
            place += 1;
        }
        found |= 1 << place;
        index += 1;
    }
    found
}

/// Whether the type contains all of these letters.
pub(super) fn has(found: Type, letters: &str) -> bool {
    found & set(letters) == set(letters)
}

fn when(condition: bool, found: Type) -> Type {
    if condition { found } else { 0 }
}

/// From this number on, an absolute locktime is a time and not a height; and the bit that marks a relative locktime as
/// a time.
const LOCKTIME_THRESHOLD: u32 = 500_000_000;
const SEQUENCE_TYPE_FLAG: u32 = 1 << 22;

/// The type of an expression; the empty set if its parts do not fit.
pub(super) fn compute(kind: Kind, k: u32, subs: &[Fragment], is_leaf: bool) -> Type {
    let sub = |index: usize| subs.get(index).map_or(0, |sub| sub.kind_type);
    let (x, y, z) = (sub(0), sub(1), sub(2));
    let found = match kind {
        Kind::Just0 => set("Bzudemsxk"),
        Kind::Just1 => set("Bzufmxk"),
        Kind::PkK => set("Konudemsxk"),
        Kind::PkH => set("Knudemsxk"),
        Kind::Older => {
            when(k & SEQUENCE_TYPE_FLAG != 0, set("g")) | when(k & SEQUENCE_TYPE_FLAG == 0, set("h")) | set("Bzfmxk")
        }
        Kind::After => when(k >= LOCKTIME_THRESHOLD, set("i")) | when(k < LOCKTIME_THRESHOLD, set("j")) | set("Bzfmxk"),
        Kind::Sha256 | Kind::Hash256 | Kind::Ripemd160 | Kind::Hash160 => set("Bonudmk"),
        Kind::Multi => set("Bnudemsk"),
        Kind::MultiA => set("Budemsk"),
        Kind::WrapA | Kind::WrapS | Kind::WrapC | Kind::WrapD | Kind::WrapV | Kind::WrapJ | Kind::WrapN => {
            wrapper(kind, x, is_leaf) | x & set("ghijk")
        }
        Kind::AndV | Kind::AndB => and(kind, x, y),
        Kind::OrB | Kind::OrC | Kind::OrD | Kind::OrI => or(kind, x, y),
        Kind::AndOr => and_or(x, y, z),
        Kind::Thresh => thresh(k, subs),
    };
    // Without one of these, the other properties are meaningless.
    if found & set("BVKW") == 0 { 0 } else { found }
}

fn wrapper(kind: Kind, x: Type, is_leaf: bool) -> Type {
    match kind {
        Kind::WrapA => when(has(x, "B"), set("W")) | x & set("udfems") | set("x"),
        Kind::WrapS => when(has(x, "Bo"), set("W")) | x & set("udfemsx"),
        Kind::WrapC => when(has(x, "K"), set("B")) | x & set("ondfem") | set("us"),
        Kind::WrapD => {
            when(has(x, "Vz"), set("B"))
                | when(has(x, "z"), set("o"))
                | when(has(x, "f"), set("e"))
                | x & set("ms")
                // MINIMALIF is a consensus rule in a leaf, but only a policy rule in wsh().
                | when(is_leaf, set("u"))
                | set("ndx")
        }
        Kind::WrapV => when(has(x, "B"), set("V")) | x & set("zonms") | set("fx"),
        Kind::WrapJ => when(has(x, "Bn"), set("B")) | when(has(x, "f"), set("e")) | x & set("oums") | set("ndx"),
        _ => x & set("Bzondfems") | set("ux"),
    }
}

/// Whether one has a kind of timelock that conflicts with a timelock of the other.
fn mixes(x: Type, y: Type) -> bool {
    [("g", "h"), ("h", "g"), ("i", "j"), ("j", "i")].iter().any(|(one, other)| has(x, one) && has(y, other))
}

fn and(kind: Kind, x: Type, y: Type) -> Type {
    let both = x & set("n")
        | when(has(x, "z"), y & set("n"))
        | when(has(x | y, "z"), (x | y) & set("o"))
        | (x | y) & set("sghij")
        | when(has(x & y, "k") && !mixes(x, y), set("k"));
    both | match kind {
        Kind::AndV => {
            when(has(x, "V"), y & set("KVB"))
                | x & y & set("mz")
                | when(has(y, "f") || has(x, "s"), set("f"))
                | y & set("ux")
        }
        _ => {
            when(has(y, "W"), x & set("B"))
                | when(has(x & y, "s"), x & y & set("e"))
                | x & y & set("dzm")
                | when(has(x & y, "f") || has(x, "sf") || has(y, "sf"), set("f"))
                | set("ux")
        }
    }
}

fn or(kind: Kind, x: Type, y: Type) -> Type {
    let both = (x | y) & set("ghij") | x & y & set("k") | set("x");
    let chosen =
        when(has(x, "e") && has(x | y, "s"), x & y & set("m")) | x & y & set("zs") | when(has(y, "z"), x & set("o"));
    both | match kind {
        Kind::OrB => {
            when(has(x, "Bd") && has(y, "Wd"), set("B"))
                | when(has(x | y, "z"), (x | y) & set("o"))
                | when(has(x | y, "s") && has(x & y, "e"), x & y & set("m"))
                | x & y & set("zse")
                | set("du")
        }
        Kind::OrC => when(has(x, "Bdu"), y & set("V")) | chosen | set("f"),
        Kind::OrD => when(has(x, "Bdu"), y & set("B")) | chosen | y & set("ufde"),
        _ => {
            x & y & set("VBKufs")
                | when(has(x & y, "z"), set("o"))
                | when(has(x | y, "f"), (x | y) & set("e"))
                | when(has(x | y, "s"), x & y & set("m"))
                | (x | y) & set("d")
        }
    }
}

fn and_or(x: Type, y: Type, z: Type) -> Type {
    let is_sure = has(x, "s") || has(y, "f");
    when(has(x, "Bdu"), y & z & set("BKV"))
        | x & y & z & set("z")
        | when(has(x | (y & z), "z"), (x | (y & z)) & set("o"))
        | y & z & set("u")
        | when(is_sure, z & set("fe"))
        | z & set("d")
        | when(has(x, "e") && has(x | y | z, "s"), x & y & z & set("m"))
        | z & (x | y) & set("s")
        | set("x")
        | (x | y | z) & set("ghij")
        | when(has(x & y & z, "k") && !mixes(x, y), set("k"))
}

fn thresh(k: u32, subs: &[Fragment]) -> Type {
    let (mut all_e, mut all_m, mut takes, mut signed) = (true, true, 0, 0_u32);
    let mut locks = set("k");
    for (index, sub) in subs.iter().enumerate() {
        let found = sub.kind_type;
        if !has(found, if index == 0 { "Bdu" } else { "Wdu" }) {
            return 0;
        }
        all_e &= has(found, "e");
        all_m &= has(found, "m");
        signed += u32::from(has(found, "s"));
        takes += match () {
            () if has(found, "z") => 0,
            () if has(found, "o") => 1,
            () => 2,
        };
        let is_clean = has(locks & found, "k") && (k <= 1 || !mixes(locks, found));
        locks = (locks | found) & set("ghij") | when(is_clean, set("k"));
    }
    let count = u32::try_from(subs.len()).unwrap_or(u32::MAX);
    set("Bdu")
        | when(takes == 0, set("z"))
        | when(takes == 1, set("o"))
        | when(all_e && signed == count, set("e"))
        | when(all_e && all_m && signed + k >= count, set("m"))
        | when(signed + k > count, set("s"))
        | locks
}
