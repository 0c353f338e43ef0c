//! Values from a libcrypto or libssl: strings, and objects that the library must free.

use std::ffi::{CStr, CString, c_char, c_void};

/// Pointer to any of the library's own objects.
pub type Handle = *mut c_void;
pub type Text = *const c_char;
pub type Free = unsafe extern "C" fn(Handle);

/// Copies a string of the library.
///
/// # Safety
/// The pointer is a string that ends with a zero and that the library owns, or null.
pub unsafe fn text(pointer: Text) -> Option<String> {
    // SAFETY: not null, and the caller's promise.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Converts a name for C. Names come from this program's own tables, which contain no zero bytes.
pub fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// An object of the library, freed when it goes out of scope.
pub struct Owned {
    handle: Handle,
    free: Free,
}

// SAFETY: the library ties none of its objects to a thread, and only one thread at a time uses each.
unsafe impl Send for Owned {}

impl Owned {
    /// Takes ownership of an object. Returns None for null.
    ///
    /// # Safety
    /// The handle is null, or an object that only the caller may free, by `free`.
    pub unsafe fn new(handle: Handle, free: Free) -> Option<Owned> {
        (!handle.is_null()).then_some(Owned { handle, free })
    }

    #[inline(always)]
    pub fn raw(&self) -> Handle {
        self.handle
    }

    /// Transfers ownership to the library.
    pub fn give_away(self) {
        std::mem::forget(self);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: not null, and its maker promised that only this owner frees it; `give_away` skips this
        // drop.
        unsafe { (self.free)(self.handle) }
    }
}
