package client

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// TestBearer promises that a token is in a header and nowhere else.
func TestBearer(t *testing.T) {
	token := auth.NewToken()
	for _, bad := range []string{"", " ", "a b", "a\nb", "ä"} {
		if _, err := Token(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	path := pki.Write(t, t.TempDir(), "token", []byte(token+"\n"))
	t.Setenv(TokenVariable, "")
	t.Setenv(TokenFileVariable, path)
	b, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	md, err := b.GetRequestMetadata(t.Context())
	if err != nil || md["authorization"] != "Bearer "+token {
		t.Errorf("%v, %v", md, err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		options := struct{ Token *Bearer }{b}
		if s := fmt.Sprintf(format+format, b, options); strings.Contains(s, token) {
			t.Errorf("%s prints the token", format)
		}
	}
	for target, ok := range map[string]bool{
		"127.0.0.1:7447": true, "[::1]:7447": true, "localhost:7447": true, "unix:/tmp/s": true,
		"unix-abstract:x": true,
		"127.9.9.9:1":     true, "10.0.0.1:7447": false, "localhost.evil.org:1": false, "example.org:7447": false,
		"dns:///localhost:1": false, "passthrough:127.0.0.1:1": false, "127.0.0.1.evil.org:1": false, "": false,
		"[::]:1": false, "0.0.0.0:1": false,
	} {
		if err := maySend(target); (err == nil) != ok {
			t.Errorf("%s: %v", target, err)
		}
	}
}
