//! The options that choose the chain: `-chain`, `-regtest`, `-signet`, `-testnet`, `-testnet4`. Input: the given
//! values. Output: the chain's name. It knows nothing of a chain's rules.

use crate::sources::Sources;
use crate::value::switch;

/// What a program needs to find a node's files and its RPC server: Core's `CBaseChainParams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseChain {
    pub name: &'static str,
    /// The folder of the chain inside the data directory.
    pub folder: &'static str,
    pub rpc_port: u16,
}

impl BaseChain {
    pub const MAIN: BaseChain = BaseChain { name: "main", folder: "", rpc_port: 8332 };
}

const BASE_CHAINS: [BaseChain; 5] = [
    BaseChain::MAIN,
    BaseChain { name: "test", folder: "testnet3", rpc_port: 18332 },
    BaseChain { name: "testnet4", folder: "testnet4", rpc_port: 48332 },
    BaseChain { name: "signet", folder: "signet", rpc_port: 38332 },
    BaseChain { name: "regtest", folder: "regtest", rpc_port: 18443 },
];

/// The chain of this name, if there is one.
pub fn base_chain(name: &str) -> Option<BaseChain> {
    BASE_CHAINS.into_iter().find(|chain| chain.name == name)
}

/// More than one of the options is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainCombination;

/// Core's `GetChainTypeString`: the name as given; it may be the name of no chain.
pub fn chain_name(sources: &Sources) -> Result<String, ChainCombination> {
    let switches = [("regtest", "regtest"), ("signet", "signet"), ("testnet", "test"), ("testnet4", "testnet4")];
    let is_on = |name: &str| sources.get_for_chain(name).is_some_and(|value| switch(value.setting.text()));
    let mut chosen: Vec<&str> =
        switches.into_iter().filter(|(option, _)| is_on(option)).map(|(_, chain)| chain).collect();
    chosen.extend(sources.get("chain").map(|value| value.setting.text()));
    match &chosen[..] {
        [] => Ok(BaseChain::MAIN.name.to_owned()),
        [chain] => Ok((*chain).to_owned()),
        _ => Err(ChainCombination),
    }
}
