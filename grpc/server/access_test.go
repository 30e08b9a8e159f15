package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// guardedServer is a server on loopback TCP with tokens and certificates, whose files a test may change.
type guardedServer struct {
	dir, tokens string
	authority   *pki.Authority
	target      string
	log         *locked
}

// line returns a token and its line.
func line(t *testing.T, c auth.Client) (token, line string) {
	t.Helper()
	token = auth.NewToken()
	line, err := auth.Line(token, c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return token, line + "\n"
}

// serveGuarded starts a server with the given lines of tokens; mtls also asks for certificates of clients.
func serveGuarded(t *testing.T, o Options, lines string, mtls bool) *guardedServer {
	t.Helper()
	g := &guardedServer{dir: t.TempDir(), authority: pki.New(t, "authority"), log: &locked{}}
	g.tokens = pki.Write(t, g.dir, "tokens", []byte(lines))
	g.certify(t, g.authority.Issue(t, "server", pki.Valid()))
	to := auth.TLSOptions{Certificate: filepath.Join(g.dir, "cert"), Key: filepath.Join(g.dir, "key"),
		Protocols: []string{"h2"}, Every: -1}
	if mtls {
		to.ClientAuthorities = pki.Write(t, g.dir, "clients", g.authority.PEM())
	}
	config, err := auth.ServerTLS(to)
	if err != nil {
		t.Fatal(err)
	}
	if o.Gate, err = auth.NewGate(auth.GateOptions{Tokens: g.tokens, Certificates: mtls, Every: -1}); err != nil {
		t.Fatal(err)
	}
	o.Credentials = credentials.NewTLS(config)
	l, target, _ := listenTCP(t)
	g.target = target
	r := startWith(t, l, o, slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { r.stop(t) })
	return g
}

// certify gives the server a certificate.
func (g *guardedServer) certify(t *testing.T, p pki.Pair) {
	t.Helper()
	pki.Write(t, g.dir, "key", p.Key)
	pki.Write(t, g.dir, "cert", p.Certificate)
}

// trusting returns the credentials of a client that trusts an authority and has a certificate (nil: none).
func trusting(t *testing.T, a *pki.Authority, own *pki.Pair) credentials.TransportCredentials {
	t.Helper()
	if own == nil {
		own = &pki.Pair{}
	}
	config, err := auth.ClientTLS(a.PEM(), own.Certificate, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(config)
}

// dial connects to the server with a token (empty: none), trusting an authority (nil: none, in plain text).
func (g *guardedServer) dial(t *testing.T, token string, a *pki.Authority, own *pki.Pair) *client.Client {
	t.Helper()
	o := client.Options{Logger: quiet, Backoff: time.Millisecond, Timeout: 5 * time.Minute, Patience: -1}
	if a != nil {
		o.Credentials = trusting(t, a, own)
	}
	if token != "" {
		var err error
		if o.Token, err = client.Token(token); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.Dial(g.target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// asker returns a client of dialed.
func (g *guardedServer) asker(t *testing.T, a *pki.Authority, own *pki.Pair) chaskiv1.ChaskiClient {
	t.Helper()
	return chaskiv1.NewChaskiClient(g.dialed(t, a, own))
}

// dialed returns a connection to a server; authority and certificate may be nil.
func (g *guardedServer) dialed(t *testing.T, a *pki.Authority, own *pki.Pair) *grpc.ClientConn {
	t.Helper()
	how := insecure.NewCredentials()
	if a != nil {
		how = trusting(t, a, own)
	}
	conn, err := grpc.NewClient(g.target, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// askAll makes one call of every kind, and returns the status of each.
func askAll(t *testing.T, c *client.Client, path string) map[string]error {
	t.Helper()
	_, info := c.Info(t.Context(), path)
	_, read := c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{path}})
	_, open := c.Open(t.Context(), loader.Spec{Source: path, BatchSize: 1})
	return map[string]error{"info": info, "read": read, "open": open}
}

// TestWhoIsLetIn promises that only clients with a known token, and with mTLS a valid certificate, get anything, over
// TLS to a server that they trust; and that neither errors nor the log show a token.
func TestWhoIsLetIn(t *testing.T) {
	chips := t.TempDir()
	chip := filepath.Join(chips, "a.tif")
	copyFile(t, chip, "raster", "tog", "tog-odd-16.tif")
	alice, aliceLine := line(t, auth.Client{Name: "alice"})
	for _, mtls := range []bool{false, true} {
		g := serveGuarded(t, Options{Roots: []string{chips}}, aliceLine, mtls)
		own := g.authority.Issue(t, "alice's machine", pki.Valid())
		for what, err := range askAll(t, g.dial(t, alice, g.authority, &own), chip) {
			if err != nil {
				t.Errorf("mtls %t: %s: %v", mtls, what, err)
			}
		}
		other := pki.New(t, "another")
		expired, foreign := g.authority.Issue(t, "alice", pki.Expired()), other.Issue(t, "alice", pki.Valid())
		wrong := auth.NewToken()
		for name, c := range map[string]struct {
			client *client.Client
			code   codes.Code
			always bool // without mTLS, too
		}{
			"no token":            {g.dial(t, "", g.authority, &own), codes.Unauthenticated, true},
			"wrong token":         {g.dial(t, wrong, g.authority, &own), codes.Unauthenticated, true},
			"plain text":          {g.dial(t, alice, nil, nil), codes.Unavailable, true},
			"unknown server":      {g.dial(t, alice, other, &own), codes.Unavailable, true},
			"no certificate":      {g.dial(t, alice, g.authority, nil), codes.Unavailable, false},
			"expired certificate": {g.dial(t, alice, g.authority, &expired), codes.Unavailable, false},
			"other authority":     {g.dial(t, alice, g.authority, &foreign), codes.Unavailable, false},
		} {
			if !c.always && !mtls {
				continue
			}
			for what, err := range askAll(t, c.client, chip) {
				if code := codeOf(err); code != c.code {
					t.Errorf("mtls %t, %s: %s: %v, not %v: %v", mtls, name, what, code, c.code, err)
				}
				if err != nil && (strings.Contains(err.Error(), alice) || strings.Contains(err.Error(), wrong)) {
					t.Errorf("%s: the error shows a token: %v", name, err)
				}
			}
		}
		if log := g.log.String(); strings.Contains(log, alice) || strings.Contains(log, wrong) {
			t.Errorf("the log shows a token:\n%s", log)
		}
	}
}

// codeOf returns the code of a status that may be wrapped.
func codeOf(err error) codes.Code {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Code()
	}
	return status.Code(err)
}

// TestTenants promises that a client reads what lies below its own roots, and gets about those of another one, and
// about roots of its own that the server does not have, the same answer as about any path outside, whether there is a
// file or not. A handle that another client was given is unknown.
func TestTenants(t *testing.T) {
	dir := t.TempDir()
	roots, chip := map[string]string{}, map[string]string{}
	for _, name := range []string{"alice", "bob", "outside"} {
		roots[name] = filepath.Join(dir, "roots", name)
		if name == "outside" {
			roots[name] = filepath.Join(dir, name)
		}
		chip[name] = filepath.Join(roots[name], "a.tif")
		copyFile(t, chip[name], "raster", "tog", "tog-odd-16.tif")
	}
	if err := os.Symlink(roots["bob"], filepath.Join(roots["alice"], "link")); err != nil {
		t.Fatal(err)
	}
	alice, a := line(t, auth.Client{Name: "alice", Roots: []string{roots["alice"]}})
	bob, b := line(t, auth.Client{Name: "bob", Roots: []string{roots["bob"], roots["outside"]}})
	all, c := line(t, auth.Client{Name: "all"})
	none, d := line(t, auth.Client{Name: "none", Roots: []string{roots["outside"], "/", "s3://bucket/x"}})
	g := serveGuarded(t, Options{Roots: []string{filepath.Join(dir, "roots")}}, a+b+c+d, false)
	clients := map[string]*client.Client{}
	for name, token := range map[string]string{"alice": alice, "bob": bob, "all": all, "none": none} {
		clients[name] = g.dial(t, token, g.authority, nil)
	}
	for _, may := range [][2]string{{"alice", "alice"}, {"bob", "bob"}, {"all", "alice"}, {"all", "bob"}} {
		for what, err := range askAll(t, clients[may[0]], chip[may[1]]) {
			if err != nil {
				t.Errorf("%s: %s of %s: %v", may[0], what, may[1], err)
			}
		}
	}
	for who, paths := range map[string][]string{
		"alice": {chip["bob"], filepath.Join(roots["bob"], "none.tif"), filepath.Join(roots["alice"], "link", "a.tif"),
			filepath.Join(roots["alice"], "link", "none.tif"), roots["alice"] + "/../bob/a.tif"},
		"bob":  {chip["alice"], filepath.Join(roots["alice"], "none.tif")},
		"none": {chip["alice"], chip["bob"]},
	} {
		for _, p := range append(paths, chip["outside"], filepath.Join(roots["outside"], "none.tif")) {
			for what, err := range askAll(t, clients[who], p) {
				want := "outside of the served directories"
				if who == "none" {
					want = "this server serves no files"
				}
				if codeOf(err) != codes.NotFound || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s of %s: %v", who, what, p, err)
				}
			}
		}
	}
	// A handle names a dataset by what is in it, so that it may be guessed.
	run, err := clients["alice"].Open(t.Context(), loader.Spec{Source: chip["alice"], BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := firstBatch(t, run); n != 1 {
		t.Errorf("a batch of alice has %d rows", n)
	}
}

// firstBatch returns the rows of the first batch of a run.
func firstBatch(t *testing.T, run *client.Run) int {
	t.Helper()
	l, err := run.Loader(batch.LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	return b.Rows
}

// TestHandleOfAnotherClient promises that a ticket with the handle of a dataset that was opened for a client with other
// roots is one of an unknown spec.
func TestHandleOfAnotherClient(t *testing.T) {
	h := &house{samples: 10, elems: 4}
	s := newEngines(Options{MaxEngines: 4, MaxOpenings: 1, MaxQueuedOpenings: 1, OpenTimeout: time.Minute, Open: h.Open,
		Logger: quiet}.withDefaults())
	defer s.shut()
	v, other := &fileView{key: "a"}, &fileView{key: "b"}
	e, err := s.open(t.Context(), v, spec(2), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.put(e)
	if got, ok := s.get(v, e.handle); !ok || got != e {
		t.Error("its own client does not get it")
	} else {
		s.put(got)
	}
	if _, ok := s.get(other, e.handle); ok {
		t.Error("another client gets it by its handle")
	}
	e2, err := s.open(t.Context(), other, spec(2), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.put(e2)
	if e2 == e || e2.handle == e.handle {
		t.Error("clients with different roots share a dataset")
	}
}

// TestRevokedToken promises that a token whose line is deleted is refused from the next call on, and ends a stream that
// uses it; and that another one goes on.
func TestRevokedToken(t *testing.T) {
	h := &house{samples: 1000, elems: 4}
	alice, a := line(t, auth.Client{Name: "alice"})
	bob, b := line(t, auth.Client{Name: "bob"})
	g := serveGuarded(t, Options{Roots: []string{"/"}, Open: h.Open}, a+b, false)
	loaders := map[string]*batch.Loader{}
	for name, token := range map[string]string{"alice": alice, "bob": bob} {
		run, err := g.dial(t, token, g.authority, nil).Open(t.Context(), spec(2))
		if err != nil {
			t.Fatal(err)
		}
		l, err := run.Loader(batch.LoaderOptions{Prefetch: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		loaders[name] = l
	}
	next := func(name string) error {
		b, err := loaders[name].Next(t.Context())
		if err == nil {
			b.Release()
		}
		return err
	}
	for name := range loaders {
		if err := next(name); err != nil {
			t.Fatal(err)
		}
	}
	pki.Write(t, g.dir, "tokens", []byte(b))
	var err error
	for range 10 { // a batch that was asked for before may still come
		if err = next("alice"); err != nil {
			break
		}
	}
	if codeOf(err) != codes.Unauthenticated || strings.Contains(err.Error(), alice) {
		t.Errorf("a stream of a revoked token: %v", err)
	}
	for range 10 {
		if err := next("bob"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.dial(t, alice, g.authority, nil).Info(t.Context(), "/"); codeOf(err) != codes.Unauthenticated {
		t.Errorf("a call with a revoked token: %v", err)
	}
}

// TestCertificateIsReloaded promises that connections after a change of the files get the new certificate, that a
// stream goes on meanwhile, and that a broken file changes nothing.
func TestCertificateIsReloaded(t *testing.T) {
	h := &house{samples: 1000, elems: 4}
	alice, a := line(t, auth.Client{Name: "alice"})
	g := serveGuarded(t, Options{Roots: []string{"/"}, Open: h.Open}, a, false)
	run, err := g.dial(t, alice, g.authority, nil).Open(t.Context(), spec(2))
	if err != nil {
		t.Fatal(err)
	}
	l, err := run.Loader(batch.LoaderOptions{Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	next := func() {
		t.Helper()
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	open := func(a *pki.Authority) error {
		_, err := g.dial(t, alice, a, nil).Open(context.Background(), spec(2))
		return err
	}
	next()
	second := pki.New(t, "second")
	g.certify(t, second.Issue(t, "server", pki.Valid()))
	next()
	if err := open(second); err != nil {
		t.Errorf("the new certificate: %v", err)
	}
	if err := open(g.authority); err == nil {
		t.Error("the old certificate is still shown")
	}
	pki.Write(t, g.dir, "cert", []byte("broken"))
	next()
	if err := open(second); err != nil {
		t.Errorf("with a broken file: %v", err)
	}
	next()
}
