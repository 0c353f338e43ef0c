//! Shared state of connections of one kind: an `SSL_CTX` with exactly the requested configuration.

use std::ffi::c_int;

use super::api::{Api, Handle, Owned, c_name};
use super::dialect::Dialect;
use crate::failure::Failure;
use crate::libcrypto::keys;
use crate::spec::{Asked, Cipher, Identity, KeyExchange, MacOrder, Protocol, Signer};

pub const OPTION_NO_TICKET: u32 = 1 << 14;
/// Option of OpenSSL only: the forks do not have encrypt-then-MAC.
const OPTION_NO_ENCRYPT_THEN_MAC: u32 = 1 << 19;
pub const VERIFY_PEER: c_int = 1;
pub const CACHE_OFF: c_int = 0;
pub const CACHE_CLIENT_OWN: c_int = 0x1 | 0x300;
pub const CACHE_SERVER: c_int = 0x2;

pub struct Context {
    pub api: &'static Api,
    handle: Owned,
    /// Size of the group for finite-field exchanges, which a server's connections do not keep. 0: none.
    pub group_bits: c_int,
    /// Only group to agree on, if there is only one.
    pub only_group: Option<&'static str>,
}

// SAFETY: a context counts its references atomically, and locks the state that its connections share. Every
// other change takes it mutably.
unsafe impl Sync for Context {}

#[derive(Clone, Copy)]
pub enum Method {
    Client,
    Server,
}

impl Context {
    /// Makes a context. With `curves_of_peer` it accepts peer certificates on other curves than that of the
    /// key exchange.
    pub fn new(
        api: &'static Api,
        method: Method,
        asked: Asked,
        curves_of_peer: bool,
    ) -> Result<Context, Failure> {
        api.clear_errors();
        let method = match method {
            Method::Client => api.TLS_client_method,
            Method::Server => api.TLS_server_method,
        };
        // SAFETY: it takes no arguments.
        let method = unsafe { method() };
        if method.is_null() {
            return Err(api.unsupported("TLS"));
        }
        // SAFETY: the library owns the method, and this owner must free the context.
        let handle = unsafe { Owned::new((api.SSL_CTX_new)(method), api.SSL_CTX_free) };
        let handle = handle.ok_or_else(|| api.unsupported("SSL_CTX_new"))?;
        let mut context = Context { api, handle, group_bits: 0, only_group: None };
        api.dialect.settle(&context.handle);
        context.configure(asked, curves_of_peer)?;
        Ok(context)
    }

    pub fn raw(&self) -> Handle {
        self.handle.raw()
    }

    pub fn option(&mut self, option: u32) {
        self.api.dialect.options(&self.handle, option);
    }

    pub fn session_cache(&mut self, mode: c_int) {
        self.api.dialect.session_cache(&self.handle, mode);
    }

    /// Sets the name of the server whose sessions these are.
    pub fn sessions_of(&mut self, name: &[u8]) -> Result<(), Failure> {
        self.ensure("the name for sessions", |dialect, context| dialect.sessions_of(context, name))
    }

    /// Makes connections with a CBC suite agree on this order only.
    pub fn mac_order(&mut self, order: MacOrder) -> Result<(), Failure> {
        match (order, self.api.dialect.is_fork()) {
            (MacOrder::MacThenEncrypt, true) | (MacOrder::EncryptThenMac, false) => Ok(()),
            (MacOrder::MacThenEncrypt, false) => {
                self.option(OPTION_NO_ENCRYPT_THEN_MAC);
                Ok(())
            }
            (MacOrder::EncryptThenMac, true) => {
                Err(Failure::Unsupported(format!("{} does not have encrypt-then-MAC", self.api.name())))
            }
        }
    }

    /// Returns `Unsupported` with the library's message unless the call succeeded.
    fn ensure(&self, what: &str, done: impl FnOnce(&Dialect, &Owned) -> bool) -> Result<(), Failure> {
        self.api.clear_errors();
        if done(&self.api.dialect, &self.handle) { Ok(()) } else { Err(self.api.unsupported(what)) }
    }

