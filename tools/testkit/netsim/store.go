package netsim

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Store is a handler that serves the files of a directory as an object store at some distance does: each answer begins
// after a round trip, all answers share the rate of one link, and some are late or fail.
type Store struct {
	Dir   string
	Delay time.Duration // the round trip
	Rate  float64       // bytes a second, of all answers together; 0: no limit
	// Apart gives each address of clients a link of its own.
	Apart bool
	// Every LateEvery-th request is Late. Every FailEvery-th is answered with 503. 0: none.
	LateEvery, FailEvery int64
	Late                 time.Duration

	requests, bytes atomic.Int64

	mu   sync.Mutex
	free map[string]time.Time // when a link has sent what was put on it
}

// Counts returns the requests and the bytes of bodies so far.
func (s *Store) Counts() (requests, bytes int64) { return s.requests.Load(), s.bytes.Load() }

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.requests.Add(1)
	delay := s.Delay
	if s.LateEvery > 0 && n%s.LateEvery == s.LateEvery/2 {
		delay += s.Late
	}
	wait(r, delay)
	name := filepath.Join(s.Dir, filepath.FromSlash(filepath.Clean("/"+r.URL.Path)))
	info, err := os.Stat(name)
	switch {
	case s.FailEvery > 0 && n%s.FailEvery == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case err != nil || info.IsDir():
		http.NotFound(w, r)
	default:
		w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.Size(), info.ModTime().UnixNano()))
		http.ServeFile(&shaped{w, r, s}, r, name)
	}
}

// shaped writes a body at the rate of the link.
type shaped struct {
	http.ResponseWriter
	r     *http.Request
	store *Store
}

// Write implements io.Writer.
func (s *shaped) Write(p []byte) (int, error) {
	wait(s.r, s.store.due(s.r, len(p)))
	s.store.bytes.Add(int64(len(p)))
	return s.ResponseWriter.Write(p)
}

// due puts n bytes on the link of a client, and returns how long it takes until they have arrived.
func (s *Store) due(r *http.Request, n int) time.Duration {
	if s.Rate == 0 {
		return 0
	}
	link := ""
	if s.Apart {
		link, _, _ = net.SplitHostPort(r.RemoteAddr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == nil {
		s.free = map[string]time.Time{}
	}
	now, free := time.Now(), s.free[link]
	if free.Before(now) {
		free = now
	}
	free = free.Add(time.Duration(float64(n) / s.Rate * float64(time.Second)))
	s.free[link] = free
	return free.Sub(now)
}

// wait returns after d, or when the client is gone.
func wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
