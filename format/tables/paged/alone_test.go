package paged_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/source"
)

// slow is a file that takes 2 ms for a read, so that the reads of several workers overlap. It counts reads.
type slow struct {
	source.Reader
	reads, bytes atomic.Int64
}

func (s *slow) ReadAt(ctx context.Context, p []byte, off int64) error {
	s.reads.Add(1)
	s.bytes.Add(int64(len(p)))
	time.Sleep(2 * time.Millisecond)
	return s.Reader.ReadAt(ctx, p, off)
}

// TestWorkersReadAPageOnce: workers that need cells of the same pages at once read no more than one worker does, also
// if the first of them fails.
func TestWorkersReadAPageOnce(t *testing.T) {
	type row struct {
		Number int64
		Text   string `parquet:"text,dict"`
		Name   string
	}
	r := rand.New(rand.NewPCG(5, 6))
	var rows []row
	for i := range 20_000 {
		rows = append(rows, row{int64(i) * 1e9, fmt.Sprint(r.IntN(5000)), fmt.Sprint(i, r.Uint64())})
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.PageBufferSize(16<<10))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	picks := make([]int64, 64)
	for i := range picks {
		picks[i] = r.Int64N(4_000)
	}
	// read has workers read the cells of picks, and returns the reads after the opening and their bytes.
	read := func(workers int) (reads, bytes int64) {
		in := &slow{Reader: source.Memory(file.Bytes())}
		f := open(t, in, 64<<20)
		before, beforeBytes := in.reads.Load(), in.bytes.Load()
		for leaf, name := range []string{"Number", "text", "Name"} {
			var group sync.WaitGroup
			for k := range workers {
				group.Go(func() {
					if k == 0 && workers > 1 { // whoever comes first may be cancelled: others read then
						cancelled, cancel := context.WithCancel(t.Context())
						cancel()
						_, _, _ = f.Value(cancelled, leaf, picks[0])
					}
					for i := k; i < len(picks); i += workers {
						v, k, err := f.Value(t.Context(), leaf, picks[i])
						if err != nil {
							t.Error(err)
							return
						}
						row, got := rows[picks[i]], string(v.Raw(k))
						if name == "Number" {
							n, _ := v.Int(k)
							got = fmt.Sprint(n)
						}
						if want := []string{fmt.Sprint(row.Number), row.Text, row.Name}[leaf]; got != want {
							t.Errorf("%s of row %d: %q, want %q", name, picks[i], got, want)
						}
					}
				})
			}
			group.Wait()
		}
		return in.reads.Load() - before, in.bytes.Load() - beforeBytes
	}
	reads, bytes := read(1)
	for range 3 {
		// A worker that was cancelled may have read a page in vain.
		if n, b := read(32); n > reads+3 || b > bytes+3*64<<10 {
			t.Errorf("32 workers read %d times, %d bytes; one %d times, %d bytes", n, b, reads, bytes)
		}
	}
	t.Logf("one worker reads %d times, %d bytes", reads, bytes)
}
