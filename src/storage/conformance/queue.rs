//! Cases of the queue port.
#![expect(missing_docs, reason = "the names of cases say what they hold")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use super::Rig;
use crate::storage::{Error, Message, OutgoingMessage, QueueStore, Receipt};

const AT_ONCE: Duration = Duration::ZERO;

/// Long enough for any receive that should find something.
const SOON: Duration = Duration::from_secs(10);

async fn queue(rig: &Rig) -> (Arc<dyn QueueStore>, String) {
    let name = rig.unique();
    rig.storage.queues.create_queue(&name).await.unwrap();
    (rig.storage.queues.clone(), name)
}

async fn send(queues: &Arc<dyn QueueStore>, queue: &str, bodies: &[&str]) {
    let messages = bodies
        .iter()
        .map(|body| OutgoingMessage::new(*body))
        .collect();
    for sent in queues.send(queue, messages).await {
        sent.unwrap();
    }
}

async fn receive(queues: &Arc<dyn QueueStore>, queue: &str, visibility: Duration) -> Vec<Message> {
    queues
        .receive(queue, 32, visibility, AT_ONCE)
        .await
        .unwrap()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.body.as_str())
        .collect()
}

async fn delete(queues: &Arc<dyn QueueStore>, queue: &str, receipt: &Receipt) -> Result<(), Error> {
    queues.delete(queue, vec![receipt.clone()]).await.remove(0)
}

pub async fn queue_messages_come_in_the_order_sent(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    for body in ["1", "2", "3"] {
        send(&queues, &q, &[body]).await;
    }
    let received = receive(&queues, &q, rig.visibility).await;
    assert_eq!(bodies(&received), ["1", "2", "3"]);
    assert!(received.iter().all(|message| message.dequeue_count == 1));
}

/// JSON escapes what XML cannot carry, so only text that XML can carry has to be kept.
pub async fn queue_texts_are_kept_exactly(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let texts = [
        "{\"cmd\": \"echo <A> & \\\"é\\\"\"}",
        "'é' 🎉 \u{2028}",
        "YWJj",
        "]]>",
        "&amp;",
    ];
    send(&queues, &q, &texts).await;
    assert_eq!(bodies(&receive(&queues, &q, rig.visibility).await), texts);
}

pub async fn queue_a_received_message_is_hidden_and_reappears(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["a"]).await;
    assert_eq!(receive(&queues, &q, rig.visibility).await.len(), 1);
    assert!(receive(&queues, &q, rig.visibility).await.is_empty());
    rig.pass(rig.visibility).await;
    let again = receive(&queues, &q, rig.visibility).await;
    assert_eq!(bodies(&again), ["a"]);
    assert_eq!(again[0].dequeue_count, 2);
}

pub async fn queue_a_deleted_message_never_reappears(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["a", "b"]).await;
    let received = receive(&queues, &q, rig.visibility).await;
    delete(&queues, &q, &received[0].receipt).await.unwrap();
    rig.pass(rig.visibility).await;
    assert_eq!(bodies(&receive(&queues, &q, rig.visibility).await), ["b"]);
}

pub async fn queue_an_extended_message_stays_hidden_and_changes_its_receipt(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["a"]).await;
    let first = receive(&queues, &q, rig.visibility).await.remove(0);
    let longer = rig.visibility * 3;
    let second = queues
        .extend(&q, &first.receipt, &first.body, longer)
        .await
        .unwrap();
    let stale = delete(&queues, &q, &first.receipt).await;
    assert!(matches!(stale, Err(Error::ReceiptLost { .. })), "{stale:?}");
    rig.pass(rig.visibility).await;
    assert!(receive(&queues, &q, rig.visibility).await.is_empty());
    delete(&queues, &q, &second).await.unwrap();
}

pub async fn queue_a_message_given_back_is_visible_at_once(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["a"]).await;
    let held = receive(&queues, &q, SOON * 10).await.remove(0);
    queues
        .extend(&q, &held.receipt, &held.body, AT_ONCE)
        .await
        .unwrap();
    let again = queues.receive(&q, 1, rig.visibility, SOON).await.unwrap();
    assert_eq!(bodies(&again), ["a"]);
}

