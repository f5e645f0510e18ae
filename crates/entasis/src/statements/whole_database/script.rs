//! Declarations of objects, as statements that create these again.
//!
//! 1. Schemas, and sequences with their next value.
//! 2. Tables, each after those to which its foreign keys refer. If tables refer to each other in a cycle, one
//!    of these keys is added later, after the rows.
//! 3. Indexes.
//! 4. Views, each after those that it names.
//!
//! Apart from that, objects are ordered by name, so that the same objects produce the same text. Names and
//! expressions are those of the catalog; a name is quoted if it would be parsed as something else.

use entasis_engine::relation::{ColumnDefault, Compression, Curve, ForeignKey, KeyKind, ReferentialAction};
use entasis_sql::quoted;
use entasis_storage::{CatalogVersion, Entry, Sequence, TableEntry, View, is_temporary};
use entasis_vector::{DataType, Error, Result, name};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

/// See the module.
pub(super) struct Script {
    /// The statements that declare everything.
    pub(super) schema: String,
    /// The tables, in the order in which they can be filled.
    pub(super) tables: Vec<Arc<TableEntry>>,
    /// Statements to run afterwards: foreign keys that were left out, and sequences that are at their ends.
    pub(super) later: String,
}

impl Script {
    /// The script of all objects that are not temporary.
    ///
    /// # Errors
    /// Internal, if the catalog lacks an object that another one needs.
    pub(super) fn of(names: &CatalogVersion) -> Result<Script> {
        let lasting: Vec<&Entry> = names.entries().filter(|entry| !is_temporary(entry.name())).collect();
        let tables =
            || lasting.iter().filter_map(|e| if let Entry::Table(table) = e { Some(table) } else { None });
        let views =
            || lasting.iter().filter_map(|e| if let Entry::View(view) = e { Some(view) } else { None });
        let writer = Writer { names };
        let (mut schema, mut later) = (String::new(), String::new());

        let schemas = lasting.iter().filter(|entry| matches!(entry, Entry::Schema(_)));
        schemas
            .for_each(|entry| line(&mut schema, &format!("CREATE SCHEMA {}", quoted(&entry.shown_name()))));
        let identities: HashSet<&str> = tables().flat_map(|table| table.definition.identities()).collect();
        for entry in &lasting {
            let Entry::Sequence(sequence) = entry else { continue };
            if !identities.contains(sequence.name.as_str()) {
                let (name, options) = (writer.object(&sequence.name), counting(sequence, DataType::Int64));
                line(&mut schema, &format!("CREATE SEQUENCE {name} {options}"));
            }
            if sequence.next().is_none() {
                line(&mut later, &format!("SELECT nextval('{}')", sequence.name.replace('\'', "''")));
            }
        }

        for entry in &lasting {
            if let Entry::Type(named) = entry {
                line(&mut schema, &format!("CREATE TYPE {} AS {}", writer.object(&named.name), named.ty));
            }
        }

        let mut order = Order { names, state: HashMap::new(), tables: Vec::new(), left: HashSet::new() };
        tables().for_each(|table| order.visit(table));
        let Order { tables, left, .. } = order;
        for table in &tables {
            schema += &writer.table(table, |key| !left.contains(&(table.name.clone(), key.name.clone())))?;
        }
        for table in &tables {
            let name = writer.object(&table.name);
            writer.indexes(table, &mut schema);
            let is_left = |key: &&ForeignKey| left.contains(&(table.name.clone(), key.name.clone()));
            for key in table.definition.foreign_keys.iter().filter(is_left) {
                line(&mut later, &format!("ALTER TABLE {name} ADD {}", writer.foreign_key(table, key)?));
            }
        }

        let (mut done, all) = (HashSet::new(), views().map(|view| (view.name.as_str(), view)).collect());
        views().for_each(|view| writer.view(view, &all, &mut done, &mut schema));
        Ok(Script { schema, tables, later })
    }

    /// The statements that create a table with its indexes, or a view. `None` if there is no such object, or
    /// it is temporary.
    ///
    /// # Errors
    /// Those of [`Script::of`].
    pub(super) fn of_object(names: &CatalogVersion, object: &str) -> Result<Option<String>> {
        let writer = Writer { names };
        let mut out = String::new();
        match names.get(object).filter(|entry| !is_temporary(entry.name())) {
            Some(Entry::Table(table)) => {
                out += &writer.table(table, |_| true)?;
                writer.indexes(table, &mut out);
            }
            Some(Entry::View(view)) => writer.view(view, &HashMap::new(), &mut HashSet::new(), &mut out),
            _ => return Ok(None),
        }
        Ok(Some(out))
    }
}

/// Adds a statement.
fn line(out: &mut String, statement: &str) {
    out.push_str(statement);
    out.push_str(";\n");
}

