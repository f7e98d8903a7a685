//! Subordinate ids (subuid(5), subgid(5)): what a user who is not root may map.

use std::fmt::Write as _;

/// First id on the host, and how many.
pub type Granted = Vec<(u32, u32)>;

/// Ids of a user namespace: first inside, first outside, how many.
pub type Line = (u32, u32, u32);

/// What the file grants to a user, by name or by number, in its order.
#[must_use]
pub fn granted(text: &str, name: Option<&str>, id: u32) -> Granted {
    let number = id.to_string();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.trim().split(':');
            let (who, first, count) = (fields.next()?, fields.next()?, fields.next()?);
            let own = who == number || Some(who) == name;
            let grant = (first.parse().ok()?, count.parse().ok()?);
            (own && fields.next().is_none() && grant.1 > 0).then_some(grant)
        })
        .collect()
}

/// A map of `count` ids in which `own` (0 to `count` − 1) is the caller and every
/// other one is a subordinate id; nothing where those are too few.
#[must_use]
pub fn map(own: u32, caller: u32, granted: &[(u32, u32)], count: u32) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    let mut grants = granted.iter().copied();
    let mut rest = grants.next()?;
    for (start, end) in [(0, own), (own + 1, count)] {
        if start > 0 || own == 0 {
            lines.push((own, caller, 1));
        }
        let mut inside = if own == 0 && start == 0 { end } else { start };
        while inside < end {
            if rest.1 == 0 {
                rest = grants.next()?;
            }
            let taken = rest.1.min(end - inside);
            lines.push((inside, rest.0, taken));
            rest = (rest.0 + taken, rest.1 - taken);
            inside += taken;
        }
    }
    lines.dedup();
    Some(lines)
}

/// The arguments of newuidmap(1) behind the process id.
#[must_use]
pub fn arguments(lines: &[Line]) -> Vec<String> {
    let mut text = String::new();
    for (inside, outside, count) in lines {
        // Writing to a string cannot fail.
        let _ = write!(text, "{inside} {outside} {count} ");
    }
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_name_and_number() {
        let text = "root:1:2\nme:100000:65536\n1000:300000:10\nyou:7:7\nme:x:1\nme:5:0\n# me:1:1\n";
        assert_eq!(
            granted(text, Some("me"), 1000),
            [(100_000, 65_536), (300_000, 10)]
        );
        assert_eq!(granted(text, None, 1000), [(300_000, 10)]);
        assert_eq!(granted(text, Some("nobody"), 65_534), []);
    }

    /// Every id inside is mapped once, to the caller or to a granted id, no id
    /// outside twice.
    #[test]
    fn maps_are_whole_and_never_give_an_id_twice() {
        for granted in [
            vec![(100_000, 65_536)],
            vec![(100, 10), (1_000, 20), (100_000, 65_536)],
            vec![(100_000, 40_000), (200_000, 25_535)],
        ] {
            for own in [0, 1, 9, 10, 11, 1_000, 39_999, 40_000, 65_534] {
                let lines = map(own, 1_234, &granted, 65_536).unwrap();
                let mut next = 0;
                let mut outside = Vec::new();
                for (inside, host, count) in lines {
                    assert_eq!(inside, next, "own {own} {granted:?}");
                    next += count;
                    outside.extend((host..host + count).map(|id| (id, inside + id - host)));
                }
                assert_eq!(next, 65_536);
                let caller: Vec<_> = outside.iter().filter(|(id, _)| *id == 1_234).collect();
                assert_eq!(caller, [&(1_234, own)]);
                outside.sort_unstable();
                assert!(outside.windows(2).all(|pair| pair[0].0 < pair[1].0));
                for (id, _) in outside.iter().filter(|(id, _)| *id != 1_234) {
                    assert!(granted.iter().any(|(f, n)| (*f..f + n).contains(id)));
                }
            }
        }
    }

    #[test]
    fn too_few_ids_give_no_map() {
        assert_eq!(map(1_000, 1, &[], 65_536), None);
        assert_eq!(map(1_000, 1, &[(100_000, 65_534)], 65_536), None);
        assert!(map(1_000, 1, &[(100_000, 65_535)], 65_536).is_some());
    }

    #[test]
    fn arguments_are_words() {
        assert_eq!(
            arguments(&[(0, 100, 5), (5, 7, 1)]),
            ["0", "100", "5", "5", "7", "1"]
        );
    }
}
