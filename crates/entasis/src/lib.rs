//! Entasis: the columnar database you can update, in your process.