    fn configure(&mut self, asked: Asked, curves_of_peer: bool) -> Result<(), Failure> {
        let only_older = matches!(asked.key_exchange, Some(KeyExchange::Rsa | KeyExchange::Dhe))
            || asked.cipher == Some(Cipher::Aes128Cbc);
        let protocol = asked.protocol.or(only_older.then_some(Protocol::Tls12));
        let asked = Asked { protocol, ..asked };
        asked.check()?;
        let (least, most) = match protocol {
            None => (Protocol::Tls12, Protocol::Tls13),
            Some(protocol) => (protocol, protocol),
        };
        self.ensure(most.name(), |dialect, context| dialect.protocols(context, wire(least), wire(most)))?;
        self.choose_suites(&asked)?;
        self.choose_groups(&asked, curves_of_peer)?;
        if let Some(signer) = asked.signer {
            let names = signatures(signer);
            let list = c_name(names);
            self.ensure(&format!("the signatures {names}"), |dialect, context| {
                dialect.signatures(context, &list)
            })?;
        }
        Ok(())
    }

    fn choose_suites(&mut self, asked: &Asked) -> Result<(), Failure> {
        // Neither list affects the other protocol's suites, so that both may be set for any protocol.
        let older = asked.suites_12().into_iter();
        let older: Vec<String> = older.filter_map(|(cipher, exchange)| cipher.openssl_12(exchange)).collect();
        if (asked.cipher.is_some() || asked.key_exchange.is_some()) && !older.is_empty() {
            let list = older.join(":");
            self.api.clear_errors();
            // SAFETY: the context is alive, and the list ends with a zero.
            if unsafe { (self.api.SSL_CTX_set_cipher_list)(self.raw(), c_name(&list).as_ptr()) } != 1 {
                return Err(self.api.unsupported(&format!("the suites {list}")));
            }
        }
        if let Some(suite) = asked.cipher.and_then(Cipher::suite_13) {
            let name = c_name(suite);
            self.ensure(&format!("the suite {suite}"), |dialect, context| dialect.suite_13(context, &name))?;
        }
        Ok(())
    }

    fn choose_groups(&mut self, asked: &Asked, curves_of_peer: bool) -> Result<(), Failure> {
        let Some(exchange) = asked.key_exchange else { return Ok(()) };
        let Some(group) = exchange.openssl() else { return Ok(()) };
        let mut groups = vec![group];
        // Before TLS 1.3 this list also limits the curves of the peer's certificate. The requested group
        // stays first; its use is checked after the handshake.
        if curves_of_peer
            && asked.protocol != Some(Protocol::Tls13)
            && asked.signer.is_none_or(|signer| signer == Signer::Ecdsa)
        {
            groups.extend(["P-256", "P-384"].iter().filter(|curve| **curve != group));
        }
        self.only_group = (groups.len() == 1).then(|| exchange.group());
        let names = groups.join(":");
        let list = c_name(&names);
        self.ensure(&format!("the groups {names}"), |dialect, context| dialect.groups(context, &list))
    }

    /// Adds a certificate with its chain and key, next to earlier ones of other kinds.
    pub fn present(&mut self, identity: &Identity) -> Result<(), Failure> {
        let api = self.api;
        // The engine parses it first: if that succeeds and the library fails, the library does not support
        // it.
        let kind = identity.key()?.describe();
        let mut chain = api.certificates(&identity.chain_pem)?.into_iter();
        let refused = |what: &str| Err(api.unsupported(&format!("{what} ({kind})")));
        match chain.next() {
            // SAFETY: context and certificate are alive, and the context takes its own reference.
            Some(leaf) if unsafe { (api.SSL_CTX_use_certificate)(self.raw(), leaf.raw()) } == 1 => (),
            _ => return refused("the certificate"),
        }
        match keys::from_pem(&api.crypto, &identity.key_pem)? {
            // SAFETY: context and key are alive, and the context takes its own reference.
            Some(key) if unsafe { (api.SSL_CTX_use_PrivateKey)(self.raw(), key.raw()) } == 1 => (),
            _ => return refused("the private key"),
        }
        for authority in chain {
            if !api.dialect.chain_certificate(&self.handle, &authority) {
                return refused("the certificate's chain");
            }
        }
        Ok(())
    }

