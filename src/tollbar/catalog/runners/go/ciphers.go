package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

const tagBytes = 16

func prepareCipher(t *task) (operation, error) {
	if t.Op != "encrypt" && t.Op != "decrypt" {
		return nil, t.without("it encrypts and decrypts")
	}
	if t.Choice != "none" && t.Choice != "aes-256-gcm" {
		return nil, t.without("its cipher is aes-256-gcm")
	}
	count, err := t.bytes(4096)
	if err != nil {
		return nil, err
	}
	way, err := t.word("key", "kept", "fresh")
	if err != nil {
		return nil, err
	}
	g := &gcm{task: t, key: filled(32, ^t.Seed), nonce: filled(12, t.Seed<<32|t.Seed>>32), plain: filled(count, t.Seed)}
	if way == "kept" {
		if g.kept, err = newAEAD(g.key); err != nil {
			return nil, err
		}
	}
	return g, g.encrypt()
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// gcm is AES-256-GCM with a key that is set up once (kept), or again for each message.
type gcm struct {
	task                              *task
	kept                              cipher.AEAD
	key, nonce, plain, sealed, opened []byte
}

// aead returns the cipher for the next message.
func (g *gcm) aead() (cipher.AEAD, error) {
	if g.kept != nil {
		return g.kept, nil
	}
	return newAEAD(g.key)
}

func (g *gcm) encrypt() error {
	// A nonce used twice reveals the plaintexts, so each message has the next one.
	for index := len(g.nonce) - 1; index >= 0; index-- {
		g.nonce[index]++
		if g.nonce[index] != 0 {
			break
		}
	}
	aead, err := g.aead()
	if err != nil {
		return err
	}
	g.sealed = aead.Seal(g.sealed[:0], g.nonce, g.plain, nil)
	if len(g.sealed) != len(g.plain)+tagBytes {
		return failure(fmt.Sprintf("the ciphertext has %d bytes for a plaintext of %d", len(g.sealed), len(g.plain)))
	}
	return nil
}

func (g *gcm) decrypt() error {
	aead, err := g.aead()
	if err != nil {
		return err
	}
	if g.opened, err = aead.Open(g.opened[:0], g.nonce, g.sealed, nil); err != nil {
		return err
	}
	if len(g.opened) != len(g.plain) {
		return failure(fmt.Sprintf("the plaintext has %d bytes instead of %d", len(g.opened), len(g.plain)))
	}
	return nil
}

func (g *gcm) perform() (byte, error) {
	if g.task.Op == "encrypt" {
		err := g.encrypt()
		return g.sealed[len(g.sealed)-1], err
	}
	err := g.decrypt()
	if len(g.opened) == 0 {
		return 0, err
	}
	return g.opened[0], err
}

func (g *gcm) prove(shown *proof) error {
	if err := g.proveKnown(shown); err != nil {
		return err
	}
	if err := g.encrypt(); err != nil {
		return err
	}
	if err := g.decrypt(); err != nil {
		return err
	}
	if err := shown.accept("its own ciphertext", bytes.Equal(g.opened, g.plain)); err != nil {
		return err
	}
	first := append([]byte(nil), g.sealed...)
	if err := g.encrypt(); err != nil {
		return err
	}
	if err := shown.refuse("the same ciphertext twice", !bytes.Equal(first, g.sealed)); err != nil {
		return err
	}
	right := *g
	for _, one := range []struct {
		what   string
		change func()
	}{
		{"a tampered ciphertext", func() { g.sealed = append([]byte{right.sealed[0] ^ 1}, right.sealed[1:]...) }},
		{"a tampered tag", func() { g.sealed = tampered(right.sealed) }},
		{"another nonce", func() { g.nonce = tampered(right.nonce) }},
		{"another key", func() {
			g.key = tampered(right.key)
			if right.kept != nil {
				g.kept, _ = newAEAD(g.key)
			}
		}},
	} {
		one.change()
		err := g.decrypt()
		*g = right
		if err := shown.refuse(one.what, err != nil); err != nil {
			return err
		}
	}
	return nil
}

// proveKnown encrypts the inputs of the known answer, and checks that the result decrypts again.
func (g *gcm) proveKnown(shown *proof) error {
	plain, known, err := g.task.message()
	if err != nil || !known {
		return err
	}
	var inputs [3][]byte
	for index, name := range []string{"key", "iv", "aad"} {
		if inputs[index], err = g.task.hex(name); err != nil {
			return err
		}
	}
	aead, err := newAEAD(inputs[0])
	if err != nil {
		return err
	}
	if len(inputs[1]) != aead.NonceSize() {
		return unsupported(fmt.Sprintf("crypto/cipher needs nonces of %d bytes", aead.NonceSize()))
	}
	sealed := aead.Seal(nil, inputs[1], plain, inputs[2])
	opened, err := aead.Open(nil, inputs[1], sealed, inputs[2])
	if err != nil || !bytes.Equal(opened, plain) {
		return failure("the known answer does not decrypt to its plaintext")
	}
	shown.answer(sealed)
	return nil
}
