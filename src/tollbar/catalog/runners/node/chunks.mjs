// Operation advanced chunk by chunk: clocks, warm-up, and batches between two readings of the clocks.

import { openSync, readSync, readdirSync } from "node:fs";

const MS = 1e6;
// As long as ten chunks: V8 compiles in the background, and what it is at within one window shows in the next.
const WINDOW_NS = 50 * MS;
// Two consecutive windows that differ by less are steady.
const STEADY = 0.02;
// V8 optimises what has run for long enough; two windows may agree before that.
const LEAST_WARM_UP_NS = 250 * MS;
const MOST_WARM_UP_NS = 3000 * MS;
// Share of a chunk that is worked before its clocks start, to refill caches that others used.
const LEAD = 0.1;
// An operation longer than this share of a chunk needs no such lead-in.
const LONG = 0.25;
// A batch aims at slightly more than the requested time, because a short one needs a second batch.
const MARGIN = 1.03;
// Weight of a chunk in the estimate: one disturbed chunk must not make the following ones short.
const WEIGHT = 0.5;
const LEAST_NS = 0.02;

/**
 * CPU time of the whole process in nanoseconds: getrusage, which is exact to the microsecond here. Linux sums what the
 * scheduler counted for each thread, ended ones included, and brings the calling thread's part up to date first.
 */
function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

function wallNs() {
  return Number(process.hrtime.bigint());
}

/**
 * The CPU time of V8's own threads in nanoseconds, which compile and collect beside the main thread.
 *
 * The kernel brings a thread's schedstat up to date when the thread stops running, so it is exact for the threads that
 * share a core with the reader, and would be late for the reader itself. Files stay open, because finding and opening
 * them costs several times what reading does; V8 starts its threads before it runs any program, and keeps them.
 */
class OtherThreads {
  #buffer = Buffer.alloc(128);
  #files = readdirSync("/proc/self/task")
    .filter((thread) => thread !== String(process.pid))
    .map((thread) => openSync(`/proc/self/task/${thread}/schedstat`));

  cpuNs() {
    let sum = 0;
    for (const file of this.#files) {
      sum += Number.parseInt(this.#buffer.latin1Slice(0, readSync(file, this.#buffer, 0, 128, 0)), 10);
    }
    return sum;
  }
}

// Takes a byte of each answer, so that no compiler removes the work.
let sink = 0;

function batch(perform, count) {
  for (let done = 0; done < count; done++) sink ^= perform();
}

/** Returns the number of operations of this length that fill the time: at least one. */
function filling(timeNs, eachNs) {
  return Math.max(Math.ceil(timeNs / eachNs), 1);
}

/** An operation that is ready and warm. `perform` does it once, and returns a byte of its answer. */
export class Chunks {
  #perform;
  #others = new OtherThreads();
  /** What V8's threads had used when the last chunk ended; undefined before the first. */
  #othersAtEnd;
  /** Recent CPU time of one operation. */
  eachNs;
  /** CPU time that warming up took. */
  warmUpNs;

  constructor(perform) {
    this.#perform = perform;
    this.#warmUp();
  }

  /** Goes on until two windows in a row cost the same. */
  #warmUp() {
    const start = cpuNs();
    let count = 1;
    let before = 0;
    for (;;) {
      const window = cpuNs();
      batch(this.#perform, count);
      const now = cpuNs();
      this.eachNs = Math.max((now - window) / count, LEAST_NS);
      this.warmUpNs = now - start;
      const agrees = Math.abs(this.eachNs / before - 1) <= STEADY;
      if ((agrees && this.warmUpNs >= LEAST_WARM_UP_NS) || this.warmUpNs >= MOST_WARM_UP_NS) return;
      // A short window only finds the needed length.
      before = now - window >= WINDOW_NS / 2 ? this.eachNs : 0;
      count = Math.min(filling(WINDOW_NS, this.eachNs), count * 10);
    }
  }

  /** Performs one chunk of at least this time and this number of operations. */
  advance(askedNs, operations) {
    // What V8's threads did since the last chunk belongs to the work before, whose garbage and code it was about. What
    // the main thread did was reading and answering lines; what went on before the first chunk was warming up.
    const others = this.#others.cpuNs();
    const background = others - (this.#othersAtEnd ?? others);
    if (askedNs === 0) batch(this.#perform, Math.max(Math.floor(LEAD * operations), operations > 1 ? 1 : 0));
    else if (this.eachNs <= LONG * askedNs) batch(this.#perform, filling(LEAD * askedNs, this.eachNs));
    const wall = wallNs();
    const cpu = cpuNs();
    let done = 0;
    let spentNs = 0;
    do {
      const count = Math.max(filling(MARGIN * (askedNs - spentNs), this.eachNs), operations - done);
      batch(this.#perform, count);
      done += count;
      spentNs = wallNs() - wall;
    } while (spentNs < askedNs || done < operations);
    const cpuOfChunk = cpuNs() - cpu;
    const wallOfChunk = wallNs() - wall;
    this.eachNs += WEIGHT * (Math.max(cpuOfChunk / done, LEAST_NS) - this.eachNs);
    this.#othersAtEnd = this.#others.cpuNs();
    return {
      operations: done,
      // Nothing costs nothing: what is shorter than the clock's step is given the least that the contract knows.
      cpu_ns: Math.max(cpuOfChunk + background, 1),
      wall_ns: wallOfChunk,
      observed: { background_ns: background },
    };
  }
}
