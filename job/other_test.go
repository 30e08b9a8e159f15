//go:build unix

package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestOtherThanFiles: a pipe, a folder and a link that leads nowhere are no result, even under the name of one, and
// nothing waits for them.
func TestOtherThanFiles(t *testing.T) {
	j, folder := planEcho(t, &echo{Words: words(6)}, PlanOptions{Shards: 3})
	for shard, make := range []func(name string) error{
		func(name string) error { return syscall.Mkfifo(name, 0o600) },
		func(name string) error { return os.Mkdir(name, 0o700) },
		func(name string) error { return os.Symlink("nowhere", name) },
	} {
		name := filepath.Join(folder, resultsName, resultName(shard, strings.Repeat("0", hashDigits)))
		if err := make(name); err != nil {
			t.Fatal(err)
		}
		run(t, j, shard, false)
		if err := os.Remove(filepath.Join(folder, recordName(shard))); err != nil {
			t.Fatal(err)
		}
		if err := make(filepath.Join(folder, recordName(shard))); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := merge(t.Context(), j); err != nil || got != strings.Join(words(6), "\n")+"\n" {
		t.Errorf("%q, %v", got, err)
	}
	if s, err := j.Status(t.Context(), false); err != nil || s.Done != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	name := filepath.Join(folder, manifestName)
	if err := errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), folder, kinds); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%v, want corrupt", err)
	}
}
