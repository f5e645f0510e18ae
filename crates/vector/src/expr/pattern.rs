//! `LIKE`: patterns compiled once, matched against many texts.
//!
//! `%` stands for any characters, `_` for one, the escape character makes the next one literal. Most patterns
//! have no `_` and become comparisons of bytes: equal, prefix, suffix, or pieces in order. The rest is
//! matched character by character with one backtrack point, the last `%`.
//!
//! `ILIKE` compares the lower-case forms of the characters.

use crate::statement::{Growth, Looks, STEP, check, pieces as pieces_of};
use crate::{Error, Result};
use memchr::memmem;

/// Bytes of a text that is made lower-case in place.
const SHORT: usize = 128;

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    form: Form,
    case_insensitive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// No wildcard.
    Exact(Vec<u8>),
    /// `prefix % piece % piece % suffix`: wildcards are only `%`, and there is at least one. Prefix and
    /// suffix may be empty; pieces are not.
    Pieces { prefix: Vec<u8>, pieces: Vec<Finder<'static>>, suffix: Vec<u8> },
    /// There is a `_`.
    General(Vec<Step>),
}

/// What the texts of a pattern consist of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternParts<'p> {
    /// Nothing but this text.
    Exact(&'p [u8]),
    /// `prefix % piece % piece % suffix`. Prefix and suffix may be empty; pieces are not.
    Pieces {
        /// They begin with it.
        prefix: &'p [u8],
        /// They have these behind the prefix, in order and apart.
        pieces: Vec<&'p [u8]>,
        /// They end with it, behind all pieces.
        suffix: &'p [u8],
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Literal(char),
    AnyOne,
    AnyMany,
}

impl Pattern {
    /// Compiles `pattern`. The escape character is `escape`, or backslash.
    ///
    /// # Errors
    /// Input, if the pattern ends with the escape character; interrupted, if it is long.
    pub fn new(pattern: &str, escape: Option<char>, case_insensitive: bool) -> Result<Pattern> {
        let escape = escape.unwrap_or('\\');
        let mut steps = Vec::new();
        let literal = |c: char, steps: &mut Vec<Step>| match case_insensitive {
            // After the escapes have been read: the escape character may be a letter.
            true => steps.extend(c.to_lowercase().map(Step::Literal)),
            false => steps.push(Step::Literal(c)),
        };
        let (mut chars, mut looks) = (pattern.chars(), Looks::default());
        while let Some(c) = chars.next() {
            looks.after(c.len_utf8())?;
            if c == escape {
                let missing = || Error::input("LIKE pattern must not end with the escape character");
                literal(chars.next().ok_or_else(missing)?, &mut steps);
            } else {
                match c {
                    '%' if steps.last() == Some(&Step::AnyMany) => {}
                    '%' => steps.push(Step::AnyMany),
                    '_' => steps.push(Step::AnyOne),
                    c => literal(c, &mut steps),
                }
            }
        }
        let form = if steps.contains(&Step::AnyOne) {
            Form::General(steps)
        } else if steps.contains(&Step::AnyMany) {
            pieces(&steps)
        } else {
            Form::Exact(literals(&steps))
        };
        Ok(Pattern { form, case_insensitive })
    }

    /// The only text that matches, if there is only one.
    pub fn exact(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Exact(text) if !self.case_insensitive => Some(text),
            _ => None,
        }
    }

    /// What matching texts consist of, if they are compared byte by byte: without `_`, and not `ILIKE`.
    pub fn parts(&self) -> Option<PatternParts<'_>> {
        match &self.form {
            _ if self.case_insensitive => None,
            Form::Exact(text) => Some(PatternParts::Exact(text)),
            Form::Pieces { prefix, pieces, suffix } => {
                let pieces = pieces.iter().map(Finder::needle).collect();
                Some(PatternParts::Pieces { prefix, pieces, suffix })
            }
            Form::General(_) => None,
        }
    }

    /// Bytes that every match starts with; may be empty.
    pub fn prefix(&self) -> &[u8] {
        match &self.form {
            Form::Exact(prefix) | Form::Pieces { prefix, .. } if !self.case_insensitive => prefix,
            _ => &[],
        }
    }

    /// What finds the only piece of `%piece%`, which is all that such a pattern asks for.
    pub(crate) fn contained(&self) -> Option<&Finder<'static>> {
        match &self.form {
            Form::Pieces { prefix, pieces, suffix } if !self.case_insensitive => match pieces.as_slice() {
                [piece] if prefix.is_empty() && suffix.is_empty() => Some(piece),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if `text`, which is UTF-8, matches.
    ///
    /// # Errors
    /// Interrupted, or resource, over long texts ([`crate::statement`]).
    #[inline]
    pub fn matches(&self, text: &[u8]) -> Result<bool> {
        if self.case_insensitive { self.matches_lowered(text) } else { self.matches_as_is(text) }
    }

    fn matches_lowered(&self, text: &[u8]) -> Result<bool> {
        // PERF: nearly all texts; a tenth of the time of going through the characters.
        if text.len() <= SHORT && text.is_ascii() {
            let mut lowered = [0; SHORT];
            let lowered = &mut lowered[..text.len()];
            lowered.copy_from_slice(text);
            lowered.make_ascii_lowercase();
            return self.matches_as_is(lowered);
        }
        // Character by character, as in the pattern: a whole text would have the Σ at its end as ς.
        let (mut lowered, mut growth) = (String::with_capacity(text.len().min(STEP)), Growth::default());
        for piece in pieces_of(&String::from_utf8_lossy(text)) {
            lowered.extend(piece?.chars().flat_map(char::to_lowercase));
            growth.reach(lowered.len())?;
        }
        self.matches_as_is(lowered.as_bytes())
    }

    #[inline]
    fn matches_as_is(&self, text: &[u8]) -> Result<bool> {
        Ok(match &self.form {
            Form::Exact(wanted) => text == wanted,
            Form::Pieces { prefix, pieces, suffix } => {
                // PERF: an empty affix is not compared. An empty Vec has no memory behind it, and comparing
                // zero bytes there makes the masked loads of the C library's memcmp suppress a fault, at 200
                // ns a call.
                let starts = || prefix.is_empty() || text.starts_with(prefix);
                let ends = || suffix.is_empty() || text.ends_with(suffix);
                if text.len() < prefix.len() + suffix.len() || !starts() || !ends() {
                    return Ok(false);
                }
                let mut rest = &text[prefix.len()..text.len() - suffix.len()];
                for piece in pieces {
                    match piece.find(rest)? {
                        Some(at) => rest = &rest[at + piece.needle().len()..],
                        None => return Ok(false),
                    }
                }
                true
            }
            // PERF: a byte is a character here.
            Form::General(steps) if text.is_ascii() => {
                return matches_general(steps, text.iter().map(|&byte| char::from(byte)), text.len());
            }
            Form::General(steps) => {
                return matches_general(steps, String::from_utf8_lossy(text).chars(), text.len());
            }
        })
    }
}

fn literals(steps: &[Step]) -> Vec<u8> {
    let chars = steps.iter().filter_map(|step| if let Step::Literal(c) = step { Some(*c) } else { None });
    chars.collect::<String>().into_bytes()
}

fn pieces(steps: &[Step]) -> Form {
    let parts: Vec<Vec<u8>> = steps.split(|step| *step == Step::AnyMany).map(literals).collect();
    let (prefix, rest) = parts.split_first().expect("a split has a part");
    let (suffix, middle) = rest.split_last().expect("there is a %");
    let pieces = middle.iter().filter(|piece| !piece.is_empty());
    let pieces = pieces.map(|piece| Finder::new(piece).into_owned()).collect();
    Form::Pieces { prefix: prefix.clone(), pieces, suffix: suffix.clone() }
}

/// Greedy matching with one backtrack point: after the last `%`, one character further each time.
fn matches_general<T>(steps: &[Step], text: T, length: usize) -> Result<bool>
where
    T: Iterator<Item = char> + Clone,
{
    let (mut step, mut rest) = (0, text);
    let mut backtrack: Option<(usize, T)> = None;
    let mut looks = Looks::default();
    // At each character the pattern may be tried anew.
    let is_long = length.saturating_mul(steps.len()) >= STEP;
    loop {
        if is_long {
            looks.after(1)?;
        }
        let mut ahead = rest.clone();
        let fits = match steps.get(step) {
            Some(Step::AnyMany) => {
                step += 1;
                backtrack = Some((step, rest.clone()));
                continue;
            }
            Some(Step::AnyOne) => ahead.next().is_some(),
            Some(Step::Literal(c)) => ahead.next() == Some(*c),
            None if ahead.next().is_none() => return Ok(true),
            None => false,
        };
        if fits {
            (step, rest) = (step + 1, ahead);
            continue;
        }
        let Some((after, from)) = &mut backtrack else { return Ok(false) };
        if from.next().is_none() {
            return Ok(false);
        }
        (step, rest) = (*after, from.clone());
    }
}

/// Finds a needle of at least one byte. It is made once for many texts, as it determines the rare bytes of
/// the needle.
#[derive(Debug, Clone)]
pub struct Finder<'n>(memmem::Finder<'n>);

