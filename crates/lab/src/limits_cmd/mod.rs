//! `lydian-lab limits`: measures this machine, to put the figures of a node in relation to it.
//!
//! Input: number of checks and rounds, size of the file. Output: medians of several rounds with their spread. Measured:
//! checks of each engine (keys parsed, every key new), SHA-256 by kernel, disk and loopback (`io_times.rs`). One core,
//! except for the line of all cores. The figures must never be quoted without the spread; machines are shared.

mod engine_times;
mod io_times;
mod measure;

pub use engine_times::EngineTimes;
pub use measure::Measure;

use crate::error::LabError;
use engine_times::{Samples, measure_engines};
use io_times::{DiskTimes, LoopbackTimes};
use lydian_chains::chain_files::CheckCounts;
use lydian_chains::parallel;
use lydian_chains::wallet::{Wallet, taproot_output};
use lydian_curve::{Check, Engine, PublicKeyBytes, Reference};
use lydian_hash::{Message as HashMessage, Sha256, kernels, sha256, sha256d_64_with, sha256d_many_with};
use measure::{as_f64, repeat, repeat_cpu};
use secp256k1::{Message, ecdsa, schnorr};
use serde::Serialize;
use std::fs::OpenOptions;
use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;

/// Settings of the measurement.
#[derive(Clone, Debug)]
pub struct LimitsSettings {
    /// Checks of each kind in a round.
    pub checks: u64,
    pub rounds: usize,
    /// Bytes of the temporary file; 0 skips the disk.
    pub disk_bytes: u64,
    /// The directory of the temporary file.
    pub folder: PathBuf,
    /// The checks of a chain, to report its floor for each engine.
    pub chain: Option<CheckCounts>,
}

/// One kernel's figures.
#[derive(Clone, Debug, Serialize)]
pub struct HashMeasure {
    pub kernel: &'static str,
    pub job: &'static str,
    pub is_chosen: bool,
    pub compressions_per_second: Measure,
    pub gigabytes_per_second: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Limits {
    pub cpu: String,
    pub cores: usize,
    pub rounds: usize,
    pub checks_per_round: u64,
    pub engine: &'static str,
    pub ecdsa_ns: Measure,
    pub schnorr_ns: Measure,
    pub tweak_ns: Measure,
    /// Wall time per ECDSA check with all cores working.
    pub ecdsa_all_cores_ns: Measure,
    /// Each engine in batches, the fastest first, the reference last.
    pub engines: Vec<EngineTimes>,
    pub chain: Option<CheckCounts>,
    pub hashes: Vec<HashMeasure>,
    pub disk_bytes: u64,
    pub disk_write_gigabytes_per_second: Option<Measure>,
    /// The file was just written, so it may be read from the page cache.
    pub disk_read_gigabytes_per_second: Option<Measure>,
    /// Single pages at scattered positions of the file, after its pages were dropped from the page cache.
    pub disk_random_read_us: Option<Measure>,
    pub loopback_gigabytes_per_second: Measure,
    /// One byte in each direction.
    pub loopback_round_trip_us: Measure,
}

/// Measures everything.
pub fn measure(settings: &LimitsSettings) -> Result<Limits, LabError> {
    let samples = samples(settings)?;
    let times = times_of(settings, &samples);
    let disk = match settings.disk_bytes {
        0 => None,
        bytes => Some(DiskTimes::measure(&settings.folder, bytes, settings.rounds)?),
    };
    let loopback = LoopbackTimes::measure(settings.rounds)?;
    Ok(Limits {
        cpu: cpu_model(),
        cores: parallel::default_threads(),
        rounds: settings.rounds,
        checks_per_round: settings.checks,
        engine: Reference.name(),
        ecdsa_ns: times.ecdsa,
        schnorr_ns: times.schnorr,
        tweak_ns: times.tweak,
        ecdsa_all_cores_ns: times.ecdsa_all_cores,
        engines: measure_engines(&samples, settings.rounds, settings.chain),
        chain: settings.chain,
        hashes: hashes(settings.rounds),
        disk_bytes: settings.disk_bytes,
        disk_write_gigabytes_per_second: disk.map(|disk| disk.write),
        disk_read_gigabytes_per_second: disk.map(|disk| disk.read),
        disk_random_read_us: disk.map(|disk| disk.random_read_us),
        loopback_gigabytes_per_second: loopback.gigabytes_per_second,
        loopback_round_trip_us: loopback.round_trip_us,
    })
}

/// Nanoseconds per check, with the reference engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckTimes {
    pub(crate) ecdsa: Measure,
    pub(crate) schnorr: Measure,
    pub(crate) tweak: Measure,
    /// Wall time with all cores working.
    pub(crate) ecdsa_all_cores: Measure,
}

