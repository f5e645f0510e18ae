//! The state of binding one statement.

use crate::bound::Bound;
use crate::environment::{Catalog, Parameters};
use crate::scope::{Clause, Found, Rel, Scope};
use crate::with::Frame;
use entasis_engine::plan::{Columns, Plan};
use entasis_engine::relation::Relation;
use entasis_functions::Session;
use entasis_syntax::place::{locate_ident, span_position};
use entasis_vector::error::sqlstate;
use entasis_vector::expr::Expr;
use entasis_vector::suggest::nearest;
use entasis_vector::{ColumnId, DataType, Error, Result};
use sqlparser::ast::{Ident, Spanned};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// Tables besides those of the catalog, under names that no user can write.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// [`TARGET`]: the table that a statement changes, with its row ids.
    pub target: Option<Arc<dyn Relation>>,
    /// [`ROWS`]: rows that were bound before.
    pub rows: Option<Arc<Plan>>,
    /// The query is the text of a view.
    pub is_view: bool,
    /// What a `DESCRIBE` in `FROM` gives for the text of the statement: the plan of constant rows.
    pub describe: Option<Describe>,
}

/// See [`Given::describe`].
pub type Describe = fn(&str, &dyn Catalog, Parameters<'_>) -> Result<Plan>;

/// The name of [`Given::target`].
pub const TARGET: &str = "entasis:target";
/// The name of [`Given::rows`].
pub const ROWS: &str = "entasis:rows";

/// See the module.
pub(crate) struct Binder<'a, 'q> {
    pub(crate) catalog: &'a dyn Catalog,
    pub(crate) params: Parameters<'a>,
    pub(crate) session: Session,
    pub(crate) given: &'a Given,
    pub(crate) columns: Columns,
    /// Scopes of the queries around, outermost first.
    pub(crate) scopes: Vec<Scope<'q>>,
    /// The WITH clauses around, outermost first.
    pub(crate) withs: Vec<Frame<'q>>,
    /// The views that are being bound, outermost first.
    pub(crate) views: Vec<String>,
    /// The depths of the scopes of which columns were read since somebody asked, a bit each.
    pub(crate) read: u128,
    /// How often a column of a scope around was read.
    pub(crate) captures: usize,
    /// Ranges of columns that an outer join fills with NULLs: the first, and the one behind the last.
    pub(crate) nulled: Vec<(u32, u32)>,
    /// The tables whose rows the statement counts: `count(t.*)`.
    pub(crate) counted: Rc<HashSet<String>>,
    /// A call whose NULL treatment belongs to the call around it.
    pub(crate) excused: Option<&'q sqlparser::ast::Function>,
}

impl<'a, 'q> Binder<'a, 'q> {
    /// A statement that begins.
    pub(crate) fn new(catalog: &'a dyn Catalog, params: Parameters<'a>, given: &'a Given) -> Binder<'a, 'q> {
        Binder {
            catalog,
            params,
            session: catalog.session(),
            given,
            // Rows that were bound before have columns already.
            columns: given.rows.as_ref().map(|rows| rows.columns.clone()).unwrap_or_default(),
            scopes: Vec::new(),
            withs: Vec::new(),
            views: Vec::new(),
            read: 0,
            captures: 0,
            nulled: Vec::new(),
            counted: Rc::default(),
            excused: None,
        }
    }

    /// The scope whose expressions are being bound.
    pub(crate) fn scope(&mut self) -> &mut Scope<'q> {
        self.scopes.last_mut().expect("a scope around every expression")
    }

    /// The clause that is being bound.
    pub(crate) fn clause(&self) -> Clause {
        self.scopes.last().map_or(Clause::From, |scope| scope.clause)
    }

    /// Binds within another clause of the scope.
    pub(crate) fn within<T>(&mut self, clause: Clause, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.scope().clause, clause);
        let bound = bind(self);
        self.scope().clause = before;
        bound
    }

    /// What a column gives, which was found in the scope at this depth.
    fn read(&mut self, depth: usize, column: ColumnId) -> Bound {
        self.read |= 1u128.checked_shl(depth as u32).unwrap_or(0);
        if depth + 1 < self.scopes.len() {
            self.captures += 1;
        }
        Bound::known(self.columns.expr(column))
    }

    /// Binds a name: of a column, or of an item of the select list.
    pub(crate) fn name(&mut self, ident: &Ident) -> Result<Bound> {
        let name = ident.value.to_ascii_lowercase();
        for depth in (0..self.scopes.len()).rev() {
            match self.scopes[depth].find(&name) {
                Found::Nothing | Found::NotInTable(_) => {}
                Found::Column(column) => return Ok(self.read(depth, column)),
                Found::Refused => return Err(locate_ident(refused(&name), ident)),
                // Columns of FROM come before items of the select list, also where there are several.
                Found::Several(places) => return Err(locate_ident(ambiguous(&name, &places), ident)),
            }
        }
        if let Some(bound) = self.alias(&name)? {
            return Ok(bound);
        }
        Err(locate_ident(self.unknown_column(&name, ident), ident))
    }

    /// Binds a name of several parts: a column of a table, or a field of one.
    pub(crate) fn qualified_name(&mut self, idents: &[Ident]) -> Result<Bound> {
        let parts: Vec<String> = idents.iter().map(|ident| ident.value.to_ascii_lowercase()).collect();
        let parts = crate::table::known_schemas(parts);
        let mut not_in_table = None;
        for depth in (0..self.scopes.len()).rev() {
            // The longest name of a table comes first; what is behind the column are fields.
            for table in (1..parts.len().min(4)).rev() {
                match self.scopes[depth].find_in(&parts[..table], &parts[table]) {
                    Found::Nothing => {}
                    Found::NotInTable(rel) => {
                        not_in_table.get_or_insert((rel, table));
                    }
                    Found::Column(column) => {
                        let column = self.read(depth, column);
                        return self.fields(column, &idents[table + 1..]);
                    }
                    Found::Refused => return Err(locate_ident(refused(&parts[table]), &idents[table])),
                    Found::Several(places) => {
                        return Err(locate_ident(ambiguous(&parts[table], &places), &idents[table]));
                    }
                }
            }
            match self.scopes[depth].find(&parts[0]) {
                Found::Column(column) if matches!(self.columns.ty(column), DataType::Struct(_)) => {
                    let column = self.read(depth, column);
                    return self.fields(column, &idents[1..]);
                }
                Found::Several(places) if not_in_table.is_none() => {
                    return Err(locate_ident(ambiguous(&parts[0], &places), &idents[0]));
                }
                _ => {}
            }
            if let Some((rel, table)) = not_in_table {
                let name = &parts[table];
                let error = Error::input(format!("there is no column {}.{name}", rel.alias));
                let error = error.with_sqlstate(sqlstate::NO_COLUMN);
                let names = rel.columns.all.iter().map(|(name, _)| &**name);
                let error = match nearest(name, names) {
                    Some(near) => error.with_hint(format!("did you mean {near}?")),
                    None => error,
                };
                return Err(locate_ident(error, &idents[table]));
            }
        }
        if let Some(bound) = self.alias(&parts[0])?
            && matches!(bound.ty(), DataType::Struct(_))
        {
            return self.fields(bound, &idents[1..]);
        }
        let table = parts[..parts.len() - 1].join(".");
        let text = format!("there is no column {}: there is no table {table} in FROM", parts.join("."));
        let error = Error::input(text).with_sqlstate(sqlstate::NO_TABLE);
        let names: Vec<Rel> = self.scopes.iter().flat_map(|scope| scope.relations.clone()).collect();
        let error = match nearest(&table, names.iter().map(|rel| &*rel.alias).filter(|name| !name.is_empty()))
        {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error,
        };
        Err(locate_ident(error, &idents[0]))
    }

    /// The error for a name that is nowhere.
    fn unknown_column(&self, name: &str, ident: &Ident) -> Error {
        let is_quoted = ident.quote_style == Some('"');
        let text = match is_quoted {
            true => format!("there is no column {ident}"),
            false => format!("there is no column {name}"),
        };
        let error = Error::input(text).with_sqlstate(sqlstate::NO_COLUMN);
        let scopes = self.scopes.iter().rev();
        let columns = scopes.flat_map(|scope| &scope.relations).flat_map(|rel| &rel.columns.all);
        match nearest(name, columns.map(|(name, _)| &**name)) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            // Other systems read it as a text if there is no such column.
            None if is_quoted => {
                error.with_hint("a text is written in single quotes; double quotes are for names")
            }
            None if self.scopes.iter().any(|scope| !scope.relations.is_empty()) => error,
            None => error.with_hint("a text is written in single quotes: 'text'"),
        }
    }

    /// An item of the select list, if it is visible under this name.
    pub(crate) fn alias(&mut self, name: &str) -> Result<Option<Bound>> {
        let Some(scope) = self.scopes.last() else { return Ok(None) };
        let visible = &scope.aliases[..scope.visible_aliases.min(scope.aliases.len())];
        match visible.iter().position(|alias| *alias.name == *name && !alias.is_being_bound) {
            Some(at) => self.item_named(at).map(Some),
            None => Ok(None),
        }
    }

    /// The item of the select list at a place among the named ones.
    pub(crate) fn item_named(&mut self, at: usize) -> Result<Bound> {
        if let Some(bound) = &self.scope().aliases[at].bound {
            return Ok(bound.clone());
        }
        let alias = &mut self.scope().aliases[at];
        alias.is_being_bound = true;
        let ast = alias.ast;
        let visible = std::mem::replace(&mut self.scope().visible_aliases, at);
        let bound = self.expr(ast);
        let scope = self.scope();
        scope.visible_aliases = visible;
        scope.aliases[at].is_being_bound = false;
        let mut bound = bound?;
        // What several clauses read, and is another value each time, is computed once for all of them.
        if is_volatile(&bound.expr) && !self.clause().has_groups() {
            let name = self.scope().aliases[at].name.to_string();
            let column = self.columns.add(name, bound.ty(), true);
            let expr = std::mem::replace(&mut bound.expr, self.columns.expr(column));
            self.scope().early.push((column, expr));
        }
        self.scope().aliases[at].bound = Some(bound.clone());
        Ok(bound)
    }

    /// True if an expression over the rows of the scope may be NULL.
    pub(crate) fn may_be_null(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Column { id, .. } => {
                self.columns.get(*id).nullable
                    || self.nulled.iter().any(|(first, end)| (*first..*end).contains(&id.0))
            }
            Expr::Literal { value, .. } => value.is_null(),
            Expr::IsNull(_) => false,
            Expr::Cast { input, lenient: false, .. } => self.may_be_null(input),
            _ => true,
        }
    }
}

