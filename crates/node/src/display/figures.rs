//! Figures of a run as plain numbers, and what follows from them: rates, shares, the bottleneck, the time left. Input:
//! snapshots of the engine's meter and their times. Reads nothing itself, so that every sentence of the display can be
//! tested.

use lydian_engine::{Snapshot, Stage};
use lydian_script::CheckCounts;
use std::collections::VecDeque;

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Since the start of the run.
    pub(crate) wall_seconds: f64,
    /// Of the whole process.
    pub(crate) cpu_seconds: f64,
    pub(crate) workers: usize,
    pub(crate) height: u64,
    pub(crate) target_height: u64,
    pub(crate) blocks: u64,
    pub(crate) transactions: u64,
    pub(crate) inputs: u64,
    pub(crate) checks: CheckCounts,
    pub(crate) bytes: u64,
    pub(crate) bytes_total: u64,
    /// Bytes of blocks received from peers.
    pub(crate) received_bytes: u64,
    /// Signature and tweak checks made, and the number of batches.
    pub(crate) checks_made: u64,
    pub(crate) batches: u64,
    pub(crate) stages: Vec<StageFigures>,
}

/// Time that all workers spent in one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StageFigures {
    pub(crate) stage: Stage,
    pub(crate) wall_seconds: f64,
    pub(crate) cpu_seconds: f64,
}

/// What limits the workers most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bottleneck {
    Cpu,
    Disk,
    /// Blocks whose headers are known have not arrived.
    Network,
    /// Blocks wait for an earlier one, or for another worker.
    Input,
}

impl Bottleneck {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Bottleneck::Cpu => "CPU",
            Bottleneck::Disk => "disk",
            Bottleneck::Network => "network",
            Bottleneck::Input => "input",
        }
    }
}

/// Stages that wait for the disk during the part of their time that is not CPU time.
const DISK_STAGES: &[Stage] =
    &[Stage::Read, Stage::Fund, Stage::Commit, Stage::Apply, Stage::Checkpoint, Stage::Disconnect];

impl Figures {
    pub(crate) fn new(snapshot: &Snapshot, workers: usize, wall_seconds: f64, cpu_seconds: f64) -> Figures {
        let stage = |(stage, time): (&Stage, &lydian_engine::StageTime)| StageFigures {
            stage: *stage,
            wall_seconds: seconds(time.wall_ns),
            cpu_seconds: seconds(time.cpu_ns),
        };
        Figures {
            wall_seconds,
            cpu_seconds,
            workers,
            height: snapshot.height,
            target_height: snapshot.target_height,
            blocks: snapshot.stats.blocks,
            transactions: snapshot.stats.transactions,
            inputs: snapshot.stats.inputs,
            checks: snapshot.stats.checks,
            bytes: snapshot.stats.bytes,
            bytes_total: snapshot.bytes_total,
            received_bytes: 0,
            checks_made: snapshot.checks_made,
            batches: snapshot.batches,
            stages: Stage::ALL.iter().zip(&snapshot.stages).map(stage).collect(),
        }
    }

    /// What was done since an earlier moment. Heights and totals keep their current values.
    pub(crate) fn since(&self, earlier: &Figures) -> Figures {
        let stages = self.stages.iter().enumerate().map(|(index, now)| {
            let before = earlier.stages.get(index);
            StageFigures {
                stage: now.stage,
                wall_seconds: now.wall_seconds - before.map_or(0.0, |before| before.wall_seconds),
                cpu_seconds: now.cpu_seconds - before.map_or(0.0, |before| before.cpu_seconds),
            }
        });
        Figures {
            wall_seconds: self.wall_seconds - earlier.wall_seconds,
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            blocks: self.blocks.saturating_sub(earlier.blocks),
            transactions: self.transactions.saturating_sub(earlier.transactions),
            inputs: self.inputs.saturating_sub(earlier.inputs),
            checks: CheckCounts {
                ecdsa: self.checks.ecdsa.saturating_sub(earlier.checks.ecdsa),
                schnorr: self.checks.schnorr.saturating_sub(earlier.checks.schnorr),
                tweak: self.checks.tweak.saturating_sub(earlier.checks.tweak),
            },
            bytes: self.bytes.saturating_sub(earlier.bytes),
            received_bytes: self.received_bytes.saturating_sub(earlier.received_bytes),
            checks_made: self.checks_made.saturating_sub(earlier.checks_made),
            batches: self.batches.saturating_sub(earlier.batches),
            stages: stages.collect(),
            ..self.clone()
        }
    }

    /// A count per second.
    pub(crate) fn rate(&self, count: u64) -> f64 {
        if self.wall_seconds > 0.0 { float(count) / self.wall_seconds } else { 0.0 }
    }

    pub(crate) fn signatures(&self) -> u64 {
        self.checks.ecdsa + self.checks.schnorr
    }

    /// Share of the work that is done, from zero to one. Counted in bytes of blocks, because nothing else is known of a
    /// block before it is read.
    pub(crate) fn share_done(&self) -> f64 {
        if self.bytes_total == 0 { 1.0 } else { (float(self.bytes) / float(self.bytes_total)).min(1.0) }
    }

    /// Bytes of blocks that are available but not validated.
    pub(crate) fn bytes_left(&self) -> f64 {
        float(self.bytes_total.saturating_sub(self.bytes))
    }

