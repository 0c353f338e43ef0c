//! Passes the folder of AWS-LC's headers to the comparison of bound functions.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let headers =
        std::env::vars().find(|(name, _)| name.starts_with("DEP_AWS_LC") && name.ends_with("_INCLUDE"));
    let (_, headers) = headers.expect("AWS-LC's headers, named by the build script of aws-lc-sys");
    println!("cargo::rustc-env=TOLLBAR_AWS_LC_HEADERS={headers}");
}
