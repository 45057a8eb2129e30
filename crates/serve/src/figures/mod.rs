//! [`Figure`]: an entry of a table of figures, which the node exports (`/metrics`, docs/metrics.md).
//!
//! Input: a table of a server, and what its entries are read from. Output: [`Family`]s, and their text in Prometheus'
//! exposition format. Servers do not see each other: each has a table of its own, and the node joins them.
//!
//! Invariants: a label has values of the table only, so that no text of a client becomes one; a table has a known
//! greatest number of series; reading changes nothing. Cost: an allocation for each sample.

mod histogram;
mod requests;
mod text;

pub use histogram::{Distribution, Histogram, SECONDS};
pub use requests::{OTHER, Requests, Timer};
pub use text::{CONTENT_TYPE, text};

/// How a figure changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from zero at the start of the process.
    Counter,
    Gauge,
    /// How many events took how long.
    Histogram,
}

impl Kind {
    /// The word of the exposition format.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A label, with every value that it may have.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub name: &'static str,
    pub values: fn() -> Vec<&'static str>,
}

/// What a figure is.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub name: &'static str,
    /// A sentence.
    pub help: &'static str,
    /// Such as `seconds`, `bytes` or `blocks`; for a histogram that of the events.
    pub unit: &'static str,
    pub kind: Kind,
    pub labels: &'static [Label],
}

impl About {
    /// The most series that it can have.
    pub fn series_max(&self) -> usize {
        let each = match self.kind {
            // One for each bound and for infinity, the sum and the number.
            Kind::Histogram => SECONDS.len() + 3,
            Kind::Counter | Kind::Gauge => 1,
        };
        self.labels.iter().map(|label| (label.values)().len()).product::<usize>() * each
    }
}

/// A figure that is read from an `S`.
#[derive(Debug)]
pub struct Figure<S: 'static> {
    pub about: About,
    /// Adds the samples. A figure that is not known now has none.
    pub read: fn(&S, &mut Samples),
}

impl<S> Figure<S> {
    /// A figure without labels.
    pub const fn new(
        kind: Kind,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        read: fn(&S, &mut Samples),
    ) -> Figure<S> {
        Figure { about: About { name, help, unit, kind, labels: &[] }, read }
    }

    pub const fn gauge(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        read: fn(&S, &mut Samples),
    ) -> Figure<S> {
        Figure::new(Kind::Gauge, name, unit, help, read)
    }

    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        read: fn(&S, &mut Samples),
    ) -> Figure<S> {
        Figure::new(Kind::Counter, name, unit, help, read)
    }

    pub const fn histogram(name: &'static str, help: &'static str, read: fn(&S, &mut Samples)) -> Figure<S> {
        Figure::new(Kind::Histogram, name, "seconds", help, read)
    }

    /// The same with labels.
    pub const fn by(self, labels: &'static [Label]) -> Figure<S> {
        Figure { about: About { labels, ..self.about }, read: self.read }
    }
}

/// A value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Seconds(Distribution),
}

/// A value, with the values of the labels in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub labels: Vec<&'static str>,
    pub value: Value,
}

/// The samples of one figure, while they are read.
#[derive(Debug, Default)]
pub struct Samples(Vec<Sample>);

impl Samples {
    /// The only sample of a figure without labels.
    pub fn number(&mut self, value: f64) {
        self.of(&[], value);
    }

    /// The same, rounded to what the format can carry.
    pub fn count(&mut self, value: u64) {
        self.number(float(value));
    }

    /// Nothing for `None`: the figure is not known now.
    pub fn known(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.number(value);
        }
    }

    /// A sample with the values of the labels.
    pub fn of(&mut self, labels: &[&'static str], value: f64) {
        self.0.push(Sample { labels: labels.to_vec(), value: Value::Number(value) });
    }

    pub fn seconds(&mut self, labels: &[&'static str], value: Distribution) {
        self.0.push(Sample { labels: labels.to_vec(), value: Value::Seconds(value) });
    }
}

/// A figure with its samples.
#[derive(Clone, Debug)]
pub struct Family {
    pub about: &'static About,
    pub samples: Vec<Sample>,
}

/// Reads a table, in its order.
pub fn read<S>(table: &'static [Figure<S>], source: &S) -> impl Iterator<Item = Family> {
    table.iter().map(move |figure| {
        let mut samples = Samples::default();
        (figure.read)(source, &mut samples);
        Family { about: &figure.about, samples: samples.0 }
    })
}

/// A number as the format has it: exact up to 2^53.
#[allow(clippy::cast_precision_loss, reason = "the exposition format has floating-point numbers only")]
pub fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_greatest_number_of_series() {
        let about = |kind, labels| About { name: "a", help: "", unit: "", kind, labels };
        const TWO: Label = Label { name: "two", values: || vec!["a", "b"] };
        const THREE: Label = Label { name: "three", values: || vec!["a", "b", "c"] };
        assert_eq!(about(Kind::Gauge, &[]).series_max(), 1);
        assert_eq!(about(Kind::Counter, &[TWO, THREE]).series_max(), 6);
        assert_eq!(about(Kind::Histogram, &[TWO]).series_max(), 2 * (SECONDS.len() + 3));
    }

    #[test]
    fn a_table_is_read_in_its_order() {
        const TABLE: &[Figure<u64>] = &[
            Figure::gauge("b", "", "", |source, out| out.count(*source)),
            Figure::counter("a", "", "", |_, out| out.known(None)),
        ];
        let families: Vec<Family> = read(TABLE, &7).collect();
        assert_eq!(families.iter().map(|family| family.about.name).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(families[0].samples, [Sample { labels: Vec::new(), value: Value::Number(7.0) }]);
        assert!(families[1].samples.is_empty());
    }
}
