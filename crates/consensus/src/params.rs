//! The five chains and their consensus parameters, all taken from Core's kernel/chainparams.cpp.
//!
//! No I/O. The genesis blocks are built from their parts, and tests compare their hashes.

use crate::u256::U256;
use lydian_hash::sha256d;
use lydian_primitives::build::{MutBlock, MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, BlockHash, Header, Height, OutPoint, RawBlock, hex, write_compact_size};
use lydian_script::Flags;
use std::fmt;
use std::str::FromStr;

/// A chain, identified by Core's name (`-chain=`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Chain {
    Main,
    Test,
    Testnet4,
    Signet,
    Regtest,
}

impl Chain {
    pub const ALL: [Chain; 5] = [Chain::Main, Chain::Test, Chain::Testnet4, Chain::Signet, Chain::Regtest];

    pub fn name(self) -> &'static str {
        match self {
            Chain::Main => "main",
            Chain::Test => "test",
            Chain::Testnet4 => "testnet4",
            Chain::Signet => "signet",
            Chain::Regtest => "regtest",
        }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of no known chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownChain(pub String);

impl fmt::Display for UnknownChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown chain '{}': expected main, test, testnet4, signet or regtest", self.0)
    }
}

impl std::error::Error for UnknownChain {}

impl FromStr for Chain {
    type Err = UnknownChain;
    fn from_str(text: &str) -> Result<Chain, UnknownChain> {
        Chain::ALL.into_iter().find(|chain| chain.name() == text).ok_or_else(|| UnknownChain(text.to_owned()))
    }
}

/// A soft fork that is active from a fixed height on ("buried"): Core's `Consensus::BuriedDeployment`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deployment {
    /// BIP-0034, the height in the coinbase.
    HeightInCoinbase,
    /// BIP-0065, OP_CHECKLOCKTIMEVERIFY.
    Cltv,
    /// BIP-0066, strict DER.
    Dersig,
    /// BIP-0068, BIP-0112 and BIP-0113.
    Csv,
    /// BIP-0141, BIP-0143 and BIP-0147.
    Segwit,
}

impl Deployment {
    pub const ALL: [Deployment; 5] =
        [Deployment::HeightInCoinbase, Deployment::Cltv, Deployment::Dersig, Deployment::Csv, Deployment::Segwit];

    /// The name in Core's `-testactivationheight=NAME@HEIGHT`.
    pub fn name(self) -> &'static str {
        match self {
            Deployment::HeightInCoinbase => "bip34",
            Deployment::Cltv => "cltv",
            Deployment::Dersig => "dersig",
            Deployment::Csv => "csv",
            Deployment::Segwit => "segwit",
        }
    }
}

/// A block with script flags other than those of its height: Core's `script_flag_exceptions`. The hash identifies the
/// block; its height is given as well.
#[derive(Clone, Copy, Debug)]
pub struct ScriptFlagException {
    pub height: Height,
    pub hash: BlockHash,
    /// The flags in place of P2SH, WITNESS and TAPROOT.
    pub flags: Flags,
}

/// A soft fork that miners activate by a version bit (BIP-0009): Core's `BIP9Deployment`. There is only `testdummy`,
/// which changes no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionBits {
    /// The version bit.
    pub bit: u32,
    /// Median time past from which miners signal, or [`VersionBits::ALWAYS_ACTIVE`] or [`VersionBits::NEVER_ACTIVE`].
    pub start_time: i64,
    /// Median time past at which the deployment fails.
    pub timeout: i64,
    pub min_activation_height: i32,
    /// Number of blocks in a period that must signal.
    pub threshold: u32,
    pub period: u32,
}

impl VersionBits {
    pub const ALWAYS_ACTIVE: i64 = -1;
    pub const NEVER_ACTIVE: i64 = -2;
    pub const NO_TIMEOUT: i64 = i64::MAX;

    const fn unused(threshold: u32) -> VersionBits {
        VersionBits {
            bit: 28,
            start_time: VersionBits::NEVER_ACTIVE,
            timeout: VersionBits::NO_TIMEOUT,
            min_activation_height: 0,
            threshold,
            period: 2016,
        }
    }

    /// Whether it can ever be active: Core's `DeploymentEnabled`.
    pub fn is_enabled(&self) -> bool {
        self.start_time != VersionBits::NEVER_ACTIVE
    }
}

