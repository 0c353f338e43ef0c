/** Reason for a missing result: `unsupported` by the package, or `failed` although it should succeed. */
final class Refusal extends Exception {
    private static final long serialVersionUID = 1;
    final String outcome;

    private Refusal(String outcome, String reason) {
        super(reason);
        this.outcome = outcome;
    }

    static Refusal unsupported(String reason) {
        return new Refusal("unsupported", reason);
    }

    static Refusal failed(String reason) {
        return new Refusal("failed", reason);
    }
}
