package server

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// lineBound is what a line of the log may have: some values of maxLogged, escaped.
const lineBound = 8 << 10

// TestAudit promises that the log says who asked for what, and how it ended, in lines that no request makes long.
func TestAudit(t *testing.T) {
	root := t.TempDir()
	alice, a := line(t, auth.Client{Name: "alice"})
	g := serveGuarded(t, Options{Roots: []string{root}}, a, false)
	c := g.dial(t, alice, g.authority, nil)
	_, _ = c.Info(t.Context(), root+"/secret.tif")
	_, _ = c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{root + "/a.tif", root + "/b.tif"}})
	_, _ = c.Open(t.Context(), loader.Spec{Source: root + "/chips", BatchSize: 1})
	long := strings.Repeat("x/", 400_000)
	_, _ = c.Info(t.Context(), long)
	_, _ = c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{long}})
	_, _ = c.Open(t.Context(), loader.Spec{Source: long, BatchSize: 1})
	_, _ = g.dial(t, auth.NewToken(), g.authority, nil).Info(t.Context(), root)
	log := g.log.String()
	for _, want := range []string{
		`client="token alice" method=Info about=` + root + `/secret.tif result=NotFound`,
		`client="token alice" method=Read about="` + root + `/a.tif ` + root + `/b.tif" result=NotFound`,
		`client="token alice" method=Describe about=` + root + `/chips result=NotFound`,
		`client="host 127.0.0.1" method=Info`, `result=Unauthenticated`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%.5000s", want, log)
		}
	}
	for l := range strings.Lines(log) {
		if len(l) > lineBound {
			t.Errorf("a line has %d bytes: %.200s", len(l), l)
		}
	}
}

// TestAuditIsBounded promises that a flood of calls leaves few lines, and that the next one says how many are missing.
func TestAuditIsBounded(t *testing.T) {
	out := &locked{}
	a := newAudit(slog.New(bounded{slog.NewTextHandler(out, nil)}))
	about := func() string { return "a" }
	for _, l := range []*lineLimit{&a.admissions, &a.refusals} {
		l.limit.SetLimit(0) // no time passes
	}
	const calls = 1000
	refused := status.Error(codes.Unauthenticated, "no token")
	for range calls { // they take no line from those that are let in
		a.call(t.Context(), "/x/Read", about, time.Now(), refused)
	}
	if n := strings.Count(out.String(), "method=Read"); n != auditBurst {
		t.Errorf("%d lines of refused calls, not %d", n, auditBurst)
	}
	for range calls {
		a.call(t.Context(), "/x/Info", about, time.Now(), nil)
	}
	if n := strings.Count(out.String(), "method=Info"); n != auditBurst {
		t.Errorf("%d lines, not %d", n, auditBurst)
	}
	a.admissions.limit.SetBurst(2 * auditBurst)
	a.admissions.limit.SetLimit(1e9)
	a.call(t.Context(), "/x/Info", about, time.Now(), nil)
	if want := fmt.Sprintf("left_out=%d calls=admitted", calls-auditBurst); !strings.Contains(out.String(), want) {
		t.Errorf("the log lacks %s", want)
	}
}

// TestLogHasNoSecretsOfURIs promises that users, passwords and signatures of URIs do not stand in the log, in values of
// any kind, and that the rest does.
func TestLogHasNoSecretsOfURIs(t *testing.T) {
	out := &locked{}
	log := slog.New(bounded{slog.NewTextHandler(out, nil)})
	uri := "https://bob:hunter2@example.org/chips/a.tif?X-Amz-Signature=hunter2&b=hunter2"
	log.Info("m", "a", uri, "b", errors.New(uri+": header at 0: corrupt"), "c", []string{uri, uri},
		"d", `{"sources": [{"source": "`+uri+`"}]}`, "e", "a.tif?b@c", "f", strings.Repeat("x", maxLogged)+uri)
	s := out.String()
	if strings.Contains(s, "hunter2") || strings.Contains(s, "bob") {
		t.Errorf("the log has secrets: %s", s)
	}
	if strings.Count(s, "example.org/chips/a.tif?") != 6 || !strings.Contains(s, "header at 0: corrupt") ||
		!strings.Contains(s, "a.tif?b@c") {
		t.Errorf("the log lacks what is no secret: %s", s)
	}
}

// TestLogIsBounded promises that values of any kind are cut, and keep their ends, but for stacks.
func TestLogIsBounded(t *testing.T) {
	out := &locked{}
	log := slog.New(bounded{slog.NewTextHandler(out, nil)})
	text := "begin" + strings.Repeat("é", 100_000) + "end"
	log.With("a", text).Info("m", "b", errors.New(text), "c", []string{text}, "d", text, "code", codes.OK)
	if s := out.String(); len(s) > 8*maxLogged || strings.Count(s, "begin") != 4 || strings.Count(s, "end") < 3 {
		t.Errorf("%d bytes: %.300s", len(s), s)
	}
	log.Info("m", "stack", text)
	if s := out.String(); len(s) < 200_000 {
		t.Errorf("a stack is cut to %d bytes", len(s))
	}
}

// TestSecretsAreNotCut: what is logged of a spec has no part of a secret, also where its end is cut off.
func TestSecretsAreNotCut(t *testing.T) {
	race.SkipCovered(t)
	for _, more := range []int{0, maxAbout} { // with a JSON that is too large, and with one that is none
		for _, uri := range []string{"https://user:secret@host/a.tif", "https://host/a.tif?signature=secret"} {
			for at := range maxLogged {
				spec := `{"source":"` + strings.Repeat("x", at) + " " + uri + strings.Repeat(" ", more)
				if got := cut(sourceOf([]byte(spec))); strings.Contains(got, "sec") {
					t.Fatalf("%d bytes before, %d after: the log has %q", at, more, got)
				}
			}
		}
	}
}
