//! The values of single fields: each of the right type and in its range.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::document::{Kind, Node};
use super::kwargs;
use super::problem::ProblemCode::{InvalidName, InvalidValue, LimitExceeded, WrongType};
use super::report::{Place, Report, quoted};
use crate::limits::{
    CONDITION_BYTES_MAX, LABEL_BYTES_MAX, LABELS_MAX, TIMEOUT_S_MAX, WORKFLOW_NAME_BYTES_MAX,
};
use crate::workflow::{DepPolicy, QueueName, ResultPolicy, Seconds, TaskName};

const DEP_POLICIES: &str = "`all`, `any`, `all_settled` or a whole number from 1";

/// A field that is there. Each method reports what is wrong with its value and then has none.
pub(super) struct Field<'p, 'n, 'a> {
    pub(super) name: &'static str,
    pub(super) node: &'n Node<'a>,
    pub(super) place: Place<'p>,
}

impl<'n> Field<'_, 'n, '_> {
    /// Reports that the value should have been something else.
    pub(super) fn wrong_type(&self, expected: &str, report: &mut Report) {
        report.add(WrongType, &self.place, || {
            let what = self.node.kind.describe();
            format!("`{}` must be {expected}, not {what}", self.name)
        });
    }

    pub(super) fn text(&self, report: &mut Report) -> Option<&'n str> {
        match &self.node.kind {
            Kind::Text(text) => Some(text),
            _ => {
                self.wrong_type("text", report);
                None
            }
        }
    }

    pub(super) fn workflow_name(&self, report: &mut Report) -> Option<&'n str> {
        let name = self.text(report)?;
        let reason = if name.trim().is_empty() {
            "must not be blank"
        } else if name.len() > WORKFLOW_NAME_BYTES_MAX {
            "must have at most 256 bytes"
        } else if name.chars().any(char::is_control) {
            "must not hold control characters"
        } else {
            return Some(name);
        };
        report.add(InvalidName, &self.place, || {
            format!("the workflow's `name` {reason}")
        });
        None
    }

    pub(super) fn task_name(&self, report: &mut Report) -> Option<TaskName> {
        let name = self.text(report)?;
        let reason = match TaskName::parse(name) {
            Ok(_) if kwargs::is_reserved_task_name(name) => {
                "must not start with `__merge_`, which the fan-in rewrite uses".to_owned()
            }
            Ok(name) => return Some(name),
            Err(error) => error.reason().to_owned(),
        };
        report.add(InvalidName, &self.place, || {
            format!("a task's `name` {reason}")
        });
        None
    }

    pub(super) fn queue(&self, report: &mut Report) -> Option<QueueName> {
        match QueueName::parse(self.text(report)?) {
            Ok(queue) => Some(queue),
            Err(error) => {
                report.add(InvalidName, &self.place, || {
                    format!("`{}` {}", self.name, error.reason())
                });
                None
            }
        }
    }

    pub(super) fn whole(&self, range: &RangeInclusive<u32>, report: &mut Report) -> Option<u32> {
        let Kind::Whole(digits) = &self.node.kind else {
            self.wrong_type("a whole number", report);
            return None;
        };
        // Digits that do not fit are out of every range.
        let value = digits.parse().ok().filter(|value| range.contains(value));
        if value.is_none() {
            report.add(InvalidValue, &self.place, || {
                format!(
                    "`{}` must be from {} to {}",
                    self.name,
                    range.start(),
                    range.end()
                )
            });
        }
        value
    }

    pub(super) fn seconds(&self, report: &mut Report) -> Option<Seconds> {
        let value = match &self.node.kind {
            Kind::Whole(digits) => digits.parse().unwrap_or(f64::INFINITY),
            Kind::Float(value) => *value,
            _ => {
                self.wrong_type("a number of seconds", report);
                return None;
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a year in seconds is exact")]
        let max = TIMEOUT_S_MAX as f64;
        if value > 0.0 && value <= max {
            return Some(Seconds(value));
        }
        report.add(InvalidValue, &self.place, || {
            let name = self.name;
            format!("`{name}` must be more than 0 and at most {TIMEOUT_S_MAX} seconds")
        });
        None
    }

    pub(super) fn result_policy(&self, report: &mut Report) -> Option<ResultPolicy> {
        let word = self.text(report)?;
        let policy = ResultPolicy::from_word(word);
        if policy.is_none() {
            report.add(InvalidValue, &self.place, || {
                let words = "`all_sinks_succeed` or `all_tasks_succeed`";
                format!("`result_policy` must be {words}, not {}", quoted(word))
            });
        }
        policy
    }

    pub(super) fn dep_policy(&self, report: &mut Report) -> Option<DepPolicy> {
        let (policy, given) = match &self.node.kind {
            Kind::Text(word) => {
                let policy = match word.as_ref() {
                    "all" => Some(DepPolicy::All),
                    "any" => Some(DepPolicy::Any),
                    "all_settled" => Some(DepPolicy::AllSettled),
                    _ => None,
                };
                (policy, quoted(word))
            }
            Kind::Whole(digits) => {
                let needed = digits.parse().ok().filter(|needed| *needed >= 1);
                (
                    needed.map(DepPolicy::AtLeast),
                    digits.chars().take(20).collect(),
                )
            }
            _ => {
                self.wrong_type(DEP_POLICIES, report);
                return None;
            }
        };
        if policy.is_none() {
            report.add(InvalidValue, &self.place, || {
                format!("`dep_policy` must be {DEP_POLICIES}, not {given}")
            });
        }
        policy
    }

    pub(super) fn condition(&self, report: &mut Report) -> Option<&'n str> {
        let condition = self.text(report)?;
        if condition.len() > CONDITION_BYTES_MAX {
            report.add(LimitExceeded, &self.place, || {
                let length = condition.len();
                format!("`condition` has {length} bytes; at most {CONDITION_BYTES_MAX} are allowed")
            });
            return None;
        }
        Some(condition)
    }

    /// The texts of a list of task names; none for an item that is not text.
    pub(super) fn names(&self, report: &mut Report) -> Vec<Option<&'n str>> {
        let Kind::List(items) = &self.node.kind else {
            self.wrong_type("a list of task names", report);
            return Vec::new();
        };
        let name = |(index, item): (usize, &'n Node<'_>)| match &item.kind {
            Kind::Text(name) => Some(name.as_ref()),
            other => {
                report.add(WrongType, &self.place.index(index), || {
                    let what = other.describe();
                    format!("`depends_on` must list names of tasks, not {what}")
                });
                None
            }
        };
        items.iter().enumerate().map(name).collect()
    }

    pub(super) fn labels(&self, report: &mut Report) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        let Kind::Map(entries) = &self.node.kind else {
            self.wrong_type("a map of text to text", report);
            return labels;
        };
        if entries.len() > LABELS_MAX {
            report.add(LimitExceeded, &self.place, || {
                format!("{} labels; at most {LABELS_MAX} are allowed", entries.len())
            });
            return labels;
        }
        kwargs::check_unique_keys(entries, &self.place, report);
        for entry in entries.iter() {
            let place = self.place.key(&entry.key);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
            if entry.key.is_empty() || !entry.key.chars().all(is_plain) {
                report.add(InvalidName, &place, || {
                    let key = quoted(&entry.key);
                    format!("the label {key} may hold only A-Z a-z 0-9 . _ - / and not be empty")
                });
            }
            let Kind::Text(value) = &entry.value.kind else {
                report.add(WrongType, &place, || {
                    let what = entry.value.kind.describe();
                    format!("the label {} must be text, not {what}", quoted(&entry.key))
                });
                continue;
            };
            if entry.key.len() > LABEL_BYTES_MAX || value.len() > LABEL_BYTES_MAX {
                report.add(LimitExceeded, &place, || {
                    format!("a label and its value may have at most {LABEL_BYTES_MAX} bytes each")
                });
            }
            labels.insert(entry.key.to_string(), value.to_string());
        }
        labels
    }
}
