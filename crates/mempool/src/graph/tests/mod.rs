//! Tests of the graph: against Core's own answers, against a plain model, and of large clusters.

mod judge;
mod replay;
