//! Client side of Kerberos and NTLM, performed by the machine's own GSSAPI library.
//!
//! Libkrb5 finds its files through environment variables. They are set before it is loaded, so that nothing
//! outside the run is read or written, whatever the user's environment contains.

mod api;

use std::ffi::{CString, OsStr, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::binding;
use crate::failure::Failure;
use api::{Api, Buffer, Handle, Lent, Oid, OidSet, Release, TicketCache};

const FILE: &str = "libgssapi_krb5.so.2";

/// Protocols of a context.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// SPNEGO (RFC 4178) around Kerberos, as `Negotiate` carries it.
    Spnego,
    /// Kerberos alone, which can use a ticket cache; SPNEGO cannot.
    Kerberos,
    /// NTLM alone, by its own module.
    Ntlm,
}

static SPNEGO: Oid = Oid::of(b"\x2b\x06\x01\x05\x05\x02");
static KERBEROS: Oid = Oid::of(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02");
static NTLM: Oid = Oid::of(b"\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a");
static USER_NAME: Oid = Oid::of(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01");
static HOST_BASED_SERVICE: Oid = Oid::of(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04");

impl Mechanism {
    fn oid(self) -> &'static Oid {
        match self {
            Mechanism::Spnego => &SPNEGO,
            Mechanism::Kerberos => &KERBEROS,
            Mechanism::Ntlm => &NTLM,
        }
    }

    /// Returns true if a context's first token names this mechanism, after the token's length (RFC 2743
    /// section 3.1).
    pub fn is_of(self, token: &[u8]) -> bool {
        const APPLICATION_0: u8 = 0x60;
        const OBJECT_IDENTIFIER: u8 = 6;
        // DER encodes lengths below 128 in one byte; the first byte of a longer one is the number of bytes
        // that follow.
        let [APPLICATION_0, length, ..] = token else { return false };
        let length_bytes = if length & 0x80 == 0 { 0 } else { usize::from(length & 0x7f) };
        let elements = self.oid().elements();
        let named = [&[OBJECT_IDENTIFIER, elements.len() as u8], elements].concat();
        token.get(2 + length_bytes..).is_some_and(|token| token.starts_with(&named))
    }

    /// Returns the package of Debian, Fedora and their derivatives that contains the mechanism.
    fn package(self) -> &'static str {
        match self {
            Mechanism::Spnego | Mechanism::Kerberos => "libgssapi-krb5-2 (Debian), krb5-libs (Fedora)",
            Mechanism::Ntlm => "gss-ntlmssp (Debian), gssntlmssp (Fedora)",
        }
    }

    /// Returns the modules that the library loads. With NTLM's, SPNEGO would silently switch to NTLM if
    /// Kerberos fails.
    fn modules(self) -> Option<&'static str> {
        match self {
            Mechanism::Spnego | Mechanism::Kerberos => Some("/dev/null"),
            Mechanism::Ntlm => None,
        }
    }
}

/// `GSS_C_DELEG_FLAG`, as the library returns it; `GSS_C_MUTUAL_FLAG`; `GSS_C_DELEG_POLICY_FLAG`: the user's
/// ticket is forwarded only to services that the directory trusts for delegation (`ok-as-delegate` in their
/// tickets).
const DELEGATED: u32 = 1;
const MUTUAL: u32 = 2;
const DELEGATE_BY_POLICY: u32 = 0x8000;

const INITIATE: c_int = 1;
const OVERWRITE: u32 = 1;
/// Bits of a status that are errors: its upper half.
const ERRORS: u32 = 0xffff_0000;
const CONTINUE_NEEDED: u32 = 1;

pub struct Library {
    api: &'static Api,
    pub version: String,
}

/// Opens the library with this configuration of Kerberos, once for the life of the process.
///
/// Call it before other threads read the environment, which it changes.
pub fn open(mechanism: Mechanism, krb5_config: Option<&Path>) -> Result<&'static Library, Failure> {
    static LIBRARY: OnceLock<Result<Library, Failure>> = OnceLock::new();
    let made = LIBRARY.get_or_init(|| {
        let variables = [
            ("KRB5_CONFIG", krb5_config.map(Path::as_os_str)),
            ("KRB5CCNAME", Some(OsStr::new("MEMORY:tollbar"))),
            ("KRB5_CLIENT_KTNAME", Some(OsStr::new("MEMORY:tollbar"))),
            ("GSS_USE_PROXY", Some(OsStr::new("no"))),
            ("GSS_MECH_CONFIG", mechanism.modules().map(OsStr::new)),
        ];
        for (name, value) in variables {
            if let Some(value) = value {
                // SAFETY: the caller promises that no other thread reads the environment now.
                unsafe { std::env::set_var(name, value) };
            }
        }
        Library::load(Path::new(FILE))
    });
    let library = made.as_ref().map_err(Failure::clone)?;
    library.ensure_has(mechanism)?;
    Ok(library)
}

