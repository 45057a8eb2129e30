//! The figures of the node, for `GET /metrics` and `GET /api/figures`.

use super::PageNode;
use lydian_dashboard::Metrics;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Exported(pub(super) Arc<PageNode>);

impl Metrics for Exported {
    fn text(&self) -> String {
        self.0.metrics.text()
    }

    fn json(&self) -> Map<String, Value> {
        self.0.metrics.json()
    }
}
