package source_test

import (
	"context"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// TestCanonical lists names of other tools, what they stand for by the documentation of those tools, and the scheme by
// which a store is chosen; "" is a local file.
func TestCanonical(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "mine")
	for _, c := range []struct{ name, want, scheme string }{
		{"/vsicurl/https://h/a.tif", "https://h/a.tif", "https"},
		{"/vsicurl_streaming/http://h:80/a.tif?x=1&y", "http://h:80/a.tif?x=1&y", "http"},
		{"/vsicurl?max_retry=3&url=https%3A%2F%2Fh%2Fa%20b.tif%3Fsig%3D1%252F", "https://h/a b.tif?sig=1%2F", "https"},
		{"/vsis3/bucket/a/b.tif", "s3://bucket/a/b.tif", "s3"},
		{"/vsigs/bucket/a.tif", "gs://bucket/a.tif", "gs"},
		{"/vsiaz/container/a.tif", "az://container/a.tif", "az"},
		{"/vsiadls/container/a.tif", "az://container/a.tif", "az"},
		{"source://acc/repo/a.tif", "https://data.source.coop/acc/repo/a.tif", "source"},
		{"abfs://container/a/b.tif", "az://container/a/b.tif", "abfs"},
		{"abfss://container@mine.dfs.core.windows.net/a.tif", "az://container/a.tif", "abfss"},
		{"abfs://c@other.dfs.core.windows.net/a.tif", "https://other.blob.core.windows.net/c/a.tif", "abfs"},
		{"s3://bucket/a.tif", "s3://bucket/a.tif", "s3"},
		{"hf://datasets/a/b/c.tif", "hf://datasets/a/b/c.tif", "hf"},
		{"/data/vsis3/a.tif", "/data/vsis3/a.tif", ""},
		{"/vsi-data/a.tif", "/vsi-data/a.tif", ""},
		{"/vsidata/a.tif", "/vsidata/a.tif", ""},
		{"/vsis3", "/vsis3", ""},
		{"/vsisubfile/0_10,a.tif", "/vsisubfile/0_10,a.tif", ""},
		// What hides a path, or is not read, stays, and is no local file.
		{"/vsicurl//etc/passwd", "/vsicurl//etc/passwd", "vsicurl"},
		{"/vsicurl?url=file%3A%2F%2F%2Fetc%2Fpasswd", "/vsicurl?url=file%3A%2F%2F%2Fetc%2Fpasswd", "vsicurl"},
		{"/vsicurl?url=%zz", "/vsicurl?url=%zz", "vsicurl"},
		{"/vsitar/a.tar/b", "/vsitar/a.tar/b", "vsitar"},
		{"/vsis3?x", "/vsis3?x", "s3"},
	} {
		if got := source.Canonical(c.name); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if got := source.Scheme(c.name); got != c.scheme {
			t.Errorf("%s: scheme %q, want %q", c.name, got, c.scheme)
		}
		if again := source.Canonical(c.want); again != c.want {
			t.Errorf("%s becomes %s, and that becomes %s", c.name, c.want, again)
		}
	}
}

// named opens nothing, and keeps the names that it was asked for.
type named struct{ asked []string }

func (n *named) Open(_ context.Context, uri string) (source.Reader, error) {
	n.asked = append(n.asked, uri)
	return nil, fault.New(fault.NotFound, "file", fault.NoOffset, "no such file")
}

// TestMuxNames promises that a Mux asks the opener of the scheme for the canonical name, and that a file system that is
// not read is named in the error.
func TestMuxNames(t *testing.T) {
	files, s3 := &named{}, &named{}
	m := &source.Mux{Files: files, Schemes: map[string]source.Opener{"s3": s3}}
	_, err := m.Open(t.Context(), "/vsis3/bucket/a.tif")
	if fault.KindOf(err) != fault.NotFound || len(s3.asked) != 1 || s3.asked[0] != "s3://bucket/a.tif" {
		t.Errorf("got %v, asked for %q", err, s3.asked)
	}
	for _, name := range []string{"/vsitar/a.tar/b", "/vsicurl//etc/passwd", "/vsigs/bucket/a"} {
		_, err := m.Open(t.Context(), name)
		system := "/" + strings.Split(name, "/")[1] + "/"
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), system) || len(files.asked) > 0 {
			t.Errorf("%s: got %v, asked for %q", name, err, files.asked)
		}
	}
}

// TestRootsNames promises that roots hold for names of other tools, too.
func TestRootsNames(t *testing.T) {
	roots := source.NewRoots([]string{"s3://bucket/open", "https://data.source.coop/acc"})
	for name, want := range map[string]bool{
		"/vsis3/bucket/open/a.tif": true, "/vsis3/bucket/closed/a.tif": false, "source://acc/r/a.tif": true,
		"source://other/r/a.tif": false, "/vsicurl/https://data.source.coop/acc/a.tif": true,
		"/vsicurl/https://h/a.tif": false, "/vsis3/bucket/open/../closed/a.tif": false, "/vsicurl//etc/passwd": false,
		"/vsicurl?url=https%3A%2F%2Fdata.source.coop%2Facc%2F..%2Fx": false, "/vsitar/etc/a.tar/b": false,
	} {
		if _, err := roots.Allow(name); (err == nil) != want {
			t.Errorf("%s: got %v, want allowed %v", name, err, want)
		}
	}
}