pub async fn queue_a_stale_receipt_is_refused(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["a"]).await;
    let first = receive(&queues, &q, rig.visibility).await.remove(0);
    rig.pass(rig.visibility).await;
    let second = receive(&queues, &q, SOON).await.remove(0);
    let extended = queues.extend(&q, &first.receipt, "a", SOON).await;
    assert!(
        matches!(extended, Err(Error::ReceiptLost { .. })),
        "{extended:?}"
    );
    let deleted = delete(&queues, &q, &first.receipt).await;
    assert!(
        matches!(deleted, Err(Error::ReceiptLost { .. })),
        "{deleted:?}"
    );
    delete(&queues, &q, &second.receipt).await.unwrap();
    let gone = delete(&queues, &q, &second.receipt).await;
    assert!(matches!(gone, Err(Error::ReceiptLost { .. })), "{gone:?}");
    let gone = queues.extend(&q, &second.receipt, "a", SOON).await;
    assert!(matches!(gone, Err(Error::ReceiptLost { .. })), "{gone:?}");
}

pub async fn queue_batches_answer_in_order(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let texts: Vec<String> = (0..40).map(|i| i.to_string()).collect();
    let messages = texts.iter().map(OutgoingMessage::new).collect();
    assert_eq!(queues.send(&q, messages).await.len(), 40);
    assert_eq!(queues.length(&q).await.unwrap(), 40);
    let mut received = receive(&queues, &q, SOON).await;
    received.truncate(3);
    let lost = received[1].receipt.clone();
    delete(&queues, &q, &lost).await.unwrap();
    let receipts = received
        .into_iter()
        .map(|message| message.receipt)
        .collect();
    let answers = queues.delete(&q, receipts).await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(
        matches!(answers[1], Err(Error::ReceiptLost { .. })),
        "{answers:?}"
    );
    assert!(queues.send(&q, Vec::new()).await.is_empty());
    assert!(queues.delete(&q, Vec::new()).await.is_empty());
}

pub async fn queue_a_delayed_message_appears_later(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let delayed = OutgoingMessage {
        delay: rig.visibility,
        ..OutgoingMessage::new("later")
    };
    queues.send(&q, vec![delayed]).await.remove(0).unwrap();
    send(&queues, &q, &["now"]).await;
    assert_eq!(bodies(&receive(&queues, &q, SOON * 60).await), ["now"]);
    rig.pass(rig.visibility).await;
    assert_eq!(bodies(&receive(&queues, &q, SOON).await), ["later"]);
}

pub async fn queue_receives_no_more_than_asked_for(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["1", "2", "3", "4", "5"]).await;
    for expected in [2, 2, 1, 0] {
        assert_eq!(
            queues.receive(&q, 2, SOON, AT_ONCE).await.unwrap().len(),
            expected
        );
    }
}

pub async fn queue_peeking_changes_nothing(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    send(&queues, &q, &["1", "2", "3"]).await;
    for _ in 0..2 {
        let peeked = queues.peek(&q, 2).await.unwrap();
        let texts: Vec<_> = peeked.iter().map(|message| message.body.as_str()).collect();
        assert_eq!(texts, ["1", "2"]);
        assert_eq!(peeked[0].dequeue_count, 0);
    }
    assert_eq!(receive(&queues, &q, SOON).await.len(), 3);
    assert!(queues.peek(&q, 32).await.unwrap().is_empty());
}

pub async fn queue_length_and_clear_count_hidden_messages(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    assert_eq!(queues.length(&q).await.unwrap(), 0);
    send(&queues, &q, &["1", "2", "3"]).await;
    queues.receive(&q, 1, SOON, AT_ONCE).await.unwrap();
    assert_eq!(queues.length(&q).await.unwrap(), 3);
    queues.clear(&q).await.unwrap();
    assert_eq!(queues.length(&q).await.unwrap(), 0);
    assert!(receive(&queues, &q, SOON).await.is_empty());
    send(&queues, &q, &["4"]).await;
    assert_eq!(bodies(&receive(&queues, &q, SOON).await), ["4"]);
}

