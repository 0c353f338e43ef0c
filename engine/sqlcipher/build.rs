//! Builds SQLCipher. It waits for no other library: what it needs of one is passed to it at run time.

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

fn main() {
    const SOURCE: &str = "src/table.c";
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    let mut build = cc::Build::new();
    build.file(SOURCE).include(sqlcipher_src::source_dir()).warnings(false);
    for flag in AS_PLAIN.iter().chain(OF_SQLCIPHER) {
        build.flag(flag);
    }
    build.compile("tollbar_sqlcipher");
}
