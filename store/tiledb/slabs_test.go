package tiledb

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// TestSlabsAreTheBox promises that writing slab by slab gives the bytes of writing at once.
func TestSlabsAreTheBox(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	for i := range 12 {
		s := &Schema{Dense: true, Capacity: 10, DimType: Int16, Coords: DefaultFilters(), Offsets: DefaultFilters(),
			CellOrder: Order(i % 2)}
		for _, n := range []int64{3 + rnd.Int64N(9), 1 + rnd.Int64N(5), 1 + rnd.Int64N(6)} {
			s.Dims = append(s.Dims, Dim{Name: "d", Domain: Interval{s.DimType.CoordOf(-4),
				s.DimType.CoordOf(n - 5)}, Extent: uint64(1 + rnd.Int64N(n))})
		}
		for _, typ := range []Datatype{Uint16, Float64} {
			s.Attrs = append(s.Attrs, Attr{Name: typ.String(), Type: typ, Values: 1,
				Pipeline: filter.Pipeline{MaxChunk: 64, Filters: []filter.Filter{{ID: filter.ByteShuffle},
					{ID: filter.Zstd, Level: 1}}}})
		}
		box := s.Domain()
		box[0].Lo += Coord(i % 3)
		box[2].Hi -= Coord(uint64(box[2].Hi-box[2].Lo) / 2)
		_, cells := box.shape(1 << 20)
		all := []Values{{Data: make([]byte, 2*cells)}, {Data: make([]byte, 8*cells)}}
		for _, v := range all {
			for k := range v.Data {
				v.Data[k] = byte(rnd.UintN(7))
			}
		}
		var files [2]Files
		var folder [2]string
		for k := range files {
			folder[k] = filepath.Join(t.TempDir(), "a")
			if err := Create(folder[k], s, nil); err != nil {
				t.Fatal(err)
			}
			a, err := Open(context.Background(), &files[k], folder[k], Options{})
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				err = a.WriteDense(context.Background(), box, all)
			} else {
				rest := []Values{all[0], all[1]}
				err = a.WriteDenseSlabs(context.Background(), box, func(slab Box) ([]Values, error) {
					_, n := slab.shape(1 << 20)
					part := []Values{{Data: rest[0].Data[:2*n]}, {Data: rest[1].Data[:8*n]}}
					rest[0].Data, rest[1].Data = rest[0].Data[2*n:], rest[1].Data[8*n:]
					return part, nil
				})
				if len(rest[0].Data) > 0 {
					t.Errorf("%d bytes were not asked for", len(rest[0].Data))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			files[k].Close()
		}
		for _, typ := range s.Attrs {
			var got [2][]byte
			for k := range got {
				names, _ := filepath.Glob(filepath.Join(folder[k], "__*_*", typ.Name+".tdb"))
				if len(names) != 1 {
					t.Fatalf("files %q", names)
				}
				got[k], _ = os.ReadFile(names[0])
			}
			if len(got[0]) == 0 || !bytes.Equal(got[0], got[1]) {
				t.Errorf("%s: %d bytes at once, %d in slabs, or others", typ.Name, len(got[0]), len(got[1]))
			}
		}
	}
}

// TestSlabsThatFail leave nothing behind.
func TestSlabsThatFail(t *testing.T) {
	s := &Schema{Dense: true, Capacity: 10, DimType: Int32, Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims:  []Dim{{Name: "n", Domain: Interval{Int32.CoordOf(0), Int32.CoordOf(9)}, Extent: 2}},
		Attrs: []Attr{{Name: "a", Type: Uint8, Values: 1}}}
	path := filepath.Join(t.TempDir(), "a")
	if err := Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	var files Files
	defer files.Close()
	a, err := Open(context.Background(), &files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	enough, calls := errors.New("enough"), 0
	err = a.WriteDenseSlabs(context.Background(), s.Domain(), func(Box) ([]Values, error) {
		if calls++; calls == 3 {
			return nil, enough
		}
		return []Values{{Data: []byte{1, 2}}}, nil
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	if err := a.WriteDenseSlabs(context.Background(), s.Domain(), func(Box) ([]Values, error) {
		return []Values{{Data: []byte{1}}}, nil
	}); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("one cell for two: %v", err)
	}
	if left, err := os.ReadDir(path); err != nil || len(left) != 2 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
