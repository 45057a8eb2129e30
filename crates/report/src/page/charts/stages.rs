//! The CPU time of a node by stage: one bar per build, divided into its stages.
//!
//! Input: stages with their CPU seconds. Output: the chart, wide and for phones; the largest stage first and darkest.
//! The page has a table with the same figures below it.

use super::super::style::{STAGE_TONES, Tone};
use super::super::words;
use super::{Axis, Canvas, Chart, NARROW, Picture, STRONG, Side, TEXT, WIDE, fitted, legend_height, width_of};

/// One build of one node.
#[derive(Clone, Debug)]
pub(in super::super) struct Stack {
    pub(in super::super) name: String,
    /// In the order of `stages`; 0 for a stage that it does not have.
    pub(in super::super) seconds: Vec<f64>,
}

/// `stages` are the names, with the largest stage of the first stack first.
pub(in super::super) fn chart(id: String, title: String, stages: &[String], stacks: &[Stack]) -> Chart {
    let of = |stack: &Stack| {
        let parts =
            stages.iter().zip(&stack.seconds).map(|(stage, value)| format!("{stage} {}", words::seconds(*value)));
        format!("{}: {}", stack.name, parts.collect::<Vec<_>>().join(", "))
    };
    let description = format!("Stacked bars of CPU time. {}.", stacks.iter().map(of).collect::<Vec<_>>().join("; "));
    let picture = draw(WIDE, 6.0, stages, stacks);
    let narrow = Some(draw(NARROW, 3.0, stages, stacks));
    Chart { id, title, description, picture, narrow }
}

const ROW: u32 = 62;
const FOOT: u32 = 34;

fn draw(width: u32, ticks: f64, stages: &[String], stacks: &[Stack]) -> Picture {
    let full = f64::from(width);
    let tone = |index: usize| Tone::Stage(u8::try_from(index).unwrap_or(STAGE_TONES));
    let entries: Vec<_> = stages.iter().enumerate().map(|(index, stage)| (stage.clone(), tone(index))).collect();
    let head = legend_height(full, &entries) + 6.0;
    let most = stacks.iter().map(|stack| stack.seconds.iter().sum::<f64>()).fold(0.0, f64::max);
    let axis = Axis::linear(most, ticks);
    let room = full - 50.0;
    let x_of = |seconds: f64| seconds / axis.to * room;
    let rows = stacks.iter().fold(0, |sum, _| sum + ROW);
    let height = (1..=2_000).find(|height| f64::from(*height) >= head).unwrap_or(0) + rows + FOOT;
    Canvas::picture(width, height, |canvas| {
        canvas.legend(0.0, 0.0, full, &entries);
        let bottom = head + f64::from(rows);
        for (value, text) in &axis.ticks {
            canvas.line((x_of(*value), head), (x_of(*value), bottom), Tone::Grid, 1.0);
            let side = if *value == 0.0 { Side::Left } else { Side::Middle };
            canvas.text((x_of(*value), bottom + 12.0), side, Tone::Muted, text);
        }
        canvas.text((full, bottom + 12.0), Side::Right, Tone::Muted, "CPU s");
        let mut top = head;
        for stack in stacks {
            let total: f64 = stack.seconds.iter().sum();
            canvas.strong((0.0, top + 14.0), Side::Left, Tone::Ink, &fitted(&stack.name, STRONG * 1.08, full - 100.0));
            canvas.text((full, top + 14.0), Side::Right, Tone::Muted, &words::seconds(total));
            let mut begin = 0.0;
            for (index, seconds) in stack.seconds.iter().enumerate() {
                let (left, right) = (x_of(begin), x_of(begin + seconds));
                begin += seconds;
                // Leaves a gap in the surface's colour between neighbours.
                if right - left > 1.5 {
                    canvas.bar((left, top + 27.0), (right - 1.5, top + 53.0), tone(index), 1.0);
                }
                let share = format!("{} %", words::whole(seconds / total * 100.0));
                if index == 0 && right - left > width_of(&share, TEXT) + 12.0 {
                    canvas.text((left + 8.0, top + 40.0), Side::Left, Tone::Surface, &share);
                }
            }
            top += f64::from(ROW);
        }
    })
}
