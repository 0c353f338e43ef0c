package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// failure is an error of work that should succeed, unsupported one of work that this provider does not have.
type failure string
type unsupported string

func (reason failure) Error() string     { return string(reason) }
func (reason unsupported) Error() string { return string(reason) }

// task is the first line of input: the work to perform.
type task struct {
	Contract int
	Mode     string
	Family   string
	Op       string
	Choice   string
	Provider struct{ Package string }
	// Setting loses each entry that is read, so that the rest is unread.
	Setting map[string]any
	Inputs  map[string]string
	Seed    uint64
}

func readTask(lines *bufio.Reader) (*task, error) {
	line, _ := lines.ReadBytes('\n')
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return nil, failure("the first line is not a task: " + err.Error())
	}
	if t.Contract != 2 {
		return nil, failure(fmt.Sprintf("the task has contract %d, and this runner supports contract 2", t.Contract))
	}
	if t.Provider.Package != "" && t.Provider.Package != "crypto" {
		return nil, unsupported("the package must be crypto, and is " + t.Provider.Package)
	}
	if t.Mode != "list" {
		if cpu, there := t.Setting["cpu"]; there && cpu != "native" {
			return nil, unsupported("this runner cannot switch processor features off")
		}
		delete(t.Setting, "cpu")
	}
	return &t, nil
}

// word reads a setting that must be one of these words; the first is the default.
func (t *task) word(name string, words ...string) (string, error) {
	given, there := t.Setting[name]
	if !there {
		return words[0], nil
	}
	delete(t.Setting, name)
	for _, word := range words {
		if given == word {
			return word, nil
		}
	}
	return "", failure(fmt.Sprintf("the setting `%s` must be %s, and is %v", name, strings.Join(words, " or "), given))
}

// bytes reads the setting `bytes`: the size of the data of an operation.
func (t *task) bytes(otherwise int) (int, error) {
	given, there := t.Setting["bytes"]
	if !there {
		return otherwise, nil
	}
	delete(t.Setting, "bytes")
	const most = 1 << 30
	number, ok := given.(float64)
	if !ok || number < 0 || number > most || number != math.Trunc(number) {
		return 0, failure(fmt.Sprintf("the setting `bytes` must be a whole number up to %d, and is %v", most, given))
	}
	return int(number), nil
}

// settled fails if a setting was not read.
func (t *task) settled() error {
	for name := range t.Setting {
		return failure(fmt.Sprintf("the setting `%s` is not read by `%s` of `%s` (%s)", name, t.Op, t.Choice, t.Family))
	}
	return nil
}

// without returns the error for an operation or a choice that this runner does not support.
func (t *task) without(why string) error {
	return unsupported(fmt.Sprintf("this runner does not support `%s` of `%s` (%s): %s", t.Op, t.Choice, t.Family, why))
}

func (t *task) has(input string) bool {
	_, there := t.Inputs[input]
	return there
}

// hex returns an input in hexadecimal; nil if it is missing.
func (t *task) hex(name string) ([]byte, error) {
	text, there := t.Inputs[name+"_hex"]
	if !there {
		return nil, nil
	}
	data, err := hex.DecodeString(text)
	if err != nil {
		return nil, failure(fmt.Sprintf("the input `%s_hex` is not hexadecimal: %v", name, err))
	}
	return data, nil
}

// message returns the message of the known answer; false if there is none.
func (t *task) message() ([]byte, bool, error) {
	if t.has("of_hex") {
		data, err := t.hex("of")
		return data, err == nil, err
	}
	text, there := t.Inputs["of"]
	return []byte(text), there, nil
}

// filled returns pseudo-random bytes that depend only on the seed (SplitMix64, as in the engine).
func filled(count int, seed uint64) []byte {
	data := make([]byte, 0, count+8)
	for len(data) < count {
		seed += 0x9e3779b97f4a7c15
		z := (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		data = binary.LittleEndian.AppendUint64(data, z^z>>31)
	}
	return data[:count]
}

// tampered returns a copy with its last bit flipped; one zero byte for empty data.
func tampered(data []byte) []byte {
	if len(data) == 0 {
		return []byte{0}
	}
	other := append([]byte(nil), data...)
	other[len(other)-1] ^= 1
	return other
}

// proof is the result of checking an operation before it is timed.
type proof struct {
	Answer   *string  `json:"answer"`
	Accepted []string `json:"accepted"`
	Refused  []string `json:"refused"`
	NotTried []string `json:"not_tried"`
	Made     any      `json:"made,omitempty"`
}

func (shown *proof) answer(data []byte) {
	text := hex.EncodeToString(data)
	shown.Answer = &text
}

// accept records that a valid input was accepted, or fails.
func (shown *proof) accept(what string, accepted bool) error {
	if !accepted {
		return failure("not accepted: " + what)
	}
	shown.Accepted = append(shown.Accepted, what)
	return nil
}

// refuse records that a wrong input was refused, or fails.
func (shown *proof) refuse(what string, refused bool) error {
	if !refused {
		return failure("not refused: " + what)
	}
	shown.Refused = append(shown.Refused, what)
	return nil
}

// leave records that a wrong input could not be tried, and why.
func (shown *proof) leave(what, why string) {
	shown.NotTried = append(shown.NotTried, what+": "+why)
}
