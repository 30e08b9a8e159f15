// Package netsim is for tests of what reads over a network: an HTTP server that serves byte ranges and goes wrong in
// the ways servers do, and a link with a delay and a rate. Everything is on 127.0.0.1.
package netsim

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Fault is a way in which one answer goes wrong.
type Fault string

// The faults.
const (
	None         Fault = ""
	Unavailable  Fault = "503"
	TooMany      Fault = "429 with Retry-After"
	ServerError  Fault = "500"
	NotFound     Fault = "404"
	Forbidden    Fault = "403"
	PastEnd      Fault = "416"
	Failed       Fault = "412"
	ShortBody    Fault = "the connection ends in the body"
	ShortRange   Fault = "a shorter range than asked for"
	WrongRange   Fault = "another range than asked for"
	BadRange     Fault = "a Content-Range that is none"
	Whole        Fault = "200 with the whole object"
	Stall        Fault = "no answer"
	StallBody    Fault = "the body stops"
	Drip         Fault = "the body drips"
	OtherTag     Fault = "another ETag"
	OtherSize    Fault = "another size"
	NoSize       Fault = "a range of an unknown size"
	Reset        Fault = "the connection is reset"
	Garbage      Fault = "an answer that is not HTTP"
	Gzip         Fault = "Content-Encoding: gzip"
	Multipart    Fault = "multipart/byteranges"
	Extra        Fault = "a longer body than its range"
	RedirectHere Fault = "a redirect on the host"
	RedirectAway Fault = "a redirect to another host"
	RedirectLoop Fault = "a redirect without end"
)

// Request is a request that the server received.
type Request = http.Request

// Server serves objects by path, with ETags, ranges and If-Match.
type Server struct {
	URL string // without a "/" at its end

	http *httptest.Server
	stop chan struct{}

	mu       sync.Mutex
	objects  map[string][]byte
	fault    func(n int, r *http.Request) Fault
	requests []*http.Request
	away     string
}

// NewServer starts a server, over TLS with HTTP/2 if secure. Close it after use.
func NewServer(secure bool) *Server {
	server := &Server{objects: map[string][]byte{}, stop: make(chan struct{})}
	server.http = httptest.NewUnstartedServer(http.HandlerFunc(server.serve))
	if secure {
		server.http.EnableHTTP2 = true
		server.http.StartTLS()
	} else {
		server.http.Start()
	}
	server.URL = server.http.URL
	return server
}

// Client returns a client that trusts the server.
func (s *Server) Client() *http.Client { return s.http.Client() }

// Close stops the server and its running requests.
func (s *Server) Close() {
	close(s.stop)
	s.http.CloseClientConnections()
	s.http.Close()
}

// Put stores an object under a path, "/a/b".
func (s *Server) Put(path string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = b
}

// OnRequest sets the fault of the n-th request from now on, counted from 0.
func (s *Server) OnRequest(fault func(n int, r *http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.requests = fault, nil
}

// Always sets one fault for every request from now on.
func (s *Server) Always(f Fault) { s.OnRequest(func(int, *http.Request) Fault { return f }) }

// SetAway sets the URL that RedirectAway leads to.
func (s *Server) SetAway(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = url
}

// Requests returns the requests since the last OnRequest or Always.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*http.Request(nil), s.requests...)
}

// ETag returns the ETag of objects with these bytes.
func ETag(b []byte) string { return fmt.Sprintf(`"%016x"`, xxhash.Sum64(b)) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, ok := s.objects[r.URL.Path]
	fault := None
	if s.fault != nil {
		fault = s.fault(len(s.requests), r)
	}
	s.requests = append(s.requests, r.Clone(r.Context()))
	away := s.away
	s.mu.Unlock()
	if s.refuse(w, r, fault, away) {
		return
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.answer(w, r, data, fault)
}

// wait returns after d, or when the request is cancelled.
func (s *Server) wait(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.stop:
	}
}

// refuse answers without a body, if that is the fault.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f Fault, away string) bool {
	status := map[Fault]int{
		Unavailable: 503, TooMany: 429, ServerError: 500, NotFound: 404, Forbidden: 403, PastEnd: 416, Failed: 412,
	}[f]
	switch f {
	case TooMany:
		w.Header().Set("Retry-After", "1")
	case Stall:
		s.wait(r, time.Hour)
		return true
	case Reset, Garbage:
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
		}
		conn, _, err := hijacker.Hijack()
		if err != nil {
			return true
		}
		if f == Garbage {
			_, _ = conn.Write([]byte("220 mail.example.org ESMTP\r\n"))
		} else if t, ok := conn.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = conn.Close()
		return true
	case RedirectHere, RedirectLoop:
		if r.URL.Query().Has("again") && f == RedirectHere {
			return false
		}
		http.Redirect(w, r, r.URL.Path+"?again=1", http.StatusFound)
		return true
	case RedirectAway:
		http.Redirect(w, r, away+r.URL.Path, http.StatusFound)
		return true
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	return status != 0
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, b []byte, f Fault) {
	tag := ETag(b)
	if m := r.Header.Get("If-Match"); m != "" && m != tag {
		w.WriteHeader(http.StatusPreconditionFailed)
		return
	}
	size := len(b)
	off, n, ranged := parseRange(cmp.Or(r.Header.Get("Range"), r.Header.Get("X-Ms-Range")), size) // Azure has its own
	if ranged && n <= 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return
	}
	header := w.Header()
	switch f {
	case OtherTag:
		tag = `"another"`
	case OtherSize:
		size += 100
	case ShortRange:
		n = (n + 1) / 2
	case WrongRange:
		if off > 0 {
			off--
		} else {
			off++
			n = min(n, size-off)
		}
	case Whole:
		ranged, off, n = false, 0, size
	case Gzip:
		header.Set("Content-Encoding", "gzip")
	case Multipart:
		header.Set("Content-Type", "multipart/byteranges; boundary=x")
	}
	header.Set("ETag", tag)
	header.Set("Last-Modified", "Mon, 02 Jan 2023 15:04:05 GMT")
	body := b[off : off+n]
	if f != Extra {
		header.Set("Content-Length", strconv.Itoa(n))
	} else {
		body = append(append([]byte(nil), body...), "more"...)
	}
	if !ranged {
		w.WriteHeader(http.StatusOK)
	} else {
		text := fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, size)
		if f == NoSize {
			text = fmt.Sprintf("bytes %d-%d/*", off, off+n-1)
		} else if f == BadRange {
			text = "bytes some"
		}
		header.Set("Content-Range", text)
		w.WriteHeader(http.StatusPartialContent)
	}
	s.write(w, r, body, f)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, body []byte, f Fault) {
	flush := func(p []byte) {
		_, _ = w.Write(p)
		w.(http.Flusher).Flush()
	}
	switch f {
	case ShortBody:
		flush(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case StallBody:
		flush(body[:len(body)/2])
		s.wait(r, time.Hour)
	case Drip:
		for i := range body {
			flush(body[i : i+1])
			s.wait(r, 20*time.Millisecond)
			if r.Context().Err() != nil {
				return
			}
		}
	default:
		_, _ = w.Write(body)
	}
}

// parseRange parses "bytes=a-b".
func parseRange(s string, size int) (off, n int, ok bool) {
	first, last, _ := strings.Cut(strings.TrimPrefix(s, "bytes="), "-")
	a, err1 := strconv.Atoi(first)
	z, err2 := strconv.Atoi(last)
	if s == "" || err1 != nil || err2 != nil {
		return 0, size, false
	}
	return a, min(z+1, size) - a, true
}
