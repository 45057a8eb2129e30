//! The protection against low-work chains: an honest chain, each kind of attack, and the bounds of memory.

use super::*;
use crate::limits::HEADERS_COUNT_MAX;
use lydian_consensus::Chain;
use lydian_consensus::pow::is_proof_of_work;
use rand_chacha::rand_core::SeedableRng;
use std::collections::HashMap;

const SYNC: HeadersSyncParams = HeadersSyncParams { commitment_period: 100, redownload_buffer_size: 1_000 };
const UNIX_NOW: i64 = 1_800_000_000;

fn params() -> Params {
    Params::new(Chain::Regtest)
}

/// Returns a chain on top of a header; a different `tag` gives a different chain.
fn chain_on(mut last: Header, count: usize, tag: u8, params: &Params) -> Vec<Header> {
    let next = |_| {
        last = Header {
            prev_block: last.hash(),
            merkle_root: [tag; 32],
            time: last.time + 600,
            nonce: 0,
            version: 4,
            ..last
        };
        while !is_proof_of_work(&last.hash(), last.bits, params) {
            last.nonce += 1;
        }
        last
    };
    (0..count).map(next).collect()
}

/// One peer and a tree; the peer's messages answer our requests.
struct Bench {
    params: Params,
    tree: HeaderTree,
    peer: PeerHeaders,
    random: ChaCha20Rng,
    minimum: U256,
    now: Duration,
    sync: HeadersSyncParams,
    is_trusted: bool,
}

impl Bench {
    /// A regtest tree that requires the work of `headers` headers, two units each.
    fn new(headers: u32, seed: u64) -> Bench {
        let params = params();
        Bench {
            tree: HeaderTree::new(&params),
            params,
            peer: PeerHeaders::new(),
            random: ChaCha20Rng::seed_from_u64(seed),
            minimum: U256::from_u64(u64::from(headers + 1) * 2),
            now: Duration::from_secs(1),
            sync: SYNC,
            is_trusted: false,
        }
    }

    fn receive(&mut self, headers: &[Header]) -> Received {
        let context = HeadersContext {
            tree: &self.tree,
            params: &self.params,
            sync: self.sync,
            minimum_chain_work: self.minimum,
            now: self.now,
            unix_now: UNIX_NOW,
            is_trusted: self.is_trusted,
        };
        let mut received = self.peer.receive(headers, &context, &mut self.random);
        if let Some(last) = received.accept.last() {
            let entered = self.tree.accept_headers(&received.accept, UNIX_NOW, &self.params, &mut |_, _| {});
            assert_eq!(entered, Ok(()));
            let last = self.tree.find(&last.hash()).unwrap();
            let more = self.peer.entered(last, &self.tree, self.now);
            assert!(more.is_none() || received.getheaders.is_none(), "one request at a time");
            received.getheaders = received.getheaders.or(more);
        }
        received
    }

    fn serve(&mut self, chain: &[Header], when_again: &[Header]) -> Served {
        let genesis = *self.params.genesis_block().parse().unwrap().header();
        let places = |chain: &[Header]| -> HashMap<BlockHash, usize> {
            HashedHeader::many(chain).iter().zip(1..).map(|(header, at)| (header.hash(), at)).collect()
        };
        let (first, again) = (places(chain), places(when_again));
        let (mut served, mut is_again) = (Served::default(), false);
        let mut locator = self.peer.request(self.now, || first_locator(&self.tree));
        while let Some(hashes) = locator.take() {
            assert!(hashes.len() <= 101, "what peers take");
            assert_eq!(hashes.last(), Some(&genesis.hash()));
            is_again |= self.peer.sync().is_some_and(|sync| sync.phase() == HeadersSyncPhase::Redownload);
            let (chain, places) = if is_again { (when_again, &again) } else { (chain, &first) };
            let from = hashes.iter().find_map(|hash| places.get(hash)).copied().unwrap_or(0);
            let message = &chain[from..chain.len().min(from + HEADERS_COUNT_MAX)];
            let received = self.receive(message);
            served.messages += 1;
            served.faults += usize::from(received.fault.is_some());
            if let Some(sync) = self.peer.sync() {
                served.buffered_max = served.buffered_max.max(sync.buffered());
            }
            locator = received.getheaders;
            self.now += Duration::from_millis(50);
        }
        served
    }

