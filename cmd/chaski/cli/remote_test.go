package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// remotes puts files, by their paths, onto a web server and into a bucket. It returns the prefixes
// of their URIs.
func remotes(t *testing.T, files map[string][]byte) (web *netsim.Server, store *fakes3.Store, bases []string) {
	t.Helper()
	web = netsim.NewServer(false)
	t.Cleanup(web.Close)
	store = fakes3.Start(t, "bucket")
	t.Setenv("AWS_ENDPOINT_URL", store.URL)
	for name, b := range files {
		web.Put("/data/"+name, b)
		if err := store.Put("data/"+name, b); err != nil {
			t.Fatal(err)
		}
	}
	return web, store, []string{web.URL + "/data/", "s3://bucket/data/"}
}

// TestRemoteFilesReadAsLocalOnes: over HTTP and from S3, a file yields what the original readers
// gave for it.
func TestRemoteFilesReadAsLocalOnes(t *testing.T) {
	files := map[string][]byte{}
	list, least := small(t), 20
	if race.Enabled { // all files run the same goroutines
		some := list[:0]
		for i := 0; i < len(list); i += 5 {
			some = append(some, list[i])
		}
		list, least = some, 4
	}
	for _, f := range list {
		b := testfile.Read(t, filepath.Join(f.Dir, f.Path))
		files[f.Path] = b
	}
	_, _, bases := remotes(t, files)
	for _, base := range bases {
		n := 0
		for _, f := range list {
			local := filepath.Join(f.Dir, f.Path)
			if f.Kind != "tiff" && f.Kind != "rumi" && f.Kind != "rumi-new" || f.MayRefuse() {
				// The errors of a file are the same everywhere.
				a, b := chaski(t.Context(), "cat", local), chaski(t.Context(), "cat", base+f.Path)
				if a.code != b.code || a.out != b.out ||
					strings.TrimPrefix(a.err, "chaski: "+local) != strings.TrimPrefix(b.err, "chaski: "+base+f.Path) {
					t.Errorf("%s: %+v, local %+v", base+f.Path, b, a)
				}
				continue
			}
			n++
			sameSum(t, f.Path, chaski(t.Context(), "cat", base+f.Path), f.Shape, f.DType, f.SHA256)
			if n > 10 {
				continue
			}
			info, want := chaski(t.Context(), "info", base+f.Path), chaski(t.Context(), "info", local)
			got := strings.TrimPrefix(info.out, "path: "+base+f.Path)
			if info.code != 0 || got != strings.TrimPrefix(want.out, "path: "+local) {
				t.Errorf("info %s: %+v", f.Path, info)
			}
			a, b := chaski(t.Context(), "index", base+f.Path), chaski(t.Context(), "index", local)
			if a.out != b.out || a.code != 0 {
				t.Errorf("index %s: %+v", f.Path, a)
			}
		}
		if n < least {
			t.Errorf("%d files", n)
		}
	}
}

// chips returns some TOGs of one shape.
func chips() map[string][]byte {
	files := map[string][]byte{}
	for i := range 5 {
		files[fmt.Sprintf("%d.tif", i)] = netsim.Chip(uint64(i), 2, 96, 32)
	}
	return files
}

// batches returns the tensors of an epoch.
func batches(t *testing.T, source string, roots []string) ([]byte, string, error) {
	t.Helper()
	opener := open.NewOpener(true, nil, false)
	defer opener.Close()
	ctx := context.Background()
	e, err := loader.Open(ctx, loader.Spec{
		Source: source, BatchSize: 2, Shuffle: true,
		Fields: []loader.Field{{Name: "image", DType: "float32"}},
	}, loader.Options{Opener: opener, Roots: roots})
	if err != nil {
		return nil, "", err
	}
	defer e.Close()
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		return nil, "", err
	}
	defer l.Close()
	var all []byte
	for {
		b, err := l.Next(ctx)
		if errors.Is(err, io.EOF) {
			return all, e.Fingerprint(), nil
		}
		if err != nil {
			return nil, "", err
		}
		all = append(all, b.Tensors[0].Data...)
		b.Release()
	}
}

