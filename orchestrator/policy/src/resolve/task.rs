//! Environment, user and host name.

use super::Resolver;
use crate::error::{Code, Error};
use crate::file::ProfileFile;
use crate::file::range;
use crate::file::scalar::Scalar;
use crate::profile::Env;
use crate::variable;

impl<'c> Resolver<'c> {
    pub(super) fn env(&mut self) -> Result<Env, Error> {
        let env = |file: &'c ProfileFile| file.env.as_ref();
        let allow = self.pick("env.allow", |file| env(file)?.allow.as_ref());
        let mut names: Vec<String> = Vec::new();
        if let Some(pick) = allow {
            for (i, name) in pick.value.iter().enumerate() {
                if let Err((cause, remedy)) = variable::check_name(name) {
                    let path = pick.path.item(i);
                    let message = format!("{name:?}: {cause}");
                    return Err(pick.layer.refuse(Code::EnvInvalid, &path, message, remedy));
                }
                names.push(name.clone());
            }
        }
        Ok(Env {
            allow: names,
            set: self.variables()?,
        })
    }

    /// Variables are merged one by one: a child that sets one more must not lose
    /// `PATH`. The order is the parent's, with the child's new ones behind.
    fn variables(&mut self) -> Result<Vec<(String, String)>, Error> {
        let mut set: Vec<(String, String)> = Vec::new();
        for layer in self.chain.layers.iter().rev() {
            let Some(pairs) = layer.file.env.as_ref().and_then(|env| env.set.as_ref()) else {
                continue;
            };
            for (name, value) in &pairs.0 {
                let checked =
                    variable::check_name(name).and_then(|()| variable::check_value(value));
                if let Err((cause, remedy)) = checked {
                    let path = layer.path("env.set").key(name);
                    return Err(layer.refuse(Code::EnvInvalid, &path, cause, remedy));
                }
                match set.iter_mut().find(|(known, _)| known == name) {
                    Some(known) => known.1.clone_from(value),
                    None => set.push((name.clone(), value.clone())),
                }
            }
        }
        for (name, _) in &set {
            let found = self.chain.layers.iter().position(|layer| {
                let pairs = layer.file.env.as_ref().and_then(|env| env.set.as_ref());
                pairs.is_some_and(|pairs| pairs.0.iter().any(|(known, _)| known == name))
            });
            if let Some(i) = found {
                self.origins.push(super::Origin {
                    field: format!("env.set.{name}"),
                    layer: Some(i),
                    path: self.chain.layers[i].path("env.set").key(name),
                });
            }
        }
        Ok(set)
    }

    pub(super) fn user(&mut self) -> Result<(u32, u32), Error> {
        let pick = self.need("user", |file| file.user.as_ref())?;
        let text = match pick.value {
            Scalar::Whole(value) => value.to_string(),
            Scalar::Real(value) => value.to_string(),
            Scalar::Text(value) => value.clone(),
        };
        parse_user(&text).ok_or_else(|| {
            pick.refuse(
                Code::UserInvalid,
                format!("{text:?} is not a user"),
                "write uid or uid:gid as numbers from 0 to 65533, such as 1000:1000",
            )
        })
    }

    pub(super) fn hostname(&mut self) -> Result<String, Error> {
        let pick = self.need("hostname", |file| file.hostname.as_ref())?;
        let name = pick.value;
        let good = (1..=63).contains(&name.len())
            && !name.starts_with('-')
            && !name.ends_with('-')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if good {
            return Ok(name.clone());
        }
        Err(pick.refuse(
            Code::ProfileInvalid,
            format!("{name:?} is not a host name"),
            "write 1 to 63 letters, digits and hyphens, with no hyphen at either end",
        ))
    }
}

fn parse_user(text: &str) -> Option<(u32, u32)> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    let id = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let id = text.parse::<u32>().ok().filter(|_| digits)?;
        (i64::from(id) <= range::ID.max).then_some(id)
    };
    Some((id(uid)?, id(gid)?))
}
