package paged_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/source"
)

// far is a store: a file whose reads are counted, and how many are under way at a time.
type far struct {
	source.Reader
	reads, now, most atomic.Int64
}

func (s *far) ReadAt(ctx context.Context, p []byte, off int64) error {
	s.reads.Add(1)
	now := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(2 * time.Millisecond)
	return s.Reader.ReadAt(ctx, p, off)
}

// TestFarScans: a scan of a remote file has the values of a local one, asks for several row groups at a time, each
// column once, and for no more than one when it ends at the first row.
func TestFarScans(t *testing.T) {
	type row struct{ Name, Other string }
	const groups, rows = 40, 100
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.DataPageStatistics(true))
	for g := range groups {
		for i := range rows {
			if _, err := w.Write([]row{{fmt.Sprint("name ", g*rows+i), fmt.Sprint(i)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	scan := func(f *paged.File, last int64) (names []string) {
		stop := errors.New("stop")
		err := f.Each(t.Context(), 0, paged.Scan{}, func(first int64, decode paged.Decode) error {
			values, err := decode(t.Context())
			if err != nil {
				return err
			}
			for i := range values.Len() {
				if first+int64(i) > last {
					return stop
				}
				names = append(names, string(values.Raw(i)))
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			t.Fatal(err)
		}
		return names
	}
	in := &far{Reader: source.Memory(file.Bytes())}
	f := open(t, in, 1<<20)
	f.Far = true
	before := in.reads.Load()
	got := scan(f, groups*rows)
	reads, most := in.reads.Load()-before, in.most.Load()
	for i, name := range got {
		if want := fmt.Sprint("name ", i); name != want {
			t.Fatalf("row %d is %q, want %q", i, name, want)
		}
	}
	// A column, and where its pages lie, are two reads of a row group.
	if len(got) != groups*rows || reads > 2*groups || most < 4 || most > 2*16 {
		t.Errorf("%d of %d rows by %d reads, at most %d at a time", len(got), groups*rows, reads, most)
	}
	before = in.reads.Load()
	if one := scan(f, 0); len(one) != 1 || in.reads.Load()-before > 2 {
		t.Errorf("%q by %d reads", one, in.reads.Load()-before)
	}
}
