package quarantine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

func bad(file string, row int64) Record {
	r := New("cafe", fault.WithFile(fault.New(fault.Corrupt, "tile 3", 77, "too short"), file))
	r.ID, r.Row = file, &row
	return r
}

// TestManyWritersOneList: processes that share a list lose no count, and the list grows with the
// logarithm of the counts.
func TestManyWritersOneList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	const writers, things, times = 4, 5, 100
	var g sync.WaitGroup
	for range writers {
		g.Go(func() {
			w, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range times * things {
				if err := w.Add(bad(fmt.Sprintf("%d.tif", i%things), int64(i%things))); err != nil {
					t.Error(err)
				}
			}
			if err := w.Close(); err != nil || w.Lost() != 0 {
				t.Error(err, w.Lost())
			}
		})
	}
	g.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b, []byte("\n")); n > writers*things*9 {
		t.Errorf("%d lines", n)
	}
	got := map[string]int64{}
	for line := range bytes.Lines(b) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		got[r.URI] += r.Count
		if want := bad(r.URI, *r.Row); *r.Offset != 77 || r.Part != "tile 3" || r.Kind != "corrupt" ||
			r.Message != want.Message || r.ID != r.URI {
			t.Errorf("%+v", r)
		}
	}
	for i := range things {
		if n := got[fmt.Sprintf("%d.tif", i)]; len(got) != things || n != writers*times {
			t.Errorf("%v", got)
		}
	}
}

// TestWriterIsBounded: a writer bounds its memory and its file.
func TestWriterIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	w, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range MaxKnown + 10 {
		if err := w.Add(bad(fmt.Sprintf("%d.tif", i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.records) != MaxKnown || w.Lost() != 10 {
		t.Errorf("%d known, %d lost", len(w.records), w.Lost())
	}
	if err := os.Truncate(path, MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(bad("0.tif", 0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || w.Lost() != 11 {
		t.Errorf("%d lost, %v", w.Lost(), err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != MaxBytes+1 {
		t.Error(st.Size(), err)
	}
}