pub async fn queue_a_missing_queue_is_not_found(rig: &Rig) {
    let (queues, q) = (rig.storage.queues.clone(), rig.unique());
    let not_found = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    };
    not_found(queues.receive(&q, 1, SOON, AT_ONCE).await.map(drop));
    not_found(queues.peek(&q, 1).await.map(drop));
    not_found(queues.length(&q).await.map(drop));
    not_found(queues.clear(&q).await);
    let two = vec![OutgoingMessage::new("1"), OutgoingMessage::new("2")];
    let sent = queues.send(&q, two).await;
    assert_eq!(sent.len(), 2);
    sent.into_iter().for_each(not_found);
    queues.create_queue(&q).await.unwrap();
    queues.create_queue(&q).await.unwrap();
    send(&queues, &q, &["a"]).await;
}

pub async fn queue_too_large_messages_are_refused_and_the_rest_is_sent(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let limit = queues.capabilities().message_bytes_max;
    let texts = [
        "x".repeat(crate::limits::MESSAGE_BYTES_MAX),
        "x".repeat(limit + 1),
        "z".to_owned(),
    ];
    let answers = queues
        .send(&q, texts.iter().map(OutgoingMessage::new).collect())
        .await;
    assert!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    assert!(
        matches!(answers[1], Err(Error::TooLarge { .. })),
        "{answers:?}"
    );
    assert_eq!(
        bodies(&receive(&queues, &q, SOON).await),
        [texts[0].as_str(), "z"]
    );
}

/// Where a receive does not wait, an empty answer comes at once instead.
pub async fn queue_a_waiting_receive_wakes_for_a_send(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let started = Instant::now();
    if !queues.capabilities().receive_waits {
        assert!(queues.receive(&q, 1, SOON, SOON).await.unwrap().is_empty());
        assert!(started.elapsed() < SOON / 2);
        return;
    }
    let empty = queues
        .receive(&q, 1, SOON, Duration::from_millis(100))
        .await
        .unwrap();
    assert!(empty.is_empty() && started.elapsed() >= Duration::from_millis(100));
    let waiting = queues.receive(&q, 1, SOON, SOON * 6);
    let sending = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        send(&queues, &q, &["a"]).await;
    };
    let (received, ()) = tokio::join!(waiting, sending);
    assert_eq!(bodies(&received.unwrap()), ["a"]);
    assert!(started.elapsed() < SOON, "it was told of the send late");
}

pub async fn queue_four_receivers_share_without_doubles(rig: &Rig) {
    const MESSAGES: usize = 200;
    let (queues, q) = queue(rig).await;
    let texts: Vec<String> = (0..MESSAGES).map(|i| i.to_string()).collect();
    for sent in queues
        .send(&q, texts.iter().map(OutgoingMessage::new).collect())
        .await
    {
        sent.unwrap();
    }
    let receivers = (0..4).map(|_| async {
        let mut mine = Vec::new();
        loop {
            let messages = queues.receive(&q, 7, SOON * 10, AT_ONCE).await.unwrap();
            if messages.is_empty() {
                return mine;
            }
            for deleted in queues
                .delete(
                    &q,
                    messages
                        .iter()
                        .map(|message| message.receipt.clone())
                        .collect(),
                )
                .await
            {
                deleted.unwrap();
            }
            mine.extend(messages.into_iter().map(|message| message.body));
        }
    });
    let received: Vec<String> = join_all(receivers).await.into_iter().flatten().collect();
    assert_eq!(received.len(), MESSAGES, "some came twice or not at all");
    assert_eq!(
        received.into_iter().collect::<BTreeSet<_>>(),
        texts.into_iter().collect()
    );
    assert_eq!(queues.length(&q).await.unwrap(), 0);
}

pub async fn queue_lists_its_queues(rig: &Rig) {
    let (queues, q) = queue(rig).await;
    let (a, b) = (format!("{q}-a"), format!("{q}-b"));
    queues.create_queue(&b).await.unwrap();
    queues.create_queue(&a).await.unwrap();
    assert_eq!(queues.list_queues(&q).await.unwrap(), [q, a, b]);
}
