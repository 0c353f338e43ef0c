//! DES, RC2 and RC4, which an OpenSSL 3 keeps in a module of their own.

use std::ffi::{CStr, c_int};

use super::api::{Api, Handle, c_name, text};
use crate::binding::file_of;
use crate::failure::Failure;

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
    api.modules.stand_on(api.version_function()).inspect_err(|_| {
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
    let folder = file_of(api.version_function())?.parent()?.join("ossl-modules");
    let folder = folder.is_dir().then(|| c_name(&folder.to_string_lossy()))?;
    let search_in = api.OSSL_PROVIDER_set_default_search_path?;
    // SAFETY: the name ends with a zero.
    (unsafe { search_in(std::ptr::null_mut(), folder.as_ptr()) } == 1).then_some(())
}
