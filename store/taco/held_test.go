package taco

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// TestHolderReadsOneVersion: of more files than stay open each is read as long as it is the one that was opened; one that
// was rewritten is an error, whether it stayed open or not, and nothing is open at the end.
func TestHolderReadsOneVersion(t *testing.T) {
	dir, files := t.TempDir(), &source.Files{Keep: 1}
	defer files.Close()
	fds := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("needs /proc")
		}
		return len(d)
	}
	before := fds()
	p := newHolder(files)
	readers := make([]source.Reader, 2*maxHeld)
	for i := range readers {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, fmt.Appendf(nil, "%04d", i), 0o600); err != nil {
			t.Fatal(err)
		}
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
		if n := fds() - before; n > maxHeld+2 {
			t.Errorf("%d files are open", n)
		}
	}
	path := filepath.Join(dir, "0")
	if err := os.WriteFile(path, []byte("anew"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	for _, r := range readers[:maxHeld] {
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
