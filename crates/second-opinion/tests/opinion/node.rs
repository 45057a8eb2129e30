//! An engine on a simulated disk, with a second opinion whose reports are kept.

use lydian_consensus::{Params, U256};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, InitialDownload, Layout, Settings as EngineSettings, Unobserved};
use lydian_primitives::RawBlock;
use lydian_primitives::build::MutBlock;
use lydian_second_opinion::{Listener, Monitor, Report, SecondOpinion, Settings, Verifier};
use std::sync::{Arc, Mutex};

/// Whether the blocks are new, or of a sync.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Tip,
    Sync { one_in: u64 },
}

#[derive(Debug, Default)]
pub struct Reports(Mutex<Vec<Report>>);

impl Listener for Reports {
    fn report(&self, report: &Report) {
        self.0.lock().unwrap().push(report.clone());
    }
}

impl Reports {
    pub fn all(&self) -> Vec<Report> {
        self.0.lock().unwrap().clone()
    }
}

/// A second opinion that no engine has yet.
pub fn second_opinion(verifier: Box<dyn Verifier>, params: &Params, place: Place) -> (SecondOpinion, Arc<Reports>) {
    let initial_download = InitialDownload::new(U256::ZERO, 600);
    let sampled_one_in = match place {
        Place::Tip => {
            assert!(initial_download.note_tip(1_000, U256::ZERO, 1_000));
            u64::MAX
        }
        Place::Sync { one_in } => one_in,
    };
    let initial_download = Arc::new(initial_download);
    let settings = Settings { params: params.clone(), initial_download, secret: [7; 16], sampled_one_in };
    let reports = Arc::new(Reports::default());
    (SecondOpinion::start(verifier, settings, Arc::<Reports>::clone(&reports)).unwrap(), reports)
}

/// An engine with a second opinion.
pub struct Node {
    pub engine: Engine,
    pub monitor: Monitor,
    reports: Arc<Reports>,
}

impl Node {
    pub fn open(verifier: Box<dyn Verifier>, params: &Params, place: Place) -> Node {
        let (follower, reports) = second_opinion(verifier, params, place);
        let monitor = follower.monitor();
        let layout = Layout { blocks: "blocks".into(), index: "blocks/index".into(), coins: "chainstate".into() };
        let settings = EngineSettings { followers_required: true, ..EngineSettings::new(2) };
        let disk = Arc::new(SimDisk::new(1));
        let engine = Engine::open(disk, &layout, params.clone(), settings, vec![Box::new(follower)]).unwrap().engine;
        Node { engine, monitor, reports }
    }

    pub fn accept(&self, block: &MutBlock) {
        self.accept_bytes(&block.encode());
    }

    pub fn accept_bytes(&self, bytes: &[u8]) {
        let block = RawBlock::new(bytes).parse().unwrap();
        self.engine.accept_block(block, i64::from(u32::MAX), &Unobserved).unwrap().unwrap();
    }

    pub fn reports(&self) -> Vec<Report> {
        self.reports.all()
    }

    /// Ends the engine. Returns all reports.
    pub fn close(self) -> Vec<Report> {
        drop(self.engine);
        self.reports.all()
    }
}
