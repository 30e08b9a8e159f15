package tiledb

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// pieces cuts a box where tiles end, into boxes in the order of the tiles.
func pieces(s *Schema, box Box) (list []Box) {
	list = []Box{slices.Clone(box)}
	for k := range box {
		d := k
		if s.TileOrder == ColMajor {
			d = len(box) - 1 - k
		}
		var cut []Box
		for _, b := range list {
			for lo := b[d].Lo; ; {
				one, dim := slices.Clone(b), s.Dims[d]
				end := dim.Domain.Lo + Coord((uint64(lo-dim.Domain.Lo)/dim.Extent+1)*dim.Extent-1)
				one[d] = Interval{lo, min(end, b[d].Hi)}
				cut = append(cut, one)
				if end >= b[d].Hi {
					break
				}
				lo = end + 1
			}
		}
		list = cut
	}
	return list
}

// TestAheadReadsTheSame: boxes that were said before have the cells that they have without, cell by
// cell; what is read is what was foreseen.
func TestAheadReadsTheSame(t *testing.T) {
	race.SkipCovered(t)
	ctx, rnd := context.Background(), rand.New(rand.NewPCG(31, 32))
	several := 0
	for _, l := range lines(t, corpusDir(t)) {
		if l.Schema.Type != "dense" {
			continue
		}
		files := &Files{}
		defer files.Close()
		st := &reads{Store: files}
		a, err := Open(ctx, st, l.uri(), l.options())
		if err != nil {
			t.Fatal(err)
		}
		s := &slow{t, l.open(t), map[string][]byte{}}
		r, p := a.NewReader(), a.NewDryRun()
		for range 8 {
			attr := rnd.IntN(len(a.Schema.Attrs))
			boxes := pieces(a.Schema, randomBox(rnd, a))
			if a.Schema.Attrs[attr].Var() || len(boxes) > 500 {
				continue
			}
			seen := &reads{}
			st.list, st.n = nil, 0
			if err := r.Ahead(ctx, attr, boxes); err != nil {
				t.Fatal(err)
			}
			if err := p.Ahead(ctx, attr, boxes); err != nil {
				t.Fatal(err)
			}
			exact := true
			for _, b := range boxes {
				got, err := r.Dense(ctx, attr, b)
				if err != nil {
					t.Fatal(err)
				}
				compareCells(t, s, attr, b, got.Data)
				sure, err := p.Dense(ctx, attr, b, nil, seen.note)
				if err != nil {
					t.Fatal(err)
				}
				exact = exact && sure
			}
			switch {
			case exact && !slices.Equal(seen.list, st.list):
				t.Fatalf("%s: foreseen %q, read %q", l.Path, seen.list, st.list)
			case seen.n < st.n:
				t.Fatalf("%s: at most %d bytes foreseen, %d read", l.Path, seen.n, st.n)
			case len(boxes) > 1 && len(st.list) > 0:
				several++
			}
			if !exact {
				r, p = a.NewReader(), a.NewDryRun()
			}
		}
	}
	if several < 30 {
		t.Errorf("%d times several boxes", several)
	}
}

func localFiles(t *testing.T) *Files {
	files := &Files{}
	t.Cleanup(func() { files.Close() })
	return files
}

// far is a store of local folders under remote names, whose readers have a gap.
type far struct {
	*Files
	gap int64
}

type farReader struct {
	source.Reader
	gap int64
}

func (r farReader) Gap() int64 { return r.gap }

func (s *far) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := s.Files.Open(ctx, strings.TrimPrefix(uri, "far://"))
	return farReader{r, s.gap}, err
}

func (s *far) Names(ctx context.Context, uri string) ([]string, error) {
	return s.Files.Names(ctx, strings.TrimPrefix(uri, "far://"))
}

