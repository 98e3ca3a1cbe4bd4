//! Cases of the queue port.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Subject, assert_fails};
use crate::limits;
use crate::storage::{Error, Message, OutgoingMessage, Receipt, Result};

/// Long enough that no case outlasts it.
const LONG: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);

async fn send(subject: &Subject, queue: &str, bodies: &[&str]) {
    let messages = bodies.iter().map(|body| OutgoingMessage::new(*body));
    let answers = subject.storage.queues.send(queue, messages.collect()).await;
    assert_eq!(answers.len(), bodies.len());
    for answer in answers {
        answer.unwrap();
    }
}

async fn send_later(subject: &Subject, queue: &str, body: &str, delay: Duration) {
    let message = OutgoingMessage {
        delay,
        ..OutgoingMessage::new(body)
    };
    let mut answers = subject.storage.queues.send(queue, vec![message]).await;
    answers.remove(0).unwrap();
}

/// Receives without waiting.
async fn receive(subject: &Subject, queue: &str, max: usize, hide: Duration) -> Vec<Message> {
    let queues = &subject.storage.queues;
    let received = queues.receive(queue, max, hide, Duration::ZERO).await;
    received.unwrap()
}

/// Receives the one message there must be.
async fn receive_one(subject: &Subject, queue: &str, hide: Duration) -> Message {
    let mut messages = receive(subject, queue, 10, hide).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0)
}

/// Receives until nothing is left, hiding everything for long.
async fn drain(subject: &Subject, queue: &str) -> Vec<Message> {
    let max = subject.storage.queues.capabilities().receive_max;
    let mut all = Vec::new();
    loop {
        let messages = receive(subject, queue, max, LONG).await;
        if messages.is_empty() {
            return all;
        }
        all.extend(messages);
    }
}

async fn delete(subject: &Subject, queue: &str, receipt: &Receipt) -> Result<()> {
    let queues = &subject.storage.queues;
    let mut answers = queues.delete(queue, vec![receipt.clone()]).await;
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

async fn extend(
    subject: &Subject,
    queue: &str,
    message: &Message,
    hide: Duration,
) -> Result<Receipt> {
    let queues = &subject.storage.queues;
    queues
        .extend(queue, &message.receipt, &message.body, hide)
        .await
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    let mut bodies: Vec<&str> = messages.iter().map(|m| m.body.as_str()).collect();
    bodies.sort_unstable();
    bodies
}

/// "ok" or the kind of the error, per answer.
fn kinds(answers: &[Result<()>]) -> Vec<&'static str> {
    let kind = |answer: &Result<()>| answer.as_ref().map_or_else(Error::kind, |()| "ok");
    answers.iter().map(kind).collect()
}

/// One message that cannot be sent does not keep the others back.
pub async fn queue_batch_send_answers_in_order_despite_a_refusal(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    let huge = "x".repeat(queues.capabilities().message_bytes_max + 1);
    let messages = ["a", &huge, "b", &huge, "c"].map(OutgoingMessage::new);
    let answers = queues.send(&queue, messages.to_vec()).await;
    assert_eq!(
        kinds(&answers),
        ["ok", "too_large", "ok", "too_large", "ok"]
    );
    assert_eq!(bodies(&drain(subject, &queue).await), ["a", "b", "c"]);
    assert!(queues.send(&queue, Vec::new()).await.is_empty());
}

/// Clearing removes what is visible and what is not.
pub async fn queue_clear_removes_hidden_messages_too(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    send(subject, &queue, &["a", "b", "c"]).await;
    send_later(subject, &queue, "later", SECOND).await;
    let taken = receive(subject, &queue, 1, SECOND).await.remove(0);
    queues.clear(&queue).await.unwrap();
    assert_eq!(queues.length(&queue).await.unwrap(), 0);
    assert_fails(
        delete(subject, &queue, &taken.receipt).await,
        "receipt_lost",
    );
    subject.elapse(SECOND).await;
    assert!(drain(subject, &queue).await.is_empty());
    send(subject, &queue, &["new"]).await;
    assert_eq!(bodies(&drain(subject, &queue).await), ["new"]);
}

/// Creating a queue twice keeps what is in it.
pub async fn queue_create_may_be_repeated(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["kept"]).await;
    subject.storage.queues.create_queue(&queue).await.unwrap();
    assert_eq!(bodies(&drain(subject, &queue).await), ["kept"]);
}

