package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"
)

// counted is an operation of 20 µs that counts how often it is performed.
type counted struct{ performed int }

func (c *counted) perform() (byte, error) {
	c.performed++
	for start := cpuNS(); cpuNS() < start+20_000; {
	}
	return 0, nil
}

func (c *counted) prove(*proof) error { return nil }

// asking asks for one chunk, and notes how often the operation was performed before that.
type asking struct {
	op     *counted
	line   string
	warmed int
}

func (a *asking) Read(into []byte) (int, error) {
	if a.line == "" {
		return 0, io.EOF
	}
	a.warmed = a.op.performed
	count := copy(into, a.line)
	a.line = a.line[count:]
	return count, nil
}

// A chunk of several operations never begins cold, and a tenth of many leads in.
func TestOperationsLeadIn(t *testing.T) {
	silent, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer func(out *os.File) { os.Stdout = out }(os.Stdout)
	os.Stdout = silent
	for operations, leading := range map[int]int{1: 0, 2: 1, 9: 1, 10: 1, 40: 4} {
		op := &counted{}
		lines := &asking{op: op, line: fmt.Sprintf(`{"advance": {"seconds": 0, "operations": %d}}`+"\n", operations)}
		if err := measure(op, bufio.NewReader(lines)); err != nil {
			t.Fatal(err)
		}
		if performed := op.performed - lines.warmed; performed != leading+operations {
			t.Errorf("a chunk of %d performed %d operations, not %d", operations, performed, leading+operations)
		}
	}
}
