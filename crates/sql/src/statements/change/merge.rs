//! `MERGE`.
//!
//! The source is joined with the target on the condition; the clauses decide which rows without a match are
//! kept. For every row, the first clause that applies decides: a `CASE` over the clauses yields the action,
//! and another one for each column its new value. Rows to which no clause applies, and those of `DO NOTHING`,
//! are removed in a stage of its own, so that the action is computed only once.
//!
//! A column of the target keeps its value unless a clause sets it, so that a row to remove is still available
//! to `RETURNING`.

use super::finish::{Returning, returned};
use super::outer::for_each_outer;
use super::{ACTION, ACTION_TYPE, ROW_ID, ROW_ID_TYPE, Target, is_default};
use crate::statements::binder::Binder;
use crate::statements::bound::{Repeated, Statement};
use crate::statements::columns::find_column;
use crate::statements::rows;
use entasis_engine::plan::Plan;
use entasis_syntax::build::{
    and, case, cast_to, is_null, join, named, not, number, qualified, select_from, table_alias,
};
use entasis_syntax::clauses::refuse;
use entasis_syntax::disguise::NOTHING;
use entasis_syntax::insert_words::overriding;
use entasis_syntax::parse::parse_query;
use entasis_vector::{DataType, Error, Result};
use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, Merge, MergeAction,
    MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr, ObjectName, SetExpr,
    TableAlias, TableFactor, TableWithJoins,
};

/// A column of the source that is NULL for rows without a source.
const SOURCE: &str = "entasis:source";

/// A clause, prepared for a `CASE`.
struct Clause {
    /// When it applies; `None` if always.
    condition: Option<Expr>,
    /// The action; 0 for none.
    action: u8,
    /// The columns for which it has values.
    values: Vec<(usize, Expr)>,
}

/// The joined rows of a MERGE, and how it is known which side a row has.
struct Sides<'a> {
    target: &'a Target,
    /// NULL for rows without a source; `None` if all have one.
    in_source: Option<Expr>,
    /// There may be rows without a target.
    new: bool,
}

