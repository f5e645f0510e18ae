//! What tests of several wings share.

pub(crate) mod random;
