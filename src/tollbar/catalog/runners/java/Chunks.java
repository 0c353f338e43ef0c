import com.eclipsesource.json.JsonObject;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;

/** Operation advanced chunk by chunk: warm-up, and batches between two readings of the clocks. */
final class Chunks {
    private static final long MS = 1_000_000;
    /** As long as ten chunks: what the compilers are at within one window shows in the next. */
    private static final long WINDOW_NS = 50 * MS;
    /** So many windows are compared with as many before: a disturbed one among them decides nothing. */
    private static final int WINDOWS = 3;
    /** The cheapest of them and of those before differ by less once the operation has settled. */
    private static final double STEADY = 0.02;
    private static final long MOST_WARM_UP_NS = 3000 * MS;
    /** Share of a chunk that is worked before its clocks start, to refill caches that others used. */
    private static final double LEAD = 0.1;
    /** An operation longer than this share of a chunk needs no such lead-in. */
    private static final double LONG = 0.25;
    /** A batch aims at slightly more than the requested time, because a short one needs a second batch. */
    private static final double MARGIN = 1.03;
    /** Weight of a chunk in the estimate: one disturbed chunk must not make the following ones short. */
    private static final double WEIGHT = 0.5;
    private static final double LEAST_NS = 0.02;

    /** Takes a byte of each answer, by a write that no compiler removes or moves out of the loop. */
    private static final VarHandle SINK;

    private static int sink;

    static {
        try {
            SINK = MethodHandles.lookup().findStaticVarHandle(Chunks.class, "sink", int.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private final Operation operation;
    private final CompilationMXBean compilers = ManagementFactory.getCompilationMXBean();
    /** Recent CPU time of one operation. */
    private double eachNs;
    private long warmUpNs;
    /** The compilers' and the collector's part of that. */
    private long othersWarmUpNs;
    /** The compilers' and the collector's CPU time when the last chunk ended; negative before the first. */
    private long othersAtEndNs = -1;

    Chunks(Operation operation) throws Exception {
        this.operation = operation;
        long others = othersNs();
        warmUp();
        othersWarmUpNs = othersNs() - others;
    }

    double eachNs() {
        return eachNs;
    }

    /** How long warming up took, for the receipt. */
    String warmUpTime() {
        return warmUpNs / MS + " ms, of which compilers and collector " + othersWarmUpNs / MS + " ms";
    }

    /** How long the compilers have been at work so far, in milliseconds of elapsed time. */
    private long compiledMs() {
        return compilers == null ? 0 : compilers.getTotalCompilationTime();
    }

    /** Goes on until the operation gets no cheaper and the compilers rest. */
    private void warmUp() throws Exception {
        long start = Clock.processNs();
        double[] windows = new double[2 * WINDOWS];
        long[] compiled = new long[2 * WINDOWS];
        long count = 1;
        for (int full = 0; ; ) {
            long window = Clock.processNs();
            batch(count);
            long now = Clock.processNs();
            eachNs = Math.max((double) (now - window) / count, LEAST_NS);
            warmUpNs = now - start;
            // A short window only finds the needed length.
            if (now - window >= WINDOW_NS / 2) {
                int at = full++ % windows.length;
                windows[at] = eachNs;
                compiled[at] = compiledMs();
                if (full >= windows.length && isSteady(windows, compiled, full)) {
                    return;
                }
            }
            if (warmUpNs >= MOST_WARM_UP_NS) {
                return;
            }
            count = Math.min(filling(WINDOW_NS, eachNs), count * 10);
        }
    }

    private static boolean isSteady(double[] windows, long[] compiled, int full) {
        double before = Double.MAX_VALUE;
        double lately = Double.MAX_VALUE;
        for (int back = 1; back <= WINDOWS; back++) {
            lately = Math.min(lately, windows[(full - back) % windows.length]);
            before = Math.min(before, windows[(full - WINDOWS - back) % windows.length]);
        }
        boolean isQuiet = compiled[(full - 1) % compiled.length] == compiled[(full - WINDOWS) % compiled.length];
        return isQuiet && Math.abs(lately / before - 1) <= STEADY;
    }

    /** Performs one chunk of at least this time and this number of operations. */
    JsonObject advance(double askedNs, long operations) throws Exception {
        // What the compilers and the collector did since the last chunk belongs to the work before. What the main
        // thread did was reading and answering lines, which is this program's own affair; what went on before the first
        // chunk was warming up.
        long backgroundNs = othersAtEndNs < 0 ? 0 : Math.max(othersNs() - othersAtEndNs, 0);
        if (askedNs == 0) {
            batch(Math.max((long) (LEAD * operations), operations > 1 ? 1 : 0));
        } else if (eachNs <= LONG * askedNs) {
            batch(filling(LEAD * askedNs, eachNs));
        }
        long wall = System.nanoTime();
        long cpu = Clock.processNs();
        long done = 0;
        long spentNs = 0;
        do {
            long count = Math.max(filling(MARGIN * (askedNs - spentNs), eachNs), operations - done);
            batch(count);
            done += count;
            spentNs = System.nanoTime() - wall;
        } while (spentNs < askedNs || done < operations);
        long cpuNs = Clock.processNs() - cpu;
        long wallNs = System.nanoTime() - wall;
        othersAtEndNs = othersNs();
        eachNs += WEIGHT * (Math.max((double) cpuNs / done, LEAST_NS) - eachNs);
        return line(done, cpuNs + backgroundNs, wallNs, backgroundNs);
    }

    /** A chunk as the contract has it; times in nanoseconds. */
    static JsonObject line(long operations, long cpuNs, long wallNs, long backgroundNs) {
        return new JsonObject()
                .add("operations", operations)
                .add("cpu_ns", cpuNs)
                .add("wall_ns", wallNs)
                .add("observed", new JsonObject().add("background_ns", backgroundNs));
    }

    private void batch(long count) throws Exception {
        for (long done = 0; done < count; done++) {
            SINK.setOpaque(operation.perform());
        }
    }

    /** CPU time of all threads but the one that performs: the JVM's own. */
    private static long othersNs() {
        return Clock.processNs() - Clock.threadNs();
    }

    /** Returns the number of operations of this length that fill the time: at least one. */
    private static long filling(double timeNs, double eachNs) {
        return Math.max((long) Math.ceil(timeNs / eachNs), 1);
    }
}
