//! Modules: code that an OpenSSL 3 loads from files of their own, which OpenSSL calls providers.
//!
//! A module that was built for another libcrypto brings that one along, and then the code that runs is not the code
//! that a row names. So a module is used only where it stands on the library that loaded it.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY};

use super::api::{Api, Handle, c_name, text};
use crate::binding::{canonical, file_of};
use crate::contract::Failure;

/// What was mapped when the library had just been loaded: modules are among what came later.
#[derive(Clone)]
pub struct Modules {
    before: BTreeSet<PathBuf>,
}

impl Modules {
    pub fn bind(_: &Library) -> Result<Modules, &'static str> {
        Ok(Modules { before: mapped() })
    }

    /// The modules loaded since that stand on this library.
    pub fn in_use(&self, api: &Api) -> Vec<PathBuf> {
        self.loaded().filter(|module| foreign(module, api).is_none()).collect()
    }

    /// Fails where a module stands on another libcrypto than the one that loaded it.
    pub fn stand_on(&self, api: &Api) -> Result<(), Failure> {
        match self.loaded().find_map(|module| foreign(&module, api).map(|other| (module, other))) {
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

/// The other libcrypto that a module stands on. One that needs no libcrypto at all finds none, and is as good.
fn foreign(module: &Path, api: &Api) -> Option<PathBuf> {
    let found = find(module, b"OpenSSL_version\0")?;
    let is_own = std::ptr::eq(found, api.OpenSSL_version as *const c_void);
    (!is_own).then(|| file_of(found).unwrap_or_default())
}

/// Makes DES, RC2 and RC4 available where OpenSSL 3 keeps them in a module of their own.
pub fn load_legacy(api: &Api) -> Result<(), Failure> {
    // Older libraries and forks have them built in.
    let (Some(load), Some(unload)) = (api.OSSL_PROVIDER_load, api.OSSL_PROVIDER_unload) else {
        return Ok(());
    };
    let null = std::ptr::null_mut();
    let load = |name: &CStr| -> Option<Handle> {
        // SAFETY: the name ends with a zero; no library context is the default one.
        let module = unsafe { load(null, name.as_ptr()) };
        (!module.is_null()).then_some(module)
    };
    api.clear_errors();
    // First, because naming any other stops the default one from being loaded by itself.
    load(c"default").ok_or_else(|| api.failed("the default module"))?;
    let Some(module) = load(c"legacy").or_else(|| search_beside(api).and_then(|()| load(c"legacy"))) else {
        api.clear_errors();
        return Err(Failure::Unsupported(format!("this library has no legacy module: {}", folder(api))));
    };
    api.modules.stand_on(api).inspect_err(|_| {
        // SAFETY: it was loaded above, and nothing of it is in use.
        unsafe { unload(module) };
    })?;
    api.clear_errors();
    Ok(())
}

/// Where the library looks for modules by itself.
fn folder(api: &Api) -> String {
    const OPENSSL_INFO_MODULES_DIR: c_int = 1003;
    // SAFETY: any number gives a string of the library's own, or null.
    let folder = api.OPENSSL_info.and_then(|info| unsafe { text(info(OPENSSL_INFO_MODULES_DIR)) });
    format!("it looks for one in {}", folder.as_deref().unwrap_or("a folder that it does not name"))
}

/// Has modules looked for beside the library, for one that was moved together with them after it was built.
fn search_beside(api: &Api) -> Option<()> {
    let folder = file_of(api.OpenSSL_version as *const c_void)?.parent()?.join("ossl-modules");
    let folder = folder.is_dir().then(|| c_name(&folder.to_string_lossy()))?;
    let search_in = api.OSSL_PROVIDER_set_default_search_path?;
    // SAFETY: the name ends with a zero.
    (unsafe { search_in(std::ptr::null_mut(), folder.as_ptr()) } == 1).then_some(())
}

/// Where a file that is mapped already, or what it depends on, has this symbol.
fn find(path: &Path, symbol: &[u8]) -> Option<*const c_void> {
    // SAFETY: nothing is loaded that is not, so no code runs; the symbol is looked at as an address alone.
    unsafe {
        let library = Library::open(Some(path), RTLD_LAZY | libc::RTLD_NOLOAD).ok()?;
        let found = library.get::<*const c_void>(symbol).ok()?;
        Some(found.into_raw().cast_const())
    }
}

/// Every shared object of this process.
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
    // SAFETY: the set outlives the call, and `note` takes it for what it is.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut objects).cast()) };
    objects
}
