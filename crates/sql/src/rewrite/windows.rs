//! Passes window functions, calls with an `OVER`, through the binder.
//!
//! The binder supports only frames of constants, without `EXCLUDE`, and no `DISTINCT` or order within a call.
//! So a call passes through it as one of a function that is made for it ([`crate::functions::window_call`]):
//! its clauses are stored separately, and every expression in it is an argument.
//!
//! ```text
//! sum(x) FILTER (WHERE c) OVER (PARTITION BY p ORDER BY o ROWS n PRECEDING)
//!     ⇒  "…window:3"(x, n, c) OVER (PARTITION BY p ORDER BY o)
//! ```
//!
//! References to named windows are replaced by their definitions ([`name_windows`]).

use super::volatile::calls_volatile;
use crate::binding::context::Context;
use crate::functions::Library;
use crate::functions::window_call::{End, Exclude, Frame, Units, WindowCall};
use crate::hidden::{EXCLUDE, MARK};
use entasis_functions::windows;
use entasis_syntax::walk::WalkMut;
use entasis_vector::error::sqlstate;
use entasis_vector::{Error, Result};
use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Ident, NamedWindowDefinition, NamedWindowExpr, NullTreatment,
    ObjectName, ObjectNamePart, OrderByExpr, OrderByKind, Query, SetExpr, VisitorMut, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// `last_value(abs(a) IGNORE NULLS)`: the parser takes the clause for one of `abs`, and it is one of the call
/// around it.
pub(super) fn take_nulls_clause(function: &mut Function) {
    if function.null_treatment.is_none()
        && let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(last)))) = list.args.last_mut()
        && last.over.is_none()
        && let Some(treatment) = last.null_treatment.take()
    {
        function.null_treatment = Some(treatment);
    }
}

/// Converts a call with an `OVER` to the form in which it passes through the binder; `name` is its function.
///
/// # Errors
/// Input, for a function that is not a window function, and for clauses that the function or the frame cannot
/// have.
pub(super) fn call(name: &str, function: &mut Function, context: &Context<'_>) -> Result<()> {
    let Some(WindowType::WindowSpec(mut spec)) = function.over.take() else {
        return Err(Error::internal("a window whose name was not written out"));
    };
    let is_aggregate = Library::get().aggregate(name).is_some();
    if !is_aggregate && !windows::is_window_function(name) {
        let error = Error::input(format!("{name} is neither an aggregate nor a window function"));
        return Err(error.with_sqlstate(sqlstate::NO_FUNCTION));
    }
    if !function.within_group.is_empty() {
        return Err(Error::not_supported("WITHIN GROUP with OVER"));
    }
    let mut list = match std::mem::replace(&mut function.args, FunctionArguments::None) {
        FunctionArguments::List(list) => list,
        FunctionArguments::None => empty_list(),
        FunctionArguments::Subquery(_) => {
            return Err(Error::input(format!("{name} takes values, not a query")));
        }
    };
    if name == "count" && matches!(list.args.as_slice(), [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) {
        list.args.clear();
    }
    let mut order_by: Vec<OrderByExpr> = Vec::new();
    let mut nulls = function.null_treatment.take();
    for clause in std::mem::take(&mut list.clauses) {
        match clause {
            FunctionArgumentClause::OrderBy(keys) => order_by = keys,
            FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => nulls = Some(treatment),
            other => return Err(Error::not_supported(format!("{other} in a window function"))),
        }
    }
    let filter = function.filter.take();
    let distinct = matches!(list.duplicate_treatment.take(), Some(DuplicateTreatment::Distinct));
    if !is_aggregate && (distinct || filter.is_some() || !order_by.is_empty()) {
        let error =
            Error::input(format!("{name} is no aggregate, and takes no DISTINCT, FILTER or ORDER BY"));
        return Err(error.with_sqlstate(sqlstate::SYNTAX));
    }
    let ignore_nulls = matches!(nulls, Some(NullTreatment::IgnoreNulls));
    let count = list.args.len();
    let mut add = |expr: Expr| list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)));
    let exclude = exclusion(&mut spec);
    let frame = spec.window_frame.take().map(|frame| self::frame(frame, exclude, &mut add)).transpose()?;
    if frame.is_none() && exclude != Exclude::NoOthers {
        return Err(Error::input("EXCLUDE needs a frame before it"));
    }
    let mut order = Vec::with_capacity(order_by.len());
    for key in order_by {
        order.push((key.options.asc == Some(false), key.options.nulls_first == Some(true)));
        add(key.expr);
    }
    let has_filter = filter.is_some();
    filter.into_iter().for_each(|filter| add(*filter));
    // Two calls that draw their own numbers are two calls, however alike they are.
    let is_volatile = calls_volatile(&list);
    let call =
        WindowCall { name: name.to_owned(), args: count, distinct, ignore_nulls, frame, order, has_filter };
    let hidden = Ident::with_quote('"', context.window(call, is_volatile));
    function.name = ObjectName(vec![ObjectNamePart::Identifier(hidden)]);
    function.args = FunctionArguments::List(list);
    // The binder sees a frame of rows: for the default frame, it would require keys with a distance.
    spec.window_frame = Some(WindowFrame {
        units: WindowFrameUnits::Rows,
        start_bound: WindowFrameBound::Preceding(None),
        end_bound: Some(WindowFrameBound::CurrentRow),
    });
    function.over = Some(WindowType::WindowSpec(spec));
    Ok(())
}

