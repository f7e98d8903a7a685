//! Sizes, CPU shares, durations and `NAME=VALUE`, as people type them.
//!
//! All of them refuse what they cannot represent exactly; none rounds. Zero is
//! refused everywhere, because the kernel reads a zero limit as "none" in more
//! than one place (H13).

use crate::error::{Code, Error};

/// Bytes in one MiB, the unit of the `_mb` keys.
pub const MIB: u64 = 1 << 20;

fn invalid(what: &str, text: &str, cause: &str, forms: &str) -> Error {
    Error::new(
        Code::LimitInvalid,
        format!("{what} {text:?} is not valid"),
        format!("write {forms}"),
    )
    .because(cause)
}

/// A decimal number split into its digits and the unit behind it.
///
/// The value is `digits / 10^scale`, so that `1.5` stays exact.
struct Decimal<'a> {
    digits: u64,
    scale: u32,
    unit: &'a str,
}

fn decimal(text: &str) -> Result<Decimal<'_>, &'static str> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err("it is negative");
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.contains('.') {
        return Err("it does not start with a number");
    }
    let scale = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    if scale > 9 {
        return Err("it has more than nine digits behind the point");
    }
    let digits = format!("{whole}{fraction}")
        .parse()
        .map_err(|_| "it is too large")?;
    Ok(Decimal {
        digits,
        scale,
        unit: unit.trim(),
    })
}

impl Decimal<'_> {
    /// The value times `factor`, refused where it is not a whole number ≥ 1.
    fn times(&self, factor: u64) -> Result<u64, &'static str> {
        let product = u128::from(self.digits) * u128::from(factor);
        let divisor = 10u128.pow(self.scale);
        if !product.is_multiple_of(divisor) {
            return Err("it is not a whole number of the smallest unit");
        }
        match u64::try_from(product / divisor) {
            Ok(0) => Err("it is zero"),
            Ok(value) => Ok(value),
            Err(_) => Err("it is too large"),
        }
    }
}

/// Bytes from `512Mi`, `2G`, `1.5GiB`, `64k` or a bare number of bytes.
///
/// `k M G T` with or without `B` are powers of 1000, `Ki Mi Gi Ti` powers of
/// 1024, as in Kubernetes.
///
/// # Errors
/// [`Code::LimitInvalid`] for zero, negative, fractional bytes, overflow or an
/// unknown unit.
pub fn bytes(text: &str) -> Result<u64, Error> {
    parse_bytes(text)
        .map_err(|cause| invalid("size", text, cause, "bytes or a unit, such as 512Mi or 2G"))
}

fn parse_bytes(text: &str) -> Result<u64, &'static str> {
    let value = decimal(text)?;
    let factor = match value.unit.strip_suffix('B').unwrap_or(value.unit) {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => MIB,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return Err("the unit is not one of k M G T Ki Mi Gi Ti"),
    };
    value.times(factor)
}

/// Thousandths of a CPU from `1.5`, `2` or `500m`.
///
/// # Errors
/// [`Code::LimitInvalid`] for zero, negative, or finer than a thousandth.
pub fn cpus(text: &str) -> Result<u64, Error> {
    parse_cpus(text).map_err(|cause| {
        invalid(
            "number of CPUs",
            text,
            cause,
            "CPUs such as 1.5, or thousandths such as 500m",
        )
    })
}

fn parse_cpus(text: &str) -> Result<u64, &'static str> {
    let value = decimal(text)?;
    match value.unit {
        "" => value.times(1000),
        "m" => value.times(1),
        _ => Err("the unit is not m"),
    }
}

/// Milliseconds from `1500ms`, `30s`, `10m`, `1h`, `1h30m`, `2d` or a bare
/// number of seconds.
///
/// # Errors
/// [`Code::LimitInvalid`] for zero, negative, overflow or an unknown unit.
pub fn duration_ms(text: &str) -> Result<u64, Error> {
    parse_duration(text).map_err(|cause| {
        invalid(
            "duration",
            text,
            cause,
            "seconds or a unit, such as 1500ms, 30s, 10m or 1h30m",
        )
    })
}

