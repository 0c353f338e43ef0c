package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand"
	"runtime/metrics"
	"syscall"
	"time"
	"unsafe"
)

const (
	// A window of the warm-up: several chunks long, so that collections are in each.
	windowNS = 20e6
	// Two consecutive windows that differ by less are steady.
	steady = 0.02
	// Windows agree by chance before caches, frequency and the collector's pace have settled.
	leastWarmUpNS = 100e6
	mostWarmUpNS  = 3e9
	// Of operations that leave garbage the collector's first round comes when the warm-up has lasted about as long as it
	// has to: it would be the first chunk's in half of all sessions, and the next one no chunk's. So much longer at the most,
	// which is more than a round takes of those that were tried, and a session begins anywhere in a round.
	roundNS = 200e6
	// Share of a chunk that is worked before its clocks start, to refill caches that others used.
	lead = 0.1
	// An operation longer than this share of a chunk needs no such lead-in.
	long = 0.25
	// A batch aims at slightly more than the requested time, because a short one needs a second batch.
	margin = 1.03
	// Smallest time of an operation: the empty loop takes some, and the division needs it.
	leastNS = 0.02
	// One hour: a larger number has probably another unit.
	mostSeconds = 3600
)

// sink keeps what operations return, so that the compiler cannot leave them out.
var sink byte

type advance struct {
	Seconds    float64
	Operations int
}

// measure warms up, says so, and answers each line by a chunk until the lines end.
func measure(op operation, lines *bufio.Reader) error {
	eachNS, err := warm(op)
	if err != nil {
		return err
	}
	ready := receipt()
	ready["operation_ns"] = eachNS
	say(map[string]any{"ready": ready})
	for {
		// What the process spends while it is asleep here is the collector's, where that has finished what a chunk began.
		// Where it has not, it is what the scheduler spends on falling asleep (0.1 ms), and no operation's.
		collections, asleep := collected(), cpuNS()
		line, err := lines.ReadBytes('\n')
		backgroundNS := cpuNS() - asleep
		if collected() == collections {
			backgroundNS = 0
		}
		if err == io.EOF && len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		asked, err := readAdvance(line)
		if err != nil {
			return err
		}
		askedNS := asked.Seconds * 1e9
		if err := batch(op, leading(asked, eachNS)); err != nil {
			return err
		}
		operations := 0
		start, startCPU := time.Now(), cpuNS()
		var spentCPU, spentWall int64
		for operations < asked.Operations || float64(spentWall) < askedNS {
			count := filling(margin*(askedNS-float64(spentWall)), eachNS)
			if left := asked.Operations - operations; count < left {
				count = left
			}
			if err := batch(op, count); err != nil {
				return err
			}
			operations += count
			spentCPU = cpuNS() - startCPU
			spentWall = time.Since(start).Nanoseconds()
		}
		// One disturbed chunk must not make the following ones short.
		eachNS += (math.Max(float64(spentCPU)/float64(operations), leastNS) - eachNS) / 2
		say(map[string]any{
			"operations": operations, "cpu_ns": spentCPU + backgroundNS, "wall_ns": spentWall,
			"observed": map[string]int64{"background_ns": backgroundNS},
		})
	}
}

// collected is how many collections have ended.
func collected() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func readAdvance(line []byte) (advance, error) {
	var command struct{ Advance *advance }
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&command); err != nil {
		return advance{}, failure("the line is not of the runner contract: " + err.Error())
	}
	asked := command.Advance
	if asked == nil {
		return advance{}, failure("the line is not of the runner contract: it asks for no `advance`")
	}
	if !(asked.Seconds >= 0 && asked.Seconds <= mostSeconds) || asked.Operations < 0 ||
		asked.Seconds == 0 && asked.Operations == 0 {
		return advance{}, failure(fmt.Sprintf("cannot advance %v seconds and %d operations", asked.Seconds, asked.Operations))
	}
	return *asked, nil
}

// warm performs until two windows in a row cost the same, and on to somewhere between two of the collector's rounds.
// Returns the CPU time of one operation.
func warm(op operation) (float64, error) {
	beforeNS, eachNS, count := 0.0, 0.0, 1
	for start := cpuNS(); ; {
		window := cpuNS()
		if err := batch(op, count); err != nil {
			return 0, err
		}
		now := cpuNS()
		eachNS = math.Max(float64(now-window)/float64(count), leastNS)
		spent := float64(now - start)
		agrees := beforeNS > 0 && math.Abs(eachNS/beforeNS-1) <= steady
		if agrees && spent >= leastWarmUpNS || spent >= mostWarmUpNS {
			anywhere := rand.New(rand.NewSource(time.Now().UnixNano())).Float64()
			return eachNS, batch(op, int(anywhere*roundNS/eachNS))
		}
		// Short windows tell only how long one has to be; grown by steps, because first operations are slow.
		beforeNS = 0
		if eachNS*float64(count) >= windowNS/2 {
			beforeNS = eachNS
		}
		if next := filling(windowNS, eachNS); next < 10*count {
			count = next
		} else {
			count *= 10
		}
	}
}

func batch(op operation, count int) error {
	for ; count > 0; count-- {
		folded, err := op.perform()
		if err != nil {
			return err
		}
		sink ^= folded
	}
	return nil
}

// leading is how many operations come before the clocks start. Where a number of them is asked for, a tenth: the same
// in all sessions of a round, whatever an operation takes. One of two to nine, so that no chunk begins cold.
func leading(asked advance, eachNS float64) int {
	askedNS := asked.Seconds * 1e9
	if askedNS == 0 {
		tenth := int(lead * float64(asked.Operations))
		if tenth == 0 && asked.Operations > 1 {
			return 1
		}
		return tenth
	}
	if eachNS > long*askedNS {
		return 0
	}
	return filling(lead*askedNS, eachNS)
}

// filling is how many operations of this length fill the time: at least one.
func filling(timeNS, eachNS float64) int {
	return int(math.Max(math.Ceil(timeNS/eachNS), 1))
}

// cpuNS is the CPU time of the whole process, all its threads, user and system.
func cpuNS() int64 {
	const processCPU = 2 // CLOCK_PROCESS_CPUTIME_ID
	var now syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPU, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		panic(errno)
	}
	return now.Nano()
}
