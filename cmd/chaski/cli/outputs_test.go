package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOutputsInStores: what a command writes to a bucket is what it writes to a disk, also if the store fails at first;
// and nothing is written to the disk.
func TestOutputsInStores(t *testing.T) {
	store := fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	chip := testfile.Read(t, testdata(t, "coast", "coast_dir", "DATA", "tile_00", "s2", "img.tif"))
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("in", 0o777), os.Mkdir("local", 0o777)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		testfile.Write(t, fmt.Sprintf("in/%d.tif", i), chip)
	}
	run := func(args ...string) result { return chaski(t.Context(), args...) }
	read := func(uri string) ([]byte, error) {
		files := open.NewOpener(false, nil, false)
		defer files.Close()
		return source.ReadAll(context.Background(), files, uri, 1<<20)
	}
	for _, c := range []struct {
		out  string
		args []string
		made string // the file that is compared, of several
	}{
		{out: "stats.json", args: []string{"stats"}},
		{out: "report.json", args: []string{"verify"}},
		{out: "weights", args: []string{"stats", "--sampling"}},
		{out: "all.parquet", args: []string{"index", "--absolute"}},
		{out: "togs/", args: []string{"convert"}, made: "togs/1.tif"},
	} {
		fails := 1
		store.Answer(func(w http.ResponseWriter, r *http.Request, _ int64) bool {
			fail := r.Method == http.MethodPut && fails > 0
			if fail {
				fails--
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return fail
		})
		local := run(append(c.args, "-o", "local/"+c.out, "in")...)
		far := run(append(c.args, "-o", "s3://bucket/far/"+c.out, "in")...)
		if local.code != 0 || far.code != 0 {
			t.Fatalf("%s: %+v, %+v", c.out, local, far)
		}
		name := c.made
		if name == "" {
			name = c.out
		}
		want := testfile.Read(t, filepath.Join("local", name))
		if got, err := read("s3://bucket/far/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, want %d: %v", name, len(got), len(want), err)
		}
		// Shards, each on a host of its own, and the merge have the bucket alone in common.
		divided := append(c.args, "-o", "s3://bucket/shards/"+c.out)
		if c.args[0] == "convert" {
			divided = append(divided, "--overwrite")
		}
		for _, step := range [][]string{{"--shard", "1/2"}, {"--shard", "0/2"}, {"--merge", "2"}, {"--merge", "2"}} {
			if r := run(append(append(divided, step...), "in")...); r.code != 0 {
				t.Fatalf("%s %v: %+v", c.out, step, r)
			}
		}
		if got, err := read("s3://bucket/shards/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of shards has %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	files := open.NewOpener(false, nil, false)
	defer files.Close()
	err := files.List(t.Context(), "s3://bucket/shards", func(e source.Entry) error {
		if strings.Contains(e.Path, ".part-") {
			t.Errorf("%s is left", e.Path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	store.Answer(nil)
	// What is there is replaced by request only.
	again := run("convert", "-o", "s3://bucket/far/togs/", "in")
	if again.code != 1 || !strings.Contains(again.err, "exists") {
		t.Errorf("%+v", again)
	}
	if over := run("convert", "--overwrite", "-o", "s3://bucket/far/togs/", "in"); over.code != 0 {
		t.Errorf("%+v", over)
	}
	for _, args := range [][]string{
		{"stats", "-o", "http://127.0.0.1:9/s.json", "in"},
		{"stats", "-o", "ftp://host/s.json", "in"},
		{"convert", "-o", "hf://datasets/a/b@main/", "in"},
		{"pack", "-o", "s3://bucket/p.tacozip", "in"},
		{"index", "--resume", "-o", "s3://bucket/c.parquet", "in"},
		{"stats", "--shard", "0/2", "-o", "http://127.0.0.1:9/s.json", "in"},
		{"stats", "--merge", "2", "-o", "s3://bucket/s.json", "in"},
	} {
		if r := run(args...); r.code == 0 {
			t.Errorf("%q: %+v", args, r)
		}
	}
	left, err := os.ReadDir(".")
	if err != nil || len(left) != 2 { // in, local
		t.Errorf("%v are on the disk: %v", left, err)
	}
}
