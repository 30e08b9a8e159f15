package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestCacheDir: a command that reads a remote file a second time has the bytes from the folder, by flags and by
// variables, and the commands below cache look after it.
func TestCacheDir(t *testing.T) {
	web, _, bases := remotes(t, map[string][]byte{"a.tif": netsim.Chip(1, 6, 256, 128)})
	name, dir := bases[0]+"a.tif", filepath.Join(t.TempDir(), "cache")
	bytesOf := func(args ...string) (sum string, read int64) {
		before := len(web.Requests())
		got := chaski(t.Context(), append([]string{"cat", name}, args...)...)
		if got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		for _, r := range web.Requests()[before:] {
			var first, last int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); err != nil {
				t.Fatal(err)
			}
			read += last - first + 1
		}
		return got.out, read
	}
	want, without := bytesOf()
	if got, _ := bytesOf("--cache-dir", dir, "--cache-bytes", "10000000"); got != want {
		t.Errorf("the first read with a cache has %s, want %s", got, want)
	}
	t.Setenv("CHASKI_CACHE_DIR", dir)
	t.Setenv("CHASKI_CACHE_BYTES", "10000000")
	got, with := bytesOf()
	if got != want {
		t.Errorf("the second read with a cache has %s, want %s", got, want)
	}
	if with > without/4 {
		t.Errorf("the second read took %d bytes, the one without a cache %d", with, without)
	}

	list := func() (c diskcache.Content) {
		got := chaski(t.Context(), "cache", "ls", "--json", dir)
		if err := json.Unmarshal([]byte(got.out), &c); err != nil || got.code != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		return c
	}
	if c := list(); c.Objects != 1 || c.Ranges == 0 || c.Bytes < 6*256*256*2/2 {
		t.Errorf("the folder holds %+v", c)
	}
	if got := chaski(t.Context(), "cache", "verify", dir); got.code != 0 {
		t.Errorf("verify: %+v", got)
	}
	damageAll(t, dir)
	if got := chaski(t.Context(), "cache", "verify", dir); got.code != 1 || !strings.Contains(got.err, "corrupt") {
		t.Errorf("verify of damaged ranges: %+v", got)
	}
	if c := list(); c.Ranges != 0 {
		t.Errorf("after verify the folder holds %+v", c)
	}
	if got, read := bytesOf(); got != want || read < without/2 {
		t.Errorf("without ranges %d bytes were read, %s", read, got)
	}
	if got := chaski(t.Context(), "cache", "clear", dir); got.code != 0 || list().Ranges != 0 {
		t.Errorf("clear: %+v", got)
	}
}

// TestPlanWithCache: of objects whose catalog has their sizes and no entity tags a cache keeps nothing, and plan says
// so. Of local files, and with --sample, it says nothing about a cache.
func TestPlanWithCache(t *testing.T) {
	chip := netsim.Chip(1, 6, 256, 128)
	_, _, bases := remotes(t, map[string][]byte{"a.tif": chip})
	folder := t.TempDir()
	tagged, untagged := filepath.Join(folder, "tagged.parquet"), filepath.Join(folder, "untagged.parquet")
	local := filepath.Join(folder, "a.tif")
	testfile.Write(t, local, chip)
	plain := httptest.NewServer(http.FileServer(http.Dir(folder))) // it gives times of change, and no tags
	defer plain.Close()
	for catalog, file := range map[string]string{tagged: bases[1] + "a.tif", untagged: plain.URL + "/a.tif"} {
		if got := chaski(t.Context(), "index", "-o", catalog, file); got.code != 0 {
			t.Fatalf("index %s: %+v", file, got)
		}
	}
	t.Setenv("CHASKI_CACHE_BYTES", "10000000")
	for _, test := range []struct {
		args  string
		cache []int64 // bytes of the second epoch that come from the cache and from the store; nil for no report
	}{
		{tagged, []int64{1, 0}}, {untagged, []int64{0, 1}}, {local, nil}, {"--sample 1 " + tagged, nil},
	} {
		got := chaski(t.Context(), append([]string{"plan", "--json", "--batch", "1"}, strings.Fields(test.args)...)...)
		var report struct {
			Total struct{ Bytes int64 }
			Cache []struct {
				Cache int64 `json:"from_cache"`
				Store int64 `json:"from_store"`
			}
		}
		if err := json.Unmarshal([]byte(got.out), &report); err != nil || got.code != 0 {
			t.Fatalf("plan %s: %+v, %v", test.args, got, err)
		}
		bytes := report.Total.Bytes
		switch {
		case test.cache == nil && report.Cache == nil:
		case test.cache == nil || len(report.Cache) != 2 || bytes == 0 ||
			report.Cache[1].Cache != test.cache[0]*bytes || report.Cache[1].Store != test.cache[1]*bytes:
			t.Errorf("plan %s: %s", test.args, got.out)
		}
	}
}

