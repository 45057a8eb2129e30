//! Makes templates: for calls, and ahead of them on a thread of its own.
//!
//! Input: the tip, the mempool, the clock. Output: the template that [`Templates`] keeps. Invariants: a block that
//! joins the chain waits for no template; a call returns no template for a tip that other calls do not report yet; the
//! thread makes none before the first call, nor after [`KEPT_WARM`] without one, and what it makes is logged and
//! counted when a call returns it.
//!
//! [`Templates`]: crate::templates::Templates

use crate::context::{Context, LogLevel};
use crate::error::RpcError;
use crate::templates::{Assembled, Fresh, Moment, NextBlock, Template};
use lydian_consensus::{Rule, Violation};
use lydian_engine::Engine;
use lydian_mempool::Mempool;
use lydian_mempool::pool::{BlockContent, Snapshot};
use lydian_script::opcodes::OP_1;
use lydian_stdx::AbortOnPanic;
use std::io;
use std::sync::Arc;
use std::thread::{Builder as Thread, JoinHandle};
use std::time::Duration;

/// For this long after the last call, templates are made ahead.
const KEPT_WARM: Duration = Duration::from_hours(1);

/// The builder looks at the mempool this often.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// After this time it makes a new template for changes of the mempool: before a call would have to.
const REBUILT_SECONDS: i64 = 4;

/// The transactions of the next block.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) next: NextBlock,
    pub(crate) content: BlockContent,
    /// The changes of the mempool before.
    updates: u32,
}

impl Context {
    /// Chooses transactions for the block after the tip. `None` if the node stops.
    pub(crate) fn choose(&self, engine: &Engine) -> Result<Option<Chosen>, RpcError> {
        let mempool = self.mempool()?;
        while !self.is_stopping() {
            let next = NextBlock::after_tip(engine, self.settings.block_version);
            let Some(snapshot) = at_tip(mempool, &next) else { continue };
            let content = snapshot.block_content(&self.settings.block, next.height, next.median_time);
            return Ok(Some(Chosen { next, content, updates: snapshot.info().updates }));
        }
        Ok(None)
    }

    /// A call makes a block: logs it as Core does, and keeps its figures for `getmininginfo`.
    pub(crate) fn note_assembled(&self, assembled: &Assembled) {
        self.set_last_assembled(assembled.weight, assembled.transactions);
        self.host.log(LogLevel::Info, &assembled.line);
    }

    /// The template of the block after the tip, for a call: other calls report the tip already. `None` if the node
    /// stops.
    pub(crate) fn template(&self) -> Result<Option<Arc<Template>>, RpcError> {
        self.templates.note_asked(self.host.steady_micros());
        let engine = self.engine()?;
        while let Some(template) = self.latest_template()? {
            let parent = template.next.parent.hash;
            // After a vain wait the tip is the same: a miner must not wait for an index whose disk hangs.
            if engine.wait_until_settled(&parent) || engine.tip().hash == parent {
                return Ok(Some(template));
            }
        }
        Ok(None)
    }

    fn latest_template(&self) -> Result<Option<Arc<Template>>, RpcError> {
        if let Some(template) = self.fresh_template()? {
            return Ok(Some(template));
        }
        let _making = self.templates.make();
        // Another call may have made it meanwhile.
        match self.fresh_template()? {
            Some(template) => Ok(Some(template)),
            None => self.make_template(true),
        }
    }

    fn fresh_template(&self) -> Result<Option<Arc<Template>>, RpcError> {
        let tip = self.engine()?.tip().hash;
        let snapshot = self.mempool()?.snapshot();
        let (updates, pool_len) = (snapshot.info().updates, snapshot.len());
        let found = self.templates.fresh(Moment { tip, updates, pool_len, now: self.now() });
        Ok(found.map(|Fresh { template, is_first }| {
            if is_first {
                self.note_assembled(&template.assembled);
            }
            template
        }))
    }

