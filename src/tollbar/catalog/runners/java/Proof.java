import com.eclipsesource.json.JsonArray;
import com.eclipsesource.json.JsonObject;

/** Proof of an operation: valid inputs accepted, wrong ones refused. */
final class Proof {
    private final JsonArray accepted = new JsonArray();
    private final JsonArray refused = new JsonArray();
    private final JsonArray notTried = new JsonArray();
    private JsonObject made;
    private String answer;

    void accept(String what, boolean isAccepted) throws Refusal {
        if (!isAccepted) {
            throw Refusal.failed("not accepted: " + what);
        }
        accepted.add(what);
    }

    void refuse(String what, boolean isRefused) throws Refusal {
        if (!isRefused) {
            throw Refusal.failed("not refused: " + what);
        }
        refused.add(what);
    }

    void leave(String what, String why) {
        notTried.add(what + ": " + why);
    }

    /** Sets the answer to the known inputs; null if inputs are missing. */
    void answer(byte[] bytes) {
        answer = bytes == null ? null : Hex.of(bytes);
    }

    boolean isAnswered() {
        return answer != null;
    }

    /** Sets a randomised signature of this text, for another implementation to verify. */
    void made(String of, byte[] signature, byte[] publicKeyDer) {
        made = new JsonObject();
        made.add("of", of).add("signature_hex", Hex.of(signature)).add("public_key_der_hex", Hex.of(publicKeyDer));
    }

    JsonObject json() {
        JsonObject proof = new JsonObject();
        proof.add("accepted", accepted).add("refused", refused).add("not_tried", notTried);
        if (answer != null) {
            proof.add("answer", answer);
        }
        if (made != null) {
            proof.add("made", made);
        }
        return proof;
    }
}
