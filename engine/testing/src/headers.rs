//! Comparison of the bound functions with the declarations in the libraries' own headers.
//!
//! A hand-written signature can be wrong, and a call through a wrong one is undefined. So the tables are
//! written as C++, and a compiler that has read the headers reports the differences. `bind!` gives every
//! function of a table a signature; a table that no test compares is dead code, which the lint refuses.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function as this program declares it.
pub struct Signature {
    name: &'static str,
    in_cpp: String,
}

impl Signature {
    pub fn of<Function: InCpp>(name: &'static str) -> Signature {
        Signature { name, in_cpp: Function::in_cpp() }
    }
}

/// A Rust type that also exists in C++.
pub trait InCpp {
    fn in_cpp() -> String;
}

#[macro_export]
macro_rules! named {
    ($($rust:ty: $cpp:literal;)*) => {$(
        impl $crate::headers::InCpp for $rust {
            fn in_cpp() -> String {
                $cpp.to_owned()
            }
        }
    )*};
}
pub use named;

named! {
    (): "void";
    c_void: "void";
    i8: "std::int8_t";
    u8: "std::uint8_t";
    u16: "std::uint16_t";
    i32: "std::int32_t";
    u32: "std::uint32_t";
    i64: "std::int64_t";
    u64: "std::uint64_t";
    usize: "std::size_t";
    isize: "std::ptrdiff_t";
}

impl<T: InCpp> InCpp for *mut T {
    fn in_cpp() -> String {
        format!("{}*", T::in_cpp())
    }
}

impl<T: InCpp> InCpp for *const T {
    fn in_cpp() -> String {
        format!("{} const*", T::in_cpp())
    }
}

macro_rules! functions {
    ($([$($argument:ident),*])*) => {$(
        impl<$($argument: InCpp,)* Answer: InCpp> InCpp for unsafe extern "C" fn($($argument),*) -> Answer {
            fn in_cpp() -> String {
                let types: Vec<String> = vec![Answer::in_cpp(), $($argument::in_cpp()),*];
                format!("Function<{}>", types.join(", "))
            }
        }
    )*};
}

functions! {
    [] [A] [A, B] [A, B, C] [A, B, C, D] [A, B, C, D, E] [A, B, C, D, E, F] [A, B, C, D, E, F, G]
    [A, B, C, D, E, F, G, H] [A, B, C, D, E, F, G, H, I] [A, B, C, D, E, F, G, H, I, J] [A, B, C, D, E, F, G, H, I, J, K]
    [A, B, C, D, E, F, G, H, I, J, K, L] [A, B, C, D, E, F, G, H, I, J, K, L, M]
}

/// A field of a structure that this program and the library both declare.
pub struct Field {
    structure: String,
    name: &'static str,
    at: usize,
    kind: String,
    bytes: usize,
}

impl Field {
    /// Makes a field: `name` is the library's; `read` selects ours, and gives its type.
    pub fn of<Structure: InCpp, T: InCpp>(name: &'static str, at: usize, _read: fn(Structure) -> T) -> Field {
        let (structure, kind) = (Structure::in_cpp(), T::in_cpp());
        Field { structure, name, at, kind, bytes: size_of::<Structure>() }
    }
}

/// Headers of a library.
pub struct Headers {
    pub of: &'static str,
    /// Folder of the headers, unless a compiler finds them by itself.
    pub folder: Option<&'static str>,
    pub files: &'static [&'static str],
    /// Structures of the tables that the headers do not declare; the headers have no function with one
    /// either.
    pub without: &'static [&'static str],
    /// Debian package that contains the headers.
    pub package: &'static str,
}

pub const OPENSSL: Headers = Headers {
    of: "OpenSSL",
    folder: None,
    files: &[
        "openssl/core.h",
        "openssl/dh.h",
        "openssl/err.h",
        "openssl/evp.h",
        "openssl/hmac.h",
        "openssl/kdf.h",
        "openssl/pem.h",
        "openssl/provider.h",
        "openssl/rand.h",
        "openssl/rsa.h",
        "openssl/ssl.h",
        "openssl/x509.h",
    ],
    without: &[],
    package: "libssl-dev",
};

pub const AWS_LC: Headers = Headers {
    of: "AWS-LC",
    folder: Some(env!("TOLLBAR_AWS_LC_HEADERS")),
    files: &[
        "openssl/dh.h",
        "openssl/err.h",
        "openssl/evp.h",
        "openssl/hmac.h",
        "openssl/pem.h",
        "openssl/rand.h",
        "openssl/rsa.h",
        "openssl/ssl.h",
        "openssl/x509.h",
    ],
    without: &["OSSL_PARAM"],
    package: "none: the crate aws-lc-sys brings them",
};

/// Returns BoringSSL's headers, if `TOLLBAR_BORINGSSL_HEADERS` names the folder `include` of its source.
pub fn boringssl() -> Option<Headers> {
    let folder: &'static str = std::env::var("TOLLBAR_BORINGSSL_HEADERS").ok()?.leak();
    // The headers name the structure, and have no function with it.
    Some(Headers { of: "BoringSSL", folder: Some(folder), without: &[], package: "none", ..AWS_LC })
}

