package tiledb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// reads is a store that notes the ranges of files of tiles that are read.
type reads struct {
	Store
	list []string
	n    int64
}

func (s *reads) note(file string, off, n int64) {
	s.list = append(s.list, fmt.Sprintf("%s %d+%d", file, off, n))
	s.n += n
}

func (s *reads) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := s.Store.Open(ctx, uri)
	if err != nil || strings.HasSuffix(uri, metadataName) || strings.HasSuffix(uri, schemaName) {
		return r, err
	}
	return notedReader{r, s, uri}, nil
}

type notedReader struct {
	source.Reader
	to  *reads
	uri string
}

func (r notedReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.to.note(r.uri, off, int64(len(p)))
	return r.Reader.ReadAt(ctx, p, off)
}

func (r notedReader) Gap() int64 { return source.Gap(r.Reader) }

// TestForesightIsWhatIsRead: the reads that are foreseen of boxes, one after the other by one
// reader, are those that are made; where that is not certain, more is foreseen.
func TestForesightIsWhatIsRead(t *testing.T) {
	race.SkipCovered(t)
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(21, 22))
	exactly, about := 0, 0
	for _, l := range lines(t, corpusDir(t)) {
		files := &Files{}
		defer files.Close()
		st := &reads{Store: files}
		a, err := Open(ctx, st, l.uri(), l.options())
		if err != nil {
			t.Fatal(err)
		}
		if !a.Schema.Dense {
			continue
		}
		r, p := a.NewReader(), a.NewDryRun()
		for range 40 {
			box := randomBox(rnd, a)
			attr := rnd.IntN(len(a.Schema.Attrs))
			if a.Schema.Attrs[attr].Var() {
				continue
			}
			st.list, st.n = nil, 0
			seen := &reads{}
			if _, err := r.Dense(ctx, attr, box); err != nil {
				t.Fatal(err)
			}
			exact, err := p.Dense(ctx, attr, box, nil, seen.note)
			switch {
			case err != nil:
				t.Fatal(err)
			case exact && !slices.Equal(seen.list, st.list):
				t.Fatalf("%s %v: foreseen %q, read %q", l.Path, box, seen.list, st.list)
			case !exact && seen.n < st.n:
				t.Fatalf("%s %v: at most %d bytes foreseen, %d read", l.Path, box, seen.n, st.n)
			case exact && len(st.list) > 0:
				exactly++
			case len(st.list) > 0:
				about++
				p, r = a.NewDryRun(), a.NewReader() // what was read last is not known
			}
		}
	}
	if exactly < 100 || about < 20 {
		t.Errorf("%d exact, %d not", exactly, about)
	}
}

// Ahead corresponds to Reader.Ahead.
func (p *DryRun) Ahead(ctx context.Context, attr int, boxes []Box) error {
	return p.r.Ahead(ctx, attr, boxes)
}

// Dense is a dry run of Reader.DenseInto.
func (p *DryRun) Dense(ctx context.Context, attr int, b Box, axes []int,
	read func(file string, off, n int64)) (exact bool, err error) {
	return p.run(read, func() error { return p.r.DenseInto(ctx, nil, attr, b, axes) })
}
