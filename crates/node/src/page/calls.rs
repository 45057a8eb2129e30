//! The RPC methods, for users of the page.

use super::{PageNode, pool_lists};
use crate::answers;
use crate::serve::Serving;
use lydian_dashboard::{CallError, Calls};
use lydian_rpc::{Context, Whitelist, code};
use std::sync::Arc;

/// What the methods of the page begin with, which RPC does not have.
const OWN_PREFIX: &str = "lydian_";

/// The RPC methods and those of the page, for its users: what `-rpcwhitelist` says of a user counts for both.
#[derive(Debug)]
pub(super) struct PageCalls {
    node: Arc<PageNode>,
    context: Arc<Context>,
    whitelist: Whitelist,
}

impl PageCalls {
    pub(super) fn new(serving: &Serving, node: &Arc<PageNode>) -> PageCalls {
        PageCalls { node: Arc::clone(node), context: serving.context(), whitelist: serving.whitelist() }
    }

    /// Calls a method of the page.
    fn own(&self, user: &str, method: &str, params: &str) -> Result<String, CallError> {
        if !self.allows(user, method) {
            let message = answers::not_whitelisted(user, method);
            return Err(CallError { code: code::INTERNAL_ERROR, message });
        }
        if let Some(answer) = pool_lists::call(&self.node, method, params) {
            return answer;
        }
        let Some(serving) = self.node.serving() else {
            let message = "The explorer answers once the node has loaded its blocks.".to_owned();
            return Err(CallError { code: code::IN_WARMUP, message });
        };
        let unknown =
            || Err(CallError { code: code::METHOD_NOT_FOUND, message: format!("There is no method {method}.") });
        serving.explorer.call(method, params).unwrap_or_else(unknown)
    }
}

impl Calls for PageCalls {
    fn allows(&self, user: &str, method: &str) -> bool {
        !self.whitelist.is_shut_out(user) && self.whitelist.allows(user, method)
    }

    fn call(&self, user: &str, method: &str, params: &str) -> Result<String, CallError> {
        if method.starts_with(OWN_PREFIX) {
            return self.own(user, method, params);
        }
        let result = answers::call(&self.context, &self.whitelist, user, method, params);
        result.map_err(|error| CallError { code: error.code, message: error.message })
    }
}
