package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/internal/accept"
)

// TestPagesBesideIdleConnections promises that connections that say nothing are closed for newer ones, so that a probe
// gets its page beside them.
func TestPagesBesideIdleConnections(t *testing.T) {
	l, err := listenHTTP(t.Context(), "health", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	log := slog.New(slog.DiscardHandler)
	defer serveHealth(l, func(context.Context) error { return nil }, log)()
	most := accept.Descriptors(maxPages, pagesPart)
	all := make([]net.Conn, 0, 2*most)
	for range cap(all) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	r, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err != nil || string(b) != "ok\n" {
		t.Errorf("/healthz: %q, %v", b, err)
	}
	// All connections are of one host, which has half of the places; the last one is of the probe. An open connection
	// gets an answer.
	open := 0
	for _, c := range all {
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.0\r\n\r\n") // a closed one answers nothing
		if b, _ := io.ReadAll(c); len(b) > 0 {
			open++
		}
	}
	if open > most/2 {
		t.Errorf("%d of %d idle connections of one host stayed; the bound is %d", open, len(all), most/2)
	}
}

// TestPagesArePaced promises that a client that asks again and again gets pageRate pages a second after the first ones.
func TestPagesArePaced(t *testing.T) {
	l, err := listenHTTP(t.Context(), "health", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	defer serveHealth(l, func(context.Context) error { return nil }, slog.New(slog.DiscardHandler))()
	begun := time.Now()
	for range 2 * pageRate {
		r, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the connection is used again
		_ = r.Body.Close()                 // it was only read
	}
	if took := time.Since(begun); took < time.Second/2 {
		t.Errorf("%d pages took %v", 2*pageRate, took)
	}
}
