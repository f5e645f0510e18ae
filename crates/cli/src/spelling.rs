//! What a mistyped word is probably meant to be.

/// The one of `words` that `typed` is probably meant to be: the only one that begins with it, or one that is
/// a few letters away.
pub fn meant<'a>(typed: &str, words: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let mut begun = words.clone().filter(|word| !typed.is_empty() && word.starts_with(typed));
    if let (Some(word), None) = (begun.next(), begun.next()) {
        return Some(word);
    }
    let near = words.map(|word| (distance(typed, word), word)).min()?;
    (near.0 <= 1 + near.1.len() / 5 && near.0 < typed.len()).then_some(near.1)
}

/// How many letters have to be added, removed, replaced or swapped with their neighbours to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, _) | (_, 0) => i + j,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let swapped = match i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        true => table[i - 2][j - 2] + 1,
                        false => usize::MAX,
                    };
                    replaced.min(swapped).min(table[i - 1][j] + 1).min(table[i][j - 1] + 1)
                }
            };
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_a_few_letters_away_is_meant() {
        assert_eq!(meant("dmeo", ["demo", "layout"].into_iter()), Some("demo"));
        assert_eq!(meant("lay", ["demo", "layout"].into_iter()), Some("layout"));
        assert_eq!(meant("sales", ["demo", "layout"].into_iter()), None);
        assert_eq!((distance("abc", "acb"), distance("", "ab"), distance("kitten", "sitting")), (1, 2, 3));
    }
}
