//! Selects the signature engine by name, after a self-test.
//!
//! Input: a name from the settings. Output: an engine that verified the fixed vectors correctly on this CPU. Invariant:
//! the reference is always available, and a kernel that fails its self-test is never returned. Cost: building the
//! generator's table, about 25 ms, and 324 checks per kernel, six times as many where two kernels come close. Must
//! never: choose a kernel that the CPU does not support.

use crate::{Check, Engine, LaneEngine, PublicKeyBytes, Reference};
use std::fmt;
use std::time::Duration;

/// The values of `-sigengine`.
pub const ENGINE_NAMES: [&str; 7] = ["auto", "reference", "scalar", "neon", "avx2", "ifma256", "ifma512"];

/// Kernels of which now the one, now the other is faster: it depends on how many multiplications of each kind a core
/// does in a cycle (`docs/benchmarks/lanes.md`).
const CLOSE: [&str; 2] = ["neon", "scalar"];

/// Measurements of which the shortest counts.
const ROUNDS: usize = 3;

/// The selected engine, and the kernels that `auto` tried and did not select.
pub struct Chosen {
    pub engine: Box<dyn Engine + Send>,
    /// Worth a warning: this CPU or a kernel computes wrong results.
    pub failed: Vec<&'static str>,
    /// Kernels that were measured, and are slower on this CPU.
    pub slower: Vec<&'static str>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, failed, slower } = self;
        let mut fields = f.debug_struct("Chosen");
        fields.field("engine", &engine.name()).field("failed", failed).field("slower", slower).finish()
    }
}

/// Why no engine was selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChooseError {
    /// No engine has this name.
    Unknown,
    /// This build or this CPU does not support the kernel.
    Unavailable,
    /// The kernel returned a wrong verdict for a fixed vector.
    SelfTestFailed,
}

impl fmt::Display for ChooseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "No signature engine has this name.",
            Self::Unavailable => {
                "This CPU lacks the instructions of this signature engine, or this build lacks the engine."
            }
            Self::SelfTestFailed => "This signature engine failed its self-test on this CPU.",
        })
    }
}

impl std::error::Error for ChooseError {}

/// Returns the engines of this machine, the fastest first, the reference last.
pub fn engines() -> Vec<Box<dyn Engine + Send>> {
    let mut engines: Vec<Box<dyn Engine + Send>> = Vec::new();
    engines.extend(LaneEngine::available().into_iter().map(|engine| Box::new(engine) as Box<dyn Engine + Send>));
    engines.push(Box::new(Reference));
    engines
}

/// Returns the engine with a name of [`ENGINE_NAMES`]; `auto` is the first of [`engines`] that passes its self-test.
pub fn choose(name: &str) -> Result<Chosen, ChooseError> {
    choose_seeded(name, [0; 32], || Duration::ZERO)
}

/// Like [`choose`], with a seed and a clock. Without knowledge of the seed, the weights of a batch equation cannot be
/// computed ([`LaneEngine::seeded`]). Kernels that come close are measured by the clock, and `auto` is the fastest.
pub fn choose_seeded(name: &str, seed: [u8; 32], clock: fn() -> Duration) -> Result<Chosen, ChooseError> {
    let named = |engine| Chosen { engine, failed: Vec::new(), slower: Vec::new() };
    match name {
        "reference" => Ok(named(Box::new(Reference))),
        "auto" => {
            let Tried { fastest, failed, slower } = fastest(LaneEngine::available(), clock);
            let engine: Box<dyn Engine + Send> = match fastest {
                Some(engine) => Box::new(engine.seeded(seed)),
                None => Box::new(Reference),
            };
            Ok(Chosen { engine, failed, slower })
        }
        _ if !ENGINE_NAMES.contains(&name) => Err(ChooseError::Unknown),
        _ => {
            let found = LaneEngine::available().into_iter().find(|engine| engine.name() == name);
            let engine = found.ok_or(ChooseError::Unavailable)?.seeded(seed);
            if !self_test(&engine) {
                return Err(ChooseError::SelfTestFailed);
            }
            Ok(named(Box::new(engine)))
        }
    }
}

/// The kernels that `auto` tried.
struct Tried {
    fastest: Option<LaneEngine>,
    failed: Vec<&'static str>,
    slower: Vec<&'static str>,
}

