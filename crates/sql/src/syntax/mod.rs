//! Text to syntax trees, and properties of a tree by itself: nothing here depends on a catalog, a function or
//! DataFusion's binder.
//!
//! ```text
//! lists  stored  keyed                             lists as parameters; texts that the catalog keeps;
//!                                                  statements that name rows by values
//! build                                            parts of trees
//! parse                                            a script to statements
//! commands                                         statements about a whole database
//! grammar  preparing                               one statement from its tokens
//! words                                            tokens that the parser would misinterpret
//! asof  using_key  sample  integers  placeholders  some of these, in modules of their own
//! targets  sequence_call  types  depth             properties of a tree, or of its tokens
//! parsed  place  tokens  object_name  dialect  walk  keywords  complete
//! ```

pub(crate) mod asof;
pub(crate) mod build;
pub(crate) mod commands;
pub(crate) mod complete;
mod depth;
mod dialect;
mod grammar;
mod integers;
pub(crate) mod keyed;
pub(crate) mod keywords;
mod lists;
pub(crate) mod object_name;
pub(crate) mod parse;
pub(crate) mod parsed;
pub(crate) mod place;
pub(crate) mod placeholders;
mod preparing;
mod sample;
pub(crate) mod sequence_call;
pub(crate) mod stored;
pub(crate) mod targets;
mod tokens;
pub(crate) mod types;
pub(crate) mod using_key;
pub(crate) mod walk;
mod words;

pub(crate) use depth::needs_deep_stack;
pub use depth::{is_on_deep_stack, on_deep_stack};
pub(crate) use grammar::SEARCH_PATH;
