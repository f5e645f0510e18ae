//! A statement `INSERT` for each row, whose values are read back as the same ones ([`crate::literal`]).

use super::{Look, Renderer, ResultPart, unique_names};
use crate::literal::{literal, quoted_name};
use entasis_vector::Schema;
use entasis_vector::name;
use std::io::{self, Write};

/// Writes rows as statements.
pub struct Insert {
    /// What comes before the values.
    begin: String,
}

impl Insert {
    /// Into the look's table.
    pub fn new(look: &Look, schema: &Schema) -> Insert {
        let names: Vec<String> = unique_names(schema).iter().map(|name| quoted_name(name)).collect();
        let table: Vec<String> = name::parts(&look.table).iter().map(|part| quoted_name(part)).collect();
        Insert { begin: format!("INSERT INTO {} ({}) VALUES (", table.join("."), names.join(", ")) }
    }
}

impl Renderer for Insert {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, part: &ResultPart<'_>, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..part.rows() {
            let values = (0..part.schema().len()).map(|i| literal(&part.value(row, i), part.ty(i)));
            writeln!(out, "{}{});", self.begin, values.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::render::{Look, Mode, testing};

    #[test]
    fn rows_are_statements() {
        let look = Look { table: "s.a b".into(), ..Look::new(Mode::Insert) };
        assert_eq!(
            testing::with_look(&look, &testing::sample()),
            "INSERT INTO s.\"a b\" (name, n, share) VALUES ('a,\"b\"|', 12, 1.50);\n\
             INSERT INTO s.\"a b\" (name, n, share) VALUES (NULL, 3, NULL);\n\
             INSERT INTO s.\"a b\" (name, n, share) VALUES ('x\ny', -4, 0.05);\n"
        );
    }
}
