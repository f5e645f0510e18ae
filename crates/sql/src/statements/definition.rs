//! `CREATE TABLE`: columns and their declarations.
//!
//! 1. Every column gets its type, its default or sequence, and its column constraints.
//! 2. Table constraints follow. All constraints have names; if none is given, it is formed as in PostgreSQL
//!    (`t_pkey`, `t_a_b_key`, `t_a_check`, `t_a_fkey`).
//! 3. Columns of the primary key are not nullable.
//!
//! Expressions (defaults and checks) are bound here once, to check that they can be, and are kept as text.
//! Constraints are enforced elsewhere: checks in the plans of the statements that write
//! ([`crate::statements::change`]), keys and foreign keys by the caller that runs these.

use super::binder::Binder;
use super::bound::SequenceOptions;
use super::change::TableView;
use super::columns::find_column;
use super::{layout, sequence};
use crate::statements::rows;
use entasis_binder::environment::Catalog;
use entasis_binder::environment::schema::unknown_table;
use entasis_engine::plan::Node;
use entasis_engine::relation::{
    Check, ColumnDefault, Definition, ForeignKey, Key, KeyKind, OnCommit, ReferentialAction,
};
use entasis_syntax::build::select_expr;
use entasis_syntax::clauses;
use entasis_syntax::object_name::{bare, is_temporary, table_name};
use entasis_syntax::place::locate_ident;
use entasis_syntax::stored::{called_sequences, read_columns};
use entasis_syntax::types::sql_type;
use entasis_syntax::walk::{Walk, WalkMut};
use entasis_vector::{DataType, Error, Field, Result, name};
use sqlparser::ast;
use sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, CreateTable, Expr, ForeignKeyConstraint, GeneratedAs, Ident,
    IndexColumn, ObjectName, TableConstraint, Visitor, VisitorMut,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// True if the query of an expression is more than the expression over one row.
fn gathers(node: &Node) -> bool {
    match node {
        Node::Aggregate(_) | Node::Window(_) | Node::Unnest(_) => true,
        node => node.children().into_iter().any(gathers),
    }
}

/// A table that is being declared.
pub(crate) struct Declared {
    pub(crate) table: String,
    pub(crate) columns: Vec<Field>,
    pub(crate) definition: Definition,
    pub(crate) sequences: Vec<(String, SequenceOptions)>,
}

