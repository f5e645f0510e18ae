//! Name resolution for objects that are named without a schema.
//!
//! A temporary object of the connection comes first, then objects in the schemas of its search path, then
//! objects in `main`. The names in a statement are qualified with the schemas in which they are found, before
//! anything else uses them; from then on a name identifies one object. A table in `FROM` keeps its name as an
//! alias, so that `t.a` still refers to its column. Text that the catalog keeps (views, defaults, checks) is
//! kept with these schemas, so that it means the same on other connections and later.
//!
//! What the host program has registered hides everything else of its name, but only where a query reads a
//! name without a schema: there the name gets the hidden schema [`REGISTERED`]. The table that a statement
//! changes or declares is always one of the catalog, and so is everything that the text of a view names. If
//! one bare name would mean both in the same `UPDATE`, `DELETE` or `MERGE`, or in a view, the statement is
//! refused.
//!
//! Nothing is done if there is only `main`: no temporary object, and no search path. Names of new objects are
//! handled by [`entasis_binder::environment::schema::new_name`]. Common table expressions hide everything.
//!
//! If there are several databases, names are first resolved to their places in these ([`Catalog::place`]): a
//! name in the database on which the statement works loses that database's name, and an object of another
//! database becomes one quoted name, `"database.schema.object"`. Names of new objects are resolved, too, if
//! they have several parts. The declarations of a table are read as if the table's database were the current
//! one.

use entasis_binder::REGISTERED;
use entasis_binder::environment::Catalog;
use entasis_syntax::asof;
use entasis_syntax::build::table_alias;
use entasis_syntax::follow_scopes;
use entasis_syntax::object_name::{bare, table_name};
use entasis_syntax::parse::parse_query;
use entasis_syntax::parsed::{Ast, Command};
use entasis_syntax::sequence_call::{Kind, named_sequence};
use entasis_syntax::stored::Scopes;
use entasis_syntax::using_key;
use entasis_syntax::walk::WalkMut;
use entasis_vector::{Error, Result, name};
use sqlparser::ast::{
    AlterTableOperation, ColumnOption, CreateTable, Expr, FromTable, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, ObjectType, Query, RenameTableNameKind, SchemaName,
    Statement, TableConstraint, TableFactor, TableObject, Value, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;

/// The statement with qualified names; `None` if it need not be changed. `has_database`: it may name a
/// database.
///
/// # Errors
/// Input, if a name in it means two things.
pub(crate) fn resolved(ast: &Ast, catalog: &dyn Catalog, has_database: bool) -> Result<Option<Ast>> {
    if !has_database && !catalog.has_other_schemas() {
        return Ok(None);
    }
    let mut ast = ast.clone();
    let mut resolver = Resolver {
        catalog,
        scopes: Scopes::default(),
        declared: false,
        is_view: false,
        changed: None,
        refused: None,
    };
    resolver.ast(&mut ast);
    resolver.refused.map_or(Ok(Some(ast)), Err)
}

/// True if a name is that of the database on which the statement works, and not of a table in it.
pub(crate) fn is_target_database(name: &ObjectName, catalog: &dyn Catalog) -> bool {
    match parts_of(name).as_deref() {
        Some([one]) => {
            catalog.is_target_database(one)
                && catalog.place(std::slice::from_ref(one), true).is_none()
                && catalog.schema_of(one).is_none()
                && catalog.definition(one).is_none()
        }
        _ => false,
    }
}

/// The parts of a name in lower case, if it consists only of identifiers. Paths are in single quotes.
fn parts_of(name: &ObjectName) -> Option<Vec<String>> {
    let part = |part: &ObjectNamePart| {
        let ident = part.as_ident().filter(|ident| ident.quote_style != Some('\''));
        ident.map(|ident| ident.value.to_ascii_lowercase())
    };
    name.0.iter().map(part).collect()
}

/// A part of a name, quoted.
fn quoted_part(part: String) -> ObjectNamePart {
    ObjectNamePart::Identifier(Ident::with_quote('"', part))
}

/// The parts of the name, in another database, of an object.
fn parts_in(database: &str, name: &str) -> [String; 3] {
    let (schema, own) = name::split(name);
    [database, schema, own].map(str::to_owned)
}

/// A name as the text in a call of a sequence has it, which [`name::parts`] reads.
fn written(parts: &[String]) -> String {
    let part = |part: &String| match part.contains(['.', '"']) {
        true => format!("\"{}\"", part.replace('"', "\"\"")),
        false => part.clone(),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(".")
}

/// The query of a view of another database, as it is read from here: the objects that it names, which are
/// among `needs`, are in that database.
///
/// # Errors
/// Input, if the text is not a query.
pub fn view_of(sql: &str, database: &str, needs: &[String]) -> Result<String> {
    let mut query = parse_query(sql)?;
    let _ = query.walk_mut(&mut Prefixer { database, needs, scopes: Scopes::default() });
    Ok(using_key::restored(asof::restored(query.to_string())))
}

/// Qualifies names with a database.
struct Prefixer<'a> {
    database: &'a str,
    needs: &'a [String],
    scopes: Scopes,
}

impl VisitorMut for Prefixer<'_> {
    type Break = std::convert::Infallible;

    follow_scopes!(&mut Query);

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Ok(own) = table_name(name)
            && !bare(name).is_some_and(|own| self.scopes.has(&own))
            && self.needs.contains(&own)
        {
            let last = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
            name.0 = parts_in(self.database, &own).into_iter().map(quoted_part).collect();
            if alias.is_none() {
                *alias = last.map(table_alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Function(function) = expr
            && let Some((own, text)) = sequence_text(function)
            && self.needs.contains(&own)
        {
            *text = written(&parts_in(self.database, &own));
        }
        ControlFlow::Continue(())
    }
}

/// The name of the sequence in a call, and the text that contains it.
fn sequence_text(function: &mut Function) -> Option<(String, &mut String)> {
    Kind::of(&function.name.to_string().to_ascii_lowercase())?;
    let name = named_sequence(function).ok()?;
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.as_mut_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] => match &mut value.value {
            Value::SingleQuotedString(text) => Some((name, text)),
            _ => None,
        },
        _ => None,
    }
}