/// The parameters of one chain: Core's `Consensus::Params`, and the magic of its files and messages.
#[derive(Clone, Debug)]
pub struct Params {
    pub chain: Chain,
    /// Core's `pchMessageStart`.
    pub magic: [u8; 4],
    pub genesis_hash: BlockHash,
    pub subsidy_halving_interval: u32,
    pub script_flag_exceptions: Vec<ScriptFlagException>,
    /// Activation heights in the order of [`Deployment::ALL`].
    activation_heights: [Height; 5],
    /// Hash of the block at BIP-0034's height, which makes the BIP-0030 check unnecessary above it. Zero: always
    /// necessary.
    pub bip34_hash: BlockHash,
    pub pow_limit: U256,
    /// Length of a retarget period in seconds.
    pub pow_target_timespan: i64,
    /// Target time between blocks in seconds.
    pub pow_target_spacing: i64,
    pub allow_min_difficulty_blocks: bool,
    pub no_retargeting: bool,
    pub enforce_bip94: bool,
    /// The script that every block must satisfy (BIP-0325); only on signet.
    pub signet_challenge: Option<Vec<u8>>,
    /// Core's `DEPLOYMENT_TESTDUMMY`.
    pub testdummy: VersionBits,
}

const TWO_WEEKS: i64 = 14 * 24 * 60 * 60;
const TEN_MINUTES: i64 = 10 * 60;
const DEFAULT_SIGNET_CHALLENGE: &str = "512103ad5e0edad18cb1f0fc0d28a3d4f1f3e445640337489abb10404f2d1e086be430\
    210359ef5021964fe22d6f8e05b2463c9540ce96883fe3b278760f048f5189f2e6c452ae";

impl Params {
    pub fn new(chain: Chain) -> Params {
        match chain {
            Chain::Main => Params::main(),
            Chain::Test => Params::test(),
            Chain::Testnet4 => Params::testnet4(),
            Chain::Signet => Params::signet(),
            Chain::Regtest => Params::regtest(),
        }
    }

