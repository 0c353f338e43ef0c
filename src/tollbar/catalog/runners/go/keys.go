package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
)

// Number of ready keys: one for each worker of a server.
const pooledKeys = 8

// keys is one key pair, in the form in which each call gets it.
type keys struct {
	// cached, pooled, or the form that each call imports: pem, der, parameters.
	way                   string
	private               crypto.Signer
	public                crypto.PublicKey
	pool                  chan crypto.Signer
	privateDER, publicDER []byte
	privatePEM, publicPEM []byte
	parameters            rsaParameters
}

// rsaParameters are big-endian numbers, as other vendors' key stores return them.
type rsaParameters struct {
	n, d, p, q, dp, dq, qinv []byte
	e                        int
}

// newKeys encodes the key in every form. The key pair itself is parsed from the encoded form.
func newKeys(way string, key crypto.Signer) (*keys, error) {
	privateDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	k := &keys{
		way: way, privateDER: privateDER, publicDER: publicDER,
		privatePEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER}),
		publicPEM:  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER}),
		pool:       make(chan crypto.Signer, pooledKeys),
	}
	if k.private, err = parsePrivate(privateDER); err != nil {
		return nil, err
	}
	k.public = k.private.Public()
	if one, ok := key.(*rsa.PrivateKey); ok {
		one.Precompute()
		k.parameters = rsaParameters{
			n: one.N.Bytes(), e: one.E, d: one.D.Bytes(), p: one.Primes[0].Bytes(), q: one.Primes[1].Bytes(),
			dp: one.Precomputed.Dp.Bytes(), dq: one.Precomputed.Dq.Bytes(), qinv: one.Precomputed.Qinv.Bytes(),
		}
	}
	for len(k.pool) < pooledKeys {
		pooled, err := parsePrivate(privateDER)
		if err != nil {
			return nil, err
		}
		k.pool <- pooled
	}
	return k, nil
}

// takePrivate returns the private key for one call; the caller then calls giveBack.
func (k *keys) takePrivate() (crypto.Signer, error) {
	switch k.way {
	case "pem":
		block, _ := pem.Decode(k.privatePEM)
		if block == nil {
			return nil, errors.New("the key has no PEM block")
		}
		return parsePrivate(block.Bytes)
	case "der":
		return parsePrivate(k.privateDER)
	case "parameters":
		return k.parameters.private()
	case "pooled":
		return <-k.pool, nil
	}
	return k.private, nil
}

// takePublic returns the public key for one call, and the key for giveBack.
func (k *keys) takePublic() (crypto.PublicKey, crypto.Signer, error) {
	switch k.way {
	case "pem":
		block, _ := pem.Decode(k.publicPEM)
		if block == nil {
			return nil, nil, errors.New("the key has no PEM block")
		}
		public, err := x509.ParsePKIXPublicKey(block.Bytes)
		return public, nil, err
	case "der":
		public, err := x509.ParsePKIXPublicKey(k.publicDER)
		return public, nil, err
	case "parameters":
		return k.parameters.public(), nil, nil
	case "pooled":
		pooled := <-k.pool
		return pooled.Public(), pooled, nil
	}
	return k.public, nil, nil
}

func (k *keys) giveBack(key crypto.Signer) {
	if k.way == "pooled" && key != nil {
		k.pool <- key
	}
}

func (has *rsaParameters) public() *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBytes(has.n), E: has.e}
}

func (has *rsaParameters) private() (crypto.Signer, error) {
	number := func(bytes []byte) *big.Int { return new(big.Int).SetBytes(bytes) }
	key := &rsa.PrivateKey{
		PublicKey: *has.public(), D: number(has.d), Primes: []*big.Int{number(has.p), number(has.q)},
		Precomputed: rsa.PrecomputedValues{Dp: number(has.dp), Dq: number(has.dq), Qinv: number(has.qinv)},
	}
	// Otherwise each signature would compute these values and discard them.
	key.Precompute()
	return key, nil
}

func parsePrivate(der []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	return key.(crypto.Signer), nil
}

func newRSA() (crypto.Signer, error)   { return rsa.GenerateKey(rand.Reader, 2048) }
func newECDSA() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }
