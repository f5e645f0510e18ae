//! The attributes `#[entasis(…)]`.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::{Attribute, Error, Field, LitStr, Result};

/// The forms of names, as an attribute writes them.
const FORMS: [(&str, Form); 7] = [
    ("lowercase", Form::Lower),
    ("UPPERCASE", Form::Upper),
    ("camelCase", Form::Camel),
    ("PascalCase", Form::Pascal),
    ("snake_case", Form::Snake),
    ("SCREAMING_SNAKE_CASE", Form::Screaming),
    ("kebab-case", Form::Kebab),
];

/// How the names of columns are made of those of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Lower,
    Upper,
    Camel,
    Pascal,
    Snake,
    Screaming,
    Kebab,
}

impl Form {
    /// The name of the column of a field, whose name is in snake case.
    fn of(self, field: &str) -> String {
        let capital = |word: &str| match word.char_indices().nth(1) {
            Some((second, _)) => word[..second].to_uppercase() + &word[second..],
            None => word.to_uppercase(),
        };
        let words = || field.split('_').filter(|word| !word.is_empty());
        match self {
            Form::Lower => field.to_lowercase().replace('_', ""),
            Form::Upper => field.to_uppercase().replace('_', ""),
            Form::Camel => words()
                .enumerate()
                .map(|(i, word)| if i == 0 { word.to_owned() } else { capital(word) })
                .collect(),
            Form::Pascal => words().map(capital).collect(),
            Form::Snake => field.to_owned(),
            Form::Screaming => field.to_uppercase(),
            Form::Kebab => field.replace('_', "-"),
        }
    }
}

/// What is said of a struct.
#[derive(Debug, Default)]
pub(crate) struct OfStruct {
    pub(crate) form: Option<Form>,
}

impl OfStruct {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<OfStruct> {
        let mut found = OfStruct::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("entasis")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("rename_all") {
                    return Err(unknown(&meta.path, " of a struct", "rename_all"));
                }
                let form: LitStr = meta.value()?.parse()?;
                let known = FORMS.iter().find(|(name, _)| *name == form.value());
                let names = || FORMS.map(|(name, _)| name).join(", ");
                let (_, known) = known
                    .ok_or_else(|| Error::new(form.span(), format!("the forms of names are {}", names())))?;
                found.form = Some(*known);
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// What is said of a field.
#[derive(Debug, Default)]
pub(crate) struct OfField {
    pub(crate) rename: Option<String>,
    pub(crate) default: bool,
    pub(crate) skip: bool,
    pub(crate) flatten: bool,
}

impl OfField {
    pub(crate) fn read(field: &Field) -> Result<OfField> {
        let mut found = OfField::default();
        let mut place = Span::call_site();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("entasis")) {
            attribute.parse_nested_meta(|meta| {
                place = meta.path.get_ident().map_or(place, Ident::span);
                match meta.path.get_ident().map(Ident::to_string).as_deref() {
                    Some("rename") => found.rename = Some(meta.value()?.parse::<LitStr>()?.value()),
                    Some("default") => found.default = true,
                    Some("skip") => found.skip = true,
                    Some("flatten") => found.flatten = true,
                    _ => return Err(unknown(&meta.path, "", "rename, default, skip and flatten")),
                }
                Ok(())
            })?;
        }
        let is_named = field.ident.is_some();
        if !is_named && (found.rename.is_some() || found.default || found.flatten) {
            return Err(Error::new(place, "fields without names are read by position, or skipped"));
        }
        if found.skip && (found.rename.is_some() || found.default || found.flatten) {
            return Err(Error::new(
                place,
                "a field is either skipped or read: `skip` goes with no other attribute",
            ));
        }
        if found.flatten && (found.rename.is_some() || found.default) {
            return Err(Error::new(place, "`flatten` goes with no other attribute: it reads the whole row"));
        }
        Ok(found)
    }

    /// The name of the column of this field.
    pub(crate) fn column(&self, field: &Ident, form: Option<Form>) -> String {
        let own = field.unraw().to_string();
        match (&self.rename, form) {
            (Some(name), _) => name.clone(),
            (None, Some(form)) => form.of(&own),
            (None, None) => own,
        }
    }
}

fn unknown(path: &syn::Path, whose: &str, known: &str) -> Error {
    let name = path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>().join("::");
    Error::new_spanned(path, format!("there is no attribute `{name}`{whose}: there is {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_names() {
        let made = FORMS.map(|(_, form)| form.of("first_name_2"));
        let expected = [
            "firstname2",
            "FIRSTNAME2",
            "firstName2",
            "FirstName2",
            "first_name_2",
            "FIRST_NAME_2",
            "first-name-2",
        ];
        assert_eq!(made, expected);
    }
}
