/** Why there is no number: `unsupported` for what the package does not have, `failed` for what should have worked. */
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
