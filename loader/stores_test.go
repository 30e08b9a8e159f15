package loader

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestRemoteStores: a table of the URLs of ZIPs of Zarr stores has each image that zarr-python read of them.
func TestRemoteStores(t *testing.T) {
	const dir = "../testdata/stores"
	text := testfile.Read(t, filepath.Join(dir, "values.json"))
	var values map[string]map[string][]string
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	lines, want := []string{"s2,s1"}, map[string][]string{}
	for _, name := range []string{"a", "b", "c"} {
		lines = append(lines, server.URL+"/s2/"+name+".zarr.zip::bands,"+server.URL+"/s1/"+name+".zarr.zip::bands")
		for _, field := range []string{"s2", "s1"} {
			want[field] = append(want[field], values[field+"/"+name+".zarr.zip"]["bands"]...)
		}
	}
	table := filepath.Join(t.TempDir(), "t.csv")
	writeFile(t, table, strings.Join(lines, "\n"))
	e, err := Open(t.Context(), Spec{Source: table, BatchSize: 1, Seed: 3, Fields: []Field{
		{Name: "s2", DType: "native"}, {Name: "s1", DType: "native"}}}, Options{
		Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	got := map[string][]string{}
	for step := range e.Steps() {
		b := wait(t, e.Start(t.Context(), steps.Ticket{First: step, Count: 1, RowStride: 1}, false))
		for _, field := range []string{"s2", "s1"} {
			sum := sha256.Sum256(b.Tensor(field).Data)
			got[field] = append(got[field], hex.EncodeToString(sum[:]))
		}
		b.Release()
	}
	for field, list := range want {
		if len(list) != 9 || !slices.Equal(got[field], list) {
			t.Errorf("%s: %d images, other than the %d of zarr-python", field, len(got[field]), len(list))
		}
	}
}
