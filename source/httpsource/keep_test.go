package httpsource_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// TestKeptObjectsStayInTheCache: open readers keep their objects only as far as the cache of the opener has room.
func TestKeptObjectsStayInTheCache(t *testing.T) {
	const size, objects, cacheBytes = 1 << 20, 64, 8 << 20
	content := bytes.Repeat([]byte("chaski  "), size/8)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Unix(1, 0), bytes.NewReader(content))
	}))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{Options: remote.Options{CacheBytes: cacheBytes}})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	memory := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := memory()
	var readers []source.Reader
	for i := range objects {
		r, err := web.Open(source.WithWhole(t.Context(), size), fmt.Sprintf("%s/%d", server.URL, i))
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	if grown := memory() - before; grown > 2*cacheBytes {
		t.Errorf("%d readers hold %d bytes beside a cache of %d", objects, grown, cacheBytes)
	}
	for _, r := range readers {
		got := make([]byte, 100)
		if err := r.ReadAt(t.Context(), got, size-100); err != nil || !bytes.Equal(got, content[size-100:]) {
			t.Errorf("%q, %v", got, err)
		}
		_ = r.Close()
	}
}
