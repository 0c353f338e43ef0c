import java.security.MessageDigest;
import java.util.Arrays;

/** `hash`: SHA-256 of a whole message in one call. */
final class Hashing implements Operation {
    private static final String NAME = "SHA-256";

    private final Task task;
    private final Library library;
    private final byte[] message;
    /** Null where the algorithm is looked up in each call. */
    private final MessageDigest kept;

    Hashing(Task task, Library library) throws Exception {
        this.task = task;
        this.library = library;
        message = task.filled(task.bytes(4096), 0);
        kept = task.word("lookup", "fetched", "implicit").equals("fetched") ? library.digest(NAME) : null;
        task.processor();
    }

    private byte[] hash(byte[] data) throws Exception {
        MessageDigest digest = kept == null ? library.digest(NAME) : kept;
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
