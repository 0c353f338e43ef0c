import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** `encrypt` and `decrypt`: AES-256-GCM with a nonce of its own for each message, its tag made or checked. */
final class Encrypting implements Operation {
    private static final String NAME = "AES/GCM/NoPadding";
    private static final int KEY_BYTES = 32;
    private static final int NONCE_BYTES = 12;
    private static final int TAG_BYTES = 16;
    private static final long KEY_SALT = -1;
    private static final long NONCE_SALT = 0x1234567890abcdefL;

    private final Task task;
    private final Library library;
    private final byte[] keyBytes;
    /** One for each direction, where the key is kept: a Cipher that is given the same key again has its schedule. */
    private final Cipher encrypting;
    private final Cipher decrypting;
    private final SecretKey kept;
    private final byte[] plain;
    private final byte[] nonce;
    private final byte[] firstNonce;
    private final byte[] sealed;

    Encrypting(Task task, Library library) throws Exception {
        this.task = task;
        this.library = library;
        plain = task.filled(task.bytes(4096), 0);
        keyBytes = task.filled(KEY_BYTES, KEY_SALT);
        nonce = task.filled(NONCE_BYTES, NONCE_SALT);
        firstNonce = nonce.clone();
        boolean isKept = task.word("key", "kept", "fresh").equals("kept");
        task.processor();
        kept = isKept ? new SecretKeySpec(keyBytes, "AES") : null;
        encrypting = isKept ? library.cipher(NAME) : null;
        decrypting = isKept ? library.cipher(NAME) : null;
        sealed = seal(nonce, plain);
    }

    private byte[] seal(byte[] nonce, byte[] data) throws GeneralSecurityException {
        return encrypting == null
                ? once(Cipher.ENCRYPT_MODE, keyBytes, nonce, null, data)
                : crypt(encrypting, Cipher.ENCRYPT_MODE, kept, nonce, null, data);
    }

    /** Throws where the tag is wrong. */
    private byte[] open(byte[] nonce, byte[] data) throws GeneralSecurityException {
        return decrypting == null
                ? once(Cipher.DECRYPT_MODE, keyBytes, nonce, null, data)
                : crypt(decrypting, Cipher.DECRYPT_MODE, kept, nonce, null, data);
    }

    /** Under a key and with a Cipher that are made for this message alone. */
    private byte[] once(int mode, byte[] key, byte[] nonce, byte[] aad, byte[] data) throws GeneralSecurityException {
        return crypt(library.cipher(NAME), mode, new SecretKeySpec(key, "AES"), nonce, aad, data);
    }

    private static byte[] crypt(Cipher cipher, int mode, SecretKey key, byte[] nonce, byte[] aad, byte[] data)
            throws GeneralSecurityException {
        cipher.init(mode, key, new GCMParameterSpec(8 * TAG_BYTES, nonce));
        if (aad != null) {
            cipher.updateAAD(aad);
        }
        return cipher.doFinal(data);
    }

    @Override
    public int perform() throws Exception {
        if (task.op.equals("encrypt")) {
            increment(nonce);
            return last(seal(nonce, plain), plain.length + TAG_BYTES);
        }
        return last(open(firstNonce, sealed), plain.length);
    }

    private static int last(byte[] made, int expected) throws Refusal {
        if (made.length != expected) {
            throw Refusal.failed(made.length + " bytes instead of " + expected);
        }
        return expected == 0 ? 0 : made[expected - 1];
    }

    @Override
    public Proof prove() throws Exception {
        Proof proof = new Proof();
        byte[] known = task.known();
        if (known != null && task.hex("key") != null && task.hex("iv") != null) {
            byte[][] with = {task.hex("key"), task.hex("iv"), task.hex("aad")};
            byte[] answer = once(Cipher.ENCRYPT_MODE, with[0], with[1], with[2], known);
            byte[] opened = once(Cipher.DECRYPT_MODE, with[0], with[1], with[2], answer);
            proof.accept("the known answer, decrypted", Arrays.equals(known, opened));
            proof.answer(answer);
        }
        byte[] otherNonce = Task.tampered(firstNonce, 0);
        byte[] otherKey = Task.tampered(keyBytes, 0);
        proof.accept("its own ciphertext", Arrays.equals(plain, open(firstNonce, sealed)));
        increment(nonce);
        proof.refuse("the same ciphertext twice", !Arrays.equals(sealed, seal(nonce, plain)));
        proof.refuse("a tampered ciphertext", isRefused(() -> open(firstNonce, Task.tampered(sealed, 0))));
        proof.refuse("another key", isRefused(() -> once(Cipher.DECRYPT_MODE, otherKey, firstNonce, null, sealed)));
        proof.refuse("another nonce", isRefused(() -> open(otherNonce, sealed)));
        proof.refuse("a tampered tag", isRefused(() -> open(firstNonce, Task.tampered(sealed, -1))));
        return proof;
    }

    private interface Try {
        byte[] done() throws GeneralSecurityException;
    }

    private static boolean isRefused(Try wrong) {
        try {
            wrong.done();
            return false;
        } catch (GeneralSecurityException error) {
            return true;
        }
    }

    /** The next nonce: one used twice would give the plaintexts away, so no caller does it, and Java refuses it. */
    private static void increment(byte[] nonce) {
        for (int at = nonce.length - 1; at >= 0 && ++nonce[at] == 0; at--) {}
    }
}
