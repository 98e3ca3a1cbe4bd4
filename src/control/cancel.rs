//! Cancelling a workflow.

use super::{Control, Error, Result};
use crate::workflow::WorkflowId;

impl Control {
    /// Asks for a workflow to be cancelled. After `Ok` the request is durable and whoever leads
    /// acts on it: what has not started never will, running commands are stopped. Asking again is
    /// fine.
    ///
    /// # Errors
    /// [`Error::AlreadyTerminal`] if it ended before; the store's own.
    pub async fn cancel(&self, id: &WorkflowId) -> Result<()> {
        let state = self.store.load(id).await?.runtime.state();
        if state.is_terminal() {
            return Err(Error::AlreadyTerminal(id.clone(), state));
        }
        self.store.request_cancel(id).await?;
        Ok(())
    }
}
