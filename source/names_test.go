package source_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// TestResolve: names of other programs become names that chaski opens. The schemes are those by which openers are
// chosen.
func TestResolve(t *testing.T) {
	for _, c := range []struct{ name, want, scheme string }{
		{"a/b.tif", "a/b.tif", ""},
		{"/data/b.tif", "/data/b.tif", ""},
		{"/vsi", "/vsi", ""},
		{"/vsi/a.tif", "/vsi/a.tif", ""},
		{"/vsiData/a.tif", "/vsiData/a.tif", ""},
		{"file:///a.tif", "file:///a.tif", "file"},
		{"https://h/vsicurl/a.tif?x=1", "https://h/vsicurl/a.tif?x=1", "https"},
		{"s3://b/k%20k.tif", "s3://b/k%20k.tif", "s3"},
		{"gs://b/k.tif", "gs://b/k.tif", "gs"},
		{"hf://datasets/o/n@v1/a.tif", "hf://datasets/o/n@v1/a.tif", "hf"},

		{"/vsicurl/https://h/a.tif?sig=x", "https://h/a.tif?sig=x", "https"},
		{"/vsicurl/http://h:80/a%20b.tif", "http://h:80/a%20b.tif", "http"},
		{"/vsicurl_streaming/https://h/a.tif", "https://h/a.tif", "https"},
		{"/vsicurl?url=https%3A%2F%2Fh%2Fa%2520b.tif%3Fc%3D1", "https://h/a%20b.tif?c=1", "https"},
		{"/vsicurl?max_retry=3&retry_delay=1&use_head=no&url=https://h/a.tif", "https://h/a.tif", "https"},
		{"/vsis3/b/k/a.tif", "s3://b/k/a.tif", "s3"},
		{"/vsis3_streaming/b/a.tif", "s3://b/a.tif", "s3"},
		{"/vsigs/b/a.tif", "gs://b/a.tif", "gs"},
		{"/vsiaz/c/a.tif", "az://c/a.tif", "az"},
		{"/vsiadls/c/a.tif", "az://c/a.tif", "az"},

		{"az://c/a.tif", "az://c/a.tif", "az"},
		{"abfs://c/a.tif", "az://c/a.tif", "az"},
		{"ABFSS://c/a.tif", "az://c/a.tif", "az"},
		{"abfs://", "abfs://", "abfs"},
		{"az://", "az://", "az"},
		{"abfs://c@acc.dfs.core.windows.net/d/a.tif", "abfs://c@acc.dfs.core.windows.net/d/a.tif", "abfs"},
		{"abfss://c@acc.dfs.core.windows.net/a.tif", "abfs://c@acc.dfs.core.windows.net/a.tif", "abfs"},
		{"wasbs://c@acc.blob.core.windows.net/a.tif", "abfs://c@acc.blob.core.windows.net/a.tif", "abfs"},
		{"az://c@acc.dfs.core.windows.net/a.tif", "abfs://c@acc.dfs.core.windows.net/a.tif", "abfs"},

		{"source://acc/repo/d/a b.tif", "https://data.source.coop/acc/repo/d/a%20b.tif", "https"},
		{"source://acc/repo/", "https://data.source.coop/acc/repo", "https"},

		{"/vsisubfile/7_10,a.tif", "/vsisubfile/7_10,a.tif", "vsisubfile"},
		{"/vsisubfile/7,/vsis3/b/a.tif", "/vsisubfile/7,s3://b/a.tif", "vsisubfile"},
		{"/vsisubfile/7_0,a.tif", "/vsisubfile/7,a.tif", "vsisubfile"},
		{"/vsisubfile/7_10,file:///d/a,b.tif", "/vsisubfile/7_10,/d/a,b.tif", "vsisubfile"},
		{"/vsisubfile/7_10,file:///d/a%20b.tif", "/vsisubfile/7_10,/d/a b.tif", "vsisubfile"},
		{"/vsizip/a.zip/b/c.tif", "/vsizip/{a.zip}/b/c.tif", "vsizip"},
		{"/vsizip//d/a.ZIP/b.zip/c.tif", "/vsizip/{/d/a.ZIP}/b.zip/c.tif", "vsizip"},
		{"/vsizip/a.zip", "/vsizip/{a.zip}", "vsizip"},
		{"/vsizip/a.zip/d/", "/vsizip/{a.zip}/d", "vsizip"},
		{"/vsizip/{a.cozip}/c.tif", "/vsizip/{a.cozip}/c.tif", "vsizip"},
		{"/vsizip//vsicurl/https://h/a.zip/c.tif", "/vsizip/{https://h/a.zip}/c.tif", "vsizip"},
		{"/vsizip/vsicurl/https://h/a.zip/c.tif", "/vsizip/{https://h/a.zip}/c.tif", "vsizip"},
		{"/vsizip/{/vsicurl/https://h/a.zip?sig=x}/c.tif", "/vsizip/{https://h/a.zip?sig=x}/c.tif", "vsizip"},
		{"/vsizip/{/vsicurl?url=https%3A%2F%2Fh%2Fa}/c.tif", "/vsizip/{https://h/a}/c.tif", "vsizip"},
		{"/vsizip/{/vsizip/{a.zip}/b.zip}/c.tif", "/vsizip/{/vsizip/{a.zip}/b.zip}/c.tif", "vsizip"},
		{"/vsizip/{source://a/r/b.zip}/c.tif", "/vsizip/{https://data.source.coop/a/r/b.zip}/c.tif", "vsizip"},
		{"a.npz::image", "a.npz::image", "vsizip"},
		{"/d/a.NPZ::b/c.npy", "/d/a.NPZ::b/c", "vsizip"},
		{"/vsis3/b/a.npz::c", "s3://b/a.npz::c", "vsizip"},
		{"https://h/a.npz?sig=x::c", "https://h/a.npz?sig=x::c", "vsizip"},
		{"file:///d/a%20b.npz::c", "/d/a b.npz::c", "vsizip"},
		{"/vsizip/a.zip/b.npz::c", "/vsizip/{a.zip}/b.npz::c", "vsizip"},
		{"/vsizip/a.npz/c.npy", "/vsizip/{a.npz}/c.npy", "vsizip"},
		{"a.npz::", "a.npz::", ""},
		{"a.h5::b.npz::c", "a.h5::b.npz::c", ""},
		{"/vsisubfile/1_2,/vsizip//vsigs/b/a.zip/c.tif", "/vsisubfile/1_2,/vsizip/{gs://b/a.zip}/c.tif", "vsisubfile"},
	} {
		got, err := source.Resolve(c.name)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", c.name, got, c.want, err)
		}
		if again, err := source.Resolve(got); err != nil || again != got {
			t.Errorf("%s again: %q: %v", got, again, err)
		}
		for _, name := range []string{c.name, got} {
			if s := source.Scheme(name); s != c.scheme {
				t.Errorf("%s: scheme %q, want %q", name, s, c.scheme)
			}
			if source.IsRemote(name) != (c.scheme != "" && c.scheme != "file") {
				t.Errorf("%s: remote %v", name, source.IsRemote(name))
			}
		}
	}
}

