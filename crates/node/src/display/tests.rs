//! Tests of every sentence of the display.

use super::figures::{Bottleneck, Figures, History, Late, StageFigures};
use super::sync::Sync;
use super::text::{Costs, duration, line, lines, table};
use crate::floor::Floor;
use crate::status::MempoolStatus;
use crate::status::SignatureEngine;
use lydian_engine::Stage;
use lydian_p2p::manager::{Presync, SyncFigures};
use lydian_script::CheckCounts;

fn stage(stage: Stage, wall_seconds: f64, cpu_seconds: f64) -> StageFigures {
    StageFigures { stage, wall_seconds, cpu_seconds }
}

fn figures() -> Figures {
    Figures {
        wall_seconds: 10.0,
        cpu_seconds: 18.5,
        workers: 2,
        height: 450,
        target_height: 550,
        blocks: 450,
        transactions: 100_000,
        inputs: 250_000,
        checks: CheckCounts { ecdsa: 250_000, schnorr: 50_000, tweak: 10_000 },
        bytes: 60_000_000,
        bytes_total: 80_000_000,
        received_bytes: 70_000_000,
        checks_made: 310_000,
        batches: 1_000,
        stages: vec![
            stage(Stage::Read, 1.0, 0.1),
            stage(Stage::Parse, 1.0, 1.0),
            stage(Stage::Settle, 14.0, 13.5),
            stage(Stage::Fund, 2.0, 1.9),
            stage(Stage::Wait, 2.0, 0.0),
        ],
    }
}

/// Recent work that equals the whole run.
fn late(now: &Figures) -> Late {
    Late { rates: now.clone(), pace: now.clone(), blocks: now.clone() }
}

#[test]
fn a_terminal_gets_three_lines() {
    let now = figures();
    let expected = "\
[==================      ]  75.0 %  height 450 of 550, 3s left
45 blocks/s, 25,000 inputs/s, 30,000 signatures/s, CPU limits
signatures 78 %, fund 11 %, read 6 %, parse 6 %";
    assert_eq!(lines(&now, &late(&now)), expected);
    assert!(expected.lines().all(|line| line.len() < 80));
    assert_eq!(
        line(&now, &late(&now)),
        "height 450 of 550 (75.0 % of the work), 45 blocks/s, 25,000 inputs/s, 30,000 signatures/s, CPU limits, 3s left; signatures 78 %, fund 11 \
         %, read 6 %, parse 6 %"
    );
}

/// The time left is measured in work (signatures, inputs and bytes at their measured costs), not in blocks or bytes
/// alone.
#[test]
fn the_time_left_is_measured_in_work() {
    let now = figures();
    let prices = now.prices();
    assert!((prices.signature - 14.0 / 310_000.0).abs() < 1e-12 && (prices.byte - 2.0 / 60e6).abs() < 1e-12);
    assert!((now.cost(&prices) - 18.0).abs() < 1e-9, "all stages but waiting");
    assert_eq!(late(&now).seconds_for(60e6, &prices).map(f64::round), Some(10.0), "as long as the same took");
    // Recently there was nothing but bytes. The pace in bytes is high, but the pace of work is unchanged, and so is the
    // time for blocks as they were.
    let cheap =
        Figures { wall_seconds: 1.0, checks: CheckCounts::default(), inputs: 0, bytes: 54_000_000, ..now.clone() };
    let lately = Late { pace: cheap, ..late(&now) };
    assert_eq!(lately.seconds_for(60e6, &prices).map(f64::round), Some(10.0));
    let nothing = Late { pace: now.since(&now), ..late(&now) };
    assert_eq!(nothing.seconds_for(60e6, &prices), None, "nothing is known");
    assert_eq!(Figures::default().share_done(), 1.0, "nothing to do is done");
}

#[test]
fn what_was_done_of_late_is_what_came_since() {
    let mut history = History::default();
    let look = |tick: u32| Figures {
        wall_seconds: f64::from(tick) / 4.0,
        blocks: u64::from(tick),
        bytes: u64::from(tick),
        ..Figures::default()
    };
    let seen: Vec<Late> = (0..4_000).map(|tick| history.look(&look(tick))).collect();
    let last = &seen[3_999];
    assert_eq!((last.rates.blocks, last.pace.blocks), (20, 120));
    assert!((2_280..=2_400).contains(&last.blocks.blocks), "ten minutes: {}", last.blocks.blocks);
    assert_eq!((seen[10].rates.blocks, seen[10].blocks.blocks), (10, 10), "all there is");
}

