//! A path that a flag names, or else a variable of the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The flag, else the variable where it holds anything.
pub fn path(flag: Option<&Path>, variable: Option<OsString>) -> Option<PathBuf> {
    flag.map(Path::to_owned)
        .or_else(|| variable.filter(|path| !path.is_empty()).map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_over_the_variable_and_an_empty_one_is_none() {
        let flag = Path::new("/flag");
        assert_eq!(path(Some(flag), Some("/v".into())), Some(flag.into()));
        assert_eq!(path(None, Some("/v".into())), Some("/v".into()));
        assert_eq!(path(None, Some(OsString::new())), None);
        assert_eq!(path(None, None), None);
    }
}
