//! `#[derive(FromRow)]`: reads a row of a result as a struct, each field from the column of its name.
//!
//! The derived code is what one would write by hand: `field: row.get("field")?`. Names are looked up in each
//! row, without regard to case, so that the order of columns does not matter, and columns that no field asks
//! for are allowed. A tuple struct is read by position, and its row has no other columns.
//!
//! An attribute that is wrong is an error of the compiler that points at it.

mod attributes;

use attributes::{OfField, OfStruct};
use proc_macro::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DataStruct, DeriveInput, Error, Fields, Index, Result, parse_quote};

/// Reads a row as a struct: each field from the column of its name, in any order.
///
/// | attribute of a field | |
/// |---|---|
/// | `#[entasis(rename = "name")]` | the column has another name |
/// | `#[entasis(default)]` | `Default::default()`, if there is no such column, or it is NULL |
/// | `#[entasis(skip)]` | always `Default::default()` |
/// | `#[entasis(flatten)]` | a struct that is itself read from the row |
///
/// Of the struct, `#[entasis(rename_all = "camelCase")]` gives all columns names in this form: `lowercase`,
/// `UPPERCASE`, `camelCase`, `PascalCase`, `snake_case`, `SCREAMING_SNAKE_CASE` or `kebab-case`. An
/// `Option<T>` is `None` where the column is NULL.
#[proc_macro_derive(FromRow, attributes(entasis))]
pub fn from_row(input: TokenStream) -> TokenStream {
    syn::parse(input).and_then(expand).unwrap_or_else(Error::into_compile_error).into()
}

/// The implementation of `FromRow` for a struct.
fn expand(mut input: DeriveInput) -> Result<proc_macro2::TokenStream> {
    let of_struct = OfStruct::read(&input.attrs)?;
    let fields = match &input.data {
        Data::Struct(DataStruct { fields, .. }) => fields,
        _ => {
            return Err(Error::new_spanned(
                &input.ident,
                "a row is read as a struct, not as an enum or a union",
            ));
        }
    };
    let by_position = matches!(fields, Fields::Unnamed(_));
    let mut reads = Vec::new();
    let mut bounds = Vec::new();
    let mut columns = 0_usize;
    for (number, field) in fields.iter().enumerate() {
        let (of_field, ty) = (OfField::read(field)?, &field.ty);
        let (member, column) = match &field.ident {
            Some(ident) => (quote!(#ident), of_field.column(ident, of_struct.form)),
            None => (Index::from(number).into_token_stream(), of_field.rename.clone().unwrap_or_default()),
        };
        let read = if of_field.skip {
            quote!(::core::default::Default::default())
        } else if of_field.flatten {
            bounds.push(parse_quote!(#ty: ::entasis::FromRow));
            quote!(::entasis::FromRow::from_row(row)?)
        } else if by_position {
            bounds.push(parse_quote!(#ty: ::entasis::FromValue));
            let at = columns;
            columns += 1;
            quote!(row.get::<#ty>(#at)?)
        } else if of_field.default {
            bounds.push(parse_quote!(#ty: ::entasis::FromValue));
            quote!(row.get_or_default::<#ty>(#column)?)
        } else {
            bounds.push(parse_quote!(#ty: ::entasis::FromValue));
            quote!(row.get::<#ty>(#column)?)
        };
        reads.push(quote!(#member: #read));
    }
    let check = by_position.then(|| quote!(row.expect_columns(#columns)?;));
    // Only fields whose types depend on a parameter need a bound; of others it would say what is known.
    if input.generics.type_params().next().is_some() {
        input.generics.make_where_clause().predicates.extend::<Vec<syn::WherePredicate>>(bounds);
    }
    let name = &input.ident;
    let (of_impl, of_type, conditions) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #of_impl ::entasis::FromRow for #name #of_type #conditions {
            fn from_row(row: &::entasis::Row) -> ::entasis::Result<Self> {
                #check
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The derived code without blanks, or the message of the error.
    fn derived(input: &str) -> String {
        match syn::parse_str(input).and_then(expand) {
            Ok(code) => code.to_string().replace(' ', ""),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn fields_are_read_from_their_columns() {
        let code = derived(
            "#[entasis(rename_all = \"camelCase\")] struct A<T> { first_name: String, r#type: i64, \
             #[entasis(rename = \"X\")] x: T, #[entasis(skip)] s: u8, #[entasis(default)] d: u8, \
             #[entasis(flatten)] rest: B }",
        );
        for part in [
            "first_name:row.get::<String>(\"firstName\")?",
            "r#type:row.get::<i64>(\"type\")?",
            "x:row.get::<T>(\"X\")?",
            "s:::core::default::Default::default()",
            "d:row.get_or_default::<u8>(\"d\")?",
            "rest:::entasis::FromRow::from_row(row)?",
            "T:::entasis::FromValue",
        ] {
            assert!(code.contains(part), "{part} in {code}");
        }
        let code = derived("struct P(f64, #[entasis(skip)] u8, f64);");
        assert!(code.contains("row.expect_columns(2usize)?;"), "{code}");
        assert!(code.contains("2:row.get::<f64>(1usize)?"), "{code}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (input, message) in [
            ("enum E { A }", "a row is read as a struct"),
            ("struct A { #[entasis(renamed = \"b\")] a: u8 }", "there is no attribute `renamed`"),
            ("struct A { #[entasis(rename = b)] a: u8 }", "expected string literal"),
            ("struct A { #[entasis(skip, rename = \"b\")] a: u8 }", "a field is either skipped or read"),
            ("struct A { #[entasis(flatten, default)] a: B }", "`flatten` goes with no other attribute"),
            ("struct A(#[entasis(rename = \"b\")] u8);", "fields without names are read by position"),
            ("struct A(#[entasis(flatten)] B);", "fields without names are read by position"),
            ("#[entasis(rename_all = \"Camel\")] struct A { a: u8 }", "the forms of names are lowercase"),
            ("#[entasis(skip)] struct A { a: u8 }", "there is no attribute `skip` of a struct"),
        ] {
            let found = derived(input);
            assert!(found.contains(message), "{input}: {found}");
        }
    }
}
