//! The APIs: thin shells over the use cases of `control`.

pub mod grpc;
