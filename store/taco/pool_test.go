package taco

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestPoolReadsOneVersion: a pool reads more files than it keeps open. Reading a file that was rewritten since fails,
// whether it stayed open or not, and no descriptor is left at the end.
func TestPoolReadsOneVersion(t *testing.T) {
	dir, files := t.TempDir(), &openers.Files{Keep: 1}
	defer files.Close()
	fds := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("needs /proc")
		}
		return len(d)
	}
	before := fds()
	p := newPooledOpener(files)
	readers := make([]source.Reader, 2*maxOpenFiles)
	for i := range readers {
		path := filepath.Join(dir, fmt.Sprint(i))
		testfile.Write(t, path, fmt.Appendf(nil, "%04d", i))
		var err error
		if readers[i], err = p.Open(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, 4)
	for range 2 {
		for i, r := range readers {
			if err := r.ReadAt(t.Context(), b, 0); err != nil || string(b) != fmt.Sprintf("%04d", i) || r.Size() != 4 {
				t.Fatalf("file %d: %q, %v", i, b, err)
			}
		}
		if n := fds() - before; n > maxOpenFiles+2 {
			t.Errorf("%d files are open", n)
		}
	}
	path := filepath.Join(dir, "0")
	testfile.Write(t, path, []byte("anew"))
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if err := readers[0].ReadAt(t.Context(), b, 0); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("one that was rewritten: %q, %v", b, err)
	}
	if _, err := p.Open(t.Context(), path); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("one that was rewritten, opened again: %v", err)
	}
	if !p.watch.Changed(t.Context()) {
		t.Error("it is not noticed")
	}
	for _, r := range readers[:maxOpenFiles] {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if n := fds() - before; n > 1 {
		t.Errorf("%d files are open at the end", n)
	}
}

// TestRowsOfManyContainers: rows of several containers are numbered in 31 bits, or are too many.
func TestRowsOfManyContainers(t *testing.T) {
	for last, kind := range map[int]fault.Kind{1<<30 - 1: 0, 1 << 30: fault.Limit} {
		j := &joined{container: &model.Container{URI: "a"}, parts: []*model.Container{{URI: "a"}, {URI: "b"}}}
		_, _, err := j.tables(t.Context(), "level1", false,
			func(_ context.Context, p *model.Container) (*tables.Table, error) {
				return tables.New(map[string]int{"a": 1 << 30, "b": last}[p.URI], nil, nil), nil
			})
		const says = "a: level1: 2147483648 rows in 2 containers"
		if fault.KindOf(err) != kind || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", last, err)
		}
	}
}
