//! A cipher made ready for one direction, and the calls that a message takes.

use std::ffi::c_int;

use super::super::api::{Api, Handle, Owned};
use super::{Mode, Row, TAG_BYTES};
use crate::contract::Failure;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Encrypt,
    Decrypt,
}

pub struct Cipher {
    pub api: &'static Api,
    pub row: &'static Row,
    pub handle: Handle,
}

impl Cipher {
    /// A context for one direction; with a key its schedule is made here, once.
    pub fn context(&self, way: Way, key: Option<&[u8]>) -> Result<Context, Failure> {
        let api = self.api;
        let owned = Owned::new(unsafe { (api.EVP_CIPHER_CTX_new)() }, api.EVP_CIPHER_CTX_free);
        let context = owned.ok_or_else(|| api.failed("EVP_CIPHER_CTX_new"))?;
        let context = Context { api, mode: self.row.mode, way, context };
        context.init(self.handle, key.unwrap_or_default(), &[])?;
        Ok(context)
    }
}

pub struct Context {
    api: &'static Api,
    mode: Mode,
    way: Way,
    context: Owned,
}

const CTRL_AEAD_GET_TAG: c_int = 0x10;
const CTRL_AEAD_SET_TAG: c_int = 0x11;

impl Context {
    /// `EVP_EncryptInit_ex` or its twin; what is empty or null stays as it was.
    pub fn init(&self, cipher: Handle, key: &[u8], iv: &[u8]) -> Result<(), Failure> {
        let pointer = |bytes: &[u8]| if bytes.is_empty() { std::ptr::null() } else { bytes.as_ptr() };
        let init = match self.way {
            Way::Encrypt => self.api.EVP_EncryptInit_ex,
            Way::Decrypt => self.api.EVP_DecryptInit_ex,
        };
        let null = std::ptr::null_mut();
        let done = unsafe { init(self.context.handle, cipher, null, pointer(key), pointer(iv)) };
        if done == 1 { Ok(()) } else { Err(self.api.failed("the cipher cannot be set up")) }
    }

    pub fn without_padding(self) -> Self {
        unsafe { (self.api.EVP_CIPHER_CTX_set_padding)(self.context.handle, 0) };
        self
    }

    pub fn associate(&self, aad: &[u8]) -> Result<(), Failure> {
        let mut length = 0;
        let null = std::ptr::null_mut();
        let update = match self.way {
            Way::Encrypt => self.api.EVP_EncryptUpdate,
            Way::Decrypt => self.api.EVP_DecryptUpdate,
        };
        let done =
            unsafe { update(self.context.handle, null, &mut length, aad.as_ptr(), aad.len() as c_int) };
        if done == 1 { Ok(()) } else { Err(self.api.failed("associated data")) }
    }

    /// Sets the vector, encrypts and, for an AEAD, takes the tag. Returns the ciphertext's length.
    pub fn seal(&self, iv: &[u8], data: &[u8], out: &mut [u8], tag: &mut [u8]) -> Result<usize, Failure> {
        self.init(std::ptr::null_mut(), &[], iv)?;
        self.seal_ready(data, out, tag)
    }

    pub fn seal_ready(&self, data: &[u8], out: &mut [u8], tag: &mut [u8]) -> Result<usize, Failure> {
        let (api, context) = (self.api, self.context.handle);
        let (mut length, mut rest) = (0, 0);
        let done = unsafe {
            (api.EVP_EncryptUpdate)(
                context,
                out.as_mut_ptr(),
                &mut length,
                data.as_ptr(),
                data.len() as c_int,
            ) == 1
                && (api.EVP_EncryptFinal_ex)(context, out.as_mut_ptr().add(length as usize), &mut rest) == 1
                && (self.mode != Mode::Aead
                    || (api.EVP_CIPHER_CTX_ctrl)(
                        context,
                        CTRL_AEAD_GET_TAG,
                        TAG_BYTES as c_int,
                        tag.as_mut_ptr().cast(),
                    ) == 1)
        };
        if done { Ok((length + rest) as usize) } else { Err(api.failed("encrypt")) }
    }

    /// Sets the vector, decrypts and, for an AEAD, checks the tag. Returns the plaintext's length.
    pub fn open(&self, iv: &[u8], sealed: &[u8], tag: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        self.init(std::ptr::null_mut(), &[], iv)?;
        self.open_ready(sealed, tag, out)
    }

    pub fn open_ready(&self, sealed: &[u8], tag: &[u8], out: &mut [u8]) -> Result<usize, Failure> {
        let (api, context) = (self.api, self.context.handle);
        let (mut length, mut rest) = (0, 0);
        let done = unsafe {
            (api.EVP_DecryptUpdate)(
                context,
                out.as_mut_ptr(),
                &mut length,
                sealed.as_ptr(),
                sealed.len() as c_int,
            ) == 1
                && (self.mode != Mode::Aead
                    || (api.EVP_CIPHER_CTX_ctrl)(
                        context,
                        CTRL_AEAD_SET_TAG,
                        TAG_BYTES as c_int,
                        tag.as_ptr().cast_mut().cast(),
                    ) == 1)
                && (api.EVP_DecryptFinal_ex)(context, out.as_mut_ptr().add(length as usize), &mut rest) == 1
        };
        if done { Ok((length + rest) as usize) } else { Err(api.failed("decrypt")) }
    }
}
