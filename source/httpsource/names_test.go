package httpsource

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
)

// What servers answer about a directory that holds the directory f and the files "a b&c.tdb" and
// "é.tdb".
var (
	pythonPage = `<!DOCTYPE HTML>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Directory listing for /d/</title>
</head>
<body>
<h1>Directory listing for /d/</h1>
<hr>
<ul>
<li><a href="a%20b%26c.tdb">a b&amp;c.tdb</a></li>
<li><a href="f/">f/</a></li>
<li><a href="%C3%A9.tdb">é.tdb</a></li>
</ul>
<hr>
</body>
</html>
`
	nginxPage = strings.ReplaceAll(`<html>
<head><title>Index of /d/</title></head>
<body>
<h1>Index of /d/</h1><hr><pre><a href="../">../</a>
<a href="f/">f/</a>                                  20-Nov-2026 11:38                   -
<a href="a%20b&amp;c.tdb">a b&amp;c.tdb</a>                           20-Nov-2026 11:38                  12
<a href="%C3%A9.tdb">é.tdb</a>                              20-Nov-2026 11:38                  12
</pre><hr></body>
</html>
`, "\n", "\r\n")
	apachePage = `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html>
 <head><title>Index of /d</title></head>
 <body>
<h1>Index of /d</h1>
  <table>
   <tr><th valign="top"><img src="/icons/blank.gif" alt="[ICO]"></th><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td valign="top"><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/">Parent Directory</a></td><td>&nbsp;</td></tr>
<tr><td valign="top"><img src="/icons/unknown.gif" alt="[   ]"></td><td><a href="a%20b%26c.tdb">a b&amp;c.tdb</a></td><td align="right">2026-11-20 11:38  </td></tr>
<tr><td valign="top"><img src="/icons/folder.gif" alt="[DIR]"></td><td><a href="f/">f/</a></td><td align="right">2026-11-20 11:38  </td></tr>
<tr><td valign="top"><img src="/icons/unknown.gif" alt="[   ]"></td><td><a href="%c3%a9.tdb">é.tdb</a></td><td align="right">2026-11-20 11:38  </td></tr>
</table>
</body></html>
`
	caddyPage = `<!DOCTYPE html><html><head><title>d</title></head><body><a href="/">up</a> <a href="./?sort=name&order=desc">Name</a>
<table><tr><td><a href="./f/"><span>f</span></a></td></tr><tr><td><a href="./a%20b&amp;c.tdb">a b</a><a href='./%C3%A9.tdb'>é</a></td></tr></table></body></html>`
	nginxJSON = `[
{ "name":"f", "type":"directory", "mtime":"Fri, 20 Nov 2026 11:38:00 GMT" },
{ "name":"a b&c.tdb", "type":"file", "mtime":"Fri, 20 Nov 2026 11:38:00 GMT", "size":12 },
{ "name":"é.tdb", "type":"file", "mtime":"Fri, 20 Nov 2026 11:38:00 GMT", "size":12 }
]`
	caddyJSON = `[{"name":"f/","size":4096,"url":"./f/","mod_time":"2026-11-20T11:38:00Z","mode":2147484141,"is_dir":true,"is_symlink":false},
{"name":"a b&c.tdb","size":12,"url":"./a%20b&c.tdb","is_dir":false},{"name":"é.tdb","size":12,"url":"./%C3%A9.tdb","is_dir":false}]`
)

// pager serves one page.
func pager(t *testing.T, answer http.HandlerFunc) (string, *remote.Opener) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	o, err := New(Options{Options: remote.Options{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	return s.URL, o
}

// TestNamesOfServers: the directory pages of common servers yield the names in a directory, and
// nothing else.
func TestNamesOfServers(t *testing.T) {
	for name, page := range map[string]string{
		"python":     pythonPage,
		"nginx":      nginxPage,
		"apache":     apachePage,
		"caddy":      caddyPage,
		"nginx json": nginxJSON,
		"caddy json": caddyJSON,
	} {
		kind := "text/html; charset=utf-8"
		if strings.HasSuffix(name, "json") {
			kind = "application/json"
		}
		base, o := pager(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/d/" {
				http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
				return
			}
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, page)
		})
		for _, folder := range []string{"/d", "/d/"} {
			got, err := openers.Names(context.Background(),
				&openers.Mux{Schemes: map[string]source.Opener{"http": o}}, base+folder)
			slices.Sort(got)
			if want := []string{"a b&c.tdb", "f/", "é.tdb"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v, want %q", name, got, err, want)
			}
		}
	}
}

// TestNoNames: a page that lists no directory is refused with advice. An interrupted answer is an
// error without a kind, because it says nothing about the directory.
func TestNoNames(t *testing.T) {
	answer := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		kind   fault.Kind
		says   string
	}{
		"403":     {answer(403, "text/html", pythonPage), fault.Unsupported, "index.html"},
		"404":     {answer(404, "text/html", pythonPage), fault.Unsupported, "index.html"},
		"500":     {answer(500, "text/html", pythonPage), 0, "500"},
		"text":    {answer(200, "text/plain", pythonPage), fault.Unsupported, "text/plain"},
		"base":    {answer(200, "text/html", `<base href="/e/">`+pythonPage), fault.Unsupported, "base"},
		"object":  {answer(200, "application/json", `{"name":"f"}`), fault.Unsupported, "JSON"},
		"path":    {answer(200, "application/json", `[{"name":"../f"}]`), fault.Unsupported, "../f"},
		"nothing": {answer(200, "application/json", `[{"size":1}]`), fault.Unsupported, "entry"},
		"large":   {answer(200, "text/html", strings.Repeat("<p>", maxPage)), fault.Unsupported, "page has over"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://other.invalid/", http.StatusFound)
		}, fault.Unsupported, "another host"},
		"login": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" {
				answer(200, "text/html", pythonPage)(w, r)
				return
			}
			http.Redirect(w, r, "/login", http.StatusFound)
		}, fault.Unsupported, "not the directory's"},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			c, b, _ := w.(http.Hijacker).Hijack()
			fmt.Fprint(b, "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n"+pythonPage[:300])
			_ = b.Flush()
			_ = c.Close()
		}, 0, "incomplete"},
	} {
		base, o := pager(t, c.answer)
		got, err := o.Names(context.Background(), base+"/d")
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_, o := pager(t, answer(200, "text/html", pythonPage))
	if _, err := o.Names(context.Background(), "http://host/d?x=1"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a query: %v", err)
	}
}

// FuzzPage: names of any page lie in the directory itself, and are listed once.
func FuzzPage(f *testing.F) {
	for _, p := range []string{
		pythonPage, nginxPage, apachePage, caddyPage, nginxJSON, caddyJSON,
		`<a href="%2e%2e/f"><a href="x%2fy"><a href="//h/d/x"><a href="f%00">`,
	} {
		f.Add([]byte(p))
	}
	base := &url.URL{Scheme: "http", Host: "h", Path: "/d/"}
	f.Fuzz(func(t *testing.T, page []byte) {
		for _, read := range []func() ([]string, error){
			func() ([]string, error) { return linked(base, page, true) },
			func() ([]string, error) { return entries(page) },
		} {
			names, err := read()
			if err != nil && len(names) > 0 {
				t.Errorf("%q besides %v", names, err)
			}
			for _, n := range names {
				name := strings.TrimSuffix(n, "/")
				at := base.JoinPath(url.PathEscape(name))
				if name == "" || at.Path != "/d/"+name || strings.Contains(name, "/") {
					t.Errorf("name %q leads to %s", n, at)
				}
			}
		}
	})
}
