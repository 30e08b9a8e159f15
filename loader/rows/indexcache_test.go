package rows

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/chunk"
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
	if len(wrong.stored) > 0 {
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
	if total > s.bound+6000 || len(first.stored) > 0 || len(last.stored) == 0 {
		t.Errorf("%d bytes, the first has %d indexes, the last %d", total, len(first.stored), len(last.stored))
	}
}

// TestIndexFilesAreBounded: a file stays below its bound, also if several processes fill it.
func TestIndexFilesAreBounded(t *testing.T) {
	s := newIndexStore(t.TempDir())
	s.fileBound = 20_000
	files := []*indexFile{s.open("key"), s.open("key"), s.open("key")}
	for i, x := range files {
		for k := range int64(5) {
			if err := x.put(int64(i)*100+k, 1, make([]byte, 2000)); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
	}
	last := s.open("key")
	defer last.close()
	if info, err := os.Stat(last.path); err != nil || info.Size() > s.fileBound || len(last.stored) != 5 {
		t.Errorf("%d indexes in %v: %v", len(last.stored), info, err)
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
		x := &indexFile{key: "k", stored: map[chunk.Range]indexBlob{}}
		x.scan(bytes.NewReader(b), int64(len(b)))
		for _, place := range x.stored {
			if place.off < indexHead || place.off+int64(place.size) > int64(len(b)) {
				t.Fatalf("a blob of %d bytes at %d in %d", place.size, place.off, len(b))
			}
		}
	})
}

// TestDamagedIndexFilesAreRemoved: a file with a damaged record has no indexes, and the next process begins a new one.
func TestDamagedIndexFilesAreRemoved(t *testing.T) {
	s := newIndexStore(t.TempDir())
	fill := func() string {
		x := s.open("key")
		if got := x.get(0, 9); got != nil {
			t.Fatalf("%q is there", got)
		}
		for i := range int64(3) {
			if err := x.put(i*10, 9, []byte("an index")); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.close(); err != nil {
			t.Fatal(err)
		}
		return x.path
	}
	path := fill()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{b[:len(b)-1], append([]byte{b[0] ^ 1}, b[1:]...), append(b, 0)} {
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		fill()
		again := s.open("key")
		if got := again.get(20, 9); string(got) != "an index" {
			t.Errorf("%q", got)
		}
		if err := again.close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
