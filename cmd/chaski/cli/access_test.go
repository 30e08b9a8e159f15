package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// said is written by several goroutines of a server.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String implements fmt.Stringer.
func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// serving is a running chaski serve.
type serving struct {
	listen, metrics string
	stderr          *said
}

var metricsLine = regexp.MustCompile(`msg=metrics address=(\S+)`)

// serveWith runs chaski serve until the test ends.
func serveWith(t *testing.T, args ...string) *serving {
	t.Helper()
	s := &serving{stderr: &said{}}
	ctx, cancel := context.WithCancel(t.Context())
	out, stdout := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve"}, args...), console.Env{
			In: strings.NewReader(""), Out: stdout, Err: s.stderr,
		})
		stdout.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("exit %d: %s", code, s.stderr)
		}
	})
	var ready struct{ Listen string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err, s.stderr)
	}
	s.listen = ready.Listen
	if m := metricsLine.FindStringSubmatch(s.stderr.String()); m != nil {
		s.metrics = m[1]
	}
	return s
}

// info asks the server about a file with a token, or without one if it is empty.
func (s *serving) info(t *testing.T, token, path string) error {
	t.Helper()
	o := client.Options{Patience: -1, Logger: slog.New(slog.DiscardHandler)}
	if token != "" {
		var err error
		if o.Token, err = client.Token(token); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.Dial(s.listen, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Info(t.Context(), path)
	return err
}

// get returns the status of a page of the metrics, and the page.
func (s *serving) get(t *testing.T, page, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.metrics+page, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

var pasted = regexp.MustCompile(`(?m)^export CHASKI_TOKEN=(\S+)$`)

// TestServeMakesAToken promises that a server on a loopback address prints a token, once, that lets in to batches and
// metrics, that nobody gets in without it, and that --insecure asks for none.
func TestServeMakesAToken(t *testing.T) {
	defer http.DefaultClient.CloseIdleConnections()
	chip := testdata(t, "raster", "tog", "tog-series-0.tif")
	args := []string{"--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--root", filepath.Dir(chip)}
	s := serveWith(t, args...)
	m := pasted.FindStringSubmatch(s.stderr.String())
	if m == nil {
		t.Fatalf("no token: %s", s.stderr)
	}
	if err := s.info(t, m[1], chip); err != nil {
		t.Error(err)
	}
	for _, token := range []string{"", auth.NewToken()} {
		if err := s.info(t, token, chip); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without the token: %v", err)
		}
		if code, _ := s.get(t, "/metrics", token); code != http.StatusUnauthorized {
			t.Errorf("metrics without the token: %d", code)
		}
	}
	code, page := s.get(t, "/metrics", m[1])
	if code != http.StatusOK || !strings.Contains(page, "chaski_server_streams") {
		t.Errorf("metrics: %d, %s", code, page)
	}
	for _, page := range []string{"/healthz", "/readyz"} { // without a token
		if code, text := s.get(t, page, ""); code != http.StatusOK || text != "ok\n" {
			t.Errorf("%s: %d, %s", page, code, text)
		}
	}
	if n := strings.Count(s.stderr.String(), m[1]); n != 1 {
		t.Errorf("the token is printed %d times", n)
	}
	open := serveWith(t, append(args, "--insecure")...)
	if err := open.info(t, "", chip); err != nil || strings.Contains(open.stderr.String(), auth.Prefix) {
		t.Errorf("insecure: %v, %s", err, open.stderr)
	}
	if code, _ := open.get(t, "/metrics", ""); code != http.StatusOK {
		t.Errorf("metrics, insecure: %d", code)
	}
}

// TestTokenCommand promises that the line of `chaski token` lets the token in that it printed, below its roots.
func TestTokenCommand(t *testing.T) {
	chip, other := testdata(t, "raster", "tog", "tog-series-0.tif"), testdata(t, "demo", "coast.tif")
	r := chaski(t.Context(), "token", "--root", filepath.Dir(chip), "--streams", "2", "--valid", "1h", "alice")
	if r.code != 0 || strings.Count(r.out, "\n") != 1 {
		t.Fatalf("%+v", r)
	}
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	token := lines[len(lines)-1]
	if strings.Contains(r.out, token) {
		t.Fatalf("the line holds the token: %s", r.out)
	}
	s := serveWith(t, "--listen", "127.0.0.1:0", "--root", filepath.Dir(chip), "--root", filepath.Dir(other),
		"--tokens", pki.Write(t, t.TempDir(), "tokens", []byte(r.out)))
	if err := s.info(t, token, chip); err != nil {
		t.Error(err)
	}
	if err := s.info(t, token, other); status.Code(err) != codes.NotFound {
		t.Errorf("another root: %v", err)
	}
	if err := s.info(t, "", chip); status.Code(err) != codes.Unauthenticated {
		t.Errorf("no token: %v", err)
	}
	if text := s.stderr.String(); strings.Contains(text, token) || pasted.MatchString(text) {
		t.Errorf("the log shows a token: %s", text)
	}
}

// TestServeRefusesBrokenAccess promises that a server does not start with files that say who may call and are broken,
// and that the line about them shows no secret.
func TestServeRefusesBrokenAccess(t *testing.T) {
	dir := t.TempDir()
	pair := pki.New(t, "a").Issue(t, "server", pki.Valid())
	cert, key := pki.Write(t, dir, "cert", pair.Certificate), pki.Write(t, dir, "key", pair.Key)
	token := auth.NewToken()
	bare := pki.Write(t, dir, "tokens", []byte(token))
	for _, flags := range [][]string{
		{"--tokens", bare},
		{"--tokens", filepath.Join(dir, "none")},
		{"--jwks", bare, "--jwt-audience", "chaski"},
		{"--tls-cert", key, "--tls-key", key},
		{"--tls-cert", cert, "--tls-key", cert},
		{"--tls-cert", cert, "--tls-key", key, "--client-ca", key},
	} {
		r := chaski(t.Context(), append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
		if r.code != 1 || !errorLine.MatchString(r.err) || strings.Contains(r.err, token) ||
			strings.Contains(r.err, "PRIVATE KEY") {
			t.Errorf("%s: %+v", fmt.Sprint(flags), r)
		}
	}
	none := filepath.Join(dir, "none")
	want := "chaski: " + none + ": file: not found\n"
	if r := chaski(t.Context(), "serve", "--listen", "127.0.0.1:0", "--tokens", none); r.err != want {
		t.Errorf("%q, want %q", r.err, want)
	}
}

var healthLine = regexp.MustCompile(`msg=health address=(\S+)`)

// TestHealthWithoutCertificate promises that a server which asks for certificates of clients tells its health to those
// without one at --health, where it tells nothing else.
func TestHealthWithoutCertificate(t *testing.T) {
	dir, authority := t.TempDir(), pki.New(t, "a")
	pair := authority.Issue(t, "server", pki.Valid())
	s := serveWith(t, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--tls-cert", pki.Write(t, dir, "cert", pair.Certificate), "--tls-key", pki.Write(t, dir, "key", pair.Key),
		"--client-ca", pki.Write(t, dir, "ca", authority.PEM()))
	m := healthLine.FindStringSubmatch(s.stderr.String())
	if m == nil {
		t.Fatal(s.stderr)
	}
	s.metrics = m[1] // get asks there
	for page, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/": 404} {
		if code, text := s.get(t, page, ""); code != want {
			t.Errorf("%s: %d, %s", page, code, text)
		}
	}
}
