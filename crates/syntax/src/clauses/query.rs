//! Clauses of queries.

use super::refuse;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    Cte, ExcludeSelectItem, Join, JoinConstraint, JoinOperator, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins, Value,
    WildcardAdditionalOptions,
};

/// The clauses around a query.
pub fn query(query: &Query) -> Result<()> {
    let Query {
        with: _,
        body: _,
        order_by,
        limit_clause: _,
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    refuse([
        (!locks.is_empty(), "FOR UPDATE and FOR SHARE"),
        (for_clause.is_some(), "FOR XML and FOR JSON"),
        (settings.is_some(), "SETTINGS"),
        (format_clause.is_some(), "FORMAT"),
        (!pipe_operators.is_empty(), "pipe operators"),
    ])?;
    let Some(order) = order_by else { return Ok(()) };
    self::order_by(order)
}

/// `ORDER BY`. A constant other than the number of a result does not order anything, so it is a mistake.
fn order_by(order: &OrderBy) -> Result<()> {
    let OrderBy { kind, interpolate } = order;
    refuse([(interpolate.is_some(), "INTERPOLATE")])?;
    let OrderByKind::Expressions(keys) = kind else { return Ok(()) };
    for OrderByExpr { expr, options: _, with_fill } in keys {
        refuse([(with_fill.is_some(), "WITH FILL")])?;
        let constant = match expr {
            sqlparser::ast::Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => digits.parse::<u64>().is_err(),
                Value::Null | Value::Placeholder(_) => false,
                _ => true,
            },
            _ => false,
        };
        if constant {
            let error =
                Error::input(format!("ORDER BY {expr} orders by a constant")).with_sqlstate(sqlstate::SYNTAX);
            return Err(
                error.with_hint("write the name of a column without quotes or in double ones, or its number")
            );
        }
    }
    Ok(())
}

/// A query of a `WITH`. `MATERIALIZED` is accepted, as it does not affect the rows.
pub fn cte(cte: &Cte) -> Result<()> {
    let Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } = cte;
    refuse([(from.is_some(), "FROM behind a query of WITH")])?;
    self::alias(Some(alias))
}

/// The clauses of a `SELECT`.
pub fn select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        flavor: _,
        top_before_distinct: _,
        window_before_qualify: _,
        distinct: _,
        projection,
        from,
        selection: _,
        group_by: _,
        having: _,
        named_window: _,
        qualify: _,
        optimizer_hints,
        select_modifiers,
        top,
        exclude,
        into,
        lateral_views,
        prewhere,
        connect_by,
        cluster_by,
        distribute_by,
        sort_by,
        value_table_mode,
    } = select;
    if into.is_some() {
        return Err(Error::not_supported("SELECT INTO").with_hint("write CREATE TABLE name AS SELECT …"));
    }
    // The parser also accepts a FROM by itself.
    if projection.is_empty() {
        return Err(Error::input("the query selects no columns")
            .with_sqlstate(sqlstate::SYNTAX)
            .with_hint("SELECT * selects all"));
    }
    refuse([
        (!optimizer_hints.is_empty(), "hints for the optimizer"),
        (select_modifiers.is_some(), "modifiers of SELECT"),
        (top.is_some(), "TOP"),
        (exclude.is_some(), "EXCLUDE behind the select list"),
        (!lateral_views.is_empty(), "LATERAL VIEW"),
        (prewhere.is_some(), "PREWHERE"),
        (!connect_by.is_empty(), "CONNECT BY"),
        (!cluster_by.is_empty(), "CLUSTER BY"),
        (!distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!sort_by.is_empty(), "SORT BY"),
        (value_table_mode.is_some(), "SELECT AS VALUE and SELECT AS STRUCT"),
    ])?;
    from.iter().try_for_each(joins)
}

