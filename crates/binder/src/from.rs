//! FROM: relations, and what their names mean.
//!
//! A relation that is LATERAL, as functions are, sees the relations before it, all others only the queries
//! around. Joins are in [`crate::join`].

use crate::binder::Binder;
use crate::join::{lateral, plain};
use crate::query::project;
use crate::scope::{Clause, Merged, Rel, Scope};
use crate::subquery::is_dependent;
use entasis_engine::plan::{JoinKind, Node};
use entasis_syntax::clauses;
use entasis_syntax::place::locate_ident;
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::{ColumnId, DataType, Error, Result};
use sqlparser::ast::{self, TableFactor, TableWithJoins};

/// Rows of FROM, with what names mean over them.
#[derive(Debug)]
pub(crate) struct From {
    pub(crate) node: Node,
    pub(crate) relations: Vec<Rel>,
    pub(crate) merged: Vec<Merged>,
}

impl From {
    pub(crate) fn one(node: Node, rel: Rel) -> From {
        From { node, relations: vec![rel], merged: Vec::new() }
    }

    /// The names of these rows, as an expression beside them finds them.
    pub(crate) fn scope<'q>(&self) -> Scope<'q> {
        Scope::new(self.relations.clone(), self.merged.clone(), Clause::From)
    }

    /// The columns that an unqualified name may mean, in the order of `*`.
    pub(crate) fn names(&self) -> Vec<Box<str>> {
        let is_merged = |(name, column): &&(Box<str>, ColumnId)| {
            self.merged.iter().any(|merged| merged.stands_for(name, *column))
        };
        let merged = self.merged.iter().map(|merged| merged.name.clone());
        let own = self.relations.iter().flat_map(|rel| &rel.columns.all);
        let mut names: Vec<Box<str>> = merged.collect();
        names.extend(own.filter(|column| !is_merged(column)).map(|(name, _)| name.clone()));
        names
    }
}

impl<'a, 'q> Binder<'a, 'q> {
    /// Binds the relations of a FROM; without any, one row of no columns.
    pub(crate) fn relations(&mut self, tables: &'q [TableWithJoins]) -> Result<From> {
        let mut all: Option<From> = None;
        for table in tables {
            let captures = self.captures;
            let next = self.joined(table, all.as_ref())?;
            all = Some(match all {
                None => next,
                Some(left) => {
                    self.distinguish(&left, &next)?;
                    self.product(left, next, self.captures > captures)
                }
            });
        }
        Ok(all.unwrap_or_else(|| From {
            node: crate::query::one_row(),
            relations: Vec::new(),
            merged: Vec::new(),
        }))
    }

    /// A relation with the joins behind it; `before` are the relations before the comma.
    fn joined(&mut self, table: &'q TableWithJoins, before: Option<&From>) -> Result<From> {
        let around: Vec<&From> = before.into_iter().collect();
        let mut left = self.factor(&table.relation, &around, false)?;
        for join in &table.joins {
            left = self.join(left, join, before)?;
        }
        Ok(left)
    }

    /// Refuses two relations of one name.
    pub(crate) fn distinguish(&self, left: &From, right: &From) -> Result<()> {
        let named = |rel: &&Rel| !rel.alias.is_empty();
        for rel in right.relations.iter().filter(named) {
            let same = |other: &Rel| other.alias == rel.alias && other.qualifiers == rel.qualifiers;
            if left.relations.iter().any(same) {
                let error = Error::input(format!("there are two tables named {} in FROM", rel.alias));
                return Err(error.with_hint("name one of them differently: FROM table AS name"));
            }
        }
        Ok(())
    }

    /// All pairs.
    fn product(&mut self, left: From, right: From, may_depend: bool) -> From {
        let node = match may_depend && is_dependent(&left.node, &right.node) {
            true => lateral(left.node, right.node, JoinKind::Inner, Vec::new()),
            false => plain(left.node, right.node, JoinKind::Inner, Vec::new(), Vec::new()),
        };
        From {
            node,
            relations: left.relations.into_iter().chain(right.relations).collect(),
            merged: left.merged.into_iter().chain(right.merged).collect(),
        }
    }

