//! Headers in large batches: while blocks are validated, and at a chain that ends or breaks a rule.

use crate::lydian::{How, Lydian, Place};
use crate::seeds::for_seeds;
use crate::story::{NOW, Story};
use lydian_chains::rng::Random;
use lydian_consensus::pow::is_proof_of_work;
use lydian_consensus::{Chain, Params, Rejected, Rule, Violation};
use lydian_engine::limits::HEADERS_AT_ONCE;
use lydian_engine::{Cancel, Engine, Event, Observer};
use lydian_primitives::{Header, Height};
use std::sync::Mutex;

/// A chain of headers on top of a known one.
fn chain_on(mut last: Header, count: usize, params: &Params) -> Vec<Header> {
    let next = |_| {
        last = Header { prev_block: last.hash(), time: last.time + 1, version: 4, nonce: 0, ..last };
        while !is_proof_of_work(&last.hash(), last.bits, params) {
            last.nonce += 1;
        }
        last
    };
    (0..count).map(next).collect()
}

/// Submits headers from within an event, while the validating thread holds the writer's lock: if that lock were needed,
/// the test would deadlock.
struct Bringer<'a> {
    engine: &'a Engine,
    headers: Mutex<Vec<Vec<Header>>>,
    brought: Mutex<usize>,
}

impl Observer for Bringer<'_> {
    fn event(&self, _: &Event<'_>) {
        if let Some(headers) = self.headers.lock().unwrap().pop() {
            let answer = self.engine.accept_headers(&headers, i64::from(NOW)).unwrap();
            assert_eq!((answer.count, answer.refused), (headers.len(), None));
            *self.brought.lock().unwrap() += answer.new;
        }
    }
}

#[test]
fn headers_come_while_blocks_are_validated() {
    let mut brought = 0;
    for_seeds("headers::headers_come_while_blocks_are_validated", 30, |seed| {
        let mut random = Random::new(seed, "headers");
        let how = How::random(&mut random);
        let story = Story::new(seed);
        let place = Place::new(&how, &format!("headers-{seed}"));
        let lydian = Lydian::open(&place, &story.params, &how).unwrap();
        let genesis = *story.params.genesis_block().parse().unwrap().header();
        let count = 5 * (1 + random.index(300));
        let headers = chain_on(genesis, count, &story.params);
        for block in &story.blocks {
            let _ = lydian.engine.store_block(crate::expected::parse(&block.bytes), i64::from(NOW)).unwrap();
        }
        let parts = headers.chunks(count / 5).rev().map(<[Header]>::to_vec).collect();
        let bringer = Bringer { engine: &lydian.engine, headers: Mutex::new(parts), brought: Mutex::default() };
        lydian.engine.advance(&Cancel::new(), &bringer).unwrap();
        lydian.engine.checkpoint(&bringer).unwrap();
        let new = *bringer.brought.lock().unwrap();
        brought += new;
        if new > 0 {
            let known = |engine: &Engine| engine.accept_headers(&headers[..new], i64::from(NOW)).unwrap();
            assert_eq!((known(&lydian.engine).new, known(&lydian.engine).count), (0, new));
            lydian.engine.checkpoint(&bringer).unwrap();
            let last = *bringer.brought.lock().unwrap();
            drop(lydian);
            let again = Lydian::open(&place, &story.params, &how).unwrap();
            let answer = again.engine.accept_headers(&headers[..last], i64::from(NOW)).unwrap();
            assert!(answer.new <= last - new, "what was recorded before the checkpoint is there: {answer:?}");
        }
    });
    assert!(brought > 1_000, "{brought} headers");
}

/// limit: HEADERS_AT_ONCE at
/// limit: HEADERS_AT_ONCE above
#[test]
fn many_headers_are_entered_part_by_part() {
    let params = Params::new(Chain::Regtest);
    let genesis = *params.genesis_block().parse().unwrap().header();
    let how = How::random(&mut Random::new(1, "parts"));
    for count in [HEADERS_AT_ONCE, HEADERS_AT_ONCE + 1] {
        let place = Place::new(&how, &format!("header-parts-{count}"));
        let lydian = Lydian::open(&place, &params, &how).unwrap();
        let mut headers = chain_on(genesis, count + 2, &params);
        // The last but one does not extend the one before it.
        headers[count].prev_block = genesis.hash();
        headers[count].time = genesis.time;
        while !is_proof_of_work(&headers[count].hash(), headers[count].bits, &params) {
            headers[count].nonce += 1;
        }
        let answer = lydian.engine.accept_headers(&headers, i64::from(NOW)).unwrap();
        assert_eq!((answer.count, answer.new), (count, count));
        let too_old = Rejected::Violation(Violation::of(Rule::TimeTooOld));
        assert_eq!(answer.refused, Some((headers[count].hash(), too_old)));
        assert_eq!(lydian.engine.best_header_height(), Height(u32::try_from(count).unwrap()));
    }
}