/// Returns the headers of those forks that are there.
pub fn forks() -> impl Iterator<Item = Headers> {
    std::iter::once(AWS_LC).chain(boringssl())
}

pub const GSSAPI: Headers = Headers {
    of: "GSSAPI",
    folder: None,
    files: &["gssapi/gssapi.h", "gssapi/gssapi_ext.h", "krb5.h"],
    without: &[],
    package: "libkrb5-dev",
};

/// Names of functions, by the result of the comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    pub agrees: BTreeSet<String>,
    /// Functions that differ, each with both types as the compiler prints them.
    pub differs: Vec<(String, String)>,
    pub undeclared: BTreeSet<String>,
}

impl Headers {
    pub fn compare(&self, signatures: &[Signature], fields: &[Field]) -> Compared {
        let said = self.run(&self.program(signatures, fields));
        let mut compared = Compared::default();
        for line in said.lines() {
            let (verdict, rest) = line.split_once(' ').expect(line);
            match verdict {
                "agrees" => assert!(compared.agrees.insert(rest.to_owned()), "{rest} stands in two tables"),
                "undeclared" => {
                    assert!(compared.undeclared.insert(rest.to_owned()), "{rest} stands in two tables")
                }
                _ => {
                    let (name, types) = rest.split_once(' ').expect(line);
                    compared.differs.push((name.to_owned(), types.to_owned()));
                }
            }
        }
        let rows = compared.agrees.len() + compared.differs.len() + compared.undeclared.len();
        assert_eq!(signatures.len(), rows, "{said}");
        println!(
            "{}: {} agree, {} differ, {} are not declared: {:?}",
            self.of,
            compared.agrees.len(),
            compared.differs.len(),
            compared.undeclared.len(),
            compared.undeclared
        );
        compared
    }

    fn program(&self, signatures: &[Signature], fields: &[Field]) -> String {
        let includes: String = self.files.iter().map(|file| format!("#include <{file}>\n")).collect();
        let fields: String = fields
            .iter()
            .map(|Field { structure, name, at, kind, bytes }| {
                format!(
                    "static_assert(sizeof({structure}) == {bytes} && offsetof({structure}, {name}) == {at}\n    \
                     && agree<{kind}, decltype({structure}::{name})>(), \"{structure}::{name}\");\n"
                )
            })
            .collect();
        let names = signatures.iter().map(|signature| &signature.name).chain(self.without);
        let names: String = names.map(|name| format!("struct {name};\n")).collect();
        let rows: String = signatures
            .iter()
            .map(|Signature { name, in_cpp }| format!("    row<{in_cpp}, {name}>(\"{name}\");\n"))
            .collect();
        format!("{includes}{}{fields}{names}int main() {{\n{rows}}}\n", include_str!("headers.cpp"))
    }

    /// Compiles and runs the program, and returns its output.
    fn run(&self, program: &str) -> String {
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
        // Tests are threads of one process, and two of them may compare the same headers.
        static PROGRAMS: AtomicUsize = AtomicUsize::new(0);
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        let folder = PrivateFolder::new(&format!("tollbar-headers-{}-{number}", std::process::id()));
        let made = folder.0.join("compare");
        let mut command = Command::new(&compiler);
        // Warnings are off, because deprecated functions are called too: their cost is one of the questions.
        command.args(["-std=c++17", "-w", "-x", "c++", "-", "-o"]).arg(&made);
        command.args(self.folder.map(|folder| format!("-I{folder}")));
        let started = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut compiling = started.unwrap_or_else(|error| {
            panic!("signatures cannot be checked without the C++ compiler {compiler}: {error}; apt-get install g++")
        });
        compiling.stdin.take().expect("a pipe").write_all(program.as_bytes()).expect("a compiler that reads");
        let output = compiling.wait_with_output().expect("a compiler that ends");
        assert!(
            output.status.success(),
            "the headers of {} are not there (their package: {}), or a structure is another than theirs: {}",
            self.of,
            self.package,
            String::from_utf8_lossy(&output.stderr)
        );
        let output = Command::new(&made).output().expect("a program that runs");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// Folder of a program that is compiled and run, removed on drop. Anyone may write to the folder of temporary
/// files and foresee a name in it. The folder must be private, so that the program that runs is the compiled
/// one and the compiler follows no planted link.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes the folder, and fails if the name exists.
    fn new(name: &str) -> PrivateFolder {
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        PrivateFolder(path)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_private_folder_is_new_and_its_owner_s_alone() {
        let name = format!("tollbar-private-{}", std::process::id());
        let folder = PrivateFolder::new(&name);
        let path = folder.0.clone();
        assert_eq!(0o700, path.metadata().expect("a folder").permissions().mode() & 0o777);
        assert!(catch_unwind(|| PrivateFolder::new(&name)).is_err(), "a folder that is there was taken");
        drop(folder);
        assert!(!path.exists());
        symlink(std::env::temp_dir(), &path).expect("a link");
        assert!(catch_unwind(|| PrivateFolder::new(&name)).is_err(), "a link was followed");
        std::fs::remove_file(&path).expect("the link");
    }
}
