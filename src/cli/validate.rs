//! `jobq validate`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::definition_file;
use super::exit::Failure;

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// Definitions in YAML or JSON; `-` reads standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &ValidateArgs) -> Result<ExitCode, Failure> {
    let mut valid = true;
    for file in &args.files {
        match definition_file::read(file) {
            Ok(definition) => {
                eprintln!(
                    "{}: valid, {:?} with {} tasks",
                    file.display(),
                    definition.name,
                    definition.tasks.len()
                );
            }
            Err(failure) => {
                valid = false;
                failure.report();
            }
        }
    }
    Ok(if valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}