/// The options of `*`.
pub fn wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_exclude: None | Some(ExcludeSelectItem::Single(_) | ExcludeSelectItem::Multiple(_)),
        opt_replace: _,
        opt_except,
        opt_ilike,
        opt_rename,
        opt_alias,
    } = options;
    refuse([
        (opt_ilike.is_some(), "* ILIKE"),
        (opt_except.is_some(), "* EXCEPT"),
        (opt_rename.is_some(), "* RENAME"),
        (opt_alias.is_some(), "* AS"),
    ])
}

/// The joins after a table. A join that is neither CROSS nor NATURAL needs a condition.
fn joins(table: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation, joins } = table;
    let mut left = relation;
    for Join { relation, global: _, join_operator } in joins {
        // The parser takes an unknown kind of join for an alias of the preceding table.
        let word = match left {
            TableFactor::Table { alias: Some(TableAlias { explicit: false, name, .. }), .. }
            | TableFactor::Derived { alias: Some(TableAlias { explicit: false, name, .. }), .. }
                if name.quote_style.is_none() =>
            {
                name.value.to_ascii_uppercase()
            }
            _ => String::new(),
        };
        refuse([(word == "POSITIONAL", "POSITIONAL JOIN")])?;
        match join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint) => {
                if matches!(constraint, JoinConstraint::None) {
                    return Err(Error::input(format!("the join with {relation} has no condition"))
                        .with_sqlstate(sqlstate::SYNTAX)
                        .with_hint("write ON or USING, or CROSS JOIN for all pairs"));
                }
            }
            JoinOperator::CrossJoin(JoinConstraint::None) => {}
            JoinOperator::CrossJoin(_) => {
                return Err(Error::input("a CROSS JOIN has no condition").with_sqlstate(sqlstate::SYNTAX));
            }
            JoinOperator::CrossApply | JoinOperator::OuterApply => return Err(Error::not_supported("APPLY")),
            JoinOperator::AsOf { .. } => {}
            JoinOperator::StraightJoin(_) => return Err(Error::not_supported("STRAIGHT_JOIN")),
            JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
                return Err(Error::not_supported("ARRAY JOIN"));
            }
        }
        left = relation;
    }
    Ok(())
}

/// A table, function or query in `FROM`.
pub fn table_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample: _,
            index_hints,
        } => {
            let settings = matches!(args, Some(TableFunctionArgs { args: _, settings: Some(_) }));
            refuse([
                (*with_ordinality, "WITH ORDINALITY"),
                (version.is_some(), "versions of a table"),
                (!partitions.is_empty(), "PARTITION of a table"),
                (json_path.is_some(), "JSON paths"),
                (!with_hints.is_empty() || !index_hints.is_empty(), "hints for the optimizer"),
                (settings, "SETTINGS"),
            ])?;
            self::alias(alias.as_ref())
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample: _ } => self::alias(alias.as_ref()),
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias } => {
            refuse([(*with_ordinality, "WITH ORDINALITY")])?;
            self::alias(alias.as_ref())
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            joins(table_with_joins)?;
            self::alias(alias.as_ref())
        }
        TableFactor::TableFunction { .. } => Err(Error::not_supported("TABLE(function)")),
        TableFactor::UNNEST { .. } => Err(Error::not_supported("UNNEST … WITH OFFSET")),
        TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
            Err(Error::not_supported("JSON"))
        }
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => Err(Error::not_supported("PIVOT")),
        TableFactor::MatchRecognize { .. } => Err(Error::not_supported("MATCH_RECOGNIZE")),
        TableFactor::XmlTable { .. } => Err(Error::not_supported("XML")),
        TableFactor::SemanticView { .. } => Err(Error::not_supported("SEMANTIC_VIEW")),
    }
}

/// An alias for a table and its columns.
fn alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    let typed = columns.iter().any(|TableAliasColumnDef { name: _, data_type }| data_type.is_some());
    refuse([
        (at.is_some(), "AT behind the name of a table"),
        (typed, "types behind the names of columns in FROM"),
    ])
}