// farReads reads the boxes of an array tile by tile from afar, and returns the ranges of files that were read.
func farReads(t *testing.T, path string, o Options, gap int64, boxes []Box) []string {
	t.Helper()
	ctx := context.Background()
	st := &reads{Store: &far{Files: localFiles(t), gap: gap}}
	a, err := Open(ctx, st, "far://"+path, o)
	if err != nil {
		t.Fatal(err)
	}
	r, plain := a.NewReader(), openLocal(t, path, o).NewReader()
	if err := r.Ahead(ctx, 0, boxes); err != nil {
		t.Fatal(err)
	}
	for _, b := range boxes {
		got, err := r.Dense(ctx, 0, b)
		if err != nil {
			t.Fatal(err)
		}
		want, err := plain.Dense(ctx, 0, b)
		if err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%v has other cells from afar: %v", b, err)
		}
	}
	return st.list
}

// TestNeighboursAreReadAtOnce: tiles of a file that lie no further apart than its gap are one read,
// of maxBatch bytes at most; the numbers are counted by hand.
func TestNeighboursAreReadAtOnce(t *testing.T) {
	race.SkipCovered(t)
	at := Int32.CoordOf
	path := corpus.Known(t, "plane") // 16 tiles of 64 KiB
	all := Box{{at(0), at(1023)}, {at(0), at(1023)}}
	left := Box{{at(0), at(1023)}, {at(100), at(400)}} // 2 of 4 tiles in each of 4 rows
	for _, c := range []struct {
		box  Box
		gap  int64
		want int
	}{{all, 0, 1}, {left, 0, 4}, {left, 128 << 10, 4}, {left, 140 << 10, 1}} {
		s := &Schema{Dims: []Dim{{Domain: all[0], Extent: 256}, {Domain: all[1], Extent: 256}}}
		if got := farReads(t, path, Options{Until: 10}, c.gap, pieces(s, c.box)); len(got) != c.want {
			t.Errorf("%v with gap %d: %d reads, want %d: %q", c.box, c.gap, len(got), c.want, got)
		}
	}
	// A later fragment hides the last two tiles of the last two rows: of the first one tiles 0 to
	// 9, and 12 and 13, are left.
	s := &Schema{Dims: []Dim{{Domain: all[0], Extent: 256}, {Domain: all[1], Extent: 256}}}
	if got := farReads(t, path, Options{Until: 20}, 0, pieces(s, all)); len(got) != 3 {
		t.Errorf("two fragments: %d reads, want 3: %q", len(got), got)
	}
	// And a third that covers tile 5 in part: it and the first are read in turns, and nothing twice.
	if got := farReads(t, path, Options{}, 0, pieces(s, all)); len(got) != 4 {
		t.Errorf("three fragments: %d reads, want 4: %q", len(got), got)
	}

	path = corpus.Known(t, "plane-2048") // 16 tiles of a little over 256 KiB
	s = &Schema{Dims: []Dim{{Domain: Interval{at(0), at(2047)}, Extent: 512},
		{Domain: Interval{at(0), at(2047)}, Extent: 512}}}
	got := farReads(t, path, Options{}, 0, pieces(s, Box{s.Dims[0].Domain, s.Dims[1].Domain}))
	if len(got) != 2 {
		t.Errorf("over 4 MiB: %q", got)
	}
	for _, line := range got {
		var off, n int
		if _, err := fmt.Sscanf(line[strings.LastIndexByte(line, ' ')+1:], "%d+%d", &off, &n); err != nil ||
			n > maxBatch {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestCoordinatesAreReadOnce: what several boxes need of a sparse fragment of a dense array is read once, and less than
// maxKept of it is held.
func TestCoordinatesAreReadOnce(t *testing.T) {
	path := corpus.Known(t, "plane-points") // 950 points, in 10 tiles
	s := openLocal(t, path, Options{}).Schema
	got := farReads(t, path, Options{}, 0, pieces(s, s.Domain()))
	ends := map[string]int{}
	count := map[string]int{}
	for _, line := range got {
		file, rest, _ := strings.Cut(filepath.Base(filepath.Dir(line))+"/"+filepath.Base(line), " ")
		var off, n int
		if _, err := fmt.Sscanf(rest, "%d+%d", &off, &n); err != nil {
			t.Fatal(err)
		}
		if off < ends[file] {
			t.Errorf("%s is read again", line)
		}
		ends[file], count[filepath.Base(file)] = off+n, count[filepath.Base(file)]+1
	}
	if count["__coords.tdb"] != 1 {
		t.Errorf("coordinates are read %d times", count["__coords.tdb"])
	}
	if count["a.tdb"] > 1+10 {
		t.Errorf("%d reads of values: 1 of the dense fragment, and of the sparse one 10 at most", count["a.tdb"])
	}
}

// TestLargeTilesAreAlone: tiles of more than the part of a file leave no memory to those of others,
// and what is foreseen is what is read all the same.
func TestLargeTilesAreAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("counts memory of tiles of 4 MiB; the goroutines are those of TestAheadReadsTheSame")
	}
	at := Int32.CoordOf
	path := corpus.Known(t, "plane-4096") // tiles of a little over 4 MiB, over which others lie in part
	ctx := context.Background()
	st := &reads{Store: &far{Files: localFiles(t), gap: 1 << 20}}
	a, err := Open(ctx, st, "far://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, p, seen := a.NewReader(), a.NewDryRun(), &reads{}
	boxes := pieces(a.Schema, Box{{at(0), at(4095)}, {at(0), at(4095)}})
	for _, say := range []func(context.Context, int, []Box) error{r.Ahead, p.Ahead} {
		if err := say(ctx, 0, boxes); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range boxes {
		if _, err := r.Dense(ctx, 0, b); err != nil {
			t.Fatal(err)
		}
		if exact, err := p.Dense(ctx, 0, b, nil, seen.note); err != nil || !exact {
			t.Fatal(exact, err)
		}
		if held := r.ahead.ranges.Held(); held > maxBatch+maxBatch/2 { // a tile
			t.Errorf("%d bytes are held", held)
		}
	}
	if !slices.Equal(seen.list, st.list) || len(st.list) < 10 {
		t.Errorf("foreseen %q, read %q", seen.list, st.list)
	}
}

// TestAheadOfOtherBoxes: boxes that were not said, or not in that order, are read right; those that
// are not there are refused.
func TestAheadOfOtherBoxes(t *testing.T) {
	race.SkipCovered(t)
	ctx, rnd := context.Background(), rand.New(rand.NewPCG(41, 42))
	for _, l := range lines(t, corpusDir(t)) {
		a := l.open(t)
		r := a.NewReader()
		if !a.Schema.Dense {
			if err := r.Ahead(ctx, 0, []Box{a.Schema.Domain()}); fault.KindOf(err) != fault.Unsupported {
				t.Errorf("%s: ahead of a sparse array: %v", l.Path, err)
			}
			continue
		}
		plain := a.NewReader()
		for range 5 {
			boxes := pieces(a.Schema, randomBox(rnd, a))
			if err := r.Ahead(ctx, rnd.IntN(len(a.Schema.Attrs)), boxes); err != nil {
				t.Fatal(err)
			}
			boxes = append(boxes[:min(len(boxes), 50)], randomBox(rnd, a))
			for _, k := range rnd.Perm(len(boxes)) {
				attr := rnd.IntN(len(a.Schema.Attrs))
				got, err := r.Dense(ctx, attr, boxes[k])
				if err != nil {
					t.Fatal(err)
				}
				if want, err := plain.Dense(ctx, attr, boxes[k]); err != nil || !sameValues(got, want) {
					t.Fatalf("%s: attribute %d in %v: other cells (%v)", l.Path, attr, boxes[k], err)
				}
			}
		}
		box := a.Schema.Domain()
		if box[0].Lo, box[0].Hi = box[0].Hi, box[0].Lo; box[0].Lo != box[0].Hi {
			if err := r.Ahead(ctx, 0, []Box{box}); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: a box from its end: %v", l.Path, err)
			}
		}
	}
}
