package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestReplace: a folder takes the name of another, or a name that nobody has, and leaves nothing beside it, whether or
// not the system can exchange two folders. If the second of two renames fails, the old folder has its name again.
func TestReplace(t *testing.T) {
	unable := func(_, _ string) error { return errors.ErrUnsupported }
	for name, swap := range map[string]func(a, b string) error{"exchange": Exchange, "renames": unable} {
		t.Run(name, func(t *testing.T) {
			defer InjectExchange(swap)()
			dir := t.TempDir()
			path := filepath.Join(dir, "x")
			put := func(content string) error {
				f, err := NewFolder(path)
				if err != nil {
					t.Fatal(err)
				}
				testfile.Write(t, filepath.Join(f.Path, "file"), []byte(content))
				return errors.Join(f.Replace(path), f.Remove())
			}
			holds := func(want string) {
				t.Helper()
				b, err := os.ReadFile(filepath.Join(path, "file"))
				if err != nil || string(b) != want {
					t.Errorf("%q, want %q: %v", b, want, err)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
					t.Errorf("left behind: %v %v", left, err)
				}
			}
			for _, content := range []string{"1", "2"} {
				if err := put(content); err != nil {
					t.Fatal(err)
				}
				holds(content)
			}
			broken := errors.New("broken")
			fails := 2
			defer Inject((*os.File).Sync, func(from, to string) error {
				if fails--; fails == 0 {
					return broken
				}
				return os.Rename(from, to)
			})()
			if err := put("3"); !errors.Is(err, broken) {
				if name == "exchange" && err == nil { // which needs no rename
					holds("3")
					return
				}
				t.Fatal(err)
			}
			holds("2")
		})
	}
}