    fn best(&self) -> (Height, BlockHash) {
        let best = self.tree.best_header();
        (self.tree.height(best), *self.tree.hash(best))
    }

    fn genesis(&self) -> Header {
        *self.params.genesis_block().parse().unwrap().header()
    }
}

#[derive(Debug, Default)]
struct Served {
    messages: usize,
    faults: usize,
    buffered_max: usize,
}

/// A long chain with enough work is downloaded twice and accepted completely, even if it grows in the meantime.
/// checklist: 60
#[test]
fn a_chain_with_the_work_is_entered() {
    let params = params();
    let genesis = *params.genesis_block().parse().unwrap().header();
    let chain = chain_on(genesis, 15_000, 1, &params);
    for (seed, needed, length, longer) in
        [(1, 15_000, 15_000, 15_000), (2, 12_345, 13_000, 14_999), (3, 2_001, 2_001, 2_001)]
    {
        let mut bench = Bench::new(needed, seed);
        let served = bench.serve(&chain[..length], &chain[..longer]);
        assert_eq!(bench.best(), (Height(u32::try_from(longer).unwrap()), chain[longer - 1].hash()));
        assert!(bench.peer.sync().is_none() && served.faults == 0);
        assert!(served.messages > longer / HEADERS_COUNT_MAX);
        assert!(served.buffered_max <= SYNC.redownload_buffer_size, "{served:?}");
    }
}

/// Nothing of a low-work chain is stored, whether it ends with a full message or not.
/// checklist: 60
#[test]
fn a_chain_without_the_work_costs_nothing() {
    for length in [1_999, 2_000, 4_001, 6_000, 11_999] {
        let mut bench = Bench::new(12_000, length as u64);
        let chain = chain_on(bench.genesis(), length, 1, &bench.params);
        let served = bench.serve(&chain, &chain);
        assert_eq!(bench.tree.len(), 1, "{length}: {served:?}");
        assert!(bench.peer.sync().is_none(), "{length}: the sync is over");
        assert_eq!(served.faults, 0);
    }
}

/// A peer shows one chain and sends another in the second download. It gets as many headers into the tree as the
/// compared bits allow: with 8 bits above a header, none or almost none.
/// checklist: 60
#[test]
fn another_chain_the_second_time_is_found_out() {
    let params = params();
    let genesis = *params.genesis_block().parse().unwrap().header();
    let shown = chain_on(genesis, 12_000, 1, &params);
    let sent = chain_on(genesis, 11_000, 2, &params);
    let mut entered = 0;
    for seed in 0..20 {
        let mut bench = Bench::new(12_000, seed);
        bench.serve(&shown, &sent);
        entered += bench.tree.len() - 1;
        assert!(bench.peer.sync().is_none());
    }
    // Each 100 headers pass with a probability of one half: of 20 tries, one in 1,024 passes 1,000 or more headers.
    assert!(entered <= 4_000, "{entered} headers");
    // The same chain, then only a part of it: no header without enough headers on top is accepted.
    let mut bench = Bench::new(12_000, 99);
    bench.serve(&shown, &shown[..3_500]);
    assert_eq!(bench.best().0, Height(2_500), "what had 1,000 headers above it was given out");
}

