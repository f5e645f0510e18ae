//! Text to syntax trees, and properties of a tree by itself: nothing here depends on a catalog, a function or
//! a binder.
//!
//! ```text
//! lists  stored  keyed                             lists as parameters; texts that the catalog keeps;
//!                                                  statements that name rows by values
//! build                                            parts of trees
//! parse  tokenize                                  a script to statements; to tokens
//! commands                                         statements about a whole database
//! grammar  preparing                               one statement from its tokens
//! words                                            tokens that the parser would misinterpret
//! asof  using_key  sample  integers  placeholders  insert_words  fetch  brackets
//!                                                  some of these, in modules of their own
//! targets  sequence_call  types  clauses           properties of a tree, or of its tokens; what is refused
//! parsed                                           a statement with its tree
//! aside  depth                                     long and deep statements on threads of their own
//! place  tokens  map_types  object_name  dialect  disguise  walk  keywords  complete
//! ```

mod aside;
pub mod asof;
mod brackets;
pub mod build;
pub mod clauses;
pub mod commands;
pub mod complete;
mod depth;
mod dialect;
pub mod disguise;
mod fetch;
mod grammar;
pub mod insert_words;
mod integers;
pub mod keyed;
pub mod keywords;
mod lists;
mod map_types;
pub mod object_name;
pub mod parse;
pub mod parsed;
pub mod place;
pub mod placeholders;
mod preparing;
mod sample;
pub mod sequence_call;
pub mod stored;
pub mod targets;
mod tokenize;
mod tokens;
pub mod types;
pub mod using_key;
pub mod walk;
mod words;

pub use aside::{FreedAside, aside};
pub use depth::{is_on_deep_stack, needs_deep_stack, on_deep_stack};
pub use grammar::SEARCH_PATH;
pub use parse::parse;
