//! The dialect: the parser's DuckDB dialect, with additions that PostgreSQL has and users expect.

use entasis_vector::statement;
use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, DuckDbDialect, Precedence};
use sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use std::any::TypeId;

/// See the module.
#[derive(Debug)]
pub struct EntasisDialect;

impl Dialect for EntasisDialect {
    /// The parser tests the dialect's type in a few places, where this one must pass for DuckDB's.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DuckDbDialect>()
    }
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"'
    }
    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }
    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '$' || ch == '_'
    }
    fn identifier_quote_style(&self, _: &str) -> Option<char> {
        Some('"')
    }
    /// A column may be named without `AS`, but not by what may follow: `SELECT 1 ON CONFLICT …`.
    fn is_column_alias(&self, word: &Keyword, _: &mut Parser) -> bool {
        !RESERVED_FOR_COLUMN_ALIAS.contains(word) && !matches!(word, Keyword::ON | Keyword::RETURNING)
    }
    fn supports_nested_comments(&self) -> bool {
        true
    }
    fn supports_string_escape_constant(&self) -> bool {
        true
    }
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }
    fn supports_projection_trailing_commas(&self) -> bool {
        true
    }
    fn supports_column_definition_trailing_commas(&self) -> bool {
        true
    }
    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }
    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }
    fn supports_group_by_expr(&self) -> bool {
        true
    }
    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_eq_operator(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }
    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        true
    }
    fn allow_extract_custom(&self) -> bool {
        true
    }
    fn allow_extract_single_quotes(&self) -> bool {
        true
    }
    fn supports_dictionary_syntax(&self) -> bool {
        true
    }
    fn support_map_literal_syntax(&self) -> bool {
        true
    }
    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }
    fn supports_from_first_select(&self) -> bool {
        true
    }
    fn supports_order_by_all(&self) -> bool {
        true
    }
    fn supports_limit_comma(&self) -> bool {
        true
    }
    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }
    fn supports_select_wildcard_except(&self) -> bool {
        false
    }
    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }
    fn supports_notnull_operator(&self) -> bool {
        true
    }
    fn supports_comma_separated_trim(&self) -> bool {
        true
    }
    fn supports_insert_table_alias(&self) -> bool {
        true
    }
    fn supports_alter_column_type_using(&self) -> bool {
        true
    }
    /// `^` is a power and binds more tightly than `*`; a sign before it binds more tightly still.
    /// `||` binds less tightly than arithmetic, as in PostgreSQL.
    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::Caret => Some(Ok(self.prec_value(Precedence::AtTz) + 1)),
            Token::StringConcat => Some(Ok(self.prec_value(Precedence::Pipe))),
            _ => None,
        }
    }
    fn supports_in_empty_list(&self) -> bool {
        true
    }
    /// Ends the parsing of a statement that has been cancelled, before its next value; whoever called the
    /// parser looks again, and says so. Values that are a single token are taken here ([`single_token`]).
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match statement::check() {
            Ok(()) => single_token(parser),
            Err(error) => Some(Err(ParserError::ParserError(error.message().to_owned()))),
        }
    }
}

/// A literal or the first name of a column, if the next token cannot be more. The parser would find the same,
/// but only after it has tried to read a type (`DATE '…'`), and has written an error about it into a text
/// that nobody reads.
fn single_token(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    #[cfg(test)]
    if tests::IS_LEFT_TO_THE_PARSER.get() {
        return None;
    }
    match &parser.peek_token_ref().token {
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {
            Some(parser.parse_value().map(Expr::Value))
        }
        Token::Word(word) if word.keyword == Keyword::NoKeyword && !begins_more(parser) => {
            let next = parser.next_token();
            let Token::Word(word) = next.token else { return None };
            Some(Ok(Expr::Identifier(word.into_ident(next.span))))
        }
        _ => None,
    }
}

/// True if the next word may be the name of a function or a type, by what follows it.
fn begins_more(parser: &Parser) -> bool {
    let is_bracket = |token: &Token| {
        matches!(
            token,
            Token::LParen
                | Token::LBracket
                | Token::SingleQuotedString(_)
                | Token::DoubleQuotedString(_)
                | Token::HexStringLiteral(_)
        )
    };
    match &parser.peek_nth_token_ref(1).token {
        // `schema.type[] '…'` is a type; what follows any other name of several words says so, too.
        Token::Period => {
            let after = &parser.peek_nth_token_ref(3).token;
            is_bracket(after) || *after == Token::Period
        }
        token => is_bracket(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// True while values of a single token are parsed by the parser.
        pub(super) static IS_LEFT_TO_THE_PARSER: Cell<bool> = const { Cell::new(false) };
    }

    /// Any sequence of tokens is the same expression, with the same places, or none, whether the values in it
    /// are taken here or by the parser.
    #[test]
    fn single_tokens_are_what_the_parser_makes_of_them() {
        let parts: Vec<&str> =
            r#"a b _utf8 "A" "date" 1 1.5e3 'x' 'y' X'00' ? $1 NULL TRUE date interval time
            DOUBLE PRECISION json hugeint xml cast case when then end not in between and or is like collate at
            zone as int a[] s.a[] r.s.a[] f( . . * ( ( ) ) [ ] { } : :: , + - = < -> ->> := => || ^"#
                .split_whitespace()
                .collect();
        let mut state = 11u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let parsed = |sql: &str, is_left: bool| {
            IS_LEFT_TO_THE_PARSER.set(is_left);
            let parser = Parser::new(&EntasisDialect).with_recursion_limit(50).try_with_sql(sql);
            parser.and_then(|mut parser| Ok((parser.parse_expr()?, parser.peek_token()))).ok()
        };
        let mut expressions = 0;
        for _ in 0..200_000 {
            let length = 1 + random(9);
            let text = (0..length).map(|_| parts[random(parts.len())]).collect::<Vec<_>>().join(" ");
            let (ours, theirs) = (parsed(&text, false), parsed(&text, true));
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{text}");
            expressions += usize::from(ours.is_some_and(|(_, next)| next.token == Token::EOF && length > 2));
        }
        IS_LEFT_TO_THE_PARSER.set(false);
        assert!(expressions > 1_000, "{expressions}");
    }
}
