//! What somebody may have meant: the nearest known word.

/// The candidate nearest to `word`, if it is near enough to be worth saying.
///
/// "Near enough" is a third of the longer word, so that `memry_mb` finds
/// `memory_mb` and `foo` finds nothing.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    candidates
        .into_iter()
        .map(|candidate| (distance(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| {
            distance * 3 <= word.chars().count().max(candidate.chars().count())
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `MemoryMB`, `memory-mb` and `memory_mb` are the same word to a person.
fn fold(word: &str) -> Vec<char> {
    word.chars()
        .filter(|c| *c != '_' && *c != '-')
        .flat_map(char::to_lowercase)
        .collect()
}

/// Edits (insert, delete, replace, swap of neighbours) from one to the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut best = (above[j] + usize::from(x != y))
                .min(above[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["memory_mb", "open_files", "cpu_seconds", "processes"];

    #[test]
    fn finds_slips() {
        for (slip, meant) in [
            ("memry_mb", "memory_mb"),
            ("memory-mb", "memory_mb"),
            ("memoryMb", "memory_mb"),
            ("openfiles", "open_files"),
            ("cpu_secodns", "cpu_seconds"),
            ("process", "processes"),
        ] {
            assert_eq!(nearest(slip, KEYS), Some(meant), "{slip}");
        }
    }

    #[test]
    fn says_nothing_where_nothing_is_near() {
        for word in ["", "x", "disk", "kubernetes"] {
            assert_eq!(nearest(word, KEYS), None, "{word}");
        }
    }

    #[test]
    fn a_swap_is_one_edit() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("cpu"), &chars("cup")), 1);
        assert_eq!(distance(&chars("abc"), &chars("")), 3);
        assert_eq!(distance(&chars("same"), &chars("same")), 0);
    }
}