/// A delay hides a message that nobody received yet.
pub async fn queue_delayed_message_appears_after_its_delay(subject: &Subject) {
    let queue = subject.queue().await;
    send_later(subject, &queue, "later", 2 * SECOND).await;
    assert!(receive(subject, &queue, 1, LONG).await.is_empty());
    subject.elapse(2 * SECOND).await;
    let message = receive_one(subject, &queue, LONG).await;
    assert_eq!((message.body.as_str(), message.dequeue_count), ("later", 1));
}

/// One stale receipt does not keep other messages from being deleted.
pub async fn queue_delete_answers_in_order_despite_a_refusal(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    send(subject, &queue, &["a", "b", "c"]).await;
    let messages = drain(subject, &queue).await;
    let [first, gone, last] = [0, 1, 2].map(|at| messages[at].receipt.clone());
    delete(subject, &queue, &gone).await.unwrap();
    let answers = queues.delete(&queue, vec![first, gone, last]).await;
    assert_eq!(kinds(&answers), ["ok", "receipt_lost", "ok"]);
    assert_eq!(queues.length(&queue).await.unwrap(), 0);
    assert!(queues.delete(&queue, Vec::new()).await.is_empty());
}

/// Whoever let a message lapse cannot delete it under its next receiver.
pub async fn queue_delete_with_a_stale_receipt_is_lost(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    let slow = receive_one(subject, &queue, SECOND).await;
    subject.elapse(SECOND).await;
    let next = receive_one(subject, &queue, LONG).await;
    assert_fails(delete(subject, &queue, &slow.receipt).await, "receipt_lost");
    assert_fails(extend(subject, &queue, &slow, LONG).await, "receipt_lost");
    delete(subject, &queue, &next.receipt).await.unwrap();
    assert_fails(delete(subject, &queue, &next.receipt).await, "receipt_lost");
    assert_fails(extend(subject, &queue, &next, LONG).await, "receipt_lost");
}

/// What is deleted stays away, also once its visibility timeout would have ended.
pub async fn queue_deleted_message_never_reappears(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a", "b"]).await;
    for message in receive(subject, &queue, 2, SECOND).await {
        delete(subject, &queue, &message.receipt).await.unwrap();
    }
    subject.elapse(2 * SECOND).await;
    assert!(receive(subject, &queue, 2, LONG).await.is_empty());
    // Nor does a receipt of the past reach a message of the present.
    send(subject, &queue, &["c"]).await;
    assert_eq!(receive_one(subject, &queue, LONG).await.dequeue_count, 1);
}

/// A heartbeat keeps a message hidden for as long as it goes on.
pub async fn queue_extend_hides_for_longer(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    let mut message = receive_one(subject, &queue, 2 * SECOND).await;
    for _ in 0..3 {
        subject.elapse(SECOND).await;
        message.receipt = extend(subject, &queue, &message, 2 * SECOND).await.unwrap();
    }
    assert!(receive(subject, &queue, 1, LONG).await.is_empty());
    subject.elapse(2 * SECOND).await;
    let again = receive_one(subject, &queue, LONG).await;
    assert_eq!((again.body.as_str(), again.dequeue_count), ("a", 2));
}

/// After an extension only the new receipt counts.
pub async fn queue_extend_replaces_the_receipt(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    let message = receive_one(subject, &queue, LONG).await;
    let receipt = extend(subject, &queue, &message, LONG).await.unwrap();
    assert_ne!(receipt, message.receipt);
    assert_fails(
        extend(subject, &queue, &message, LONG).await,
        "receipt_lost",
    );
    assert_fails(
        delete(subject, &queue, &message.receipt).await,
        "receipt_lost",
    );
    delete(subject, &queue, &receipt).await.unwrap();
}

/// A worker that stops hands its message on without a pause.
pub async fn queue_extend_with_zero_gives_back_at_once(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    let message = receive_one(subject, &queue, LONG).await;
    extend(subject, &queue, &message, Duration::ZERO)
        .await
        .unwrap();
    let again = receive_one(subject, &queue, LONG).await;
    assert_eq!((again.body.as_str(), again.dequeue_count), ("a", 2));
}

