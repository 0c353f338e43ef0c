//! Shared objects in the packages of Tollbar's environment.

use std::path::Path;

/// Returns the libcrypto in a package of Tollbar's environment, if there is one: newer than the system's.
pub fn wheel() -> Option<String> {
    let below = |folder: &Path, start: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        found.next().map(|entry| entry.path())
    };
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let packages = below(&environment, "python3")?.join("site-packages/psycopg_binary.libs");
    below(&packages, "libcrypto").map(|path| path.display().to_string())
}
