//! Select lists: `*`, `t.*`, `s.*` of a struct, with EXCLUDE, REPLACE and RENAME; `unnest`.

use crate::binder::{Binder, located};
use crate::bound::Bound;
use crate::call::name_of;
use crate::literal::plain;
use crate::query::Item;
use crate::scope::Clause;
use entasis_syntax::clauses;
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::suggest::nearest;
use entasis_vector::{ColumnId, DataType, Error, Result};
use sqlparser::ast::{
    self, ExcludeSelectItem, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

/// An item of a select list before it is bound.
#[derive(Debug)]
pub(crate) enum Source<'q> {
    /// A column that a `*` stands for.
    Column {
        /// What it is called.
        name: String,
        /// Which one.
        column: ColumnId,
    },
    /// An expression.
    Expr {
        /// As it is written.
        ast: &'q ast::Expr,
        /// Its place among the items with a name.
        alias: Option<usize>,
        /// Its name; `None` for that of the expression.
        name: Option<String>,
    },
}

impl<'q> Source<'q> {
    /// The expression as it is written.
    pub(crate) fn ast(&self) -> Option<&'q ast::Expr> {
        match self {
            Source::Expr { ast, .. } => Some(ast),
            Source::Column { .. } => None,
        }
    }
}

impl<'a, 'q> Binder<'a, 'q> {
    /// The items of a select list, `*` written out.
    pub(crate) fn sources(&mut self, projection: &'q [SelectItem]) -> Result<Vec<Source<'q>>> {
        let mut sources = Vec::with_capacity(projection.len());
        let mut aliases = 0;
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(ast) if crate::sample::is_mark(ast) => {}
                SelectItem::UnnamedExpr(ast) => sources.push(Source::Expr { ast, alias: None, name: None }),
                SelectItem::ExprWithAlias { expr, alias } => {
                    let name = Some(alias.value.clone());
                    sources.push(Source::Expr { ast: expr, alias: Some(aliases), name });
                    aliases += 1;
                }
                SelectItem::Wildcard(options) => {
                    let columns = self.all_columns();
                    if self.scope().relations.is_empty() {
                        let error = Error::input("* has no columns: there is no FROM");
                        return Err(error.with_sqlstate(sqlstate::SYNTAX));
                    }
                    self.chosen(columns, options, &mut sources)?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let columns = self.columns_of(name)?;
                    self.chosen(columns, options, &mut sources)?;
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _) => {
                    return Err(Error::not_supported("* of an expression"));
                }
                SelectItem::ExprWithAliases { .. } => {
                    return Err(Error::not_supported("several names for one expression"));
                }
            }
        }
        Ok(sources)
    }

    /// The columns of all relations; merged ones come first.
    fn all_columns(&mut self) -> Vec<(String, ColumnId)> {
        let scope = self.scopes.last().expect("a scope around the select list");
        let merged = scope.merged.iter().filter(|merged| {
            // A later USING that merges it again stands for it.
            !scope
                .merged
                .iter()
                .any(|other| other.column != merged.column && other.stands_for(&merged.name, merged.column))
        });
        let mut columns: Vec<(String, ColumnId)> =
            merged.map(|merged| (merged.name.to_string(), merged.column)).collect();
        for rel in &scope.relations {
            for (name, column) in &rel.columns.all {
                if !scope.merged.iter().any(|merged| merged.stands_for(name, *column)) {
                    columns.push((name.to_string(), *column));
                }
            }
        }
        columns.into_iter().map(|(name, column)| (self.declared(name, column), column)).collect()
    }

    /// The name of a column with the letter case of its declaration.
    fn declared(&self, name: String, column: ColumnId) -> String {
        let own = &self.columns.get(column).name;
        if own.eq_ignore_ascii_case(&name) { own.clone() } else { name }
    }

    fn columns_of(&mut self, table: &ObjectName) -> Result<Vec<(String, ColumnId)>> {
        let parts: Vec<String> = table
            .0
            .iter()
            .filter_map(|part| part.as_ident())
            .map(|ident| ident.value.to_ascii_lowercase())
            .collect();
        for scope in self.scopes.iter().rev() {
            let mut found = scope.relations_named(&parts);
            if let Some(rel) = found.next() {
                if found.next().is_some() {
                    let error = Error::input(format!("there are several tables {table} in FROM"));
                    return Err(located(error, table));
                }
                let columns = rel.columns.all.iter();
                return Ok(columns
                    .map(|(name, column)| (self.declared(name.to_string(), *column), *column))
                    .collect());
            }
        }
        let error =
            Error::input(format!("there is no table {table} in FROM")).with_sqlstate(sqlstate::NO_TABLE);
        let names: Vec<String> = self
            .scopes
            .iter()
            .flat_map(|scope| scope.relations.iter().map(|rel| rel.alias.to_string()))
            .collect();
        let error = match nearest(&parts.join("."), names.iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean {near}.*?")),
            None => error,
        };
        Err(located(error, table))
    }

    /// Adds the columns of a `*` with its options applied.
    fn chosen(
        &mut self,
        columns: Vec<(String, ColumnId)>,
        options: &'q WildcardAdditionalOptions,
        sources: &mut Vec<Source<'q>>,
    ) -> Result<()> {
        clauses::wildcard(options)?;
        let excluded: Vec<&ObjectName> = match &options.opt_exclude {
            None => Vec::new(),
            Some(ExcludeSelectItem::Single(name)) => vec![name],
            Some(ExcludeSelectItem::Multiple(names)) => names.iter().collect(),
        };
        let own = |name: &ObjectName| {
            name.0.last().and_then(|part| part.as_ident()).map(|ident| ident.value.to_ascii_lowercase())
        };
        let excluded_names: Vec<String> = excluded.iter().filter_map(|name| own(name)).collect();
        let is_there = |name: &str| columns.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let missing = |name: &str, clause: &str| {
            let error = Error::input(format!("{clause}: there is no column {name}"));
            let error = error.with_sqlstate(sqlstate::NO_COLUMN);
            match nearest(name, columns.iter().map(|(own, _)| own.as_str())) {
                Some(near) => error.with_hint(format!("did you mean {near}?")),
                None => error,
            }
        };
        for (name, written) in excluded_names.iter().zip(&excluded) {
            if !is_there(name) {
                return Err(located(missing(name, "EXCLUDE"), *written));
            }
        }
        let replaced = options.opt_replace.iter().flat_map(|replace| &replace.items);
        let replaced: Vec<_> = replaced.collect();
        for item in &replaced {
            if !is_there(&item.column_name.value) {
                return Err(locate_ident(missing(&item.column_name.value, "REPLACE"), &item.column_name));
            }
        }
        for (name, column) in &columns {
            if excluded_names.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                continue;
            }
            let replacement = replaced.iter().find(|item| item.column_name.value.eq_ignore_ascii_case(name));
            sources.push(match replacement {
                Some(item) => Source::Expr { ast: &item.expr, alias: None, name: Some(name.clone()) },
                None => Source::Column { name: name.clone(), column: *column },
            });
        }
        Ok(())
    }

    /// `unnest(struct)` as an item: an item for each field. False if the item is none.
    pub(crate) fn struct_items(&mut self, ast: &'q ast::Expr, items: &mut Vec<Item>) -> Result<bool> {
        let ast::Expr::Function(function) = plain(ast) else { return Ok(false) };
        if name_of(function) != "unnest" || function.over.is_some() {
            return Ok(false);
        }
        let Some(arg) = single_argument(function) else { return Ok(false) };
        let bound = self.expr(arg)?;
        let DataType::Struct(fields) = bound.ty() else {
            // A list, which is bound once.
            let element = self.taken_apart(bound, function)?;
            items.push(Item { name: ast.to_string(), expr: element.expr, given: element.given });
            return Ok(true);
        };
        for field in fields {
            let value = self.call("struct_extract", vec![bound.clone(), Bound::text(field.name)])?;
            items.push(Item { name: field.name.to_owned(), expr: value.expr, given: value.given });
        }
        Ok(true)
    }

    /// `unnest(list)`: an element, in a row for each.
    pub(crate) fn unnest(&mut self, function: &'q ast::Function) -> Result<Bound> {
        let Some(arg) = single_argument(function) else {
            return Err(Error::input("unnest takes a list or a struct: unnest(list)"));
        };
        if self.clause() != Clause::Select {
            let error = Error::input("unnest is only allowed in the select list and in FROM");
            return Err(error.with_hint("take it apart in a subquery"));
        }
        let list = self.expr(arg)?;
        self.taken_apart(list, function)
    }

    pub(crate) fn taken_apart(&mut self, list: Bound, function: &ast::Function) -> Result<Bound> {
        let list = list.of_any_length();
        let element = match list.ty() {
            DataType::List(element) => *element,
            DataType::Null => DataType::Int32,
            other => return Err(not_unnested(other)),
        };
        let expr = match list.ty() {
            DataType::Null => list.cast(DataType::list(element)),
            _ => list.expr,
        };
        let mut read = Vec::new();
        expr.collect_columns(&mut read);
        let inner = self.scope().unnests.iter().filter(|(column, ..)| read.contains(column));
        let depth = inner.map(|(.., depth)| depth + 1).max().unwrap_or(0);
        let column = self.columns.add(function.to_string(), element, true);
        self.scope().unnests.push((column, expr, depth));
        Ok(Bound::known(self.columns.expr(column)))
    }
}

/// The error for what `unnest` does not take apart.
pub(crate) fn not_unnested(ty: DataType) -> Error {
    match ty {
        DataType::Struct(_) => Error::not_supported("unnest of a STRUCT within an expression")
            .with_hint("name the field: value.field"),
        ty => Error::input(format!("unnest can only be applied to lists and structs, not to a {ty}")),
    }
}

/// The only argument of a call.
fn single_argument(function: &ast::Function) -> Option<&ast::Expr> {
    match &function.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] => Some(arg),
            _ => None,
        },
        _ => None,
    }
}
