//! `jobq coordinator`.

use std::process::ExitCode;

use super::exit::{Failure, print_json};
use super::{GlobalArgs, open};

pub(super) async fn run(global: &GlobalArgs) -> Result<ExitCode, Failure> {
    print_json(&open::backend(global).await?.coordinator_status().await?)?;
    Ok(ExitCode::SUCCESS)
}
