//! Builds the record of one run from the measurement, what the node reported meanwhile, and how the process ended.
//!
//! Input: a measurement, heights that the node reported or logged. Output: a run whose answer has still to be queried.
//! Must never: decide whether the run counts.

use super::adapter::Job;
use super::keeper::Kept;
use super::measure::{End, Measured};
use super::progress::Step;
use super::{Comparison, Contender, log, system};
use lydian_report::results::{NetworkBytes, Outcome, Run, rounded};

impl Comparison<'_> {
    pub(super) fn record(&self, contender: &Contender, step: &Step, job: &Job, measured: Measured, kept: &Kept) -> Run {
        let tips = log::tip_lines(&contender.adapter.log(job));
        let heights: Vec<(f64, u32)> = match kept.is_asked {
            true => kept.heights.clone(),
            false => tips.iter().map(|tip| (tip.unix_seconds, tip.height)).collect(),
        };
        let mut samples = measured.samples;
        let mut reached = heights.iter().peekable();
        let mut height = None;
        for sample in &mut samples {
            while let Some((_, now)) = reached.next_if(|(seconds, _)| *seconds <= measured.started + sample.seconds) {
                height = Some(*now);
            }
            sample.height = height;
        }
        let tip = self.own(&contender.name).map_or(&self.chain.facts.tip, |own| &own.answer.tip);
        let is_tip = |height: u32, hash: &str| height == job.height && hash == tip;
        let reported =
            kept.end.as_ref().filter(|(_, answer)| is_tip(answer.height, &answer.tip)).map(|(seconds, _)| *seconds);
        let logged = tips.iter().find(|line| is_tip(line.height, &line.hash)).map(|line| line.unix_seconds);
        let tip_at = reported.or(logged);
        let (outcome, reason) = self.verdict(measured.end);
        Run {
            node: contender.name.clone(),
            number: step.number,
            cache: step.cache,
            cache_emptied_by: None,
            outcome,
            reason,
            exit_code: match measured.end {
                End::Exited { code } => Some(code),
                _ => None,
            },
            log_end: None,
            tip_seconds: tip_at.map(|seconds| rounded((seconds - measured.started).max(0.0))),
            wall_seconds: rounded(measured.wall_seconds),
            user_seconds: rounded(measured.user_seconds),
            system_seconds: rounded(measured.system_seconds),
            peak_rss_bytes: measured.peak_rss_bytes,
            io: measured.io,
            disk_bytes: system::disk_bytes(&job.data),
            network: None,
            stages: Vec::new(),
            is_disturbed: measured.is_disturbed,
            machine: measured.machine,
            answer: None,
            samples,
        }
    }

    /// The verdict from the end of the process alone; no reason if the answer decides.
    fn verdict(&self, end: End) -> (Outcome, Option<String>) {
        match end {
            End::Exited { code: 0 } => (Outcome::Failed, None),
            End::Exited { code } => (Outcome::Failed, Some(format!("it ended with exit code {code}"))),
            End::Killed { signal } => (Outcome::Failed, Some(format!("it was killed by signal {signal}"))),
            End::TimedOut => {
                let seconds = self.settings.timeout_seconds;
                (Outcome::TimedOut, Some(format!("it did not end within {seconds} s and was killed")))
            }
            End::MemoryExceeded => {
                let limit = self.settings.memory_max_bytes;
                (Outcome::MemoryExceeded, Some(format!("it used more than {limit} bytes of memory and was killed")))
            }
            End::DiskFull => {
                let limit = self.settings.disk_free_min_bytes;
                (Outcome::DiskFull, Some(format!("it left less than {limit} bytes of the disk free and was killed")))
            }
            End::ServerEnded => (Outcome::Failed, Some("the server of the chain ended".into())),
            End::Interrupted => (Outcome::Failed, Some("it was interrupted".into())),
        }
    }
}

/// The bytes that the server counted between two queries, from the node's point of view.
pub(super) fn network_between(before: Option<NetworkBytes>, after: Option<NetworkBytes>) -> Option<NetworkBytes> {
    let (before, after) = before.zip(after)?;
    Some(NetworkBytes {
        received: after.sent.checked_sub(before.sent)?,
        sent: after.received.checked_sub(before.received)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_sent_the_node_received() {
        let at = |received, sent| Some(NetworkBytes { received, sent });
        assert_eq!(network_between(at(10, 100), at(17, 4_100)), at(4_000, 7));
        assert_eq!(network_between(None, at(17, 4_100)), None);
        assert_eq!(network_between(at(10, 100), at(17, 99)), None, "a restarted server has lost its counts");
    }
}