impl Binder<'_> {
    pub(crate) fn merge(&self, merge: &Merge) -> Result<Statement> {
        let Merge {
            merge_token: _,
            optimizer_hints,
            into: _,
            table: _,
            source: _,
            on: _,
            clauses: _,
            output: _,
        } = merge;
        refuse([(!optimizer_hints.is_empty(), "hints for the optimizer")])?;
        let target = self.target(&merge.table)?;
        let returning = Returning::new(returned(merge.output.as_ref())?, &target, true)?;
        let has = |kinds: &[MergeClauseKind]| {
            merge.clauses.iter().any(|clause| kinds.contains(&clause.clause_kind))
        };
        let new = has(&[MergeClauseKind::NotMatched, MergeClauseKind::NotMatchedByTarget]);
        let lone = has(&[MergeClauseKind::NotMatchedBySource]);
        let (source, source_name) = if lone { marked(&merge.source)? } else { (merge.source.clone(), None) };
        let in_source = source_name.as_ref().map(|name| qualified(name, SOURCE));
        if merge.clauses.is_empty() {
            return Err(Error::input("MERGE has no WHEN clause"));
        }
        let sides = Sides { target: &target, in_source, new };
        let bind = |clause| self.merge_clause(&sides, &merge.source, clause);
        let clauses = merge.clauses.iter().map(bind).collect::<Result<Vec<Clause>>>()?;
        let actions = choose(&clauses, |clause| Ok(number(clause.action)), number(0))?;
        let mut items = vec![named(target.column(ROW_ID), ROW_ID), named(actions, ACTION)];
        for (i, field) in target.columns().iter().enumerate() {
            let value = |clause: &Clause| match clause.values.iter().find(|(column, _)| *column == i) {
                Some((_, value)) => cast_to(value.clone(), field.ty),
                None => Ok(target.column(&field.name)),
            };
            items.push(named(choose(&clauses, value, target.column(&field.name))?, &field.name));
        }
        items.extend(returning.carried.iter().map(|(name, expr)| named(expr.clone(), name)));
        let on = JoinConstraint::On((*merge.on).clone());
        let operator = match (new, lone) {
            (false, false) => JoinOperator::Inner(on),
            (true, false) => JoinOperator::LeftOuter(on),
            (false, true) => JoinOperator::RightOuter(on),
            (true, true) => JoinOperator::FullOuter(on),
        };
        let mut rows = self.over_target(&target, |select| {
            select.projection = items;
            for from in &mut select.from {
                let changed =
                    std::mem::replace(from, TableWithJoins { relation: source.clone(), joins: Vec::new() });
                from.joins.push(join(changed.relation, operator.clone()));
            }
        })?;
        let types = target.columns().iter().map(|field| field.ty);
        rows::cast_outputs(
            &mut rows,
            &[ROW_ID_TYPE, ACTION_TYPE].into_iter().chain(types).collect::<Vec<DataType>>(),
        )?;

        let rows = self.with_action(rows)?;
        self.change_by_row(rows, target, returning, Repeated::Error, Vec::new(), Vec::new())
    }

    /// A clause as a branch of a `CASE` over the joined rows.
    fn merge_clause(&self, sides: &Sides, source: &TableFactor, clause: &MergeClause) -> Result<Clause> {
        let Sides { target, in_source, new } = sides;
        let in_target = target.column(ROW_ID);
        let side = match clause.clause_kind {
            MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => Some(is_null(in_target)),
            MergeClauseKind::NotMatchedBySource => in_source.clone().map(is_null),
            MergeClauseKind::Matched => {
                let in_target = new.then(|| not(is_null(in_target)));
                and(in_target.into_iter().chain(in_source.clone().map(|source| not(is_null(source)))))
            }
        };
        let mut clause = clause.clone();
        if matches!(clause.clause_kind, MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget) {
            self.judge_new(source, &clause)?;
            qualify_new(target, source, &mut clause);
        }
        if clause.clause_kind == MergeClauseKind::NotMatchedBySource {
            self.judge_lone(target, &clause)?;
        }
        let predicate = clause.predicate.clone().map(|predicate| Expr::Nested(Box::new(predicate)));
        let condition = and(side.into_iter().chain(predicate));
        let (action, values) = self.merge_action(target, &clause.action)?;
        Ok(Clause { condition, action, values })
    }

    /// Only the rows with an action.
    fn with_action(&self, rows: Plan) -> Result<Plan> {
        let table = Ident::with_quote('"', "entasis:merged");
        let items =
            rows.output.iter().map(|output| named(qualified(&table, &output.name), &output.name)).collect();
        let something = Expr::BinaryOp {
            left: Box::new(qualified(&table, ACTION)),
            op: BinaryOperator::Gt,
            right: Box::new(number(0)),
        };
        self.over_rows(rows, table_alias(table), None, |select| {
            select.projection = items;
            select.selection = Some(something);
        })
    }

    /// Refuses columns of the target in a clause for rows that it does not have.
    fn judge_new(&self, source: &TableFactor, clause: &MergeClause) -> Result<()> {
        let values = match &clause.action {
            MergeAction::Insert(MergeInsertExpr { kind: MergeInsertKind::Values(values), .. }) => {
                &values.rows[..]
            }
            _ => &[],
        };
        let given = values.iter().flat_map(|row| &row.content).filter(|value| !is_default(value));
        let items: Vec<_> =
            given.chain(&clause.predicate).map(|value| named(value.clone(), "value")).collect();
        if items.is_empty() {
            return Ok(());
        }
        let query = select_from("source", table_alias(Ident::new("source")), |select| {
            select.projection = items;
            select.from[0].relation = source.clone();
        })?;
        self.query(&self.behind_with(query)).map(drop)
    }

    /// Refuses columns of the source in a clause for rows of the target without a source.
    fn judge_lone(&self, target: &Target, clause: &MergeClause) -> Result<()> {
        let values: Vec<&Expr> = match &clause.action {
            MergeAction::Update(update) => {
                update.assignments.iter().map(|assignment| &assignment.value).collect()
            }
            _ => Vec::new(),
        };
        let given = values.into_iter().filter(|value| !is_default(value)).chain(&clause.predicate);
        let items: Vec<_> = given.map(|value| named(value.clone(), "value")).collect();
        if items.is_empty() {
            return Ok(());
        }
        self.over_target(target, |select| select.projection = items).map(drop)
    }

    fn merge_action(&self, target: &Target, action: &MergeAction) -> Result<(u8, Vec<(usize, Expr)>)> {
        match action {
            MergeAction::Delete { .. } => Ok((3, Vec::new())),
            MergeAction::Update(update) => {
                let MergeUpdateExpr { update_token: _, assignments: _, update_predicate, delete_predicate } =
                    update;
                refuse([
                    (update_predicate.is_some(), "WHERE in a clause of MERGE"),
                    (delete_predicate.is_some(), "DELETE WHERE in a clause of MERGE"),
                ])?;
                if let [only] = update.assignments.as_slice()
                    && matches!(&only.target, AssignmentTarget::ColumnName(name) if is_nothing(name))
                {
                    return Ok((0, Vec::new()));
                }
                Ok((2, self.assignments(target, &update.assignments)?))
            }
            MergeAction::Insert(insert) => {
                refuse([(insert.insert_predicate.is_some(), "WHERE in a clause of MERGE")])?;
                if insert.columns.iter().any(is_nothing) {
                    return Ok((0, Vec::new()));
                }
                Ok((1, self.merge_insert(target, insert)?))
            }
        }
    }

    /// The values of a new row, for all columns.
    fn merge_insert(&self, target: &Target, insert: &MergeInsertExpr) -> Result<Vec<(usize, Expr)>> {
        let width = target.columns().len();
        let (names, overriding) = overriding(&insert.columns);
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let ident = name.0.last().and_then(|part| part.as_ident());
            let ident =
                ident.ok_or_else(|| Error::input(format!("{name} is not a column of {}", target.name)))?;
            let column = find_column(target.columns(), ident)
                .map_err(|error| error.with_context(format!("table {}", target.name)))?;
            if columns.contains(&column) {
                return Err(Error::input(format!("the column {name} occurs twice")));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            columns = (0..width).collect();
        }
        let MergeInsertKind::Values(values) = &insert.kind else {
            return Err(Error::not_supported("INSERT ROW in MERGE"));
        };
        let [row] = values.rows.as_slice() else {
            return Err(Error::input("a clause of MERGE inserts one row of VALUES"));
        };
        if row.content.len() != columns.len() {
            return Err(Error::input(format!(
                "each row has {} values for {} columns of {}",
                row.content.len(),
                columns.len(),
                target.name
            )));
        }
        let mut all = Vec::with_capacity(width);
        for i in 0..width {
            let given = columns.iter().position(|&column| column == i).map(|at| &row.content[at]);
            let value = match given.filter(|value| !is_default(value)) {
                None => self.default_expr(target, i)?,
                Some(_) if target.ignores(i, overriding) => self.default_expr(target, i)?,
                Some(value) => {
                    target.takes(i, overriding)?;
                    value.clone()
                }
            };
            all.push((i, value));
        }
        Ok(all)
    }
}