#[test]
fn the_bottleneck_is_what_takes_most_of_the_workers_time() {
    let with = |stages: &[StageFigures]| Figures { stages: stages.to_vec(), ..figures() }.bottleneck();
    assert_eq!(figures().bottleneck(), Bottleneck::Cpu);
    assert_eq!(with(&[stage(Stage::Settle, 10.0, 3.0)]), Bottleneck::Cpu, "others took the CPU away");
    assert_eq!(with(&[stage(Stage::Fund, 10.0, 1.0), stage(Stage::Settle, 5.0, 5.0)]), Bottleneck::Disk);
    assert_eq!(with(&[stage(Stage::Wait, 10.0, 0.0), stage(Stage::Settle, 5.0, 5.0)]), Bottleneck::Input);
    assert_eq!(with(&[stage(Stage::Blocks, 10.0, 0.0), stage(Stage::Settle, 5.0, 5.0)]), Bottleneck::Network);
    let all = [Bottleneck::Cpu, Bottleneck::Disk, Bottleneck::Network, Bottleneck::Input];
    assert_eq!(all.map(Bottleneck::name), ["CPU", "disk", "network", "input"]);
    assert!((figures().busy() - 16.5 / 20.0).abs() < 1e-9);
}

#[test]
fn the_table_shows_stages_costs_and_the_floor() {
    let costs = Costs {
        floor: Some(Floor { signature_ns: 30_000.0, tweak_ns: 20_000.0 }),
        kernel_floor: None,
        signature_engine: Some(SignatureEngine { kernel: "reference".to_owned(), ..Default::default() }),
        peak_memory_bytes: Some(210_000_000),
        disk_bytes: Some((80_000_000, 123_456_789)),
    };
    let text = table(&figures(), &costs);
    let expected = "\
stage           wall s     CPU s   share
read             1.000     0.100   5.6 %
parse            1.000     1.000   5.6 %
signatures      14.000    13.500  77.8 %
fund             2.000     1.900  11.1 %
wait             2.000     0.000
whole run       10.000    18.500           2 workers, 82 % busy

blocks       450, to height 450 (45/s)
transactions 100,000
inputs       250,000 (25,000/s)
checks       300,000 signatures, 10,000 tweaks, in batches of 310
signatures   libsecp256k1
floor        4.600 s: the checks alone on 2 cores, at 30.0 us a signature
ratio        2.17 times the floor
memory       210.0 MB at most
disk         80.0 MB read, 123.5 MB written
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.len() <= 80));
}

#[test]
fn the_table_shows_the_kernel_its_floor_and_its_end() {
    let engine = SignatureEngine {
        kernel: "ifma512".to_owned(),
        is_trusted: true,
        sampled: 75,
        reviewed: 12_000,
        ..SignatureEngine::default()
    };
    let mut costs = Costs {
        floor: Some(Floor { signature_ns: 30_000.0, tweak_ns: 20_000.0 }),
        kernel_floor: Some(Floor { signature_ns: 4_000.0, tweak_ns: 2_000.0 }),
        signature_engine: Some(engine.clone()),
        peak_memory_bytes: None,
        disk_bytes: None,
    };
    let expected = "\
signatures   ifma512; libsecp256k1 agrees on 12,075 of its checks
floor        4.600 s: the checks alone on 2 cores, at 30.0 us a signature
             0.610 s with ifma512, at 4.0 us a signature
ratio        2.17 times the floor, 16.39 times that of ifma512
";
    let text = table(&figures(), &costs);
    assert!(text.ends_with(expected), "{text}");
    costs.signature_engine = Some(SignatureEngine { is_trusted: false, disagreements: 3, ..engine });
    costs.kernel_floor = None;
    let text = table(&figures(), &costs);
    let expected = "\nsignatures   ifma512 WAS WRONG 3 times; libsecp256k1 decides\nfloor        4.600 s";
    assert!(text.contains(expected) && text.ends_with("\nratio        2.17 times the floor\n"), "{text}");
}

#[test]
fn durations_have_two_parts() {
    let shown = [0.0, 59.4, 61.0, 3_600.0, 90_000.0, f64::INFINITY].map(duration);
    assert_eq!(shown, ["0s", "59s", "1m 1s", "1h 0m", "1d 1h", "365d 0h"]);
}

fn sync() -> Sync {
    let net = SyncFigures {
        outbound: 8,
        headers_height: 1_550,
        headers_time: 1_700_000_000,
        is_initial: true,
        block_bytes: 70_000_000,
        in_flight_bytes: 12_400_000,
        waiting_blocks: 100,
        waiting_bytes: 10_000_000,
        ..SyncFigures::default()
    };
    Sync {
        net,
        height: 450,
        tip_time: 1_600_000_000,
        now: 1_700_003_600,
        transactions: Some(100_000),
        ..Sync::default()
    }
}

