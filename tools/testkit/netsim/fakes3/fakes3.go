// Package fakes3 is an S3 server in this process, for tests.
package fakes3

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Store is a server with one bucket.
type Store struct {
	URL    string
	Bucket string

	http     *httptest.Server
	fake     http.Handler
	backend  *s3mem.Backend
	requests atomic.Int64
	answer   atomic.Pointer[Handler]
}

// Handler answers the n-th request, counted from 1, and returns true, or returns false to leave it
// to the store.
type Handler func(w http.ResponseWriter, r *http.Request, n int64) bool

// New starts a store. Close it after use.
func New(bucket string) (*Store, error) {
	store := &Store{Bucket: bucket, backend: s3mem.New()}
	if err := store.backend.CreateBucket(bucket); err != nil {
		return nil, err
	}
	store.fake = gofakes3.New(store.backend).Server()
	store.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := store.requests.Add(1)
		if f := store.answer.Load(); f != nil && (*f)(w, r, n) {
			return
		}
		store.fake.ServeHTTP(w, r)
	}))
	store.http.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that went away
	store.http.Start()
	store.URL = store.http.URL
	return store, nil
}

// Start is New for a test: it sets the credentials in the environment, and closes the store when the test ends.
func Start(t testing.TB, bucket string) *Store {
	t.Helper()
	store, err := New(bucket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	for k, v := range credentials {
		t.Setenv(k, v)
	}
	// The machine's certificates say nothing about plain HTTP, and each client parses them: a seventh of the processor
	// time of the tests of cli under the race detector, where the machine has this variable.
	t.Setenv("AWS_CA_BUNDLE", "")
	return store
}

// Close stops the server.
func (s *Store) Close() { s.http.Close() }

// Put stores an object.
func (s *Store) Put(key string, b []byte) error {
	_, err := s.backend.PutObject(s.Bucket, key, map[string]string{}, bytes.NewReader(b), int64(len(b)), nil)
	return err
}

// Requests returns the number of requests so far.
func (s *Store) Requests() int64 { return s.requests.Load() }

// Answer sets the handler that sees every request first, or none if nil.
func (s *Store) Answer(h Handler) {
	if h == nil {
		s.answer.Store(nil)
		return
	}
	s.answer.Store(&h)
}

// credentials are the environment variables that the SDK needs to sign requests.
var credentials = map[string]string{
	"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
	"AWS_EC2_METADATA_DISABLED": "true",
}
