import com.sun.jna.Native;

/**
 * The kernel's CPU clocks. The JDK has one of the whole process too (OperatingSystemMXBean.getProcessCpuTime), which goes
 * by ticks of 10 ms on Linux, where a chunk is 5 ms long.
 */
final class Clock {
    private static final int PROCESS = 2;
    private static final int THREAD = 3;
    private static final long[] TIME = new long[2];

    static {
        Native.register(Clock.class, "c");
    }

    private Clock() {}

    /** Two longs for a struct timespec: what it is on 64-bit Linux. */
    private static native int clock_gettime(int clock, long[] time);

    /** CPU time in nanoseconds of all threads of this process, those that have ended included. */
    static long processNs() {
        return read(PROCESS);
    }

    /** CPU time in nanoseconds of the calling thread. */
    static long threadNs() {
        return read(THREAD);
    }

    private static long read(int clock) {
        if (clock_gettime(clock, TIME) != 0) {
            throw new IllegalStateException("the kernel's clock of CPU time cannot be read");
        }
        return TIME[0] * 1_000_000_000L + TIME[1];
    }
}
