/*
 * SQLCipher as one file of objects: the amalgamation with every function of SQLite's interface private to it, so that
 * it can be linked next to plain SQLite; its cryptography as it is passed; and a table of the functions that Tollbar
 * calls.
 */
#define SQLITE_API static
#define SQLITE_EXTERN
#include "sqlcipher.c"

static sqlcipher_provider cryptography;

const size_t tollbar_sqlcipher_provider_bytes = sizeof(sqlcipher_provider);

/* The numbers that lib.rs has for codes and keys both. */
_Static_assert(SQLCIPHER_HMAC_SHA1 == 0 && SQLCIPHER_HMAC_SHA256 == 1 && SQLCIPHER_HMAC_SHA512 == 2, "of codes");
_Static_assert(
  SQLCIPHER_PBKDF2_HMAC_SHA1 == 0 && SQLCIPHER_PBKDF2_HMAC_SHA256 == 1 && SQLCIPHER_PBKDF2_HMAC_SHA512 == 2, "of keys"
);

void tollbar_sqlcipher_use(const sqlcipher_provider *given) {
  cryptography = *given;
}

int tollbar_sqlcipher_setup(sqlcipher_provider *provider) {
  if (cryptography.cipher == NULL) return SQLITE_ERROR;
  *provider = cryptography;
  return SQLITE_OK;
}

/* In the order of `Api` in ../../sqlite/src/api.rs. */
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
