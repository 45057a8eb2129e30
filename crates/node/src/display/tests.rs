//! Every sentence of the display from figures.

use super::figures::{Bottleneck, Figures, StageFigures};
use super::text::{Costs, duration, line, lines, table};
use crate::floor::Floor;
use crate::status::SignatureEngine;
use lydian_engine::Stage;
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

#[test]
fn a_terminal_is_told_three_lines() {
    let now = figures();
    let expected = "\
[==================      ]  75.0 %  height 450 of 550, 3s left
45 blocks/s, 25,000 inputs/s, 30,000 signatures/s, CPU limits
signatures 78 %, fund 11 %, read 6 %, parse 6 %";
    assert_eq!(lines(&now, &now), expected);
    assert!(expected.lines().all(|line| line.len() < 80));
    assert_eq!(
        line(&now, &now),
        "height 450 of 550 (75.0 % of the work), 45 blocks/s, 25,000 inputs/s, 30,000 signatures/s, CPU limits, 3s left; signatures 78 %, fund 11 \
         %, read 6 %, parse 6 %"
    );
}

#[test]
fn rates_and_the_time_left_are_those_of_late() {
    let (before, now) = (figures(), {
        let mut now = figures();
        (now.wall_seconds, now.bytes, now.blocks, now.height) = (15.0, 65_000_000, 451, 451);
        now
    });
    let recent = now.since(&before);
    assert_eq!((recent.blocks, recent.inputs, recent.bytes), (1, 0, 5_000_000));
    assert_eq!(now.seconds_left(&recent), Some(15.0), "by work: the last block was a great one");
    assert_eq!(now.seconds_left(&before.since(&before)), None);
    assert_eq!(Figures::default().share_done(), 1.0, "nothing to do is done");
}

#[test]
fn the_bottleneck_is_what_takes_most_of_the_workers_time() {
    let with = |stages: &[StageFigures]| Figures { stages: stages.to_vec(), ..figures() }.bottleneck();
    assert_eq!(figures().bottleneck(), Bottleneck::Cpu);
    assert_eq!(with(&[stage(Stage::Settle, 10.0, 3.0)]), Bottleneck::Cpu, "others took the CPU away");
    assert_eq!(with(&[stage(Stage::Fund, 10.0, 1.0), stage(Stage::Settle, 5.0, 5.0)]), Bottleneck::Disk);
    assert_eq!(with(&[stage(Stage::Wait, 10.0, 0.0), stage(Stage::Settle, 5.0, 5.0)]), Bottleneck::Input);
    assert_eq!([Bottleneck::Cpu, Bottleneck::Disk, Bottleneck::Input].map(Bottleneck::name), ["CPU", "disk", "input"]);
    assert!((figures().busy() - 16.5 / 20.0).abs() < 1e-9);
}

#[test]
fn the_table_tells_stages_costs_and_the_floor() {
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
fn the_table_tells_the_kernel_its_floor_and_its_end() {
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