pub(crate) fn check_times(settings: &LimitsSettings) -> Result<CheckTimes, LabError> {
    Ok(times_of(settings, &samples(settings)?))
}

fn samples(settings: &LimitsSettings) -> Result<Samples, LabError> {
    if settings.rounds == 0 || settings.checks == 0 {
        return Err(LabError::Usage("--rounds and --checks must be at least 1".into()));
    }
    let numbers: Vec<u64> = (0..settings.checks).collect();
    let threads = parallel::default_threads();
    let make = |kind: fn(u64) -> Check| parallel::map(threads, &numbers, |&number| kind(number));
    Ok(Samples { ecdsa: make(ecdsa_check), schnorr: make(schnorr_check), tweak: make(tweak_check) })
}

fn times_of(settings: &LimitsSettings, samples: &Samples) -> CheckTimes {
    let count = as_f64(settings.checks);
    let engine = Reference;
    let checks_ns = |checks: &[Check]| {
        repeat_cpu(settings.rounds, || {
            let mut verdicts = vec![false; checks.len()];
            engine.verify(checks, &mut verdicts);
            assert!(verdicts.iter().all(|&verdict| verdict), "a valid check was rejected");
        })
        .map(|seconds| seconds * 1e9 / count)
    };
    let ecdsa_all_cores = repeat(settings.rounds, || {
        let verdicts = parallel::map(parallel::default_threads(), &samples.ecdsa, |check| engine.check(check));
        assert!(verdicts.iter().all(|&verdict| verdict), "a valid check was rejected");
    })
    .map(|seconds| seconds * 1e9 / count);
    CheckTimes {
        ecdsa: checks_ns(&samples.ecdsa),
        schnorr: checks_ns(&samples.schnorr),
        tweak: checks_ns(&samples.tweak),
        ecdsa_all_cores,
    }
}

impl Limits {
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The text output.
    pub fn to_text(&self) -> String {
        let mut lines =
            vec![format!("{}, {} cores; median of {} rounds [least - largest]", self.cpu, self.cores, self.rounds)];
        let mut line = |name: &str, measure: &Measure, unit: &str| {
            let (median, min, max) = (measure.median, measure.min, measure.max);
            lines.push(format!("{name:52} {median:7.2} {unit} [{min:.2} - {max:.2}]"));
        };
        let us = |measure: &Measure| measure.map(|ns| ns / 1e3);
        line("ECDSA check, one core, one at a time", &us(&self.ecdsa_ns), "us");
        line("Schnorr check, one core, one at a time", &us(&self.schnorr_ns), "us");
        line("taproot tweak check, one core, one at a time", &us(&self.tweak_ns), "us");
        line("ECDSA check, all cores (wall time for one of them)", &us(&self.ecdsa_all_cores_ns), "us");
        for hash in &self.hashes {
            let mark = if hash.is_chosen { " (chosen)" } else { "" };
            let millions = hash.compressions_per_second.map(|rate| rate / 1e6);
            let unit = format!("M compressions/s, {:.2} GB/s", hash.gigabytes_per_second);
            line(&format!("SHA-256 {}: {}{mark}", hash.job, hash.kernel), &millions, &unit);
        }
        if let Some(write) = &self.disk_write_gigabytes_per_second {
            line("disk, sequential write and sync", write, "GB/s");
        }
        if let Some(read) = &self.disk_read_gigabytes_per_second {
            line("disk, sequential read (cached or not)", read, "GB/s");
        }
        if let Some(read) = &self.disk_random_read_us {
            line("disk, one page read anywhere (4 KiB, one at a time)", read, "us");
        }
        line("loopback, one connection", &self.loopback_gigabytes_per_second, "GB/s");
        line("loopback, one byte there and back", &self.loopback_round_trip_us, "us");
        if let Some(reference) = self.engines.last() {
            lines.extend(self.engines.iter().flat_map(|engine| engine.lines(reference)));
        }
        lines.join("\n") + "\n"
    }
}