/// Goal: receivers compete without double deliveries and without losses. Method: four of them
/// drain 200 messages, deleting each, and compare notes.
pub async fn queue_four_receivers_share_every_message_once(subject: &Subject) {
    let queue = subject.queue().await;
    let sent: Vec<String> = (0..200).map(|i| format!("{i:03}")).collect();
    let texts: Vec<&str> = sent.iter().map(String::as_str).collect();
    send(subject, &queue, &texts).await;
    let mut receivers = JoinSet::new();
    for _ in 0..4 {
        let (queues, queue) = (subject.storage.queues.clone(), queue.clone());
        receivers.spawn(async move {
            let mut seen = Vec::new();
            loop {
                let received = queues.receive(&queue, 7, LONG, Duration::ZERO).await;
                let received = received.unwrap();
                if received.is_empty() {
                    return seen;
                }
                tokio::task::yield_now().await;
                let receipts = received.iter().map(|m| m.receipt.clone()).collect();
                for answer in queues.delete(&queue, receipts).await {
                    answer.unwrap();
                }
                seen.extend(received.into_iter().map(|m| (m.body, m.dequeue_count)));
            }
        });
    }
    let mut seen: Vec<_> = receivers.join_all().await.into_iter().flatten().collect();
    seen.sort();
    let once: Vec<(String, u32)> = sent.into_iter().map(|body| (body, 1)).collect();
    assert_eq!(seen, once);
    assert_eq!(subject.storage.queues.length(&queue).await.unwrap(), 0);
}

/// Calls that some backend cannot make are refused by all.
pub async fn queue_impossible_calls_are_invalid(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    let no_wait = Duration::ZERO;
    let beyond = limits::VISIBILITY_TIMEOUT_MAX + SECOND;
    assert_fails(queues.create_queue("white space").await, "invalid");
    for (max, hide) in [(0, SECOND), (1, Duration::ZERO), (1, beyond)] {
        assert_fails(queues.receive(&queue, max, hide, no_wait).await, "invalid");
    }
    for max in [0, limits::PEEK_MAX + 1] {
        assert_fails(queues.peek(&queue, max).await, "invalid");
    }
    send(subject, &queue, &["a"]).await;
    let message = receive_one(subject, &queue, LONG).await;
    assert_fails(extend(subject, &queue, &message, beyond).await, "invalid");
    let late = OutgoingMessage {
        delay: beyond,
        ..OutgoingMessage::new("late")
    };
    let mut answers = queues.send(&queue, vec![late]).await;
    assert_fails(answers.remove(0), "invalid");
    delete(subject, &queue, &message.receipt).await.unwrap();
    assert_eq!(queues.length(&queue).await.unwrap(), 0);
}

/// The length tells how much work there is, whoever holds it.
pub async fn queue_length_counts_hidden_messages(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    assert_eq!(queues.length(&queue).await.unwrap(), 0);
    send(subject, &queue, &["a", "b", "c"]).await;
    send_later(subject, &queue, "later", LONG).await;
    let taken = receive(subject, &queue, 1, LONG).await.remove(0);
    assert_eq!(queues.length(&queue).await.unwrap(), 4);
    delete(subject, &queue, &taken.receipt).await.unwrap();
    assert_eq!(queues.length(&queue).await.unwrap(), 3);
}

/// Queues are found by the start of their names.
pub async fn queue_list_keeps_to_the_prefix(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    let (failed, other) = (format!("{queue}-failed"), format!("other-{}", subject.run));
    queues.create_queue(&failed).await.unwrap();
    queues.create_queue(&other).await.unwrap();
    let names = queues.list_queues(&queue).await.unwrap();
    assert_eq!(names, [queue, failed]);
    let all = queues.list_queues("").await.unwrap();
    assert!(all.contains(&other));
    assert!(all.is_sorted());
    let none = queues.list_queues(&format!("{other}-x")).await.unwrap();
    assert!(none.is_empty());
}

/// The largest message comes back whole; one byte more is refused, not cut.
pub async fn queue_message_at_the_limit_fits_and_one_past_does_not(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    let largest = "x".repeat(queues.capabilities().message_bytes_max);
    send(subject, &queue, &[&largest]).await;
    let message = receive_one(subject, &queue, LONG).await;
    assert!(message.body == largest, "the text differs");
    let past = OutgoingMessage::new(largest + "x");
    let mut answers = queues.send(&queue, vec![past]).await;
    assert_fails(answers.remove(0), "too_large");
    assert_eq!(queues.length(&queue).await.unwrap(), 1);
}

/// A receiver that dies loses no message: the next one gets it, and can tell.
pub async fn queue_message_reappears_after_its_visibility_timeout(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    for delivery in 1..=3 {
        let message = receive_one(subject, &queue, SECOND).await;
        assert_eq!(
            (message.body.as_str(), message.dequeue_count),
            ("a", delivery)
        );
        assert!(receive(subject, &queue, 1, SECOND).await.is_empty());
        subject.elapse(SECOND).await;
    }
}

