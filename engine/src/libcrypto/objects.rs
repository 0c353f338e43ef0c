//! What a libcrypto or libssl gives: objects, which it frees as well, and strings.

use std::ffi::{CStr, CString, c_char, c_void};

/// Any of the library's own objects.
pub type Handle = *mut c_void;
pub type Text = *const c_char;
pub type Free = unsafe extern "C" fn(Handle);

/// # Safety
/// A string of the library's own that ends with a zero, or null.
pub unsafe fn text(pointer: Text) -> Option<String> {
    // SAFETY: not null, and the caller's promise.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// A name as C wants it. Names come from this program's own tables, which hold no zero bytes.
pub fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

/// One of the library's objects, freed when it goes out of scope.
pub struct Owned {
    handle: Handle,
    free: Free,
}

// SAFETY: the library ties none of its objects to a thread; each is used by one at a time.
unsafe impl Send for Owned {}

impl Owned {
    /// None of a null.
    ///
    /// # Safety
    /// Null, or an object that is the caller's alone to free, by `free`.
    pub unsafe fn new(handle: Handle, free: Free) -> Option<Owned> {
        (!handle.is_null()).then_some(Owned { handle, free })
    }

    #[inline(always)]
    pub fn raw(&self) -> Handle {
        self.handle
    }

    /// The library owns it from now on.
    pub fn give_away(self) {
        std::mem::forget(self);
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: not null, and this one's to free, as its maker promised; given away by nothing that drops it.
        unsafe { (self.free)(self.handle) }
    }
}
