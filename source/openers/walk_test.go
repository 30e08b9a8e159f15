package openers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// errLoop ends slowWalk.
var errLoop = errors.New("loop")

// slowWalk lists the files below a directory from the status of each path alone. A directory that
// equals one on the way to it, or contains one of them, is a loop.
func slowWalk(t *rapid.T, dir string, way []string, out *[]string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range way {
		if rel, err := filepath.Rel(real, w); err != nil {
			t.Fatal(err)
		} else if rel != ".." && !strings.HasPrefix(rel, "../") {
			return errLoop
		}
	}
	way = append(slices.Clip(way), real)
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		p := filepath.Join(dir, n)
		if st, err := os.Stat(p); err != nil || !st.IsDir() { // of what leads nowhere the path
			*out = append(*out, p)
		} else if err := slowWalk(t, p, way, out); err != nil {
			return err
		}
	}
	return nil
}

// TestWalkDirFollowsLinks: in trees with links anywhere, WalkDir finds the files that a slow walk
// finds, and fails where that runs into a loop.
func TestWalkDirFollowsLinks(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(base, filepath.Join(base, "try")); err != nil {
		t.Skip(err)
	}
	tree, loops, linked := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tree++
		root := filepath.Join(base, fmt.Sprint(tree))
		dirs := []string{root}
		must(t, os.Mkdir(root, 0o700))
		for i := range rapid.IntRange(0, 6).Draw(t, "folders") {
			d := filepath.Join(rapid.SampledFrom(dirs).Draw(t, "in"), fmt.Sprintf("d%d", i))
			must(t, os.Mkdir(d, 0o700))
			dirs = append(dirs, d)
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "files") {
			must(t,
				os.WriteFile(filepath.Join(rapid.SampledFrom(dirs).Draw(t, "in"), fmt.Sprintf("f%d", i)), nil, 0o600))
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "links") {
			to := rapid.SampledFrom(append(dirs[1:len(dirs):len(dirs)], filepath.Join(root, "f0"),
				filepath.Join(root, "nothing"), root)).Draw(t, "to")
			in := rapid.SampledFrom(dirs).Draw(t, "in")
			if rapid.Bool().Draw(t, "relative") {
				rel, err := filepath.Rel(in, to)
				must(t, err)
				to = rel
			}
			must(t, os.Symlink(to, filepath.Join(in, fmt.Sprintf("l%d", i))))
		}
		var want, got []string
		wantErr := slowWalk(t, root, nil, &want)
		err := WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				got = append(got, p)
			}
			return err
		})
		if (err != nil) != (wantErr != nil) || err != nil && fault.KindOf(err) != fault.Unsupported {
			t.Fatalf("error %v, not %v", err, wantErr)
		}
		if err != nil {
			loops++
			return
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%q, not %q", got, want)
		}
		if slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, "/l") }) {
			linked++
		}
	})
	if loops == 0 || linked == 0 {
		t.Errorf("%d trees with loops, %d with links that were followed: the test tests nothing", loops, linked)
	}
}

// TestWalkDirSkips: SkipDir leaves out a linked directory, and with it a loop, but not what comes behind it. Without
// links, SkipDir and SkipAll of each file and directory leave out what they do of filepath.WalkDir.
func TestWalkDirSkips(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "loop")); err != nil {
		t.Skip(err)
	}
	plain := t.TempDir()
	for _, name := range []string{"a/x", "b/1", "b/2/y", "c"} {
		write(t, filepath.Join(plain, name), "")
		write(t, filepath.Join(dir, name), "")
	}
	walked := func(dir string, walk func(string, fs.WalkDirFunc) error, at string, end error) (seen []string) {
		t.Helper()
		err := walk(dir, func(p string, d fs.DirEntry, err error) error {
			seen = append(seen, p[len(dir):])
			if p == filepath.Join(dir, at) {
				return end
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return seen
	}
	write(t, filepath.Join(dir, "zz"), "")
	all := walked(plain, filepath.WalkDir, "none", nil)
	for _, at := range all {
		for _, end := range []error{fs.SkipDir, fs.SkipAll} {
			got, want := walked(plain, WalkDir, at, end), walked(plain, filepath.WalkDir, at, end)
			if !slices.Equal(got, want) {
				t.Errorf("%v at %q: %q; want %q", end, at, got, want)
			}
		}
	}
	if got, want := walked(dir, WalkDir, "loop", fs.SkipDir), append(all, "/loop", "/zz"); !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	last := "" // SkipDir only of the error about the loop
	err := WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if last = p[len(dir):]; err != nil {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil || last != "/zz" {
		t.Errorf("%v, the last is %q", err, last)
	}
}

// TestWalkDirOfALink: a link leads to a directory that contains it only if that is so on the disk, whatever the path by
// which it is reached; one that is removed when fn sees it is an error.
func TestWalkDirOfALink(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"x/s": "../b", "b/up": "../x", "x/f": "none", "x/g": "none",
		"b/z": "none"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][2]string{{"", ". up up/f up/g up/s up/s:unsupported z"}, {"f", ". up up/f"},
		{"g", ". up up/f up/g z"}, {"up", ". up up:unknown kind z"}} {
		end, want := c[0], c[1]
		var seen []string
		err := WalkDir(filepath.Join(dir, "x/s"), func(p string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(filepath.Join(dir, "x/s"), p)
			if err != nil {
				name += ":" + fault.KindOf(err).Error()
			}
			seen = append(seen, name)
			switch {
			case end == "f" && d.Name() == end:
				return fs.SkipAll
			case end == "g" && d.Name() == end:
				return fs.SkipDir
			case end == "up" && name == end:
				return os.Remove(p)
			}
			return nil
		})
		if got := strings.Join(seen, " "); err != nil || got != want {
			t.Errorf("end %q: %s, %v, want %s", end, got, err, want)
		}
	}
	skip := func(string, fs.DirEntry, error) error { return fs.SkipDir }
	if err := WalkDir(filepath.Join(dir, "none"), skip); err != nil {
		t.Error(err)
	}
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
