//! The registry: which workflows have an actor, and how events reach it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::actor::{Actor, ActorContext};
use crate::limits::{ACTIVE_WORKFLOWS_MAX, MAILBOX_MAX};
use crate::storage::Receipt;
use crate::wire::CompletionMessage;
use crate::workflow::WorkflowId;

/// A received completion and the right to acknowledge it.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) completion: CompletionMessage,
    pub(super) receipt: Receipt,
}

/// What can happen to a workflow. Everything that changes its state comes this way, so there is
/// one writer.
#[derive(Debug)]
pub(super) enum Event {
    /// A worker reported an attempt.
    Completion(Box<Delivery>),
    /// Somebody asked to cancel the workflow.
    Cancel,
    /// Look whether something is to be done: it is new, or has not moved for long.
    Inspect,
}

type Mailboxes = HashMap<WorkflowId, mpsc::Sender<Event>>;

/// The actors of a term.
#[derive(Debug)]
pub(super) struct Registry {
    context: ActorContext,
    tasks: TaskTracker,
    lost: CancellationToken,
    mailboxes: Mutex<Mailboxes>,
}

impl Registry {
    pub(super) fn new(
        context: ActorContext,
        tasks: TaskTracker,
        lost: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            context,
            tasks,
            lost,
            mailboxes: Mutex::default(),
        })
    }

    fn mailboxes(&self) -> MutexGuard<'_, Mailboxes> {
        self.mailboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event to the workflow's actor, starting one where there is none. `false` if the
    /// mailbox is full: a completion then stays in its queue and comes again.
    pub(super) fn route(self: &Arc<Self>, id: &WorkflowId, event: Event) -> bool {
        let mut mailboxes = self.mailboxes();
        let mailbox = mailboxes
            .entry(id.clone())
            .or_insert_with(|| self.start(id.clone()));
        match mailbox.try_send(event) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => false,
            // The actor ended without retiring: it panicked, or the term is over. A new one starts
            // from the stored state.
            Err(mpsc::error::TrySendError::Closed(event)) => {
                let mailbox = self.start(id.clone());
                let routed = mailbox.try_send(event).is_ok();
                mailboxes.insert(id.clone(), mailbox);
                routed
            }
        }
    }

    fn start(self: &Arc<Self>, id: WorkflowId) -> mpsc::Sender<Event> {
        let (sender, mailbox) = mpsc::channel(MAILBOX_MAX);
        let actor = Actor::new(id, self.context.clone(), self.clone(), mailbox);
        let lost = self.lost.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = lost.cancelled() => {}
                () = actor.run() => {}
            }
        });
        sender
    }

    /// Takes an idle actor out, unless an event reached it meanwhile. Events are routed under the
    /// same lock, so none is lost between the look and the removal.
    pub(super) fn retire(&self, id: &WorkflowId, mailbox: &mpsc::Receiver<Event>) -> bool {
        let mut mailboxes = self.mailboxes();
        if !mailbox.is_empty() {
            return false;
        }
        mailboxes.remove(id);
        true
    }

    /// How many workflows are in memory.
    pub(super) fn active(&self) -> usize {
        self.mailboxes().len()
    }

    /// How long the lease certainly still holds.
    pub(super) fn lease_remaining(&self) -> std::time::Duration {
        self.context.fence.remaining()
    }

    /// Whether more workflows are in memory than should be, so that idle ones leave at once.
    pub(super) fn is_crowded(&self) -> bool {
        self.mailboxes().len() > ACTIVE_WORKFLOWS_MAX
    }
}
