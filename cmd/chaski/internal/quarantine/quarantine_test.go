package quarantine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	var l List
	if err := l.Read(bytes.NewReader(b)); err != nil || l.Skipped != 0 {
		t.Fatal(err, l.Skipped)
	}
	got := l.Records()
	if len(got) != things {
		t.Fatalf("%d records", len(got))
	}
	for i, r := range got {
		want := bad(fmt.Sprintf("%d.tif", i), int64(i))
		if r.Count != writers*times || r.URI != want.URI || *r.Row != int64(i) || *r.Offset != 77 ||
			r.Part != "tile 3" || r.Kind != "corrupt" || r.Message != want.Message {
			t.Errorf("%+v", r)
		}
	}
	var again bytes.Buffer
	if err := Write(&again, got); err != nil {
		t.Fatal(err)
	}
	var m List
	if err := m.Read(&again); err != nil || fmt.Sprint(m.Records()[0].Count) != fmt.Sprint(writers*times) {
		t.Error(err, m.Records())
	}
}

// TestListOfAKilledWriter: an incomplete line, or a line that another writer appended to it, does
// not affect other lines.
func TestListOfAKilledWriter(t *testing.T) {
	var whole bytes.Buffer
	early := bad("a.tif", 1)
	early.FirstSeen = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := Write(&whole, []Record{bad("a.tif", 1), bad("b.tif", 2), early}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(whole.String(), "\n")
	tooLong := `{"message":` + strings.Repeat("x", 2*maxLine) + "\n"
	text := lines[0] + lines[1][:40] + lines[1] + lines[2] + tooLong + lines[1] + lines[0][:9]
	var l List
	if err := l.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	got := l.Records()
	if len(got) != 2 || got[0].Count != 2 || got[1].Count != 1 || l.Skipped != 3 ||
		!got[0].FirstSeen.Equal(early.FirstSeen) {
		t.Errorf("%+v, %d skipped", got, l.Skipped)
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
	if len(w.known) != MaxKnown || w.Lost() != 10 {
		t.Errorf("%d known, %d lost", len(w.known), w.Lost())
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

// FuzzList: a list made of any bytes is the same after writing and reading it again.
func FuzzList(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, []Record{bad("a.tif", 1), New("x", fault.New(fault.Limit, "", -1, "m"))}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{\"dataset\":\"\",\"message\":\"m\",\"count\":9223372036854775807}\n{\"message\":\"m\",\"count\":1}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l, m List
		if err := l.Read(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		one := l.Records()
		var w bytes.Buffer
		if err := Write(&w, one); err != nil {
			t.Skip() // a time outside of what JSON has
		}
		if err := m.Read(&w); err != nil || m.Skipped != 0 || len(m.Records()) != len(one) {
			t.Errorf("%v: %d records, were %d", err, len(m.Records()), len(one))
		}
		for _, r := range one {
			if r.Count < 1 {
				t.Error(r)
			}
		}
	})
}