const KEYS: Wallet = Wallet::new(0x6c69_6d69_7473);

fn message_of(number: u64) -> [u8; 32] {
    sha256(&number.to_le_bytes())
}

fn ecdsa_check(number: u64) -> Check {
    let key = KEYS.keypair(number, 0);
    let message = message_of(number);
    let signature = ecdsa::sign(Message::from_digest(message), &key.secret_key()).serialize_compact();
    match PublicKeyBytes::new(&key.public_key().serialize()) {
        Some(key) => Check::Ecdsa { key, message, signature },
        None => unreachable!("a serialised key has the form of a key"),
    }
}

fn schnorr_check(number: u64) -> Check {
    let key = KEYS.keypair(number, 1);
    let message = message_of(number);
    let signature = schnorr::sign_no_aux_rand(&message, &key).to_byte_array();
    Check::Schnorr { key: key.x_only_public_key().0.to_byte_array(), message, signature }
}

fn tweak_check(number: u64) -> Check {
    let internal = KEYS.keypair(number, 2).x_only_public_key().0;
    let (tweak, output, parity) = taproot_output(&internal, None);
    let is_odd = parity.to_u8() == 1;
    Check::Tweak { output, is_odd, internal: internal.to_byte_array(), tweak: tweak.to_be_bytes() }
}

/// Bytes of the long message. `BATCH_MESSAGES`: messages of a batch. A few milliseconds per round.
const STREAM_BYTES: usize = 1 << 22;
const BATCH_MESSAGES: usize = 1 << 15;
/// The approximate size of a transaction of one input and two outputs without its witness.
const MESSAGE_BYTES: usize = 222;

fn hashes(rounds: usize) -> Vec<HashMeasure> {
    let chosen = kernels();
    let bytes = vec![0x5a; STREAM_BYTES];
    let rate = |compressions: usize, seconds: Measure| {
        let count = as_f64(compressions as u64);
        seconds.map(|seconds| count / seconds)
    };
    let entry = |kernel: &'static str, job, is_chosen, rate: Measure| HashMeasure {
        kernel,
        job,
        is_chosen,
        compressions_per_second: rate,
        gigabytes_per_second: rate.median * 64.0 / 1e9,
    };
    let mut found = Vec::new();
    for &kernel in &chosen.streams_available {
        let seconds = repeat(rounds, || {
            black_box(Sha256::with_kernel(kernel).update(black_box(&bytes)).finalize());
        });
        let rate = rate(STREAM_BYTES / 64 + 1, seconds);
        found.push(entry(kernel.name(), "one long message", kernel == chosen.stream, rate));
    }
    let pairs = vec![[0xa5; 64]; BATCH_MESSAGES];
    let messages: Vec<&[u8]> = bytes.chunks_exact(MESSAGE_BYTES).take(BATCH_MESSAGES / 2).collect();
    let many: Vec<HashMessage<'_>> = messages.iter().map(|&message| HashMessage::new([message, &[], &[]])).collect();
    for &kernel in &chosen.batches_available {
        let mut out = vec![[0; 32]; BATCH_MESSAGES];
        let seconds = repeat(rounds, || sha256d_64_with(kernel, black_box(&pairs), &mut out));
        // 64 bytes and their padding, then the digest.
        let merkle = rate(3 * BATCH_MESSAGES, seconds);
        found.push(entry(kernel.name(), "merkle pairs", kernel == chosen.pairs, merkle));
        let seconds = repeat(rounds, || sha256d_many_with(kernel, black_box(&many), &mut out[..many.len()]));
        let per_message = (MESSAGE_BYTES + 9).div_ceil(64) + 1;
        let txids = rate(per_message * many.len(), seconds);
        found.push(entry(kernel.name(), "messages of 222 bytes", kernel == chosen.many, txids));
    }
    found
}