impl Library {
    fn load(file: &Path) -> Result<Library, Failure> {
        let api = binding::open(file, "GSSAPI library", Api::bind);
        let api = api.map_err(|words| {
            Failure::Unsupported(format!("{words}; the package is {}", Mechanism::Spnego.package()))
        })?;
        let version = version(api).unwrap_or_else(|| FILE.to_owned());
        Ok(Library { api, version })
    }

    /// Fails, and names the package, if the library does not support a mechanism.
    fn ensure_has(&self, mechanism: Mechanism) -> Result<(), Failure> {
        let (mut minor, mut mechanisms, mut has) = (0, null_mut(), 0);
        // SAFETY: the set is the library's own until it is released, once.
        unsafe {
            (self.api.gss_indicate_mechs)(&mut minor, &mut mechanisms);
            (self.api.gss_test_oid_set_member)(&mut minor, mechanism.oid(), mechanisms, &mut has);
            (self.api.gss_release_oid_set)(&mut minor, &mut mechanisms);
        }
        if has == 0 {
            let (version, package) = (&self.version, mechanism.package());
            let words = format!("{version} has no {mechanism:?} mechanism; the package is {package}");
            return Err(Failure::Unsupported(words));
        }
        Ok(())
    }

    /// Makes the name of a user: `u00500`, `u00500@REALM`; for NTLM `DOMAIN\u00500` as well.
    pub fn user(&self, name: &str) -> Result<Name<'_>, String> {
        self.name(name, &USER_NAME)
    }

    /// Makes the name of a service, for example `HTTP@web1.tollbar.test`.
    pub fn service(&self, name: &str) -> Result<Name<'_>, String> {
        self.name(name, &HOST_BASED_SERVICE)
    }

    fn name(&self, text: &str, kind: &Oid) -> Result<Name<'_>, String> {
        let (mut minor, mut handle) = (0, null_mut());
        // SAFETY: the text outlives the call.
        let major = unsafe {
            (self.api.gss_import_name)(&mut minor, Lent::of(text.as_bytes()).raw(), kind, &mut handle)
        };
        self.check(major, minor, kind)?;
        // SAFETY: the library has just made the name for this owner alone.
        Ok(Name(unsafe { Object::new(handle, self.api.gss_release_name) }))
    }

    /// Gets credentials of a user, in memory of their own. With Kerberos that is an exchange with the KDC
    /// (AS).
    pub fn sign_in(
        &self,
        mechanism: Mechanism,
        user: &Name,
        password: &str,
    ) -> Result<Credentials<'_>, String> {
        let (mut minor, mut handle) = (0, null_mut());
        // The module of NTLM reads up to a zero byte, whatever the length is.
        let ended = CString::new(password).map_err(|_| "a password with a zero in it".to_owned())?;
        let password = Lent::of(ended.as_bytes());
        let mechanisms = OidSet::of(mechanism.oid());
        // SAFETY: the inputs outlive the call, and null means that an output is not requested.
        let major = unsafe {
            (self.api.gss_acquire_cred_with_password)(
                &mut minor,
                user.0.handle,
                password.raw(),
                u32::MAX,
                &mechanisms,
                INITIATE,
                &mut handle,
                null_mut(),
                null_mut(),
            )
        };
        self.check(major, minor, mechanism.oid())?;
        // SAFETY: the library has just made the credentials for this owner alone.
        Ok(Credentials(unsafe { Object::new(handle, self.api.gss_release_cred) }))
    }

    /// Gets credentials of a user from a ticket cache on the disk, without an exchange while its tickets are
    /// valid.
    pub fn signed_in(
        &self,
        mechanism: Mechanism,
        user: &Name,
        tickets: &Path,
    ) -> Result<Credentials<'_>, String> {
        let (mut minor, mut handle) = (0, null_mut());
        let name = cache_name(tickets)?;
        let cache = TicketCache::named(&name);
        let mechanisms = OidSet::of(mechanism.oid());
        // SAFETY: the inputs outlive the call, and null means that an output is not requested.
        let major = unsafe {
            (self.api.gss_acquire_cred_from)(
                &mut minor,
                user.0.handle,
                u32::MAX,
                &mechanisms,
                INITIATE,
                &cache.raw(),
                &mut handle,
                null_mut(),
                null_mut(),
            )
        };
        self.check(major, minor, mechanism.oid())?;
        // SAFETY: the library has just made the credentials for this owner alone.
        Ok(Credentials(unsafe { Object::new(handle, self.api.gss_release_cred) }))
    }

    /// Signs a user in, gets a ticket for the service, and writes both to a cache on the disk that only its
    /// owner can read.
    pub fn fetch(&self, user: &Name, password: &str, service: &Name, tickets: &Path) -> Result<(), String> {
        let credentials = self.sign_in(Mechanism::Kerberos, user, password)?;
        self.context(Mechanism::Kerberos).step(&credentials, service, &[])?;
        let mut minor = 0;
        let name = cache_name(tickets)?;
        let cache = TicketCache::named(&name);
        // SAFETY: the inputs outlive the call, and null means that an output is not requested.
        let major = unsafe {
            (self.api.gss_store_cred_into)(
                &mut minor,
                credentials.0.handle,
                INITIATE,
                Mechanism::Kerberos.oid(),
                OVERWRITE,
                0,
                &cache.raw(),
                null_mut(),
                null_mut(),
            )
        };
        self.check(major, minor, Mechanism::Kerberos.oid())
    }

    /// Begins a context with mutual authentication, which forwards the user's ticket if the directory allows
    /// it. Nothing is done before its first step.
    pub fn context(&self, mechanism: Mechanism) -> Context<'_> {
        let flags = match mechanism {
            Mechanism::Spnego | Mechanism::Kerberos => MUTUAL | DELEGATE_BY_POLICY,
            Mechanism::Ntlm => MUTUAL,
        };
        Context { library: self, mechanism, flags, handle: null_mut() }
    }

    fn check(&self, major: u32, minor: u32, mechanism: &Oid) -> Result<(), String> {
        if major & ERRORS == 0 { Ok(()) } else { Err(self.words(major, minor, mechanism)) }
    }

    /// Returns the library's message for a status: the mechanism's, or GSSAPI's if the mechanism has none.
    fn words(&self, major: u32, minor: u32, mechanism: &Oid) -> String {
        const GSSAPI_CODE: c_int = 1;
        const MECHANISM_CODE: c_int = 2;
        let text = |code, kind| {
            let (mut ignored, mut more, mut buffer) = (0, 0, Buffer::EMPTY);
            // SAFETY: the buffer is the library's until it is released, once; an empty one may be.
            unsafe {
                (self.api.gss_display_status)(&mut ignored, code, kind, mechanism, &mut more, &mut buffer);
                let text = String::from_utf8_lossy(taken(&buffer)).into_owned();
                (self.api.gss_release_buffer)(&mut ignored, &mut buffer);
                text
            }
        };
        let words = if minor == 0 { String::new() } else { text(minor, MECHANISM_CODE) };
        if words.is_empty() { text(major, GSSAPI_CODE) } else { words }
    }
}