impl Binder<'_> {
    /// The table that a `CREATE TABLE` with columns declares.
    pub(crate) fn declare(&self, name: &str, on_commit: OnCommit, create: &CreateTable) -> Result<Declared> {
        let mut declared = Declared::new(name);
        declared.definition.on_commit = on_commit;
        for column in &create.columns {
            declared.add_column(column)?;
        }
        if declared.columns.is_empty() {
            return Err(Error::input("a table needs at least one column"));
        }
        for (i, column) in create.columns.iter().enumerate() {
            self.column_options(&mut declared, i, column)?;
        }
        for constraint in &create.constraints {
            self.constraint(&mut declared, constraint)?;
        }
        declared.definition.layout = layout::of_table(&create.table_options, &declared.columns)?;
        declared.note_sequences(self.catalog)?;
        Ok(declared)
    }

    /// The options of a column that has been added.
    pub(crate) fn column_options(&self, declared: &mut Declared, i: usize, column: &ColumnDef) -> Result<()> {
        for option in &column.options {
            let name = option.name.as_ref();
            match &option.option {
                ColumnOption::Null => {}
                ColumnOption::NotNull => declared.columns[i].nullable = false,
                ColumnOption::PrimaryKey(key) => {
                    clauses::primary_key(key)?;
                    declared.add_key(self.catalog, KeyKind::Primary, name, vec![i])?;
                }
                ColumnOption::Unique(unique) => {
                    clauses::unique(unique)?;
                    declared.add_key(self.catalog, KeyKind::Unique, name, vec![i])?;
                }
                ColumnOption::Check(check) => {
                    self.add_check(declared, name.or(check.name.as_ref()), check, Some(i))?
                }
                ColumnOption::ForeignKey(key) => {
                    self.add_foreign_key(declared, name.or(key.name.as_ref()), vec![i], key)?;
                }
                ColumnOption::Default(expr) => {
                    let default = self.default(expr, &declared.columns[i])?;
                    declared.set_default(i, default, &column.name)?;
                }
                ColumnOption::Generated {
                    generated_as,
                    sequence_options,
                    generation_expr: None,
                    generation_expr_mode: _,
                    generated_keyword: _,
                } => {
                    let always = match generated_as {
                        GeneratedAs::Always => true,
                        GeneratedAs::ByDefault => false,
                        GeneratedAs::ExpStored => return Err(Error::not_supported("generated columns")),
                    };
                    let options = sequence::options(
                        sequence_options.as_deref().unwrap_or_default(),
                        declared.columns[i].ty,
                    )
                    .map_err(|e| e.with_context(format!("column {}", column.name.value)))?;
                    // Its sequence has the name of the constraint, if that has one.
                    let sequence = match name {
                        Some(name) => beside(&declared.table, &name.value.to_ascii_lowercase()),
                        None => {
                            let own = name::own(&declared.table);
                            beside(
                                &declared.table,
                                &format!("{own}_{}_seq", column.name.value.to_ascii_lowercase()),
                            )
                        }
                    };
                    declared.sequences.push((sequence.clone(), options));
                    declared.set_default(i, ColumnDefault::Identity { sequence, always }, &column.name)?;
                    declared.columns[i].nullable = false;
                }
                ColumnOption::Generated { .. } => return Err(Error::not_supported("generated columns")),
                ColumnOption::Collation(_) => return Err(Error::not_supported("collations")),
                other => return Err(Error::not_supported(format!("the column option {other}"))),
            }
        }
        Ok(())
    }

    /// A constraint of the table.
    pub(crate) fn constraint(&self, declared: &mut Declared, constraint: &TableConstraint) -> Result<()> {
        match constraint {
            TableConstraint::PrimaryKey(key) => {
                clauses::primary_key(key)?;
                let columns = key_columns(&declared.columns, &key.columns)?;
                declared.add_key(self.catalog, KeyKind::Primary, key.name.as_ref(), columns)
            }
            TableConstraint::Unique(unique) => {
                clauses::unique(unique)?;
                let columns = key_columns(&declared.columns, &unique.columns)?;
                declared.add_key(self.catalog, KeyKind::Unique, unique.name.as_ref(), columns)
            }
            TableConstraint::Check(check) => self.add_check(declared, check.name.as_ref(), check, None),
            TableConstraint::ForeignKey(key) => {
                let columns = key.columns.iter().map(|name| find_column(&declared.columns, name));
                let columns = columns.collect::<Result<Vec<usize>>>()?;
                self.add_foreign_key(declared, key.name.as_ref(), columns, key)
            }
            other => Err(Error::not_supported(format!("the constraint {other}"))),
        }
    }

    fn add_check(
        &self,
        declared: &mut Declared,
        name: Option<&Ident>,
        check: &CheckConstraint,
        column: Option<usize>,
    ) -> Result<()> {
        clauses::check(check)?;
        let what = "a CHECK constraint";
        let read = read_columns(&check.expr, what)?;
        self.refuse_host_functions(&check.expr, what)?;
        // Binding reports errors in it; it must be a condition.
        let view = TableView { name: &declared.table, columns: &declared.columns };
        self.over_view(&view, |select| select.selection = Some((*check.expr).clone())).map_err(
            |e| match e.message().contains("non-boolean predicate") || e.message().ends_with("not BOOLEAN") {
                true => Error::input(format!("CHECK: {} is not a condition", check.expr)),
                false => e.with_context("CHECK"),
            },
        )?;
        let part = match (column, read.iter().collect::<Vec<_>>().as_slice()) {
            (Some(column), _) => declared.columns[column].name.to_ascii_lowercase(),
            (None, [only]) => only.to_string(),
            (None, _) => String::new(),
        };
        let name = declared.constraint_name(name, &[&part], "check", &|_| false)?;
        // The table may be renamed.
        let mut expr = (*check.expr).clone();
        let _ = expr.walk_mut(&mut Unqualifier);
        declared.definition.checks.push(Check { name, sql: expr.to_string() });
        Ok(())
    }

    /// Refuses functions of the host program: other connections write to the table without them.
    fn refuse_host_functions(&self, expr: &Expr, what: &str) -> Result<()> {
        struct Look<'a>(&'a dyn Catalog);
        impl Visitor for Look<'_> {
            type Break = String;
            fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
                let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
                let name = function.name.0.last().and_then(|part| part.as_ident());
                let name = name.map_or_else(String::new, |ident| ident.value.to_ascii_lowercase());
                match self.0.host_function(&name) {
                    Some(_) => ControlFlow::Break(name),
                    None => ControlFlow::Continue(()),
                }
            }
        }
        match expr.walk(&mut Look(self.catalog)) {
            ControlFlow::Break(name) => Err(Error::input(format!(
                "{what} cannot call {name}, a function of the program: other connections do not have it"
            ))),
            ControlFlow::Continue(()) => Ok(()),
        }
    }

    /// The default of a column, from its expression.
    pub(crate) fn default(&self, expr: &Expr, column: &Field) -> Result<ColumnDefault> {
        let context = |e: Error| e.with_context(format!("DEFAULT of column {}", column.name));
        read_columns(expr, "a DEFAULT")?;
        self.refuse_host_functions(expr, "a DEFAULT")?;
        let mut plan = self.query(&select_expr(expr.clone())?).map_err(context)?;
        if gathers(&plan.root) {
            return Err(context(
                Error::input(format!("{expr} is not a value of one row alone"))
                    .with_hint("a DEFAULT has no aggregates, window functions or unnest"),
            ));
        }
        let from = plan.columns.ty(plan.output[0].column);
        match rows::literal_row(&plan, column.ty) {
            Some(value) if value.is_null() => return Ok(ColumnDefault::Null),
            Some(_) => {}
            None => rows::cast_outputs(&mut plan, &[column.ty])?,
        }
        if !can_cast(from, column.ty) {
            return Err(context(Error::input(format!("{expr} is {from}, not {}", column.ty))));
        }
        Ok(ColumnDefault::Expression(expr.to_string()))
    }

    fn add_foreign_key(
        &self,
        declared: &mut Declared,
        name: Option<&Ident>,
        columns: Vec<usize>,
        key: &ForeignKeyConstraint,
    ) -> Result<()> {
        clauses::foreign_key(key)?;
        let parent = self.referred_table(&declared.table, &key.foreign_table)?;
        if self.catalog.is_elsewhere(&parent) {
            let text = format!("a foreign key cannot refer to {parent}, which is in another database");
            return Err(Error::input(text));
        }
        if is_temporary(&declared.table) != is_temporary(&parent) {
            let what = ["permanent", "temporary"][usize::from(is_temporary(&declared.table))];
            return Err(Error::input(format!(
                "a foreign key of a {what} table refers to {what} tables only, not to {parent}"
            )));
        }
        // A table may refer to itself.
        let (parent_columns, parent_definition) = if parent == declared.table {
            (declared.columns.clone(), declared.definition.clone())
        } else {
            let relation = self.catalog.table(&parent).ok_or_else(|| unknown_table(&parent, self.catalog))?;
            let definition = self.catalog.definition(&parent).map(|d| (*d).clone()).unwrap_or_default();
            (relation.schema().clone(), definition)
        };
        if parent_definition.on_commit == OnCommit::Delete
            && declared.definition.on_commit != OnCommit::Delete
        {
            let text = format!("table {parent} is emptied at every commit, but {} is not", declared.table);
            return Err(Error::input(text).with_hint("declare both ON COMMIT DELETE ROWS"));
        }
        let own: Vec<&Field> = columns.iter().map(|&i| &declared.columns[i]).collect();
        let references =
            references(&own, &parent, &parent_columns, &parent_definition, &key.referred_columns)?;
        let (on_delete, on_update) = (action(key.on_delete), action(key.on_update));
        let twice = columns.iter().enumerate().find(|&(at, column)| columns[..at].contains(column));
        if let Some((_, &column)) = twice.filter(|_| on_delete.changes_rows() || on_update.changes_rows()) {
            let column = &declared.columns[column].name;
            return Err(Error::input(format!(
                "the column {column} occurs twice in a foreign key that is to set it"
            )));
        }
        let parts: Vec<String> =
            columns.iter().map(|&i| declared.columns[i].name.to_ascii_lowercase()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let name = declared.constraint_name(name, &parts, "fkey", &|_| false)?;
        declared.definition.foreign_keys.push(ForeignKey {
            name,
            columns,
            table: parent,
            references,
            on_delete,
            on_update,
        });
        Ok(())
    }
}