/// Without a queue there is nothing to send to, receive from, look at or clear.
pub async fn queue_missing_queue_is_not_found(subject: &Subject) {
    let queue = format!("missing-{}", subject.run);
    let queues = &subject.storage.queues;
    let messages = vec![OutgoingMessage::new("a"), OutgoingMessage::new("b")];
    let answers = queues.send(&queue, messages).await;
    assert_eq!(answers.len(), 2);
    for answer in answers {
        assert_fails(answer, "not_found");
    }
    let wait = SECOND;
    assert_fails(queues.receive(&queue, 1, LONG, wait).await, "not_found");
    assert_fails(queues.peek(&queue, 1).await, "not_found");
    assert_fails(queues.length(&queue).await, "not_found");
    assert_fails(queues.clear(&queue).await, "not_found");
}

/// Order is only rough, but what waits longest is not starved by what comes later.
pub async fn queue_old_messages_come_before_new_ones(subject: &Subject) {
    let queue = subject.queue().await;
    send(subject, &queue, &["old 1", "old 2"]).await;
    for batch in 0..4 {
        let new: Vec<String> = (0..5).map(|i| format!("new {batch}{i}")).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        send(subject, &queue, &new).await;
    }
    let half = receive(subject, &queue, 11, LONG).await;
    let old = half.iter().filter(|m| m.body.starts_with("old")).count();
    assert_eq!(old, 2, "{:?}", bodies(&half));
}

/// Looking at messages neither hides nor counts.
pub async fn queue_peek_leaves_messages_as_they_are(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    send(subject, &queue, &["a", "b", "c"]).await;
    for _ in 0..2 {
        let peeked = queues.peek(&queue, 2).await.unwrap();
        assert_eq!(peeked.len(), 2);
        assert!(peeked.iter().all(|message| message.dequeue_count == 0));
        assert!(peeked.iter().all(|message| message.age < LONG));
    }
    let messages = drain(subject, &queue).await;
    assert_eq!(bodies(&messages), ["a", "b", "c"]);
    assert!(messages.iter().all(|message| message.dequeue_count == 1));
}

/// A peek shows what a receive would get, with its deliveries and age.
pub async fn queue_peek_skips_hidden_messages(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    send(subject, &queue, &["a"]).await;
    send_later(subject, &queue, "later", LONG).await;
    receive_one(subject, &queue, 2 * SECOND).await;
    assert!(queues.peek(&queue, 10).await.unwrap().is_empty());
    subject.elapse(2 * SECOND).await;
    let peeked = queues.peek(&queue, 10).await.unwrap();
    assert_eq!(peeked.len(), 1);
    assert_eq!((peeked[0].body.as_str(), peeked[0].dequeue_count), ("a", 1));
    // Some backends tell ages in whole seconds.
    assert!(peeked[0].age >= SECOND, "{:?}", peeked[0].age);
}