/// True if an expression calls a volatile function.
pub(crate) fn is_volatile(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |part| {
        if let Expr::External { function, .. } = part {
            found |= function.is_volatile();
        }
    });
    found
}

fn refused(name: &str) -> Error {
    Error::input(format!(
        "{name} is a column of the left side of a RIGHT or FULL JOIN, which its right side must not read"
    ))
}

/// A name that stands for several columns; `places` are these columns as they are written out.
pub(crate) fn ambiguous(name: &str, places: &[String]) -> Error {
    let is_twice = |(at, place): &(usize, &String)| *place != name && places[..*at].contains(place);
    let twice = places.iter().enumerate().find(is_twice);
    if let Some((_, place)) = twice {
        let error =
            Error::input(format!("the column {name} is ambiguous: there are several columns {place}"));
        return error.with_hint("give these columns different names");
    }
    let error = Error::input(format!("the column {name} is in more than one table"));
    match places.iter().all(|place| place != name) {
        true => error.with_hint(format!("write the table in front: {}", places.join(" or "))),
        false => error,
    }
}

/// The error with the place of a part of the tree, unless it has one.
pub(crate) fn located(error: Error, part: &impl Spanned) -> Error {
    if error.position().is_some() {
        return error;
    }
    match span_position(part.span()) {
        Some(position) => error.with_position(position),
        None => error,
    }
}
