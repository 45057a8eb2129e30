//! The text of the display. Input: figures. Output: lines for a terminal, one line for a file, the table at the end.

use super::figures::{Figures, Late, float};
use crate::floor::Floor;
use crate::screen::commas;
use crate::status::SignatureEngine;

const BAR_WIDTH: usize = 24;

/// Stages shown by name during a run; the rest are summed up.
pub(super) const STAGES_SHOWN: usize = 5;

/// Three lines that fit a terminal of 80 columns: progress, rates, stages.
pub(crate) fn lines(now: &Figures, late: &Late) -> String {
    let (share, recent) = (now.share_done(), &late.rates);
    format!(
        "{} {:5.1} %  height {} of {}{}\n{}, {} limits\n{}",
        bar(share),
        share * 100.0,
        commas(now.height),
        commas(now.target_height.max(now.height)),
        left(now, late),
        rates(recent),
        recent.bottleneck().name(),
        shares(recent, STAGES_SHOWN)
    )
}

/// The same in one line.
pub(crate) fn line(now: &Figures, late: &Late) -> String {
    let recent = &late.rates;
    format!(
        "height {} of {} ({:.1} % of the work), {}, {} limits{}; {}",
        commas(now.height),
        commas(now.target_height.max(now.height)),
        now.share_done() * 100.0,
        rates(recent),
        recent.bottleneck().name(),
        left(now, late),
        shares(recent, STAGES_SHOWN)
    )
}

/// A share as a bar.
pub(super) fn bar(share: f64) -> String {
    let filled = (0..BAR_WIDTH).filter(|cell| float(*cell as u64) < share * float(BAR_WIDTH as u64)).count();
    format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR_WIDTH - filled))
}

pub(super) fn rates(recent: &Figures) -> String {
    let [blocks, inputs, signatures] =
        [recent.blocks, recent.inputs, recent.signatures()].map(|count| whole(recent.rate(count)));
    format!("{blocks} blocks/s, {inputs} inputs/s, {signatures} signatures/s")
}

fn left(now: &Figures, late: &Late) -> String {
    late.seconds_for(now.bytes_left(), &now.prices())
        .map(|seconds| format!(", {} left", duration(seconds)))
        .unwrap_or_default()
}

pub(super) fn shares(recent: &Figures, shown: usize) -> String {
    let shares = recent.shares();
    let mut parts: Vec<String> =
        shares.iter().take(shown).map(|(stage, share)| format!("{} {:.0} %", stage.name(), share * 100.0)).collect();
    let rest: f64 = shares.iter().skip(shown).map(|(_, share)| share).sum();
    if rest > 0.0 {
        parts.push(format!("rest {:.0} %", rest * 100.0));
    }
    parts.join(", ")
}

/// The table at the end.
pub(crate) fn table(total: &Figures, costs: &Costs) -> String {
    let mut text = format!("{:12} {:>9} {:>9} {:>7}\n", "stage", "wall s", "CPU s", "share");
    let whole = total.working_seconds();
    for stage in total.stages.iter().filter(|stage| stage.wall_seconds > 0.0) {
        let share = match stage.stage {
            waiting if waiting.is_waiting() => String::new(),
            _ if whole > 0.0 => format!("{:.1} %", stage.wall_seconds / whole * 100.0),
            _ => String::new(),
        };
        let row = format!("{:12} {:9.3} {:9.3} {share:>7}", stage.stage.name(), stage.wall_seconds, stage.cpu_seconds);
        text += row.trim_end();
        text.push('\n');
    }
    text += &format!(
        "{:12} {:9.3} {:9.3}           {} workers, {:.0} % busy\n\n",
        "whole run",
        total.wall_seconds,
        total.cpu_seconds,
        total.workers,
        total.busy() * 100.0
    );
    text += &format!(
        "blocks       {}, to height {} ({}/s)\ntransactions {}\ninputs       {} ({}/s)\nchecks       {} signatures, {} tweaks{}\n",
        commas(total.blocks),
        commas(total.height),
        self::whole(total.rate(total.blocks)),
        commas(total.transactions),
        commas(total.inputs),
        self::whole(total.rate(total.inputs)),
        commas(total.signatures()),
        commas(total.checks.tweak),
        total
            .checks_made
            .checked_div(total.batches)
            .map_or(String::new(), |mean| format!(", in batches of {}", commas(mean))),
    );
    if let Some(engine) = &costs.signature_engine {
        text += &format!("signatures   {}\n", engine.sentence());
    }
    text += &floors(total, costs);
    if let Some(bytes) = costs.peak_memory_bytes {
        text += &format!("memory       {} MB at most\n", megabytes(bytes));
    }
    if let Some((read, written)) = costs.disk_bytes {
        text += &format!("disk         {} MB read, {} MB written\n", megabytes(read), megabytes(written));
    }
    text
}

/// The time of the checks alone, with the reference and with the kernel, and the ratio of the run to it.
fn floors(total: &Figures, costs: &Costs) -> String {
    let (mut text, mut ratios) = (String::new(), String::new());
    if let Some(floor) = &costs.floor {
        let seconds = floor.seconds(&total.checks, total.workers);
        text += &format!(
            "floor        {seconds:.3} s: the checks alone on {} cores, at {:.1} us a signature\n",
            total.workers,
            floor.signature_ns / 1e3,
        );
        if seconds > 0.0 {
            ratios = format!("ratio        {:.2} times the floor", total.wall_seconds / seconds);
        }
    }
    if let (Some(floor), Some(engine)) = (&costs.kernel_floor, &costs.signature_engine) {
        let (seconds, kernel) = (floor.seconds(&total.checks, total.workers), &engine.kernel);
        text +=
            &format!("             {seconds:.3} s with {kernel}, at {:.1} us a signature\n", floor.signature_ns / 1e3);
        if seconds > 0.0 && !ratios.is_empty() {
            ratios += &format!(", {:.2} times that of {kernel}", total.wall_seconds / seconds);
        }
    }
    if !ratios.is_empty() {
        text += &ratios;
        text.push('\n');
    }
    text
}

/// Costs of a run other than time.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    /// The floor of the reference; `kernel_floor` is that of the kernel, if one decides.
    pub(crate) floor: Option<Floor>,
    pub(crate) kernel_floor: Option<Floor>,
    pub(crate) signature_engine: Option<SignatureEngine>,
    pub(crate) peak_memory_bytes: Option<u64>,
    pub(crate) disk_bytes: Option<(u64, u64)>,
}

pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1}", float(bytes) / 1e6)
}

pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{:.1}", float(bytes) / 1e9)
}

/// A rate without meaningless digits.
pub(super) fn whole(rate: f64) -> String {
    if rate >= 10.0 || rate == 0.0 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is positive and small")]
        let rate = rate.round() as u64;
        commas(rate)
    } else {
        format!("{rate:.1}")
    }
}

/// `3d 4h`, `4h 10m`, `3m 20s`, `20s`.
pub(crate) fn duration(seconds: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a year")]
    let seconds = seconds.clamp(0.0, 365.0 * 86_400.0).round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}
