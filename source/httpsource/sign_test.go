package httpsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/source/sign"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

// store is a server with an object /box/a, which is read with a signature that its service gives: the number of the
// second in which it ends, by the clock of the store.
type store struct {
	*netsim.Server
	opener *remote.Opener
	skew   time.Duration // by which the clock of the store is ahead
	life   time.Duration
	says   func(end time.Time) string // the answer of the service; nil: a query and its end

	asked, atOnce, most, refused atomic.Int64
}

const asStored = "http://localhost/box/a"

func (s *store) ask(ctx context.Context, uri string) ([]byte, error) {
	s.asked.Add(1)
	if n := s.atOnce.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	defer s.atOnce.Add(-1)
	time.Sleep(100 * time.Millisecond)
	end := time.Now().Add(s.skew + s.life)
	if s.says != nil {
		return []byte(s.says(end)), nil
	}
	return fmt.Appendf(nil, `{"token": "sig=%d", "msft:expiry": %q}`, end.Unix(), end.UTC().Format(time.RFC3339)), nil
}

// check refuses requests without a valid signature.
func (s *store) check(_ int, r *http.Request) netsim.Fault {
	var end int64
	text := r.URL.Query().Get("sig") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if n, _ := fmt.Sscan(text, &end); n != 1 || time.Now().Add(s.skew).Unix() > end {
		s.refused.Add(1)
		return netsim.Forbidden
	}
	return netsim.None
}

// inStore runs f in a bubble of time with a store.
func inStore(t *testing.T, s *store, f func(t *testing.T, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network netsim.Network
		s.Server = network.NewServer()
		transport := newTransport(8)
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, kind, _ string) (net.Conn, error) {
			return network.DialContext(ctx, kind, strings.TrimPrefix(s.URL, "http://"))
		}
		signer, err := sign.New(sign.Rule{Prefix: "http://localhost/box/", Ask: s.ask})
		if err != nil {
			t.Fatal(err)
		}
		o := quick
		o.Timeout = 10 * time.Second
		if s.opener, err = New(Options{Options: o, Transport: transport, Sign: signer}); err != nil {
			t.Fatal(err)
		}
		s.Put("/box/a", noise(3000))
		s.OnRequest(s.check)
		defer func() {
			s.Close()
			if err := s.opener.Close(); err != nil {
				t.Error(err)
			}
			transport.CloseIdleConnections()
		}()
		f(t, s)
	})
}

const readers = 3 // at a time

// readFor reads with several readers once a minute, and returns what went wrong first.
func (s *store) readFor(d time.Duration) error {
	want := noise(3000)[100:]
	r, err := s.opener.OpenKnown(context.Background(), asStored, source.Known{Size: 3000})
	if err != nil {
		return err
	}
	for range d / time.Minute {
		var all sync.WaitGroup
		errs := make(chan error, readers)
		for range readers {
			all.Go(func() {
				got, err := readAt(r, 100, 2900)
				if err == nil && !bytes.Equal(got, want) {
					err = errors.New("other bytes")
				}
				errs <- err
			})
		}
		all.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		time.Sleep(time.Minute)
	}
	return nil
}

// TestSignatureIsRenewed: in five hours with signatures of 45 minutes, each serves all readers for 40 minutes, and the
// next one is asked for by one of them before the store refuses anything.
func TestSignatureIsRenewed(t *testing.T) {
	for name, says := range map[string]func(time.Time) string{
		"token of a container": nil,
		"headers": func(end time.Time) string {
			return fmt.Sprintf(`{"headers": {"Authorization": "Bearer %d"}, "expires_in": 2700}`, end.Unix())
		},
		"URL": func(end time.Time) string {
			return fmt.Sprintf(`{"url": "http://localhost/box/a?se=%s&sig=%d"}`, end.UTC().Format(time.RFC3339), end.Unix())
		},
	} {
		t.Run(name, func(t *testing.T) {
			inStore(t, &store{life: 45 * time.Minute, says: says}, func(t *testing.T, s *store) {
				if err := s.readFor(5 * time.Hour); err != nil {
					t.Fatal(err)
				}
				// the 40th, 80th, … minute, and a minute later each time, when a reader comes
				if n := s.asked.Load(); n < 7 || n > 8 {
					t.Errorf("asked %d times", n)
				}
				if s.refused.Load() != 0 || s.most.Load() != 1 {
					t.Errorf("%d requests refused, %d asked for at once", s.refused.Load(), s.most.Load())
				}
			})
		})
	}
}

// TestSignatureWithWrongClocks: with a clock that is behind that of the store, signatures end before we think so; with
// one that is ahead, they have ended when they come.
func TestSignatureWithWrongClocks(t *testing.T) {
	for _, c := range []struct {
		skew       time.Duration
		asked      int64 // at most
		mayRefuse  int64
		expiresNot bool
	}{
		{skew: 20 * time.Minute, asked: 8, mayRefuse: readers * 7},
		{skew: -2 * time.Hour, asked: 301},
		{asked: 8, mayRefuse: readers * 7, expiresNot: true},
	} {
		t.Run(c.skew.String(), func(t *testing.T) {
			s := &store{skew: c.skew, life: 45 * time.Minute}
			if c.skew > 0 || c.expiresNot { // the end is not of our clock: only the refusal tells it
				s.says = func(end time.Time) string { return fmt.Sprintf(`{"query": "?sig=%d"}`, end.Unix()) }
			}
			inStore(t, s, func(t *testing.T, s *store) {
				if err := s.readFor(5 * time.Hour); err != nil {
					t.Fatal(err)
				}
				if s.asked.Load() > c.asked || s.refused.Load() > c.mayRefuse || s.most.Load() != 1 {
					t.Errorf("asked %d times, %d at once; %d requests refused", s.asked.Load(), s.most.Load(),
						s.refused.Load())
				}
			})
		})
	}
}