// TestUnknownNames: a name of a file system that chaski does not have is not taken for a local path. The error says
// which part of it is not read.
func TestUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"/vsitar/a/b.tif":                          "/vsitar/{ARCHIVE}",
		"/vsigzip/a.gz":                            "/vsigzip/",
		"/vsimem/a.tif":                            "/vsimem/",
		"/vsihdfs/a.tif":                           "/vsihdfs/",
		"/vsioss/b/a.tif":                          "/vsioss/",
		"/vsis3x?a":                                "/vsis3x?",
		"/vsicurl/ftp://h/a.tif":                   "http",
		"/vsicurl/a.tif":                           "http",
		"/vsicurl?max_retry=1":                     "http",
		"/vsicurl?url=https%ZZ":                    "percent",
		"/vsicurl?header.X=1&url=https://h/a.tif":  `"header.X"`,
		"/vsicurl?pc_url_signing=yes&url=https://": `"pc_url_signing"`,
		"/vsis3//a.tif":                            "bucket",
		"abfs:///a.tif":                            "CONTAINER",
		"abfs://@acc/a.tif":                        "CONTAINER",
		"abfs://c@/a.tif":                          "ACCOUNT",
		"source:///a.tif":                          "ACCOUNT",
		"/vsisubfile/-1_2,a.tif":                   "OFFSET",
		"/vsisubfile/1_2":                          "OFFSET",
		"/vsisubfile/1_2,":                         "OFFSET",
		"/vsisubfile/1_,a":                         "OFFSET",
		"/vsisubfile/1_2,/vsitar/a/b":              "/vsitar/{ARCHIVE}",
		"/vsizip/a/b.tif":                          "{ARCHIVE}",
		"/vsizip/{a.zip/b.tif":                     "{ARCHIVE}",
		"/vsizip/{a.zip}b.tif":                     "{ARCHIVE}",
		"/vsizip/{}/b.tif":                         "{ARCHIVE}",
		"/vsizip//vsizip/a.zip/b.zip/c.tif":        "{ARCHIVE}",
		"/vsizip//vsitar/a.zip/c.tif":              "{ARCHIVE}",
		strings.Repeat("/vsisubfile/1,", 50) + "a": "in one another",
	} {
		got, err := source.Resolve(name)
		if fault.KindOf(err) != fault.Unsupported || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q: %v, want %s", name, got, err, want)
		}
		if !source.IsRemote(name) {
			t.Errorf("%s is local", name)
		}
		for opener, o := range map[string]source.Opener{"files": &openers.Files{},
			"mux": &openers.Mux{Files: &openers.Files{}}, "below": openers.Below(&openers.Files{}, []string{"/"})} {
			if _, oerr := o.Open(t.Context(), name); oerr == nil || oerr.Error() != err.Error() {
				t.Errorf("%s: %s: %v, want %v", opener, name, oerr, err)
			}
		}
	}
}

