package gcs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// TestList: listings have the size and generation of an object.
func TestList(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[{"name":"dir/a.tif","size":"1048576","generation":"7"}]}`)
	}))
	defer server.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	o, err := blobsource.New(New(), remote.Options{})
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