/// Returns libkrb5's name for a file of tickets.
fn cache_name(tickets: &Path) -> Result<CString, String> {
    let name = [b"FILE:", tickets.as_os_str().as_bytes()].concat();
    CString::new(name).map_err(|_| "a path with a zero in it".to_owned())
}

/// Returns the bytes of a buffer.
///
/// # Safety
/// The library filled in the buffer and has not released it, or it is empty.
unsafe fn taken(buffer: &Buffer) -> &[u8] {
    if buffer.length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(buffer.value.cast(), buffer.length) }
}

/// Returns the version, for example `MIT krb5-1.20.1-final`: libkrb5 has no function for it, but its data
/// contain it.
fn version(api: &Api) -> Option<String> {
    const BRAND: &[u8] = b"KRB5_BRAND: ";
    let file = std::fs::read(binding::file_of(api.krb5_free_context? as *const _)?).ok()?;
    let at = file.windows(BRAND.len()).position(|bytes| bytes == BRAND)? + BRAND.len();
    let words = file[at..].split(|byte| !byte.is_ascii_graphic()).next()?;
    Some(format!("MIT {}", String::from_utf8_lossy(words)))
}

/// An object of the library, released when it goes out of scope.
struct Object<'a> {
    handle: Handle,
    release: Release,
    library: PhantomData<&'a Library>,
}

