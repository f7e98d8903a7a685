//! `extends`.

use super::*;

fn family(files: &[(&str, &str)]) -> Result<Profile, Error> {
    let open = |reference: &str, _: &str| {
        let (name, text) = files
            .iter()
            .find(|(name, _)| *name == reference)
            .ok_or_else(|| Error::new(Code::ProfileUnknown, "not there", "make it"))?;
        Source::file(*name, text.as_bytes().to_vec())
    };
    let mut cx = Context::new(Path::new("/home/me")).with_open(open);
    let (name, text) = files[0];
    Ok(load(Source::file(name, text.as_bytes().to_vec())?, &mut cx)?.profile)
}

#[test]
fn children_win_key_by_key_and_lists_are_replaced() {
    let profile = family(&[
        (
            "c.yaml",
            "extends: p.yaml\nlimits: {processes: 5}\nsandbox: {network: {allow: [b.example.com]}}\nenv: {set: {B: 2, PATH: /bin}}\n",
        ),
        (
            "p.yaml",
            "extends: standard\ndescription: parent\nlimits: {processes: 9, memory_mb: 77}\nsandbox: {network: {allow: [a.example.com], deny: [d.example.com]}}\n",
        ),
    ])
    .unwrap();
    assert_eq!(profile.limits.processes, 5);
    assert_eq!(profile.limits.memory_bytes, 77 << 20);
    assert_eq!(profile.limits.open_files, 1024);
    assert_eq!(profile.network.allow, ["b.example.com"]);
    assert_eq!(profile.network.deny, ["d.example.com"]);
    assert_eq!(profile.name, "c");
    assert_eq!(
        profile.description, "",
        "a parent's description is not the child's"
    );
    let set: Vec<&str> = profile
        .env
        .set
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(set[..4], ["PATH", "LANG", "HOME", "TMPDIR"]);
    assert_eq!(set.last(), Some(&"B"));
    assert_eq!(profile.env.set[0].1, "/bin");
}

#[test]
fn bad_families_are_refused() {
    let circle = [("a.yaml", "extends: b.yaml"), ("b.yaml", "extends: a.yaml")];
    let error = family(&circle).unwrap_err();
    assert_eq!(error.code, Code::ProfileInvalid);
    assert!(
        error
            .message
            .starts_with("b.yaml:1:1: extends: a.yaml extends itself"),
        "{error}"
    );
    assert_eq!(error.cause.as_deref(), Some("a.yaml → b.yaml"));

    let names: Vec<String> = (0..20).map(|i| format!("{i}.yaml")).collect();
    let texts: Vec<String> = (1..21).map(|i| format!("extends: {i}.yaml")).collect();
    let deep: Vec<(&str, &str)> = names
        .iter()
        .zip(&texts)
        .map(|(n, t)| (n.as_str(), t.as_str()))
        .collect();
    let error = family(&deep).unwrap_err();
    assert!(error.message.contains("more than 8"), "{error}");

    for (text, code) in [
        ("extends: strikt", Code::ProfileUnknown),
        ("extends: ./none.yaml", Code::ProfileUnknown),
    ] {
        let error = family(&[("a.yaml", text)]).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(
            error.message.starts_with("a.yaml:1:1: extends: "),
            "{error}"
        );
    }
    // A fault of the parent is named with the parent's place.
    let error = family(&[
        ("a.yaml", "extends: b.yaml"),
        ("b.yaml", "\nlimits: {cpus: 0}"),
    ])
    .unwrap_err();
    assert!(
        error.message.starts_with("b.yaml:2:10: limits.cpus: "),
        "{error}"
    );
}
