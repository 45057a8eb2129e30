//! Which kernels this CPU can run, and which one each job gets. The only file that asks the CPU.
//!
//! Input: the CPU. Output: `Kernels`, computed once per process. Invariant: a kernel value exists only where the CPU can
//! run it, so holding one is the proof. Cost: one atomic load per call. Must never: change its answer.

use std::sync::OnceLock;

use super::{State, plain};

/// The kernels of this CPU and the choice made for each job.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// For one message at a time.
    pub stream: StreamKernel,
    /// For merkle steps: many 64-byte messages.
    pub pairs: BatchKernel,
    /// For many messages of any length.
    pub many: BatchKernel,
    /// All that can run here, the plain one first.
    pub streams_available: Vec<StreamKernel>,
    /// All that can run here, the plain one first.
    pub batches_available: Vec<BatchKernel>,
}

/// A kernel for one message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKernel {
    Plain,
}

/// A kernel for many messages at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKernel {
    Stream(StreamKernel),
}

/// What this CPU has; asked once.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(Kernels::detect)
}

impl Kernels {
    fn detect() -> Self {
        let streams_available = vec![StreamKernel::Plain];
        let batches_available = vec![BatchKernel::Stream(StreamKernel::Plain)];
        Self {
            stream: StreamKernel::Plain,
            pairs: BatchKernel::Stream(StreamKernel::Plain),
            many: BatchKernel::Stream(StreamKernel::Plain),
            streams_available,
            batches_available,
        }
    }
}

impl StreamKernel {
    /// The name that benchmarks and reports show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
        }
    }

    #[inline]
    pub(crate) fn compress(self, state: &mut State, blocks: &[[u8; 64]]) {
        match self {
            Self::Plain => plain::compress(state, blocks),
        }
    }
}

impl BatchKernel {
    /// The name that benchmarks and reports show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream(kernel) => kernel.name(),
        }
    }
}