fn parse_duration(text: &str) -> Result<u64, &'static str> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let unit_at = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-')
            .unwrap_or(rest.len());
        let unit_len = rest[unit_at..]
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len() - unit_at);
        let (part, tail) = rest.split_at(unit_at + unit_len);
        let value = decimal(part)?;
        let factor = match value.unit {
            "ms" => 1,
            "" if last == u64::MAX && tail.is_empty() => 1_000,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" => return Err("a part has no unit"),
            _ => return Err("the unit is not one of ms s m h d"),
        };
        if factor >= last {
            return Err("the units are not in falling order");
        }
        last = factor;
        total = total
            .checked_add(value.times(factor)?)
            .ok_or("it is too large")?;
        rest = tail;
    }
    if total == 0 {
        return Err("it is empty");
    }
    Ok(total)
}

/// Bytes as a person reads them: `512Mi`, `2Gi`, or plain bytes.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    for (unit, name) in [
        (1 << 40, "Ti"),
        (1 << 30, "Gi"),
        (MIB, "Mi"),
        (1 << 10, "Ki"),
    ] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Milliseconds as a person reads them: `1h`, `10m`, `30s`, `1500ms`.
#[must_use]
pub fn show_duration(ms: u64) -> String {
    for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if ms >= unit && ms.is_multiple_of(unit) {
            return format!("{}{name}", ms / unit);
        }
    }
    format!("{ms}ms")
}

/// Thousandths of a CPU as a person reads them: `2`, `500m`.
#[must_use]
pub fn show_cpus(milli: u64) -> String {
    if milli.is_multiple_of(1000) {
        (milli / 1000).to_string()
    } else {
        format!("{milli}m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, value) in [
            ("1", 1),
            ("512Mi", 512 * MIB),
            ("2G", 2_000_000_000),
            ("2GB", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("64 Ki", 65_536),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text).unwrap(), value, "{text}");
        }
        for text in [
            "",
            "0",
            "0Mi",
            "-1",
            "1.5",
            "1.",
            ".5G",
            "1..2G",
            "Mi",
            "1Xi",
            "99999999Ti",
            "1e9",
            "18446744073709551616",
            "1.0000000001G",
            "NaN",
            "0x10",
            "1 2",
        ] {
            let error = bytes(text).unwrap_err();
            assert_eq!(error.code, Code::LimitInvalid, "{text}");
            assert!(error.message.contains(text), "{error}");
            assert!(error.remediation.contains("512Mi"), "{error:?}");
        }
    }

    #[test]
    fn cpu_shares() {
        for (text, value) in [("1.5", 1500), ("500m", 500), ("2", 2000), ("0.001", 1)] {
            assert_eq!(cpus(text).unwrap(), value, "{text}");
        }
        for text in ["0", "0m", "-1", "0.0001", "0.5m", "1c", "1,5", "m"] {
            assert_eq!(cpus(text).unwrap_err().code, Code::LimitInvalid, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, value) in [
            ("30s", 30_000),
            ("10m", 600_000),
            ("1h", 3_600_000),
            ("1500ms", 1_500),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("600", 600_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration_ms(text).unwrap(), value, "{text}");
        }
        for text in [
            "",
            "0",
            "0s",
            "-5s",
            "5x",
            "1m1h",
            "1h1h",
            "1h30",
            "0.5ms",
            "s",
            "1s-1s",
            "99999999999999999999h",
            "584942417355073d",
        ] {
            assert_eq!(
                duration_ms(text).unwrap_err().code,
                Code::LimitInvalid,
                "{text}"
            );
        }
    }

    #[test]
    fn shown_values_read_back() {
        for value in [1, 1023, 1024, 16 * MIB, 3 << 30, 1 << 40, u64::MAX] {
            assert_eq!(bytes(&show_bytes(value)).unwrap(), value);
        }
        for value in [1, 999, 1000, 1500, 60_000, 90_000, 3_600_000, 86_400_000] {
            assert_eq!(duration_ms(&show_duration(value)).unwrap(), value);
        }
        for value in [1, 500, 1000, 1500, 64_000] {
            assert_eq!(cpus(&show_cpus(value)).unwrap(), value);
        }
    }
}
