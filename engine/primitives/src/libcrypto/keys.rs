//! Keys: reading, generating and encoding for a peer.

use std::ffi::{c_int, c_long};

use super::api::{Api, Handle, Owned, Param, ReadDer, ReadPem, c_name, have};
use crate::contract::Task;
use crate::failure::Failure;

/// Kind of key, as the library identifies it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Rsa {
        bits: c_int,
    },
    /// DSA: new keys use the domain parameters of the key that the task carries.
    Dsa,
    /// A curve, by the short name that every library has a number for.
    Curve(&'static str),
    /// A finite-field group of RFC 7919.
    Group(&'static str),
    /// A kind with a name and no parameters.
    Named(&'static str),
}

const GROUP_BY_NAME: &str = "EVP_PKEY_CTX_set_group_name, by which a finite-field group is chosen";
const EVP_PKEY_RSA: c_int = 6;
const EVP_PKEY_DSA: c_int = 116;
const EVP_PKEY_EC: c_int = 408;
/// Selections for [`from_data`]: a public key, or a key pair.
pub const EVP_PKEY_PUBLIC_KEY: c_int = 0x86;
pub const EVP_PKEY_KEYPAIR: c_int = 0x87;

/// A number that a key's context accepts: by a function, or by a command if OpenSSL 1.1.1 has only a macro.
pub struct Number {
    function: fn(&Api) -> Option<unsafe extern "C" fn(Handle, c_int) -> c_int>,
    key_kind: c_int,
    command: c_int,
}

const RSA_BITS: Number =
    Number { function: |api| api.EVP_PKEY_CTX_set_rsa_keygen_bits, key_kind: EVP_PKEY_RSA, command: 0x1003 };
const CURVE: Number = Number {
    function: |api| api.EVP_PKEY_CTX_set_ec_paramgen_curve_nid,
    key_kind: EVP_PKEY_EC,
    command: 0x1001,
};
pub const RSA_PADDING: Number =
    Number { function: |api| api.EVP_PKEY_CTX_set_rsa_padding, key_kind: EVP_PKEY_RSA, command: 0x1001 };
pub const RSA_SALT_BYTES: Number =
    Number { function: |api| api.EVP_PKEY_CTX_set_rsa_pss_saltlen, key_kind: EVP_PKEY_RSA, command: 0x1002 };

impl Number {
    /// Sets the number on a live context. Returns true if the context accepts it.
    pub fn set(&self, api: &Api, context: Handle, number: c_int) -> bool {
        // Any operation is allowed: the library refuses a number that does not apply to the context's.
        const ANY_OPERATION: c_int = -1;
        let done = match (self.function)(api) {
            // SAFETY: the caller's context is alive.
            Some(set) => unsafe { set(context, number) },
            None => {
                let control = (self.command, number);
                api.key_control(context, self.key_kind, ANY_OPERATION, control, std::ptr::null_mut())
            }
        };
        done == 1
    }
}

/// Reads the private key that the task carries.
pub fn given(api: &Api, task: &Task) -> Result<Owned, Failure> {
    let pem = task.text("private_key_pem");
    let pem = pem.ok_or_else(|| Failure::Failed("the input `private_key_pem` is missing".to_owned()))?;
    from_pem(api, pem)?.ok_or_else(|| api.failed("the private key cannot be read"))
}

/// Reads a private key. Returns None if the library cannot read it.
pub fn from_pem(api: &Api, pem: &str) -> Result<Option<Owned>, Failure> {
    let key = read_pem(api, api.PEM_read_bio_PrivateKey, pem)?;
    // SAFETY: the library has just made the key for this owner alone.
    Ok(unsafe { Owned::new(key, api.EVP_PKEY_free) })
}

/// Reads a key in PEM by the function for its form. Returns null if the library cannot read it.
pub fn read_pem(api: &Api, read: ReadPem, pem: &str) -> Result<Handle, Failure> {
    let null = std::ptr::null_mut();
    // SAFETY: the source is alive, and null means no key to reuse and no password callback.
    api.read_from(pem.as_bytes(), |source| unsafe {
        read(source, std::ptr::null_mut(), std::ptr::null(), null)
    })
}

/// Reads a key from a DER document by the function for its form.
///
/// # Safety
/// `read` reads keys, not other contents of a document.
pub unsafe fn from_der(api: &Api, read: ReadDer, der: &[u8]) -> Result<Owned, Failure> {
    let mut at = der.as_ptr();
    // SAFETY: the length is that of the document, and the caller promises that the result is a key.
    unsafe {
        let key = read(std::ptr::null_mut(), &mut at, der.len() as c_long);
        api.own(key, api.EVP_PKEY_free, "the key cannot be read")
    }
}

/// Returns the number of a kind of key or a curve with a short name, or 0 if the library has none.
fn number(api: &Api, name: &str) -> c_int {
    // SAFETY: the name ends with a zero.
    unsafe { (api.OBJ_sn2nid)(c_name(name).as_ptr()) }
}

/// Makes a context for a kind of key, by its number.
fn context_by_number(api: &Api, number: c_int) -> Handle {
    // SAFETY: the library refuses a number that is not a kind of key.
    unsafe { (api.EVP_PKEY_CTX_new_id)(number, std::ptr::null_mut()) }
}

/// Makes a context for a kind of key, by its name.
fn context_by_name(api: &Api, name: &str) -> Handle {
    match api.EVP_PKEY_CTX_new_from_name {
        // SAFETY: the name ends with a zero; a null library context and null properties mean the default
        // ones.
        Some(new) => unsafe { new(std::ptr::null_mut(), c_name(name).as_ptr(), std::ptr::null()) },
        None => match number(api, name) {
            0 => std::ptr::null_mut(),
            number => context_by_number(api, number),
        },
    }
}

/// Returns true if DSA keys work through `EVP_PKEY`; BoringSSL can only read them.
pub fn has_dsa(api: &Api) -> bool {
    // SAFETY: the library has just made the context for this owner alone.
    unsafe { Owned::new(context_by_number(api, EVP_PKEY_DSA), api.EVP_PKEY_CTX_free) }.is_some()
}

fn context_of(api: &Api, key: &Owned) -> Handle {
    // SAFETY: the key is alive.
    unsafe { (api.EVP_PKEY_CTX_new)(key.raw(), std::ptr::null_mut()) }
}

pub fn context(api: &Api, key: &Owned) -> Result<Owned, Failure> {
    // SAFETY: the library has just made the context for this owner alone.
    let context = unsafe { Owned::new(context_of(api, key), api.EVP_PKEY_CTX_free) };
    context.ok_or_else(|| api.unsupported("EVP_PKEY_CTX_new"))
}

/// Makes a context for a key, and initialises it by one of the library's `…_init`.
pub fn ready(
    api: &Api,
    key: &Owned,
    init: unsafe extern "C" fn(Handle) -> c_int,
    what: &str,
) -> Result<Owned, Failure> {
    let context = self::context(api, key)?;
    // SAFETY: the context is alive.
    if unsafe { init(context.raw()) } != 1 {
        return Err(api.unsupported(what));
    }
    Ok(context)
}

/// Generates a key as a program does: context, parameters, key. `like` gives DSA its parameters.
pub fn generate(api: &Api, kind: KeyKind, like: Option<&Owned>) -> Result<Owned, Failure> {
    let (name, context) = match (kind, like) {
        (KeyKind::Rsa { .. }, _) => ("RSA", context_by_number(api, EVP_PKEY_RSA)),
        (KeyKind::Curve(_), _) => ("EC", context_by_number(api, EVP_PKEY_EC)),
        (KeyKind::Group(_), _) => {
            have(api.EVP_PKEY_CTX_set_group_name, GROUP_BY_NAME)?;
            ("DH", context_by_name(api, "DH"))
        }
        (KeyKind::Named(name), _) => (name, context_by_name(api, name)),
        (KeyKind::Dsa, Some(like)) => ("DSA", context_of(api, like)),
        (KeyKind::Dsa, None) => {
            return Err(Failure::Failed("DSA needs a key that has the parameters".to_owned()));
        }
    };
    // SAFETY: the library has just made the context for this owner alone.
    let context = unsafe { Owned::new(context, api.EVP_PKEY_CTX_free) };
    let context = context.ok_or_else(|| api.unsupported(name))?;
    let mut key = std::ptr::null_mut();
    // SAFETY: the context is alive, and a key is written where one is expected.
    let done = unsafe {
        (api.EVP_PKEY_keygen_init)(context.raw()) == 1
            && set_parameters(api, kind, &context)?
            && (api.EVP_PKEY_keygen)(context.raw(), &mut key) == 1
    };
    // SAFETY: still null, or generated for this owner alone.
    let key = unsafe { Owned::new(key, api.EVP_PKEY_free) }.filter(|_| done);
    key.ok_or_else(|| api.unsupported("key generation"))
}

fn set_parameters(api: &Api, kind: KeyKind, context: &Owned) -> Result<bool, Failure> {
    match kind {
        KeyKind::Rsa { bits } => Ok(RSA_BITS.set(api, context.raw(), bits)),
        KeyKind::Curve(curve) => Ok(CURVE.set(api, context.raw(), number(api, curve))),
        KeyKind::Group(group) => {
            let set = have(api.EVP_PKEY_CTX_set_group_name, GROUP_BY_NAME)?;
            // SAFETY: the context is alive, and the name ends with a zero.
            Ok(unsafe { set(context.raw(), c_name(group).as_ptr()) } == 1)
        }
        KeyKind::Dsa | KeyKind::Named(_) => Ok(true),
    }
}

/// Returns the largest length of a signature by this key, or of a ciphertext to it.
pub fn output_bytes(api: &Api, key: &Owned) -> usize {
    let size = api.EVP_PKEY_get_size.or(api.EVP_PKEY_size);
    // SAFETY: the key is alive.
    let bytes = size.map_or(0, |size| unsafe { size(key.raw()) });
    usize::try_from(bytes).unwrap_or(0)
}

/// Returns the public half as in a TLS key share.
pub fn encoded_public(api: &Api, key: &Owned) -> Result<Vec<u8>, Failure> {
    let encode = have(
        api.EVP_PKEY_get1_encoded_public_key.or(api.EVP_PKEY_get1_tls_encodedpoint),
        "EVP_PKEY_get1_encoded_public_key",
    )?;
    let mut buffer = std::ptr::null_mut();
    // SAFETY: the key is alive, and the written buffer has the returned length.
    let encoded = unsafe {
        let length = encode(key.raw(), &mut buffer);
        if length == 0 || buffer.is_null() {
            return Err(api.failed("the public key cannot be encoded"));
        }
        std::slice::from_raw_parts(buffer, length).to_vec()
    };
    // SAFETY: the caller must free the buffer, by the library's own allocator.
    unsafe {
        match (api.CRYPTO_free, api.OPENSSL_free) {
            (Some(free), _) => free(buffer.cast(), std::ptr::null(), 0),
            (None, Some(free)) => free(buffer.cast()),
            (None, None) => (),
        }
    }
    Ok(encoded)
}

/// Reads a peer's key from its key share, with the parameters of one's own, as a TLS stack does with each
/// hello.
pub fn peer(api: &Api, kind: KeyKind, own_key: &Owned, encoded: &[u8]) -> Result<Owned, Failure> {
    const REFUSED: &str = "the peer's key share is refused";
    // Before OpenSSL 3, and in the forks, copying parameters does not make a key of a kind without any.
    if let (KeyKind::Named(name), None) = (kind, api.EVP_PKEY_set1_encoded_public_key) {
        let new = have(api.EVP_PKEY_new_raw_public_key, "EVP_PKEY_new_raw_public_key")?;
        let (kind, none) = (number(api, name), std::ptr::null_mut());
        // SAFETY: the length is that of the share, and the caller owns the key.
        return unsafe {
            api.own(new(kind, none, encoded.as_ptr(), encoded.len()), api.EVP_PKEY_free, REFUSED)
        };
    }
    let decode = have(
        api.EVP_PKEY_set1_encoded_public_key.or(api.EVP_PKEY_set1_tls_encodedpoint),
        "EVP_PKEY_set1_encoded_public_key",
    )?;
    // SAFETY: it takes no arguments, and gives a key that the caller owns.
    let peer = unsafe { api.own((api.EVP_PKEY_new)(), api.EVP_PKEY_free, "EVP_PKEY_new")? };
    // SAFETY: both keys are alive, and the length is that of the share.
    let done = unsafe {
        (api.EVP_PKEY_copy_parameters)(peer.raw(), own_key.raw()) == 1
            && decode(peer.raw(), encoded.as_ptr(), encoded.len()) == 1
    };
    api.ensure(done, REFUSED)?;
    Ok(peer)
}

/// Reads a private key from its bare bytes.
pub fn from_private(api: &Api, kind: KeyKind, private: &[u8]) -> Result<Owned, Failure> {
    match kind {
        KeyKind::Named(name) => {
            let new = have(api.EVP_PKEY_new_raw_private_key, "EVP_PKEY_new_raw_private_key")?;
            let (kind, none) = (number(api, name), std::ptr::null_mut());
            // SAFETY: the length is that of the key, which the caller owns.
            unsafe {
                let key = new(kind, none, private.as_ptr(), private.len());
                api.own(key, api.EVP_PKEY_free, "the private key cannot be read")
            }
        }
        KeyKind::Curve(curve) => {
            let der = [pkcs8_before_scalar(curve), private].concat();
            // SAFETY: it reads keys.
            unsafe { from_der(api, api.d2i_AutoPrivateKey, &der) }
        }
        KeyKind::Group(group) => {
            let number: Vec<u8> = private.iter().rev().copied().collect();
            let group = c_name(group);
            from_data(
                api,
                "DH",
                EVP_PKEY_KEYPAIR,
                vec![Param::utf8(c"group", &group), Param::number(c"priv", &number)],
            )
        }
        KeyKind::Rsa { .. } | KeyKind::Dsa => {
            Err(Failure::Failed("a key of this kind has more than one number".to_owned()))
        }
    }
}

/// Returns the bytes of PKCS#8 that precede a bare scalar.
fn pkcs8_before_scalar(curve: &str) -> &'static [u8] {
    match curve {
        "prime256v1" => &[
            0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
            0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01,
            0x01, 0x04, 0x20,
        ],
        _ => &[
            0x30, 0x4e, 0x02, 0x01, 0x00, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
            0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22, 0x04, 0x37, 0x30, 0x35, 0x02, 0x01, 0x01, 0x04, 0x30,
        ],
    }
}

/// Makes a key from bare values, as OpenSSL 3 accepts them.
pub fn from_data(api: &Api, name: &str, selection: c_int, mut values: Vec<Param>) -> Result<Owned, Failure> {
    let init = have(api.EVP_PKEY_fromdata_init, "EVP_PKEY_fromdata")?;
    let from_data = have(api.EVP_PKEY_fromdata, "EVP_PKEY_fromdata")?;
    // SAFETY: the library has just made the context for this owner alone.
    let context = unsafe { Owned::new(context_by_name(api, name), api.EVP_PKEY_CTX_free) };
    let context = context.ok_or_else(|| api.unsupported(name))?;
    values.push(Param::end());
    let mut key = std::ptr::null_mut();
    // SAFETY: context and values are alive.
    let done = unsafe {
        let values = Param::list(&mut values);
        init(context.raw()) == 1 && from_data(context.raw(), &mut key, selection, values) == 1
    };
    api.ensure(done, "EVP_PKEY_fromdata")?;
    // SAFETY: the library has just made the key for this owner alone.
    unsafe { api.own(key, api.EVP_PKEY_free, "EVP_PKEY_fromdata") }
}
