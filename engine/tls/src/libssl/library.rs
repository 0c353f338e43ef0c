//! Choice of a libssl: the one in the folder of the libcrypto that a task names, or the system's.

use std::ffi::c_void;
use std::path::{Path, PathBuf};

use super::api::Api;
use crate::binding;
use crate::failure::Failure;

/// File names for the dynamic loader, newest first.
const SYSTEM_NAMES: [&str; 2] = ["libssl.so.3", "libssl.so.1.1"];

pub fn open(libcrypto: Option<&str>) -> Result<&'static Api, Failure> {
    match libcrypto {
        // The loader finds a bare name.
        Some(path) if path.contains('/') => next_to(Path::new(path)),
        _ => SYSTEM_NAMES
            .iter()
            .find_map(|name| load(Path::new(name)).ok())
            .ok_or_else(|| Failure::Unsupported(format!("none of {} is here", SYSTEM_NAMES.join(", ")))),
    }
}

/// Opens the libssl in a libcrypto's folder that uses this libcrypto and no other.
fn next_to(libcrypto: &Path) -> Result<&'static Api, Failure> {
    // The libcrypto is loaded first, so that the libssl's own reference finds it by name, wherever the loader
    // would look.
    let first = binding::load(libcrypto).map_err(Failure::Failed)?;
    std::mem::forget(first);
    let wanted = std::fs::canonicalize(libcrypto).unwrap_or_else(|_| libcrypto.to_owned());
    let mut reasons = Vec::new();
    for candidate in candidates(libcrypto) {
        let api = match load(&candidate) {
            Ok(api) => api,
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        let found = loaded_from(api);
        if found.as_deref() == Some(&wanted) {
            return Ok(api);
        }
        let found = found.unwrap_or_default();
        reasons.push(format!("{} stands on {} instead", candidate.display(), found.display()));
    }
    let path = libcrypto.display();
    if reasons.is_empty() {
        return Err(Failure::Unsupported(format!("there is no libssl next to {path}")));
    }
    Err(Failure::Unsupported(format!("no libssl next to {path} can be used: {}", reasons.join("; "))))
}

/// Returns the files whose names are those of a libssl, the same version first. (`libssl3.so` is another
/// project's.)
fn candidates(libcrypto: &Path) -> Vec<PathBuf> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let version = |name: &str| name.find(".so").map(|at| name[at..].to_owned());
    let wanted = version(&name(libcrypto));
    let folder = libcrypto.parent().unwrap_or(Path::new("/"));
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = name(path);
            name.strip_prefix("libssl").is_some_and(|rest| rest.starts_with(['.', '-']))
                && name.contains(".so")
        })
        .collect();
    found.sort_by_key(|path| (version(&name(path)) != wanted, path.clone()));
    found
}

fn load(path: &Path) -> Result<&'static Api, String> {
    let api = binding::open(path, "libssl of OpenSSL 1.1.1 or later", Api::bind)?;
    // OpenSSL writes to its socket such that a peer gone away raises SIGPIPE, which ends the process unless
    // it is ignored.
    // SAFETY: no handler of this program's own is replaced.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    Ok(api)
}

/// Returns the file of the libcrypto in use.
fn loaded_from(api: &Api) -> Option<PathBuf> {
    binding::file_of(api.crypto.OpenSSL_version as *const c_void)
}