/// The columns of a table to which a foreign key of the columns `own` refers: those that it names, or the
/// primary key.
fn references(
    own: &[&Field],
    parent: &str,
    columns: &[Field],
    definition: &Definition,
    named: &[Ident],
) -> Result<Vec<usize>> {
    let references = if named.is_empty() {
        let primary = definition.primary_key().map(|key| key.columns.clone());
        primary.ok_or_else(|| {
            Error::input(format!("the table {parent} has no primary key to refer to"))
                .with_hint(format!("name the columns: REFERENCES {parent} (column)"))
        })?
    } else {
        let found = named
            .iter()
            .map(|name| find_column(columns, name).map_err(|e| e.with_context(format!("table {parent}"))));
        found.collect::<Result<Vec<usize>>>()?
    };
    if references.len() != own.len() {
        return Err(Error::input(format!(
            "a foreign key of {} columns refers to {} columns of {parent}",
            own.len(),
            references.len()
        )));
    }
    if !definition.has_unique_key(&references) {
        let names: Vec<&str> = references.iter().map(|&i| &*columns[i].name).collect();
        return Err(Error::input(format!("({}) is not a unique key of table {parent}", names.join(", "))));
    }
    for (own, &other) in own.iter().zip(&references) {
        let other = &columns[other];
        if !are_comparable(own.ty, other.ty) {
            let text = format!(
                "the column {} is {}, but {parent}.{}, to which it refers, is {}",
                own.name, own.ty, other.name, other.ty
            );
            let hint =
                "declare both with one type; only integers, and decimals of one scale, may differ in width";
            return Err(Error::input(text).with_hint(hint));
        }
    }
    Ok(references)
}

