//! The bytes in the repository are what the tables compile to.
//!
//! After a change of a table: `ORCH_BLESS=1 cargo test -p orch-policy compiled`.

use std::fs;
use std::path::Path;

use crate::syscalls::{Filter, carried, compile};

fn name(filter: Filter) -> String {
    match filter {
        Filter::Guest => "guest".to_owned(),
        Filter::Lease(tier) => format!("lease-{tier:?}").to_lowercase(),
        Filter::Task(table) => format!("task-{}", table.word()),
    }
}

#[test]
fn compiled_bytes_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("syscalls/compiled");
    let bless = std::env::var_os("ORCH_BLESS").is_some();
    for filter in Filter::ALL {
        let program = compile(filter).unwrap();
        let file = folder.join(name(filter)).with_extension("bpf");
        if bless {
            fs::write(&file, program.bytes()).unwrap();
        }
        let stale = "stale: run ORCH_BLESS=1 cargo test -p orch-policy compiled";
        assert!(
            fs::read(&file).unwrap() == program.bytes(),
            "{filter:?} {stale}"
        );
        // The bytes that were built in are those of the file of this name.
        assert!(
            bless || carried(filter).unwrap() == program,
            "{filter:?} {stale}"
        );
    }
}