// TestRemoteDatasets: a directory, a glob and a catalog of a bucket are the same dataset as the
// directory on disk.
func TestRemoteDatasets(t *testing.T) {
	files := chips()
	_, store, bases := remotes(t, files)
	dir := t.TempDir()
	for name, b := range files {
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	want, print, err := batches(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	catalog := filepath.Join(t.TempDir(), "train.parquet")
	if r := chaski(t.Context(), "index", "--format", "parquet", "-o", catalog, "s3://bucket/data/*.tif"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	b := testfile.Read(t, catalog)
	if err := store.Put("data/train.parquet", b); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{
		"s3://bucket/data", "s3://bucket/data/", "s3://bucket/d*/*.tif",
		"s3://bucket/**/*.tif", catalog, "s3://bucket/data/train.parquet",
	} {
		for _, roots := range [][]string{
			nil, {"s3://bucket", filepath.Dir(catalog)}, {"s3://bucket/", "/"}, {"s3://", "/"},
		} {
			got, p, err := batches(t, src, roots)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s below %v: %d bytes, want %d: %v", src, roots, len(got), len(want), err)
			}
			if p != print && !strings.Contains(src, "train") && !strings.Contains(src, "**") {
				t.Errorf("%s: fingerprint %s, on disk %s", src, p, print)
			}
		}
		for _, roots := range [][]string{
			{},
			{"/"},
			{"s3://buck"},
			{"s3://bucket/dat"},
			{"s3://other"},
			{"https://bucket"},
			{"gs://"},
		} {
			_, _, err := batches(t, src, roots)
			if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "outside") {
				t.Errorf("%s below %v: %v", src, roots, err)
			}
		}
	}
	// There is no request too many: with a catalog, one for each chip, which has one run of chunks.
	before := store.Requests()
	if _, _, err := batches(t, catalog, nil); err != nil {
		t.Fatal(err)
	}
	if n := store.Requests() - before; n != int64(len(files)) {
		t.Errorf("%d requests for %d chips", n, len(files))
	}
	r := chaski(t.Context(), "index", "--format", "parquet", "--resume", "-o", catalog, "s3://bucket/data/*.tif")
	if r.code != 0 {
		t.Errorf("%+v", r)
	}
	if n := store.Requests() - before; n != int64(len(files))+1 {
		t.Errorf("indexed again with %d requests, want one of the listing", n-int64(len(files)))
	}
	for _, src := range []string{"s3://bucket/data", catalog, bases[0] + "x.parquet"} {
		r := chaski(t.Context(), "verify", src)
		var got struct{ Files, Rows, Faulty int64 }
		_ = json.Unmarshal([]byte(r.out), &got)
		missing := strings.HasPrefix(src, "http")
		if missing != (r.code == 1) || missing && !strings.HasSuffix(r.err, "not found\n") ||
			!missing && got.Faulty != 0 {
			t.Errorf("verify %s: %+v", src, r)
		}
	}
	for name := range files { // one byte of a chip changes, its size does not
		other := bytes.Clone(files[name])
		other[len(other)-1]++
		if err := store.Put("data/"+name, other); err != nil {
			t.Fatal(err)
		}
		break
	}
	_, _, err = batches(t, catalog, nil)
	if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "another one now") {
		t.Errorf("a chip that changed under its catalog: %v", err)
	}
}

// TestConvertRemoteRasters: rasters convert to the same files and the same array from every source.
func TestConvertRemoteRasters(t *testing.T) {
	files := chips()
	_, _, bases := remotes(t, files)
	dir := t.TempDir()
	for name, b := range files {
		testfile.Write(t, filepath.Join(dir, name), b)
	}
	for _, to := range []string{"rumi2", "tog"} {
		var want map[string][]byte
		for _, base := range append([]string{dir + "/"}, bases...) {
			out := filepath.Join(t.TempDir(), "out")
			r := chaski(t.Context(), "convert", "--to", to, "--tile", "32", base+"1.tif", base+"3.tif", "-o", out)
			if r.code != 0 {
				t.Fatalf("%s to %s: %+v", base, to, r)
			}
			got := contents(t, out)
			if want == nil {
				want = got
			}
			if len(got) != 2 || !maps.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s to %s: %d files, or other ones", base, to, len(got))
			}
		}
	}
	r := chaski(t.Context(), "convert", bases[1]+"none.tif", "-o", filepath.Join(t.TempDir(), "x.rumi"))
	if r.code != 1 || !strings.HasSuffix(r.err, ": not found\n") {
		t.Errorf("%+v", r)
	}
}

