//! Builds SQLCipher, and passes the crates and the compiler to the engine for its receipts.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    receipts();
    sqlcipher();
}

fn receipts() {
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock beside Cargo.toml");
    let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
    let engine = packages.iter().find(|package| field(package, "name") == Some(env!("CARGO_PKG_NAME")));
    // An entry is `name`, or `name version` if several versions of one crate are built in.
    let direct = engine.expect("the engine itself").split('[').nth(1).expect("its dependencies").lines();
    let direct = direct.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next());
    // No build that measures contains the fuzzer.
    let direct = direct.filter(|entry| *entry != "libfuzzer-sys");
    let crates = direct.map(|entry| match entry.split_once(' ') {
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

/// Compile options that `libsqlite3-sys` sets for the plain SQLite, the other half of the comparison.
const AS_PLAIN: &[&str] = &[
    "-DSQLITE_CORE",
    "-DSQLITE_DEFAULT_FOREIGN_KEYS=1",
    "-DSQLITE_ENABLE_API_ARMOR",
    "-DSQLITE_ENABLE_COLUMN_METADATA",
    "-DSQLITE_ENABLE_DBSTAT_VTAB",
    "-DSQLITE_ENABLE_FTS3",
    "-DSQLITE_ENABLE_FTS3_PARENTHESIS",
    "-DSQLITE_ENABLE_FTS5",
    "-DSQLITE_ENABLE_JSON1",
    "-DSQLITE_ENABLE_LOAD_EXTENSION=1",
    "-DSQLITE_ENABLE_RTREE",
    "-DSQLITE_ENABLE_STAT4",
    "-DSQLITE_SOUNDEX",
    "-DSQLITE_THREADSAFE=1",
    "-DSQLITE_USE_URI",
    "-DHAVE_USLEEP=1",
    "-DHAVE_ISNAN",
    "-D_POSIX_THREAD_SAFE_FUNCTIONS",
    "-DHAVE_LOCALTIME_R",
];

/// Compile options that SQLCipher needs.
const OF_SQLCIPHER: &[&str] = &[
    "-DSQLITE_HAS_CODEC",
    "-DSQLITE_TEMP_STORE=2",
    "-DSQLITE_EXTRA_INIT=sqlcipher_extra_init",
    "-DSQLITE_EXTRA_SHUTDOWN=sqlcipher_extra_shutdown",
    "-DHAVE_STDINT_H=1",
    "-DSQLCIPHER_CRYPTO_CUSTOM=tollbar_sqlcipher_setup",
];

/// Builds SQLCipher with its own names for SQLite's functions.
fn sqlcipher() {
    const SOURCE: &str = "src/sqlite/sqlcipher_aws_lc.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    let aws_lc =
        std::env::vars().find(|(name, _)| name.starts_with("DEP_AWS_LC") && name.ends_with("_INCLUDE"));
    let (_, aws_lc) = aws_lc.expect("AWS-LC's headers, named by the build script of aws-lc-sys");
    // The tests compare the bound functions with these headers.
    println!("cargo::rustc-env=TOLLBAR_AWS_LC_HEADERS={aws_lc}");
    let mut build = cc::Build::new();
    build.file(SOURCE).include(sqlcipher_src::source_dir()).include(aws_lc).warnings(false);
    for flag in AS_PLAIN.iter().chain(OF_SQLCIPHER) {
        build.flag(flag);
    }
    build.compile("tollbar_sqlcipher");
}

/// Returns the value of a line `name = "value"`.
fn field<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
