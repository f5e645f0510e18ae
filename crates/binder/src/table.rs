//! Names in FROM: tables, views, files, table functions, queries of a WITH.

use crate::binder::{Binder, Given, ROWS, TARGET, located};
use crate::bound::Bound;
use crate::environment::schema::unknown_table;
use crate::from::From;
use crate::literal::{plain, text_of};
use crate::query::{counted, one_row, project};
use crate::scope::{Clause, Rel, Scope};
use crate::settle::settled;
use crate::star::not_unnested;
use entasis_engine::plan::{Node, Scan, Unnest, Values};
use entasis_engine::relation::Relation;
use entasis_functions::Argument;
use entasis_syntax::disguise::DESCRIBE;
use entasis_syntax::object_name::{PG_TEMP, TEMP, table_name};
use entasis_syntax::parse::parse_query;
use entasis_syntax::{is_on_deep_stack, needs_deep_stack};
use entasis_vector::error::sqlstate;
use entasis_vector::suggest::nearest;
use entasis_vector::{ColumnId, DataType, Error, Result, Value, name, statement};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, ObjectName, TableAlias};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum nesting depth of views.
const MAX_VIEWS: usize = 200;
/// The depth up to which the stack of the caller is enough.
const MAX_SHALLOW_VIEWS: usize = 16;
/// The schema of relations that the host program has registered, in names that are resolved.
pub const REGISTERED: &str = "\u{1}registered";
/// Functions that give one value for each row.
const SCALARS: [&str; 2] = ["generate_series", "range"];

