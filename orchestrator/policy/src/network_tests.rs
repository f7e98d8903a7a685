use super::*;

fn rule(text: &str) -> Rule {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn canonical_forms() {
    for (text, canonical) in [
        ("Internal-PyPI.Local", "internal-pypi.local"),
        ("api.internal.svc.", "api.internal.svc"),
        ("*.Example.COM", "*.example.com"),
        ("example.com:443", "example.com:443"),
        ("example.com:8000-8010", "example.com:8000-8010"),
        ("example.com:1-65535", "example.com"),
        ("10.0.0.5", "10.0.0.5"),
        ("10.0.0.5/32", "10.0.0.5"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("_ldap._tcp.corp.lan:389", "_ldap._tcp.corp.lan:389"),
        ("localhost", "localhost"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ] {
        let parsed = rule(text);
        assert_eq!(parsed.to_string(), canonical, "{text}");
        assert_eq!(rule(canonical), parsed, "{canonical} reads back");
    }
}

#[test]
fn what_cannot_be_enforced_is_refused() {
    for text in [
        "",
        "*",
        "*.",
        "*.com",
        "a.*.com",
        "foo*.com",
        "**.example.com",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:http",
        "example.com:+80",
        "example.com:90-80",
        "example.com:80,443",
        "a b",
        "a\nb",
        "-a.com",
        "a-.com",
        "a..com",
        ".com",
        ".",
        "münchen.de",
        "127.1",
        "0x7f000001",
        "2130706433",
        "1.2.3.4.5",
        "256.0.0.1",
        "010.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/+8",
        "0.0.0.0/0",
        "::/0",
        "::ffff:10.0.0.1",
        "2001:db8::1:zz",
        "[2001:db8::1",
        "[2001:db8::1]443",
        "[10.0.0.1]:80",
        "[example.com]:80",
        "fe80::1%eth0",
    ] {
        let error = text.parse::<Rule>().unwrap_err();
        assert_eq!(error.code, Code::ProfileInvalid, "{text}");
        assert!(error.cause.is_some() && !error.remediation.is_empty());
    }
    let label = "a".repeat(64);
    assert!(format!("{label}.com").parse::<Rule>().is_err());
    let long = vec!["abcdefg"; 33].join(".");
    assert!(long.parse::<Rule>().is_err());
}

#[test]
fn star_is_not_the_apex() {
    let star = rule("*.example.com");
    assert!(star.covers(&rule("a.example.com")));
    assert!(star.covers(&rule("a.b.example.com:443")));
    assert!(star.covers(&rule("*.b.example.com")));
    assert!(!star.covers(&rule("example.com")));
    assert!(!star.covers(&rule("badexample.com")));
    assert!(!rule("a.example.com").covers(&star));
}

#[test]
fn ranges_cover_ranges() {
    assert!(rule("10.0.0.0/8").covers(&rule("10.1.0.0/16")));
    assert!(rule("10.0.0.0/8").covers(&rule("10.255.255.255:80")));
    assert!(!rule("10.0.0.0/8").covers(&rule("11.0.0.1")));
    assert!(!rule("10.1.0.0/16").covers(&rule("10.0.0.0/8")));
    assert!(!rule("10.0.0.0/8").covers(&rule("a00::1")));
    assert!(rule("2001:db8::/32").covers(&rule("2001:db8:1::/48")));
    assert!(rule("a.com:80-90").covers(&rule("a.com:85")));
    assert!(!rule("a.com:80").covers(&rule("a.com")));
    assert!(!rule("10.0.0.1").covers(&rule("a.com")));
}
