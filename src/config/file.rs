//! The configuration file: sections of settings, each a plain value.
//!
//! ```yaml
//! connection:
//!   storage: azure:science
//!   prefix: Training
//! coordinator:
//!   idle_sleep_s: 0.2
//! ```

use std::path::{Path, PathBuf};

use saphyr_parser::{Event, Parser};

use crate::limits::CONFIG_BYTES_MAX;

/// One setting as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The section it stands in; empty at the top level.
    pub section: String,
    /// Its name.
    pub key: String,
    /// Its text.
    pub value: String,
    /// The line, from 1.
    pub line: usize,
}

/// A file's settings, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it was found.
    pub path: PathBuf,
    /// What it says.
    pub entries: Vec<Entry>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// It is not made of sections and settings.
    #[error("{path}:{line}: {reason}")]
    Malformed {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
}

impl ConfigFile {
    /// The file to use: the one named, which must exist; or else `jobq.yaml` in the working
    /// directory; or else `jobq/jobq.yaml` in the user's directory of configurations; or none.
    ///
    /// # Errors
    /// [`ConfigFileError`] if the file cannot be used.
    pub fn find(
        named: Option<&Path>,
        var: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, ConfigFileError> {
        if let Some(path) = named {
            return Self::read(path).map(Some);
        }
        let home = || var("HOME").map(|home| Path::new(&home).join(".config"));
        let user = var("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
        let candidates = [
            Some(PathBuf::from("jobq.yaml")),
            user.map(|directory| directory.join("jobq/jobq.yaml")),
        ];
        match candidates.into_iter().flatten().find(|path| path.is_file()) {
            Some(path) => Self::read(&path).map(Some),
            None => Ok(None),
        }
    }

    fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let unreadable = |reason: String| ConfigFileError::Unreadable {
            path: path.display().to_string(),
            reason,
        };
        let bytes = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        if bytes.len() > CONFIG_BYTES_MAX {
            return Err(unreadable(format!("more than {CONFIG_BYTES_MAX} bytes")));
        }
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
        Self::parse(path, &text)
    }

    /// Reads a file's text; `path` is only named in errors.
    ///
    /// # Errors
    /// [`ConfigFileError::Malformed`] at the first line that is not as it should be.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigFileError> {
        let malformed = |line: usize, reason: String| ConfigFileError::Malformed {
            path: path.display().to_string(),
            line,
            reason,
        };
        let mut reader = Reader::default();
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| {
                malformed(
                    error.marker().line().max(1),
                    format!("this is not YAML: {}", error.info()),
                )
            })?;
            let line = span.start.line().max(1);
            let taken = reader.take(&event, line);
            taken.map_err(|reason| malformed(line, reason.to_owned()))?;
        }
        Ok(Self {
            path: path.to_owned(),
            entries: reader.entries,
        })
    }
}

/// Collects the settings of a document from the parser's events.
#[derive(Default)]
struct Reader {
    depth: usize,
    section: String,
    key: Option<String>,
    entries: Vec<Entry>,
}

impl Reader {
    fn take(&mut self, event: &Event<'_>, line: usize) -> Result<(), &'static str> {
        match event {
            Event::MappingStart(..) => self.open(),
            Event::MappingEnd => {
                self.depth -= 1;
                self.section.clear();
                Ok(())
            }
            Event::Scalar(text, ..) => self.scalar(text, line),
            Event::SequenceStart(..) => Err("a list; write one plain value"),
            Event::Alias(_) => Err("an alias; write the value itself"),
            _ => Ok(()),
        }
    }

    fn open(&mut self) -> Result<(), &'static str> {
        if self.depth == 2 {
            return Err("settings are nested too deep; write sections of plain values");
        }
        if let Some(section) = self.key.take() {
            self.section = section;
        }
        self.depth += 1;
        Ok(())
    }

    fn scalar(&mut self, text: &str, line: usize) -> Result<(), &'static str> {
        match (self.depth, self.key.take()) {
            // An empty document.
            (0, _) if text.is_empty() => Ok(()),
            (0, _) => Err("plain text; write sections of settings, such as `connection:`"),
            (_, None) => {
                self.key = Some(text.to_owned());
                Ok(())
            }
            // A section or setting without anything in it.
            (_, Some(_)) if text.is_empty() => Ok(()),
            (_, Some(key)) => {
                self.entries.push(Entry {
                    section: self.section.clone(),
                    key,
                    value: text.to_owned(),
                    line,
                });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, ConfigFileError> {
        ConfigFile::parse(Path::new("jobq.yaml"), text)
    }

    #[test]
    fn settings_are_read_with_their_section_and_line() {
        let file =
            parse("log: debug\nconnection:\n  storage: azurite\n\n  prefix: 'My'\n").unwrap();
        let found = file.entries.iter().map(|entry| {
            let Entry {
                section,
                key,
                value,
                line,
            } = entry;
            (section.as_str(), key.as_str(), value.as_str(), *line)
        });
        let expected = [
            ("", "log", "debug", 1),
            ("connection", "storage", "azurite", 3),
            ("connection", "prefix", "My", 5),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_empty_file_and_an_empty_section_say_nothing() {
        for text in [
            "",
            "# nothing\n",
            "connection:\n",
            "connection:\n  storage:\n",
        ] {
            assert_eq!(parse(text).unwrap().entries, [], "{text:?}");
        }
    }

    #[test]
    fn what_is_no_setting_is_refused_with_its_line() {
        for (text, line) in [
            ("a: [1]", 1),
            ("x: 1\na:\n  b:\n    c: 1", 4),
            ("just text", 1),
            ("a: &x 1\nb: *x", 2),
            ("a: {", 2),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with("jobq.yaml:"), "{error}");
            assert!(error.contains(&format!(":{line}:")), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        let missing = ConfigFile::find(Some(Path::new("/nonexistent/jobq.yaml")), |_| None);
        assert!(missing.unwrap_err().to_string().contains("/nonexistent"));
    }
}