fn empty_list() -> FunctionArgumentList {
    FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() }
}

/// A frame; its offsets are added to the arguments.
fn frame(frame: WindowFrame, exclude: Exclude, add: &mut impl FnMut(Expr)) -> Result<Frame> {
    let units = match frame.units {
        WindowFrameUnits::Rows => Units::Rows,
        WindowFrameUnits::Range => Units::Range,
        WindowFrameUnits::Groups => Units::Groups,
    };
    let mut end = |bound: WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => End::CurrentRow,
        WindowFrameBound::Preceding(None) => End::UnboundedPreceding,
        WindowFrameBound::Following(None) => End::UnboundedFollowing,
        WindowFrameBound::Preceding(Some(offset)) => {
            add(*offset);
            End::Preceding
        }
        WindowFrameBound::Following(Some(offset)) => {
            add(*offset);
            End::Following
        }
    };
    let start = end(frame.start_bound);
    let end = frame.end_bound.map_or(End::CurrentRow, end);
    let wrong = match (start, end) {
        (End::UnboundedFollowing, _) => Some("a frame cannot start with UNBOUNDED FOLLOWING"),
        (_, End::UnboundedPreceding) => Some("a frame cannot end with UNBOUNDED PRECEDING"),
        (End::CurrentRow, End::Preceding) => {
            Some("a frame that starts at the current row cannot end before it")
        }
        (End::Following, End::Preceding | End::CurrentRow) => {
            Some("a frame that starts after the current row cannot end at or before it")
        }
        _ => None,
    };
    match wrong {
        Some(text) => Err(Error::input(text).with_sqlstate(sqlstate::SYNTAX)),
        None => Ok(Frame { units, start, end, exclude }),
    }
}

/// What a window excludes: the parser does not know the clause, so it was made part of the window's name
/// ([`entasis_syntax::words`]).
fn exclusion(spec: &mut WindowSpec) -> Exclude {
    let Some(name) = &mut spec.window_name else { return Exclude::NoOthers };
    let Some(rest) = name.value.strip_prefix(EXCLUDE) else { return Exclude::NoOthers };
    let (what, base) = rest.split_once(MARK).unwrap_or((rest, ""));
    let exclude = match what {
        "row" => Exclude::CurrentRow,
        "group" => Exclude::Group,
        "ties" => Exclude::Ties,
        _ => Exclude::NoOthers,
    };
    let base = (!base.is_empty()).then(|| Ident::new(base));
    spec.window_name = base;
    exclude
}

/// Replaces references to the windows of a query's `WINDOW` clause, in its list, its `QUALIFY` and its `ORDER
/// BY`.
///
/// # Errors
/// Input, for names that do not exist or are repeated, and for clauses that a window cannot add to another.
pub(super) fn name_windows(query: &mut Query) -> Result<()> {
    let order_by = query.order_by.as_mut();
    let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
    let mut named: HashMap<String, WindowSpec> = HashMap::new();
    for NamedWindowDefinition(name, window) in std::mem::take(&mut select.named_window) {
        let mut spec = match window {
            NamedWindowExpr::WindowSpec(spec) => spec,
            NamedWindowExpr::NamedWindow(base) => WindowSpec {
                window_name: Some(base),
                partition_by: Vec::new(),
                order_by: Vec::new(),
                window_frame: None,
            },
        };
        build_upon(&mut spec, &named, true)?;
        if named.insert(name.value.to_ascii_lowercase(), spec).is_some() {
            return Err(Error::input(format!("there are two windows named {}", name.value)));
        }
    }
    let mut writer = Writer { named, depth: 0 };
    let visit = |part: ControlFlow<Error>| match part {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    };
    for item in &mut select.projection {
        visit(item.walk_mut(&mut writer))?;
    }
    if let Some(qualify) = &mut select.qualify {
        visit(qualify.walk_mut(&mut writer))?;
    }
    if let Some(order_by) = order_by
        && let OrderByKind::Expressions(keys) = &mut order_by.kind
    {
        for key in keys {
            visit(key.walk_mut(&mut writer))?;
        }
    }
    Ok(())
}

/// Adds the clauses of a window to the one that it extends.
fn build_upon(spec: &mut WindowSpec, named: &HashMap<String, WindowSpec>, is_definition: bool) -> Result<()> {
    let excluded = match &spec.window_name {
        Some(name) if name.value.starts_with(EXCLUDE) => name.value.clone(),
        _ => String::new(),
    };
    let base = match excluded.rsplit_once(MARK) {
        Some((_, base)) if !excluded.is_empty() => base.to_owned(),
        _ => spec.window_name.as_ref().map(|name| name.value.clone()).unwrap_or_default(),
    };
    if base.is_empty() {
        return Ok(());
    }
    let Some(upon) = named.get(&base.to_ascii_lowercase()) else {
        return Err(Error::input(format!("there is no window named {base}")));
    };
    if !spec.partition_by.is_empty() {
        return Err(Error::input(format!(
            "a window built upon {base} cannot have a PARTITION BY of its own"
        )));
    }
    if !spec.order_by.is_empty() && !upon.order_by.is_empty() {
        return Err(Error::input(format!("the window {base} has an ORDER BY already")));
    }
    if upon.window_frame.is_some()
        && (is_definition || spec.window_frame.is_some() || !spec.order_by.is_empty())
    {
        return Err(Error::input(format!("the window {base} has a frame and cannot be extended")));
    }
    spec.partition_by = upon.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = upon.order_by.clone();
    }
    if spec.window_frame.is_none() {
        spec.window_frame = upon.window_frame.clone();
    }
    // The exclusion is kept: that of its own frame, or of the one that it inherits.
    spec.window_name = match excluded.rsplit_once(MARK) {
        Some((what, _)) if !excluded.is_empty() => Some(Ident::new(format!("{what}{MARK}"))),
        _ => upon.window_name.clone(),
    };
    Ok(())
}

/// Replaces references to windows; those in nested queries belong to those.
struct Writer {
    named: HashMap<String, WindowSpec>,
    depth: usize,
}

impl VisitorMut for Writer {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let result = match &mut function.over {
            Some(WindowType::NamedWindow(name)) => match self.named.get(&name.value.to_ascii_lowercase()) {
                Some(spec) => {
                    function.over = Some(WindowType::WindowSpec(spec.clone()));
                    Ok(())
                }
                None => Err(Error::input(format!("there is no window named {}", name.value))),
            },
            Some(WindowType::WindowSpec(spec)) => build_upon(spec, &self.named, false),
            None => Ok(()),
        };
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
