//! The gRPC contract `jobq.v1`. Its documentation is in `proto/jobq/v1`.

/// The messages, clients and server traits that the protos describe.
#[expect(missing_docs, clippy::all, clippy::pedantic, reason = "generated from the protos")]
#[expect(unreachable_pub, unused_qualifications, reason = "generated from the protos")]
pub mod v1 {
    tonic::include_proto!("jobq.v1");
}

/// The protos as a serialized descriptor set, source comments included.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/jobq.v1.bin"));

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::{FileDescriptorProto, FileDescriptorSet};

    use super::DESCRIPTORS;
    use super::v1::{TaskState as WireTaskState, WorkflowState as WireWorkflowState};
    use crate::workflow::{TaskState, WorkflowState};

    fn our_files() -> Vec<FileDescriptorProto> {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        files.into_iter().filter(|file| file.package() == "jobq.v1").collect()
    }

    /// Everything in a file has a place in its source info; what is documented has a comment.
    fn undocumented(file: &FileDescriptorProto) -> Vec<Vec<i32>> {
        // Paths of declarations: services, methods, messages, fields, enums, values.
        let is_declaration = |path: &[i32]| {
            matches!(path, [4 | 5 | 6, _] | [4 | 5 | 6, _, 2, _])
        };
        let info = file.source_code_info.as_ref().unwrap();
        let places = info.location.iter().filter(|place| is_declaration(&place.path));
        let bare = places.filter(|place| place.leading_comments().trim().is_empty());
        bare.map(|place| place.path.clone()).collect()
    }

    #[test]
    fn every_declaration_of_the_protos_is_documented() {
        let files = our_files();
        assert!(!files.is_empty());
        for file in files {
            assert_eq!(undocumented(&file), Vec::<Vec<i32>>::new(), "{}", file.name());
        }
    }

    #[test]
    fn the_states_of_the_protos_are_those_of_the_model() {
        for state in WorkflowState::ALL {
            let name = format!("WORKFLOW_STATE_{}", state.as_str().to_uppercase());
            assert!(WireWorkflowState::from_str_name(&name).is_some(), "{name}");
        }
        for state in TaskState::ALL {
            let name = format!("TASK_STATE_{}", state.as_str().to_uppercase());
            assert!(WireTaskState::from_str_name(&name).is_some(), "{name}");
        }
    }
}