    /// Makes a template and keeps it; with `is_asked`, a call returns it now.
    fn make_template(&self, is_asked: bool) -> Result<Option<Arc<Template>>, RpcError> {
        let (engine, now) = (self.engine()?, self.now());
        let Some(Chosen { next, content, updates }) = self.choose(&engine)? else { return Ok(None) };
        let assembled = Assembled::new(&next, &content, vec![OP_1]);
        if is_asked {
            self.templates.note_returned(updates);
            self.note_assembled(&assembled);
        }
        if let Err(violation) = check(&engine, &next, &content, now) {
            return Err(invalid_block(&violation.state(None)));
        }
        let template = Arc::new(Template::new(next, updates, &content, assembled, engine.params(), now));
        self.templates.keep(Arc::clone(&template), is_asked);
        Ok(Some(template))
    }

    /// Starts the thread that makes templates ahead.
    pub fn start_builder(self: &Arc<Context>) -> io::Result<TemplateBuilder> {
        let context = Arc::clone(self);
        let run = move || {
            let _guard = AbortOnPanic;
            while !context.is_stopping() {
                let asked = context.templates.wait(LOOK_EVERY);
                let idle = |asked| context.host.steady_micros().saturating_sub(asked);
                if asked.is_some_and(|asked| u128::from(idle(asked)) < KEPT_WARM.as_micros()) {
                    // Without engine or mempool there is nothing to make.
                    let _ = context.build_ahead();
                }
            }
        };
        let thread = Thread::new().name("template".to_owned()).spawn(run)?;
        Ok(TemplateBuilder { context: Arc::clone(self), thread: Some(thread) })
    }

    /// Makes a template if the last one is of another tip, or will soon be too old.
    fn build_ahead(&self) -> Result<(), RpcError> {
        let (tip, now) = (self.engine()?.tip().hash, self.now());
        let updates = self.mempool()?.snapshot().info().updates;
        let is_good = |(made, of): (i64, u32)| of == updates || now.saturating_sub(made) < REBUILT_SECONDS;
        if self.templates.made(&tip).is_some_and(is_good) {
            return Ok(());
        }
        let _making = self.templates.make();
        if !self.templates.made(&tip).is_some_and(is_good) {
            self.make_template(false)?;
        }
        Ok(())
    }
}

/// Core's error about a block that it assembled.
pub(crate) fn invalid_block(state: &str) -> RpcError {
    RpcError::misc(format!("TestBlockValidity failed: {state}"))
}

/// Checks a block before it is a template. Core checks the blocks that it makes as a whole. Of ours only the header can
/// be wrong, if the clock is far behind the tip or `-blockversion` is too low, and witnesses before segwit.
fn check(engine: &Engine, next: &NextBlock, content: &BlockContent, now: i64) -> Result<(), Violation> {
    next.check_header(engine, now)?;
    if !next.is_segwit && content.entries.iter().any(|entry| entry.tx().view().has_witness()) {
        return Err(Violation::of(Rule::UnexpectedWitness));
    }
    Ok(())
}

/// The thread that makes templates ahead. Dropping it stops the context and waits for its end.
#[derive(Debug)]
pub struct TemplateBuilder {
    context: Arc<Context>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for TemplateBuilder {
    fn drop(&mut self) {
        self.context.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process.
            let _ = thread.join();
        }
    }
}

/// The mempool, once it has followed the chain to the parent of the block. `None`: look again, it may have moved on.
fn at_tip(mempool: &Mempool, next: &NextBlock) -> Option<Arc<Snapshot>> {
    let is_there = |snapshot: &Arc<Snapshot>| snapshot.info().tip.hash == next.parent.hash;
    if let Some(snapshot) = Some(mempool.snapshot()).filter(is_there) {
        return Some(snapshot);
    }
    // A block is on its way from the chain to the mempool, or transactions of a reorganisation are on their way back.
    if !mempool.wait_for(&next.parent.hash) {
        return None;
    }
    if let Some(snapshot) = Some(mempool.snapshot()).filter(is_there) {
        return Some(snapshot);
    }
    mempool.settle();
    Some(mempool.snapshot()).filter(is_there)
}
