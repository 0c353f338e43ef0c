using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Text.Json;
using Microsoft.Win32.SafeHandles;

/// <summary>One operation, warmed up and then advanced chunk by chunk.</summary>
sealed class Session
{
    /// The compiler's second tier waits for 30 calls of a method, and where it has its delay, until nothing new was called
    /// for 100 ms: before that, costs only seem to have settled.
    const double LeastWarmUpNs = 500e6, LeastQuietNs = 250e6;
    const int LeastWarmUpOperations = 100;
    const double MostWarmUpNs = 3e9;
    /// A window of the warm-up is several chunks, so that collections are in each.
    const string WarmUpLine = "{\"advance\":{\"seconds\":0.005,\"operations\":1}}";
    const double WindowNs = 20e6;
    /// Two consecutive windows that differ by less are steady.
    const double Steady = 0.02;
    /// The compiler is quiet when other threads than this one took less of a window: it compiles a method in 0.1 ms or more.
    const double Quiet = 0.0025;
    /// Share of a chunk that is worked before its clocks start, to refill caches that others used.
    const double Lead = 0.1;
    /// An operation longer than this share of a chunk needs no such lead-in.
    const double Long = 0.25;
    /// A batch aims at slightly more than the requested time, because a short one needs a second batch.
    const double Margin = 1.03;
    /// Smallest time of an operation: the empty loop takes some, and the division needs it.
    const double LeastNs = 0.02;
    /// One hour: a larger number has probably another unit.
    const double MostSeconds = 3600;

    readonly IOperation operation;
    double eachNs;
    byte sink;

    public Session(IOperation operation)
    {
        this.operation = operation;
    }

    public void Run(TextReader lines, TextWriter output, Dictionary<string, object> receipt)
    {
        WarmUp();
        var ready = new Dictionary<string, object>(receipt) { ["operation_ns"] = eachNs };
        Runner.Say(output, new Dictionary<string, object> { ["ready"] = ready });
        while (Turn(lines, output) != null)
        {
        }
    }

    /// <summary>Waits for a line and answers it. Returns the answer; null at the end of the lines.</summary>
    Dictionary<string, object> Turn(TextReader lines, TextWriter output)
    {
        // What other threads spend while this one is asleep is the compiler's and the collector's.
        long others = Clock.OtherThreadsNs();
        string line = lines.ReadLine();
        long backgroundNs = Math.Max(Clock.OtherThreadsNs() - others, 0);
        if (line == null)
        {
            return null;
        }
        var chunk = Advance(line, backgroundNs);
        Runner.Say(output, chunk);
        return chunk;
    }

    /// <summary>Goes on for at least so long and at least so many operations.</summary>
    Dictionary<string, object> Advance(string line, long backgroundNs)
    {
        ReadAdvance(line, out double askedNs, out long asked);
        if (askedNs == 0)
        {
            Batch(Math.Max((long)(Lead * asked), asked > 1 ? 1 : 0));
        }
        else if (eachNs <= Long * askedNs)
        {
            Batch(Filling(Lead * askedNs, eachNs));
        }
        long operations = 0, cpuNs = 0, wallNs = 0, startWall = Clock.WallNs(), startCpu = Clock.ProcessNs();
        while (operations < asked || wallNs < askedNs)
        {
            long count = Math.Max(Filling(Margin * (askedNs - wallNs), eachNs), asked - operations);
            Batch(count);
            operations += count;
            cpuNs = Clock.ProcessNs() - startCpu;
            wallNs = Clock.WallNs() - startWall;
        }
        // One disturbed chunk must not make the following ones short.
        eachNs += (Math.Max((double)cpuNs / operations, LeastNs) - eachNs) / 2;
        return new Dictionary<string, object>
        {
            ["operations"] = operations, ["cpu_ns"] = cpuNs + backgroundNs, ["wall_ns"] = wallNs,
            ["observed"] = new Dictionary<string, object> { ["background_ns"] = backgroundNs },
        };
    }