// TestRemoteFailures: failures end in one line that names the URI.
func TestRemoteFailures(t *testing.T) {
	web, store, _ := remotes(t, nil)
	web.Always(netsim.Forbidden)
	for _, c := range []struct{ uri, kind string }{
		{web.URL + "/a.tif", "unavailable"},
		{"s3://bucket/none.tif", "not found"},
		{"s3://nobucket/none.tif", "not found"},
		{"ftp://host/a.tif", "unsupported"},
		{"hf://datasets/x", "unsupported"},
		{"s3://bucket", "unsupported"},
	} {
		for _, command := range []string{"cat", "info", "index"} {
			r := chaski(t.Context(), command, c.uri)
			if r.code != 1 || !errorLine.MatchString(r.err) || !strings.HasPrefix(r.err, "chaski: "+c.uri+": ") ||
				!strings.HasSuffix(r.err, ": "+c.kind+"\n") {
				t.Errorf("%s %s: %+v", command, c.uri, r)
			}
		}
	}
	r := chaski(t.Context(), "index", "--format", "parquet", "-o", filepath.Join(t.TempDir(), "x.parquet"),
		web.URL+"/folder")
	if !strings.Contains(r.err, "no listing") {
		t.Errorf("%+v", r)
	}
	_ = store
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close() // nobody listens there any more
	r = chaski(t.Context(), "info", dead.URL+"/a.tif")
	if r.code != 1 || !errorLine.MatchString(r.err) || !strings.HasSuffix(r.err, ": unavailable\n") ||
		!strings.Contains(r.err, "attempts") {
		t.Errorf("a connection that is refused: %+v", r)
	}
}

func TestServeRoots(t *testing.T) {
	for root, code := range map[string]int{
		"ftp://host":        2,
		"S3://bucket":       2,
		"s3://bucket/../x":  2,
		"s3://bucket/*.tif": 2,
		"s3://bucket/%2e":   2,
		"/no/such/folder":   1,
	} {
		if r := chaski(t.Context(), "serve", "--root", root); r.code != code {
			t.Errorf("%s: %+v", root, r)
		}
	}
	checkServe(t, []string{"serve", "--root", "s3://bucket/chips", "--root", "https://", "--stop-on-eof"})
}

// arrayFiles returns the files of the arrays that the original library wrote, by path, and the
// names of the arrays.
func arrayFiles(t *testing.T) (root string, names []string, files map[string][]byte) {
	t.Helper()
	root = testdata(t, "tiledb", "arrays")
	arrays, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range arrays {
		if testing.Short() && i%4 != 0 {
			continue // the arrays differ, not what runs at the same time
		}
		names = append(names, a.Name())
	}
	files = map[string][]byte{}
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || len(arrays) == 0 {
		t.Fatalf("%d arrays, %v", len(arrays), err)
	}
	return root, names, files
}

// sameArrays requires that info, array, verify, stats and convert yield the same for arrays at
// another place.
func sameArrays(t *testing.T, root string, names []string, base string) {
	t.Helper()
	for _, name := range names {
		local, there := filepath.Join(root, name), base+name
		for _, command := range []string{"array", "info", "verify"} {
			want, got := chaski(t.Context(), command, local), chaski(t.Context(), command, there)
			if got.code != want.code || strings.ReplaceAll(got.out, there, local) != want.out ||
				strings.ReplaceAll(got.err, there, local) != want.err {
				t.Errorf("%s %s: %+v, local %+v", command, there, got, want)
			}
		}
		dims := map[string]string{
			"dense_3d_mixed_order":       "b y x",
			"dense_2d_order_rc":          "y x",
			"dense_with_sparse_fragment": "y x",
		}[name]
		if dims == "" {
			continue
		}
		var sums [2]struct{ Fields json.RawMessage }
		for i, from := range []string{local, there} {
			attr := "a"
			if name == "dense_3d_mixed_order" || name == "dense_2d_order_rc" {
				attr = "v"
			}
			r := chaski(t.Context(), "stats", "--dims", dims, "--field", "a="+attr, from)
			if err := json.Unmarshal([]byte(r.out), &sums[i]); err != nil {
				t.Errorf("stats %s: %+v", from, r)
			}
		}
		if len(sums[0].Fields) == 0 || !bytes.Equal(sums[0].Fields, sums[1].Fields) {
			t.Errorf("stats %s: %s, local %s", there, sums[1].Fields, sums[0].Fields)
		}
		for _, to := range []string{"tog", "rumi"} {
			outs := [2]string{filepath.Join(t.TempDir(), "a") + "/", filepath.Join(t.TempDir(), "b") + "/"}
			for i, from := range []string{local, there} {
				r := chaski(t.Context(), "convert", "--to", to, "--tile", "16", "--dims", dims, from, "-o", outs[i])
				if r.code != 0 {
					t.Errorf("convert %s: %+v", from, r)
				}
			}
			if a, b := contents(t, outs[0]), contents(t, outs[1]); len(a) == 0 || !maps.EqualFunc(a, b, bytes.Equal) {
				t.Errorf("convert %s: %d files, local %d, not the same", there, len(b), len(a))
			}
		}
	}
}

