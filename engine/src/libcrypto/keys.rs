//! Keys: read, generated, and turned into what goes over a wire.

use std::ffi::c_int;

use super::api::{Api, Handle, Owned, Param, c_name, have};
use crate::contract::{Failure, Task};

/// How a kind of key is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Rsa {
        bits: c_int,
    },
    /// New keys come from the domain parameters of the key that the task carries.
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
const EVP_PKEY_EC: c_int = 408;
const OP_KEYGEN: c_int = 1 << 2;
const OP_PARAMGEN: c_int = 1 << 1;
// Numbers of EVP_PKEY_CTX_ctrl in OpenSSL 1.1.1, where these are macros and not functions.
const CTRL_RSA_KEYGEN_BITS: c_int = 0x1003;
const CTRL_EC_CURVE_NID: c_int = 0x1001;

/// The private key that the task carries.
pub fn given(api: &'static Api, task: &Task) -> Result<Owned, Failure> {
    let pem = task.text("private_key_pem");
    let pem = pem.ok_or_else(|| Failure::Failed("the input `private_key_pem` is missing".to_owned()))?;
    from_pem(api, pem)
}

pub fn from_pem(api: &'static Api, pem: &str) -> Result<Owned, Failure> {
    let null: Handle = std::ptr::null_mut();
    let read = api.PEM_read_bio_PrivateKey;
    let key = api.read_from(pem.as_bytes(), |source| unsafe {
        read(source, std::ptr::null_mut(), std::ptr::null(), null)
    })?;
    own(api, key, "the private key cannot be read")
}

pub fn own(api: &'static Api, key: Handle, trying: &str) -> Result<Owned, Failure> {
    Owned::new(key, api.EVP_PKEY_free).ok_or_else(|| api.failed(trying))
}

/// A context of a named kind of key.
fn context_of(api: &'static Api, name: &str) -> Result<Owned, Failure> {
    let null: Handle = std::ptr::null_mut();
    let context = match api.EVP_PKEY_CTX_new_from_name {
        Some(new) => unsafe { new(null, c_name(name).as_ptr(), std::ptr::null()) },
        None => match unsafe { (api.OBJ_sn2nid)(c_name(name).as_ptr()) } {
            0 => null,
            number => unsafe { (api.EVP_PKEY_CTX_new_id)(number, null) },
        },
    };
    Owned::new(context, api.EVP_PKEY_CTX_free).ok_or_else(|| api.unsupported(name))
}

pub fn context(api: &Api, key: &Owned) -> Result<Owned, Failure> {
    let context = unsafe { (api.EVP_PKEY_CTX_new)(key.handle, std::ptr::null_mut()) };
    Owned::new(context, api.EVP_PKEY_CTX_free).ok_or_else(|| api.unsupported("EVP_PKEY_CTX_new"))
}

/// A new key, as a program makes one: context, parameters, key. `like` gives DSA its parameters.
pub fn generate(api: &'static Api, kind: Kind, like: Option<&Owned>) -> Result<Owned, Failure> {
    let context = match (kind, like) {
        (Kind::Rsa { .. }, _) => Owned::new(
            unsafe { (api.EVP_PKEY_CTX_new_id)(EVP_PKEY_RSA, std::ptr::null_mut()) },
            api.EVP_PKEY_CTX_free,
        )
        .ok_or_else(|| api.unsupported("RSA"))?,
        (Kind::Curve(_), _) => Owned::new(
            unsafe { (api.EVP_PKEY_CTX_new_id)(EVP_PKEY_EC, std::ptr::null_mut()) },
            api.EVP_PKEY_CTX_free,
        )
        .ok_or_else(|| api.unsupported("EC"))?,
        (Kind::Dsa, Some(like)) => self::context(api, like)?,
        (Kind::Dsa, None) => {
            return Err(Failure::Failed("DSA needs a key to take parameters from".to_owned()));
        }
        (Kind::Group(_), _) => {
            have(api.EVP_PKEY_CTX_set_group_name, GROUP_BY_NAME)?;
            context_of(api, "DH")?
        }
        (Kind::Named(name), _) => context_of(api, name)?,
    };
    if unsafe { (api.EVP_PKEY_keygen_init)(context.handle) } != 1 {
        return Err(api.unsupported("key generation"));
    }
    if !set_parameters(api, kind, &context)? {
        return Err(api.unsupported("parameters of a new key"));
    }
    let mut key = std::ptr::null_mut();
    if unsafe { (api.EVP_PKEY_keygen)(context.handle, &mut key) } != 1 {
        return Err(api.unsupported("key generation"));
    }
    own(api, key, "key generation")
}