/// The first model name that the system reports, if any.
fn cpu_model() -> String {
    let mut text = String::new();
    let read = OpenOptions::new().read(true).open("/proc/cpuinfo").and_then(|mut file| file.read_to_string(&mut text));
    let line = text.lines().find(|line| line.starts_with("model name"));
    match (read, line.and_then(|line| line.split_once(':'))) {
        (Ok(_), Some((_, model))) => model.trim().to_owned(),
        _ => format!("unknown CPU ({})", std::env::consts::ARCH),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_measurement_has_every_figure() {
        let chain = Some(CheckCounts { ecdsa: 1_000_000, schnorr: 0, tweaks: 0 });
        let folder = std::env::temp_dir();
        let settings = LimitsSettings { checks: 20, rounds: 2, disk_bytes: 1 << 20, folder, chain };
        let limits = measure(&settings).unwrap();
        for measure in [limits.ecdsa_ns, limits.schnorr_ns, limits.tweak_ns, limits.ecdsa_all_cores_ns] {
            assert!(measure.min > 0.0 && measure.min <= measure.median && measure.median <= measure.max, "{measure:?}");
        }
        assert_eq!(limits.hashes.iter().filter(|hash| hash.is_chosen).count(), 3);
        assert!(limits.disk_write_gigabytes_per_second.is_some_and(|rate| rate.median > 0.0));
        for measure in [limits.loopback_gigabytes_per_second, limits.loopback_round_trip_us] {
            assert!(measure.min > 0.0 && measure.max < 1e6, "{measure:?}");
        }
        assert!(limits.disk_random_read_us.is_some_and(|read| read.min > 0.0 && read.max < 1e7));
        for words in ["ECDSA check, one core", "one page read anywhere", "loopback, one byte there and back"] {
            assert!(limits.to_text().contains(words), "{words}");
        }
        let json: serde_json::Value = serde_json::from_str(&limits.to_json()).unwrap();
        assert!(json["schnorr_ns"]["median"].as_f64().unwrap() > 0.0);
        // Every engine of this machine, with every figure.
        let engines = json["engines"].as_array().unwrap();
        let names: Vec<_> = engines.iter().map(|engine| engine["engine"].as_str().unwrap()).collect();
        assert_eq!(names, lydian_curve::engines().iter().map(|engine| engine.name()).collect::<Vec<_>>());
        assert_eq!(names.last(), Some(&"reference"));
        for engine in engines {
            for batch in ["batch_1024", "batch_16"] {
                for kind in ["ecdsa_ns", "schnorr_ns", "tweak_ns"] {
                    let of = |key: &str| engine[batch][kind][key].as_f64().unwrap();
                    assert!(100.0 < of("min") && of("min") <= of("median") && of("median") <= of("max"), "{engine}");
                }
            }
            // A million ECDSA checks of x ns take x / 1,000 seconds.
            let (floor, price) = (&engine["floor_core_seconds"], &engine["batch_1024"]["ecdsa_ns"]["median"]);
            assert!((floor.as_f64().unwrap() - price.as_f64().unwrap() / 1e3).abs() < 1e-6, "{engine}");
            assert!(limits.to_text().contains(&format!("{:9} floor", engine["engine"].as_str().unwrap())));
        }
    }

    #[test]
    fn nothing_to_measure_is_refused() {
        let settings =
            LimitsSettings { checks: 0, rounds: 1, disk_bytes: 0, folder: std::env::temp_dir(), chain: None };
        assert!(measure(&settings).is_err());
    }
}
