//! What a history keeps: series, and how their values of several intervals become one. Data and pure functions.

/// A series: one number for each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Lower case letters, digits and `_`; unique. The file knows a series by its name.
    pub name: &'static str,
    /// The unit of a value, such as `blocks`, `bytes/s`; without spaces.
    pub unit: &'static str,
    pub combine: Combine,
    /// What it is, for documents and for the page.
    pub help: &'static str,
}

/// How the values of several intervals become the value of a longer one. Intervals without a value do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// A state: the last one.
    Last,
    /// A rate or a share: the mean.
    Mean,
    /// A count: the sum.
    Sum,
    /// A peak: the largest.
    Max,
}

impl Combine {
    pub const ALL: [Combine; 4] = [Combine::Last, Combine::Mean, Combine::Sum, Combine::Max];

    /// The word in the file.
    pub fn name(self) -> &'static str {
        match self {
            Combine::Last => "last",
            Combine::Mean => "mean",
            Combine::Sum => "sum",
            Combine::Max => "max",
        }
    }

    pub(super) fn find(name: &str) -> Option<Combine> {
        Combine::ALL.into_iter().find(|combine| combine.name() == name)
    }
}

/// Combines the values of intervals that are added in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    sum: f64,
    count: u32,
}

impl Sum {
    pub(super) fn add(&mut self, value: f64, combine: Combine) {
        self.sum = match combine {
            Combine::Last => value,
            Combine::Max if self.count > 0 => self.sum.max(value),
            Combine::Max => value,
            Combine::Mean | Combine::Sum => self.sum + value,
        };
        self.count += 1;
    }

    pub(super) fn value(&self, combine: Combine) -> Option<f64> {
        let value = if combine == Combine::Mean { self.sum / f64::from(self.count) } else { self.sum };
        (self.count > 0).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_combine_by_their_kind() {
        let of = |combine, values: &[f64]| {
            let mut sum = Sum::default();
            values.iter().for_each(|value| sum.add(*value, combine));
            sum.value(combine)
        };
        let values = [-2.0, -4.0, -3.0];
        assert_eq!(Combine::ALL.map(|one| of(one, &values)), [-3.0, -3.0, -9.0, -2.0].map(Some));
        assert_eq!(Combine::ALL.map(|one| of(one, &[])), [None; 4]);
        assert_eq!(Combine::ALL.map(|one| Combine::find(one.name())), Combine::ALL.map(Some));
    }
}
