"""Make a directory in the current folder: an Active Directory domain with accounts, groups, services and their keys.

provision.py ACCOUNTS

Runs in the distribution's Python, which has Samba's bindings. Secrets are made here and written to files that only
their owner can read; none is an argument, or printed.
"""

import base64
import ctypes
import hmac
import logging
import os
import secrets
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Adds export_keytab to Net.
import samba.dckeytab  # noqa: F401
from samba import dsdb
from samba.auth import system_session
from samba.crypto import md4_hash_blob
from samba.dcerpc import drsblobs, security
from samba.ndr import ndr_pack
from samba.net import Net
from samba.param import LoadParm
from samba.provision import provision
from samba.samdb import SamDB

REALM = "TOLLBAR.TEST"
DOMAIN = "TOLLBAR"
DOMAIN_DN = "DC=tollbar,DC=test"
ACCOUNTS_DN = f"OU=Accounts,{DOMAIN_DN}"
GROUPS = 700
# Upper index of accounts, and their number of groups; all others have none. A few have a ticket of 7 KB.
MEMBERS = ((250, 100), (500, 50), (510, 700))

# Flags of userAccountControl; a password that never expires.
NORMAL, MACHINE, NO_EXPIRY, TRUSTED_FOR_DELEGATION = 0x200, 0x1000, 0x10000, 0x80000
# Flags of msDS-SupportedEncryptionTypes.
RC4, AES_128, AES_256 = 0x4, 0x8, 0x10
# Account, its flags, the host of its service, and the encryption of its tickets.
SERVICES = (
    ("WEB1$", MACHINE, "web1", AES_128 | AES_256),
    ("svcweb", NORMAL, "web2", AES_128 | AES_256),
    ("svcdeleg", NORMAL | TRUSTED_FOR_DELEGATION, "web3", AES_128 | AES_256),
    ("svcrc4", NORMAL, "web4", RC4),
    ("WEB5$", MACHINE | TRUSTED_FOR_DELEGATION, "web5", AES_128 | AES_256),
)
BIND_ACCOUNT = "svcweb"

# RFC 3962 and Active Directory: rounds of PBKDF2, and "kerberos" folded to a block.
PBKDF2_ROUNDS = 4096
FOLDED = bytes.fromhex("6b65726265726f737b9b5b2b93132b93")
# Encryption types of Kerberos, and GnuTLS's numbers of algorithms.
ETYPE_AES_256, ETYPE_AES_128, ETYPE_DES_CBC_MD5, ETYPE_DES_CBC_CRC = 18, 17, 3, 1
GNUTLS_SHA_1, GNUTLS_AES_128_CBC, GNUTLS_AES_256_CBC = 3, 4, 5
# Accepts unicodePwd and supplementalCredentials as they are, instead of a password to hash.
BYPASS_PASSWORD_HASH = "local_oid:1.3.6.1.4.1.7165.4.3.12:0"
# Accepts objectSid, because drawing the next one of the domain is half the work of adding an account.
OWN_SID = "relax:0"
# Above the ids that the domain draws.
FIRST_RID = 1_000_000
# Fixed prefix of the packages of supplementalCredentials.
PREFIX = " " * 48

# Samba is linked with GnuTLS, whose PBKDF2 takes half the time of OpenSSL 3.0's.
gnutls = ctypes.CDLL("libgnutls.so.30")


class Datum(ctypes.Structure):
    """Byte string of GnuTLS."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_uint))

    def __init__(self, data):
        super().__init__(data, len(data))


def check(status):
    """Raise RuntimeError if GnuTLS reports an error."""
    if status < 0:
        raise RuntimeError(f"GnuTLS: error {status}")


def password_of(name, secret):
    """Return an account's password, derived from one random secret."""
    return base64.urlsafe_b64encode(hmac.digest(secret, name.encode(), "sha256")[:18]).decode()


def random_password():
    """Return a password for Samba to hash; a new domain requires characters of several kinds."""
    return secrets.token_urlsafe(24) + "aA0-"


