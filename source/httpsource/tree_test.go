package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
)

// treeServer is a hub that answers with pages: its answer for the first path, and the link to the
// next page.
func treeServer(t *testing.T, answer http.HandlerFunc) (*remote.Opener, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	o, err := New(Options{Options: remote.Options{Attempts: 1}, HubURL: s.URL, HubToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return o, s
}

// TestNamesOfTheHub: the hub lists directories of datasets page by page, with the token, for every
// form of a revision.
func TestNamesOfTheHub(t *testing.T) {
	paths := map[string]string{
		"hf://datasets/o/n/a b/c%d":              "/api/datasets/o/n/tree/main/a%20b/c%25d",
		"hf://datasets/o/n/a b/c%d/":             "/api/datasets/o/n/tree/main/a%20b/c%25d",
		"hf://datasets/o/n@v1/a b/c%d":           "/api/datasets/o/n/tree/v1/a%20b/c%25d",
		"hf://datasets/o/n@refs/pr/1/a b/c%d":    "/api/datasets/o/n/tree/refs%2Fpr%2F1/a%20b/c%25d",
		"hf://datasets/o/n":                      "/api/datasets/o/n/tree/main",
		"hf://datasets/o/n@refs/convert/parquet": "/api/datasets/o/n/tree/refs%2Fconvert%2Fparquet",
	}
	for folder, path := range paths {
		dir := ""
		if strings.Contains(folder, "a b") {
			dir = "a b/c%d/"
		}
		requests := 0
		o, _ := treeServer(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			if r.URL.EscapedPath() != path || r.Header.Get("Authorization") != "Bearer secret" ||
				r.URL.Query().Get("recursive") != "false" {
				t.Errorf("%s: %s with %q", folder, r.URL, r.Header.Get("Authorization"))
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			switch r.URL.Query().Get("cursor") {
			case "": // a mirror links to the hub itself
				w.Header().Set("Link", `<https://hub.invalid/api/first>; rel="first", <https://hub.invalid/api/x?recursive=false&expand=false&limit=2&cursor=a,b%3D>; rel="next"`)
				fmt.Fprintf(w, `[{"type":"directory","oid":"1","size":0,"path":"%[1]s__1_1_0"},
					{"type":"file","oid":"2","size":186,"path":"%[1]sé.tdb"}]`, dir)
			case "a,b=":
				fmt.Fprintf(w, `[{"type":"file","oid":"3","size":5000000000,
					"lfs":{"oid":"4","size":5000000000},"path":"%s__array_schema.tdb"}]`, dir)
			default:
				http.NotFound(w, r)
			}
		})
		got, err := o.Names(context.Background(), folder)
		want := []string{"__1_1_0/", "é.tdb", "__array_schema.tdb"}
		if err != nil || !slices.Equal(got, want) || requests != 2 {
			t.Errorf("%s: %q in %d requests, %v", folder, got, requests, err)
		}
	}
}

// TestNoNamesOfTheHub: answers that list no directory are refused, and lists end.
func TestNoNamesOfTheHub(t *testing.T) {
	requests := 0
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind
		says   string
	}{
		"404": {http.NotFound, fault.NotFound, "404"},
		"401": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 0, "401"},
		"503": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 0, "503"},
		"no list": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":"x"}`) },
			fault.Unsupported, "not a list",
		},
		"elsewhere": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"type":"file","path":"e/x"}]`) },
			fault.Unsupported, "e/x",
		},
		"above": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"type":"file","path":"d/.."}]`) },
			fault.Unsupported, "d/..",
		},
		"below": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"type":"file","path":"d/a/b"}]`) },
			fault.Unsupported, "d/a/b",
		},
		"a circle": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "<?"+r.URL.RawQuery+`>; rel=next`)
			fmt.Fprint(w, `[]`)
		}, fault.Unsupported, "next page"},
		"no end": {func(w http.ResponseWriter, _ *http.Request) {
			requests++
			w.Header().Set("Link", fmt.Sprintf(`<?cursor=%d>; rel="next"`, requests))
			fmt.Fprint(w, `[]`)
		}, fault.Unsupported, "pages"},
		"large": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "<?x"+r.URL.RawQuery+`>; rel="next"`)
			fmt.Fprint(w, `[`+strings.Repeat(" ", maxPage/2)+`]`)
		}, fault.Unsupported, "bytes"},
		"another host": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
		}, fault.Unsupported, "another host"},
	} {
		o, _ := treeServer(t, c.answer)
		got, err := o.Names(context.Background(), "hf://datasets/o/n/d")
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v (%v)", name, got, err, fault.KindOf(err))
		}
	}
	if requests != maxTreePages {
		t.Errorf("%d pages of a list without an end", requests)
	}
	o, _ := treeServer(t, http.NotFound)
	for _, uri := range []string{
		"hf://models/o/n/d", "hf://datasets/o", "hf://datasets/o/n/../../x", "hf://datasets/o/n@/d",
	} {
		if _, err := o.Names(context.Background(), uri); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestFilesOfTheHub: the hub lists all files below a directory page by page, with their sizes; lists of others than
// files below it are refused, and HTTP has none.
func TestFilesOfTheHub(t *testing.T) {
	o, s := treeServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/datasets/o/n/tree/main/d" || r.URL.Query().Get("recursive") != "true" ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %q", r.URL, r.Header.Get("Authorization"))
		}
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", `<https://hub.invalid/x?recursive=true&cursor=b>; rel="next"`)
			fmt.Fprint(w, `[{"type":"directory","path":"d/a"},{"type":"file","size":3,"path":"d/a/é f.tif"}]`)
			return
		}
		fmt.Fprint(w, `[{"type":"file","size":5000000000,"lfs":{"size":5000000000},"path":"d/x.tif"}]`)
	})
	var got []source.Entry
	add := func(e source.Entry) error {
		got = append(got, e)
		return nil
	}
	err := o.List(t.Context(), "hf://datasets/o/n/d/", add)
	if want := []source.Entry{{Path: "a/é f.tif", Size: 3}, {Path: "x.tif", Size: 5e9}}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if err := o.List(t.Context(), s.URL+"/d", add); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a listing of HTTP: %v", err)
	}
	for _, path := range []string{"e/x", "d/../x", "d//x", "d/", "d"} {
		o, _ := treeServer(t, func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `[{"type":"file","path":%q}]`, path)
		})
		if err := o.List(t.Context(), "hf://datasets/o/n/d", add); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// FuzzTree: names in any answer of the hub lie in the directory itself, and the next page is on the
