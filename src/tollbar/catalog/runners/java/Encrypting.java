import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.security.spec.AlgorithmParameterSpec;
import java.util.Arrays;
import java.util.List;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/** `encrypt`, `decrypt` and `round-trip`: AES-256 by GCM or by CBC, each message with an IV of its own. */
final class Encrypting implements Operation {
    static final List<String> OPERATIONS = List.of("encrypt", "decrypt", "round-trip");
    static final List<String> CHOICES = List.of("aes-256-gcm", "aes-256-cbc");

    private static final int KEY_BYTES = 32;
    private static final int TAG_BYTES = 16;
    private static final int BLOCK_BYTES = 16;
    private static final long KEY_SALT = -1;
    private static final long IV_SALT = 0x1234567890abcdefL;

    /** How AES is used: what its IV is, and how a wrong ciphertext is noticed. */
    private enum Mode {
        /** A nonce that is never used twice, and a tag. */
        GCM("AES/GCM/NoPadding", 12, "nonce") {
            @Override
            AlgorithmParameterSpec parameters(byte[] iv) {
                return new GCMParameterSpec(8 * TAG_BYTES, iv);
            }

            @Override
            int sealedBytes(int plain) {
                return plain + TAG_BYTES;
            }

            /** A nonce used twice reveals the plaintexts; Java refuses it. */
            @Override
            void next(byte[] iv, SecureRandom random) {
                for (int at = iv.length - 1; at >= 0 && ++iv[at] == 0; at--) {}
            }
        },
        /** An IV that cannot be foreseen, and padding to whole blocks. */
        CBC("AES/CBC/PKCS5Padding", BLOCK_BYTES, "IV") {
            @Override
            AlgorithmParameterSpec parameters(byte[] iv) {
                return new IvParameterSpec(iv);
            }

            @Override
            int sealedBytes(int plain) {
                return (plain / BLOCK_BYTES + 1) * BLOCK_BYTES;
            }

            @Override
            void next(byte[] iv, SecureRandom random) {
                random.nextBytes(iv);
            }
        };

        final String transformation;
        final int ivBytes;
        final String ivName;

        Mode(String transformation, int ivBytes, String ivName) {
            this.transformation = transformation;
            this.ivBytes = ivBytes;
            this.ivName = ivName;
        }

        abstract AlgorithmParameterSpec parameters(byte[] iv);

        abstract int sealedBytes(int plain);

        abstract void next(byte[] iv, SecureRandom random);
    }

    private final Task task;
    private final Library library;
    private final Mode mode;
    private final SecureRandom random = new SecureRandom();
    private final byte[] keyBytes;
    /** One for each direction, where the key is kept: a Cipher that is given the same key again has its schedule. */
    private final Cipher encrypting;
    private final Cipher decrypting;
    private final SecretKey kept;
    private final byte[] plain;
    private final byte[] iv;
    private final byte[] firstIv;
    private final byte[] sealed;

    Encrypting(Task task, Library library) throws Exception {
        this.task = task;
        this.library = library;
        mode = task.choice.equals("aes-256-cbc") ? Mode.CBC : Mode.GCM;
        plain = task.filled(task.bytes(4096), 0);
        keyBytes = task.filled(KEY_BYTES, KEY_SALT);
        iv = task.filled(mode.ivBytes, IV_SALT);
        firstIv = iv.clone();
        boolean isKept = task.word("key", "kept", "fresh").equals("kept");
        task.processor();
        if (isKept && !library.keepsKeys()) {
            throw Refusal.unsupported("Bouncy Castle's Cipher sets up its key in each init, so no key can be kept");
        }
        kept = isKept ? new SecretKeySpec(keyBytes, "AES") : null;
        encrypting = isKept ? library.cipher(mode.transformation) : null;
        decrypting = isKept ? library.cipher(mode.transformation) : null;
        sealed = seal(firstIv, plain);
    }

    private byte[] seal(byte[] iv, byte[] data) throws GeneralSecurityException {
        return encrypting == null
                ? once(Cipher.ENCRYPT_MODE, keyBytes, iv, null, data)
                : crypt(encrypting, Cipher.ENCRYPT_MODE, kept, iv, null, data);
    }

