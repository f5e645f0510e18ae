//! Names of what a setting may be: a list of the values with their names in SQL, and the names as texts.

/// `NAMES` and `Display` for an enum that is a setting, by the names of its variants. A variant without a name does not compile.
macro_rules! named {
    ($kind:ident: $($variant:ident = $name:literal),+) => {
        impl $kind {
            /// All, with their names in SQL.
            pub const NAMES: [($kind, &'static str); [$($name),+].len()] = [$(($kind::$variant, $name)),+];
        }

        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $($kind::$variant => $name),+
                })
            }
        }
    };
}

pub(crate) use named;