// TestVSI: GDAL's name for a URI is read as the URI.
func TestVSI(t *testing.T) {
	for uri, want := range map[string]string{
		"a.tif":                        "a.tif",
		"/d/a.tif":                     "/d/a.tif",
		"file:///d/a.tif":              "/d/a.tif",
		"file:///d/a%20b%25.tif":       "/d/a b%.tif",
		"file://localhost/d/50%.tif":   "/d/50%.tif",
		"http://h/a.tif":               "/vsicurl/http://h/a.tif",
		"https://h/a.tif":              "/vsicurl/https://h/a.tif",
		"s3://b/a.tif":                 "/vsis3/b/a.tif",
		"gs://b/a.tif":                 "/vsigs/b/a.tif",
		"az://c/a.tif":                 "/vsiaz/c/a.tif",
		"hf://datasets/o/n/a.tif":      "hf://datasets/o/n/a.tif",
		"abfs://c@a.dfs/k":             "abfs://c@a.dfs/k",
		"/vsizip/{s3://b/a.zip}/c.tif": "/vsizip/{/vsis3/b/a.zip}/c.tif",
		"/vsisubfile/1_2,s3://b/a.tif": "/vsisubfile/1_2,/vsis3/b/a.tif",
		"/vsisubfile/1_2,/d/a.tif":     "/vsisubfile/1_2,/d/a.tif",
		"/vsisubfile/3,https://h/a":    "/vsisubfile/3,/vsicurl/https://h/a",
	} {
		got := source.VSI(uri)
		if got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
		if back, err := source.Resolve(got); err != nil || back != source.LocalPath(uri) {
			t.Errorf("%s: back %s: %v", uri, back, err)
		}
	}
}

