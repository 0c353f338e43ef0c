//! What this engine is built from: crates with the versions that Cargo locked, and the compiler.

/// Compiler, optimisation, and the instruction sets that code may use without asking the processor.
pub const BUILD: &str = env!("TOLLBAR_BUILD");

const CRATES: &str = env!("TOLLBAR_CRATES");

/// Each direct dependency: (name, version).
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CRATES.split(';').filter_map(|entry| entry.split_once(' '))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_crate_is_known_by_the_version_that_was_built() {
        let versions: Vec<_> = super::all().filter(|(name, _)| *name == "aws-lc-rs").collect();
        assert_eq!(1, versions.len());
        assert!(versions[0].1.starts_with("1."));
    }
}
