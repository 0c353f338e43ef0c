//! A connection to a database of SQLite, plain or SQLCipher's, and its prepared statements.

use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr::{null, null_mut};

use rusqlite::ffi::{
    SQLITE_CHECKPOINT_TRUNCATE, SQLITE_DONE, SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_NOMUTEX,
    SQLITE_OPEN_READWRITE, SQLITE_PREPARE_PERSISTENT, SQLITE_ROW,
};

use super::api::{Api, Handle, StatementHandle};
use crate::calls;

pub struct Connection {
    api: &'static Api,
    handle: *mut Handle,
}

/// A prepared statement. It must be finalized before its connection is closed, because closing fails while
/// one is left.
pub struct Statement {
    api: &'static Api,
    connection: *mut Handle,
    handle: *mut StatementHandle,
}

impl Connection {
    /// Opens or makes a file. Only one thread may use the connection.
    pub fn open(api: &'static Api, path: &Path) -> Result<Connection, String> {
        let file = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
        let mut handle = null_mut();
        // SAFETY: the path ends with a zero; the handle is written even if opening fails, and closed on drop.
        let status = unsafe { (api.open_v2)(file.as_ptr(), &mut handle, flags, null()) };
        let connection = Connection { api, handle };
        connection.check(status)?;
        Ok(connection)
    }

    /// Executes SQL, and ignores its rows.
    pub fn execute(&self, sql: &str) -> Result<(), String> {
        calls::tally("SQL statement");
        let sql = CString::new(sql).map_err(|error| error.to_string())?;
        // SAFETY: the text ends with a zero, and is compiled and run before this returns.
        self.check(unsafe { (self.api.exec)(self.handle, sql.as_ptr(), None, null_mut(), null_mut()) })
    }

    pub fn prepare(&self, sql: &str) -> Result<Statement, String> {
        let text = CString::new(sql).map_err(|error| error.to_string())?;
        let mut handle = null_mut();
        // SAFETY: the text ends with a zero; the handle is null or a statement, which its drop finalizes.
        let status = unsafe {
            (self.api.prepare_v3)(
                self.handle,
                text.as_ptr(),
                -1,
                SQLITE_PREPARE_PERSISTENT,
                &mut handle,
                null_mut(),
            )
        };
        self.check(status)?;
        Ok(Statement { api: self.api, connection: self.handle, handle })
    }

    /// Returns the number from a query of one row and column.
    pub fn number(&self, sql: &str) -> Result<i64, String> {
        let mut statement = self.prepare(sql)?;
        if !statement.step()? {
            return Err(format!("nothing comes of `{sql}`"));
        }
        Ok(statement.int64(0))
    }

    /// Returns the text from a query of one row and column; empty if there is no row.
    pub fn text(&self, sql: &str) -> Result<String, String> {
        let mut statement = self.prepare(sql)?;
        if !statement.step()? {
            return Ok(String::new());
        }
        Ok(String::from_utf8_lossy(statement.bytes(0)).into_owned())
    }

    /// Writes the whole log into the database, and begins a new one.
    pub fn checkpoint(&self) -> Result<(), String> {
        // SAFETY: a null name means all databases, and null pointers mean counts that are not requested.
        let status = unsafe {
            (self.api.wal_checkpoint_v2)(
                self.handle,
                null(),
                SQLITE_CHECKPOINT_TRUNCATE,
                null_mut(),
                null_mut(),
            )
        };
        self.check(status)
    }

    pub fn close(self) -> Result<(), String> {
        let (api, handle) = (self.api, self.handle);
        // SAFETY: no other function gets this handle any more; if closing fails, the message is read from it.
        unsafe {
            std::mem::forget(self);
            match (api.close)(handle) {
                SQLITE_OK => Ok(()),
                _ => Err(message(api, handle)),
            }
        }
    }

    fn check(&self, status: c_int) -> Result<(), String> {
        // SAFETY: the handle is open, or null if there was no memory for one.
        if status == SQLITE_OK { Ok(()) } else { Err(unsafe { message(self.api, self.handle) }) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: no statement outlives its connection in this program, and the handle is not used after this.
        unsafe { (self.api.close)(self.handle) };
    }
}

/// Returns the message of a connection's last error.
///
/// # Safety
/// The handle is a connection's, or null.
unsafe fn message(api: &Api, handle: *mut Handle) -> String {
    // SAFETY: the text belongs to the connection, and is copied before its next call.
    unsafe { CStr::from_ptr((api.errmsg)(handle)) }.to_string_lossy().into_owned()
}

impl Statement {
    #[inline]
    pub fn bind_int64(&mut self, place: c_int, value: i64) -> Result<(), String> {
        // SAFETY: SQLite refuses a place that the statement does not have.
        let status = unsafe { (self.api.bind_int64)(self.handle, place, value) };
        self.check(status)
    }