    /** Throws where the tag or the padding is wrong. */
    private byte[] open(byte[] iv, byte[] data) throws GeneralSecurityException {
        return decrypting == null
                ? once(Cipher.DECRYPT_MODE, keyBytes, iv, null, data)
                : crypt(decrypting, Cipher.DECRYPT_MODE, kept, iv, null, data);
    }

    /** Under a key and with a Cipher that are made for this message alone. */
    private byte[] once(int direction, byte[] key, byte[] iv, byte[] aad, byte[] data) throws GeneralSecurityException {
        return crypt(library.cipher(mode.transformation), direction, new SecretKeySpec(key, "AES"), iv, aad, data);
    }

    private byte[] crypt(Cipher cipher, int direction, SecretKey key, byte[] iv, byte[] aad, byte[] data)
            throws GeneralSecurityException {
        cipher.init(direction, key, mode.parameters(iv));
        if (aad != null) {
            cipher.updateAAD(aad);
        }
        return cipher.doFinal(data);
    }

    @Override
    public int perform() throws Exception {
        if (task.op.equals("decrypt")) {
            return last(open(firstIv, sealed), plain.length);
        }
        mode.next(iv, random);
        byte[] made = seal(iv, plain);
        int lastByte = last(made, mode.sealedBytes(plain.length));
        return task.op.equals("encrypt") ? lastByte : last(open(iv, made), plain.length);
    }

    private static int last(byte[] made, int expected) throws Refusal {
        if (made.length != expected) {
            throw Refusal.failed("the result has " + made.length + " bytes instead of " + expected);
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
            // Published answers of CBC are of whole blocks and without padding, which only adds a block.
            proof.answer(mode == Mode.CBC ? Arrays.copyOf(answer, known.length) : answer);
        }
        byte[] otherIv = Task.tampered(firstIv, 0);
        byte[] otherKey = Task.tampered(keyBytes, 0);
        proof.accept("its own ciphertext", Arrays.equals(plain, open(firstIv, sealed)));
        mode.next(iv, random);
        proof.refuse("the same ciphertext twice", !Arrays.equals(sealed, seal(iv, plain)));
        proof.refuse("a tampered ciphertext", isWrong(() -> open(firstIv, Task.tampered(sealed, 0))));
        proof.refuse("another key", isWrong(() -> once(Cipher.DECRYPT_MODE, otherKey, firstIv, null, sealed)));
        proof.refuse("another " + mode.ivName, isWrong(() -> open(otherIv, sealed)));
        if (mode == Mode.GCM) {
            proof.refuse("a tampered tag", isRefused(() -> open(firstIv, Task.tampered(sealed, -1))));
        } else {
            proof.refuse("a tampered padding", isRefused(this::withTamperedPadding));
        }
        return proof;
    }

    /**
     * What the last byte decrypts to is XORed with the byte one block before: the padding's length becomes one that no
     * block has.
     */
    private byte[] withTamperedPadding() throws GeneralSecurityException {
        byte[] wrongIv = firstIv.clone();
        byte[] wrong = sealed.clone();
        int before = wrong.length - BLOCK_BYTES - 1;
        byte[] holder = before < 0 ? wrongIv : wrong;
        holder[before < 0 ? BLOCK_BYTES - 1 : before] ^= (byte) 0x80;
        return open(wrongIv, wrong);
    }

    private interface Try {
        byte[] done() throws GeneralSecurityException;
    }

    /** Whether it is refused, as a tag makes it, or gives another plaintext, as a mode without one does. */
    private boolean isWrong(Try wrong) {
        try {
            byte[] opened = wrong.done();
            return mode != Mode.GCM && !Arrays.equals(plain, opened);
        } catch (GeneralSecurityException error) {
            return true;
        }
    }

    private static boolean isRefused(Try wrong) {
        try {
            wrong.done();
            return false;
        } catch (GeneralSecurityException error) {
            return true;
        }
    }
}