// contents returns the files of a directory by their paths in it.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestArraysInABucket: arrays read the same from a bucket. A web server without directory pages has
// no arrays.
func TestArraysInABucket(t *testing.T) {
	root, names, files := arrayFiles(t)
	_, _, bases := remotes(t, files)
	sameArrays(t, root, names, bases[1])
	for _, command := range []string{"array", "info", "convert"} {
		args := []string{command, bases[0] + names[0]}
		if command == "convert" {
			args = append(args, "-o", t.TempDir())
		}
		r := chaski(t.Context(), args...)
		if r.code != 1 || !strings.HasSuffix(r.err, "unsupported\n") || !strings.Contains(r.err, "listing") {
			t.Errorf("array without a listing: %+v", r)
		}
	}
}

// webServers are handlers that serve a directory as common servers do.
func webServers(root string) map[string]http.Handler {
	// page is a server that describes a directory with one line for each entry.
	page := func(kind, head, each, between, foot string, ranges bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path := filepath.Join(root, filepath.FromSlash(r.URL.Path))
			st, err := os.Stat(path)
			switch {
			case err != nil:
				http.NotFound(w, r)
				return
			case !st.IsDir() && ranges:
				http.ServeFile(w, r, path)
				return
			case !st.IsDir():
				b, _ := os.ReadFile(path)
				w.Header().Set("Content-Length", fmt.Sprint(len(b)))
				_, _ = w.Write(b)
				return
			case !strings.HasSuffix(r.URL.Path, "/"):
				http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
				return
			}
			list, _ := os.ReadDir(path)
			var lines []string
			for _, e := range list {
				slash, what := "", "file"
				if e.IsDir() {
					slash, what = "/", "directory"
				}
				lines = append(lines, strings.NewReplacer(
					"HREF", url.PathEscape(e.Name())+slash,
					"TEXT", html.EscapeString(e.Name())+slash,
					"NAME", e.Name(),
					"TYPE", what,
				).Replace(each))
			}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, head+strings.Join(lines, between)+foot)
		})
	}
	return map[string]http.Handler{
		"python": page("text/html; charset=utf-8", "<!DOCTYPE HTML>\n<html lang=\"en\">\n<body>\n<ul>\n",
			"<li><a href=\"HREF\">TEXT</a></li>\n", "", "</ul>\n<hr>\n</body>\n</html>\n", false),
		"nginx": page("text/html", "<html>\r\n<body>\r\n<pre><a href=\"../\">../</a>\r\n",
			"<a href=\"HREF\">TEXT</a>   20-Nov-2026 11:38   -\r\n", "", "</pre><hr></body>\r\n</html>\r\n", true),
		"json": page("application/json", "[\n",
			`{ "name":"NAME", "type":"TYPE", "mtime":"Fri, 20 Nov 2026 11:38:00 GMT" }`, ",\n", "\n]", true),
		"go": http.FileServer(http.Dir(root)),
	}
}

// TestArraysOnWebServers: arrays read the same from web servers that have a page for each
// directory.
func TestArraysOnWebServers(t *testing.T) {
	root, names, _ := arrayFiles(t)
	for name, h := range webServers(root) {
		if testing.Short() && name != "nginx" {
			continue // the pages differ, not what runs at the same time
		}
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			sameArrays(t, root, names, s.URL+"/")
		})
	}
}

// TestSamplesBehindSignedURLs: cat and info accept the path of a sample in a container whose URL
// has a query, and request nothing but the container.
func TestSamplesBehindSignedURLs(t *testing.T) {
	b := testfile.Read(t, "../../../testdata/coast/coast.tacozip")
	web, _, _ := remotes(t, map[string][]byte{"coast.tacozip": b})
	want := chaski(t.Context(), "cat", "../../../testdata/coast/coast.tacozip::tile_03/s2/img.tif")
	for _, uri := range []string{web.URL + "/data/coast.tacozip", web.URL + "/data/coast.tacozip?signature=a/b"} {
		for _, x := range []struct {
			args []string
			code int
			text string
		}{
			{[]string{"cat", uri + "::tile_03/s2/img.tif"}, 0, want.out},
			{[]string{"info", uri + "::tile_03/s2/img.tif"}, 0, "shape: [3, 24, 24]"},
			{[]string{"info", uri}, 0, "TACO 2 (ZIP)"},
			{[]string{"cat", uri + "::tile_03/none"}, 1, `no id "none": the ids are s2, ref: not found`},
			{[]string{"info", uri + "::tile_03"}, 1, "is a folder"},
		} {
			r := chaski(t.Context(), x.args...)
			if r.code != x.code || !strings.Contains(r.out+r.err, x.text) {
				t.Errorf("%q: exit %d\n%s%s", x.args, r.code, r.out, r.err)
			}
		}
	}
}