impl Binder<'_> {
    /// The table to which a foreign key of `table` refers. Without a schema, the table's own name refers to
    /// itself.
    fn referred_table(&self, table: &str, name: &ObjectName) -> Result<String> {
        let is_own = bare(name).is_some_and(|own| {
            let schema = self.catalog.schema_of_new();
            let new = name::joined(schema.as_deref().unwrap_or(name::MAIN), &own);
            name::own(table) == own && (is_temporary(table) || table == new)
        });
        if is_own { Ok(table.to_owned()) } else { table_name(name) }
    }
}

impl Declared {
    fn new(table: &str) -> Declared {
        Declared {
            table: table.to_string(),
            columns: Vec::new(),
            definition: Definition::default(),
            sequences: Vec::new(),
        }
    }

    /// Adds a column without its options, and returns its number.
    pub(crate) fn add_column(&mut self, column: &ColumnDef) -> Result<usize> {
        let ty = sql_type(&column.data_type)
            .map_err(|e| locate_ident(e, &column.name))
            .map_err(|e| e.with_context(format!("column {}", column.name.value)))?;
        if self.columns.iter().any(|there| there.name.eq_ignore_ascii_case(&column.name.value)) {
            let error = Error::input(format!("there are two columns named {}", column.name.value));
            return Err(locate_ident(error, &column.name));
        }
        self.columns.push(Field::new(column.name.value.as_str(), ty));
        Ok(self.columns.len() - 1)
    }