def hashed(name, secret):
    """Return an account's stored keys: NT hash, and `supplementalCredentials` with those of AES.

    Samba itself takes 19 ms for an account, most of it for PBKDF2.
    """
    password, salt = password_of(name, secret), REALM + name
    seed = ctypes.create_string_buffer(32)
    inputs = (ctypes.byref(Datum(text.encode())) for text in (password, salt))
    check(gnutls.gnutls_pbkdf2(GNUTLS_SHA_1, *inputs, PBKDF2_ROUNDS, seed, ctypes.c_size_t(len(seed))))
    # The seed of the shorter key is the beginning of the longer one's.
    keys = [
        (ETYPE_AES_256, derived(GNUTLS_AES_256_CBC, seed.raw)),
        (ETYPE_AES_128, derived(GNUTLS_AES_128_CBC, seed.raw[:16])),
    ]
    return bytes(md4_hash_blob(password.encode("utf-16-le"))), supplemental_credentials(salt, keys)


def derived(cipher, seed):
    """Return RFC 3961's DK(seed, "kerberos"): blocks, each the encryption of the previous one."""
    handle = ctypes.c_void_p()
    key = ctypes.create_string_buffer(len(seed))
    inputs = (ctypes.byref(Datum(data)) for data in (seed, FOLDED))
    check(gnutls.gnutls_cipher_init(ctypes.byref(handle), cipher, *inputs))
    # CBC over zeros encrypts the previous block.
    check(gnutls.gnutls_cipher_encrypt(handle, key, ctypes.c_size_t(len(seed))))
    gnutls.gnutls_cipher_deinit(handle)
    return key.raw


def supplemental_credentials(salt, keys):
    """Return MS-SAMR 2.2.10 with the fewest packages that Samba stores: of `keys`, and of unused keys of DES."""
    des = [(etype, secrets.token_bytes(8)) for etype in (ETYPE_DES_CBC_MD5, ETYPE_DES_CBC_CRC)]
    newer, old = drsblobs.package_PrimaryKerberosCtr4(), drsblobs.package_PrimaryKerberosCtr3()
    newer.default_iteration_count = PBKDF2_ROUNDS
    newer_keys = [stored_key(drsblobs.package_PrimaryKerberosKey4, *key) for key in (*keys, *des)]
    old_keys = [stored_key(drsblobs.package_PrimaryKerberosKey3, *key) for key in des]
    stored = [
        package("Primary:Kerberos-Newer-Keys", 1, kerberos(4, newer, newer_keys, salt)),
        package("Primary:Kerberos", 1, kerberos(3, old, old_keys, salt)),
        package("Packages", 2, "Kerberos-Newer-Keys\0Kerberos".encode("utf-16-le")),
    ]
    packages = drsblobs.supplementalCredentialsSubBlob()
    packages.prefix = PREFIX
    packages.signature = drsblobs.SUPPLEMENTAL_CREDENTIALS_SIGNATURE
    packages.num_packages, packages.packages = len(stored), stored
    credentials = drsblobs.supplementalCredentialsBlob()
    credentials.sub = packages
    return ndr_pack(credentials)


def package(name, reserved, data):
    """Return one package."""
    made = drsblobs.supplementalCredentialsPackage()
    made.name, made.reserved, made.data = name, reserved, data.hex().upper()
    return made


def kerberos(version, stored, keys, salt):
    """Return the content of a package of keys."""
    stored.salt.string = salt
    stored.num_keys, stored.keys = len(keys), keys
    made = drsblobs.package_PrimaryKerberosBlob()
    made.version, made.ctr = version, stored
    return ndr_pack(made)


def stored_key(kind, etype, value):
    """Return one key."""
    key = kind()
    key.keytype, key.value, key.value_len = etype, value, len(value)
    if hasattr(key, "iteration_count"):
        key.iteration_count = PBKDF2_ROUNDS
    return key


def groups_of(index):
    """Return the number of this account's groups."""
    return next((groups for below, groups in MEMBERS if index < below), 0)


def name_of(index):
    """Return an account's name."""
    return f"u{index:05d}"


