package durable

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzJournal promises that any file is opened as some whole records, that what follows them is cut off, and that the
// next run reads the same records and the one that was appended.
func FuzzJournal(f *testing.F) {
	name := filepath.Join(f.TempDir(), "seed")
	j, err := OpenJournal(name, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, record := range []string{"one", "", "three"} {
		if err := j.Append([]byte(record)); err != nil {
			f.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(append(bytes.Clone(whole), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		open := func() (records [][]byte, size int, j *Journal) {
			j, err := OpenJournal(name, func(r []byte) error {
				records = append(records, r)
				size += recordHead + len(r)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return records, size, j
		}
		first, size, j := open()
		if kept, err := os.ReadFile(name); err != nil || size > len(b) || !bytes.Equal(kept, b[:size]) {
			t.Fatalf("%d bytes are kept of %d, %v; the records take %d", len(kept), len(b), err, size)
		}
		if err := j.Append([]byte("more")); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, _, j := open()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if len(again) != len(first)+1 || string(again[len(first)]) != "more" {
			t.Fatalf("%d records, and then %d", len(first), len(again))
		}
		for i := range first {
			if !bytes.Equal(first[i], again[i]) {
				t.Fatalf("record %d is another one", i)
			}
		}
	})
}
