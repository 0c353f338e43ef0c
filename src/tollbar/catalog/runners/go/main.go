// Tollbar's runner for Go: RSA, ECDSA, SHA-256 and AES-GCM of the standard library, over the runner contract
// (docs/runners.md).
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// An operation is the timed work.
type operation interface {
	// perform runs it once. The returned byte depends on the answer, so that no compiler removes the work.
	perform() (byte, error)
	// prove checks that valid inputs are accepted and wrong ones refused.
	prove(*proof) error
}

var families = map[string]struct {
	choices []string
	prepare func(*task) (operation, error)
}{
	"rsa-api": {
		[]string{"none", "key-cached", "key-from-pem", "key-from-der", "key-from-parameters", "key-pooled"},
		prepareRSA,
	},
	"signature": {[]string{"none", "ecdsa-p256"}, prepareECDSA},
	"digest":    {[]string{"none", "sha-256"}, prepareDigest},
	"cipher":    {[]string{"none", "aes-256-gcm"}, prepareCipher},
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<16)
	if err := answer(lines); err != nil {
		outcome := "failed"
		if _, ok := err.(unsupported); ok {
			outcome = "unsupported"
		}
		say(map[string]any{"outcome": outcome, "reason": err.Error(), "receipt": receipt()})
	}
}

func answer(lines *bufio.Reader) error {
	t, err := readTask(lines)
	if err != nil {
		return err
	}
	if t.Mode == "list" {
		var offers []map[string]string
		for family, has := range families {
			for _, choice := range has.choices {
				offers = append(offers, map[string]string{"family": family, "choice": choice})
			}
		}
		say(map[string]any{"outcome": "ok", "receipt": receipt(), "offers": offers})
		return nil
	}
	op, err := prepare(t)
	if err != nil {
		return err
	}
	switch t.Mode {
	case "verify":
		shown := proof{Accepted: []string{}, Refused: []string{}, NotTried: []string{}}
		if _, err := op.perform(); err != nil {
			return err
		}
		if err := op.prove(&shown); err != nil {
			return err
		}
		if shown.Answer == nil && t.has("expected_hex") {
			return failure("the known answer was not tested, because inputs are missing")
		}
		say(map[string]any{"outcome": "ok", "receipt": receipt(), "proof": shown})
	case "measure":
		if err := measure(op, lines); err != nil {
			return err
		}
		say(map[string]any{"outcome": "ok"})
	default:
		return failure("the mode must be list, verify or measure, and is " + t.Mode)
	}
	return nil
}

// prepare returns the operation of a task, and fails if it does not read all settings of the task.
func prepare(t *task) (operation, error) {
	family, known := families[t.Family]
	if !known {
		return nil, unsupported("this runner does not support the family " + t.Family)
	}
	op, err := family.prepare(t)
	if err != nil {
		return nil, err
	}
	if t.Choice == "none" {
		op = nothing{}
	}
	return op, t.settled()
}

// nothing is the null choice of every family.
type nothing struct{}

func (nothing) perform() (byte, error) { return 0, nil }

func (nothing) prove(shown *proof) error {
	shown.leave("a wrong input", "the null choice reads none")
	return shown.accept("the empty operation", true)
}

func receipt() map[string]any {
	version := strings.TrimPrefix(runtime.Version(), "go")
	parts := map[string]string{
		"backend":    "crypto of Go's standard library: Go and Go assembler, no libcrypto",
		"runtime":    runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		"collector":  "concurrent, on threads of its own, GOGC=" + environment("GOGC", "100"),
		"GOMAXPROCS": strconv.Itoa(runtime.GOMAXPROCS(0)) + ": one for each core it may use, 1 where it is pinned",
		"GODEBUG":    environment("GODEBUG", "its defaults"),
		"digest":     "fetched: one hash.Hash, reset; implicit: crypto.SHA256.New() in each call",
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, one := range build.Settings {
			if strings.HasPrefix(one.Key, "GO") && one.Key != "GOOS" && one.Key != "GOARCH" || one.Key == "DefaultGODEBUG" {
				parts["built with "+one.Key] = one.Value
			}
		}
	}
	return map[string]any{
		"provider": "Go " + version + " crypto (" + runtime.GOOS + "/" + runtime.GOARCH + ")",
		"name":     "go " + version,
		"parts":    parts,
	}
}

func environment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func say(line map[string]any) {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = os.Stdout.Write(append(text, '\n'))
	}
	if err != nil {
		// Nothing reads what this runner says.
		os.Exit(1)
	}
}