/// Headers must be continuous and have proof of work, and a message must not have too many; if they do not connect,
/// their ancestors are requested.
/// checklist: 80
#[test]
fn what_is_punished_and_what_is_not() {
    let mut bench = Bench::new(0, 1);
    let chain = chain_on(bench.genesis(), 10, 1, &bench.params);
    let mut gap = chain.clone();
    gap.remove(4);
    assert_eq!(bench.receive(&gap).fault, Some(HeadersFault::NonContinuous));
    let mut weak = chain.clone();
    while is_proof_of_work(&weak[9].hash(), weak[9].bits, &bench.params) {
        weak[9].nonce += 1;
    }
    assert_eq!(bench.receive(&weak).fault, Some(HeadersFault::InvalidProofOfWork));
    assert_eq!(bench.tree.len(), 1);

    let unconnected = bench.receive(&chain[3..]);
    assert_eq!((unconnected.fault, unconnected.unknown), (None, Some(chain[9].hash())));
    assert_eq!(unconnected.getheaders, Some(vec![bench.genesis().hash()]));
    assert_eq!(bench.receive(&chain[3..]).getheaders, None, "one request waits");
    bench.now += HEADERS_RESPONSE_TIME;
    assert_eq!(bench.receive(&chain[3..]).getheaders, None);
    bench.now += Duration::from_millis(1);
    assert!(bench.receive(&chain[3..]).getheaders.is_some(), "the answer is overdue");
    let all = bench.receive(&chain);
    assert_eq!((all.fault, all.accept.len(), all.getheaders), (None, 10, None));
    assert_eq!(bench.best().1, chain[9].hash());
}

/// limit: HEADERS_COUNT_MAX at
/// limit: HEADERS_COUNT_MAX above
/// checklist: 80
#[test]
fn a_message_of_headers_is_bounded() {
    let mut bench = Bench::new(0, 1);
    let chain = chain_on(bench.genesis(), HEADERS_COUNT_MAX + 1, 1, &bench.params);
    assert_eq!(bench.receive(&chain).fault, Some(HeadersFault::TooMany));
    let full = bench.receive(&chain[..HEADERS_COUNT_MAX]);
    assert_eq!(full.accept.len(), HEADERS_COUNT_MAX);
    let locator = full.getheaders.unwrap();
    assert_eq!(locator[0], chain[HEADERS_COUNT_MAX - 1].hash(), "a full message may have a next");
}

/// A chain that forks far below the tip must have at least the work of the tip minus 144 blocks; known headers and
/// trusted peers are exempt.
/// checklist: 60
#[test]
fn forks_far_below_are_not_kept() {
    let mut bench = Bench::new(0, 1);
    let chain = chain_on(bench.genesis(), 1_000, 1, &bench.params);
    bench.receive(&chain);
    bench.tree.activate(bench.tree.best_header());
    for (below, is_kept) in [(145, true), (146, false)] {
        let at = chain[999 - below];
        let fork = chain_on(at, 1, 7, &bench.params);
        assert_eq!(!bench.receive(&fork).accept.is_empty(), is_kept, "{below} below the tip");
    }
    assert_eq!(bench.receive(&chain[..5]).accept.len(), 5, "known");
    bench.is_trusted = true;
    let fork = chain_on(chain[0], 1, 8, &bench.params);
    assert_eq!(bench.receive(&fork).accept.len(), 1);
}

/// The number of stored bits is bounded by the length of a chain with valid timestamps; the difficulty must not jump
/// within a period.
/// checklist: 60, 61
#[test]
fn presync_ends_where_no_valid_chain_can_be() {
    let mut bench = Bench::new(100_000, 5);
    bench.sync.commitment_period = 1;
    let chain = chain_on(bench.genesis(), 4_000, 1, &bench.params);
    let genesis = bench.genesis();
    let tree = &bench.tree;
    let seconds = 300;
    let unix_now = i64::from(genesis.time) + seconds - 7_200;
    let random = &mut bench.random;
    let mut sync =
        HeadersSync::new(&bench.params, bench.sync, tree, HeaderId::GENESIS, bench.minimum, unix_now, random);
    let hashed = HashedHeader::many(&chain);
    let allowed = 6 * usize::try_from(seconds).unwrap();
    assert!(sync.process(&hashed[..allowed], true).request_more, "six a second");
    assert!(!sync.process(&hashed[allowed..=allowed], true).success);
    assert_eq!(sync.end(), Some(HeadersSyncEnd::TooLong));
    assert!(sync.next_locator().is_empty());
    // A clock before the chain allows no bits, without overflow.
    let mut sync =
        HeadersSync::new(&bench.params, bench.sync, tree, HeaderId::GENESIS, bench.minimum, i64::MIN, random);
    sync.process(&hashed[..2], true);
    assert_eq!(sync.end(), Some(HeadersSyncEnd::TooLong));

    let main = Params::new(Chain::Main);
    let tree = HeaderTree::new(&main);
    let genesis = tree.header(HeaderId::GENESIS);
    let easier = Header { prev_block: genesis.hash(), bits: 0x1d00_fffe, time: genesis.time + 600, ..genesis };
    let mut sync = HeadersSync::new(
        &main,
        HeadersSyncParams::of(Chain::Main),
        &tree,
        HeaderId::GENESIS,
        U256::MAX,
        UNIX_NOW,
        random,
    );
    assert!(!sync.process(&[HashedHeader::new(easier)], true).success);
    assert_eq!(sync.end(), Some(HeadersSyncEnd::DifficultyTransition));
}

