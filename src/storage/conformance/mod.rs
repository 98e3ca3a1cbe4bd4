//! The cases every backend and decorator passes: the ports' promises, executed.
//!
//! Each case is a plain async function over a [`Subject`] and panics when a promise is broken.
//! [`storage_conformance!`](crate::storage_conformance) expands to one named test per case:
//!
//! ```text
//! mod conformance {
//!     crate::storage_conformance!(super::subject);
//! }
//! ```
//!
//! Nothing here knows a backend. Where backends may differ, a case asks
//! [`Capabilities`](super::Capabilities), or accepts each answer the port's doc allows. Cases make
//! their own containers, queues and tables, under names no other run uses, so they may share an
//! account and run at once.

#![expect(
    clippy::unwrap_used,
    reason = "a case is a test: it fails by panicking"
)]

mod blob;
mod lease;
mod queue;
mod table;

pub use blob::*;
pub use lease::*;
pub use queue::*;
pub use table::*;

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;

use super::{Result, Storage};
use crate::clock::Clock;

/// How a test lets the backend's time pass.
pub type Elapse = fn(Duration) -> BoxFuture<'static, ()>;

/// Something an emulator does otherwise than the service it stands for. Nothing that jobq needs may
/// be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// In Azurite's filters, `ne` also matches rows whose property has another type. No filter of
    /// jobq uses `ne` on a property.
    NeMatchesOtherTypes,
}

/// One backend under test.
pub struct Subject {
    /// What is tested.
    pub storage: Storage,
    /// How soon "at once" is, for instance when a send wakes a waiting receive.
    pub promptly: Duration,
    elapse: Elapse,
    gaps: Vec<Gap>,
    run: String,
    _keep: Box<dyn Any + Send>,
}

impl Subject {
    /// A backend whose time passes by itself.
    #[must_use]
    pub fn new(storage: Storage) -> Self {
        let mut run = Clock::system().new_id();
        Self {
            storage,
            promptly: Duration::from_secs(2),
            elapse: |duration| Box::pin(tokio::time::sleep(duration)),
            gaps: Vec::new(),
            // The end of an id is its random part.
            run: run.split_off(20),
            _keep: Box::new(()),
        }
    }

    /// The same backend, with a faster way to let its time pass.
    #[must_use]
    pub fn with_elapse(mut self, elapse: Elapse) -> Self {
        self.elapse = elapse;
        self
    }

    /// The same backend, for which "at once" takes as long as this.
    #[must_use]
    pub fn with_promptly(mut self, promptly: Duration) -> Self {
        self.promptly = promptly;
        self
    }

    /// The same backend, which is an emulator with these gaps.
    #[must_use]
    pub fn with_gaps(mut self, gaps: &[Gap]) -> Self {
        self.gaps = gaps.to_vec();
        self
    }

    fn has(&self, gap: Gap) -> bool {
        self.gaps.contains(&gap)
    }

    /// The same backend, with something that must outlive the case, such as its directory.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any + Send) -> Self {
        self._keep = Box::new(keep);
        self
    }

    /// Returns once the backend's time has advanced by `duration` and a little more.
    pub async fn elapse(&self, duration: Duration) {
        (self.elapse)(duration + Duration::from_millis(250)).await;
    }

    /// A container of this case's own.
    async fn container(&self) -> String {
        let name = format!("conformance-{}", self.run);
        self.storage.blobs.create_container(&name).await.unwrap();
        name
    }

    /// A queue of this case's own.
    async fn queue(&self) -> String {
        let name = format!("conformance-{}", self.run);
        self.storage.queues.create_queue(&name).await.unwrap();
        name
    }

    /// A table of this case's own.
    async fn table(&self) -> String {
        let name = format!("Conformance{}", self.run);
        self.storage.tables.create_table(&name).await.unwrap();
        name
    }
}

impl Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}

/// Fails unless `result` is an error of the given [kind](super::Error::kind).
#[track_caller]
fn assert_fails<T: Debug>(result: Result<T>, kind: &str) {
    let error = result.expect_err(kind);
    assert_eq!(error.kind(), kind, "{error}");
}

