//! Detects which kernels this CPU can run and chooses one for each job.
//!
//! This is the only file that queries CPU features. Output: `Kernels`, computed once per process. Invariant: a value
//! like `ShaNi` exists only if the CPU can run its kernel, so holding one is the proof. Cost: one atomic load per call.
//! Must never: return different kernels later in the same process.

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
use std::sync::OnceLock;

use super::{State, plain};

/// The kernels of this CPU and the choice made for each job.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// Used for one message at a time.
    pub stream: StreamKernel,
    /// Used for the levels of a merkle tree: many 64-byte messages.
    pub pairs: BatchKernel,
    /// Used for many messages of any length.
    pub many: BatchKernel,
    /// Used for many elements of a `MuHash3072`.
    pub muhash: MuHashKernel,
    /// Used for the RIPEMD-160 of many digests.
    pub ripemd160: Ripemd160Kernel,
    /// All stream kernels that this CPU can run, the plain one first, the chosen one last.
    pub streams_available: Vec<StreamKernel>,
    /// All batch kernels that this CPU can run, the plain one first, the chosen one last.
    pub batches_available: Vec<BatchKernel>,
    /// All MuHash kernels that this CPU can run, the plain one first, the chosen one last.
    pub muhash_available: Vec<MuHashKernel>,
    /// All RIPEMD-160 kernels that this CPU can run, the plain one first, the chosen one last.
    pub ripemd160_available: Vec<Ripemd160Kernel>,
}

/// A kernel for one message at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKernel {
    /// Portable Rust.
    Plain,
    /// The x86 SHA instructions.
    #[cfg(target_arch = "x86_64")]
    ShaNi(ShaNi),
    /// The SHA-2 instructions of ARMv8.
    #[cfg(target_arch = "aarch64")]
    ArmSha2(ArmSha2),
}

/// A kernel for many messages at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKernel {
    /// One message at a time.
    Stream(StreamKernel),
    /// Two interleaved streams of the SHA instructions.
    #[cfg(target_arch = "x86_64")]
    ShaNi2(ShaNi),
    /// Eight lanes; the stream kernel for the last messages, which do not fill the lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2, StreamKernel),
    /// Sixteen lanes; the stream kernel for the last messages, which do not fill the lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512, StreamKernel),
    /// Four lanes; the stream kernel for the last messages, which do not fill the lanes.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon, StreamKernel),
    /// Two interleaved streams of the SHA-2 instructions.
    #[cfg(target_arch = "aarch64")]
    ArmSha2Twice(ArmSha2),
}

/// A kernel for many elements of a `MuHash3072`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuHashKernel {
    /// One element at a time.
    Plain,
    /// Eight lanes of 28-bit limbs.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Sixteen lanes of 48-bit limbs.
    #[cfg(target_arch = "x86_64")]
    Ifma512(Ifma512),
}

/// A kernel for the RIPEMD-160 of many digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ripemd160Kernel {
    /// One digest at a time.
    Plain,
    /// Eight lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// Sixteen lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// Four lanes.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

/// Proof that the CPU has the SHA instructions (with SSSE3 and SSE4.1).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaNi(());

/// Proof that the CPU has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

/// Proof that the CPU has AVX-512 F and BW.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

/// Proof that the CPU has AVX-512 F and IFMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ifma512(());