// TestWarm: a folder that was filled before a run has its first ranges, up to the quota, and filling it again reads
// nothing that is there.
func TestWarm(t *testing.T) {
	files, chips := map[string][]byte{}, int64(0)
	for k := range 12 {
		chip := netsim.Chip(uint64(k), 2, 128, 128)
		files[fmt.Sprintf("%02d.tif", k)] = chip
		chips += int64(len(chip))
	}
	_, store, bases := remotes(t, files)
	catalog, dir := filepath.Join(t.TempDir(), "chips.parquet"), filepath.Join(t.TempDir(), "cache")
	var uris []string
	for k := range len(files) {
		uris = append(uris, fmt.Sprintf("%s%02d.tif", bases[1], k))
	}
	if got := chaski(t.Context(), append([]string{"index", "-o", catalog}, uris...)...); got.code != 0 {
		t.Fatalf("index: %+v", got)
	}
	quota := chips / 2
	t.Setenv("CHASKI_CACHE_DIR", dir)
	t.Setenv("CHASKI_CACHE_BYTES", fmt.Sprint(quota))
	for _, window := range []string{"", "--window 64x64 --per-asset 4"} {
		if got := chaski(t.Context(), "cache", "clear", dir); got.code != 0 && window != "" {
			t.Fatalf("clear: %+v", got)
		}
		var contents [3]diskcache.Content
		var asked sync.Map // the paths of the objects that the last of them was asked for
		for k := range contents {
			if k == 2 { // room for all: what is there is not read again
				t.Setenv("CHASKI_CACHE_BYTES", fmt.Sprint(4*quota))
				store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
					asked.Store(r.URL.Path, true)
					return false
				})
			}
			got := chaski(t.Context(), strings.Fields("cache warm --json --batch 2 "+window+" "+catalog)...)
			if err := json.Unmarshal([]byte(got.out), &contents[k]); err != nil || got.code != 0 {
				t.Fatalf("warm %s: %+v, %v", window, got, err)
			}
		}
		store.Answer(nil)
		t.Setenv("CHASKI_CACHE_BYTES", fmt.Sprint(quota))
		if c := contents[0]; c.Disk > quota || c.Disk < quota/2 || contents[1] != c {
			t.Errorf("warm %s: it holds %+v, then %+v, of %d", window, c, contents[1], quota)
		}
		read := 0
		asked.Range(func(any, any) bool { read++; return true })
		if c := contents[2]; c.Objects != len(files) || read != len(files)-contents[1].Objects {
			t.Errorf("warm %s: it holds %+v, then %+v after reading %d objects", window, contents[1], c, read)
		}
	}
}

// damageAll flips a bit of every range.
func damageAll(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(name) == dir {
			return err
		}
		b, err := os.ReadFile(name)
		if err == nil {
			b[len(b)/2] ^= 1
			err = os.WriteFile(name, b, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWrongCaches: a folder that is none, and flags without each other, are refused before anything is read.
func TestWrongCaches(t *testing.T) {
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "notes.txt"), []byte("mine"))
	_, _, bases := remotes(t, map[string][]byte{"a.tif": netsim.Chip(1, 6, 256, 128)})
	for _, test := range []struct {
		args string
		code int
		err  string
	}{
		{"cat --cache-dir " + dir + " " + bases[0] + "a.tif", 2, "needs --cache-bytes"},
		{"cat --cache-bytes 1000000 " + bases[0] + "a.tif", 2, "there is no --cache-dir"},
		{"cat --cache-bytes -1 " + bases[0] + "a.tif", 2, "cache-bytes"},
		{"cat --cache-dir " + dir + " --cache-bytes 10 " + bases[0] + "a.tif", 2, "is 10: it must be at least 65536"},
		{"cat --cache-dir " + dir + " --cache-bytes 1000000 " + bases[0] + "a.tif", 1, "is no cache"},
		{"cat --cache-dir " + dir + "/notes.txt/c --cache-bytes 1000000 " + bases[0] + "a.tif", 1, "not a directory"},
		{"serve --cache-dir " + dir + " --cache-bytes 1000000 --listen 127.0.0.1:0", 1, "is no cache"},
		{"cache", 2, "verb"},
		{"cache fill " + dir, 2, "unknown command"},
		{"cache ls", 2, "DIR is missing"},
		{"cache ls " + dir, 1, "no cache"},
		{"cache clear " + dir, 1, "no cache"},
		{"cache trim " + dir, 2, "--bytes is missing"},
		{"cache verify " + dir + "/missing", 1, "no cache"},
		{"cache warm " + dir, 2, "--cache-dir is missing"},
	} {
		got := chaski(t.Context(), strings.Fields(test.args)...)
		if got.code != test.code || !strings.Contains(got.err, test.err) {
			t.Errorf("%s: %+v", test.args, got)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "notes.txt")); string(b) != "mine" || err != nil {
		t.Errorf("the folder's file has %q, %v", b, err)
	}
}
