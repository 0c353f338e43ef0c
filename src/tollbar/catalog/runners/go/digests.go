package main

import (
	"bytes"
	"crypto"
	_ "crypto/sha256"
	"hash"
)

// A hasher computes SHA-256 with one kept object, or with a new object in each call.
type hasher struct {
	kept hash.Hash
	out  []byte
}

func newHasher(way string) *hasher {
	if way == "implicit" {
		return &hasher{}
	}
	return &hasher{kept: crypto.SHA256.New()}
}

// sum returns the digest; the next call overwrites it.
func (h *hasher) sum(data []byte) []byte {
	state := h.kept
	if state == nil {
		state = crypto.SHA256.New()
	} else {
		state.Reset()
	}
	state.Write(data)
	h.out = state.Sum(h.out[:0])
	return h.out
}

func prepareDigest(t *task) (operation, error) {
	if t.Op != "hash" {
		return nil, t.without("its operation is hash")
	}
	if t.Choice != "none" && t.Choice != "sha-256" {
		return nil, t.without("its digest is sha-256")
	}
	count, err := t.bytes(4096)
	if err != nil {
		return nil, err
	}
	way, err := t.word("lookup", "fetched", "implicit")
	if err != nil {
		return nil, err
	}
	return &digest{newHasher(way), filled(count, t.Seed), t}, nil
}

type digest struct {
	hasher *hasher
	data   []byte
	task   *task
}

func (d *digest) perform() (byte, error) {
	return d.hasher.sum(d.data)[0], nil
}

func (d *digest) prove(shown *proof) error {
	message, known, err := d.task.message()
	if err != nil {
		return err
	}
	if known {
		shown.answer(d.hasher.sum(message))
	}
	right := append([]byte(nil), d.hasher.sum(d.data)...)
	if err := shown.accept("the same message again", bytes.Equal(right, d.hasher.sum(d.data))); err != nil {
		return err
	}
	return shown.refuse("a tampered message", !bytes.Equal(right, d.hasher.sum(tampered(d.data))))
}