/// The name of an object of a catalog, as statements write it.
pub(super) fn object(name: &str) -> String {
    match name::split(name) {
        (name::MAIN, own) => quoted(own),
        (schema, own) => format!("{}.{}", quoted(schema), quoted(own)),
    }
}

/// The names of some columns, separated by commas.
pub(super) fn columns(table: &TableEntry, columns: &[usize]) -> String {
    let names: Vec<String> =
        columns.iter().map(|&column| quoted(&table.table.schema()[column].name)).collect();
    names.join(", ")
}

/// The options of a sequence that counts on from its next value, for a column of a type.
fn counting(sequence: &Sequence, ty: DataType) -> String {
    let counting = sequence.counting();
    let (lowest, highest) = match ty {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let goes_up = counting.increment > 0;
    let (min, max) = if goes_up { (1, highest) } else { (lowest, -1) };
    let mut out = String::new();
    let mut add = |text: String| write!(out, "{text} ").expect("writing to memory does not fail");
    if counting.increment != 1 {
        add(format!("INCREMENT BY {}", counting.increment));
    }
    if counting.min != min {
        add(format!("MINVALUE {}", counting.min));
    }
    if counting.max != max {
        add(format!("MAXVALUE {}", counting.max));
    }
    // A sequence that is at its end is brought there again by taking its last value.
    let last = if goes_up { counting.max } else { counting.min };
    add(format!("START WITH {}", sequence.next().unwrap_or(last)));
    if counting.cycle {
        add("CYCLE".to_owned());
    }
    out.trim_end().to_owned()
}

/// Orders tables after those to which they refer.
struct Order<'a> {
    names: &'a CatalogVersion,
    /// By name: false while the tables to which it refers are visited, true after that.
    state: HashMap<String, bool>,
    tables: Vec<Arc<TableEntry>>,
    /// Foreign keys that close a cycle, by table and name.
    left: HashSet<(String, String)>,
}

impl Order<'_> {
    fn visit(&mut self, table: &Arc<TableEntry>) {
        if self.state.contains_key(&table.name) {
            return;
        }
        self.state.insert(table.name.clone(), false);
        let mut keys: Vec<&ForeignKey> = table.definition.foreign_keys.iter().collect();
        keys.sort_by(|a, b| (&a.table, &a.name).cmp(&(&b.table, &b.name)));
        for key in keys {
            let Some(parent) = self.names.table(&key.table) else { continue };
            self.visit(parent);
            if parent.name != table.name && self.state.get(&parent.name) == Some(&false) {
                self.left.insert((table.name.clone(), key.name.clone()));
            }
        }
        self.state.insert(table.name.clone(), true);
        self.tables.push(table.clone());
    }
}

/// Writes statements that name objects of a catalog.
struct Writer<'a> {
    names: &'a CatalogVersion,
}

impl Writer<'_> {
    fn object(&self, name: &str) -> String {
        object(name)
    }

    /// `CREATE INDEX` for each index of a table.
    fn indexes(&self, table: &TableEntry, out: &mut String) {
        for key in table.definition.keys.iter().filter(|key| key.kind == KeyKind::Index) {
            let (own, columns) = (quoted(&key.name), columns(table, &key.columns));
            line(out, &format!("CREATE INDEX {own} ON {} ({columns})", self.object(&table.name)));
        }
    }

    /// `CREATE TABLE`, with those of its foreign keys that `has` accepts.
    fn table(&self, table: &TableEntry, has: impl Fn(&ForeignKey) -> bool) -> Result<String> {
        let definition = &table.definition;
        let mut parts = Vec::new();
        for column in 0..table.table.schema().len() {
            parts.push(self.column(table, column)?);
        }
        for key in &definition.keys {
            let kind = match key.kind {
                KeyKind::Primary => "PRIMARY KEY",
                KeyKind::Unique => "UNIQUE",
                KeyKind::Index => continue,
            };
            let (name, columns) = (quoted(&key.name), columns(table, &key.columns));
            parts.push(format!("CONSTRAINT {name} {kind} ({columns})"));
        }
        for check in &definition.checks {
            parts.push(format!("CONSTRAINT {} CHECK ({})", quoted(&check.name), check.sql));
        }
        for key in definition.foreign_keys.iter().filter(|key| has(key)) {
            parts.push(self.foreign_key(table, key)?);
        }
        let (name, parts) = (self.object(&table.name), parts.join(",\n    "));
        Ok(format!("CREATE TABLE {name} (\n    {parts}\n){};\n", options(table)))
    }

    fn column(&self, table: &TableEntry, column: usize) -> Result<String> {
        let field = &table.table.schema()[column];
        let mut out = format!("{} {}", quoted(&field.name), field.ty);
        match table.definition.default_of(column) {
            ColumnDefault::Null => {}
            ColumnDefault::Expression(sql) => out += &format!(" DEFAULT {}", in_brackets(sql)),
            ColumnDefault::Identity { sequence, always } => {
                let missing = || Error::internal(format!("there is no sequence {sequence}"));
                let counts = counting(self.names.sequence(sequence).ok_or_else(missing)?, field.ty);
                let (schema, table) = name::split(&table.name);
                let own = name::own(sequence);
                if *sequence != name::joined(schema, &format!("{table}_{}_seq", name::fold(&field.name))) {
                    out += &format!(" CONSTRAINT {}", quoted(own));
                }
                let when = if *always { "ALWAYS" } else { "BY DEFAULT" };
                out += &format!(" GENERATED {when} AS IDENTITY ({counts})");
                // It is implicitly NOT NULL.
                return Ok(out);
            }
        }
        let is_in_key = table.definition.primary_key().is_some_and(|key| key.columns.contains(&column));
        if !field.nullable && !is_in_key {
            out += " NOT NULL";
        }
        Ok(out)
    }

    fn foreign_key(&self, table: &TableEntry, key: &ForeignKey) -> Result<String> {
        let missing = || Error::internal(format!("there is no table {}", key.table));
        let parent = self.names.table(&key.table).ok_or_else(missing)?;
        let mut out = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
            quoted(&key.name),
            columns(table, &key.columns),
            self.object(&parent.name),
            columns(parent, &key.references)
        );
        for (when, action) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
            if action != ReferentialAction::NoAction {
                out += &format!(" ON {when} {}", action.name());
            }
        }
        Ok(out)
    }

    /// `CREATE VIEW`, after the views that it names.
    fn view<'v>(
        &self,
        view: &'v View,
        all: &HashMap<&'v str, &'v Arc<View>>,
        done: &mut HashSet<&'v str>,
        out: &mut String,
    ) {
        if done.insert(&view.name) {
            let mut needed: Vec<&Arc<View>> =
                view.needs.iter().filter_map(|name| all.get(name.as_str()).copied()).collect();
            needed.sort_by(|a, b| a.name.cmp(&b.name));
            needed.into_iter().for_each(|needed| self.view(needed, all, done, out));
            line(out, &format!("CREATE VIEW {} AS {}", self.object(&view.name), view.sql));
        }
    }
}

