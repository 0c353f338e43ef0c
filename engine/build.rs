//! Hands the engine what it is built from and how, for its receipts: crates and compiler.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock beside Cargo.toml");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    let engine = packages.iter().find(|package| field(package, "name") == Some(env!("CARGO_PKG_NAME")));
    // An entry is "name", or "name version" where several versions of one crate are built in.
    let direct = engine.expect("the engine itself").split('[').nth(1).expect("its dependencies").lines();
    let direct = direct.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    let crates = direct.chain(["aws-lc-sys"]).map(|entry| match entry.split_once(' ') {
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

/// The value of a line `name = "value"`.
fn field<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
