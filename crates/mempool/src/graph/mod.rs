//! The cluster graph: Core's `txgraph` and `cluster_linearize`.