// TestSignatureEndsEarly: an end that the clock of the store makes too late is told by its refusal.
func TestSignatureEndsEarly(t *testing.T) {
	s := &store{life: 10 * time.Minute}
	s.says = func(end time.Time) string {
		late := end.Add(time.Hour).UTC().Format(time.RFC3339)
		return fmt.Sprintf(`{"query": "sig=%d", "expires": %q}`, end.Unix(), late)
	}
	inStore(t, s, func(t *testing.T, s *store) {
		if err := s.readFor(time.Hour); err != nil {
			t.Fatal(err)
		}
		if n := s.asked.Load(); n < 5 || n > 7 || s.most.Load() != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestNoSignature: a service that fails is an error of the object without secrets, is asked once a second however many
// requests there are, and is asked again afterwards. While the old signature is valid, nobody notices.
func TestNoSignature(t *testing.T) {
	var down atomic.Bool
	s := &store{life: 45 * time.Minute}
	inStore(t, s, func(t *testing.T, s *store) {
		s.says = func(end time.Time) string {
			if down.Load() {
				return `{"query": "sig=secret", "url": "https://secret"}`
			}
			return fmt.Sprintf(`{"query": "sig=%d", "expires": %q}`, end.Unix(), end.UTC().Format(time.RFC3339))
		}
		if err := s.readFor(39 * time.Minute); err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		if err := s.readFor(5 * time.Minute); err != nil {
			t.Fatal("while the old one is valid:", err)
		}
		time.Sleep(3 * time.Minute)
		before, began := s.asked.Load(), time.Now()
		err := s.readFor(time.Minute)
		if !errors.As(err, new(*fault.RequestError)) || fault.KindOf(err) != 0 ||
			strings.Contains(err.Error(), "secret") ||
			!strings.Contains(err.Error(), asStored) || !strings.Contains(err.Error(), "no signature") {
			t.Errorf("without a signature: %v", err)
		}
		took := time.Since(began)
		if n := s.asked.Load() - before; n > int64(took/time.Second)+2 || took > time.Minute {
			t.Errorf("asked %d times in %v", n, took)
		}
		down.Store(false)
		time.Sleep(time.Second)
		if err := s.readFor(2 * time.Minute); err != nil {
			t.Error("when the service is there again:", err)
		}
	})
}

// TestSignerHangs: a service that does not answer is an error after the attempts of a request.
func TestSignerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask := func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		signer, err := sign.New(sign.Rule{Prefix: "http://localhost/", Ask: ask})
		if err != nil {
			t.Fatal(err)
		}
		o := quick
		o.Timeout = 10 * time.Second
		h, err := New(Options{Options: o, Sign: signer, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		began := time.Now()
		_, err = h.Open(context.Background(), asStored)
		if took := time.Since(began); !errors.As(err, new(*fault.RequestError)) || took > time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(time.Minute) // until nobody waits for the answer
	})
}

// TestSignedRedirect: a redirect to another host does not get the headers or the query, and is followed once for many
// ranges.
func TestSignedRedirect(t *testing.T) {
	front, _ := serve(t, quick)
	back, _ := serve(t, quick)
	back.Put("/a", noise(3000))
	front.SetAway(back.URL)
	front.OnRequest(func(_ int, r *http.Request) netsim.Fault {
		if r.Header.Get("X-Key") != "secret" || r.URL.RawQuery != "sig=secret" {
			return netsim.Forbidden
		}
		return netsim.RedirectAway
	})
	signer, err := sign.New(sign.Rule{Prefix: front.URL + "/", Ask: func(context.Context, string) ([]byte, error) {
		return []byte(`{"headers": {"X-Key": "secret"}, "query": "sig=secret"}`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Options{Options: quick, Sign: signer, OtherHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, err := h.OpenKnown(context.Background(), front.URL+"/a", source.Known{Size: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if got, err := readAt(r, int64(i), 500); err != nil || !bytes.Equal(got, noise(3000)[i:i+500]) {
			t.Error(err)
		}
	}
	if n := len(front.Requests()); n != 1 {
		t.Errorf("%d requests to the host that redirects", n)
	}
	for _, r := range back.Requests() {
		if text := fmt.Sprint(r.Header, r.URL); strings.Contains(text, "secret") {
			t.Errorf("the signature went to another host: %s", text)
		}
	}
}

// TestRedirectToNoURL: an error does not have the text of a redirect, which may contain a signature.
func TestRedirectToNoURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1/%zz?sig=secret")
		w.WriteHeader(http.StatusFound)
	}))
	defer server.Close()
	h, err := New(Options{Options: quick, OtherHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.Open(context.Background(), server.URL+"/a")
	if err == nil || !strings.Contains(err.Error(), "a redirect to what is not a URL") ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