/// See the module.
struct Resolver<'a> {
    catalog: &'a dyn Catalog,
    scopes: Scopes,
    /// True within the declarations of a table.
    declared: bool,
    /// True within the query of a view.
    is_view: bool,
    /// The table whose rows the statement changes, if it is written without a schema and the host program has
    /// registered a relation of that name.
    changed: Option<String>,
    /// Why the statement is refused.
    refused: Option<Error>,
}

impl Resolver<'_> {
    fn ast(&mut self, ast: &mut Ast) {
        match ast {
            Ast::Sql(statement) | Ast::CreateOrReplace(statement) => self.statement(statement),
            Ast::Explain { statement, .. } => self.ast(statement),
            Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => {
                self.all(&mut **query)
            }
            Ast::CopyFrom { table, .. } | Ast::ExplainLayout { table, .. } => self.name(table),
            Ast::Command(
                Command::CheckIntegrity { table: Some(table) } | Command::Vacuum { table: Some(table) },
            ) => {
                if !is_target_database(table, self.catalog) {
                    self.name(table);
                }
            }
            Ast::Command(_)
            | Ast::Preparing(_)
            | Ast::Calibrate
            | Ast::Checkpoint { .. }
            | Ast::ShowTables { .. }
            | Ast::ShowAllTables
            | Ast::Use { .. }
            | Ast::ShowSettings
            | Ast::ShowSetting(_)
            | Ast::Set { .. }
            | Ast::Reset(_) => {}
        }
    }

    fn all(&mut self, part: &mut impl VisitMut) {
        let _ = part.walk_mut(self);
    }

    fn statement(&mut self, statement: &mut Statement) {
        match statement {
            Statement::CreateTable(create) => self.create_table(create),
            Statement::CreateView(create) => {
                self.new_name(&mut create.name);
                self.is_view = true;
                self.all(&mut create.query);
                self.is_view = false;
            }
            Statement::CreateSequence { name, .. } | Statement::CreateType { name, .. } => {
                self.new_name(name)
            }
            Statement::CreateSchema { schema_name: SchemaName::Simple(name), .. } => self.schema(name),
            Statement::CreateIndex(index) => {
                self.name(&mut index.table_name);
                index.name.iter_mut().for_each(|name| self.new_name(name));
            }
            Statement::Drop { object_type: ObjectType::Schema, names, .. } => {
                names.iter_mut().for_each(|name| self.schema(name));
            }
            Statement::Drop { object_type: ObjectType::Index, names, .. } => {
                names.iter_mut().for_each(|name| self.new_name(name));
            }
            Statement::Drop { names, .. } => names.iter_mut().for_each(|name| self.name(name)),
            Statement::Truncate(truncate) => {
                truncate.table_names.iter_mut().for_each(|table| self.name(&mut table.name));
            }
            Statement::AlterTable(alter) => {
                self.name(&mut alter.name);
                self.declared = true;
                for operation in &mut alter.operations {
                    match operation {
                        AlterTableOperation::AddConstraint { constraint, .. } => {
                            self.constraint(constraint, None)
                        }
                        AlterTableOperation::AddColumn { column_def, .. } => {
                            column_def
                                .options
                                .iter_mut()
                                .for_each(|option| self.option(&mut option.option, None));
                        }
                        AlterTableOperation::RenameTable {
                            table_name: RenameTableNameKind::To(name) | RenameTableNameKind::As(name),
                        } => self.new_name(name),
                        other => self.all(other),
                    }
                }
                self.declared = false;
            }
            other => self.all(other),
        }
    }

    fn create_table(&mut self, create: &mut CreateTable) {
        let own =
            create.name.0.last().and_then(ObjectNamePart::as_ident).map(|own| own.value.to_ascii_lowercase());
        self.new_name(&mut create.name);
        self.declared = true;
        for column in &mut create.columns {
            column.options.iter_mut().for_each(|option| self.option(&mut option.option, own.as_deref()));
        }
        create.constraints.iter_mut().for_each(|constraint| self.constraint(constraint, own.as_deref()));
        self.declared = false;
        if let Some(query) = &mut create.query {
            self.all(query);
        }
    }

    fn option(&mut self, option: &mut ColumnOption, own: Option<&str>) {
        match option {
            ColumnOption::ForeignKey(key) => self.referred(&mut key.foreign_table, own),
            other => self.all(other),
        }
    }

    fn constraint(&mut self, constraint: &mut TableConstraint, own: Option<&str>) {
        match constraint {
            TableConstraint::ForeignKey(key) => self.referred(&mut key.foreign_table, own),
            other => self.all(other),
        }
    }

    /// Resolves the table to which a foreign key refers; `own`, the one that is being created, is resolved
    /// during binding.
    fn referred(&self, name: &mut ObjectName, own: Option<&str>) {
        let is_own = |ident: &Ident| own.is_some_and(|own| own == ident.value.to_ascii_lowercase());
        if !matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(is_own)) {
            self.name(name);
        }
    }

    /// Resolves the name of a new object, if it has several parts.
    fn new_name(&self, name: &mut ObjectName) {
        if name.0.len() > 1 {
            self.name(name);
        }
    }

    /// Removes the database from the name of one of its schemas.
    fn schema(&self, name: &mut ObjectName) {
        let Some(parts) = parts_of(name) else { return };
        if let [database, _] = parts.as_slice()
            && self.catalog.is_target_database(database)
        {
            name.0.remove(0);
        }
    }

    /// Qualifies a name without a schema.
    fn name(&self, name: &mut ObjectName) {
        let Some(parts) = parts_of(name) else { return };
        let is_cte = matches!(parts.as_slice(), [own] if self.scopes.has(own));
        if let Some(placed) = self.catalog.place(&parts, self.declared).filter(|_| !is_cte) {
            name.0 = placed.into_iter().map(quoted_part).collect();
            return;
        }
        let [part] = name.0.as_slice() else { return };
        let Some(own) = part.as_ident().map(|ident| ident.value.to_ascii_lowercase()) else { return };
        if self.scopes.has(&own) {
            return;
        }
        if let Some(schema) = self.catalog.schema_of(&own) {
            name.0.insert(0, ObjectNamePart::Identifier(Ident::with_quote('"', schema)));
        }
    }

    /// Removes the database and the schema from the name of a column, leaving only its table's own name.
    fn column(&self, parts: &mut Vec<Ident>) {
        if let [table @ .., _] = parts.as_slice()
            && table.len() > 1
            && self.catalog.has_database(&table[0].value.to_ascii_lowercase())
        {
            let table: Vec<String> = table.iter().map(|part| part.value.to_ascii_lowercase()).collect();
            if self.catalog.place(&table, self.declared).is_some() {
                parts.drain(..parts.len() - 2);
            }
        }
    }

    /// Resolves the sequence in a call.
    fn sequence(&self, function: &mut Function) {
        let Some((_, text)) = sequence_text(function) else { return };
        let parts = name::parts(text);
        if let Some(placed) = self.catalog.place(&parts, self.declared) {
            *text = written(&placed);
        } else if let [own] = parts.as_slice()
            && let Some(schema) = self.catalog.schema_of(own)
        {
            *text = written(&[schema, own.clone()]);
        }
    }

    /// The name, in lower case, if it is written without a schema and the host program has registered a
    /// relation under it.
    fn registered(&self, name: &ObjectName) -> Option<String> {
        let parts = parts_of(name)?;
        let [own] = parts.as_slice() else { return None };
        let is_registered = !self.scopes.has(own) && self.catalog.registered(own).is_some();
        is_registered.then(|| own.clone())
    }

    /// True if the catalog has an object of this name, which is written without a schema.
    fn is_stored(&self, own: &str) -> bool {
        let main = name::joined(name::MAIN, own);
        self.catalog.place(&[own.to_owned()], false).is_some()
            || self.catalog.schema_of(own).is_some()
            || self.catalog.definition(&main).is_some()
            || self.catalog.view(&main).is_some()
    }

    /// Resolves the table whose rows a statement changes.
    fn changed(&mut self, factor: &mut TableFactor) {
        let TableFactor::Table { name, alias, args: None, .. } = factor else { return };
        let Some(own) = self.registered(name) else { return };
        let last = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
        self.name(name);
        if name.0.len() == 1 {
            name.0.insert(0, quoted_part(name::MAIN.to_owned()));
        }
        if alias.is_none() {
            *alias = last.map(table_alias);
        }
        self.changed = Some(own);
    }

    /// Refuses a name that means both a relation of the host program and an object of the catalog.
    fn refuse(&mut self, own: &str, what: &str) {
        let text = format!("{own} is a relation of the program and an object of the database, and {what}");
        let hint = format!("write main.{own} for the table, or register the relation under another name");
        self.refused.get_or_insert(Error::input(text).with_hint(hint));
    }
}

impl VisitorMut for Resolver<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        match statement {
            Statement::Insert(insert) => {
                if let TableObject::TableName(name) = &mut insert.table {
                    self.name(name);
                }
            }
            Statement::Update(update) => self.changed(&mut update.table.relation),
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &mut delete.from;
                from.iter_mut().for_each(|table| self.changed(&mut table.relation));
            }
            Statement::Merge(merge) => self.changed(&mut merge.table),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    follow_scopes!(&mut Query);

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            let own = name.0.last().and_then(ObjectNamePart::as_ident).cloned();
            let before = name.clone();
            match self.registered(name) {
                Some(own) => {
                    if self.is_view && self.is_stored(&own) {
                        self.refuse(&own, "a view would mean the latter");
                    }
                    if self.changed.as_ref() == Some(&own) {
                        self.refuse(&own, "the statement changes the latter and reads the former");
                    }
                    name.0.insert(0, quoted_part(REGISTERED.to_owned()));
                }
                None => self.name(name),
            }
            if *name != before && alias.is_none() {
                *alias = own.map(table_alias);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        match expr {
            Expr::Function(function) => self.sequence(function),
            Expr::CompoundIdentifier(parts) => self.column(parts),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
