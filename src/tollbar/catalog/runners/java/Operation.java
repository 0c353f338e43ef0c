/** What is timed, and what it shows for itself before. */
interface Operation {
    /** Does it once. Returns a byte of the answer, so that no compiler finds that answers are not used. */
    int perform() throws Exception;

    Proof prove() throws Exception;

    /** The null choice: the same loop and clocks, and nothing done. */
    Operation NOTHING = new Operation() {
        @Override
        public int perform() {
            return 0;
        }

        @Override
        public Proof prove() throws Refusal {
            Proof proof = new Proof();
            proof.accept("nothing is done", true);
            proof.leave("a wrong input", "nothing looks at it");
            return proof;
        }
    };
}
