//! Reading definitions from files.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use super::exit::Failure;
use crate::limits::DEFINITION_BYTES_MAX;
use crate::workflow::definition::{Definition, Problems};

/// Reads and checks one definition; `-` is standard input. Every problem is told at once, each
/// with the file's name, line and column.
pub(super) fn read(path: &Path) -> Result<Definition, Failure> {
    let text = read_text(path)?;
    Definition::from_text(&text).map_err(|problems| Failure::Usage(explain(path, &problems)))
}

fn read_text(path: &Path) -> Result<Vec<u8>, Failure> {
    let cannot = |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
    // One byte more than allowed is enough for the parser to refuse it.
    let limit = DEFINITION_BYTES_MAX as u64 + 1;
    let mut text = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin()
            .take(limit)
            .read_to_end(&mut text)
            .map_err(cannot)?;
    } else {
        let file = std::fs::File::open(path).map_err(cannot)?;
        file.take(limit).read_to_end(&mut text).map_err(cannot)?;
    }
    Ok(text)
}

fn explain(path: &Path, problems: &Problems) -> String {
    let mut text = format!("{} is not a valid workflow:", path.display());
    for problem in &problems.0 {
        write!(text, "\n{}:{problem}", path.display()).expect("writing to a string cannot fail");
    }
    text
}
