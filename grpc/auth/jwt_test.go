package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

var b64 = base64.RawURLEncoding.EncodeToString

// issuer signs tokens by the standard library alone, so that the library under test does not judge itself.
type issuer struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, d, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{r, e, d}
}

// keys returns the JSON Web Key Set of the issuer, as RFC 7517 and 8037 write it.
func (i *issuer) keys() []byte {
	point, _ := i.ec.PublicKey.Bytes() // 4, x, y
	return fmt.Appendf(nil, `{"keys":[
		{"kty":"RSA","kid":"r","use":"sig","alg":"RS256","n":%q,"e":"AQAB"},
		{"kty":"EC","kid":"e","crv":"P-256","x":%q,"y":%q},
		{"kty":"OKP","kid":"d","crv":"Ed25519","x":%q}]}`,
		b64(i.rsa.N.Bytes()), b64(point[1:33]), b64(point[33:]), b64(i.ed.Public().(ed25519.PublicKey)))
}

func (i *issuer) sign(t testing.TB, header, claims map[string]any) string {
	t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := b64(h) + "." + b64(c)
	sum := sha256.Sum256([]byte(text))
	var s []byte
	switch header["alg"] {
	case "RS256":
		s, err = rsa.SignPKCS1v15(nil, i.rsa, crypto.SHA256, sum[:])
	case "ES256":
		var r, q *big.Int
		r, q, err = ecdsa.Sign(rand.Reader, i.ec, sum[:])
		s = append(r.FillBytes(make([]byte, 32)), q.FillBytes(make([]byte, 32))...)
	case "EdDSA":
		s = ed25519.Sign(i.ed, []byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + b64(s)
}

// mac signs with a public key as if it were a secret: what HS256 takes that is confused with RS256.
func mac(t testing.TB, secret []byte, claims map[string]any) string {
	t.Helper()
	c, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := b64([]byte(`{"alg":"HS256","kid":"r"}`)) + "." + b64(c)
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return text + "." + b64(m.Sum(nil))
}

func valid() map[string]any {
	return map[string]any{"sub": "alice", "aud": "chaski", "iss": "https://issuer", "exp": time.Now().Add(time.Hour).Unix()}
}

func but(name string, v any) map[string]any {
	c := valid()
	if c[name] = v; v == nil {
		delete(c, name)
	}
	return c
}

// TestJWT promises that a signed token lets in its subject, and that nothing else does: no token without a signature,
// signed by a public key or another issuer, expired, not valid yet, or for another service.
func TestJWT(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	path := pki.Write(t, t.TempDir(), "jwks", i.keys())
	g := gate(t, GateOptions{Keys: path, Audience: "chaski", Issuer: "https://issuer"})
	for alg, kid := range map[string]string{"RS256": "r", "ES256": "e", "EdDSA": "d"} {
		header := map[string]any{"alg": alg, "kid": kid, "typ": "JWT"}
		for name, claims := range map[string]map[string]any{
			"plain": valid(), "several audiences": but("aud", []string{"x", "chaski"}), "valid since": but("nbf", 1),
		} {
			p, err := g.Check(with("Bearer " + i.sign(t, header, claims)))
			if err != nil || p.Name != "alice" || !p.Valid() {
				t.Errorf("%s, %s: %+v, %v", alg, name, p, err)
			}
		}
		if _, err := g.Check(with("Bearer " + i.sign(t, map[string]any{"alg": alg}, valid()))); err != nil {
			t.Errorf("%s without a key's name: %v", alg, err)
		}
		if _, err := g.Check(with("Bearer " + other.sign(t, header, valid()))); err == nil {
			t.Errorf("%s: another issuer's token is taken", alg)
		}
	}
	header := map[string]any{"alg": "RS256", "kid": "r"}
	token := i.sign(t, header, valid())
	bounded := but("chaski", map[string]any{"roots": []string{"/a"}, "streams": 3})
	p, err := g.Check(with("Bearer " + i.sign(t, header, bounded)))
	if err != nil || !reflect.DeepEqual(p.Client, Client{"alice", []string{"/a"}, Limits{Streams: 3}}) {
		t.Errorf("roots and limits: %+v, %v", p, err)
	}
	der, err := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	none := b64([]byte(`{"alg":"none"}`)) + token[strings.Index(token, "."):strings.LastIndex(token, ".")+1]
	own := map[string]any{"alg": "EdDSA", "jwk": json.RawMessage(`{"kty":"OKP"}`)}
	later := time.Now().Add(time.Hour).Unix()
	for name, bad := range map[string]string{
		"none": none, "none with a signature": b64([]byte(`{"alg":"none"}`)) + token[strings.Index(token, "."):],
		"HS256 with the key in PEM": mac(t, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), valid()),
		"HS256 with the key in DER": mac(t, der, valid()), "HS256 with the modulus": mac(t, i.rsa.N.Bytes(), valid()),
		"HS256 with an empty key": mac(t, nil, valid()),
		"expired":                 i.sign(t, header, but("exp", time.Now().Add(-time.Hour).Unix())),
		"no end":                  i.sign(t, header, but("exp", nil)),
		"not yet valid":           i.sign(t, header, but("nbf", later)),
		"issued later":            i.sign(t, header, but("iat", later)),
		"another audience":        i.sign(t, header, but("aud", "other")),
		"no audience":             i.sign(t, header, but("aud", nil)),
		"another issuer":          i.sign(t, header, but("iss", "https://evil")),
		"no subject":              i.sign(t, header, but("sub", nil)),
		"a subject of lines":      i.sign(t, header, but("sub", "a\nb")),
		"negative limits":         i.sign(t, header, but("chaski", map[string]any{"rate": -1})),
		"another key's name":      i.sign(t, map[string]any{"alg": "RS256", "kid": "e"}, valid()),
		"an unknown key's name":   i.sign(t, map[string]any{"alg": "RS256", "kid": "x"}, valid()),
		"a key of its own":        other.sign(t, own, valid()),
		"cut":                     token[:len(token)-4],
		"huge":                    token + strings.Repeat("A", maxJWT),
	} {
		if p, err := g.Check(with("Bearer " + bad)); err == nil {
			t.Errorf("%s: lets in %s", name, p.Name)
		} else if strings.Contains(err.Error(), bad[:20]) {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

// TestKeys promises that a server takes no file of keys by which it could sign, or nothing could be verified.
func TestKeys(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON": "x", "no keys": `{"keys":[]}`, "symmetric": `{"keys":[{"kty":"oct","k":"AAAA"}]}`,
		"for encryption": strings.ReplaceAll(string(newIssuer(t).keys()), `"kid"`, `"use":"enc","kid"`),
		"private": `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",` +
			`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`,
	} {
		if name == "for encryption" {
			text = strings.Replace(text, `"use":"sig",`, "", 1)
		}
		if _, err := ParseKeys([]byte(text)); err == nil {
			t.Errorf("%s: is taken", name)
		}
	}
	if _, err := NewGate(GateOptions{Keys: pki.Write(t, t.TempDir(), "k", newIssuer(t).keys())}); err == nil {
		t.Error("keys without an audience are taken")
	}
}

// FuzzJWT: a token that the issuer did not sign lets nobody in, whatever its keys and the token are.
func FuzzJWT(f *testing.F) {
	i := newIssuer(f)
	good := i.sign(f, map[string]any{"alg": "EdDSA", "kid": "d"}, valid())
	keys, err := ParseKeys(i.keys())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, i.keys())
	f.Add(mac(f, i.rsa.N.Bytes(), valid()), []byte(`{"keys":[]}`))
	text := good[:strings.LastIndex(good, ".")] // what is signed
	f.Fuzz(func(t *testing.T, token string, set []byte) {
		if _, _, err := keys.client(token, "chaski", ""); err == nil && !strings.HasPrefix(token, text) {
			t.Errorf("%q is taken", token)
		}
		if k, err := ParseKeys(set); err == nil {
			_, _, _ = k.client(token, "chaski", "") // it does not panic
		}
	})
}
