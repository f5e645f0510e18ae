//! `INSERT`: the new rows, with all columns of the table in order.
//!
//! 1. `DEFAULT` is removed from `VALUES`: a column that has it in every row is treated as not given, in any
//!    other it is replaced by the default's expression. If the values of a column are not written alike, each
//!    is cast by itself ([`values`](super::values)).
//! 2. The query is bound and cast to the types of the columns.
//! 3. Values of identity columns are refused, kept or dropped, as `OVERRIDING` says.
//! 4. Columns that were not given are added. Defaults with a single value become a constant; the others are
//!    computed for each row, in the order of the rows.

use super::finish::{Finished, Returning};
use super::{Target, is_default, values};
use crate::statements::binder::Binder;
use crate::statements::bound::{Insert, Statement};
use crate::statements::columns::target_columns;
use crate::statements::rows;
use entasis_engine::plan::{Output, Plan};
use entasis_engine::relation::ColumnDefault;
use entasis_syntax::FreedAside;
use entasis_syntax::build::{named, qualified, select_expr, table_alias};
use entasis_syntax::clauses::refuse;
use entasis_syntax::disguise::BY_NAME;
use entasis_syntax::insert_words::{Overriding, overriding};
use entasis_syntax::object_name::table_name;
use entasis_vector::{DataType, Error, Field, Result, Value, statement};
use sqlparser::ast::{self, Ident, ObjectName, Query, SetExpr, TableAlias, TableObject};

