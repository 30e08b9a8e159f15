package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// with returns the context of a call with a header "authorization".
func with(header ...string) context.Context {
	return metadata.NewIncomingContext(context.Background(), metadata.MD{"authorization": header})
}

// gate returns a gate that looks at its files at every call.
func gate(t testing.TB, o GateOptions) *Gate {
	t.Helper()
	o.Every = -1
	g, err := NewGate(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TestTokens promises that a token of the file lets its client in with its roots and limits, and nothing else does.
func TestTokens(t *testing.T) {
	alice, bob, old := NewToken(), NewToken(), NewToken()
	file := fmt.Sprintf(`# who may read

{"name":"alice","sha256":%q,"roots":["/data/a","s3://bucket/a"],"streams":4,"datasets":2,"rate":1000000}
  {"name":"bob","sha256":%q,"expires":%q}
{"name":"old","sha256":%q,"expires":"2020-01-01T00:00:00Z"}
`, hash(alice), strings.ToUpper(hash(bob)), time.Now().Add(time.Hour).Format(time.RFC3339), hash(old))
	dir := t.TempDir()
	path := pki.Write(t, dir, "tokens", []byte(file))
	g := gate(t, GateOptions{Tokens: path})
	p, err := g.Check(with("Bearer " + alice))
	want := Client{Name: "alice", Roots: []string{"/data/a", "s3://bucket/a"}, Limits: Limits{4, 2, 1000000}}
	if err != nil || !reflect.DeepEqual(p.Client, want) {
		t.Errorf("alice is %+v, %v", p, err)
	}
	if p, err := g.Check(with("bearer  " + bob)); err != nil || p.Name != "bob" || p.Roots != nil {
		t.Errorf("bob is %+v, %v", p, err)
	}
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer " + alice}}}
	if p, err := g.CheckHTTP(r); err != nil || p.Name != "alice" {
		t.Errorf("over HTTP, alice is %+v, %v", p, err)
	}
	for name, headers := range map[string][]string{
		"no header": nil, "an empty one": {""}, "no token": {"Bearer "}, "another scheme": {"Basic " + alice},
		"two": {"Bearer " + alice, "Bearer " + alice}, "expired": {"Bearer " + old},
		"unknown":  {"Bearer " + NewToken()},
		"its hash": {"Bearer " + hash(alice)}, "cut": {"Bearer " + alice[:len(alice)-1]}, "a JWT": {"Bearer a.b.c"},
	} {
		p, err := g.Check(with(headers...))
		if err == nil {
			t.Errorf("%s: is %s", name, p.Name)
			continue
		}
		for _, secret := range []string{alice, old, hash(alice)} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the error shows the token: %v", name, err)
			}
		}
	}
	if !p.Valid() {
		t.Error("alice is not valid any more")
	}
	pki.Write(t, dir, "tokens", []byte(strings.ReplaceAll(file, hash(alice), hash("another"))))
	if _, err := g.Check(with("Bearer " + alice)); err == nil || p.Valid() {
		t.Errorf("a revoked token is let in: %v", err)
	}
	if _, err := g.Check(with("Bearer " + bob)); err != nil {
		t.Error(err)
	}
}

// TestBrokenFileOfTokens promises that a file with an error lets nobody else in or out, and that no error shows what
// stands in it.
func TestBrokenFileOfTokens(t *testing.T) {
	token := NewToken()
	sum := hash(token)
	for _, text := range []string{
		token, `{"name":"a"}`, `{"name":"a","sha256":"` + token + `"}`, `{"name":"a","sha256":"` + sum[1:] + `"}`,
		`{"name":"a","sha256":"` + sum + `00"}`, `{"name":"","sha256":"` + sum + `"}`,
		`{"name":"a","token":"` + token + `"}`, `{"name":"a\nb","sha256":"` + sum + `"}`,
		`{"name":"a","sha256":"` + sum + `","streams":-1}`, `{"name":"a","sha256":"` + sum + `"} {}`,
		`{"name":"a","sha256":"` + sum + `"}` + "\n" + `{"name":"b","sha256":"` + sum + `"}`,
		`{"name":"a","sha256":"` + sum + `","expires":"` + token + `"}`,
		`{"name":"` + strings.Repeat("a", maxName+1) + `","sha256":"` + sum + `"}`,
	} {
		_, err := ParseTokens([]byte(text))
		if err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", text, err)
		}
	}
	dir := t.TempDir()
	line, err := Line(token, Client{Name: "a"}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	path := pki.Write(t, dir, "tokens", []byte(line))
	var told []error
	g := gate(t, GateOptions{Tokens: path, Failed: func(err error) { told = append(told, err) }})
	pki.Write(t, dir, "tokens", []byte("oh no"))
	for range 3 {
		if _, err := g.Check(with("Bearer " + token)); err != nil {
			t.Error(err)
		}
	}
	if len(told) != 1 {
		t.Errorf("a broken file is told of %d times: %v", len(told), told)
	}
	pki.Write(t, dir, "tokens", nil)
	if _, err := g.Check(with("Bearer " + token)); err == nil {
		t.Error("an empty file lets in")
	}
}

// TestLine promises that the line of a token lets it in, and holds nothing of it.
func TestLine(t *testing.T) {
	token := NewToken()
	if len(token) != len(Prefix)+43 || token == NewToken() { // 32 bytes in base64
		t.Errorf("a token is %q", token)
	}
	c := Client{Name: "alice", Roots: []string{"/a b", "s3://x"}, Limits: Limits{Rate: 5}}
	line, err := Line(token, c, time.Now().Add(time.Hour))
	if err != nil || strings.Contains(line, token) || strings.Contains(line, "\n") {
		t.Fatalf("%q, %v", line, err)
	}
	list, err := ParseTokens([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := list.find(sha256.Sum256([]byte(token))); !ok || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v, %t", got, ok)
	}
	if _, err := Line(token, Client{}, time.Time{}); err == nil {
		t.Error("a client without a name has a line")
	}
}

// FuzzTokens: a file of tokens is refused, or each of its lines lets in one token alone.
func FuzzTokens(f *testing.F) {
	f.Add([]byte(`{"name":"a","sha256":"` + hash("x") + `"}` + "\n# b\n"))
	f.Add([]byte(`{"name":"a","sha256":"` + hash("x") + `","roots":["/a"],"expires":"2030-01-01T00:00:00Z","rate":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ParseTokens(b)
		if err != nil {
			return
		}
		for _, k := range list.list {
			c, ok := list.find(k.sum)
			want := k.expires.IsZero() || time.Now().Before(k.expires)
			if ok != want || ok && !reflect.DeepEqual(c, k.client) {
				t.Errorf("%+v finds %+v, %t", k, c, ok)
			}
		}
		if c, ok := list.find(sha256.Sum256([]byte("none of them"))); ok {
			t.Errorf("an unknown token is that of %+v", c)
		}
	})
}