    /// A relation of FROM. `around` are the relations before it; those of the left side of a join are found
    /// and refused if `is_refused`.
    pub(crate) fn factor(
        &mut self,
        factor: &'q TableFactor,
        around: &[&From],
        is_refused: bool,
    ) -> Result<From> {
        clauses::table_factor(factor)?;
        match factor {
            TableFactor::Table { name, alias, args: None, sample, .. } => {
                let from = self.table(name, alias.as_ref())?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::Table { name, alias, args: Some(args), sample, .. } => {
                let from = self.beside(around, is_refused, |binder| {
                    binder.table_function(name, &args.args, alias.as_ref())
                })?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.beside(around, is_refused, |binder| binder.table_function(name, args, alias.as_ref()))
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                let rows = match lateral {
                    true => self.beside(around, is_refused, |binder| binder.query_rows(subquery))?,
                    false => self.query_rows(subquery)?,
                };
                let (node, columns) = self.projected(rows);
                let from = self.named(node, columns, "", alias.as_ref())?;
                self.sampled(from, sample.as_ref())
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut from = self.joined_in_brackets(table_with_joins, around)?;
                if let Some(alias) = alias {
                    let columns = self.columns_in_order(&from);
                    from = self.named(from.node, columns, "", Some(alias))?;
                }
                Ok(from)
            }
            other => Err(Error::not_supported(format!("{other} in FROM"))),
        }
    }

    fn joined_in_brackets(&mut self, table: &'q TableWithJoins, around: &[&From]) -> Result<From> {
        let mut left = self.factor(&table.relation, around, false)?;
        for join in &table.joins {
            left = self.join(left, join, around.first().copied())?;
        }
        Ok(left)
    }

    /// Binds what sees the relations before it.
    fn beside<T>(
        &mut self,
        around: &[&From],
        is_refused: bool,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.scopes.len();
        for from in around {
            let mut scope = from.scope();
            scope.relations.iter_mut().for_each(|rel| rel.is_refused |= is_refused);
            self.scopes.push(scope);
        }
        let bound = bind(self);
        self.scopes.truncate(depth);
        bound
    }

    /// The columns of `*`, with their names.
    fn columns_in_order(&self, from: &From) -> Vec<(String, ColumnId)> {
        let is_merged = |(name, column): &&(Box<str>, ColumnId)| {
            from.merged.iter().any(|merged| merged.stands_for(name, *column))
        };
        let merged = from.merged.iter().map(|merged| (merged.name.to_string(), merged.column));
        let own = from.relations.iter().flat_map(|rel| &rel.columns.all);
        let own = own.filter(|column| !is_merged(column));
        merged.chain(own.map(|(name, column)| (name.to_string(), *column))).collect()
    }

    /// Rows under the name of their alias, or else under `name`.
    pub(crate) fn named(
        &mut self,
        node: Node,
        columns: Vec<(String, ColumnId)>,
        name: &str,
        alias: Option<&ast::TableAlias>,
    ) -> Result<From> {
        let mut listed: Vec<(Box<str>, ColumnId)> =
            columns.into_iter().map(|(name, column)| (name.to_ascii_lowercase().into(), column)).collect();
        let mut own = name.to_owned();
        if let Some(alias) = alias {
            own = alias.name.value.to_ascii_lowercase();
            if alias.columns.len() > listed.len() {
                let (there, given) = (listed.len(), alias.columns.len());
                let error = Error::input(format!("{there} columns are given {given} names"));
                return Err(locate_ident(error.with_sqlstate(sqlstate::SYNTAX), &alias.name));
            }
            for (column, given) in listed.iter_mut().zip(&alias.columns) {
                column.0 = given.name.value.to_ascii_lowercase().into();
            }
        }
        let mut rel = Rel::new(&own, listed);
        let mut node = node;
        if self.counted.contains(&own) {
            let presence = self.columns.add("row", DataType::Boolean, false);
            node = project(node, vec![(presence, Expr::boolean(true))]);
            rel.presence = Some(presence);
        }
        Ok(From::one(node, rel))
    }
}