impl Binder<'_> {
    pub(crate) fn insert(&self, insert: &ast::Insert) -> Result<Statement> {
        let ast::Insert {
            insert_token: _,
            or: _,
            into: _,
            table: _,
            table_alias: _,
            columns: _,
            source: _,
            has_table_keyword: _,
            on: _,
            returning: _,
            optimizer_hints,
            ignore,
            overwrite,
            assignments,
            partitioned,
            after_columns,
            output,
            replace_into,
            priority,
            insert_alias,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        let other_words = [
            (*replace_into, "REPLACE INTO", "write INSERT OR REPLACE INTO"),
            (*ignore, "INSERT IGNORE", "write INSERT OR IGNORE INTO"),
        ];
        if let Some((_, what, hint)) = other_words.into_iter().find(|(is_written, ..)| *is_written) {
            return Err(Error::not_supported(what).with_hint(hint));
        }
        refuse([
            (*overwrite, "INSERT OVERWRITE"),
            (partitioned.is_some() || !after_columns.is_empty(), "PARTITION in INSERT"),
            (!assignments.is_empty(), "INSERT … SET"),
            (output.is_some(), "OUTPUT"),
            (insert_alias.is_some(), "a name for the new row"),
            (priority.is_some(), "LOW_PRIORITY, DELAYED and HIGH_PRIORITY"),
            (!optimizer_hints.is_empty(), "hints for the optimizer"),
            (settings.is_some(), "SETTINGS"),
            (format_clause.is_some(), "FORMAT"),
            (
                multi_table_insert_type.is_some()
                    || !multi_table_into_clauses.is_empty()
                    || !multi_table_when_clauses.is_empty()
                    || multi_table_else_clause.is_some(),
                "INSERT into several tables",
            ),
        ])?;
        let TableObject::TableName(name) = &insert.table else {
            return Err(Error::not_supported("INSERT into what is not a table"));
        };
        let alias = insert.table_alias.as_ref().map(|alias| table_alias(alias.alias.clone()));
        if insert.on.is_some() || insert.or.is_some() {
            return self.insert_or(insert, self.target_named(name, alias)?);
        }
        self.insert_new(insert, name, alias)
    }

    /// An INSERT of rows that replace no others.
    fn insert_new(
        &self,
        insert: &ast::Insert,
        name: &ObjectName,
        alias: Option<TableAlias>,
    ) -> Result<Statement> {
        let lower_name = table_name(name)?;
        let relation = self.table(&lower_name)?;
        let width = relation.schema().len();
        let target = self.target_of(name, lower_name, alias, relation, width)?;
        let rows = self.inserted(&target, insert)?;
        let checks = self.checks(&target, None)?;
        let returning = Returning::new(insert.returning.as_deref(), &target, false)?;
        let Finished { plan, checks, returning } = self.finish(rows, width, &target, checks, returning)?;
        Ok(Statement::Insert(Insert { table: target.name, plan, checks, returning }))
    }

    /// `COPY table (columns) FROM 'path' (options)`: inserts the rows of a file.
    pub(crate) fn copy_from(
        &self,
        name: &ObjectName,
        columns: &[Ident],
        path: &str,
        options: &[(String, Value)],
    ) -> Result<Statement> {
        let lower_name = table_name(name)?;
        let relation = self.table(&lower_name)?;
        let width = relation.schema().len();
        let target = self.target_of(name, lower_name, None, relation, width)?;
        let columns = target_columns(&target.name, target.columns(), columns)?;
        let fields: Vec<Field> = columns.iter().map(|&column| target.columns()[column].clone()).collect();
        let file = self.catalog.copied_file(path, &fields, options)?;
        if file.schema().len() != fields.len() {
            let (has, wanted) = (file.schema().len(), fields.len());
            let text =
                format!("'{path}' has {has} columns, but {wanted} columns of {} need values", target.name);
            return Err(Error::input(text));
        }
        let mut plan = Plan::scan(file);
        rows::cast_outputs(&mut plan, &fields.iter().map(|field| field.ty).collect::<Vec<_>>())?;
        let rows = self.complete(&target, plan, &columns)?;
        let checks = self.checks(&target, None)?;
        let Finished { plan, checks, returning } =
            self.finish(rows, width, &target, checks, Returning::default())?;
        Ok(Statement::Insert(Insert { table: target.name, plan, checks, returning }))
    }

    /// The new rows of an `INSERT`.
    pub(super) fn inserted(&self, target: &Target, insert: &ast::Insert) -> Result<Plan> {
        let (names, overriding) = overriding(&insert.columns);
        if let ([column], Some(source)) = (names, &insert.source)
            && column_ident(column, target).is_ok_and(|column| column.value == BY_NAME)
        {
            let names: Vec<Ident> =
                self.result_names(source)?.into_iter().map(|name| Ident::with_quote('"', name)).collect();
            let columns = target_columns(&target.name, target.columns(), &names)?;
            return self.new_rows(target, columns, source, overriding);
        }
        let idents = names.iter().map(|column| column_ident(column, target));
        let columns =
            target_columns(&target.name, target.columns(), &idents.collect::<Result<Vec<Ident>>>()?)?;
        match &insert.source {
            Some(source) => self.new_rows(target, columns, source, overriding),
            // DEFAULT VALUES
            None => self.complete(target, rows::empty_rows(1), &[]),
        }
    }

    /// The names of the columns of a query, for `BY NAME`.
    fn result_names(&self, source: &Query) -> Result<Vec<String>> {
        let plan = self.query(&self.behind_with(source.clone()))?;
        Ok(plan.output.into_iter().map(|output| output.name).collect())
    }

    fn new_rows(
        &self,
        target: &Target,
        mut columns: Vec<usize>,
        source: &Query,
        overriding: Option<Overriding>,
    ) -> Result<Plan> {
        let (source, cells) = copied(source)?;
        let mut source = FreedAside::new(source, cells);
        let given = columns.len();
        let wrong_number = |values: usize| {
            Error::input(format!("each row has {values} values for {given} columns of {}", target.name))
        };
        if let SetExpr::Values(values) = &mut *source.body {
            let rows = &mut values.rows;
            if let Some(row) = rows.iter().find(|row| row.content.len() != given) {
                return Err(wrong_number(row.content.len()));
            }
            for at in (0..given).rev() {
                statement::check()?;
                let defaults = rows.iter().filter(|row| is_default(&row.content[at])).count();
                if defaults == rows.len() || target.ignores(columns[at], overriding) {
                    columns.remove(at);
                    rows.iter_mut().for_each(|row| drop(row.content.remove(at)));
                } else if defaults > 0 {
                    let default = self.default_expr(target, columns[at])?;
                    for row in rows.iter_mut().filter(|row| is_default(&row.content[at])) {
                        row.content[at] = default.clone();
                    }
                }
            }
            if columns.is_empty() {
                return self.complete(target, rows::empty_rows(rows.len()), &[]);
            }
            for (at, &column) in columns.iter().enumerate() {
                values::settle(rows, at, target.columns()[column].ty)?;
            }
        }
        for &column in &columns {
            target.takes(column, overriding)?;
        }
        let source = FreedAside::new(self.behind_with(source.into_inner()), cells);
        let mut plan = self.query(&source)?;
        if plan.output.len() != columns.len() {
            return Err(wrong_number(plan.output.len()));
        }
        let mut is_kept = columns.iter().map(|&column| !target.ignores(column, overriding));
        plan.output.retain(|_| is_kept.next().unwrap_or(true));
        columns.retain(|&column| !target.ignores(column, overriding));
        let types: Vec<DataType> = columns.iter().map(|&i| target.columns()[i].ty).collect();
        rows::cast_outputs(&mut plan, &types)?;
        self.complete(target, plan, &columns)
    }

    /// Rows with values for `columns`, as rows with all columns of the target.
    fn complete(&self, target: &Target, mut plan: Plan, columns: &[usize]) -> Result<Plan> {
        let given = std::mem::take(&mut plan.output);
        let mut outputs: Vec<Option<Output>> = vec![None; target.columns().len()];
        for (&column, output) in columns.iter().zip(given) {
            outputs[column] = Some(output);
        }
        let mut computed = Vec::new();
        for (i, field) in target.columns().iter().enumerate() {
            if outputs[i].is_some() {
                continue;
            }
            let value = match target.definition.default_of(i) {
                ColumnDefault::Null => Some(Value::Null),
                ColumnDefault::Identity { .. } => None,
                ColumnDefault::Expression(_) => {
                    let query = select_expr(self.default_expr(target, i)?)?;
                    rows::literal_row(&self.query(&query)?, field.ty)
                }
            };
            match value {
                Some(value) => outputs[i] = Some(rows::add_constant(&mut plan, &field.name, value, field.ty)),
                None => computed.push(i),
            }
        }
        let names = target.columns().iter().map(|field| field.name.to_string());
        let named_outputs = outputs.into_iter().zip(names);
        plan.output = named_outputs
            .filter_map(|(output, name)| Some(Output { name, column: output?.column }))
            .collect();
        if computed.is_empty() {
            return Ok(plan);
        }
        let rows = Ident::with_quote('"', "entasis:values");
        let mut items = Vec::with_capacity(target.columns().len());
        for (i, field) in target.columns().iter().enumerate() {
            let expr = match computed.contains(&i) {
                true => self.default_expr(target, i)?,
                false => qualified(&rows, &field.name),
            };
            items.push(named(expr, &field.name));
        }
        let mut plan = self.over_rows(plan, table_alias(rows), None, |select| select.projection = items)?;
        let types: Vec<DataType> = target.columns().iter().map(|field| field.ty).collect();
        rows::cast_outputs(&mut plan, &types)?;
        Ok(plan)
    }
}

/// A copy of a query, and the number of parts of its VALUES, which may be many.
///
/// # Errors
/// Interrupted.
fn copied(source: &Query) -> Result<(Query, usize)> {
    let SetExpr::Values(values) = &*source.body else { return Ok((source.clone(), 0)) };
    let cells: usize = values.rows.iter().map(|row| row.content.len() + 1).sum();
    let mut rows: FreedAside<Vec<ast::Parens<Vec<ast::Expr>>>> =
        FreedAside::new(Vec::with_capacity(values.rows.len()), cells);
    for row in &values.rows {
        statement::check()?;
        rows.push(row.clone());
    }
    let copy = Query {
        with: source.with.clone(),
        body: Box::new(SetExpr::Values(ast::Values { rows: rows.into_inner(), ..*values })),
        order_by: source.order_by.clone(),
        limit_clause: source.limit_clause.clone(),
        fetch: source.fetch.clone(),
        locks: source.locks.clone(),
        for_clause: source.for_clause.clone(),
        settings: source.settings.clone(),
        format_clause: source.format_clause.clone(),
        pipe_operators: source.pipe_operators.clone(),
    };
    Ok((copy, cells))
}

fn column_ident(column: &ObjectName, target: &Target) -> Result<Ident> {
    match column.0.as_slice() {
        [part] => part.as_ident().cloned().ok_or_else(|| Error::input(format!("{part} is not a column"))),
        _ => Err(Error::input(format!("{column} is not a column of {}", target.name))),
    }
}
