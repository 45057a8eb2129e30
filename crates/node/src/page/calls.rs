//! The RPC methods, for users of the page.

use crate::answers;
use crate::serve::Serving;
use lydian_dashboard::{CallError, Calls};
use lydian_rpc::{Context, Whitelist};
use std::sync::Arc;

/// The RPC methods, for users of the page: what `-rpcwhitelist` says of a user counts.
#[derive(Debug)]
pub(super) struct PageCalls {
    context: Arc<Context>,
    whitelist: Whitelist,
}

impl PageCalls {
    pub(super) fn new(serving: &Serving) -> PageCalls {
        PageCalls { context: serving.context(), whitelist: serving.whitelist() }
    }
}

impl Calls for PageCalls {
    fn call(&self, user: &str, method: &str, params: &str) -> Result<String, CallError> {
        let result = answers::call(&self.context, &self.whitelist, user, method, params);
        result.map_err(|error| CallError { code: error.code, message: error.message })
    }
}
