//! Whether a text is JSON: one value as RFC 8259 defines it, with white space around it.
//!
//! One pass over the bytes, without recursion: a stack says which objects and lists are open. Nothing is
//! built; a JSON value is its text.

use crate::{Error, Result};

/// How deep objects and lists may be nested.
pub const DEEPEST: usize = 1000;

/// What encloses a value.
#[derive(Clone, Copy)]
enum Open {
    Object,
    List,
}

/// Checks that a text is JSON.
///
/// # Errors
/// Input, with what was expected and the character, from 1, at which it is missing.
pub fn check_json(text: &str) -> Result<()> {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    reader.document().map_err(|expected| {
        let before = &text.as_bytes()[..reader.at.min(text.len())];
        let character = String::from_utf8_lossy(before).chars().count() + 1;
        Error::input(format!("not JSON: {expected} is expected at character {character}"))
    })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What is expected where a text is no JSON.
type Expected = &'static str;

fn push(open: &mut Vec<Open>, what: Open) -> Result<(), Expected> {
    open.push(what);
    if open.len() > DEEPEST { Err("nesting of at most 1000 levels") } else { Ok(()) }
}

impl Reader<'_> {
    fn document(&mut self) -> Result<(), Expected> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.white_space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.white_space();
                    push(&mut open, Open::Object)?;
                    if self.peek() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                    self.at += 1;
                    open.pop();
                }
                Some(b'[') => {
                    self.at += 1;
                    self.white_space();
                    push(&mut open, Open::List)?;
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.at += 1;
                    open.pop();
                }
                _ => self.scalar()?,
            }
            // Behind a value: the ends of what it is the last of, then the next one.
            loop {
                self.white_space();
                match (open.last(), self.peek()) {
                    (None, None) => return Ok(()),
                    (None, Some(_)) => return Err("the end"),
                    (Some(Open::Object), Some(b'}')) | (Some(Open::List), Some(b']')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Some(Open::Object), Some(b',')) => {
                        self.at += 1;
                        self.white_space();
                        self.key()?;
                        break;
                    }
                    (Some(Open::List), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(Open::Object), _) => return Err("',' or '}'"),
                    (Some(Open::List), _) => return Err("',' or ']'"),
                }
            }
        }
    }

    /// `"name":`
    fn key(&mut self) -> Result<(), Expected> {
        if self.peek() != Some(b'"') {
            return Err("a name in double quotes");
        }
        self.string()?;
        self.white_space();
        self.take(b':').then_some(()).ok_or("':'")
    }

    /// A string, a number, `true`, `false` or `null`.
    fn scalar(&mut self) -> Result<(), Expected> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let rest = &self.bytes[self.at..];
                let word = [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
                self.at += word.ok_or("a value")?.len();
                Ok(())
            }
        }
    }

    fn string(&mut self) -> Result<(), Expected> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err("'\"'"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(0..0x20) => return Err("an escape in place of a control character"),
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            let digits = self.bytes[self.at..].iter().take(4);
                            if digits.filter(|byte| byte.is_ascii_hexdigit()).count() < 4 {
                                return Err("a code of four hexadecimal digits");
                            }
                            self.at += 4;
                        }
                        _ => return Err("one of \" \\ / b f n r t u"),
                    }
                }
                Some(_) => self.at += 1,
            }
        }
    }

    /// `-12.5e+3`, without a zero before other digits.
    fn number(&mut self) -> Result<(), Expected> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Expected> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err("a digit") } else { Ok(()) }
    }

    fn white_space(&mut self) {
        let is_white = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.bytes[self.at..].iter().take_while(is_white).count();
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// True if the next byte is `byte`, which is passed then.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json() {
        for text in [
            "{}",
            " [ ] ",
            "null",
            "-0",
            "0.5e-3",
            "12E+1",
            "\"\"",
            "\"ä\\u00e4\\n\\\"\"",
            "{\"a\": [1, {\"b\": null}, []], \"\": {}}",
            "[[], [true, false]]\n",
        ] {
            check_json(text).unwrap_or_else(|error| panic!("{text}: {}", error.message()));
        }
    }

    #[test]
    fn what_is_not_json() {
        for (text, expected) in [
            ("", "a value is expected at character 1"),
            ("ä", "a value is expected at character 1"),
            ("{\"a\":1", "',' or '}' is expected at character 7"),
            ("[1,]", "a value is expected at character 4"),
            ("{a: 1}", "a name in double quotes is expected at character 2"),
            ("{\"a\" 1}", "':' is expected at character 6"),
            ("{\"a\":1,}", "a name in double quotes is expected at character 8"),
            ("[1 2]", "',' or ']' is expected at character 4"),
            ("01", "the end is expected at character 2"),
            ("1.", "a digit is expected at character 3"),
            ("nul", "a value is expected at character 1"),
            ("nan", "a value is expected at character 1"),
            ("\"ä", "'\"' is expected at character 3"),
            ("\"\\x\"", "one of \" \\ / b f n r t u is expected at character 3"),
            ("\"\\u12G4\"", "a code of four hexadecimal digits is expected at character 4"),
            ("\"\n\"", "an escape in place of a control character is expected at character 2"),
            ("{} {}", "the end is expected at character 4"),
        ] {
            assert_eq!(check_json(text).unwrap_err().message(), format!("not JSON: {expected}"), "{text}");
        }
    }

    #[test]
    fn depth() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_json(&nested(DEEPEST)).is_ok());
        assert!(check_json(&nested(DEEPEST + 1)).is_err());
        assert!(check_json(&"[".repeat(1_000_000)).is_err());
        assert!(check_json(&"{\"a\":".repeat(1_000_000)).is_err());
    }
}
