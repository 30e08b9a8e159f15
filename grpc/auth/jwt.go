package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// algorithms are those that a JSON Web Token may be signed by. Only asymmetric ones are here: with HS256, anybody with
// a public key could sign with it as if it were the secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
	jose.EdDSA,
}

// leeway is how far the clocks of the issuer and of this machine may be apart.
const leeway = 30 * time.Second

// maxJWT bounds a JSON Web Token, in bytes, before its signature is verified. Large issuers' tokens have 1 to 4 KiB.
const maxJWT = 16 << 10

// Keys are the public keys that JSON Web Tokens are signed by.
type Keys struct{ set jose.JSONWebKeySet }

// ParseKeys reads a JSON Web Key Set (RFC 7517). Keys for encryption are left out; a private or symmetric key is an
// error, because a server that only verifies must not have one.
func ParseKeys(b []byte) (*Keys, error) {
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, errors.New("it is not a JSON Web Key Set with keys that are supported")
	}
	keys := &Keys{}
	for i, key := range set.Keys {
		switch {
		case !key.Valid() || !key.IsPublic():
			return nil, fmt.Errorf("key %d (%q) is not a valid public key", i, key.KeyID)
		case key.Use != "" && key.Use != "sig":
			continue
		}
		keys.set.Keys = append(keys.set.Keys, key)
	}
	if len(keys.set.Keys) == 0 {
		return nil, errors.New("it has no key for signatures")
	}
	return keys, nil
}

// claims are those that are read of a token.
type claims struct {
	jwt.Claims
	// Chaski has the roots and limits of the client; without it, the server's hold.
	Chaski *struct {
		Roots []string `json:"roots"`
		Limits
	} `json:"chaski"`
}

var errSigned = errors.New("the token is not signed by a key of this server")

// client verifies a token and returns whose it is, and until when it is valid.
func (k *Keys) client(token, audience, issuer string) (Client, time.Time, error) {
	var none time.Time
	if len(token) > maxJWT {
		return Client{}, none, errSigned
	}
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return Client{}, none, errSigned
	}
	var c claims
	if !k.verify(parsed, &c) {
		return Client{}, none, errSigned
	}
	// From here on the signature is known to be good, so detailed errors help only the owner of the token.
	if c.Expiry == nil {
		return Client{}, none, errors.New("the token has no time at which it expires")
	}
	want := jwt.Expected{Issuer: issuer, AnyAudience: jwt.Audience{audience}, Time: time.Now()}
	err = c.ValidateWithLeeway(want, leeway)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return Client{}, none, errors.New("the token has expired")
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return Client{}, none, errors.New("the token is not valid yet")
	case err != nil:
		return Client{}, none, errors.New("the token is for another audience, or of another issuer")
	}
	out := Client{Name: c.Subject}
	if checkName(out.Name) != nil {
		return Client{}, none, errors.New("the token has no subject that is a name")
	}
	if c.Chaski != nil {
		out.Roots, out.Limits = c.Chaski.Roots, c.Chaski.Limits
		if err := out.Limits.check(); err != nil {
			return Client{}, none, errors.New("the limits of the token are negative")
		}
	}
	return out, c.Expiry.Time().Add(leeway), nil
}

// verify reads the claims of a token with the key that it names, or with any if it names none.
func (k *Keys) verify(t *jwt.JSONWebToken, into *claims) bool {
	h := t.Headers[0]
	for _, key := range k.set.Keys {
		if h.KeyID != "" && key.KeyID != h.KeyID || key.Algorithm != "" && key.Algorithm != h.Algorithm {
			continue
		}
		var c claims
		if t.Claims(key.Key, &c) == nil {
			*into = c
			return true
		}
	}
	return false
}
