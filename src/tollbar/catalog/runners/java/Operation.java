/** The timed work, and the proof before it. */
interface Operation {
    /** Runs it once. Returns a byte of the answer, so that no compiler removes the work. */
    int perform() throws Exception;

    Proof prove() throws Exception;

    /** Null choice: the same loop and clocks without work. */
    Operation NOTHING = new Operation() {
        @Override
        public int perform() {
            return 0;
        }

        @Override
        public Proof prove() throws Refusal {
            Proof proof = new Proof();
            proof.accept("the empty operation", true);
            proof.leave("a wrong input", "the null choice reads none");
            return proof;
        }
    };
}
