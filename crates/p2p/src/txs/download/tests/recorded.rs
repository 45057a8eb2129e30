//! Random calls of Core's `TxDownloadManagerImpl` with its answers: this download has the same ones.
//!
//! The columns are: call, transaction, peer, argument, answer, the numbers of all announcements and of each peer's with
//! its requests, and each orphan with an announcer, marked if it is in the work set of that announcer.

use super::*;
use crate::txs::sample::core_trace;

/// A download that replays calls.
struct Replay {
    world: World,
    txs: Vec<Arc<Transaction>>,
}

/// The first four bytes of an id, and its kind.
fn name(gtxid: &GenTxid) -> String {
    format!(",{}{}", lydian_primitives::to_hex(&gtxid.hash()[..4]), if gtxid.is_wtxid() { 'w' } else { 't' })
}

fn flag(is: bool) -> String {
    u8::from(is).to_string()
}

impl Replay {
    fn new() -> Replay {
        let mut world = World::new();
        world.download = TxDownload { requests: TxRequests::with_key((0, 0)), ..TxDownload::new(&mut world.random) };
        world.now = seconds(1_700_000_000);
        Replay { world, txs: Vec::new() }
    }

    fn number(&self, wtxid: Wtxid) -> usize {
        self.txs.iter().position(|tx| tx.view().wtxid() == wtxid).unwrap()
    }

    fn package_text(&self, package: &Package) -> String {
        let [parent, child] = [&package.parent, &package.child].map(|tx| self.number(tx.view().wtxid()));
        format!("{parent}:{child}:{}:{}", package.parent_sender, package.child_sender)
    }

    /// Makes a call, and returns the answer.
    fn call(&mut self, call: &str, index: usize, id: u64, argument: u64) -> String {
        let tx = self.txs.get(index).map(Arc::clone).unwrap();
        let world = &mut self.world;
        let gtxid = if argument == 1 { wtxid(&tx) } else { txid(&tx) };
        match call {
            "connected" => world.connect(id, peer_of_flags(index)),
            "disconnected" => world.download.disconnected(PeerId(id)),
            "inv" => return flag(world.announced(id, gtxid)),
            "requests" => {
                world.now = seconds(argument);
                let requests = world.with(|download, context| download.requests_to_send(PeerId(id), context));
                return format!("-{}", requests.wanted.iter().map(name).collect::<String>());
            }
            "notfound" => world.download.not_found(PeerId(id), [gtxid]),
            "received" => match world.received(id, &tx) {
                Received::Validate => return "validate".to_owned(),
                Received::ValidatePackage(package) => return self.package_text(&package),
                Received::Ignore => {}
            },
            "work" => match world.download.next_orphan(PeerId(id)) {
                Some(tx) => return self.number(tx.view().wtxid()).to_string(),
                None => assert!(!world.download.has_work(PeerId(id))),
            },
            "accepted" => drop(world.accepted(&tx)),
            "evicted" => world.pool.0.retain(|other| *other != txid(&tx) && *other != wtxid(&tx)),
            "package" => {
                let (parent, child) = (tx, Arc::clone(&self.txs[usize::try_from(id).unwrap()]));
                let package = Package { parent, child, parent_sender: PeerId(0), child_sender: PeerId(0) };
                world.download.package_decided(&package, argument == 1, &mut world.random);
            }
            "block" => world.block_of(&[&tx]),
            "tip" => world.download.tip_changed(&mut world.random),
            "reorg" => world.download.block_disconnected(&mut world.random),
            _ => return self.reject(call, &tx, id, argument == 1),
        }
        "-".to_owned()
    }

    fn reject(&mut self, class: &str, tx: &Arc<Transaction>, id: u64, is_first: bool) -> String {
        let class = match class {
            "missing" => RejectClass::MissingInputs,
            "stripped" => RejectClass::WitnessStripped,
            "reconsiderable" => RejectClass::Reconsiderable,
            "inputs" => RejectClass::InputsNotStandard,
            "other" => RejectClass::Other,
            _ => panic!("{class}"),
        };
        let result = self.world.with(|download, context| download.rejected(tx, class, PeerId(id), is_first, context));
        let mut text = flag(result.is_extra_for_compact_blocks);
        text.extend(result.parents.iter().map(|parent| name(&GenTxid::Txid(*parent))));
        text + &result.package.map_or(String::new(), |package| format!(";{}", self.package_text(&package)))
    }

    /// Moves orphans to the work sets that Core chose at random.
    fn choose_as_core(&mut self, orphans: &str) {
        let chosen: BTreeMap<usize, u64> = (orphans.split(',').filter_map(|entry| entry.strip_suffix('*')))
            .map(|entry| entry.split_once(':').unwrap())
            .map(|(tx, peer)| (tx.parse().unwrap(), peer.parse().unwrap()))
            .collect();
        let own: Vec<_> = self.world.download.orphanage.announcements().filter(|entry| entry.2).collect();
        for (wtxid, peer, _) in own {
            if let Some(to) = chosen.get(&self.number(wtxid)) {
                self.world.download.orphanage.reassign(wtxid, peer, PeerId(*to));
            }
        }
    }

    fn state(&self) -> String {
        let download = &self.world.download;
        let mut text = download.requests.len().to_string();
        for id in (0..5).map(PeerId) {
            text += &format!(":{}:{}", download.requests.count(id), download.requests.in_flight_count(id));
        }
        text += " -";
        for (wtxid, peer, is_in_work_set) in download.orphanage.announcements() {
            text += &format!(",{}:{peer}{}", self.number(wtxid), if is_in_work_set { "*" } else { "" });
        }
        text
    }
}

fn peer_of_flags(flags: usize) -> RelayPeer {
    let permissions = if flags & 2 != 0 { Permissions::RELAY } else { Permissions::NONE };
    RelayPeer { is_preferred: flags & 4 != 0, permissions, wtxid_relay: flags & 1 != 0, ..RelayPeer::sample() }
}

#[test]
fn recorded_calls_of_core_have_the_same_results() {
    let trace = core_trace(include_bytes!("../../../../../../testdata/vectors/core/txdownload_trace.txt.zst"));
    let mut replay = Replay::new();
    let mut calls = 0;
    for line in trace.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["round"] => {
                replay = Replay::new();
                (0..3).for_each(|id| replay.world.download.disconnected(PeerId(id)));
            }
            ["tx", hex] => {
                let bytes = lydian_primitives::hex(hex).unwrap();
                replay.txs.push(Arc::new(Transaction::parse(bytes).unwrap()));
            }
            [call, tx, peer, argument, answer, counts, orphans] => {
                let (peer, argument) = (peer.parse().unwrap(), argument.parse().unwrap());
                let found = replay.call(call, tx.parse().unwrap(), peer, argument);
                assert_eq!(found, answer, "call {calls}: {line}");
                replay.choose_as_core(orphans);
                assert_eq!(replay.state(), format!("{counts} {orphans}"), "call {calls}: {line}");
                calls += 1;
            }
            _ => panic!("{line}"),
        }
    }
    assert_eq!(calls, 130 * 150);
}
