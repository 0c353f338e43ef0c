//! Functions of SQLite that the engine calls, in the plain build and in SQLCipher.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Once;

use rusqlite::ffi;

use crate::cryptography::AWS_LC;

pub use ffi::{sqlite3 as Handle, sqlite3_stmt as StatementHandle};

/// Destructor of bound bytes: None is `SQLITE_STATIC`, so that they must stay until the statement is reset.
pub type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;
type Callback = Option<unsafe extern "C" fn(*mut c_void, c_int, *mut *mut c_char, *mut *mut c_char) -> c_int>;

/// Functions in the order of `tollbar_sqlcipher` in ../../sqlcipher/src/table.c.
#[repr(C)]
pub struct Api {
    pub libversion: unsafe extern "C" fn() -> *const c_char,
    pub compileoption_get: unsafe extern "C" fn(c_int) -> *const c_char,
    pub open_v2: unsafe extern "C" fn(*const c_char, *mut *mut Handle, c_int, *const c_char) -> c_int,
    pub close: unsafe extern "C" fn(*mut Handle) -> c_int,
    pub errmsg: unsafe extern "C" fn(*mut Handle) -> *const c_char,
    pub exec:
        unsafe extern "C" fn(*mut Handle, *const c_char, Callback, *mut c_void, *mut *mut c_char) -> c_int,
    pub wal_checkpoint_v2:
        unsafe extern "C" fn(*mut Handle, *const c_char, c_int, *mut c_int, *mut c_int) -> c_int,
    pub prepare_v3: unsafe extern "C" fn(
        *mut Handle,
        *const c_char,
        c_int,
        c_uint,
        *mut *mut StatementHandle,
        *mut *const c_char,
    ) -> c_int,
    pub finalize: unsafe extern "C" fn(*mut StatementHandle) -> c_int,
    pub step: unsafe extern "C" fn(*mut StatementHandle) -> c_int,
    pub reset: unsafe extern "C" fn(*mut StatementHandle) -> c_int,
    pub bind_int64: unsafe extern "C" fn(*mut StatementHandle, c_int, i64) -> c_int,
    pub bind_text:
        unsafe extern "C" fn(*mut StatementHandle, c_int, *const c_char, c_int, Destructor) -> c_int,
    pub bind_blob:
        unsafe extern "C" fn(*mut StatementHandle, c_int, *const c_void, c_int, Destructor) -> c_int,
    pub column_int64: unsafe extern "C" fn(*mut StatementHandle, c_int) -> i64,
    pub column_blob: unsafe extern "C" fn(*mut StatementHandle, c_int) -> *const c_void,
    pub column_bytes: unsafe extern "C" fn(*mut StatementHandle, c_int) -> c_int,
}

/// The SQLite that rusqlite contains.
pub static SQLITE: Api = Api {
    libversion: ffi::sqlite3_libversion,
    compileoption_get: ffi::sqlite3_compileoption_get,
    open_v2: ffi::sqlite3_open_v2,
    close: ffi::sqlite3_close,
    errmsg: ffi::sqlite3_errmsg,
    exec: ffi::sqlite3_exec,
    wal_checkpoint_v2: ffi::sqlite3_wal_checkpoint_v2,
    prepare_v3: ffi::sqlite3_prepare_v3,
    finalize: ffi::sqlite3_finalize,
    step: ffi::sqlite3_step,
    reset: ffi::sqlite3_reset,
    bind_int64: ffi::sqlite3_bind_int64,
    bind_text: ffi::sqlite3_bind_text,
    bind_blob: ffi::sqlite3_bind_blob,
    column_int64: ffi::sqlite3_column_int64,
    column_blob: ffi::sqlite3_column_blob,
    column_bytes: ffi::sqlite3_column_bytes,
};

/// Returns the functions of SQLCipher, which encrypts by AWS-LC.
pub fn sqlcipher() -> &'static Api {
    static ENCRYPTS: Once = Once::new();
    // SAFETY: the functions are those that SQLCipher's source describes, and no database is open before this returns.
    ENCRYPTS.call_once(|| unsafe { tollbar_sqlcipher::encrypt_by(&AWS_LC) });
    // SAFETY: it is a constant of that type, which C code fills in: function pointers in the same order.
    unsafe { &*(&raw const tollbar_sqlcipher::tollbar_sqlcipher).cast() }
}