def make_domain():
    """Make the domain, and return its configuration."""
    here = Path.cwd()
    configuration = here / "etc" / "smb.conf"
    configuration.parent.mkdir()
    # An existing empty file prevents the system's from being read.
    configuration.touch()
    os.environ["SMB_CONF_PATH"] = str(configuration)
    parameters = LoadParm()
    parameters.load(str(configuration))
    parameters.set("ldb:nosync", "yes")
    made = provision(
        logging.getLogger("provision"),
        system_session(),
        targetdir=str(here),
        lp=parameters,
        realm=REALM,
        domain=DOMAIN,
        hostname="dc1",
        hostip="127.0.0.1",
        adminpass=random_password(),
        dns_backend="NONE",
        serverrole="active directory domain controller",
        dom_for_fun_level=dsdb.DS_DOMAIN_FUNCTION_2008_R2,
        useeadb=False,
        # An ordinary user cannot give files to others.
        skip_sysvolacl=True,
        use_rfc2307=False,
    )
    return made.lp


def add_services(directory):
    """Add the accounts of services, each with its own password; that of LDAP searches is written to a file."""
    for account, flags, host, encryption in SERVICES:
        password = random_password()
        parent = "CN=Computers" if flags & MACHINE else "CN=Users"
        directory.add(
            {
                "dn": f"CN={account.rstrip('$')},{parent},{DOMAIN_DN}",
                "objectClass": "computer" if flags & MACHINE else "user",
                "sAMAccountName": account,
                "userAccountControl": str(flags | NO_EXPIRY),
                "servicePrincipalName": f"HTTP/{host}.{REALM.lower()}",
                "msDS-SupportedEncryptionTypes": str(encryption),
                "unicodePwd": f'"{password}"'.encode("utf-16-le"),
            }
        )
        if account == BIND_ACCOUNT:
            Path("bind.password").write_text(password)


def add_accounts(directory, count, keys):
    """Add the accounts with these keys, and then the groups, each with all of its members."""
    directory.add({"dn": ACCOUNTS_DN, "objectClass": "organizationalUnit"})
    for index, (nt_hash, credentials) in zip(range(count), keys, strict=True):
        name = name_of(index)
        directory.add(
            {
                "dn": f"CN={name},{ACCOUNTS_DN}",
                "objectClass": "user",
                "sAMAccountName": name,
                "objectSid": ndr_pack(security.dom_sid(f"{directory.domain_sid}-{FIRST_RID + index}")),
                "userAccountControl": str(NORMAL | NO_EXPIRY),
                "unicodePwd": nt_hash,
                "supplementalCredentials": credentials,
            },
            [BYPASS_PASSWORD_HASH, OWN_SID],
        )
    memberships = [(name_of(index), groups_of(index)) for index in range(min(count, MEMBERS[-1][0]))]
    for group in range(GROUPS):
        members = [f"CN={name},{ACCOUNTS_DN}" for name, groups in memberships if group < groups]
        directory.add(
            {
                "dn": f"CN=g{group:03d},{ACCOUNTS_DN}",
                "objectClass": "group",
                "sAMAccountName": f"g{group:03d}",
                **({"member": members} if members else {}),
            }
        )


def main(count):
    os.umask(0o077)
    secret = secrets.token_bytes(32)
    names = [name_of(index) for index in range(count)]
    # The keys are made in parallel with the domain, on the other cores.
    with ProcessPoolExecutor(max(1, len(os.sched_getaffinity(0)) - 1)) as pool:
        keys = pool.map(hashed, names, [secret] * count, chunksize=50)
        parameters = make_domain()
        directory = SamDB(
            url=str(Path("private/sam.ldb").resolve()),
            session_info=system_session(),
            lp=parameters,
            options=["batch_mode:1"],
        )
        directory.transaction_start()
        add_services(directory)
        add_accounts(directory, count, keys)
        directory.transaction_commit()
    with open("accounts.tsv", "w") as file:
        for index, name in enumerate(names):
            print(name, password_of(name, secret), groups_of(index), sep="\t", file=file)
    for _, _, host, _ in SERVICES:
        Net(None, parameters).export_keytab(keytab=f"{host}.keytab", principal=f"HTTP/{host}.{REALM.lower()}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