    pub(crate) fn set_default(&mut self, i: usize, default: ColumnDefault, name: &Ident) -> Result<()> {
        let defaults = &mut self.definition.defaults;
        if defaults.len() <= i {
            defaults.resize(i + 1, ColumnDefault::Null);
        }
        if defaults[i] != ColumnDefault::Null {
            return Err(locate_ident(
                Error::input(format!("the column {} has two defaults", name.value)),
                name,
            ));
        }
        defaults[i] = default;
        Ok(())
    }

    fn add_key(
        &mut self,
        catalog: &dyn Catalog,
        kind: KeyKind,
        name: Option<&Ident>,
        columns: Vec<usize>,
    ) -> Result<()> {
        for (i, column) in columns.iter().enumerate() {
            if columns[..i].contains(column) {
                let column = &self.columns[*column].name;
                return Err(Error::input(format!("the column {column} occurs twice in a key")));
            }
        }
        let keys = &self.definition.keys;
        if kind == KeyKind::Primary {
            if self.definition.primary_key().is_some() {
                return Err(Error::input("a table has at most one primary key"));
            }
            columns.iter().for_each(|&i| self.columns[i].nullable = false);
        } else if name.is_none() && keys.iter().any(|key| key.kind == kind && key.columns == columns) {
            // A repeated constraint has no effect.
            return Ok(());
        }
        let parts: Vec<String> = match kind {
            KeyKind::Primary => Vec::new(),
            _ => columns.iter().map(|&i| self.columns[i].name.to_ascii_lowercase()).collect(),
        };
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let suffix = if kind == KeyKind::Primary { "pkey" } else { "key" };
        let temporary = is_temporary(&self.table);
        let is_taken =
            |name: &str| catalog.table_with_index(name, temporary).is_some_and(|owner| owner != self.table);
        let name = self.constraint_name(name, &parts, suffix, &is_taken)?;
        let key = Key { name, columns, kind };
        if kind == KeyKind::Primary {
            self.definition.keys.insert(0, key);
        } else {
            self.definition.keys.push(key);
        }
        Ok(())
    }

    /// Records the sequences that defaults and checks call.
    pub(crate) fn note_sequences(&mut self, catalog: &dyn Catalog) -> Result<()> {
        let defaults = self.definition.defaults.iter().filter_map(|default| match default {
            ColumnDefault::Expression(sql) => Some(sql),
            _ => None,
        });
        let texts = defaults.chain(self.definition.checks.iter().map(|check| &check.sql));
        let called = texts.map(|sql| called_sequences(sql)).collect::<Result<Vec<_>>>()?;
        self.definition.sequences =
            called.into_iter().flatten().collect::<BTreeSet<String>>().into_iter().collect();
        if let Some(sequence) =
            self.definition.sequences.iter().find(|sequence| catalog.is_elsewhere(sequence))
        {
            let text = format!("table {} cannot use {sequence}, which is in another database", self.table);
            return Err(Error::input(text));
        }
        if let (Some(sequence), false) = (
            self.definition.sequences.iter().find(|sequence| is_temporary(sequence)),
            is_temporary(&self.table),
        ) {
            let text =
                format!("table {} is permanent and cannot use the temporary sequence {sequence}", self.table);
            return Err(Error::input(text));
        }
        Ok(())
    }

