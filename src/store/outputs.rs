//! Task outputs that live in blobs.

use bytes::Bytes;

use super::{Result, WorkflowStore};
use crate::limits::OUTPUT_BYTES_MAX;
use crate::storage;

impl WorkflowStore {
    /// The bytes of an output at `path` in the outputs container, or why they cannot be had: it is
    /// gone, or too large. Only failures that may pass are errors.
    ///
    /// # Errors
    /// The storage's own, where a later try may succeed.
    pub async fn output_bytes(&self, path: &str) -> Result<std::result::Result<Bytes, String>> {
        match self
            .storage
            .blobs
            .get(self.names.outputs_container(), path)
            .await
        {
            Ok(blob) if blob.data.len() > OUTPUT_BYTES_MAX => {
                Ok(Err(format!("it has more than {OUTPUT_BYTES_MAX} bytes")))
            }
            Ok(blob) => Ok(Ok(blob.data)),
            Err(error @ storage::Error::NotFound { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// The output at `path` as a JSON value, or why it cannot be had.
    ///
    /// # Errors
    /// The storage's own, where a later try may succeed.
    pub async fn output_value(
        &self,
        path: &str,
    ) -> Result<std::result::Result<serde_json::Value, String>> {
        let bytes = self.output_bytes(path).await?;
        Ok(bytes.and_then(|bytes| {
            serde_json::from_slice(&bytes).map_err(|error| format!("it is not JSON: {error}"))
        }))
    }
}
