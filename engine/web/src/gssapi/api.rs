//! Functions of a GSSAPI library (RFC 2744, RFC 5588), bound at run time. The build needs no part of it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;

use libloading::os::unix::Library;

use crate::binding::bind;

/// Pointer to any of the library's own objects.
pub type Handle = *mut c_void;
pub type Out<Kind> = *mut Kind;
pub type Release = unsafe extern "C" fn(Out<u32>, Out<Handle>) -> u32;

/// `gss_buffer_desc`.
#[repr(C)]
pub struct Buffer {
    pub length: usize,
    pub value: *mut c_void,
}

/// A `Buffer` for input, which borrows its bytes so that it cannot outlive them.
pub struct Lent<'a> {
    buffer: Buffer,
    bytes: PhantomData<&'a [u8]>,
}

/// `gss_OID_desc`: an object identifier in DER, without tag and length.
#[repr(C)]
pub struct Oid {
    length: u32,
    elements: *const c_void,
}

// SAFETY: it points only to constants.
unsafe impl Sync for Oid {}

/// `gss_OID_set_desc`.
#[repr(C)]
pub struct OidSet {
    count: usize,
    elements: *const Oid,
}

/// `gss_key_value_element_desc`: a kind of credential store, and its place.
#[repr(C)]
pub struct KeyValue {
    key: *const c_char,
    value: *const c_char,
}

/// `gss_key_value_set_desc`.
#[repr(C)]
pub struct KeyValues {
    count: u32,
    elements: *const KeyValue,
}

/// A ticket cache under libkrb5's name for it: `FILE:/a/path`.
pub struct TicketCache<'a> {
    element: KeyValue,
    name: PhantomData<&'a CStr>,
}

bind! {
    parts {}
    required {
        fn gss_display_status(Out<u32>, u32, c_int, *const Oid, Out<u32>, Out<Buffer>) -> u32;
        fn gss_release_buffer(Out<u32>, Out<Buffer>) -> u32;
        fn gss_indicate_mechs(Out<u32>, Out<Handle>) -> u32;
        fn gss_test_oid_set_member(Out<u32>, *const Oid, Handle, Out<c_int>) -> u32;
        fn gss_release_oid_set(Out<u32>, Out<Handle>) -> u32;
        fn gss_import_name(Out<u32>, *const Buffer, *const Oid, Out<Handle>) -> u32;
        fn gss_release_name(Out<u32>, Out<Handle>) -> u32;
        fn gss_acquire_cred_with_password(
            Out<u32>, Handle, *const Buffer, u32, *const OidSet, c_int, Out<Handle>, Out<Handle>, Out<u32>
        ) -> u32;
        fn gss_acquire_cred_from(
            Out<u32>, Handle, u32, *const OidSet, c_int, *const KeyValues, Out<Handle>, Out<Handle>, Out<u32>
        ) -> u32;
        fn gss_store_cred_into(
            Out<u32>, Handle, c_int, *const Oid, u32, u32, *const KeyValues, Out<Handle>, Out<c_int>
        ) -> u32;
        fn gss_release_cred(Out<u32>, Out<Handle>) -> u32;
        fn gss_init_sec_context(
            Out<u32>, Handle, Out<Handle>, Handle, *const Oid, u32, u32, Handle, *const Buffer, Out<Handle>,
            Out<Buffer>, Out<u32>, Out<u32>
        ) -> u32;
        fn gss_delete_sec_context(Out<u32>, Out<Handle>, Out<Buffer>) -> u32;
    }
    optional {
        // A function of libkrb5, which GSSAPI uses: the version is in the file that contains it.
        fn krb5_free_context(Handle);
    }
}

impl Buffer {
    pub const EMPTY: Buffer = Buffer { length: 0, value: std::ptr::null_mut() };
}

impl Lent<'_> {
    pub fn of(bytes: &[u8]) -> Lent<'_> {
        let buffer = Buffer { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() };
        Lent { buffer, bytes: PhantomData }
    }

    pub fn raw(&self) -> *const Buffer {
        &self.buffer
    }
}

impl TicketCache<'_> {
    pub fn named(name: &CStr) -> TicketCache<'_> {
        TicketCache { element: KeyValue { key: c"ccache".as_ptr(), value: name.as_ptr() }, name: PhantomData }
    }

    /// Returns the value that the library reads while this one lives.
    pub fn raw(&self) -> KeyValues {
        KeyValues { count: 1, elements: &self.element }
    }
}

impl OidSet {
    /// Makes a set with one member.
    pub fn of(only: &'static Oid) -> OidSet {
        OidSet { count: 1, elements: only }
    }
}

impl Oid {
    pub const fn of(der: &'static [u8]) -> Oid {
        Oid { length: der.len() as u32, elements: der.as_ptr().cast() }
    }

    pub fn elements(&self) -> &'static [u8] {
        // SAFETY: it was made of a constant of this length.
        unsafe { std::slice::from_raw_parts(self.elements.cast(), self.length as usize) }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use tollbar_testing::headers::{Field, GSSAPI, named};

    named! {
        Buffer: "gss_buffer_desc";
        Oid: "gss_OID_desc";
        OidSet: "gss_OID_set_desc";
        KeyValue: "gss_key_value_element_desc";
        KeyValues: "gss_key_value_set_desc";
    }

    #[test]
    fn a_function_has_the_type_that_the_headers_give_it() {
        let fields = [
            Field::of("length", offset_of!(Buffer, length), |buffer: Buffer| buffer.length),
            Field::of("value", offset_of!(Buffer, value), |buffer: Buffer| buffer.value),
            Field::of("length", offset_of!(Oid, length), |oid: Oid| oid.length),
            Field::of("elements", offset_of!(Oid, elements), |oid: Oid| oid.elements),
            Field::of("count", offset_of!(OidSet, count), |set: OidSet| set.count),
            Field::of("elements", offset_of!(OidSet, elements), |set: OidSet| set.elements),
            Field::of("key", offset_of!(KeyValue, key), |one: KeyValue| one.key),
            Field::of("value", offset_of!(KeyValue, value), |one: KeyValue| one.value),
            Field::of("count", offset_of!(KeyValues, count), |all: KeyValues| all.count),
            Field::of("elements", offset_of!(KeyValues, elements), |all: KeyValues| all.elements),
        ];
        let compared = GSSAPI.compare(&Api::signatures(), &fields);
        assert!(compared.differs.is_empty() && compared.undeclared.is_empty(), "{compared:#?}");
    }
}