/// `CASE WHEN condition THEN value …` over the clauses, up to the first one that always applies.
fn choose(clauses: &[Clause], value: impl Fn(&Clause) -> Result<Expr>, otherwise: Expr) -> Result<Expr> {
    let mut branches = Vec::with_capacity(clauses.len());
    for clause in clauses {
        let value = value(clause)?;
        match &clause.condition {
            Some(condition) => branches.push((condition.clone(), value)),
            None => return Ok(case(branches, value)),
        }
    }
    // Drops branches at the end with the same value as the rest.
    while branches.last().is_some_and(|(_, value)| *value == otherwise) {
        branches.pop();
    }
    Ok(case(branches, otherwise))
}

/// Qualifies columns that the target has, too, with the source: a new row sees only the source's.
fn qualify_new(target: &Target, source: &TableFactor, clause: &mut MergeClause) {
    let Some(source) = name_of(source) else { return };
    let qualify = |expr: &mut Expr| {
        for_each_outer(expr, |expr| {
            if let Expr::Identifier(name) = expr
                && target.columns().iter().any(|field| field.name.eq_ignore_ascii_case(&name.value))
            {
                *expr = Expr::CompoundIdentifier(vec![source.clone(), name.clone()]);
            }
        });
    };
    clause.predicate.iter_mut().for_each(qualify);
    if let MergeAction::Insert(MergeInsertExpr { kind: MergeInsertKind::Values(values), .. }) =
        &mut clause.action
    {
        let values = values.rows.iter_mut().flat_map(|row| &mut row.content);
        values.filter(|value| !is_default(value)).for_each(qualify);
    }
}

/// The name of a source.
fn name_of(source: &TableFactor) -> Option<Ident> {
    match source {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, alias: None, .. } => {
            name.0.last().and_then(|part| part.as_ident()).cloned()
        }
        _ => None,
    }
}

fn is_nothing(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.value == NOTHING))
}

/// `(SELECT *, TRUE AS "entasis:source" FROM source) AS name`, and the name.
fn marked(source: &TableFactor) -> Result<(TableFactor, Option<Ident>)> {
    let alias = name_of(source);
    let alias = alias.ok_or_else(|| Error::input("the source of MERGE needs a name: USING (…) AS name"))?;
    let text = format!("SELECT * FROM (SELECT *, TRUE AS \"{SOURCE}\" FROM t) AS q");
    let mut query = *parse_query(&text)?;
    if let SetExpr::Select(select) = &mut *query.body
        && let Some(TableWithJoins { relation, .. }) = select.from.pop()
    {
        let mut relation = relation;
        if let TableFactor::Derived { subquery, alias: outer, .. } = &mut relation {
            *outer = Some(TableAlias { columns: Vec::new(), ..table_alias(alias.clone()) });
            if let SetExpr::Select(inner) = &mut *subquery.body {
                inner.from[0].relation = source.clone();
            }
        }
        return Ok((relation, Some(alias)));
    }
    Err(Error::internal("the template is a SELECT"))
}
