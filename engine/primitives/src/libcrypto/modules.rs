//! Modules: code that an OpenSSL 3 loads from separate files, which OpenSSL calls providers.
//!
//! A module that was built for another libcrypto loads that one too, and then the running code is not the
//! code that a row names. So a module is used only if it is linked to the library that loaded it.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY};

use crate::binding::{canonical, file_of};
use crate::failure::Failure;

/// Files that were mapped right after the library was loaded: modules are among the later ones.
#[derive(Clone)]
pub struct Modules {
    before: BTreeSet<PathBuf>,
}

impl Modules {
    pub fn bind(_: &Library) -> Result<Modules, &'static str> {
        Ok(Modules { before: mapped() })
    }

    /// Returns the modules loaded since that are linked to the library with this function
    /// (`OpenSSL_version`).
    pub fn in_use(&self, version: *const c_void) -> Vec<PathBuf> {
        self.loaded().filter(|module| foreign(module, version).is_none()).collect()
    }

    /// Fails if a module is linked to another libcrypto than the one that loaded it.
    pub fn stand_on(&self, version: *const c_void) -> Result<(), Failure> {
        match self.loaded().find_map(|module| foreign(&module, version).map(|other| (module, other))) {
            None => Ok(()),
            Some((module, other)) => Err(Failure::Unsupported(format!(
                "the module {} needs {}, and would run that code instead of this library's",
                module.display(),
                other.display()
            ))),
        }
    }

    fn loaded(&self) -> impl Iterator<Item = PathBuf> {
        let later = mapped().into_iter().filter(|path| !self.before.contains(path));
        later.filter(|path| find(path, b"OSSL_provider_init\0").is_some())
    }
}

/// Returns the other libcrypto that a module is linked to. A module that needs no libcrypto has none, and is
/// allowed.
fn foreign(module: &Path, version: *const c_void) -> Option<PathBuf> {
    let found = find(module, b"OpenSSL_version\0")?;
    let is_own = std::ptr::eq(found, version);
    (!is_own).then(|| file_of(found).unwrap_or_default())
}

/// Returns the address of a symbol in a mapped file or its dependencies.
fn find(path: &Path, symbol: &[u8]) -> Option<*const c_void> {
    // SAFETY: only loaded files are opened, so that no code runs; the symbol is only used as an address.
    unsafe {
        let library = Library::open(Some(path), RTLD_LAZY | libc::RTLD_NOLOAD).ok()?;
        let found = library.get::<*const c_void>(symbol).ok()?;
        Some(found.into_raw().cast_const())
    }
}

/// Returns every shared object of this process.
fn mapped() -> BTreeSet<PathBuf> {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, into: *mut c_void) -> c_int {
        // SAFETY: the loader gives a valid `info`, and `into` is the set below.
        unsafe {
            let (name, into) = ((*info).dlpi_name, &mut *into.cast::<BTreeSet<PathBuf>>());
            if !name.is_null() && *name != 0 {
                into.insert(canonical(CStr::from_ptr(name)));
            }
        }
        0
    }
    let mut objects = BTreeSet::new();
    // SAFETY: the set outlives the call, and `note` casts it to its true type.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut objects).cast()) };
    objects
}