    /// Sets the group of finite-field exchanges.
    pub fn diffie_hellman(&mut self, parameters_pem: &str) -> Result<(), Failure> {
        const WHAT: &str = "the DH parameters";
        let (api, crypto, pem) = (self.api, &self.api.crypto, parameters_pem.as_bytes());
        let (unused, none) = (std::ptr::null_mut(), std::ptr::null_mut);
        if let (Some(read), Some(set)) = (api.PEM_read_bio_Parameters, api.SSL_CTX_set0_tmp_dh_pkey) {
            // SAFETY: the source is alive, and null means no object to reuse.
            let parameters = crypto.read_from(pem, |source| unsafe { read(source, none()) })?;
            // SAFETY: the library has just made them for this owner alone, as a key.
            let parameters = unsafe { crypto.own(parameters, crypto.EVP_PKEY_free, WHAT)? };
            let bits = api.EVP_PKEY_get_bits.or(api.EVP_PKEY_bits);
            // SAFETY: the parameters are alive.
            self.group_bits = bits.map_or(0, |bits| unsafe { bits(parameters.raw()) });
            // SAFETY: both are alive; on success the context owns the parameters, which are given away below.
            if unsafe { set(self.raw(), parameters.raw()) } != 1 {
                return Err(api.unsupported(WHAT));
            }
            parameters.give_away();
            return Ok(());
        }
        let (Some(read), Some(free)) = (api.PEM_read_bio_DHparams, api.DH_free) else {
            return Err(Failure::Unsupported(format!("{} has no DH parameters", api.name())));
        };
        // SAFETY: the source is alive, and null means no object to reuse and no password callback.
        let parameters = crypto.read_from(pem, |source| unsafe { read(source, none(), unused, unused) })?;
        // SAFETY: the library has just made them for this owner alone, and `free` is their function.
        let parameters = unsafe { crypto.own(parameters, free, WHAT)? };
        let taken = api.dialect.diffie_hellman(&self.handle, &parameters);
        self.group_bits = taken.ok_or_else(|| api.unsupported(WHAT))?;
        Ok(())
    }
}

/// Returns a protocol's number on the wire.
fn wire(protocol: Protocol) -> u16 {
    match protocol {
        Protocol::Tls12 => 0x0303,
        Protocol::Tls13 => 0x0304,
    }
}

/// Returns the signatures by keys of one kind, SHA-256 first.
fn signatures(signer: Signer) -> &'static str {
    match signer {
        Signer::Rsa => {
            "rsa_pss_rsae_sha256:rsa_pss_rsae_sha384:rsa_pss_rsae_sha512:\
             rsa_pkcs1_sha256:rsa_pkcs1_sha384:rsa_pkcs1_sha512"
        }
        Signer::Ecdsa => "ecdsa_secp256r1_sha256:ecdsa_secp384r1_sha384:ecdsa_secp521r1_sha512",
        Signer::Ed25519 => "ed25519",
        Signer::MlDsa => "mldsa44:mldsa65:mldsa87",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads share a context: with `&self` two of them could set an option at once. The compiler checks
    /// this.
    #[test]
    fn a_context_is_changed_by_its_owner_alone() {
        let _: fn(&mut Context, u32) = Context::option;
        let _: fn(&mut Context, c_int) = Context::session_cache;
        let _: fn(&mut Context, MacOrder) -> Result<(), Failure> = Context::mac_order;
        let _: fn(&mut Context, &[u8]) -> Result<(), Failure> = Context::sessions_of;
        let _: fn(&mut Context, &Identity) -> Result<(), Failure> = Context::present;
        let _: fn(&mut Context, &str) -> Result<(), Failure> = Context::diffie_hellman;
    }
}
