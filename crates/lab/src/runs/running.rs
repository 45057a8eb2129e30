//! A node that runs in the background while the lab queries it.
//!
//! Input: a command. Output: a process that is killed when the value is dropped, with everything it started. It leads
//! its own process group, so that a Ctrl-C does not reach it. Must never: outlive the value.

use super::system;
use crate::error::LabError;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Result<Running, LabError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command.process_group(0).spawn().map(Running).map_err(|error| LabError::program(program, error))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn has_ended(&self) -> bool {
        system::has_ended(self.pid())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        system::kill_group(self.pid());
        let _ = self.0.wait();
    }
}
