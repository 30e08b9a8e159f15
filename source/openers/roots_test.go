package openers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// rootsTree has two roots, a and b, and a directory outside:
//
//	a/sub/in, a/in, b/in, out/secret, ab/in
//	a/up -> ../b       a/abs -> DIR/b      a/self -> sub
//	a/leak -> ../out   a/none -> ../out/none/x
func rootsTree(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a/in": "a", "a/sub/in": "s", "b/in": "b", "out/secret": "secret",
		"ab/in": "secret"} {
		p := filepath.Join(dir, name)
		testfile.Write(t, p, []byte(text))
	}
	for name, to := range map[string]string{
		"a/up": "../b", "a/abs": dir + "/b", "a/self": "sub", "a/leak": "../out", "a/none": "../out/none/x",
		"a/file": "../out/secret", "a/gone": "../out/gone", "alias": "a",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contents(o source.Opener, path string) (string, error) {
	r, err := o.Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	b := make([]byte, r.Size())
	err = r.ReadAt(context.Background(), b, 0)
	return string(b), errors.Join(err, r.Close())
}

// TestBelow compares what may be opened below roots with what the kernel opens by the same path.
func TestBelow(t *testing.T) {
	dir := rootsTree(t)
	o := openers.Below(&openers.Files{}, []string{dir + "/a", dir + "/b", dir + "/missing", "/vsi7z/x"})
	for _, p := range []string{
		"a/in", "a/sub/in", "a/up/in", "a/abs/in", "a/self/in", "alias/in", "alias/abs/in", "a/self/../in",
		"a/up/../a/in", "a/../b/in", "a/sub/../../b/in", "a//./in",
	} {
		want := testfile.Read(t, dir+"/"+p)
		if got, err := contents(o, dir+"/"+p); err != nil || got != string(want) {
			t.Errorf("%s: %q, %v; want %q", p, got, err, want)
		}
	}
	texts := map[string]string{}
	for _, p := range []string{
		"a/leak/secret", "a/leak/absent", "a/file", "a/gone", "a/none", "a/leak/../out/secret", "a/leak/../a/in",
		"out/secret", "out/absent", "out/../a/in", "a/../out/secret", "a/up/../out/secret", "nowhere/../a/in",
		"missing/x", "a/leak/secret/x", "ab/in",
	} {
		_, err := contents(o, dir+"/"+p)
		if !openers.Outside(err) {
			t.Errorf("%s: %v", p, err)
			continue
		}
		texts[strings.ReplaceAll(err.Error(), dir+"/"+p, "")] = p
		if _, err := openers.RootsOf(o).Stat(dir + "/" + p); !openers.Outside(err) {
			t.Errorf("stat %s: %v", p, err)
		}
	}
	if len(texts) != 1 {
		t.Errorf("errors differ: %v", texts)
	}
	for _, p := range []string{"a/absent", "a/in/x", "a/in/../in", "a/sub/absent/x", "b/absent", "a/up/absent"} {
		_, err := contents(o, dir+"/"+p)
		if openers.Outside(err) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := openers.RootsOf(o).ReadDir(dir + "/a/leak"); !openers.Outside(err) {
		t.Errorf("a directory outside is listed: %v", err)
	}
	removed := dir + "/removed"
	if err := os.Mkdir(removed, 0o777); err != nil {
		t.Fatal(err)
	}
	empty := openers.Below(nil, []string{removed})
	if err := os.Remove(removed); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{removed, removed + "/x"} {
		if _, err := contents(empty, p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
		if _, err := openers.RootsOf(empty).Stat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
	}
	list, err := openers.RootsOf(o).ReadDir(dir + "/a/abs")
	if err != nil || len(list) != 1 || list[0].Name() != "in" {
		t.Errorf("%v, %v", list, err)
	}
	for i := range 30 {
		testfile.Write(t, fmt.Sprintf("%s/b/%d", dir, i*7919%100), nil)
	}
	list, err = openers.RootsOf(o).ReadDir(dir + "/b")
	want, wantErr := os.ReadDir(dir + "/b")
	if err != nil || wantErr != nil || !slices.EqualFunc(list, want, func(a, b fs.DirEntry) bool {
		return a.Name() == b.Name()
	}) {
		t.Errorf("%v, %v", list, err)
	}
}

// TestBelowOfNothingNew: without roots, and for the same ones, Below returns what it gets. Below "/" local files are
// opened by the opener that it has, or by its own.
func TestBelowOfNothingNew(t *testing.T) {
	dir := rootsTree(t)
	base := &objects{bytes: map[string][]byte{dir + "/a/in": []byte("base")}}
	if o := openers.Below(base, nil); o != source.Opener(base) || openers.NewRoots(nil) != nil {
		t.Errorf("no roots: %v", o)
	}
	all := openers.Below(base, []string{"/"})
	if openers.Below(all, []string{"/"}) != all || openers.Below(all, []string{dir}) == all {
		t.Error("the same roots make another opener, or other roots do not")
	}
	for want, o := range map[string]source.Opener{"base": all, "a": openers.Below(nil, []string{"/"})} {
		if got, err := contents(o, dir+"/a/in"); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if name, err := openers.RootsOf(all).Allow(dir + "/a/file"); name != dir+"/a/file" || err != nil {
		t.Errorf("below / a link is %q, %v", name, err)
	}
	for root, allowed := range map[string]bool{"s3://": true, "s3://b": false} {
		if _, err := openers.NewRoots([]string{root}).Allow("s3://b/x/../y"); openers.Outside(err) == allowed {
			t.Errorf("%s: %v", root, err)
		}
	}
}

// TestUnservedScheme: a scheme that no root has is named.
func TestUnservedScheme(t *testing.T) {
	for uri, named := range map[string]bool{"htp://x/a.tif": true, "s3://c/a.tif": false} {
		_, err := openers.NewRoots([]string{"/", "s3://b"}).Allow(uri)
		if !openers.Outside(err) || fault.KindOf(err) != fault.NotFound ||
			strings.Contains(err.Error(), "none of which begins with htp://") != named {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestAllAllowed: a link to the directory above all others allows what that allows.
func TestAllAllowed(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{link: false, "/": false, filepath.Dir(link): true} {
		if got := openers.NewRoots([]string{dir}).Bounded(); got != want {
			t.Errorf("%s: bounded %v", dir, got)
		}
	}
	if name, err := openers.NewRoots(nil).Allow("/vsi7z/x"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("%q, %v", name, err)
	}
	texts := map[string]bool{openers.NewRoots(nil).String(): true, "": true}
	for _, dirs := range [][]string{{}, {"/"}, {"s3://b"}, {"/", "s3://b"}} {
		texts[openers.NewRoots(dirs).String()] = true
	}
	if len(texts) != 5 {
		t.Errorf("%v are the texts of five roots", texts)
	}
}

// TestNames: below roots directories have the names that they have otherwise, and errors have the same kinds.
func TestNames(t *testing.T) {
	dir := rootsTree(t)
	all := []string{"abs/", "file", "gone", "in", "leak/", "none", "self/", "sub/", "up/"}
	inside := []string{"abs", "file", "gone", "in", "leak", "none", "self/", "sub/", "up"}
	for root, want := range map[string][]string{"/": all, dir: all, dir + "/a": inside} {
		o := openers.Below(nil, []string{root})
		names, err := openers.Names(t.Context(), o, dir+"/a")
		if slices.Sort(names); err != nil || !slices.Equal(names, want) {
			t.Errorf("below %s: %q, %v, want %q", root, names, err, want)
		}
		for name, kind := range map[string]fault.Kind{"/a/missing": fault.NotFound, "/a/in": fault.Unsupported} {
			if names, err := openers.Names(t.Context(), o, dir+name); fault.KindOf(err) != kind {
				t.Errorf("below %s: %s: %q, %v, want %v", root, name, names, err, kind)
			}
		}
	}
	none := &openers.Mux{Schemes: map[string]source.Opener{"s3": &objects{}}}
	if names, err := openers.Names(t.Context(), none, "s3://b"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("of a store without listing: %q, %v", names, err)
	}
}

// TestBelowExchanged promises that a writer who exchanges links while paths are opened reaches nothing
// outside: not by a link in the middle of a path, at its end, nor in place of an inner root.
func TestBelowExchanged(t *testing.T) {
	tries := 3_000
	if given := os.Getenv("CHASKI_SOAK_INTRUDERS"); given != "" { // of `make soak-hostile`
		var err error
		if tries, err = strconv.Atoi(given); err != nil {
			t.Fatal(err)
		}
	}
	dir := rootsTree(t)
	o := openers.Below(&openers.Files{Keep: 1}, []string{dir + "/a", dir + "/a/sub"})
	roots := openers.RootsOf(o)
	testfile.Write(t, dir+"/out/in", []byte("secret"))
	if err := os.Mkdir(dir+"/a/flip", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"good": "../sub", "bad": "../../out", "f.good": "../in",
		"f.bad": "../../out/in"} {
		if err := os.Symlink(to, dir+"/a/flip/"+name); err != nil {
			t.Fatal(err)
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	var flips atomic.Int64
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := [...]string{"good", "bad"}[i%2]
			for _, l := range [...][2]string{{from, "dir"}, {"f." + from, "file"}} {
				_ = os.Remove(dir + "/a/flip/new")
				to, _ := os.Readlink(dir + "/a/flip/" + l[0])
				_ = os.Symlink(to, dir+"/a/flip/new")
				_ = os.Rename(dir+"/a/flip/new", dir+"/a/flip/"+l[1])
			}
			if i%2 == 0 { // an inner root
				_ = os.Rename(dir+"/a/sub", dir+"/a/sub.kept")
				_ = os.Symlink("../out", dir+"/a/sub")
			} else {
				_ = os.Remove(dir + "/a/sub")
				_ = os.Rename(dir+"/a/sub.kept", dir+"/a/sub")
			}
			flips.Add(1)
		}
	}()
	read := 0
	for i := 0; i < tries || flips.Load() < int64(tries/10); i++ {
		p := dir + [...]string{"/a/flip/dir/in", "/a/flip/file", "/a/sub/in"}[i%3]
		got, err := contents(o, p)
		if err == nil && got == "secret" {
			t.Fatalf("%s: read outside of the root at try %d", p, i)
		}
		if err == nil {
			read++
		}
		if st, err := roots.Stat(p); err == nil && st.Size() == int64(len("secret")) {
			t.Fatalf("%s: stat outside of the root", p)
		}
		if i%16 == 0 {
			list, _ := roots.ReadDir(dir + "/a/flip/dir")
			for _, e := range list {
				if e.Name() == "secret" {
					t.Fatal("a directory outside of the root was listed")
				}
			}
		}
	}
	close(stop)
	<-done
	if read == 0 {
		t.Error("nothing was read")
	}
	t.Logf("%d tries, %d of them read, %d exchanges", tries, read, flips.Load())
}

func BenchmarkOpen(b *testing.B) {
	dir := rootsTree(b)
	p := dir + "/a/sub/in"
	for _, c := range []struct {
		name string
		keep int
		o    func(*openers.Files) source.Opener
	}{
		{"kept/free", 8, func(f *openers.Files) source.Opener { return f }},
		{"kept/below", 8, func(f *openers.Files) source.Opener { return openers.Below(f, []string{dir + "/a"}) }},
		{"new/free", -1, func(f *openers.Files) source.Opener { return f }},
		{"new/below", -1, func(f *openers.Files) source.Opener {
			return openers.BelowNotKept(f, []string{dir + "/a"})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := c.o(&openers.Files{Keep: c.keep})
			for b.Loop() {
				r, err := o.Open(context.Background(), p)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestChainsOfLinks: as many links after each other are followed as filepath.EvalSymlinks follows.
func TestChainsOfLinks(t *testing.T) {
	dir := rootsTree(t)
	o := openers.Below(&openers.Files{}, []string{dir})
	last := "in"
	for n := 1; n <= 257; n++ {
		next := "link" + strconv.Itoa(n)
		if err := os.Symlink(last, filepath.Join(dir, "a", next)); err != nil {
			t.Fatal(err)
		}
		last = next
		path := filepath.Join(dir, "a", next)
		_, err := filepath.EvalSymlinks(path)
		if _, got := contents(o, path); (got == nil) != (err == nil) {
			t.Errorf("%d links: %v, and EvalSymlinks says %v", n, got, err)
		}
	}
}

// TestEscapesBelowRoots: escapes in names of a web server lead nowhere else; a name without any is what it is.
func TestEscapesBelowRoots(t *testing.T) {
	const root = "https://h/d"
	all := map[string]bool{"/a.tif": true, "/a%20b.tif": true, "/a.tif?x=%2e%2e/": true,
		"/%2e%2e/a.tif": false, "/a%2fb.tif": false, "/%2ea.tif": true, "/./a.tif": true,
		"/%2e": false, "/a%5cb": false, "/a%zz": false}
	web := &objects{bytes: map[string][]byte{}}
	for name := range all {
		web.bytes[root+name] = []byte(name)
	}
	o := openers.Below(&openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"https": web}},
		[]string{root})
	for name, want := range all {
		if got, err := contents(o, root+name); want != (err == nil && got == name) || !want && !openers.Outside(err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