/// Selects the first engine that passes its self-test, or the fastest of those that come close to it.
fn fastest(engines: Vec<LaneEngine>, clock: fn() -> Duration) -> Tried {
    let (mut passed, mut failed): (Vec<LaneEngine>, Vec<&'static str>) = (Vec::new(), Vec::new());
    for engine in engines {
        if passed.first().is_some_and(|first| !are_close(first, &engine)) {
            break;
        }
        if self_test(&engine) {
            passed.push(engine);
        } else {
            failed.push(engine.name());
        }
    }
    if passed.len() > 1 {
        let times = times(&passed, clock);
        // Stable: of equal ones the first.
        let shortest = (0..passed.len()).min_by_key(|i| times[*i]).unwrap_or(0);
        passed.swap(0, shortest);
    }
    let mut passed = passed.into_iter();
    let fastest = passed.next();
    Tried { fastest, failed, slower: passed.map(|engine| engine.name()).collect() }
}

fn are_close(first: &LaneEngine, second: &LaneEngine) -> bool {
    CLOSE.contains(&first.name()) && CLOSE.contains(&second.name())
}

/// The shortest time that each engine needs for the vectors; every round measures all of them in turn.
fn times(engines: &[LaneEngine], clock: fn() -> Duration) -> Vec<Duration> {
    let checks: Vec<Check> = vectors().into_iter().map(|(check, _)| check).collect();
    let mut verdicts = vec![false; checks.len()];
    let mut times = vec![Duration::MAX; engines.len()];
    for _ in 0..ROUNDS {
        for (engine, time) in engines.iter().zip(&mut times) {
            let start = clock();
            engine.verify(&checks, &mut verdicts);
            *time = clock().saturating_sub(start).min(*time);
        }
    }
    times
}

/// Copies of each vector in the self-test: two times as many checks of a kind are enough for groups that share an
/// inversion, and leave the last group of eight lanes half full.
const LANES: u8 = 54;

/// Whether the kernel itself decides the fixed vectors correctly: valid and invalid ones in each lane.
fn self_test(engine: &LaneEngine) -> bool {
    let vectors = vectors();
    let checks: Vec<Check> = vectors.iter().map(|(check, _)| *check).collect();
    let mut verdicts = vec![false; checks.len()];
    let before = engine.tally();
    engine.verify(&checks, &mut verdicts);
    let all_in_lanes = engine.tally().reference == before.reference;
    all_in_lanes && vectors.iter().zip(&verdicts).all(|((_, expected), verdict)| expected == verdict)
}

/// Generated with libsecp256k1 from the secrets 0101..01 and 0202..02 and the messages (and tweaks) 4141..41 and
/// 4242..42. In one round the checks in even lanes are valid and those in odd lanes have a bit changed, in the next the
/// reverse.
fn vectors() -> Vec<(Check, bool)> {
    let mut vectors = Vec::new();
    for (round, vector) in VECTORS.iter().enumerate() {
        let valid = vector.checks();
        for check in valid {
            for lane in 0..LANES {
                let expected = (usize::from(lane) + round) % 2 == 0;
                vectors.push((if expected { check } else { spoiled(check, lane) }, expected));
            }
        }
    }
    vectors
}

fn spoiled(mut check: Check, lane: u8) -> Check {
    let at = usize::from(lane) % 32;
    match &mut check {
        Check::Ecdsa { message, .. } => message[at] ^= 1,
        Check::Schnorr { signature, .. } => signature[32 + at] ^= 2,
        Check::Tweak { is_odd, .. } => *is_odd ^= true,
    }
    check
}

struct Vector {
    prefix: u8,
    x: [u8; 32],
    message: u8,
    ecdsa: [u8; 64],
    schnorr: [u8; 64],
    output: [u8; 32],
    is_odd: bool,
}

impl Vector {
    fn checks(&self) -> Vec<Check> {
        let message = [self.message; 32];
        let mut key = [self.prefix; 33];
        key[1..].copy_from_slice(&self.x);
        let tweak = Check::Tweak { output: self.output, is_odd: self.is_odd, internal: self.x, tweak: message };
        let ecdsa = PublicKeyBytes::new(&key).map(|key| Check::Ecdsa { key, message, signature: self.ecdsa });
        ecdsa.into_iter().chain([Check::Schnorr { key: self.x, message, signature: self.schnorr }, tweak]).collect()
    }
}

const VECTORS: [Vector; 2] = [
    Vector {
        prefix: 3,
        x: hex("1b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f"),
        message: 0x41,
        ecdsa: hex(
            "9bcbf0189df4a17e2367f7e8cf04362bf6051d818e528659e8ddc9b43685477843bfdc40d55fe4cb3892bfa54d96d4901ec9a2ffdfdcd6a01457a7db47dfc099",
        ),
        schnorr: hex(
            "31d69ab52b8a90d9721ef1426a9350bd5137753ebc3c623d068b9d6913e18f506f9036962cb29bb7dd5dfb77e822528324696b0489ae7900ddeaa4ddbea13c97",
        ),
        output: hex("50d1203e168650a52be58141df7b5be8e11f9c38e3ef76bffc9a8225039fcb97"),
        is_odd: false,
    },
    Vector {
        prefix: 2,
        x: hex("4d4b6cd1361032ca9bd2aeb9d900aa4d45d9ead80ac9423374c451a7254d0766"),
        message: 0x42,
        ecdsa: hex(
            "21cf1f4f98098fa107d61b766fa6261073f7d9818b7a7f23968fc1cd388b1db40abb4108d64c76de1156680fbd035d078947b80ed61eee6d4ce43f0d2771fc14",
        ),
        schnorr: hex(
            "cf8e78e9d26ab0fcf6057e695fdc338db30959ca569d86109513960db433939b47d6abbd03f3be370fbbf3ee4332911af849c6190ef2b6e40a4e2e4a234c0b1b",
        ),
        output: hex("2c0b7cf95324a07d05398b240174dc0c2be444d96b159aa6c7f7b1e668680991"),
        is_odd: true,
    },
];

/// Parses the hexadecimal digits of constants at compile time.
const fn hex<const SIZE: usize>(digits: &str) -> [u8; SIZE] {
    assert!(digits.len() == 2 * SIZE);
    let (digits, mut bytes, mut i) = (digits.as_bytes(), [0; SIZE], 0);
    while i < SIZE {
        bytes[i] = value(digits[2 * i]) << 4 | value(digits[2 * i + 1]);
        i += 1;
    }
    bytes
}

const fn value(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_what_the_reference_says() {
        let vectors = vectors();
        assert_eq!(vectors.len(), 324);
        for (check, expected) in vectors {
            assert_eq!(Reference.check(&check), expected, "{check:?}");
        }
    }

    #[test]
    fn every_kernel_passes_its_self_test() {
        assert!(self_test(&LaneEngine::plain()));
        for engine in LaneEngine::available() {
            assert!(self_test(&engine), "{}", engine.name());
        }
    }

    #[test]
    fn names() {
        let available: Vec<_> = engines().iter().map(|engine| engine.name()).collect();
        assert_eq!(available.last(), Some(&"reference"));
        for name in ENGINE_NAMES {
            match choose(name) {
                Ok(chosen) if name == "auto" => assert_eq!(chosen.engine.name(), available[0]),
                Ok(chosen) => assert_eq!(chosen.engine.name(), name),
                Err(error) => {
                    assert_eq!(error, ChooseError::Unavailable);
                    assert!(!available.contains(&name), "{name}");
                }
            }
        }
        assert_eq!(choose("gpu").err(), Some(ChooseError::Unknown));
        assert!(choose("auto").unwrap().failed.is_empty());
    }

    /// A clock by which every second measurement of a round takes no time, so that the second of two kernels is the
    /// fastest.
    fn second_wins() -> Duration {
        static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Duration::from_secs(call / 4 + u64::from(!call.is_multiple_of(4)))
    }

    /// Two engines that share a name take the place of two kernels that come close, so that this runs on every CPU.
    #[test]
    fn kernels_that_come_close_are_measured() {
        let scalar = |least| {
            let mut engines = LaneEngine::available();
            engines.pop().unwrap().with_batch_checks_min(least)
        };
        let two = || vec![scalar(1_000), scalar(2_000)];
        let tried = fastest(two(), second_wins);
        assert_eq!((tried.failed.len(), &tried.slower[..]), (0, &["scalar"][..]));
        assert_eq!(tried.fastest.unwrap().batch_checks_min(), 2_000);
        let tried = fastest(two(), || Duration::ZERO);
        assert_eq!(tried.fastest.unwrap().batch_checks_min(), 1_000, "the first of equal ones");
        // The plain lanes come close to none.
        let tried = fastest(vec![LaneEngine::plain(), scalar(2_000)], second_wins);
        assert_eq!((tried.fastest.unwrap().name(), tried.slower.len()), ("plain", 0));
        assert!(fastest(Vec::new(), second_wins).fastest.is_none());
    }
}