#[test]
fn a_sync_is_shown_by_phase() {
    let now = figures();
    // 1,000 blocks like the 100 that are here with 10 MB: 110 MB, and 60 MB took ten seconds.
    let expected = "\
[=========               ]  35.3 %  height 450 of 1,550, about 18s left
headers      1,550; 8 peers
download     7.0 MB/s, 12.4 MB requested, 10.0 MB waiting for validation
validation   45 blocks/s, 25,000 inputs/s, 30,000 signatures/s, 6.0 MB/s
commit       durable to height 0; CPU limits
stages       signatures 78 %, fund 11 %, read 6 %, parse 6 %
guess        1,000 remaining blocks, 0.10 MB each like the last";
    assert_eq!(sync().lines(&now, &late(&now)), expected);
    assert!(expected.lines().all(|line| line.len() <= 80));
    let line = sync().line(&now, &late(&now));
    assert!(
        line.starts_with("height 450 of 1,550 (35.3 % of the work), about 18s left, CPU limits; 45 blocks/s"),
        "{line}"
    );
    assert!(line.contains(
        "; download 7.0 MB/s, 12.4 MB requested, 10.0 MB waiting for validation; durable to height 0; 8 peers;"
    ));
    // No block is here: blocks are assumed to be like the validated ones.
    let mut bare = sync();
    (bare.net.waiting_blocks, bare.net.waiting_bytes) = (0, 0);
    assert!(bare.lines(&now, &late(&now)).ends_with("guess        1,100 remaining blocks, 0.13 MB each like the last"));
    bare.net.headers_height = 451;
    assert!(bare.lines(&now, &late(&now)).ends_with("guess        1 remaining block, 0.13 MB each like the last"));
    // Blocks that are here need no guess.
    let mut here = sync();
    here.net.waiting_blocks = 1_100;
    here.net.waiting_bytes = 60_000_000;
    let lines = here.lines(&now, &late(&now));
    assert!(lines.starts_with("[============            ]  50.0 %  height 450 of 1,550, 10s left"), "{lines}");
    assert!(!lines.contains("guess"));
    // Nothing is known of blocks yet.
    let begin = Figures { stages: Vec::new(), ..Figures::default() };
    let lines = sync().lines(&begin, &late(&begin));
    assert!(lines.starts_with("[                        ]   0.0 %  height 450 of 1,550\n"), "{lines}");
}

/// On a chain whose transactions Core estimates, blocks that have not arrived are measured in transactions.
#[test]
fn far_from_the_end_transactions_are_counted() {
    let mut far = sync();
    (far.share, far.net.headers_height) = (Some(0.25), 800_000);
    let now = figures();
    let lines = far.lines(&now, &late(&now));
    // 300,000 transactions are left; 100,000 took ten seconds.
    assert!(lines.starts_with("[======                  ]  25.0 %  height 450 of 800,000, about 30s left"), "{lines}");
    assert!(lines.ends_with("guess        400,000 transactions in all, remaining blocks like the last"), "{lines}");
}

#[test]
fn headers_are_a_phase_of_their_own() {
    let mut early = sync();
    let now = figures();
    (early.share, early.height, early.net.headers_height, early.net.headers_time) = (Some(0.0), 0, 0, 1_231_006_505);
    early.net.presync = Some(Presync { is_redownload: false, height: 400_000, time: 1_450_000_000 });
    let told = early.lines(&now, &late(&now));
    assert_eq!(told, "headers first pass, their work is counted, 400,000 of about 816,672: height 0, 8 peers");
    assert!(early.has_work() && !early.is_in_step());
    early.net.presync = Some(Presync { is_redownload: true, height: 800_000, time: 1_690_000_000 });
    assert!(early.lines(&now, &late(&now)).starts_with("headers second pass, 0 of about 781,661: height 0"));
    // Before any peer has announced anything.
    early.net.presync = None;
    assert!(early.lines(&now, &late(&now)).starts_with("headers 0 of about 781,661: height 0, 8 peers"));
    early.net.outbound = 0;
    assert_eq!(early.lines(&now, &late(&now)), "waiting for peers: height 0, no peers");
}

#[test]
fn a_node_in_step_is_calm() {
    let mut calm = sync();
    let now = figures();
    (calm.height, calm.tip_time, calm.net.inbound) = (1_550, 1_700_003_400, 2);
    let told = "in step: height 1,550, a block of 3m 20s ago, 10 peers (8 out, 2 in)";
    assert_eq!((calm.lines(&now, &late(&now)), calm.line(&now, &late(&now))), (told.to_owned(), told.to_owned()));
    assert!(calm.is_in_step() && !calm.has_work());
    calm.tip_time = 1_600_000_000;
    assert!(calm.line(&now, &late(&now)).contains("height 1,550, a block of 3 years ago"));
    // The same on a chain whose tip should be recent: there must be more to come.
    calm.share = Some(0.9);
    assert!(!calm.is_in_step());
    calm.net.is_initial = false;
    assert!(calm.is_in_step());
    (calm.net.outbound, calm.net.inbound) = (1, 0);
    assert!(calm.line(&now, &late(&now)).ends_with(", 1 peer"));
    calm.mempool = Some(MempoolStatus { transactions: 7, vbytes: 1_000, usage_bytes: 9_000, min_fee: 100 });
    assert!(
        calm.line(&now, &late(&now)).ends_with(", 1 peer; mempool: 7 transactions, 1.0 kvB, minimum fee 0.100 sat/vB")
    );
}
