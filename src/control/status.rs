//! Whether this process can serve.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Control;
use crate::coordinator::Role;

/// What the coordinator of this process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CoordinatorRole {
    /// It has not asked for the lease yet.
    Starting,
    /// Another one leads; it waits.
    Standby,
    /// It leads.
    Leader,
    /// It was shut down.
    Stopped,
}

/// Whether this process can answer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// Whether it can.
    pub ready: bool,
    /// The role of its coordinator, if it has one.
    pub role: Option<CoordinatorRole>,
    /// What the storage said, if it cannot be reached.
    pub storage_error: Option<String>,
}

impl Control {
    /// The role of this process's coordinator.
    #[must_use]
    pub fn role(&self) -> Option<CoordinatorRole> {
        let role = self.coordinator.as_ref()?.role();
        let role = match *role.borrow() {
            Role::Starting => CoordinatorRole::Starting,
            Role::Standby => CoordinatorRole::Standby,
            Role::Leader => CoordinatorRole::Leader,
            Role::Stopped => CoordinatorRole::Stopped,
        };
        Some(role)
    }

    /// Asks the storage for something small. A standby is ready too: it answers everything.
    pub async fn readiness(&self) -> Readiness {
        let names = self.store.names();
        let tables = &self.store.storage().tables;
        let nothing = crate::storage::Filter::Or(Vec::new());
        let asked = tables.query(names.index_table(), &nothing, None, 1).await;
        let storage_error = asked.err().map(|error| error.to_string());
        let role = self.role();
        let up = !matches!(
            role,
            Some(CoordinatorRole::Starting | CoordinatorRole::Stopped)
        );
        Readiness {
            ready: storage_error.is_none() && up,
            role,
            storage_error,
        }
    }
}
