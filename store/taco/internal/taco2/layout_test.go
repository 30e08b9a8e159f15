package taco2

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/zipdir"
)

// inMemory is a file in memory.
type inMemory []byte

func (m inMemory) Size() int64  { return int64(len(m)) }
func (m inMemory) Close() error { return nil }

func (m inMemory) ReadAt(_ context.Context, p []byte, off int64) error {
	_, err := bytes.NewReader(m).ReadAt(p, off)
	return err
}

// longFile is a file in memory with zeros behind it.
type longFile struct {
	inMemory
	size int64
}

func (l longFile) Size() int64 { return l.size }

// TestLayoutOfALongDirectory: a directory that is too long to read whole is refused before it takes memory. Cut, it
// would be written again without its last records.
func TestLayoutOfALongDirectory(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "coast", "flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadLayout(t.Context(), longFile{b, int64(len(b)) + zipdir.MaxBytes})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("%v", err)
	}
}

// FuzzLayout: a layout lies in its file, and its records written again are read as they were.
func FuzzLayout(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "coast", "flat.tacozip"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-10])
	f.Add(append(bytes.Clone(b), b[len(b)-40:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ReadLayout(t.Context(), inMemory(b))
		if err != nil {
			return
		}
		if l.End > int64(len(b)) {
			t.Fatalf("the archive ends at %d of %d", l.End, len(b))
		}
		for _, p := range l.Places {
			if !p.In(0, l.End) {
				t.Fatalf("place %v behind the end %d", p, l.End)
			}
		}
		again := ParseRecords(AppendDirectory(nil, l.Records, l.End), len(l.Records))
		if len(again) != len(l.Records) {
			t.Fatalf("%d records of %d", len(again), len(l.Records))
		}
		for i, r := range l.Records {
			if again[i].Name != r.Name || !bytes.Equal(again[i].Raw, r.Raw) {
				t.Fatalf("record %d is another one", i)
			}
		}
		l.SetPlaces(l.Places)
		if levels, c, err := parseHeader(l.Head, int64(len(b))); err != nil || len(levels)+1 != len(l.Places) ||
			c.Off != l.Places[len(levels)].Off {
			t.Fatalf("the header: %v", err)
		}
	})
}
