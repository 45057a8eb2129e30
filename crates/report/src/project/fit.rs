//! Fits costs to measured times: least squares without negative costs.
//!
//! Input: chains with their counts and a node's CPU seconds on each. Output: all models that explain the times with
//! some of the counts, each with the unit costs and the unexplained remainder. There are few columns, so all subsets
//! are solved, and the best of those without a negative cost is the non-negative least-squares solution. Relative
//! errors count, so that short runs weigh as much as long ones. Cost: 2^6 systems of at most six columns.

/// Counts that can cost time: start of the process, blocks, checks, inputs, outputs, bytes.
pub(super) const COLUMNS: usize = 6;
pub(super) const NAMES: [&str; COLUMNS] = ["start", "block", "check", "input", "output", "byte"];
/// The columns from this one on are work that grows with the use of a chain; a model without any of them would project
/// nothing.
const WORK: usize = 2;
pub(super) const CHECK: usize = 2;
pub(super) const INPUT: usize = 3;
pub(super) const OUTPUT: usize = 4;
pub(super) const BYTE: usize = 5;
/// Columns that differ by less than this share of their length cannot be separated.
const PIVOT_MIN: f64 = 1e-6;

/// A chain and a node's time on it. An unknown count excludes its column from every model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) counts: [Option<f64>; COLUMNS],
    pub(super) seconds: f64,
    /// The weight of its relative error: 1, or less if the runs spread.
    pub(super) weight: f64,
}

/// Seconds per unit of each count; 0 for columns that a model does not use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    pub(super) each: [f64; COLUMNS],
    /// Root mean square of the unexplained share of the time, weighted by the rows' weights. Models of the same chains
    /// are compared by it: rows whose runs spread reduce it.
    pub(super) residual: f64,
    /// The same, normalised by the weights: the unexplained share, for output and bounds.
    pub(super) unexplained: f64,
}

/// All models without a negative cost, the one with the smallest residual first.
pub(super) fn fits(rows: &[Row]) -> Vec<Fit> {
    let mut found: Vec<Fit> = (1u32..1 << COLUMNS).filter_map(|set| fit(rows, set)).collect();
    found.sort_by(|a, b| a.residual.total_cmp(&b.residual));
    found
}

fn fit(rows: &[Row], set: u32) -> Option<Fit> {
    let columns: Vec<usize> = (0..COLUMNS).filter(|&column| set >> column & 1 == 1).collect();
    if columns.len() > rows.len() || columns.iter().all(|&column| column < WORK) {
        return None;
    }
    // Each row divided by its time: the right side becomes its weight.
    let matrix: Option<Vec<Vec<f64>>> = rows
        .iter()
        .map(|row| {
            columns.iter().map(|&column| Some(row.counts.get(column).copied()?? / row.seconds * row.weight)).collect()
        })
        .collect();
    let matrix = matrix?;
    let scales: Vec<f64> = (0..columns.len()).map(|at| length(matrix.iter().map(|row| value(row, at)))).collect();
    if scales.contains(&0.0) {
        return None;
    }
    let scaled: Vec<Vec<f64>> =
        matrix.iter().map(|row| row.iter().zip(&scales).map(|(value, scale)| value / scale).collect()).collect();
    let rights: Vec<f64> = rows.iter().map(|row| row.weight).collect();
    let solution = solve(normal(&scaled, &rights))?;
    if solution.iter().any(|&cost| cost <= 0.0) {
        return None;
    }
    let explained = scaled.iter().map(|row| row.iter().zip(&solution).map(|(a, x)| a * x).sum::<f64>());
    let unexplained = rights.iter().zip(explained).map(|(right, explained)| right - explained);
    let mut each = [0.0; COLUMNS];
    for ((&column, cost), scale) in columns.iter().zip(&solution).zip(&scales) {
        if let Some(slot) = each.get_mut(column) {
            *slot = cost / scale;
        }
    }
    let unexplained = length(unexplained);
    let residual = unexplained / length(rows.iter().map(|_| 1.0));
    Some(Fit { each, residual, unexplained: unexplained / length(rows.iter().map(|row| row.weight)) })
}

