package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
)

func prepareRSA(t *task) (operation, error) {
	ways := map[string]string{
		"none": "cached", "key-cached": "cached", "key-from-pem": "pem", "key-from-der": "der",
		"key-from-parameters": "parameters", "key-pooled": "pooled",
	}
	way, known := ways[t.Choice]
	if t.Choice == "key-from-store" {
		return nil, t.without("Go has no certificate store that hands out keys; tls.Certificate holds the parsed key itself")
	}
	if !known {
		return nil, t.without("it does not know this way to get a key")
	}
	digest, err := t.word("digest", "fetched", "implicit")
	if err != nil {
		return nil, err
	}
	key := func() (crypto.Signer, error) {
		block, _ := pem.Decode([]byte(t.Inputs["private_key_pem"]))
		if block == nil {
			return nil, failure("the input `private_key_pem` is missing or not in PEM")
		}
		return parsePrivate(block.Bytes)
	}
	return prepareSignatures(t, 60, way, digest, key, newRSA)
}

func prepareECDSA(t *task) (operation, error) {
	if t.Choice != "none" && t.Choice != "ecdsa-p256" {
		return nil, t.without("its signature is ecdsa-p256")
	}
	digest, err := t.word("digest", "sha-256", "sha-1", "sha-384", "sha-512", "none")
	if err != nil {
		return nil, err
	}
	if digest != "sha-256" {
		return nil, t.without("it signs with sha-256, and not with " + digest)
	}
	word, err := t.word("key", "kept", "from-pem", "from-der")
	if err != nil {
		return nil, err
	}
	way := map[string]string{"kept": "cached", "from-pem": "pem", "from-der": "der"}[word]
	return prepareSignatures(t, 32, way, "fetched", newECDSA, newECDSA)
}

func prepareSignatures(
	t *task, bytes int, way, digest string, key, another func() (crypto.Signer, error),
) (operation, error) {
	if t.Op != "sign" && t.Op != "verify" {
		return nil, t.without("it signs and verifies")
	}
	count, err := t.bytes(bytes)
	if err != nil {
		return nil, err
	}
	if t.Choice == "none" {
		return nothing{}, nil
	}
	pair, err := key()
	if err != nil {
		return nil, err
	}
	k, err := newKeys(way, pair)
	if err != nil {
		return nil, err
	}
	s := &signatures{task: t, keys: k, hasher: newHasher(digest), data: filled(count, t.Seed), another: another}
	s.signature, err = s.sign(s.data)
	return s, err
}

// signatures signs or verifies one message, with the key that each call takes from keys.
type signatures struct {
	task            *task
	keys            *keys
	hasher          *hasher
	data, signature []byte
	another         func() (crypto.Signer, error)
}

func (s *signatures) perform() (byte, error) {
	if s.task.Op == "sign" {
		signature, err := s.sign(s.data)
		if err != nil {
			return 0, err
		}
		return signature[len(signature)-1], nil
	}
	right, err := s.verify(s.data, s.signature)
	if err == nil && !right {
		err = failure("the library refused a valid signature")
	}
	return 1, err
}

func (s *signatures) sign(message []byte) ([]byte, error) {
	key, err := s.keys.takePrivate()
	if err != nil {
		return nil, err
	}
	// For RSA this is SignPKCS1v15, for ECDSA SignASN1.
	signature, err := key.Sign(rand.Reader, s.hasher.sum(message), crypto.SHA256)
	s.keys.giveBack(key)
	return signature, err
}

func (s *signatures) verify(message, signature []byte) (bool, error) {
	public, key, err := s.keys.takePublic()
	if err != nil {
		return false, err
	}
	right := verifies(public, s.hasher.sum(message), signature)
	s.keys.giveBack(key)
	return right, nil
}

func verifies(public crypto.PublicKey, digest, signature []byte) bool {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signature) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, digest, signature)
	}
	return false
}

func (s *signatures) prove(shown *proof) error {
	if err := s.proveKnown(shown); err != nil {
		return err
	}
	signature, err := s.sign(s.data)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		what               string
		message, signature []byte
		right              bool
	}{
		{"its own signature", s.data, signature, true},
		{"a tampered message", tampered(s.data), signature, false},
		{"a tampered signature", s.data, tampered(signature), false},
	} {
		accepted, err := s.verify(one.message, one.signature)
		if err != nil {
			return err
		}
		if one.right {
			err = shown.accept(one.what, accepted)
		} else {
			err = shown.refuse(one.what, !accepted)
		}
		if err != nil {
			return err
		}
	}
	if key, ok := s.keys.private.(*rsa.PrivateKey); ok {
		pss, err := rsa.SignPSS(rand.Reader, key, crypto.SHA256, s.hasher.sum(s.data), nil)
		if err != nil {
			return err
		}
		accepted, err := s.verify(s.data, pss)
		if err != nil {
			return err
		}
		if err := shown.refuse("another padding", !accepted); err != nil {
			return err
		}
	}
	return s.proveAnother(shown, signature)
}

// proveAnother replaces the key pair between two calls, and checks that the next call uses the new one.
func (s *signatures) proveAnother(shown *proof, signature []byte) error {
	other, err := s.another()
	if err != nil {
		return err
	}
	digest := append([]byte(nil), s.hasher.sum(s.data)...)
	if err := shown.refuse("another key", !verifies(other.Public(), digest, signature)); err != nil {
		return err
	}
	if s.keys.way == "cached" || s.keys.way == "pooled" {
		return nil
	}
	first, replaced := *s.keys, s.keys
	with, err := newKeys(first.way, other)
	if err != nil {
		return err
	}
	// The parsed keys of the first stay: only the encoded keys that calls import are replaced.
	with.private, with.public = first.private, first.public
	*replaced = *with
	second, err := s.sign(s.data)
	if err != nil {
		return err
	}
	accepted, err := s.verify(s.data, second)
	*replaced = first
	if err != nil {
		return err
	}
	imported := accepted && verifies(other.Public(), digest, second) && !verifies(first.public, digest, second)
	return shown.accept("another key, put in the place of the first between two calls", imported)
}

func (s *signatures) proveKnown(shown *proof) error {
	message, known, err := s.task.message()
	if err != nil {
		return err
	}
	expected, err := s.task.hex("expected")
	if err != nil {
		return err
	}
	_, isRSA := s.keys.private.(*rsa.PrivateKey)
	if !isRSA && s.task.Op == "sign" {
		if err := s.make(shown); err != nil {
			return err
		}
	}
	switch {
	case !known || expected == nil:
		return nil
	case isRSA && s.task.Op == "sign":
		signature, err := s.sign(message)
		if err == nil {
			shown.answer(signature)
		}
		return err
	case isRSA:
		accepted, err := s.verify(message, expected)
		if err != nil {
			return err
		}
		if !accepted {
			return failure("the library refused the known signature")
		}
	default:
		// Signing is randomised, so the proof is that a published signature is accepted.
		der, err := s.task.hex("public_key_der")
		if err != nil || der == nil {
			return err
		}
		public, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return err
		}
		if !verifies(public, s.hasher.sum(message), expected) {
			return failure("the library refused the published signature")
		}
	}
	shown.answer(expected)
	return nil
}

// make signs a text for another implementation to verify.
func (s *signatures) make(shown *proof) error {
	of, there := s.task.Inputs["of"]
	if !there {
		of = "tollbar"
	}
	signature, err := s.sign([]byte(of))
	shown.Made = map[string]string{
		"of": of, "signature_hex": hex.EncodeToString(signature),
		"public_key_der_hex": hex.EncodeToString(s.keys.publicDER),
	}
	return err
}