impl<'a, 'q> Binder<'a, 'q> {
    /// A name in FROM.
    pub(crate) fn table(&mut self, name: &'q ObjectName, alias: Option<&'q TableAlias>) -> Result<From> {
        statement::check()?;
        let ident = match name.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        };
        if let Some(ident) = ident.filter(|ident| ident.quote_style == Some('\'')) {
            let relation = self.catalog.file(&ident.value).map_err(|error| located(error, name))?;
            return self.scan(relation, &stem(&ident.value), alias);
        }
        if let Some(from) = self.common_table(name, alias)? {
            return Ok(from);
        }
        let full = table_name(name)?;
        let own = name::own(&full).to_owned();
        if own == ROWS
            && let Some(rows) = self.given.rows.clone()
        {
            let columns = rows.output.iter().map(|output| (output.name.clone(), output.column)).collect();
            return self.named(rows.root.clone(), columns, ROWS, alias);
        }
        if let Some(relation) = self.relation(&full).map_err(|error| located(error, name))? {
            let mut from = self.scan(relation, &own, alias)?;
            if is_own_name(alias, &own) {
                self.qualify(&mut from, name);
            }
            return Ok(from);
        }
        if let Some(text) = self.catalog.view(&full) {
            let mut from = self.view(&full, &text, alias).map_err(|error| located(error, name))?;
            if is_own_name(alias, &own) {
                self.qualify(&mut from, name);
            }
            return Ok(from);
        }
        // The text of a view names it, which is kept without what only this connection has.
        let is_view = self.given.is_view || !self.views.is_empty();
        let is_bare = is_view && name::split(&full).0 == name::MAIN;
        match self.catalog.registered(&own).filter(|_| is_bare) {
            Some(relation) => self.scan(relation, &own, alias),
            None => Err(located(unknown_table(&full, self.catalog), name)),
        }
    }

    /// Lets columns be qualified by the schema and the database of the table, too.
    fn qualify(&self, from: &mut From, name: &ObjectName) {
        let parts =
            name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.to_ascii_lowercase());
        let mut parts = known_schemas(parts.collect());
        parts.pop();
        if parts.is_empty() {
            parts.push(name::MAIN.to_owned());
        }
        if let Some(rel) = from.relations.first_mut() {
            rel.qualifiers = Rc::from(parts);
        }
    }

    /// The relation of a name of the catalog, or of one that stands for something else.
    fn relation(&self, full: &str) -> Result<Option<Arc<dyn Relation>>> {
        let (schema, name) = name::split(full);
        if schema == REGISTERED {
            return Ok(self.catalog.registered(name));
        }
        if schema != name::MAIN {
            return Ok(self.catalog.table(full));
        }
        if name == TARGET && self.given.target.is_some() {
            return Ok(self.given.target.clone());
        }
        if let Some(relation) = self.catalog.table(full) {
            return Ok(Some(relation));
        }
        // "data.parquet" in double quotes is a path, too.
        let is_path = name.contains(['/', '*']) || name.ends_with(".parquet") || name.ends_with(".csv");
        if is_path { self.catalog.file(name).map(Some) } else { Ok(None) }
    }

    /// All columns of a relation. Names that clash in lower case get a number.
    pub(crate) fn scan(
        &mut self,
        relation: Arc<dyn Relation>,
        name: &str,
        alias: Option<&TableAlias>,
    ) -> Result<From> {
        let mut scanned = Vec::with_capacity(relation.schema().len());
        let mut columns = Vec::with_capacity(relation.schema().len());
        let mut taken = HashSet::with_capacity(relation.schema().len());
        for (index, field) in relation.schema().iter().enumerate() {
            let id = self.columns.add(&*field.name, field.ty, field.nullable);
            scanned.push((id, index));
            let folded = field.name.to_ascii_lowercase();
            let mut own = folded.clone();
            let mut number = 0;
            while !taken.insert(own.clone()) {
                number += 1;
                own = format!("{folded}_{number}");
            }
            columns.push((own, id));
        }
        self.named(Node::Scan(Scan::all(relation, scanned)), columns, name, alias)
    }

    /// Binds the query of a view, whose text sees nothing of the statement.
    fn view(&mut self, name: &str, text: &str, alias: Option<&TableAlias>) -> Result<From> {
        let depth = self.views.len();
        if self.views.iter().any(|own| own == name) {
            return Err(Error::input(format!("the view {} contains itself", name::shown(name))));
        }
        if depth >= MAX_SHALLOW_VIEWS && !is_on_deep_stack() {
            return Err(needs_deep_stack());
        }
        if depth >= MAX_VIEWS {
            let text = format!("views are nested more than {MAX_VIEWS} deep");
            return Err(Error::resource(text).with_sqlstate(sqlstate::TOO_COMPLEX));
        }
        let given = Given { is_view: true, ..Given::default() };
        let query = parse_query(text)?;
        let mut views = self.views.clone();
        views.push(name.to_owned());
        let mut inner = Binder {
            catalog: self.catalog,
            params: self.params,
            session: self.session,
            given: &given,
            columns: std::mem::take(&mut self.columns),
            scopes: Vec::new(),
            withs: Vec::new(),
            views,
            read: 0,
            captures: 0,
            nulled: std::mem::take(&mut self.nulled),
            counted: counted(&query).into(),
            excused: None,
        };
        let rows = inner.query_rows(&query);
        let projected = rows.map(|rows| inner.projected(rows));
        self.columns = std::mem::take(&mut inner.columns);
        self.nulled = std::mem::take(&mut inner.nulled);
        // Positions in a view's text are not positions in the statement.
        let (node, columns) = projected.map_err(|error| match error.sqlstate() {
            sqlstate::NEEDS_STACK => error,
            _ => Error::new(error.kind(), format!("in a view: {}", error.message())),
        })?;
        self.named(node, columns, name::own(name), alias)
    }

    /// A function in FROM.
    pub(crate) fn table_function(
        &mut self,
        name: &'q ObjectName,
        args: &'q [FunctionArg],
        alias: Option<&'q TableAlias>,
    ) -> Result<From> {
        let own =
            name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.to_ascii_lowercase());
        let own = own.unwrap_or_else(|| name.to_string());
        if own == "unnest" {
            return self.unnest_in_from(args, alias);
        }
        if own == DESCRIBE {
            return self.described(args, alias);
        }
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(value) => (None, value),
                FunctionArg::Named { name, arg, .. } => (Some(name.value.to_ascii_lowercase()), arg),
                FunctionArg::ExprNamed { name, arg, .. } => {
                    (Some(name.to_string().trim_matches('"').to_ascii_lowercase()), arg)
                }
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Err(Error::input(format!("{value} is not a valid argument of a table function")));
            };
            let argument =
                self.argument(value).map_err(|error| error.with_context(format!("arguments of {own}")))?;
            bound.push((name, argument));
        }
        let relation = self.catalog.table_function(&own, &bound).map_err(|error| {
            let names = self.catalog.table_functions();
            let near = nearest(&own, names.iter().map(String::as_str)).filter(|near| *near != own);
            located(
                match near {
                    Some(near) if error.hint().is_none() => error.with_hint(format!("did you mean {near}?")),
                    _ => error,
                },
                name,
            )
        })?;
        let mut from = self.scan(relation, &own, alias)?;
        if SCALARS.contains(&own.as_str()) {
            name_the_value(&mut from, &own, alias);
        }
        Ok(from)
    }

    /// `DESCRIBE` in FROM: what describes the text of the statement.
    fn described(&mut self, args: &[FunctionArg], alias: Option<&TableAlias>) -> Result<From> {
        let text = match args {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Value(value)))] => text_of(&value.value),
            _ => None,
        };
        let (Some(text), Some(describe)) = (text, self.given.describe) else {
            return Err(Error::not_supported("DESCRIBE in FROM"));
        };
        let plan = describe(text, self.catalog, self.params)
            .map_err(|error| Error::new(error.kind(), format!("in DESCRIBE: {}", error.message())))?;
        let Node::Values(values) = plan.root else { return Err(Error::internal("DESCRIBE gives values")) };
        let mut columns = Vec::with_capacity(plan.output.len());
        for output in &plan.output {
            let id = self.columns.add(output.name.as_str(), plan.columns.ty(output.column), true);
            columns.push((output.name.clone(), id));
        }
        let ids = columns.iter().map(|(_, id)| *id).collect();
        self.named(Node::Values(Values { columns: ids, rows: values.rows }), columns, "describe", alias)
    }

    /// An argument of a table function: a constant, which may be nested.
    fn argument(&mut self, ast: &'q ast::Expr) -> Result<Argument> {
        let field = |key: &ast::Expr| match key {
            ast::Expr::Identifier(ident) => Ok(ident.value.clone()),
            ast::Expr::Value(value) => text_of(&value.value)
                .map(str::to_owned)
                .ok_or_else(|| Error::input(format!("{value} is not a valid field name"))),
            other => Err(Error::input(format!("{other} is not a valid field name"))),
        };
        match plain(ast) {
            ast::Expr::Array(array) => {
                let elements = array.elem.iter().map(|element| self.argument(element));
                elements.collect::<Result<_>>().map(Argument::List)
            }
            ast::Expr::Dictionary(fields) => {
                let fields =
                    fields.iter().map(|field| Ok((field.key.value.clone(), self.argument(&field.value)?)));
                fields.collect::<Result<_>>().map(Argument::Struct)
            }
            ast::Expr::Map(map) => {
                let fields =
                    map.entries.iter().map(|entry| Ok((field(&entry.key)?, self.argument(&entry.value)?)));
                fields.collect::<Result<_>>().map(Argument::Struct)
            }
            constant => {
                let (value, ty) = self.constant(constant)?;
                // Functions count in BIGINTs.
                let ty = if matches!((&value, ty), (Value::Integer(_), DataType::Int32)) {
                    DataType::Int64
                } else {
                    ty
                };
                Ok(Argument::Value(value, ty))
            }
        }
    }

    /// `FROM unnest(list, …)`: the elements of lists beside each other, in columns called unnest.
    fn unnest_in_from(&mut self, args: &'q [FunctionArg], alias: Option<&'q TableAlias>) -> Result<From> {
        let wrong = || Error::input("unnest in FROM takes lists: unnest(list, …)");
        if args.is_empty() {
            return Err(wrong());
        }
        self.scopes.push(Scope::new(Vec::new(), Vec::new(), Clause::Values));
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) = arg else {
                self.scopes.pop();
                return Err(wrong());
            };
            bound.push(self.expr(list));
        }
        let mut node = one_row();
        self.flush(&mut node);
        self.scopes.pop();
        let bound: Vec<Bound> = bound.into_iter().collect::<Result<_>>()?;
        let mut lists = Vec::new();
        let mut columns: Vec<(String, ColumnId)> = Vec::new();
        let mut fields = Vec::new();
        for list in bound {
            let list = list.of_any_length();
            match list.ty() {
                DataType::List(element) => {
                    let column = self.columns.add("unnest", *element, true);
                    lists.push((column, settled(list.expr)));
                    columns.push(("unnest".to_owned(), column));
                }
                DataType::Null => {
                    let column = self.columns.add("unnest", DataType::Int32, true);
                    lists.push((column, list.cast(DataType::list(DataType::Int32))));
                    columns.push(("unnest".to_owned(), column));
                }
                DataType::Struct(own) => {
                    for field in own {
                        let value =
                            self.call("struct_extract", vec![list.clone(), Bound::text(field.name)])?;
                        let column = self.columns.add(field.name, value.ty(), true);
                        fields.push((column, settled(value.expr)));
                        columns.push((field.name.to_owned(), column));
                    }
                }
                other => return Err(not_unnested(other)),
            }
        }
        let single = columns.len() == 1 && fields.is_empty();
        let mut node = project(node, fields);
        if !lists.is_empty() {
            node = Node::Unnest(Unnest { input: Box::new(node), lists });
        }
        let mut from = self.named(node, columns, "unnest", alias)?;
        if single {
            name_the_value(&mut from, "unnest", alias);
        }
        Ok(from)
    }
}

