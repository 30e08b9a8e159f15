package rows

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestIndexFilesKeepWhatTheyGet: stored blobs are found again in this process and in the next one,
// also with several concurrent writers, and a container does not get another's.
func TestIndexFilesKeepWhatTheyGet(t *testing.T) {
	s := newIndexStore(filepath.Join(t.TempDir(), "a", "b"))
	blob := func(i int64) []byte { return []byte(fmt.Sprintf("blob %d of %d bytes", i, i*i)) }
	one, two := s.open("key"), s.open("key")
	var wg sync.WaitGroup
	for i := range int64(500) {
		wg.Go(func() {
			x := one
			if i%2 == 0 {
				x = two
			}
			if err := x.put(i*1000, 999, blob(i)); err != nil {
				t.Error(err)
			}
			if got := x.get(i*1000, 999); !bytes.Equal(got, blob(i)) {
				t.Errorf("%d: %q", i, got)
			}
		})
	}
	wg.Wait()
	for _, x := range []*indexFile{one, two} {
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
	}
	again := s.open("key")
	defer again.close()
	for i := range int64(500) {
		if got := again.get(i*1000, 999); !bytes.Equal(got, blob(i)) {
			t.Fatalf("%d: %q", i, got)
		}
	}
	if got := again.get(1000, 998); got != nil {
		t.Errorf("a raster of another length has %q", got)
	}
	other := s.open("another key")
	defer other.close()
	if got := other.get(1000, 999); got != nil {
		t.Errorf("another container has %q", got)
	}
	// A file with another key under this name is ignored.
	if err := os.Rename(again.path, other.path); err != nil {
		t.Fatal(err)
	}
	wrong := s.open("another key")
	defer wrong.close()
	if wrong.stored != nil {
		t.Error("a file of another key is taken")
	}
}

// TestIndexStoreIsBounded: the files stay below the bound together, and the least recently used
// ones are removed.
func TestIndexStoreIsBounded(t *testing.T) {
	s := newIndexStore(t.TempDir())
	s.bound = 20_000
	for i := range 10 {
		x := s.open(fmt.Sprint("container ", i))
		if err := x.put(0, 10, make([]byte, 5000)); err != nil {
			t.Fatal(err)
		}
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-20) * time.Minute)
		if err := os.Chtimes(x.path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	list, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	first, last := s.open("container 0"), s.open("container 9")
	defer first.close()
	defer last.close()
	if total > s.bound+6000 || first.stored != nil || last.stored == nil {
		t.Errorf("%d bytes, the first is there: %t, the last: %t", total, first.stored != nil, last.stored != nil)
	}
}

// FuzzIndexFile: a file of indexes with any contents yields a blob or nothing.
func FuzzIndexFile(f *testing.F) {
	s := newIndexStore(f.TempDir())
	x := s.open("k")
	for i := range int64(4) {
		if err := x.put(i*100, 90, bytes.Repeat([]byte{byte(i)}, int(i)*7+1)); err != nil {
			f.Fatal(err)
		}
	}
	if err := x.close(); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(x.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseIndexFile(bytes.NewReader(b), int64(len(b)), "k")
		if s == nil {
			return
		}
		if s.n > int64(len(b)) {
			t.Fatalf("%d entries in %d bytes", s.n, len(b))
		}
		for i := range int64(4) {
			if blob := s.find(extent{i * 100, 90}); len(blob) > len(b) {
				t.Fatalf("a blob of %d bytes in %d", len(blob), len(b))
			}
		}
	})
}
