package gcs

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gocloud.dev/blob"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// cloud is Cloud Storage as far as one upload in parts and its listing need it. The second request for a part fails.
type cloud struct {
	name  string
	data  []byte
	parts int
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	span, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.Method == http.MethodGet:
		fmt.Fprintf(w, `{"items":[{"name":%q,"size":"%d","generation":"7"}]}`, c.name, len(c.data))
	case r.URL.Path != "/session":
		c.name = r.URL.Query().Get("name")
		w.Header().Set("Location", "http://"+r.Host+"/session")
	default:
		if c.parts++; c.parts == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if span != "*" && !strings.HasPrefix(span, fmt.Sprint(len(c.data), "-")) {
			http.Error(w, "not the next byte", http.StatusBadRequest)
			return
		}
		if c.data = append(c.data, body...); strings.HasSuffix(r.Header.Get("Content-Range"), "/*") {
			w.Header().Set("X-Http-Status-Code-Override", "308")
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(c.data)-1))
			return
		}
		fmt.Fprintf(w, `{"name":%q,"size":"%d"}`, c.name, len(c.data))
	}
}

// TestUpload: an upload in parts goes on after a failure, and listings have the size and generation of the object.
func TestUpload(t *testing.T) {
	c := &cloud{}
	server := httptest.NewServer(c)
	defer server.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	driver := New(Options{Uploads: true})
	defer driver.Close()
	b, err := driver.Bucket(t.Context(), "chips")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	if err := b.WriteAll(t.Context(), "dir/a.tif", data, &blob.WriterOptions{BufferSize: 256 << 10}); err != nil {
		t.Fatal(err)
	}
	if c.name != "dir/a.tif" || !bytes.Equal(c.data, data) || c.parts < 5 {
		t.Errorf("%q of %d bytes in %d parts", c.name, len(c.data), c.parts)
	}
	o, err := blobsource.New(New(Options{}), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	err = o.List(t.Context(), "gs://chips/dir", func(e source.Entry) error {
		if e != (source.Entry{Path: "a.tif", Size: 1 << 20, ETag: "7"}) {
			t.Errorf("listed is %+v", e)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