    /// Cost of one signature, input and byte, in seconds of a worker.
    pub(crate) fn prices(&self) -> Prices {
        let (mut signatures, mut inputs, mut bytes) = (0.0, 0.0, 0.0);
        for stage in &self.stages {
            let sum = match stage.stage {
                Stage::Settle => &mut signatures,
                Stage::Read | Stage::Parse | Stage::Check | Stage::Commit => &mut bytes,
                Stage::Wait | Stage::Lock | Stage::Blocks | Stage::Checkpoint | Stage::Disconnect => continue,
                _ => &mut inputs,
            };
            *sum += stage.wall_seconds;
        }
        let each = |seconds: f64, count: u64| if count > 0 { seconds / float(count) } else { 0.0 };
        Prices {
            signature: each(signatures, self.checks_made),
            input: each(inputs, self.inputs),
            byte: each(bytes, self.bytes),
        }
    }

    /// Cost of the work done, at these prices.
    pub(crate) fn cost(&self, prices: &Prices) -> f64 {
        let checks = self.signatures() + self.checks.tweak;
        prices.signature * float(checks) + prices.input * float(self.inputs) + prices.byte * float(self.bytes)
    }

    /// Time of all stages except waiting.
    pub(crate) fn working_seconds(&self) -> f64 {
        self.stages.iter().filter(|stage| !stage.stage.is_waiting()).map(|stage| stage.wall_seconds).sum()
    }

    /// Stages by their share of the work, largest first; stages that took no time are left out.
    pub(crate) fn shares(&self) -> Vec<(Stage, f64)> {
        let whole = self.working_seconds();
        let mut shares: Vec<(Stage, f64)> = self
            .stages
            .iter()
            .filter(|stage| !stage.stage.is_waiting() && stage.wall_seconds > 0.0)
            .map(|stage| (stage.stage, stage.wall_seconds / whole))
            .collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }

    /// Share of the workers' time that was CPU time, from zero to one.
    pub(crate) fn busy(&self) -> f64 {
        let cpu: f64 = self.stages.iter().map(|stage| stage.cpu_seconds).sum();
        let whole = self.wall_seconds * float(self.workers as u64);
        if whole > 0.0 { (cpu / whole).min(1.0) } else { 0.0 }
    }

    /// What took the largest part of the workers' time: computing, the disk, or waiting. Time that other processes take
    /// from a computing worker counts as CPU.
    pub(crate) fn bottleneck(&self) -> Bottleneck {
        let (mut cpu, mut disk, mut network, mut wait) = (0.0, 0.0, 0.0, 0.0);
        for stage in &self.stages {
            match stage.stage {
                Stage::Wait | Stage::Lock => wait += stage.wall_seconds,
                Stage::Blocks => network += stage.wall_seconds,
                _ if DISK_STAGES.contains(&stage.stage) => {
                    cpu += stage.cpu_seconds;
                    disk += (stage.wall_seconds - stage.cpu_seconds).max(0.0);
                }
                _ => cpu += stage.wall_seconds,
            }
        }
        let all = [
            (cpu, Bottleneck::Cpu),
            (disk, Bottleneck::Disk),
            (network, Bottleneck::Network),
            (wait, Bottleneck::Input),
        ];
        // The first of equals wins.
        all.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Bottleneck::Cpu, |(_, of)| *of)
    }
}

/// In seconds of a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    pub(crate) signature: f64,
    pub(crate) input: f64,
    pub(crate) byte: f64,
}

/// Recent work over three periods: the shortest for rates, the next for the pace of the work, the longest for what
/// blocks are like.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Late {
    /// The last five seconds.
    pub(crate) rates: Figures,
    /// The last half minute.
    pub(crate) pace: Figures,
    /// The last ten minutes.
    pub(crate) blocks: Figures,
}

impl Late {
    /// Seconds for blocks with this number of bytes, if they are like recent blocks and validated at the recent pace,
    /// at the prices of the whole run. `None` while nothing is known.
    pub(crate) fn seconds_for(&self, bytes: f64, prices: &Prices) -> Option<f64> {
        let cost_per_byte = self.blocks.cost(prices) / float(self.blocks.bytes);
        let pace = self.pace.cost(prices) / self.pace.wall_seconds;
        let seconds = bytes * cost_per_byte / pace;
        seconds.is_finite().then_some(seconds)
    }
}

/// Snapshots of a run, kept for as long as they are needed.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Of the last half minute.
    looks: VecDeque<Figures>,
    /// One per half minute, of the last ten minutes.
    marks: VecDeque<Figures>,
    count: usize,
}

impl History {
    /// Adds a snapshot and returns what was done recently.
    pub(crate) fn look(&mut self, now: &Figures) -> Late {
        let begin = Figures { stages: Vec::new(), ..Figures::default() };
        let since = |then: Option<&Figures>| now.since(then.unwrap_or(&begin));
        let late = Late {
            rates: since(self.looks.get(self.looks.len().saturating_sub(LOOKS_RATES))),
            pace: since(self.looks.front()),
            blocks: since(self.marks.front()),
        };
        if self.count.is_multiple_of(LOOKS_KEPT) {
            self.marks.push_back(now.clone());
            if self.marks.len() > MARKS_KEPT {
                self.marks.pop_front();
            }
        }
        self.looks.push_back(now.clone());
        if self.looks.len() > LOOKS_KEPT {
            self.looks.pop_front();
        }
        self.count += 1;
        late
    }
}

/// Snapshots, four a second, over which rates are computed.
const LOOKS_RATES: usize = 20;

/// Snapshots over which the pace is computed.
const LOOKS_KEPT: usize = 120;

/// Half minutes over which the properties of blocks are computed.
const MARKS_KEPT: usize = 20;

fn seconds(nanos: u64) -> f64 {
    float(nanos) / 1e9
}

#[allow(clippy::cast_precision_loss, reason = "shown with few digits")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