// TestNamesInNames: relative paths in names of parts, and the last part of a name.
func TestNamesInNames(t *testing.T) {
	join := func(name string) string {
		if source.IsRemote(name) || filepath.IsAbs(name) {
			return name
		}
		return "dir/" + name
	}
	for name, want := range map[string]string{
		"a.tif":                                   "dir/a.tif",
		"/vsizip/a.zip/b.tif":                     "/vsizip/{dir/a.zip}/b.tif",
		"/vsizip/{/vsizip/a.zip/b.zip}/c.tif":     "/vsizip/{/vsizip/{dir/a.zip}/b.zip}/c.tif",
		"/vsisubfile/1_2,/vsizip/a.zip/b.tif":     "/vsisubfile/1_2,/vsizip/{dir/a.zip}/b.tif",
		"/vsisubfile/1_2,/d/a.tif":                "/vsisubfile/1_2,/d/a.tif",
		"/vsizip//vsicurl/https://h/a.zip/b.tif":  "/vsizip/{https://h/a.zip}/b.tif",
		"/vsitar/a.tar/b":                         "/vsitar/{dir/a.tar}/b",
		"/vsicurl/https://h/a.tif":                "https://h/a.tif",
		"abfss://c@a.dfs.core.windows.net/a.tif":  "abfs://c@a.dfs.core.windows.net/a.tif",
		"/vsisubfile/1_2,/vsicurl/https://h/a?b":  "/vsisubfile/1_2,https://h/a?b",
		"/vsizip/{/vsisubfile/1_2,a.bin}/b/c.tif": "/vsizip/{/vsisubfile/1_2,dir/a.bin}/b/c.tif",
	} {
		if got := source.ResolveFrom(name, join); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string][2]string{
		"/vsizip/a.zip/b.tif":                      {"b.tif", "a.zip"},
		"/vsisubfile/1_2,/vsicurl/https://h/a?b=c": {"a", "https://h/a?b=c"},
		"/vsicurl/https://h/a.tif?b/c":             {"a.tif", "https://h/a.tif?b/c"},
		"/vsizip/{/vsizip/a.zip/b.zip}/c.tif":      {"c.tif", "a.zip"},
		"/d/a.tif":                                 {"a.tif", "/d/a.tif"},
	} {
		if got := source.Name(name); got != want[0] {
			t.Errorf("%s: name %s, want %s", name, got, want[0])
		}
		if got := source.FileOf(name); got != want[1] {
			t.Errorf("%s: file %s, want %s", name, got, want[1])
		}
	}
}

// FuzzResolve: what Resolve returns has one form, which it returns again.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{"/vsizip/{/vsicurl/https://h/a.zip}/b", "/vsisubfile/1_2,/vsis3/b/k", "abfs://c@h/k",
		"/vsicurl?url=%2Fvsizip%2Fa", "source://a/b c", "/vsizip/a.zip//b/", "/vsizip/{a}}/{b",
		"/vsizip/a.zip/{/vsizip/b", "/vsicurl/https://h/a.npz::b", "/vsizip/{a.npz::b}/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		resolved, err := source.Resolve(name)
		if err != nil {
			if fault.KindOf(err) != fault.Unsupported || resolved != "" {
				t.Fatalf("%q: %q, %v", name, resolved, err)
			}
			return
		}
		if again, err := source.Resolve(resolved); err != nil || again != resolved {
			t.Fatalf("%q is %q, resolved again %q: %v", name, resolved, again, err)
		}
		if source.Scheme(name) != source.Scheme(resolved) || source.FileOf(name) != source.FileOf(resolved) {
			t.Fatalf("%q is %q with another scheme or file", name, resolved)
		}
		same := source.ResolveFrom(name, func(name string) string { return name })
		if same != resolved {
			t.Fatalf("%q is %q, and %q from a directory", name, resolved, same)
		}
	})
}