fn value(row: &[f64], at: usize) -> f64 {
    row.get(at).copied().unwrap_or(0.0)
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

/// The normal equations, with the right side as last column.
fn normal(matrix: &[Vec<f64>], rights: &[f64]) -> Vec<Vec<f64>> {
    let columns = matrix.first().map_or(0, Vec::len);
    let product = |a: usize, b: usize| matrix.iter().map(|row| value(row, a) * value(row, b)).sum::<f64>();
    let line = |a: usize| {
        let right: f64 = matrix.iter().zip(rights).map(|(row, right)| value(row, a) * right).sum();
        (0..columns).map(|b| product(a, b)).chain([right]).collect()
    };
    (0..columns).map(line).collect()
}

/// Gauss-Jordan elimination with the largest pivot of the column; `None` if a pivot is too close to zero.
fn solve(mut system: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = system.len();
    for at in 0..size {
        let best = (at..size).max_by(|&a, &b| value(&system[a], at).abs().total_cmp(&value(&system[b], at).abs()))?;
        system.swap(at, best);
        let pivot = value(system.get(at)?, at);
        if pivot.abs() < PIVOT_MIN {
            return None;
        }
        let line: Vec<f64> = system.get(at)?.iter().map(|value| value / pivot).collect();
        for (index, other) in system.iter_mut().enumerate() {
            if index == at {
                other.clone_from(&line);
                continue;
            }
            let factor = value(other, at);
            for (slot, from) in other.iter_mut().zip(&line) {
                *slot -= factor * from;
            }
        }
    }
    system.iter().map(|row| row.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counts: [f64; COLUMNS], costs: &[f64; COLUMNS]) -> Row {
        let seconds = counts.iter().zip(costs).map(|(count, cost)| count * cost).sum();
        Row { counts: counts.map(Some), seconds, weight: 1.0 }
    }

    const CHAINS: [[f64; COLUMNS]; 7] = [
        [1.0, 2016.0, 0.0, 0.0, 2016.0, 4.6e5],
        [1.0, 550.0, 690e3, 586e3, 1.1e6, 1.6e8],
        [1.0, 460.0, 2.1e6, 60e3, 200e3, 5.0e7],
        [1.0, 900.0, 1.5e5, 1.4e5, 9.0e5, 6.0e7],
        [1.0, 4000.0, 1.0e4, 9.0e5, 1.0e5, 9.0e7],
        [1.0, 700.0, 3.0e5, 3.0e5, 3.0e5, 4.0e8],
        [1.0, 100.0, 9.0e5, 1.0e6, 2.0e6, 1.5e8],
    ];

    #[test]
    fn known_costs_come_back() {
        let costs = [0.05, 1e-5, 24e-6, 7e-6, 2e-6, 3e-9];
        let rows: Vec<Row> = CHAINS.iter().map(|counts| row(*counts, &costs)).collect();
        let best = fits(&rows)[0];
        assert!(best.residual < 1e-6, "{best:?}");
        for (found, known) in best.each.iter().zip(&costs) {
            assert!((found / known - 1.0).abs() < 1e-3, "{:?}", best.each);
        }
    }

    #[test]
    fn a_cost_that_is_not_there_is_none_and_never_negative() {
        let costs = [0.0, 0.0, 30e-6, 0.0, 0.0, 5e-9];
        let mut rows: Vec<Row> = CHAINS.iter().skip(1).map(|counts| row(*counts, &costs)).collect();
        // Noise of one percent, alternately up and down.
        for (index, row) in rows.iter_mut().enumerate() {
            row.seconds *= if index % 2 == 0 { 1.01 } else { 0.99 };
        }
        let found = fits(&rows);
        assert!(found.iter().all(|fit| fit.each.iter().all(|&cost| cost >= 0.0)));
        assert!((found[0].each[CHECK] / 30e-6 - 1.0).abs() < 0.05, "{:?}", found[0]);
        assert!(found[0].residual < 0.011);
    }

    /// Two chains whose times contradict each other by a tenth; a large spread of the runs does not reduce that.
    #[test]
    fn what_is_unexplained_is_a_share_of_the_time_whatever_the_weights() {
        let mut rows: Vec<Row> = [0, 1].map(|_| row(CHAINS[1], &[0.0, 0.0, 20e-6, 5e-6, 0.0, 0.0])).to_vec();
        rows[1].seconds *= 1.1;
        let even = fits(&rows)[0];
        rows.iter_mut().for_each(|row| row.weight = 0.05);
        let spread = fits(&rows)[0];
        assert!((even.unexplained - even.residual).abs() < 1e-9 && even.unexplained > 0.04, "{even:?}");
        assert!((spread.unexplained - even.unexplained).abs() < 1e-9, "{spread:?}");
        assert!(spread.residual < 0.01, "{spread:?}");
    }

    #[test]
    fn one_chain_gives_one_model_for_each_kind_of_work_and_none_more() {
        let rows = [row(CHAINS[1], &[0.0, 0.0, 20e-6, 5e-6, 0.0, 0.0])];
        let found = fits(&rows);
        assert_eq!(found.len(), 4);
        assert!(
            found.iter().all(|fit| fit.each.iter().filter(|&&cost| cost > 0.0).count() == 1 && fit.residual < 1e-12)
        );
    }

    #[test]
    fn the_same_chain_twice_adds_nothing_and_an_unknown_count_is_left_out() {
        let one = row(CHAINS[1], &[0.0, 0.0, 20e-6, 5e-6, 0.0, 0.0]);
        assert!(fits(&[one, one]).iter().all(|fit| fit.each.iter().filter(|&&cost| cost > 0.0).count() == 1));
        let mut unknown = one;
        unknown.counts[OUTPUT] = None;
        assert_eq!(fits(&[unknown]).len(), 3);
        assert!(fits(&[]).is_empty());
    }
}
