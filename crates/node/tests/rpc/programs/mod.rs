//! Programs of others that are written for `bitcoind`, on Lydian and on Core: each follows the same chain through
//! transactions, replacements, blocks and reorganisations, and must see the same on both.
//!
//! A test names what its program reports as a list of lines ([`Watch`]); [`live`] changes both nodes and compares them.

mod bdk;
mod ldk;
mod lnd;
mod nbxplorer;
mod processes;

pub(crate) use processes::{Program, WATCH, python};

use crate::chain::Pair;
use crate::electrum::{Paid, pay, script};
use crate::electrum_model::text;
use crate::esplora::{both, coinbase};
use crate::server::Server;
use lydian_primitives::build::MutTx;
use lydian_primitives::to_hex;
use serde_json::json;

/// What the program has seen since the last call, as lines.
pub(crate) type Watch = Box<dyn FnMut() -> Vec<String>>;

/// Options with which programs find what they ask for.
const OPTIONS: &[&str] = &["-txindex", "-blockfilterindex", "-rest", "-acceptnonstdtxn=0"];

/// Blocks before the story: the coins of the first ones can be spent.
const BEFORE: u32 = 110;

/// Payments from which fees are estimated, and those in one block.
const PAYMENTS: usize = 60;
const PAYMENTS_IN_BLOCK: usize = 10;

/// Both nodes, and the program on each.
struct Story {
    pair: Pair,
    watches: [Watch; 2],
    /// Lines of all steps.
    lines: usize,
}

impl Story {
    /// The program must see the same on both, and `expected` in it.
    fn look(&mut self, what: &str, expected: &[&str]) {
        let [ours, cores] = self.watches.each_mut().map(|watch| watch());
        let at = ours.iter().zip(&cores).position(|(ours, cores)| ours != cores).unwrap_or(ours.len().min(cores.len()));
        assert!(ours == cores, "{what}: {:?} is not {:?}", ours.get(at), cores.get(at));
        for word in expected {
            assert!(ours.iter().any(|line| line.contains(word)), "{what}: {word} is missing in {ours:?}");
        }
        self.lines += ours.len();
    }

    fn mine(&mut self, count: u32, number: u8) -> String {
        let blocks = json!([count, format!("raw({})", to_hex(&script(number)))]);
        let hashes = both(&self.pair, "generatetodescriptor", &blocks);
        text(hashes.as_array().unwrap().last().unwrap())
    }

    fn send(&mut self, tx: &MutTx) -> String {
        text(&both(&self.pair, "sendrawtransaction", &json!([to_hex(&tx.encode())])))
    }

    /// Transactions of different feerates that confirm at once, from which the estimators learn.
    fn pay_fees(&mut self) {
        let (split, mut coins) = pay(&[coinbase(&self.pair, 4)], &[10; PAYMENTS], 10_000);
        self.send(&split);
        self.mine(1, 1);
        while coins.len() >= PAYMENTS_IN_BLOCK {
            for (coin, fee) in coins.drain(..PAYMENTS_IN_BLOCK).zip((1_000..).step_by(700)) {
                self.send(&pay(&[coin], &[11], fee).0);
            }
            self.mine(1, 1);
        }
    }

    /// Replaces this number of blocks by one more.
    fn reorganise(&mut self, depth: u32, number: u8) -> String {
        let height = self.pair.core.result("getblockcount", "[]").as_u64().unwrap();
        let first = both(&self.pair, "getblockhash", &json!([height + 1 - u64::from(depth)]));
        both(&self.pair, "invalidateblock", &json!([first]));
        self.mine(depth + 1, number)
    }
}

/// Runs the story; `connect` starts the program on a node. `options` are those of both nodes beside [`OPTIONS`].
pub(crate) fn live(test: &str, options: &[&str], connect: impl Fn(&Server) -> Watch) {
    let options = [OPTIONS, options].concat();
    let Some(pair) = Pair::start(test, &options) else { return };
    live_on(pair, connect);
}

/// Runs the story on these nodes, which have no block yet.
pub(crate) fn live_on(pair: Pair, connect: impl Fn(&Server) -> Watch) {
    both(&pair, "setmocktime", &json!([1_750_000_000]));
    let watches = [connect(&pair.lydian), connect(&pair.core)];
    let mut story = Story { pair, watches, lines: 0 };
    let tip = story.mine(BEFORE, 1);
    story.look("the first blocks", &[&tip]);

    let (first, paid) = pay(&[coinbase(&story.pair, 1)], &[2, 3], 1_000);
    let parent = story.send(&first);
    let (second, _) = pay(&paid[..1], &[4, 2], 1_000);
    let child = story.send(&second);
    story.look("a transaction and its child", &[&parent, &child]);

    let spent: Paid = coinbase(&story.pair, 2);
    let replaced = story.send(&pay(&[spent], &[5, 5], 1_000).0);
    story.look("before a replacement", &[&replaced]);
    let replacing = story.send(&pay(&[spent], &[6], 50_000).0);
    story.look("a replacement", &[&replacing]);

    let tip = story.mine(1, 1);
    story.look("a block with them", &[&tip]);
    // The transactions return to the mempool and are in the new blocks.
    let tip = story.reorganise(1, 7);
    story.look("another block and one on it", &[&tip]);
    let late = story.send(&pay(&[coinbase(&story.pair, 3)], &[8], 2_000).0);
    story.look("a late transaction", &[&late]);
    story.mine(5, 1);
    let tip = story.reorganise(8, 9);
    story.look("nine blocks for eight", &[&tip]);
    story.look("nothing new", &[]);
    story.pay_fees();
    story.look("blocks from which fees are estimated", &[]);
    assert!(story.lines > 100, "{} lines", story.lines);
}