/// The alias of a function that gives one value for each row names its column, too; the name of the function
/// still means it.
fn name_the_value(from: &mut From, function: &str, alias: Option<&TableAlias>) {
    let Some(alias) = alias.filter(|alias| alias.columns.is_empty()) else { return };
    let Some(rel) = from.relations.first_mut() else { return };
    let [(_, column)] = rel.columns.all.as_slice() else { return };
    let column = *column;
    let name = alias.name.value.to_ascii_lowercase();
    let mut named = Rel::new(&rel.alias, vec![(name.into(), column)]);
    named.second = Some((function.into(), column));
    *rel = named;
}

/// The parts of a name with the schemas that have two names by the first of these.
pub(crate) fn known_schemas(mut parts: Vec<String>) -> Vec<String> {
    let last = parts.len().saturating_sub(1);
    for part in &mut parts[..last] {
        match part.as_str() {
            PG_TEMP => TEMP.clone_into(part),
            "public" => name::MAIN.clone_into(part),
            _ => {}
        }
    }
    parts
}

/// True if a table has no other name: names that are resolved have their own one as an alias.
fn is_own_name(alias: Option<&TableAlias>, own: &str) -> bool {
    alias.is_none_or(|alias| alias.columns.is_empty() && alias.name.value.eq_ignore_ascii_case(own))
}

/// The name of a file as a table: its file name without directories and extension.
pub fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    if stem.is_empty() || stem.contains(['*', '?', '[', '{']) {
        "file".into()
    } else {
        stem.to_ascii_lowercase()
    }
}