    fn main() -> Params {
        Params {
            chain: Chain::Main,
            magic: [0xf9, 0xbe, 0xb4, 0xd9],
            genesis_hash: hash("000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"),
            subsidy_halving_interval: 210_000,
            script_flag_exceptions: vec![
                ScriptFlagException {
                    height: Height(170_060),
                    hash: hash("00000000000002dc756eebf4f49723ed8d30cc28a5f108eb94b1ba88ac4f9c22"),
                    flags: Flags::NONE,
                },
                ScriptFlagException {
                    height: Height(692_261),
                    hash: hash("0000000000000000000f14c35b2d841e986ab5441de8c585d5ffe55ea1e395ad"),
                    flags: Flags::P2SH.union(Flags::WITNESS),
                },
            ],
            activation_heights: [227_931, 388_381, 363_725, 419_328, 481_824].map(Height),
            bip34_hash: hash("000000000000024b89b42a942fe0d9fea3bb44ab7bd1b19115dd6a759c0808b8"),
            pow_limit: limit("00000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
            pow_target_timespan: TWO_WEEKS,
            pow_target_spacing: TEN_MINUTES,
            allow_min_difficulty_blocks: false,
            no_retargeting: false,
            enforce_bip94: false,
            signet_challenge: None,
            testdummy: VersionBits::unused(1815),
        }
    }

    fn test() -> Params {
        Params {
            chain: Chain::Test,
            magic: [0x0b, 0x11, 0x09, 0x07],
            genesis_hash: hash("000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943"),
            script_flag_exceptions: vec![ScriptFlagException {
                height: Height(394),
                hash: hash("00000000dd30457c001f4095d208cc1296b0eed002427aa599874af7a432b105"),
                flags: Flags::NONE,
            }],
            activation_heights: [21_111, 581_885, 330_776, 770_112, 834_624].map(Height),
            bip34_hash: hash("0000000023b3a96d3484e5abb3755c413e7d41500f8e2a5c3f0dd01299cd8ef8"),
            allow_min_difficulty_blocks: true,
            testdummy: VersionBits::unused(1512),
            ..Params::main()
        }
    }

    fn testnet4() -> Params {
        Params {
            chain: Chain::Testnet4,
            magic: [0x1c, 0x16, 0x3f, 0x28],
            genesis_hash: hash("00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043"),
            script_flag_exceptions: Vec::new(),
            activation_heights: [Height(1); 5],
            bip34_hash: BlockHash::ZERO,
            allow_min_difficulty_blocks: true,
            enforce_bip94: true,
            testdummy: VersionBits::unused(1512),
            ..Params::main()
        }
    }

    fn signet() -> Params {
        Params {
            chain: Chain::Signet,
            // The first bytes of the double SHA-256 of the challenge, serialised as a script.
            magic: [0x0a, 0x03, 0xcf, 0x40],
            genesis_hash: hash("00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6"),
            script_flag_exceptions: Vec::new(),
            activation_heights: [Height(1); 5],
            bip34_hash: BlockHash::ZERO,
            pow_limit: limit("00000377ae000000000000000000000000000000000000000000000000000000"),
            signet_challenge: Some(hex(DEFAULT_SIGNET_CHALLENGE).unwrap_or_default()),
            ..Params::main()
        }
    }

    fn regtest() -> Params {
        let [bip34, cltv, dersig, csv, segwit] = [1, 1, 1, 1, 0].map(Height);
        Params {
            chain: Chain::Regtest,
            magic: [0xfa, 0xbf, 0xb5, 0xda],
            genesis_hash: hash("0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"),
            subsidy_halving_interval: 150,
            script_flag_exceptions: Vec::new(),
            activation_heights: [bip34, cltv, dersig, csv, segwit],
            bip34_hash: BlockHash::ZERO,
            pow_limit: limit("7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
            pow_target_timespan: 24 * 60 * 60,
            allow_min_difficulty_blocks: true,
            no_retargeting: true,
            testdummy: VersionBits { start_time: 0, threshold: 108, period: 144, ..VersionBits::unused(0) },
            ..Params::main()
        }
    }

    /// Number of blocks in a retarget period: Core's `DifficultyAdjustmentInterval`.
    pub fn difficulty_adjustment_interval(&self) -> u32 {
        u32::try_from(self.pow_target_timespan / self.pow_target_spacing).unwrap_or(1)
    }

    pub fn activation_height(&self, deployment: Deployment) -> Height {
        self.activation_heights[deployment as usize]
    }

    /// Whether the soft fork applies to the block at this height: Core's `DeploymentActiveAt`.
    pub fn is_active(&self, deployment: Deployment, height: Height) -> bool {
        height >= self.activation_height(deployment)
    }

    /// Changes the activation height of a soft fork: Core's `-testactivationheight=NAME@HEIGHT`. An error on the main
    /// chain.
    pub fn with_activation_height(mut self, setting: &str) -> Result<Params, DeploymentError> {
        let text = || setting.to_owned();
        let (name, height) = setting.split_once('@').ok_or_else(|| DeploymentError::Format { setting: text() })?;
        // Core accepts heights below the maximum of an int.
        let height =
            integral(height).and_then(|height| u32::try_from(height).ok()).filter(|height| *height < 0x7fff_ffff);
        let height = height.ok_or_else(|| DeploymentError::Height { setting: text() })?;
        let deployment = Deployment::ALL.into_iter().find(|deployment| deployment.name() == name);
        let deployment = deployment.ok_or_else(|| DeploymentError::Name { setting: text() })?;
        if self.chain == Chain::Main {
            return Err(DeploymentError::Mainnet { option: "testactivationheight" });
        }
        self.activation_heights[deployment as usize] = Height(height);
        Ok(self)
    }

    /// Sets the times of `testdummy`: Core's `-vbparams=deployment:start:end[:min_activation_height]`. An error on the
    /// main chain.
    pub fn with_version_bits(mut self, setting: &str) -> Result<Params, DeploymentError> {
        let parts: Vec<&str> = setting.split(':').collect();
        let [name, start, end, rest @ ..] = &parts[..] else { return Err(DeploymentError::VersionBits) };
        let min_height = match rest {
            [] => None,
            [height] => Some(*height),
            _ => return Err(DeploymentError::VersionBits),
        };
        let number =
            |text: &str, name| integral(text).ok_or_else(|| DeploymentError::Number { name, text: text.to_owned() });
        let start_time = number(start, "nStartTime")?;
        let timeout = number(end, "nTimeout")?;
        let min_height = min_height.map_or(Ok(0), |text| number(text, "min_activation_height"))?;
        if *name != "testdummy" {
            return Err(DeploymentError::Deployment { name: (*name).to_owned() });
        }
        if self.chain == Chain::Main {
            return Err(DeploymentError::Mainnet { option: "vbparams" });
        }
        // Core stores it as an int.
        let bound = |height: i64| i32::try_from(height).unwrap_or(if height < 0 { i32::MIN } else { i32::MAX });
        self.testdummy =
            VersionBits { start_time, timeout, min_activation_height: bound(min_height), ..self.testdummy };
        Ok(self)
    }

    /// A custom signet: Core's `-signetchallenge`. Its magic is the first four bytes of the double SHA-256 of the
    /// challenge, serialised as a script.
    pub fn with_signet_challenge(mut self, challenge: Vec<u8>) -> Params {
        let mut serialised = Vec::with_capacity(challenge.len() + 9);
        write_compact_size(&mut serialised, challenge.len());
        serialised.extend_from_slice(&challenge);
        let digest = sha256d(&serialised);
        self.magic = [digest[0], digest[1], digest[2], digest[3]];
        self.signet_challenge = Some(challenge);
        self
    }

    /// The genesis block: Core's `CreateGenesisBlock`.
    pub fn genesis_block(&self) -> RawBlock {
        let (time, nonce, bits) = match self.chain {
            Chain::Main => (1_231_006_505, 2_083_236_893, 0x1d00_ffff),
            Chain::Test => (1_296_688_602, 414_098_458, 0x1d00_ffff),
            Chain::Testnet4 => (1_714_777_860, 393_743_547, 0x1d00_ffff),
            Chain::Signet => (1_598_918_400, 52_613_770, 0x1e03_77ae),
            Chain::Regtest => (1_296_688_602, 2, 0x207f_ffff),
        };
        let (message, key): (&[u8], &str) = match self.chain {
            Chain::Testnet4 => (
                b"03/May/2024 000000000000000000001ebd58c244970b3aa9d783bb001011fbe8ea8e98e00e",
                "000000000000000000000000000000000000000000000000000000000000000000",
            ),
            _ => (
                b"The Times 03/Jan/2009 Chancellor on brink of second bailout for banks",
                "04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7\
                 ba0b8d578a4c702b6bf11d5f",
            ),
        };
        let push = |out: &mut Vec<u8>, bytes: &[u8]| {
            match u8::try_from(bytes.len()) {
                Ok(len) if len < 0x4c => out.push(len),
                Ok(len) => out.extend_from_slice(&[0x4c, len]),
                Err(_) => unreachable!("both messages are shorter than 256 bytes"),
            }
            out.extend_from_slice(bytes);
        };
        let mut script_sig = vec![0x04, 0xff, 0xff, 0x00, 0x1d, 0x01, 0x04];
        push(&mut script_sig, message);
        let mut script_pubkey = Vec::new();
        push(&mut script_pubkey, &hex(key).unwrap_or_default());
        script_pubkey.push(0xac);
        let input = MutInput { prevout: OutPoint::NULL, script_sig, sequence: u32::MAX, witness: Vec::new() };
        let output = MutOutput { value: Amount(50 * Amount::COIN.0), script_pubkey };
        let coinbase = MutTx { version: 1, inputs: vec![input], outputs: vec![output], lock_time: 0 };
        let header = Header { version: 1, prev_block: BlockHash::ZERO, merkle_root: [0; 32], time, bits, nonce };
        let mut block = MutBlock { header, txs: vec![coinbase] };
        block.seal_merkle_root();
        RawBlock::new(block.encode())
    }
}

/// An invalid deployment setting; the messages are Core's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentError {
    Format { setting: String },
    Height { setting: String },
    Name { setting: String },
    VersionBits,
    Number { name: &'static str, text: String },
    Deployment { name: String },
    Mainnet { option: &'static str },
}

impl fmt::Display for DeploymentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FORM: &str = "for -testactivationheight=name@height.";
        match self {
            Self::Format { setting } => write!(f, "Invalid format ({setting}) {FORM}"),
            Self::Height { setting } => write!(f, "Invalid height value ({setting}) {FORM}"),
            Self::Name { setting } => write!(f, "Invalid name ({setting}) {FORM}"),
            Self::VersionBits => {
                f.write_str("Version bits parameters malformed, expecting deployment:start:end[:min_activation_height]")
            }
            Self::Number { name, text } => write!(f, "Invalid {name} ({text})"),
            Self::Deployment { name } => write!(f, "Invalid deployment ({name})"),
            Self::Mainnet { option } => write!(f, "The -{option} option may not be used on mainnet."),
        }
    }
}

impl std::error::Error for DeploymentError {}

/// Core's `ToIntegral`: accepts only a whole number.
fn integral(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// A hash constant of this file. A typo gives zero, which the tests below detect.
fn hash(text: &str) -> BlockHash {
    text.parse().unwrap_or_default()
}

/// A target constant of this file, written like a hash.
fn limit(text: &str) -> U256 {
    U256::from_le_bytes(&hash(text).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pow::expand;

    /// checklist: 28
    #[test]
    fn genesis_blocks_have_the_hashes_of_their_chains() {
        for chain in Chain::ALL {
            let params = Params::new(chain);
            let block = params.genesis_block().parse().unwrap();
            assert_eq!(block.hash(), params.genesis_hash, "{chain}");
            assert_ne!(block.hash(), BlockHash::ZERO);
            assert!(expand(block.header().bits).target <= params.pow_limit);
        }
        let bip34 = [Chain::Main, Chain::Test].map(|chain| Params::new(chain).bip34_hash);
        assert!(!bip34.contains(&BlockHash::ZERO));
    }

    #[test]
    fn signet_magic_is_made_of_the_challenge() {
        let params = Params::new(Chain::Signet);
        let challenge = params.signet_challenge.clone().unwrap();
        assert_eq!(challenge.len(), 71);
        assert_eq!(params.clone().with_signet_challenge(challenge).magic, params.magic);
        // OP_TRUE: the magic of every signet that anyone can extend.
        let open = params.with_signet_challenge(vec![0x51]);
        assert_eq!((open.magic, open.signet_challenge.unwrap()), ([0x54, 0xd2, 0x6f, 0xbd], vec![0x51]));
    }

    /// The soft forks of every chain start at Core's heights; on newer chains they are active from the first blocks on.
    /// checklist: 28
    #[test]
    fn activation_heights() {
        let heights = |chain| Deployment::ALL.map(|d| Params::new(chain).activation_height(d).0);
        assert_eq!(heights(Chain::Main), [227_931, 388_381, 363_725, 419_328, 481_824]);
        assert_eq!(heights(Chain::Test), [21_111, 581_885, 330_776, 770_112, 834_624]);
        assert_eq!(heights(Chain::Testnet4), [1; 5]);
        assert_eq!(heights(Chain::Signet), [1; 5]);
        assert_eq!(heights(Chain::Regtest), [1, 1, 1, 1, 0]);
    }

    #[test]
    fn activation_heights_move_where_core_moves_them() {
        let set = |text| Params::new(Chain::Regtest).with_activation_height(text);
        assert_eq!(set("segwit@432").unwrap().activation_height(Deployment::Segwit), Height(432));
        assert_eq!(set("dersig@1251").unwrap().activation_height(Deployment::Dersig), Height(1251));
        for (bad, what) in [
            ("segwit", "format"),
            ("taproot@1", "name"),
            ("segwit@", "height value"),
            ("segwit@-1", "height value"),
            ("segwit@+1", "height value"),
            ("segwit@2147483647", "height value"),
        ] {
            let expected = format!("Invalid {what} ({bad}) for -testactivationheight=name@height.");
            assert_eq!(set(bad).unwrap_err().to_string(), expected);
        }
        assert!(Params::new(Chain::Signet).with_activation_height("segwit@5").is_ok());
        let error = Params::new(Chain::Main).with_activation_height("segwit@1").unwrap_err();
        assert_eq!(error.to_string(), "The -testactivationheight option may not be used on mainnet.");
    }

    #[test]
    fn version_bits_are_set_where_core_sets_them() {
        let set = |text| Params::new(Chain::Regtest).with_version_bits(text);
        let set_times = |text| {
            set(text).map(|params| {
                let VersionBits { start_time, timeout, min_activation_height, .. } = params.testdummy;
                (start_time, timeout, min_activation_height)
            })
        };
        assert_eq!(set_times("testdummy:1199145601:1230767999"), Ok((1_199_145_601, 1_230_767_999, 0)));
        assert_eq!(set_times("testdummy:-2:9223372036854775807:144"), Ok((-2, i64::MAX, 144)));
        const MALFORMED: &str =
            "Version bits parameters malformed, expecting deployment:start:end[:min_activation_height]";
        for (bad, expected) in [
            ("testdummy:0", MALFORMED),
            ("testdummy:0:1:2:3", MALFORMED),
            ("testdummy:a:1", "Invalid nStartTime (a)"),
            ("testdummy:0:", "Invalid nTimeout ()"),
            ("testdummy:0:1:x", "Invalid min_activation_height (x)"),
            ("taproot:0:1", "Invalid deployment (taproot)"),
        ] {
            assert_eq!(set(bad).unwrap_err().to_string(), expected);
        }
        let error = Params::new(Chain::Main).with_version_bits("testdummy:0:1").unwrap_err();
        assert_eq!(error.to_string(), "The -vbparams option may not be used on mainnet.");
    }
}