/// `WITH (…)`, if any option differs from its default.
fn options(table: &TableEntry) -> String {
    let choice = &table.definition.layout;
    let column = |column: usize| quoted(&table.table.schema()[column].name);
    let mut options = Vec::new();
    if let Some(layout) = choice.layout {
        options.push(format!("layout = '{}'", layout.name()));
    }
    if let Some(key) = &choice.key {
        options.push(format!("layout_key = ({})", columns(table, key)));
    }
    if let Some(curve) = choice.curve {
        options.push(format!("layout_curve = '{}'", curve.map_or("none", Curve::name)));
    }
    options.extend(choice.partitions.map(|partitions| format!("partitions = {partitions}")));
    options.extend(choice.ghost.map(|ghost| format!("ghost = {ghost}")));
    let whole = choice.compression.filter(|compression| *compression != Compression::Auto);
    let mut compressions: Vec<String> =
        whole.iter().map(|compression| format!("'{}'", compression.name())).collect();
    let single = |(at, own): &(usize, Compression)| format!("{} = '{}'", column(*at), own.name());
    compressions.extend(choice.column_compressions.iter().map(single));
    for (name, latency) in [("read_sla", choice.read_sla), ("update_sla", choice.update_sla)] {
        options.extend(latency.filter(|ns| *ns > 0).map(|ns| format!("{name} = '{ns}ns'")));
    }
    if !compressions.is_empty() {
        options.push(format!("compression = ({})", compressions.join(", ")));
    }
    if options.is_empty() { String::new() } else { format!(" WITH ({})", options.join(", ")) }
}

/// An expression in a form that can follow `DEFAULT`: in brackets, unless it has no blanks outside brackets
/// and quotes.
fn in_brackets(sql: &str) -> String {
    let (mut depth, mut quote, mut has_blank) = (0usize, None, false);
    for character in sql.chars() {
        match (quote, character) {
            (Some(open), _) => quote = quote.filter(|_| character != open),
            (None, '\'' | '"') => quote = Some(character),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, _) => has_blank |= depth == 0 && character.is_whitespace(),
        }
    }
    if has_blank { format!("({sql})") } else { sql.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::in_brackets;

    #[test]
    fn expressions_get_brackets_once() {
        for (sql, expected) in [
            ("5", "5"),
            ("'a b'", "'a b'"),
            ("nextval('s')", "nextval('s')"),
            ("CAST('1 day' AS INTERVAL)", "CAST('1 day' AS INTERVAL)"),
            ("1 + 2", "(1 + 2)"),
            ("(1 + 2)", "(1 + 2)"),
            ("(1) + (2)", "((1) + (2))"),
            ("'it''s' || ' (' ", "('it''s' || ' (' )"),
        ] {
            assert_eq!(in_brackets(sql), expected);
            assert_eq!(in_brackets(expected), expected);
        }
    }
}
