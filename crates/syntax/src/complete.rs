//! Whether a text ends with a complete statement, as a line editor checks at every Enter.

/// True if the last character of `sql` outside white space and comments is a semicolon, and no quote or
/// comment is open.
pub fn is_complete(sql: &str) -> bool {
    let bytes = sql.as_bytes();
    let mut last = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let skip = match rest {
            [b'\'', ..] => quoted(rest, b'\''),
            [b'"', ..] => quoted(rest, b'"'),
            [b'-', b'-', ..] => Some(rest.iter().position(|b| *b == b'\n').map_or(rest.len(), |end| end + 1)),
            [b'/', b'*', ..] => rest.windows(2).skip(2).position(|pair| pair == b"*/").map(|end| end + 4),
            _ => Some(1),
        };
        let Some(skip) = skip else { return false };
        let comment = matches!(rest, [b'-', b'-', ..] | [b'/', b'*', ..]);
        if !comment && !rest[0].is_ascii_whitespace() {
            last = Some(rest[0]);
        }
        at += skip;
    }
    last == Some(b';')
}

/// Length of the quoted text at the start of `bytes`, in which a doubled quote stands for a single one;
/// `None` if it is not closed.
fn quoted(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 1;
    loop {
        let end = at + bytes.get(at..)?.iter().position(|b| *b == quote)?;
        if bytes.get(end + 1) != Some(&quote) {
            return Some(end + 1);
        }
        at = end + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::is_complete;

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_count() {
        for text in [
            "SELECT 1;",
            "SELECT ';';\n",
            "SELECT 1; -- done",
            "SELECT \"a;\";",
            "/* ; */ SELECT 1;",
            "SELECT 'it''s';",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in
            ["", "SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT /* ;", "SELECT 'it'';", "SELECT 1; SELECT"]
        {
            assert!(!is_complete(text), "{text}");
        }
    }
}
