//! Whatever the bytes are, the loader answers: no panic, no runaway, and a
//! refusal that names the file (PR-36).

use std::path::Path;

use orch_policy::layer::Source;
use orch_policy::load::{Context, load};

const SEED: &[u8] = include_bytes!("fixtures/seed-004.yaml");

fn feed(bytes: Vec<u8>) -> bool {
    let home = Path::new("/home/me");
    let loaded = Source::file("p.yaml", bytes).and_then(|s| load(s, &mut Context::new(home)));
    match loaded {
        Ok(_) => true,
        Err(error) => {
            assert!(error.message.starts_with("p.yaml"), "{error:?}");
            assert!(!error.remediation.is_empty(), "{error:?}");
            assert!(!error.message.contains('\u{1b}'), "{error:?}");
            false
        }
    }
}

#[test]
fn every_prefix_gets_an_answer() {
    assert!(feed(SEED.to_vec()));
    let good = (0..SEED.len())
        .filter(|n| feed(SEED[..*n].to_vec()))
        .count();
    assert!(good > 0 && good < SEED.len());
}

#[test]
fn damaged_files_get_an_answer() {
    // xorshift64: the same damage every time.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let words: [&[u8]; 16] = [
        b":", b"\n", b" ", b"\t", b"-", b"[", b"{", b"&a", b"*a", b"!t", b"0", b"~", b"'", b"\x1b",
        b"\xff", b"<<: ",
    ];
    let mut refused = 0;
    for _ in 0..4000 {
        let mut bytes = SEED.to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(3) {
                0 => {
                    bytes.remove(at);
                }
                1 => {
                    let word = words[next(words.len())];
                    bytes.splice(at..at, word.iter().copied());
                }
                _ => {
                    let end = (at + next(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        refused += usize::from(!feed(bytes));
    }
    assert!(refused > 1000, "{refused} of 4000");
}

#[test]
fn bombs_end() {
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    for i in 1..100 {
        bomb += &format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1);
    }
    assert!(!feed(bomb.into_bytes()));
    assert!(!feed("[".repeat(60_000).into_bytes()));
    assert!(!feed("{a: ".repeat(16_000).into_bytes()));
    assert!(!feed("- ".repeat(30_000).into_bytes()));
    assert!(!feed(vec![b'a'; 1 << 20]));
}

/// PR-36: also what the parser itself has no place for.
#[test]
fn every_refusal_has_a_line_and_a_column() {
    let mut bomb = String::from("a0: &a0 [x, x]\n");
    for i in 1..20 {
        bomb += &format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1);
    }
    for (text, place) in [
        (bomb.as_str(), "1:1: repetition limit"),
        ("tier: strict\n---\ntier: loose\n", "3:1: a second document"),
        ("---\n---\n", "3:1: a second document"),
        ("tier: strict\n--- [\n", ""),
        ("[", ""),
        ("a: [b", ""),
        ("\"", ""),
        ("*a", ""),
        ("%YAML 9", ""),
        ("- a\n", ""),
        ("7", ""),
        ("\u{7f}", ""),
    ] {
        let source = Source::file("p.yaml", text.into()).unwrap();
        let error = load(source, &mut Context::new(Path::new("/home/me"))).unwrap_err();
        let rest = error.message.strip_prefix("p.yaml:").unwrap();
        assert!(rest.starts_with(place), "{error:?}");
        let numbers: Vec<&str> = rest.splitn(3, ':').collect();
        let number = |text: &str| text.parse::<usize>().is_ok_and(|n| n > 0);
        assert!(number(numbers[0]) && number(numbers[1]), "{error:?}");
    }
}