#[cfg(target_arch = "x86_64")]
impl ShaNi {
    fn detect() -> Option<Self> {
        let has_all =
            is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1");
        has_all.then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")).then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
impl Ifma512 {
    fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma")).then_some(Self(()))
    }
}

/// Proof that the CPU has NEON.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

/// Proof that the CPU has the SHA-2 instructions of ARMv8, and NEON.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArmSha2(());

#[cfg(target_arch = "aarch64")]
impl Neon {
    fn detect() -> Option<Self> {
        is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

#[cfg(target_arch = "aarch64")]
impl ArmSha2 {
    fn detect() -> Option<Self> {
        (is_aarch64_feature_detected!("neon") && is_aarch64_feature_detected!("sha2")).then_some(Self(()))
    }
}

/// Returns the kernels of this CPU; detected on the first call.
pub fn kernels() -> &'static Kernels {
    static KERNELS: OnceLock<Kernels> = OnceLock::new();
    KERNELS.get_or_init(Kernels::detect)
}

impl Kernels {
    /// Lists the kernels slowest first, as measured (`docs/benchmarks/hash.md`): eight AVX2 lanes are faster than plain
    /// Rust but not than the SHA instructions, sixteen AVX-512 lanes are faster than both. The order for ARM is that of
    /// the numbers of instructions.
    fn detect() -> Self {
        let mut streams_available = vec![StreamKernel::Plain];
        let mut batches_available = vec![BatchKernel::Stream(StreamKernel::Plain)];
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut, reason = "only x86 has other kernels"))]
        let mut muhash_available = vec![MuHashKernel::Plain];
        let mut ripemd160_available = vec![Ripemd160Kernel::Plain];
        let mut stream = StreamKernel::Plain;
        #[cfg(target_arch = "x86_64")]
        {
            let sha_ni = ShaNi::detect();
            if let Some(sha_ni) = sha_ni {
                stream = StreamKernel::ShaNi(sha_ni);
                streams_available.push(stream);
            }
            batches_available.extend(Avx2::detect().map(|avx2| BatchKernel::Avx2(avx2, stream)));
            batches_available.extend(sha_ni.map(|_| BatchKernel::Stream(stream)));
            batches_available.extend(sha_ni.map(BatchKernel::ShaNi2));
            batches_available.extend(Avx512::detect().map(|avx512| BatchKernel::Avx512(avx512, stream)));
            muhash_available.extend(Avx2::detect().map(MuHashKernel::Avx2));
            muhash_available.extend(Ifma512::detect().map(MuHashKernel::Ifma512));
            ripemd160_available.extend(Avx2::detect().map(Ripemd160Kernel::Avx2));
            ripemd160_available.extend(Avx512::detect().map(Ripemd160Kernel::Avx512));
        }
        #[cfg(target_arch = "aarch64")]
        {
            let sha2 = ArmSha2::detect();
            if let Some(sha2) = sha2 {
                stream = StreamKernel::ArmSha2(sha2);
                streams_available.push(stream);
            }
            batches_available.extend(Neon::detect().map(|neon| BatchKernel::Neon(neon, stream)));
            batches_available.extend(sha2.map(|_| BatchKernel::Stream(stream)));
            batches_available.extend(sha2.map(BatchKernel::ArmSha2Twice));
            ripemd160_available.extend(Neon::detect().map(Ripemd160Kernel::Neon));
        }
        let best = batches_available.last().copied().unwrap_or(BatchKernel::Stream(stream));
        let muhash = muhash_available.last().copied().unwrap_or(MuHashKernel::Plain);
        let ripemd160 = ripemd160_available.last().copied().unwrap_or(Ripemd160Kernel::Plain);
        Self {
            stream,
            pairs: best,
            many: best,
            muhash,
            ripemd160,
            streams_available,
            batches_available,
            muhash_available,
            ripemd160_available,
        }
    }
}

impl StreamKernel {
    /// The name shown in benchmarks and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi(_) => "sha-ni",
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2(_) => "armv8-sha2",
        }
    }

    /// Compresses the blocks of one message in order.
    #[inline]
    pub(crate) fn compress(self, state: &mut State, blocks: &[[u8; 64]]) {
        match self {
            Self::Plain => plain::compress(state, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi(sha_ni) => sha_ni.compress(state, blocks),
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2(sha2) => sha2.compress(state, blocks),
        }
    }
}

impl BatchKernel {
    /// The name shown in benchmarks and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream(kernel) => kernel.name(),
            #[cfg(target_arch = "x86_64")]
            Self::ShaNi2(_) => "sha-ni-2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(..) => "avx2-8",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(..) => "avx512-16",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(..) => "neon-4",
            #[cfg(target_arch = "aarch64")]
            Self::ArmSha2Twice(_) => "armv8-sha2-2",
        }
    }
}

impl MuHashKernel {
    /// The name shown in benchmarks and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2-8",
            #[cfg(target_arch = "x86_64")]
            Self::Ifma512(_) => "ifma-16",
        }
    }
}

impl Ripemd160Kernel {
    /// The name shown in benchmarks and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2-8",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512-16",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon-4",
        }
    }
}
