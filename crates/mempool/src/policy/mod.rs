//! Policy: which valid transactions are accepted and relayed. Core's `policy/`.