impl PartialEq for Finder<'_> {
    fn eq(&self, other: &Finder<'_>) -> bool {
        self.needle() == other.needle()
    }
}

impl Eq for Finder<'_> {}

impl<'n> Finder<'n> {
    /// A finder of `needle`.
    ///
    /// # Panics
    /// If it is empty.
    pub fn new(needle: &'n [u8]) -> Finder<'n> {
        assert!(!needle.is_empty());
        Finder(memmem::Finder::new(needle))
    }

    /// One that has the needle itself.
    pub fn into_owned(self) -> Finder<'static> {
        Finder(self.0.into_owned())
    }

    fn needle(&self) -> &[u8] {
        self.0.needle()
    }

    /// Where the needle first occurs in `text`.
    ///
    /// # Errors
    /// Interrupted, over long texts.
    #[inline]
    pub fn find(&self, text: &[u8]) -> Result<Option<usize>> {
        if text.len() <= STEP { Ok(self.0.find(text)) } else { self.find_in_steps(text) }
    }

    #[cold]
    fn find_in_steps(&self, text: &[u8]) -> Result<Option<usize>> {
        let length = self.needle().len();
        for start in (0..text.len()).step_by(STEP.max(length)) {
            // With what a needle that begins in this step has in the next.
            let end = text.len().min(start + STEP.max(length) + length - 1);
            if let Some(at) = self.0.find(&text[start..end]) {
                return Ok(Some(start + at));
            }
            check()?;
        }
        Ok(None)
    }
}

