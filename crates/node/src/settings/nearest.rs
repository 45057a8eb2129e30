//! The name somebody probably meant. Input: what was written and the names there are. Output: a name, if one is near. Cost: the product of
//! lengths for each name.

/// The name with the fewest edits, if they are at most a third of what was written (but two are always allowed).
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let edits_max = (written.chars().count() / 3).max(2);
    names
        .map(|name| (edits(&written, &name.to_ascii_lowercase()), name))
        .filter(|(count, name)| *count <= edits_max && *count < name.len())
        .min_by_key(|(count, _)| *count)
        .map(|(_, name)| name)
}

/// Letters to insert, delete or replace to make one text the other.
pub(crate) fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let names = ["dbcache", "datadir", "par", "prune", "reindex", "h"];
        let found = |written| nearest(written, names.into_iter());
        assert_eq!(found("dbcahce"), Some("dbcache"));
        assert_eq!(found("DataDir"), Some("datadir"));
        assert_eq!(found("pra"), Some("par"));
        assert_eq!(found("re-index"), Some("reindex"));
        assert_eq!(found("zmqpubsomething"), None);
        assert_eq!(found("x"), None, "one letter is nobody's slip");
        assert_eq!((edits("", "abc"), edits("abc", "abc"), edits("kitten", "sitting")), (3, 0, 3));
    }
}
