/*
 * SQLCipher as one file of objects: the amalgamation with every function of SQLite's interface private to it, so that
 * it can be linked beside plain SQLite; its cryptography by AWS-LC; and a table of the functions that Tollbar calls.
 *
 * SQLCipher's own provider for OpenSSL asks for OpenSSL 3 (EVP_MAC), which AWS-LC does not have. The provider below
 * makes the same calls as that one, but for the code of a page: HMAC with its context on the stack.
 */
#define SQLITE_API static
#define SQLITE_EXTERN
#include "sqlcipher.c"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

static const char *aws_lc_name(void *context) {
  return "aws-lc";
}

static const char *aws_lc_version(void *context) {
  return OpenSSL_version(OPENSSL_VERSION);
}

/* AWS-LC seeds itself, and takes nothing from an application. */
static int aws_lc_add_random(void *context, const void *buffer, int length) {
  return SQLITE_OK;
}

static int aws_lc_random(void *context, void *buffer, int length) {
  return RAND_bytes(buffer, length) == 1 ? SQLITE_OK : SQLITE_ERROR;
}

static const EVP_MD *aws_lc_digest(int algorithm) {
  /* The numbers of SQLCIPHER_HMAC_* and of SQLCIPHER_PBKDF2_HMAC_* are the same. */
  switch (algorithm) {
    case SQLCIPHER_HMAC_SHA1: return EVP_sha1();
    case SQLCIPHER_HMAC_SHA256: return EVP_sha256();
    case SQLCIPHER_HMAC_SHA512: return EVP_sha512();
    default: return NULL;
  }
}

static int aws_lc_hmac(
  void *context, int algorithm, const unsigned char *key, int key_bytes,
  const unsigned char *first, int first_bytes, const unsigned char *second, int second_bytes, unsigned char *out
) {
  const EVP_MD *digest = aws_lc_digest(algorithm);
  HMAC_CTX hmac;
  int done;
  if (digest == NULL || first == NULL) return SQLITE_ERROR;
  HMAC_CTX_init(&hmac);
  done = HMAC_Init_ex(&hmac, key, key_bytes, digest, NULL)
    && HMAC_Update(&hmac, first, first_bytes)
    && (second == NULL || HMAC_Update(&hmac, second, second_bytes))
    && HMAC_Final(&hmac, out, NULL);
  HMAC_CTX_cleanup(&hmac);
  return done ? SQLITE_OK : SQLITE_ERROR;
}

static int aws_lc_kdf(
  void *context, int algorithm, const unsigned char *passphrase, int passphrase_bytes,
  const unsigned char *salt, int salt_bytes, int iterations, int key_bytes, unsigned char *key
) {
  const EVP_MD *digest = aws_lc_digest(algorithm);
  if (digest == NULL) return SQLITE_ERROR;
  return PKCS5_PBKDF2_HMAC((const char *)passphrase, passphrase_bytes, salt, salt_bytes, iterations, digest,
                           key_bytes, key) ? SQLITE_OK : SQLITE_ERROR;
}

static int aws_lc_cipher(
  void *context, int encrypt, const unsigned char *key, int key_bytes,
  const unsigned char *iv, const unsigned char *in, int in_bytes, unsigned char *out
) {
  int part = 0, rest = 0, done;
  EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
  if (cipher == NULL) return SQLITE_ERROR;
  done = EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, NULL, NULL, encrypt)
    && EVP_CIPHER_CTX_set_padding(cipher, 0)
    && EVP_CipherInit_ex(cipher, NULL, NULL, key, iv, encrypt)
    && EVP_CipherUpdate(cipher, out, &part, in, in_bytes)
    && EVP_CipherFinal_ex(cipher, out + part, &rest)
    && part + rest == in_bytes;
  EVP_CIPHER_CTX_free(cipher);
  return done ? SQLITE_OK : SQLITE_ERROR;
}

static const char *aws_lc_cipher_name(void *context) {
  return "aes-256-cbc";
}

static int aws_lc_key_bytes(void *context) {
  return EVP_CIPHER_key_length(EVP_aes_256_cbc());
}

static int aws_lc_iv_bytes(void *context) {
  return EVP_CIPHER_iv_length(EVP_aes_256_cbc());
}

static int aws_lc_block_bytes(void *context) {
  return EVP_CIPHER_block_size(EVP_aes_256_cbc());
}

static int aws_lc_hmac_bytes(void *context, int algorithm) {
  const EVP_MD *digest = aws_lc_digest(algorithm);
  return digest == NULL ? 0 : (int)EVP_MD_size(digest);
}

static int aws_lc_nothing(void **context) {
  return SQLITE_OK;
}

static int aws_lc_fips(void *context) {
  return 0;
}

int tollbar_sqlcipher_setup(sqlcipher_provider *provider) {
  provider->init = NULL;
  provider->shutdown = NULL;
  provider->get_provider_name = aws_lc_name;
  provider->get_provider_version = aws_lc_version;
  provider->add_random = aws_lc_add_random;
  provider->random = aws_lc_random;
  provider->hmac = aws_lc_hmac;
  provider->kdf = aws_lc_kdf;
  provider->cipher = aws_lc_cipher;
  provider->get_cipher = aws_lc_cipher_name;
  provider->get_key_sz = aws_lc_key_bytes;
  provider->get_iv_sz = aws_lc_iv_bytes;
  provider->get_block_sz = aws_lc_block_bytes;
  provider->get_hmac_sz = aws_lc_hmac_bytes;
  provider->ctx_init = aws_lc_nothing;
  provider->ctx_free = aws_lc_nothing;
  provider->fips_status = aws_lc_fips;
  return SQLITE_OK;
}

/* In the order of `Api` in api.rs. */
const struct {
  const char *(*libversion)(void);
  const char *(*compileoption_get)(int);
  int (*open_v2)(const char *, sqlite3 **, int, const char *);
  int (*close)(sqlite3 *);
  const char *(*errmsg)(sqlite3 *);
  int (*exec)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
  int (*wal_checkpoint_v2)(sqlite3 *, const char *, int, int *, int *);
  int (*prepare_v3)(sqlite3 *, const char *, int, unsigned int, sqlite3_stmt **, const char **);
  int (*finalize)(sqlite3_stmt *);
  int (*step)(sqlite3_stmt *);
  int (*reset)(sqlite3_stmt *);
  int (*bind_int64)(sqlite3_stmt *, int, sqlite3_int64);
  int (*bind_text)(sqlite3_stmt *, int, const char *, int, void (*)(void *));
  int (*bind_blob)(sqlite3_stmt *, int, const void *, int, void (*)(void *));
  sqlite3_int64 (*column_int64)(sqlite3_stmt *, int);
  const void *(*column_blob)(sqlite3_stmt *, int);
  int (*column_bytes)(sqlite3_stmt *, int);
} tollbar_sqlcipher = {
  sqlite3_libversion, sqlite3_compileoption_get,
  sqlite3_open_v2, sqlite3_close, sqlite3_errmsg, sqlite3_exec, sqlite3_wal_checkpoint_v2,
  sqlite3_prepare_v3, sqlite3_finalize, sqlite3_step, sqlite3_reset,
  sqlite3_bind_int64, sqlite3_bind_text, sqlite3_bind_blob,
  sqlite3_column_int64, sqlite3_column_blob, sqlite3_column_bytes,
};
