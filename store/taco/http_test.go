package taco_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// web returns an opener of the URLs of a handler, and its root.
func web(t *testing.T, h http.Handler) (*remote.Opener, string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o, err := httpsource.New(httpsource.Options{Options: remote.Options{Attempts: 3, Backoff: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o, server.URL
}

// TestFolderOverHTTP: ids are names of files, whatever they mean in a URL; the query of the folder's URL is that of
// all its files; and the page that a server makes of a folder is no reason not to look into it.
func TestFolderOverHTTP(t *testing.T) {
	type row struct {
		ID   string `parquet:"id"`
		Type string `parquet:"type"`
	}
	ids := []string{"a", "a#1", "a?1", "a%31", "ñ 1", "a&b=c+d;e", "100%"}
	dir := t.TempDir()
	write := func(name string, b []byte) {
		path := filepath.Join(dir, "set", name)
		testfile.Write(t, path, b)
	}
	rows := make([]row, 0, len(ids))
	for _, id := range ids {
		rows = append(rows, row{id, "FILE"})
		write("DATA/"+id, []byte("bytes of "+id))
	}
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	write("METADATA/level0.parquet", b.Bytes())
	write("COLLECTION.json", []byte(`{"id":"a"}`))
	var unsigned atomic.Int64
	files := http.FileServer(http.Dir(dir))
	o, root := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "signature=a/b" {
			unsigned.Add(1)
		}
		files.ServeHTTP(w, r)
	}))
	for _, uri := range []string{root + "/set/?signature=a/b", root + "/set?signature=a/b"} {
		d, err := taco.Open(t.Context(), o, []string{uri}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			e, err := d.Entry(t.Context(), 0, i)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Open(t.Context(), o)
			if err != nil {
				t.Errorf("%s: %v", id, err)
				continue
			}
			got := make([]byte, r.Size())
			if err := r.ReadAt(t.Context(), got, 0); err != nil || string(got) != "bytes of "+id {
				t.Errorf("%s: %q, %v", id, got, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := unsigned.Load(); n > 0 {
		t.Errorf("%d requests without the signature", n)
	}
}

// TestServersThatDoNotWork are not asked again for what may lie below, and what is wrong with them is told.
func TestServersThatDoNotWork(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		most   int64 // requests
		kind   fault.Kind
		text   string
	}{
		"outage": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 3, 0, "503"},
		"no ranges": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		}, 20, fault.Unsupported, "byte ranges"},
		"pages": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<!doctype html>"))
		}, 20, fault.Unsupported, "begins like an HTML"},
		"no file": {http.NotFound, 20, fault.NotFound, "object: HTTP status 404"},
	} {
		var n atomic.Int64
		o, root := web(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			c.answer(w, r)
		}))
		_, err := taco.Open(t.Context(), o, []string{root + "/data.tacozip"}, taco.Options{})
		if fault.KindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
		if n.Load() > c.most {
			t.Errorf("%s: %d requests, want at most %d", name, n.Load(), c.most)
		}
	}
}