impl Object<'_> {
    /// Takes ownership of an object.
    ///
    /// # Safety
    /// The handle is null, or an object of an open library that only the caller may release, by `release`.
    unsafe fn new<'a>(handle: Handle, release: Release) -> Object<'a> {
        Object { handle, release, library: PhantomData }
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: its maker promised that only this owner releases it.
        unsafe { (self.release)(&mut minor, &mut self.handle) };
    }
}

pub struct Name<'a>(Object<'a>);

pub struct Credentials<'a>(Object<'a>);

/// An authentication: tokens are sent to a server and back until both sides are satisfied.
pub struct Context<'a> {
    library: &'a Library,
    mechanism: Mechanism,
    flags: u32,
    handle: Handle,
}

/// Result of a step.
#[derive(Debug)]
pub struct Step {
    /// Token to send; empty if there is none.
    pub token: Vec<u8>,
    /// True if the server has proved its identity, as far as the mechanism provides for it.
    pub is_complete: bool,
    /// True if the server got the user's ticket. Known once the context is complete.
    pub has_delegated: bool,
}

impl Context<'_> {
    /// Takes the server's token, which is empty at first. With Kerberos the first step of a user's first
    /// context is an exchange with the KDC (TGS).
    pub fn step(&mut self, credentials: &Credentials, service: &Name, came: &[u8]) -> Result<Step, String> {
        let (mut minor, mut token, mut answered) = (0, Buffer::EMPTY, 0);
        let lent = Lent::of(came);
        let input = if came.is_empty() { null() } else { lent.raw() };
        // SAFETY: the inputs outlive the call, and the context belongs to this object alone.
        let major = unsafe {
            (self.library.api.gss_init_sec_context)(
                &mut minor,
                credentials.0.handle,
                &mut self.handle,
                service.0.handle,
                self.mechanism.oid(),
                self.flags,
                0,
                null_mut(),
                input,
                null_mut(),
                &mut token,
                &mut answered,
                null_mut(),
            )
        };
        // SAFETY: the buffer is the library's until it is released, once.
        let to_send = unsafe {
            let to_send = taken(&token).to_vec();
            (self.library.api.gss_release_buffer)(&mut 0, &mut token);
            to_send
        };
        self.library.check(major, minor, self.mechanism.oid())?;
        Ok(Step {
            token: to_send,
            is_complete: major & CONTINUE_NEEDED == 0,
            has_delegated: answered & DELEGATED != 0,
        })
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the handle is null or the library's own, and released only here.
        unsafe { (self.library.api.gss_delete_sec_context)(&mut minor, &mut self.handle, null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_the_mechanism_that_it_names() {
        // Heads of a token of 5 and of one of 700 bytes, as in RFC 2743 section 3.1.
        let short = b"\x60\x0b\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
        let long = b"\x60\x82\x02\xbc\x06\x06\x2b\x06\x01\x05\x05\x02\xa0";
        assert!(Mechanism::Kerberos.is_of(short) && !Mechanism::Spnego.is_of(short));
        assert!(Mechanism::Spnego.is_of(long) && !Mechanism::Kerberos.is_of(long));
        for broken in [&b""[..], b"\x60", b"\x60\xff", b"NTLMSSP", &long[..7]] {
            assert!(!Mechanism::Spnego.is_of(broken), "{broken:?}");
        }
    }

    /// A missing library, or another one under its name, is reported with the package that contains it.
    #[test]
    fn a_library_that_is_not_there_is_unsupported() {
        for file in ["libgssapi_krb5.so.999", "libc.so.6"] {
            let refusal = Library::load(Path::new(file)).err().expect(file);
            let Failure::Unsupported(words) = refusal else { panic!("{refusal:?}") };
            assert!(words.contains(file) && words.contains("libgssapi-krb5-2"), "{words}");
        }
    }
}