    /// <summary>
    /// Answers lines of its own until windows in a row cost the same. They come and go as a session's do, through the
    /// same classes: what is compiled a second time after 30 calls is then also what reads and writes lines.
    /// </summary>
    void WarmUp()
    {
        long start = Clock.ProcessNs(), quietSince = Clock.WallNs(), performed = 1;
        operation.Perform();
        eachNs = Math.Max(Clock.ProcessNs() - start, LeastNs);
        var (lines, feed) = Streams.Pipe();
        var output = Streams.Writer(Streams.Nowhere());
        for (double beforeNs = 0; ;)
        {
            long window = Clock.ProcessNs(), others = Clock.OtherThreadsNs(), operations = 0, cpuNs = 0;
            while (cpuNs < WindowNs)
            {
                feed.WriteLine(WarmUpLine);
                var chunk = Turn(lines, output);
                operations += (long)chunk["operations"];
                cpuNs += (long)chunk["cpu_ns"];
            }
            performed += operations;
            long now = Clock.ProcessNs();
            double windowNs = (double)cpuNs / operations, spentNs = now - start;
            if (Clock.OtherThreadsNs() - others >= Quiet * (now - window))
            {
                quietSince = Clock.WallNs();
            }
            bool isQuiet = Clock.WallNs() - quietSince >= LeastQuietNs;
            bool agrees = beforeNs > 0 && Math.Abs(windowNs / beforeNs - 1) <= Steady;
            bool isLongEnough = spentNs >= LeastWarmUpNs && performed >= LeastWarmUpOperations;
            if ((agrees && isQuiet && isLongEnough) || spentNs >= MostWarmUpNs)
            {
                eachNs = windowNs;
                return;
            }
            beforeNs = windowNs;
        }
    }

    void Batch(long count)
    {
        for (; count > 0; count--)
        {
            sink ^= operation.Perform();
        }
    }

    static void ReadAdvance(string line, out double askedNs, out long operations)
    {
        double seconds = 0;
        operations = 0;
        try
        {
            using (var document = JsonDocument.Parse(line))
            {
                foreach (var command in document.RootElement.EnumerateObject())
                {
                    if (command.Name != "advance")
                    {
                        throw Refusal.Failed($"the line is not of the runner contract: `{command.Name}`");
                    }
                    foreach (var one in command.Value.EnumerateObject())
                    {
                        switch (one.Name)
                        {
                            case "seconds":
                                seconds = one.Value.GetDouble();
                                break;
                            case "operations":
                                operations = one.Value.GetInt64();
                                break;
                            default:
                                throw Refusal.Failed($"the line is not of the runner contract: `{one.Name}`");
                        }
                    }
                }
            }
        }
        catch (Exception error) when (error is JsonException || error is InvalidOperationException || error is FormatException)
        {
            throw Refusal.Failed($"the line is not of the runner contract: {error.Message}");
        }
        if (!(seconds >= 0 && seconds <= MostSeconds) || operations < 0 || (seconds == 0 && operations == 0))
        {
            throw Refusal.Failed($"cannot advance {seconds} seconds and {operations} operations");
        }
        askedNs = seconds * 1e9;
    }

    /// <summary>Returns the number of operations of this length that fill the time: at least one.</summary>
    static long Filling(double timeNs, double eachNs) => (long)Math.Max(Math.Ceiling(timeNs / eachNs), 1);
}

/// <summary>Files by their descriptors, all read and written by the same classes.</summary>
static class Streams
{
    [DllImport("libc", EntryPoint = "pipe")]
    static extern int MakePipe([Out] int[] ends);

    public static TextReader Reader(int descriptor) => new StreamReader(Open(descriptor, FileAccess.Read));

    public static TextWriter Writer(int descriptor) => Writer(Open(descriptor, FileAccess.Write));

    public static TextWriter Writer(Stream stream) => new StreamWriter(stream) { AutoFlush = true };

    public static Stream Nowhere() => new FileStream("/dev/null", FileMode.Open, FileAccess.Write, FileShare.ReadWrite, 1);

    public static (TextReader, TextWriter) Pipe()
    {
        var ends = new int[2];
        if (MakePipe(ends) != 0)
        {
            throw new InvalidOperationException("no pipe can be made");
        }
        return (Reader(ends[0]), Writer(ends[1]));
    }

    static Stream Open(int descriptor, FileAccess access)
    {
        return new FileStream(new SafeFileHandle((IntPtr)descriptor, false), access, 1);
    }
}

/// <summary>The kernel's clocks. Process.TotalProcessorTime moves in steps of 10 ms on Linux.</summary>
static class Clock
{
    const int Monotonic = 1, ProcessCpu = 2, ThreadCpu = 3;

    [StructLayout(LayoutKind.Sequential)]
    struct TimeSpec
    {
        public IntPtr Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    static extern int GetTime(int clock, out TimeSpec time);

    public static long WallNs() => Read(Monotonic);

    /// <summary>CPU time of all threads, user and system.</summary>
    public static long ProcessNs() => Read(ProcessCpu);

    /// <summary>CPU time of all threads but the calling one.</summary>
    public static long OtherThreadsNs()
    {
        // This thread goes on between the two, so the process is read first: never more than there was.
        long process = Read(ProcessCpu);
        return process - Read(ThreadCpu);
    }

    static long Read(int clock)
    {
        if (GetTime(clock, out TimeSpec time) != 0)
        {
            throw new InvalidOperationException($"clock_gettime({clock}) failed");
        }
        return (long)time.Seconds * 1000000000 + (long)time.Nanoseconds;
    }
}
