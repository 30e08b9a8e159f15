package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// storeOf returns a store whose parts have 64 bytes and more, which the server takes.
func storeOf(t *testing.T) (*fakes3.Store, *Store) {
	t.Helper()
	server := fakes3.Start(t, "bucket")
	d := New(Options{Endpoint: server.URL})
	b, err := d.Bucket(t.Context(), "bucket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = b.Close(), d.Close() })
	s, err := StoreOf(b, "bucket")
	if err != nil {
		t.Fatal(err)
	}
	s.part = 64
	return server, s
}

const uri = "s3://bucket/set/all.tacozip"

// get returns an object, "" if there is none.
func get(t *testing.T, s *Store, uri string) string {
	t.Helper()
	b, err := s.Get(t.Context(), uri)
	if err != nil && !errors.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return string(b)
}

// unfinished returns the number of uploads that have not ended.
func unfinished(t *testing.T, s *Store) int {
	t.Helper()
	bucket := "bucket"
	out, err := s.client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}

// write writes want in pieces of random sizes, with ranges that are first written otherwise and then again: some soon,
// and one at the beginning last, as the header of a ZIP.
func write(u *Upload, want []byte, rng *rand.Rand) error {
	first := min(10, len(want))
	soiled := bytes.Clone(want)
	type patch struct{ at, n, when int }
	var patches []patch
	if first > 0 {
		patches = append(patches, patch{0, first, len(want)})
	}
	for at := first; at+4 < len(want); at += 5 + rng.IntN(100) {
		n := 1 + rng.IntN(4)
		patches = append(patches, patch{at, n, min(len(want), at+n+rng.IntN(200))})
	}
	for _, p := range patches {
		u.Hold(int64(p.at), int64(p.n))
		for i := range p.n {
			soiled[p.at+i] ^= 0xff
		}
	}
	for at := 0; at < len(want); {
		n := min(1+rng.IntN(150), len(want)-at)
		if _, err := u.Write(soiled[at : at+n]); err != nil {
			return err
		}
		at += n
		for i := 0; i < len(patches); i++ {
			if p := patches[i]; p.when <= at {
				if _, err := u.WriteAt(want[p.at:p.at+p.n], int64(p.at)); err != nil {
					return err
				}
				patches = append(patches[:i], patches[i+1:]...)
				i--
			}
		}
	}
	return nil
}

// TestUpload: an object has the bytes that were written last at each place, whatever its size, and is not there before
// Commit. Parts that are held by nothing do not stay in memory.
func TestUpload(t *testing.T) {
	_, s := storeOf(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 63, 64, 65, 128, 1000, 5000} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		u, err := s.Create(t.Context(), fmt.Sprint(uri, size), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := write(u, want, rng); err != nil {
			t.Fatal(err)
		}
		if left := get(t, s, fmt.Sprint(uri, size)); left != "" {
			t.Errorf("%d bytes: %d are there before Commit", size, len(left))
		}
		if len(u.kept) > 1 {
			t.Errorf("%d bytes: %d parts are in memory", size, len(u.kept))
		}
		if err := errors.Join(u.Commit(), u.Abort()); err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, fmt.Sprint(uri, size)); got != string(want) {
			t.Errorf("%d bytes: %d others", size, len(got))
		}
	}
	if n := unfinished(t, s); n > 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// TestUploadMemory: of an object of many parts whose beginning is held, few parts are in memory at a time.
func TestUploadMemory(t *testing.T) {
	_, s := storeOf(t)
	u, err := s.Create(t.Context(), uri, 0)
	if err != nil {
		t.Fatal(err)
	}
	u.Hold(0, 4)
	for i := range 100 {
		if _, err := u.Write(bytes.Repeat([]byte{byte(i)}, 64)); err != nil {
			t.Fatal(err)
		}
		if len(u.kept) > 1 {
			t.Fatalf("after %d parts, %d are kept", i, len(u.kept))
		}
	}
	if _, err := u.WriteAt([]byte("head"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := u.WriteAt([]byte("head"), 0); err == nil {
		t.Error("bytes are written a third time")
	}
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, uri); len(got) != 6400 || got[:4] != "head" {
		t.Errorf("%d bytes", len(got))
	}
}

// TestPartSizes: an object of a size that is known has at most uniformParts parts, and one that grows beyond them at
// most maxParts.
func TestPartSizes(t *testing.T) {
	_, s := storeOf(t)
	s.part = partBytes
	const size = 5 << 40 // the largest object of S3
	u, err := s.Create(t.Context(), uri, size)
	if err != nil {
		t.Fatal(err)
	}
	if n := (size + u.size - 1) / u.size; n > uniformParts {
		t.Errorf("%d parts", n)
	}
	if err := u.Abort(); err != nil {
		t.Error(err)
	}
	if u, err = s.Create(t.Context(), uri, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	if u.size < size/maxParts || u.size > 5<<30 {
		t.Errorf("parts of %d bytes, which S3 does not take", u.size)
	}
	u.size = partBytes
	total := int64(0)
	for u.number = 0; u.number < maxParts; u.number++ {
		total += u.partSize()
	}
	if want := int64(7000*16+1000*(32+64+128)) << 20; total != want {
		t.Errorf("%d bytes, want %d", total, want)
	}
	if err := u.Abort(); err != nil {
		t.Error(err)
	}
}

// TestUploadFails: whichever request fails, once, for ever, with an answer that is lost, or as the context ends, the
// object is the old one if there is an error, and the new one otherwise. No upload is left that the store would have
// ended.
func TestUploadFails(t *testing.T) {
	server, s := storeOf(t)
	want := bytes.Repeat([]byte("0123456789"), 30)
	run := func(ctx context.Context) error {
		u, err := s.Create(ctx, uri, 0)
		if err != nil {
			return err
		}
		if err := write(u, want, rand.New(rand.NewPCG(1, 2))); err != nil {
			return errors.Join(err, u.Abort())
		}
		return u.Commit()
	}
	for _, how := range []string{"once", "forbidden", "lost", "canceled"} {
		for nth := int64(1); ; nth++ {
			if err := s.Put(t.Context(), uri, []byte("old")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var n atomic.Int64
			server.Answer(func(w http.ResponseWriter, r *http.Request, _ int64) bool {
				if n.Add(1) != nth {
					return false
				}
				switch how {
				case "once":
					w.WriteHeader(http.StatusServiceUnavailable)
				case "forbidden":
					w.WriteHeader(http.StatusForbidden)
				case "lost":
					server.Serve(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				case "canceled":
					cancel()
					panic(http.ErrAbortHandler)
				}
				return true
			})
			err := run(ctx)
			server.Answer(nil)
			cancel()
			got := get(t, s, uri)
			if err == nil && got != string(want) || err != nil && got != "old" {
				t.Fatalf("%s, request %d: %d bytes, %v", how, nth, len(got), err)
			}
			if (how == "once" || how == "lost") && err != nil {
				t.Errorf("%s, request %d: %v", how, nth, err)
			}
			if n.Load() < nth {
				if nth < 8 { // a listing, the beginning, five parts, the end
					t.Fatalf("only %d requests", nth)
				}
				break
			}
		}
	}
	// Of a beginning whose answer was lost nobody knows: the next run has ended it.
	if err := run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := unfinished(t, s); n > 0 {
		t.Errorf("%d uploads are left", n)
	}
}

// TestKilledUpload: an upload of a run that was killed is ended by the next one of the same object and user, and no
// other is.
func TestKilledUpload(t *testing.T) {
	server, s := storeOf(t)
	begun := func(uri string) *Upload {
		u, err := s.Create(t.Context(), uri, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Write(make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		return u
	}
	killed, other := begun(uri), begun(uri+".other")
	if n := unfinished(t, s); n != 2 {
		t.Fatalf("%d uploads are begun", n)
	}
	u := begun(uri)
	if err := u.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := unfinished(t, s); n != 1 {
		t.Errorf("%d uploads are left, of one of another object", n)
	}
	if err := killed.Commit(); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("an upload that was ended: %v", err)
	}
	if err := other.Abort(); err != nil {
		t.Fatal(err)
	}

	foreign := begun(uri)
	server.Answer(func(w http.ResponseWriter, r *http.Request, _ int64) bool {
		if r.Method != http.MethodGet || !r.URL.Query().Has("uploads") {
			return false
		}
		answer := httptest.NewRecorder()
		server.Serve(answer, r)
		text := strings.ReplaceAll(answer.Body.String(), "<UploadId>"+foreign.id,
			"<Initiator><ID>someone</ID></Initiator><UploadId>"+foreign.id)
		_, _ = io.WriteString(w, text)
		return true
	})
	if err := begun(uri).Commit(); err != nil {
		t.Fatal(err)
	}
	server.Answer(nil)
	if n := unfinished(t, s); n != 1 {
		t.Errorf("%d uploads are left, of one of another user", n)
	}
	if err := foreign.Abort(); err != nil {
		t.Fatal(err)
	}
}

// TestStore: objects are listed, read and removed.
func TestStore(t *testing.T) {
	_, s := storeOf(t)
	for _, name := range []string{"a", "b/c", "b/d"} {
		if err := s.Put(t.Context(), "s3://bucket/"+name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(t, s, "s3://bucket/b/c"); got != "b/c" {
		t.Errorf("it has %q", got)
	}
	var names []string
	list := func(uri string) error {
		names = append(names, uri)
		return nil
	}
	if err := s.List(t.Context(), "s3://bucket/b/", list); err != nil || fmt.Sprint(names) !=
		"[s3://bucket/b/c s3://bucket/b/d]" {
		t.Errorf("%v %v", names, err)
	}
	if err := s.List(t.Context(), "s3://other/b/", list); err == nil || len(names) != 2 {
		t.Errorf("objects of another bucket: %v", names)
	}
	for range 2 {
		if err := s.Delete(t.Context(), "s3://bucket/b/c"); err != nil {
			t.Error(err)
		}
	}
	if got := get(t, s, "s3://bucket/b/c"); got != "" {
		t.Errorf("it has %q", got)
	}
	if err := s.Put(t.Context(), "s3://other/a", nil); err == nil {
		t.Error("an object of another bucket")
	}
	other := &Store{s.client, "none", 64}
	if _, err := other.Get(t.Context(), "s3://none/a"); !errors.Is(err, fault.NotFound) {
		t.Errorf("no bucket: %v", err)
	}
}