    /// Binds text without copying it.
    ///
    /// # Safety
    /// The text stays as it is until the statement is reset and another one is bound, or it is not run again.
    #[inline]
    pub unsafe fn bind_text(&mut self, place: c_int, text: &[u8]) -> Result<(), String> {
        let (start, bytes) = (text.as_ptr().cast(), text.len() as c_int);
        // SAFETY: the caller promises that these bytes exist for as long as the statement reads them.
        let status = unsafe { (self.api.bind_text)(self.handle, place, start, bytes, None) };
        self.check(status)
    }

    /// Binds bytes without copying them.
    ///
    /// # Safety
    /// The same as for `bind_text`.
    #[inline]
    pub unsafe fn bind_blob(&mut self, place: c_int, bytes: &[u8]) -> Result<(), String> {
        let (start, length) = (bytes.as_ptr().cast(), bytes.len() as c_int);
        // SAFETY: the same as for `bind_text`.
        let status = unsafe { (self.api.bind_blob)(self.handle, place, start, length, None) };
        self.check(status)
    }

    /// Moves to the next row. Returns false if there is none.
    #[inline]
    pub fn step(&mut self) -> Result<bool, String> {
        calls::tally("SQL step");
        // SAFETY: the statement is prepared.
        match unsafe { (self.api.step)(self.handle) } {
            SQLITE_ROW => Ok(true),
            SQLITE_DONE => Ok(false),
            // SAFETY: the connection is open for as long as its statements are.
            _ => Err(unsafe { message(self.api, self.connection) }),
        }
    }

    /// Prepares the statement to run again. Its rows are no longer valid.
    #[inline]
    pub fn reset(&mut self) {
        calls::tally("SQL statement");
        // SAFETY: the statement is prepared. The status repeats that of its last step.
        unsafe { (self.api.reset)(self.handle) };
    }

    #[inline]
    pub fn int64(&self, column: c_int) -> i64 {
        // SAFETY: a missing column is null, which reads as 0.
        unsafe { (self.api.column_int64)(self.handle, column) }
    }

    /// Returns the bytes of a column of this row, text or blob. A second call returns the same pointer:
    /// SQLite converts a value only at the first call of this function.
    #[inline]
    pub fn bytes(&self, column: c_int) -> &[u8] {
        // SAFETY: the pointer is null or has the length that is read after it, until the next step or reset,
        // for which the statement would be borrowed mutably.
        unsafe {
            let start = (self.api.column_blob)(self.handle, column);
            slice(start.cast(), (self.api.column_bytes)(self.handle, column))
        }
    }

    #[inline]
    fn check(&self, status: c_int) -> Result<(), String> {
        // SAFETY: the connection is open for as long as its statements are.
        if status == SQLITE_OK { Ok(()) } else { Err(unsafe { message(self.api, self.connection) }) }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the handle is a statement or null, and not used after this.
        unsafe { (self.api.finalize)(self.handle) };
    }
}

/// Makes a slice of a pointer and a length.
///
/// # Safety
/// The pointer is null, or has this number of bytes for as long as `'a`.
unsafe fn slice<'a>(start: *const u8, bytes: c_int) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, bytes as usize) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conversion would move bytes that were returned before.
    #[test]
    fn the_bytes_of_a_column_stay_in_their_place() {
        for api in [&super::super::api::SQLITE, super::super::api::sqlcipher()] {
            let connection = Connection::open(api, Path::new(":memory:")).expect("a database");
            connection.execute("CREATE TABLE values_ (t text, b blob, i integer, z blob)").expect("a table");
            let insert = "INSERT INTO values_ VALUES ('text', x'00ff', 1234567, zeroblob(40))";
            connection.execute(insert).expect("a row");
            let mut statement = connection.prepare("SELECT t, b, i, z FROM values_").expect("a statement");
            assert_eq!(Ok(true), statement.step());
            let zeros = [0; 40];
            let expected: [&[u8]; 4] = [b"text", b"\x00\xff", b"1234567", &zeros];
            for (column, expected) in (0..).zip(expected) {
                let first = statement.bytes(column);
                let number = statement.int64(column);
                let again = statement.bytes(column);
                assert_eq!((expected, expected), (first, again), "column {column}");
                assert_eq!(first.as_ptr(), again.as_ptr(), "column {column}");
                assert_eq!(if column == 2 { 1_234_567 } else { 0 }, number, "column {column}");
            }
        }
    }
}
