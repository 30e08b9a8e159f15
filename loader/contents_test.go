package loader_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// TestMarks promises that a container and a mixture have marks of times, which follow the times of their files, and
// that the marks of contents follow the pixels alone.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, from string, changed time.Time) string {
		data, err := os.ReadFile(coast(t, from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
		return path
	}
	marks := func(contents bool, s loader.Spec) string {
		s.BatchSize = 2
		e, err := loader.Open(t.Context(), s, loader.Options{VerifyContents: contents})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		found, err := e.Marks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	then := time.Unix(1700000000, 7)
	one := loader.Spec{Source: write("a.tacozip", "flat.tacozip", then)}
	other := write("b.tacozip", "flat.tacozip", then)
	mixed := loader.Spec{Mixture: spec.Mixture{Sources: []loader.Source{{Source: one.Source}, {Source: other}}}}
	for name, s := range map[string]loader.Spec{"container": one, "mixture": mixed} {
		write("a.tacozip", "flat.tacozip", then)
		times, contents := marks(false, s), marks(true, s)
		if !strings.HasPrefix(times, "mtime:") || !strings.HasPrefix(contents, "bytes:") {
			t.Errorf("%s: marks %q and %q", name, times, contents)
		}
		write("a.tacozip", "flat.tacozip", then.Add(time.Nanosecond))
		if marks(false, s) == times || marks(true, s) != contents {
			t.Errorf("%s: other marks are not those of another time", name)
		}
	}
}
