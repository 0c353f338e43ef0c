//! Functions of a C library, bound at run time.

use std::error::Error as _;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// Makes a type, `Api` unless it is named, with a field for each function, and its `bind`, which looks all of
/// them up by name. A `part` binds itself. In tests it has `signatures`, which `tollbar_testing::headers` compares with the
/// library's own.
#[macro_export]
macro_rules! bind {
    (parts $parts:tt required $required:tt optional $optional:tt) => {
        bind! { Api parts $parts required $required optional $optional }
    };
    ($api:ident
     parts { $($part:ident: $kind:ty;)* }
     required { $(fn $name:ident($($argument:ty),*) $(-> $answer:ty)?;)* }
     optional { $(fn $maybe:ident($($given:ty),*) $(-> $returns:ty)?;)* }) => {
        #[allow(non_snake_case)]
        #[derive(Clone)]
        pub struct $api {
            $(pub $part: $kind,)*
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
            $(pub $maybe: Option<unsafe extern "C" fn($($given),*) $(-> $returns)?>,)*
        }

        impl $api {
            /// Looks up all functions. Returns the name of a missing one as the error.
            pub fn bind(library: &Library) -> Result<Self, &'static str> {
                use tollbar_contract::calls::{Function, slot};
                // SAFETY: each function has the type that the headers of these libraries declare for its name.
                unsafe {
                    Ok(Self {
                        $($part: <$kind>::bind(library)?,)*
                        $($name: {
                            let function: unsafe extern "C" fn($($argument),*) $(-> $answer)? = *library
                                .get(concat!(stringify!($name), "\0"))
                                .map_err(|_| stringify!($name))?;
                            function.counted::<{ slot(stringify!($name)) }>(stringify!($name))
                        },)*
                        $($maybe: {
                            let function: Option<unsafe extern "C" fn($($given),*) $(-> $returns)?> =
                                library.get(concat!(stringify!($maybe), "\0")).ok().map(|symbol| *symbol);
                            function.map(|function| {
                                function.counted::<{ slot(stringify!($maybe)) }>(stringify!($maybe))
                            })
                        },)*
                    })
                }
            }
        }

        #[cfg(test)]
        impl $api {
            /// Returns the signature of each function above, except those of its parts.
            pub fn signatures() -> Vec<tollbar_testing::headers::Signature> {
                use tollbar_testing::headers::Signature;
                vec![
                    $(Signature::of::<unsafe extern "C" fn($($argument),*) $(-> $answer)?>(stringify!($name)),)*
                    $(Signature::of::<unsafe extern "C" fn($($given),*) $(-> $returns)?>(stringify!($maybe)),)*
                ]
            }
        }
    };
}

pub use bind;

/// Opens and binds a shared object, a `kind` such as "libcrypto of OpenSSL 1.1.1 or later". It stays open for
/// the life of the process.
pub fn open<Api>(
    path: &Path,
    kind: &str,
    bind: fn(&Library) -> Result<Api, &'static str>,
) -> Result<&'static Api, String> {
    let library = load(path)?;
    let api = bind(&library)
        .map_err(|symbol| format!("{} is not a {kind}: it has no `{symbol}`", path.display()))?;
    // Never closed: libraries register exit handlers that must not point at unmapped memory.
    std::mem::forget(library);
    Ok(Box::leak(Box::new(api)))
}

pub fn load(path: &Path) -> Result<Library, String> {
    // Local scope: two versions may be in one process, and neither may find the other's functions.
    // SAFETY: only the initialisers of a library run here, which the user named to be measured.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let path = path.display();
        // The loader's message, for example the required version of the C library, begins with the path.
        let said = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        let why = said.strip_prefix(&format!("{path}: ")).unwrap_or(&said);
        format!("{path} cannot be loaded: {why}")
    })
}

/// Returns the file that this address was loaded from.
pub fn file_of(address: *const c_void) -> Option<PathBuf> {
    // SAFETY: zeros are a `Dl_info` without names; `dladdr` fills it in, with names that last as long as the
    // object.
    let name = unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address, &mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(found.dli_fname)
    };
    Some(canonical(name))
}

/// Resolves the links of a path.
pub fn canonical(name: &CStr) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