    /// The given name, or one that is formed from the columns and is not taken, neither in the table nor
    /// elsewhere.
    fn constraint_name(
        &self,
        given: Option<&Ident>,
        parts: &[&str],
        suffix: &str,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Result<String> {
        if let Some(given) = given {
            let name = given.value.to_ascii_lowercase();
            if has_constraint(&self.definition, &name) {
                let error = Error::input(format!("table {} has two constraints named {name}", self.table));
                return Err(locate_ident(error, given));
            }
            return Ok(name);
        }
        let parts = parts.iter().filter(|part| !part.is_empty());
        let words: Vec<&str> =
            std::iter::once(name::own(&self.table)).chain(parts.copied()).chain([suffix]).collect();
        let name = words.join("_");
        let numbered = (1..).map(|number| format!("{name}{number}"));
        let is_free = |name: &String| !has_constraint(&self.definition, name) && !is_taken(name);
        Ok(std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name))
    }
}

/// A name in the same schema as a table.
fn beside(table: &str, own: &str) -> String {
    name::joined(name::split(table).0, own)
}

/// True if a constraint or index of the table has that name.
pub(crate) fn has_constraint(definition: &Definition, name: &str) -> bool {
    definition.keys.iter().any(|key| key.name == name)
        || definition.checks.iter().any(|check| check.name == name)
        || definition.foreign_keys.iter().any(|key| key.name == name)
}

/// True if values of the two types are equal exactly if their numbers or texts are: the types that a foreign
/// key may pair.
fn are_comparable(own: DataType, other: DataType) -> bool {
    let scale = |ty: DataType| match ty {
        DataType::Decimal { scale, .. } => Some(scale),
        _ => None,
    };
    own == other
        || own.is_integer() && other.is_integer()
        || scale(own).is_some() && scale(own) == scale(other)
}

/// The action of a foreign key, as it is written.
fn action(written: Option<ast::ReferentialAction>) -> ReferentialAction {
    match written {
        None | Some(ast::ReferentialAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// The columns of a key.
pub(crate) fn key_columns(columns: &[Field], key: &[IndexColumn]) -> Result<Vec<usize>> {
    key.iter()
        .map(|column| match &column.column.expr {
            Expr::Identifier(name) => find_column(columns, name),
            other => Err(Error::not_supported(format!("the expression {other} in a key"))),
        })
        .collect()
}

/// Removes table qualifiers from column names.
struct Unqualifier;

impl VisitorMut for Unqualifier {
    type Break = std::convert::Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let Some(column) = parts.pop()
        {
            *expr = Expr::Identifier(column);
        }
        ControlFlow::Continue(())
    }
}

/// Whether values of one type can be cast to another at all.
fn can_cast(from: DataType, to: DataType) -> bool {
    if let (DataType::List(from), DataType::List(to)) = (from.of_any_length(), to.of_any_length()) {
        return can_cast(*from, *to);
    }
    if let (Some((key, value)), Some((new_key, new_value))) = (from.key_and_value(), to.key_and_value()) {
        return can_cast(key, new_key) && can_cast(value, new_value);
    }
    from == to
        || matches!(
            (from, to),
            (DataType::Struct(_), DataType::Struct(_))
                | (DataType::Enum(_), DataType::Enum(_))
                | (DataType::Time | DataType::TimestampTz, DataType::TimeTz)
                | (DataType::TimeTz, DataType::Time)
        )
        || from == DataType::Null
        || from == DataType::Varchar
        || to == DataType::Varchar
        || (from.is_numeric() || from == DataType::Boolean) && (to.is_numeric() || to == DataType::Boolean)
        || matches!(
            from,
            DataType::Date | DataType::Timestamp | DataType::TimestampNs | DataType::TimestampTz
        ) && matches!(
            to,
            DataType::Date
                | DataType::Time
                | DataType::Timestamp
                | DataType::TimestampNs
                | DataType::TimestampTz
        )
}