// hub.
func FuzzTree(f *testing.F) {
	f.Add([]byte(`[{"type":"directory","path":"d/f"},{"type":"file","path":"d/a b"}]`),
		`<https://h/x?cursor=1>; rel="next"`)
	f.Add([]byte(`[{"path":"d/../x"}]`), `<>;rel=next,<?a>; REL="next"`)
	f.Add([]byte(`[{"path":"d/"}]`), `<//evil/?x=1>; title="<,;"; rel=next`)
	at := &url.URL{Scheme: "https", Host: "hub.example", Path: "/api/x", RawQuery: "recursive=false"}
	f.Fuzz(func(t *testing.T, page []byte, link string) {
		list, err := treeEntries(page, "d", fs.ValidPath)
		if err != nil && len(list) > 0 {
			t.Errorf("%v besides %v", list, err)
		}
		for _, entry := range list {
			for name := range strings.SplitSeq(entry.Path, "/") {
				if name == ".." || name == "" || strings.ContainsAny(name, "\\\x00") {
					t.Errorf("path %q", entry.Path)
				}
			}
		}
		next, err := nextPage(at, []string{link})
		if next != nil && (err != nil || next.Host != at.Host || next.Path != at.Path || next.Scheme != at.Scheme ||
			next.RawQuery == at.RawQuery) {
			t.Errorf("%q leads to %v, %v", link, next, err)
		}
		var failure *remote.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Error(err)
		}
	})
}

// TestTokenIsForTheHubOnly: a host to which the hub redirects does not get the token, also not for
// later pages.
func TestTokenIsForTheHubOnly(t *testing.T) {
	pages := 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pages++
		if a := r.Header.Get("Authorization"); a != "" {
			t.Errorf("%s with %q", r.URL, a)
		}
		if r.URL.Query().Get("cursor") == "" {
			w.Header().Set("Link", `<?cursor=1>; rel="next"`)
		}
		fmt.Fprintf(w, `[{"type":"file","path":"d/%d"}]`, pages)
	}))
	defer other.Close()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the hub is asked without the token")
		}
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	defer hub.Close()
	o, err := New(Options{Options: remote.Options{Attempts: 1}, HubURL: hub.URL, HubToken: "secret", OtherHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	got, err := o.Names(t.Context(), "hf://datasets/o/n/d")
	if err != nil || !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("%q, %v", got, err)
	}
}
