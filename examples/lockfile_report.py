"""Reads a Cargo.lock and reports what a Rust project depends on.

Usage: python3 lockfile_report.py [LOCK_FILE]

Prints a summary and writes /tmp/out/report.json and /tmp/out/report.md, the
place from which `orch run --out DIR` copies results. Needs nothing but the
standard library of Python 3.8.
"""

import collections
import hashlib
import json
import os
import re
import sys

OUT = "/tmp/out"
# The only two shapes of a value in a lock file: a string, and a list of strings.
LINE = re.compile(r'^(?P<key>[a-z-]+) = (?P<value>"[^"]*"|\d+|\[)$')
ITEM = re.compile(r'^ "(?P<item>[^"]*)",$')


def packages(text):
    """All [[package]] tables, each a dict; raises ValueError on anything else."""
    found, current, key = [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        if key is not None:
            item = ITEM.match(line)
            if item:
                current[key].append(item["item"])
            elif line == "]":
                key = None
            else:
                raise ValueError("line %d: not an item of a list: %r" % (number, line))
        elif line == "[[package]]":
            current = {}
            found.append(current)
        elif line and not line.startswith("#"):
            pair = LINE.match(line)
            if not pair:
                raise ValueError("line %d: not a lock file: %r" % (number, line))
            if current is None:
                continue  # the version of the format, above the first package
            if pair["value"] == "[":
                key = pair["key"]
                current[key] = []
            else:
                current[pair["key"]] = pair["value"].strip('"')
    if not found:
        raise ValueError("no package in it")
    return found


def report(data):
    """The facts about the bytes of a lock file, ready for JSON."""
    all_packages = packages(data.decode("utf-8"))
    versions = collections.defaultdict(set)
    needed_by = collections.Counter()
    for package in all_packages:
        versions[package["name"]].add(package["version"])
        # "name", or "name version" where several versions are locked.
        needed_by.update({need.split(" ")[0] for need in package.get("dependencies", [])})
    external = [package for package in all_packages if "source" in package]
    return {
        "sha256": hashlib.sha256(data).hexdigest(),
        "packages": len(all_packages),
        "own": sorted(p["name"] for p in all_packages if "source" not in p),
        "external": len(external),
        "without_checksum": sorted(p["name"] for p in external if "checksum" not in p),
        "several_versions": {
            name: sorted(several)
            for name, several in sorted(versions.items())
            if len(several) > 1
        },
        "most_needed": sorted(needed_by.items(), key=lambda item: (-item[1], item[0]))[:10],
    }


def markdown(facts):
    """The same for a person."""
    lines = [
        "# Dependencies",
        "",
        "%d packages: %d of the project, %d from outside."
        % (facts["packages"], len(facts["own"]), facts["external"]),
        "Without a checksum: %s." % (", ".join(facts["without_checksum"]) or "none"),
        "",
        "| most needed | by |",
        "| --- | --- |",
    ]
    lines += ["| %s | %d |" % (name, count) for name, count in facts["most_needed"]]
    lines += ["", "| in several versions | |", "| --- | --- |"]
    lines += [
        "| %s | %s |" % (name, ", ".join(several))
        for name, several in facts["several_versions"].items()
    ]
    lines += ["", "SHA-256 of the lock file: `%s`" % facts["sha256"], ""]
    return "\n".join(lines)


def main(arguments):
    path = arguments[0] if arguments else "Cargo.lock"
    try:
        with open(path, "rb") as lock:
            facts = report(lock.read())
    except (OSError, ValueError, KeyError) as error:
        print("cannot report on %s: %s" % (path, error), file=sys.stderr)
        return 1
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, "report.json"), "w", encoding="utf-8") as out:
        json.dump(facts, out, indent=2)
        out.write("\n")
    with open(os.path.join(OUT, "report.md"), "w", encoding="utf-8") as out:
        out.write(markdown(facts))
    print(
        "%s: %d packages (%d own, %d external), %d in several versions; most needed: %s"
        % (
            path,
            facts["packages"],
            len(facts["own"]),
            facts["external"],
            len(facts["several_versions"]),
            ", ".join(name for name, _ in facts["most_needed"][:3]),
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
