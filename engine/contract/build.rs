//! Passes the crates and the compiler to the programs for their receipts.

fn main() {
    const LOCK: &str = "../Cargo.lock";
    println!("cargo::rerun-if-changed={LOCK}");
    let lock = std::fs::read_to_string(LOCK).expect("the Cargo.lock of the workspace");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    // Members have no source. An entry is `name`, or `name version` if several versions of one crate are built in.
    let members = packages.iter().filter(|package| field(package, "source").is_none());
    let entries = members.filter_map(|member| member.split('[').nth(1)).flat_map(str::lines);
    let entries = entries.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    // No program that measures contains the fuzzer.
    let entries = entries.filter(|entry| !entry.starts_with("tollbar-") && *entry != "libfuzzer-sys");
    let direct: std::collections::BTreeSet<&str> = entries.collect();
    let crates = direct.into_iter().map(|entry| match entry.split_once(' ') {
        Some((name, version)) => format!("{name} {version}"),
        None => {
            let package = packages.iter().find(|package| field(package, "name") == Some(entry));
            let version = package.and_then(|package| field(package, "version"));
            format!("{entry} {}", version.expect("a locked version"))
        }
    });
    println!("cargo::rustc-env=TOLLBAR_CRATES={}", crates.collect::<Vec<_>>().join(";"));

    let variable = |name| std::env::var(name).unwrap_or_default();
    let version = std::process::Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!(
        "cargo::rustc-env=TOLLBAR_BUILD={}, opt-level {}, {} with {}",
        version.expect("a compiler that says its version"),
        variable("OPT_LEVEL"),
        variable("CARGO_CFG_TARGET_ARCH"),
        variable("CARGO_CFG_TARGET_FEATURE"),
    );
}

/// Returns the value of a line `name = "value"`.
fn field<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