/// True if a needle, which may be empty, occurs in `text`. For needles that are used once.
///
/// # Errors
/// Interrupted, over long texts.
pub fn finds(needle: &[u8], text: &[u8]) -> Result<bool> {
    match text.len() <= STEP || needle.is_empty() {
        true => Ok(memmem::find(text, needle).is_some()),
        false => Ok(Finder::new(needle).find(text)?.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of LIKE, by recursion.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skip| slow(rest, &text[skip..])),
            Some(('_', rest)) => !text.is_empty() && slow(rest, &text[1..]),
            Some((c, rest)) => text.first() == Some(c) && slow(rest, &text[1..]),
        }
    }

    #[test]
    fn patterns_agree_with_the_definition() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % n
        };
        for _ in 0..20_000 {
            let pattern: String =
                (0..random(7)).map(|_| ['a', 'b', 'ä', '%', '%', '_'][random(6) as usize]).collect();
            let text: String = (0..random(25)).map(|_| ['a', 'b', 'ä'][random(3) as usize]).collect();
            let compiled = Pattern::new(&pattern, None, false).unwrap();
            let expected = slow(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());
            assert_eq!(compiled.matches(text.as_bytes()).unwrap(), expected, "{text:?} LIKE {pattern:?}");
        }
    }

    #[test]
    fn escapes_and_case() {
        let like = |text: &str, pattern: &str| {
            Pattern::new(pattern, None, false).unwrap().matches(text.as_bytes()).unwrap()
        };
        assert!(like("50%", "50\\%") && !like("500", "50\\%"));
        let custom = Pattern::new("a#_b", Some('#'), false).unwrap();
        assert!(custom.matches(b"a_b").unwrap() && !custom.matches(b"axb").unwrap());
        assert!(Pattern::new("ab\\", None, false).is_err());
        assert!(Pattern::new("STRA%", None, true).unwrap().matches("straße".as_bytes()).unwrap());
        assert_eq!(Pattern::new("abc%", None, false).unwrap().prefix(), b"abc");
        // Lower-case at once, and character by character: longer texts, and those that are not ASCII.
        for length in [0, 1, SHORT - 1, SHORT, SHORT + 1] {
            for (end, found) in [("NoRTh", true), ("north", true), ("NoR Th", false), ("ÄNoRTh", true)] {
                let text = "X".repeat(length) + end;
                for pattern in ["%NOrtH", "%north", "%Nor%h%", "%n_r_h%"] {
                    let pattern_found = found || (pattern == "%Nor%h%");
                    let compiled = Pattern::new(pattern, None, true).unwrap();
                    assert_eq!(compiled.matches(text.as_bytes()).unwrap(), pattern_found, "{text} {pattern}");
                }
            }
        }
        assert_eq!(Pattern::new("abc", None, false).unwrap().exact(), Some(&b"abc"[..]));
    }

    #[test]
    fn parts_are_those_of_the_pattern() {
        let compiled = |text, case| Pattern::new(text, None, case).unwrap();
        assert_eq!(compiled("a\\%b", false).parts(), Some(PatternParts::Exact(b"a%b")));
        let (plain, pieces) = (compiled("a%%bc%d%e", false), vec![&b"bc"[..], b"d"]);
        assert_eq!(plain.parts(), Some(PatternParts::Pieces { prefix: b"a", pieces, suffix: b"e" }));
        let all = compiled("%", false);
        assert_eq!(all.parts(), Some(PatternParts::Pieces { prefix: b"", pieces: vec![], suffix: b"" }));
        assert_eq!(compiled("a_b%", false).parts(), None);
        assert_eq!(compiled("a%", true).parts(), None);
    }

    #[test]
    fn a_finder_finds_the_first_place() {
        let text = b"the quick brown fox jumps over the lazy dog, then rests";
        for start in 0..text.len() {
            for end in start + 1..=text.len() {
                let needle = &text[start..end];
                let expected = text.windows(needle.len()).position(|window| window == needle);
                assert_eq!(Finder::new(needle).find(text).unwrap(), expected);
                let found = Finder::new(needle).find(&text[1..]).unwrap().is_some();
                assert_eq!(found, finds(needle, &text[1..]).unwrap());
            }
        }
        assert_eq!(Finder::new(b"cat").find(text).unwrap(), None);
        for (needle, text, expected) in
            [("", "", true), ("", "text", true), ("cat", "text", false), ("c", "", false)]
        {
            assert_eq!(finds(needle.as_bytes(), text.as_bytes()).unwrap(), expected);
        }
        assert_eq!(Finder::new(b"longer than the text").find(b"short").unwrap(), None);
    }

    /// A needle lies within a step, over the end of one, and is longer than one.
    #[test]
    fn long_texts_are_searched_in_steps() {
        let mut text = vec![b'a'; 3 * STEP];
        for at in [0, 7, STEP - 1, STEP, 2 * STEP - 1, 2 * STEP, 3 * STEP - 2] {
            (text[at], text[at + 1]) = (b'b', b'c');
            assert_eq!(Finder::new(b"bc").find(&text).unwrap(), Some(at));
            assert_eq!(Finder::new(&text[at..]).find(&text).unwrap(), Some(at));
            assert!(finds(b"bc", &text).unwrap() && !finds(b"cb", &text).unwrap());
            (text[at], text[at + 1]) = (b'a', b'a');
        }
    }
}