/// Ten one by one, then steps that double, then the genesis block: as many as in Core.
#[test]
fn locators_have_cores_shape() {
    let mut bench = Bench::new(0, 1);
    let chain = chain_on(bench.genesis(), 1_000, 1, &bench.params);
    bench.receive(&chain);
    let best = bench.tree.best_header();
    let heights: Vec<_> =
        locator(&bench.tree, best).iter().map(|hash| bench.tree.height(bench.tree.find(hash).unwrap()).0).collect();
    let expected =
        [1000, 999, 998, 997, 996, 995, 994, 993, 992, 991, 990, 989, 987, 983, 975, 959, 927, 863, 735, 479, 0];
    assert_eq!(heights, expected);
    assert_eq!(first_locator(&bench.tree)[0], chain[998].hash());
    assert_eq!(locator(&bench.tree, HeaderId::GENESIS), [bench.genesis().hash()]);
}

#[allow(dead_code, reason = "each user takes its part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;

/// Real mainnet headers with mainnet parameters, after a retarget whose ancestors are missing: downloaded twice from a
/// peer, accepted completely. The required work is that of all but the last 5,000.
/// checklist: 60
#[test]
fn real_headers_are_downloaded_twice_and_entered() {
    let Some(path) = locate::shared("headers/main_150000_340000.bin.zst") else { return };
    let bytes = locate::read(&path);
    let headers: Vec<_> = bytes.as_chunks::<80>().0[1_200..41_200].iter().map(Header::parse).collect();
    let mut bench = Bench::new(0, 3);
    bench.params = Params::new(Chain::Main);
    bench.sync = HeadersSyncParams::of(Chain::Main);
    bench.tree = HeaderTree::rooted_at(&headers[0], Height(151_200));
    // The median time past of the first headers depends on headers that are not in the file.
    for header in &headers[1..11] {
        bench.tree.restore_header(header).unwrap();
    }
    let mut all = HeaderTree::rooted_at(&headers[0], Height(151_200));
    headers[1..35_000].iter().for_each(|header| {
        all.restore_header(header).unwrap();
    });
    bench.minimum = all.node(all.best_header()).chain_work;
    let random = &mut ChaCha20Rng::seed_from_u64(4);
    let start = bench.tree.best_header();
    let mut sync = HeadersSync::new(&bench.params, bench.sync, &bench.tree, start, bench.minimum, UNIX_NOW, random);
    let (mut from, mut entered, mut was_again) = (11, 0, false);
    while sync.phase() != HeadersSyncPhase::Final {
        let is_again = sync.phase() == HeadersSyncPhase::Redownload;
        if is_again && !was_again {
            (from, was_again) = (11, true);
        }
        let to = headers.len().min(from + HEADERS_COUNT_MAX);
        let processed = sync.process(&HashedHeader::many(&headers[from..to]), true);
        assert!(processed.success, "at {from}: {:?}", sync.end());
        assert!(sync.buffered() <= bench.sync.redownload_buffer_size);
        let taken = bench.tree.accept_headers(&processed.headers, UNIX_NOW, &bench.params, &mut |_, _| entered += 1);
        assert_eq!(taken, Ok(()));
        from = to;
    }
    assert_eq!(sync.end(), Some(HeadersSyncEnd::Complete));
    assert!(entered >= 35_000 - 11, "{entered} headers");
    let best = bench.tree.best_header();
    assert_eq!(*bench.tree.hash(best), headers[10 + entered].hash());
}