fn set_parameters(api: &'static Api, kind: Kind, context: &Owned) -> Result<bool, Failure> {
    let context = context.handle;
    let null: Handle = std::ptr::null_mut();
    let both = OP_PARAMGEN | OP_KEYGEN;
    let done = match kind {
        Kind::Rsa { bits } => match api.EVP_PKEY_CTX_set_rsa_keygen_bits {
            Some(set) => unsafe { set(context, bits) },
            None => api.key_control(context, EVP_PKEY_RSA, OP_KEYGEN, CTRL_RSA_KEYGEN_BITS, bits, null),
        },
        Kind::Curve(curve) => {
            let number = unsafe { (api.OBJ_sn2nid)(c_name(curve).as_ptr()) };
            match api.EVP_PKEY_CTX_set_ec_paramgen_curve_nid {
                Some(set) => unsafe { set(context, number) },
                None => api.key_control(context, EVP_PKEY_EC, both, CTRL_EC_CURVE_NID, number, null),
            }
        }
        Kind::Group(group) => unsafe {
            have(api.EVP_PKEY_CTX_set_group_name, GROUP_BY_NAME)?(context, c_name(group).as_ptr())
        },
        Kind::Dsa | Kind::Named(_) => 1,
    };
    Ok(done == 1)
}

/// The public half, as TLS puts it into a key share. Copied, and the library's own buffer let go by leaking:
/// the free function's name differs between libraries, and this runs once in a process.
pub fn encoded_public(api: &'static Api, key: &Owned) -> Result<Vec<u8>, Failure> {
    let encode = have(
        api.EVP_PKEY_get1_encoded_public_key.or(api.EVP_PKEY_get1_tls_encodedpoint),
        "EVP_PKEY_get1_encoded_public_key",
    )?;
    let mut buffer = std::ptr::null_mut();
    let length = unsafe { encode(key.handle, &mut buffer) };
    if length == 0 || buffer.is_null() {
        return Err(api.failed("the public key cannot be encoded"));
    }
    Ok(unsafe { std::slice::from_raw_parts(buffer, length) }.to_vec())
}

/// A peer's key from its key share, with the parameters of one's own: what a TLS stack does with each hello.
pub fn peer(api: &'static Api, kind: Kind, own_key: &Owned, encoded: &[u8]) -> Result<Owned, Failure> {
    let (encoded_at, length) = (encoded.as_ptr(), encoded.len());
    // Before OpenSSL 3, and in the forks, a kind without parameters is not made by copying them.
    if let (Kind::Named(name), None) = (kind, api.EVP_PKEY_set1_encoded_public_key) {
        let new = have(api.EVP_PKEY_new_raw_public_key, "EVP_PKEY_new_raw_public_key")?;
        let number = unsafe { (api.OBJ_sn2nid)(c_name(name).as_ptr()) };
        let key = unsafe { new(number, std::ptr::null_mut(), encoded_at, length) };
        return own(api, key, "the peer's key share is refused");
    }
    let decode = have(
        api.EVP_PKEY_set1_encoded_public_key.or(api.EVP_PKEY_set1_tls_encodedpoint),
        "EVP_PKEY_set1_encoded_public_key",
    )?;
    let peer = own(api, unsafe { (api.EVP_PKEY_new)() }, "EVP_PKEY_new")?;
    let done = unsafe {
        (api.EVP_PKEY_copy_parameters)(peer.handle, own_key.handle) == 1
            && decode(peer.handle, encoded_at, length) == 1
    };
    if done { Ok(peer) } else { Err(api.failed("the peer's key share is refused")) }
}

/// A key from bare values, as OpenSSL 3 takes them.
pub fn from_data(api: &'static Api, name: &str, mut values: Vec<Param>) -> Result<Owned, Failure> {
    const EVP_PKEY_KEYPAIR: c_int = 0x87;
    let null = std::ptr::null_mut();
    let new = have(api.EVP_PKEY_CTX_new_from_name, "EVP_PKEY_CTX_new_from_name")?;
    let (init, from_data) = (have(api.EVP_PKEY_fromdata_init, "EVP_PKEY_fromdata")?, api.EVP_PKEY_fromdata);
    let context =
        Owned::new(unsafe { new(null, c_name(name).as_ptr(), std::ptr::null()) }, api.EVP_PKEY_CTX_free);
    let context = context.ok_or_else(|| api.unsupported(name))?;
    values.push(Param::end());
    let mut key = null;
    let done = unsafe {
        init(context.handle) == 1
            && have(from_data, "EVP_PKEY_fromdata")?(
                context.handle,
                &mut key,
                EVP_PKEY_KEYPAIR,
                values.as_mut_ptr(),
            ) == 1
    };
    if done { own(api, key, "EVP_PKEY_fromdata") } else { Err(api.failed("EVP_PKEY_fromdata")) }
}
