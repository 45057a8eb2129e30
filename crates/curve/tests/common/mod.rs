//! What the tests of the lanes have in common.

use lydian_curve::LaneEngine;

pub(crate) mod equal_points;

/// Every lane engine of this CPU, and the plain one.
pub(crate) fn engines() -> Vec<LaneEngine> {
    let mut engines = LaneEngine::available();
    engines.push(LaneEngine::plain());
    engines
}
