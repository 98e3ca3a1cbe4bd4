//! The conformance suite: what every backend and decorator must do, case by case.
//!
//! Cases are plain async functions over a [`Rig`]; [`conformance_tests!`](crate::conformance_tests)
//! makes one named test of each for a backend, so that a failure reads
//! `storage::sqlite::tests::conformance::blob_create_only_conflicts`. Where backends differ, a
//! [`Capabilities`](super::Capabilities) flag or a field of the rig says so; cases never ask which
//! backend they run on.
//!
//! Cases let time pass by sleeping on tokio's clock. Backends whose time is simulated run them
//! under a paused runtime, where that takes no time at all.
#![expect(
    clippy::unwrap_used,
    reason = "cases are tests: they fail by panicking"
)]

pub mod blob;
pub mod lease;
pub mod queue;
pub mod table;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Storage;
use crate::clock::Clock;

/// What a case runs on.
#[derive(Debug)]
pub struct Rig {
    /// The backend.
    pub storage: Storage,
    /// The clock the backend runs by.
    pub clock: Clock,
    /// The shortest lease the backend grants.
    pub lease_duration: Duration,
    /// The shortest visibility timeout that is surely not over before a few operations are.
    pub visibility: Duration,
}

impl Rig {
    /// A name that no other case uses, of letters and digits, a letter first: it fits containers,
    /// queues and tables.
    #[must_use]
    pub fn unique(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("t{}x{number}", self.clock.new_id())
    }

    /// Lets time pass until `duration` is surely over by the backend's clock.
    pub async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration + Duration::from_millis(200)).await;
    }
}

/// One named test of each case. `$test` is the test attribute, `$rig` an async function that makes
/// the rig.
#[macro_export]
macro_rules! conformance_tests {
    ($test:meta, $rig:path) => {
        $crate::conformance_tests! { @group $test, $rig,
            blob: [
                blob_create_only_conflicts,
                blob_versions_guard_writes,
                blob_versions_differ_after_every_write,
                blob_a_deleted_blob_has_no_version,
                blob_conditional_reads_tell_whether_anything_changed,
                blob_missing_things_are_not_found,
                blob_names_and_bytes_are_kept_exactly,
                blob_empty_and_large_blobs_are_kept,
                blob_listing_pages_in_order_without_gap_or_double,
                blob_increments_of_eight_writers_are_all_counted,
            ],
            queue: [
                queue_messages_come_in_the_order_sent,
                queue_texts_are_kept_exactly,
                queue_a_received_message_is_hidden_and_reappears,
                queue_a_deleted_message_never_reappears,
                queue_an_extended_message_stays_hidden_and_changes_its_receipt,
                queue_a_message_given_back_is_visible_at_once,
                queue_a_stale_receipt_is_refused,
                queue_batches_answer_in_order,
                queue_a_delayed_message_appears_later,
                queue_receives_no_more_than_asked_for,
                queue_peeking_changes_nothing,
                queue_length_and_clear_count_hidden_messages,
                queue_a_missing_queue_is_not_found,
                queue_too_large_messages_are_refused_and_the_rest_is_sent,
                queue_a_waiting_receive_wakes_for_a_send,
                queue_four_receivers_share_without_doubles,
                queue_lists_its_queues,
            ],
            table: [
                table_insert_conflicts_with_an_existing_row,
                table_merge_keeps_what_it_does_not_name,
                table_merge_guards_its_version,
                table_merges_of_different_columns_never_lose_each_other,
                table_upsert_replaces_the_whole_row,
                table_types_are_kept,
                table_missing_things_are_not_found,
                table_filters_compare_each_type,
                table_filters_skip_missing_and_other_types,
                table_filters_combine,
                table_rows_come_in_the_order_of_their_keys,
                table_pages_have_no_gap_and_no_double_while_rows_change,
            ],
            lease: [
                lease_excludes_others_until_released,
                lease_the_same_id_may_acquire_again,
                lease_a_lapsed_lease_is_free_and_its_old_holder_refused,
                lease_renewals_keep_it,
                lease_breaking_frees_it_at_once,
                lease_the_holder_is_told,
                lease_of_eight_at_once_exactly_one_holds,
            ]
        }
    };
    (@group $test:meta, $rig:path, $($group:ident: [$($case:ident),* $(,)?]),*) => {
        mod conformance {
            $($(
                #[$test]
                async fn $case() {
                    let rig = $rig().await;
                    $crate::storage::conformance::$group::$case(&rig).await;
                }
            )*)*
        }
    };
}