/// A receive never returns more than asked for, and asking for too much is fine.
pub async fn queue_receive_keeps_to_its_maximum(subject: &Subject) {
    let queue = subject.queue().await;
    let texts: Vec<String> = (0..40).map(|i| i.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    send(subject, &queue, &texts).await;
    assert_eq!(receive(subject, &queue, 1, LONG).await.len(), 1);
    assert!((1..=5).contains(&receive(subject, &queue, 5, LONG).await.len()));
    let receive_max = subject.storage.queues.capabilities().receive_max;
    let many = receive(subject, &queue, receive_max + 1, LONG).await;
    assert!((1..=receive_max).contains(&many.len()));
}

/// Nothing to receive is an answer, not an error.
pub async fn queue_receive_of_an_empty_queue_returns_nothing(subject: &Subject) {
    let queue = subject.queue().await;
    assert!(receive(subject, &queue, 10, LONG).await.is_empty());
}

/// A receive on an empty queue ends when its time is up, where it waits at all.
pub async fn queue_receive_waits_no_longer_than_told(subject: &Subject) {
    let queue = subject.queue().await;
    let queues = &subject.storage.queues;
    let started = Instant::now();
    let received = queues.receive(&queue, 1, LONG, SECOND).await.unwrap();
    assert!(received.is_empty());
    let waited = started.elapsed();
    assert!(waited < SECOND + subject.promptly, "{waited:?}");
    if queues.capabilities().receive_waits {
        assert!(waited >= SECOND, "{waited:?}");
    }
}

/// Two who receive at the same time get different messages.
pub async fn queue_receivers_never_share_a_visible_message(subject: &Subject) {
    let queue = subject.queue().await;
    let sent: Vec<String> = (0..20).map(|i| format!("{i:02}")).collect();
    let texts: Vec<&str> = sent.iter().map(String::as_str).collect();
    send(subject, &queue, &texts).await;
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    loop {
        let (one, another) = tokio::join!(
            receive(subject, &queue, 3, LONG),
            receive(subject, &queue, 3, LONG)
        );
        if one.is_empty() && another.is_empty() {
            break;
        }
        for message in one.into_iter().chain(another) {
            *seen.entry(message.body).or_default() += 1;
        }
    }
    let once: BTreeMap<String, u32> = sent.into_iter().map(|body| (body, 1)).collect();
    assert_eq!(seen, once);
}

/// Any text either comes back exactly or is refused as invalid. It is never altered, and never
/// keeps its neighbours from being received.
pub async fn queue_text_round_trips_or_is_refused(subject: &Subject) {
    let queue = subject.queue().await;
    let sure = [
        r#"{"version":1,"kwargs":"{\"cmd\":\"echo <a> & 'b'\"}"}"#,
        "]]> &amp; &#x1; <!-- </MessageText> -->",
        "träin 日本語 🚀 \u{feff} e\u{301}",
        "tab\tline\nend",
        "eyJsb29rcyI6ICJsaWtlIGJhc2U2NCJ9",
    ];
    let unsure = [
        " blanks around ",
        "",
        "nul \u{0}",
        "bell \u{7} esc \u{1b}",
        "\r\n",
        "\u{fffe}\u{ffff}",
    ];
    send(subject, &queue, &sure).await;
    let messages = unsure.map(OutgoingMessage::new).to_vec();
    let answers = subject.storage.queues.send(&queue, messages).await;
    let mut expected = sure.to_vec();
    for (text, answer) in unsure.into_iter().zip(answers) {
        match answer {
            Ok(()) => expected.push(text),
            Err(error) => assert_eq!(error.kind(), "invalid", "{text:?}: {error}"),
        }
    }
    expected.sort_unstable();
    assert_eq!(bodies(&drain(subject, &queue).await), expected);
}

/// Waits for a message while `act` goes on; returns it and how long it took.
async fn wait_during(
    subject: &Subject,
    queue: &str,
    act: impl Future<Output = ()>,
) -> (Vec<Message>, Duration) {
    let started = Instant::now();
    let queues = &subject.storage.queues;
    let waiting = async {
        let received = queues.receive(queue, 10, LONG, LONG).await.unwrap();
        (received, started.elapsed())
    };
    tokio::join!(waiting, act).0
}

/// A delay ends for those who wait as for those who ask.
pub async fn queue_waiting_receive_wakes_when_a_delay_ends(subject: &Subject) {
    if !subject.storage.queues.capabilities().receive_waits {
        return;
    }
    let queue = subject.queue().await;
    let sending = async {
        sleep(Duration::from_millis(50)).await;
        send_later(subject, &queue, "later", SECOND).await;
    };
    let (received, waited) = wait_during(subject, &queue, sending).await;
    assert_eq!(bodies(&received), ["later"]);
    assert!(waited >= SECOND, "{waited:?}");
    assert!(waited < 2 * SECOND + subject.promptly, "{waited:?}");
}

/// A message given back goes straight to who waits for one.
pub async fn queue_waiting_receive_wakes_when_a_message_is_given_back(subject: &Subject) {
    if !subject.storage.queues.capabilities().receive_waits {
        return;
    }
    let queue = subject.queue().await;
    send(subject, &queue, &["a"]).await;
    let held = receive_one(subject, &queue, LONG).await;
    let giving_back = async {
        sleep(Duration::from_millis(50)).await;
        extend(subject, &queue, &held, Duration::ZERO)
            .await
            .unwrap();
    };
    let (received, waited) = wait_during(subject, &queue, giving_back).await;
    assert_eq!(bodies(&received), ["a"]);
    assert!(waited < subject.promptly, "{waited:?}");
}

/// A sent message goes straight to who waits for one.
pub async fn queue_waiting_receive_wakes_when_a_message_is_sent(subject: &Subject) {
    if !subject.storage.queues.capabilities().receive_waits {
        return;
    }
    let queue = subject.queue().await;
    let sending = async {
        sleep(Duration::from_millis(50)).await;
        send(subject, &queue, &["a"]).await;
    };
    let (received, waited) = wait_during(subject, &queue, sending).await;
    assert_eq!(bodies(&received), ["a"]);
    assert!(waited < subject.promptly, "{waited:?}");
}
