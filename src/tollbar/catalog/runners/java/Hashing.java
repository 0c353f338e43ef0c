import java.security.MessageDigest;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** `hash`: the digest of a whole message in one call. */
final class Hashing implements Operation {
    static final List<String> CHOICES = List.of("sha-256", "md5", "sha-1", "sha-512");
    /** As Java calls them. */
    private static final Map<String, String> NAMES =
            Map.of("md5", "MD5", "sha-1", "SHA-1", "sha-256", "SHA-256", "sha-512", "SHA-512");

    private final Task task;
    private final Library library;
    private final String name;
    private final byte[] message;
    /** Null where the algorithm is looked up in each call. */
    private final MessageDigest kept;

    Hashing(Task task, Library library) throws Exception {
        this.task = task;
        this.library = library;
        name = NAMES.getOrDefault(task.choice, "SHA-256");
        message = task.filled(task.bytes(4096), 0);
        kept = task.word("lookup", "fetched", "implicit").equals("fetched") ? library.digest(name) : null;
        task.processor();
    }

    private byte[] hash(byte[] data) throws Exception {
        MessageDigest digest = kept == null ? library.digest(name) : kept;
        return digest.digest(data);
    }

    @Override
    public int perform() throws Exception {
        return hash(message)[0];
    }

    @Override
    public Proof prove() throws Exception {
        Proof proof = new Proof();
        byte[] known = task.known();
        if (known != null) {
            proof.answer(hash(known));
        }
        byte[] right = hash(message);
        proof.accept("the same message again", Arrays.equals(right, hash(message)));
        proof.refuse("a tampered message", !Arrays.equals(right, hash(Task.tampered(message, 0))));
        return proof;
    }
}
