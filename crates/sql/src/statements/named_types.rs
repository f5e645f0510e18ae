//! Types that `CREATE TYPE` has named: a statement that names one gets the type itself in its place.
//!
//! From then on nobody knows the name. Text that the catalog keeps (views, defaults, checks) and columns of
//! tables have the type, so that nothing needs its name, which may be dropped at any time.
//!
//! Nothing is done if the catalog has no such types. None has the name of a type that is built in.

use entasis_binder::environment::Catalog;
use entasis_syntax::object_name::{bare, in_schema, table_name};
use entasis_syntax::parsed::Ast;
use entasis_syntax::types::written_type;
use entasis_syntax::walk::WalkMut;
use entasis_vector::DataType;
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, ColumnDef, Expr, ObjectName,
    Statement, VisitorMut,
};
use std::ops::ControlFlow;

/// The statement with types in the place of their names; `None` if it need not be changed.
pub(crate) fn replaced(ast: &Ast, catalog: &dyn Catalog) -> Option<Ast> {
    if !catalog.has_types() {
        return None;
    }
    let mut ast = ast.clone();
    Replacer { catalog }.ast(&mut ast);
    Some(ast)
}

/// The name in the catalog of the type that a statement names.
pub(crate) fn type_name(written: &ObjectName, catalog: &dyn Catalog) -> entasis_vector::Result<String> {
    match bare(written).and_then(|own| Some((catalog.schema_of(&own)?, own))) {
        Some((schema, own)) => Ok(in_schema(&schema, &own)),
        None => table_name(written),
    }
}

struct Replacer<'a> {
    catalog: &'a dyn Catalog,
}

impl Replacer<'_> {
    fn ast(&mut self, ast: &mut Ast) {
        match ast {
            Ast::Sql(statement) | Ast::CreateOrReplace(statement) => _ = statement.walk_mut(self),
            Ast::Explain { statement, .. } => self.ast(statement),
            Ast::Describe(query) | Ast::Summarize(query) | Ast::CopyTo { query, .. } => {
                _ = query.walk_mut(self);
            }
            _ => {}
        }
    }

    fn ty(&self, ty: &mut ast::DataType) {
        match ty {
            // A MAP has the texts of its types.
            ast::DataType::Custom(name, types) if name.to_string().eq_ignore_ascii_case("map") => {
                for text in types {
                    if let Ok(mut within) = written_type(text) {
                        self.ty(&mut within);
                        *text = within.to_string();
                    }
                }
            }
            ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
                let named = self.named(name).and_then(|named| written_type(&named.to_string()).ok());
                if let Some(named) = named {
                    *ty = named;
                }
            }
            ast::DataType::Array(
                ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element),
            ) => self.ty(element),
            ast::DataType::Struct(fields, _) => {
                fields.iter_mut().for_each(|field| self.ty(&mut field.field_type));
            }
            _ => {}
        }
    }

    fn named(&self, name: &ObjectName) -> Option<DataType> {
        self.catalog.named_type(&type_name(name, self.catalog).ok()?)
    }

    fn column(&self, column: &mut ColumnDef) {
        self.ty(&mut column.data_type);
    }
}

impl VisitorMut for Replacer<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<Self::Break> {
        match statement {
            Statement::CreateTable(create) => {
                create.columns.iter_mut().for_each(|column| self.column(column));
            }
            Statement::AlterTable(alter) => {
                for operation in &mut alter.operations {
                    match operation {
                        AlterTableOperation::AddColumn { column_def, .. } => self.column(column_def),
                        AlterTableOperation::AlterColumn {
                            op: AlterColumnOperation::SetDataType { data_type, .. },
                            ..
                        } => self.ty(data_type),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Cast { data_type, .. } = expr {
            self.ty(data_type);
        }
        ControlFlow::Continue(())
    }
}
