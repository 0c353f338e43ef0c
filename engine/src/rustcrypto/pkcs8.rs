//! Private keys as tasks carry them.

use rsa::RsaPrivateKey;
use rsa::pkcs8::{DecodePrivateKey, EncodePublicKey, SecretDocument};

use crate::contract::Task;
use crate::failure::Failure;
use crate::families::failed;

/// The task's private key, a PKCS#8 document.
pub fn private_key(task: &Task) -> Result<Vec<u8>, Failure> {
    let pem = task.text("private_key_pem");
    let pem = pem.ok_or_else(|| Failure::Failed("the input `private_key_pem` is missing".to_owned()))?;
    let (label, document) = SecretDocument::from_pem(pem).map_err(failed("reading the private key's PEM"))?;
    match label {
        "PRIVATE KEY" => Ok(document.as_bytes().to_vec()),
        label => Err(Failure::Failed(format!("the private key is a {label}, not a PKCS#8 document"))),
    }
}

/// The SubjectPublicKeyInfo of a private RSA key.
pub fn rsa_public_key_der(pkcs8: &[u8]) -> Result<Vec<u8>, Failure> {
    let key = RsaPrivateKey::from_pkcs8_der(pkcs8).map_err(failed("reading the private key"))?;
    let der = key.to_public_key().to_public_key_der().map_err(failed("writing the public key"))?;
    Ok(der.into_vec())
}