/// Expands to one `#[tokio::test]` per conformance case. The argument is the path of an async
/// function that makes a fresh [`Subject`]; attributes before it are put on every test.
#[doc(hidden)]
#[macro_export]
macro_rules! storage_conformance {
    (@tests [$attributes:tt $subject:path] $($case:ident)*) => {
        $( $crate::storage_conformance! { @test $attributes $subject, $case } )*
    };
    (@test [$(#[$attribute:meta])*] $subject:path, $case:ident) => {
        #[tokio::test]
        $(#[$attribute])*
        async fn $case() {
            $crate::storage::conformance::$case(&$subject().await).await;
        }
    };
    (@names [] $($case:ident)*) => {
        [$(stringify!($case)),*]
    };
    (@cases $expand:ident [$($argument:tt)*]) => {
        $crate::storage_conformance! { @$expand [$($argument)*]
            blob_create_container_may_be_repeated
            blob_create_only_conflicts
            blob_create_only_works_again_after_delete
            blob_delete_of_a_missing_one_is_not_found
            blob_empty_content_is_kept
            blob_etag_differs_after_every_write
            blob_etag_is_not_reused_after_delete
            blob_get_if_changed_skips_the_known_version
            blob_increments_by_eight_writers_add_up
            blob_invalid_names_are_refused
            blob_large_content_is_read_whole
            blob_list_goes_in_byte_order_and_keeps_to_the_prefix
            blob_list_of_an_empty_container_is_one_empty_page
            blob_list_pages_show_every_blob_once_while_others_come
            blob_list_refuses_an_impossible_page
            blob_missing_container_is_not_found
            blob_names_and_bytes_round_trip
            blob_overwrite_takes_anything
            blob_read_during_writes_sees_one_version
            blob_version_mismatch_changes_nothing
            blob_version_of_a_deleted_blob_fails

            lease_break_frees_at_once
            lease_break_without_a_lease_is_fine
            lease_concurrent_acquires_have_one_winner
            lease_duration_outside_the_range_is_refused
            lease_holder_of_an_unleased_name_is_not_found
            lease_holder_shows_the_latest_content
            lease_lapses_and_passes_to_another
            lease_lives_on_when_renewed
            lease_missing_container_is_not_found
            lease_release_by_another_id_changes_nothing
            lease_release_lets_others_in_at_once
            lease_same_id_acquires_again
            lease_second_id_is_refused

            queue_batch_send_answers_in_order_despite_a_refusal
            queue_clear_removes_hidden_messages_too
            queue_create_may_be_repeated
            queue_delayed_message_appears_after_its_delay
            queue_delete_answers_in_order_despite_a_refusal
            queue_delete_with_a_stale_receipt_is_lost
            queue_deleted_message_never_reappears
            queue_extend_hides_for_longer
            queue_extend_replaces_the_receipt
            queue_extend_with_zero_gives_back_at_once
            queue_four_receivers_share_every_message_once
            queue_impossible_calls_are_invalid
            queue_length_counts_hidden_messages
            queue_list_keeps_to_the_prefix
            queue_message_at_the_limit_fits_and_one_past_does_not
            queue_message_reappears_after_its_visibility_timeout
            queue_missing_queue_is_not_found
            queue_old_messages_come_before_new_ones
            queue_peek_leaves_messages_as_they_are
            queue_peek_skips_hidden_messages
            queue_receive_keeps_to_its_maximum
            queue_receive_of_an_empty_queue_returns_nothing
            queue_receive_waits_no_longer_than_told
            queue_receivers_never_share_a_visible_message
            queue_text_round_trips_or_is_refused
            queue_waiting_receive_wakes_when_a_delay_ends
            queue_waiting_receive_wakes_when_a_message_is_given_back
            queue_waiting_receive_wakes_when_a_message_is_sent

            table_create_may_be_repeated
            table_delete_removes_the_row
            table_etag_differs_after_every_write
            table_filter_and_or_combine
            table_filter_by_keys
            table_filter_compares_each_type
            table_filter_never_matches_a_missing_or_differently_typed_property
            table_impossible_calls_are_invalid
            table_insert_conflicts_with_an_existing_row
            table_merge_into_a_missing_row_is_not_found
            table_merge_keeps_other_properties
            table_merge_with_a_stale_etag_changes_nothing
            table_merges_of_different_properties_all_stay
            table_missing_table_is_not_found
            table_pages_have_no_gap_and_no_double_while_rows_change
            table_query_after_a_deleted_key_goes_on
            table_rows_come_in_byte_order
            table_typed_properties_round_trip
            table_upsert_replaces_the_whole_row
        }
    };
    (names) => { $crate::storage_conformance! { @cases names [] } };
    ($(#[$attribute:meta])* $subject:path) => {
        $crate::storage_conformance! { @cases tests [[$(#[$attribute])*] $subject] }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_case_is_in_the_list() {
        let listed = crate::storage_conformance!(names);
        let sources = [
            include_str!("blob.rs"),
            include_str!("lease.rs"),
            include_str!("queue.rs"),
            include_str!("table.rs"),
        ];
        let written: Vec<&str> = sources
            .iter()
            .flat_map(|source| source.split("pub async fn ").skip(1))
            .filter_map(|rest| rest.split('(').next())
            .collect();
        for case in &written {
            assert!(listed.contains(case), "{case} runs nowhere");
        }
        assert_eq!(written.len(), listed.len());
    }
}
