package vector

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/wkb"
)

const (
	// maxFlatHeader bounds the header: 1,000 columns with descriptions take 1 MiB. GDAL reads 10 MiB, too.
	maxFlatHeader = 10 << 20
	// maxFlatFeature bounds a feature: 256 MiB are 16 million points.
	maxFlatFeature = 256 << 20
	// flatNode is the size of a node of the index: a box of four float64, and where the feature is.
	flatNode = 4*8 + 8
	// flatBlock is the block size of sequential reads: with 8 MiB, the latency of a request to a store is less than the
	// time of its bytes.
	flatBlock = 8 << 20
	// flatPage is how much is read at a time for a shape: 64 KiB are 300 buildings, and with an index those around it.
	flatPage = 64 << 10
)

// flatShapes reads the shapes of a FlatGeobuf file. It is safe for concurrent use.
type flatShapes struct {
	r     source.Reader
	kind  uint64  // the type of all geometries
	at    []int64 // where each feature is, and the end of the last one
	first []int   // the first feature of each page
	pages *lru.Cache[int, []byte]
}

// Close implements shapes.
func (s *flatShapes) Close() error { return s.r.Close() }

// flatReader opens a FlatGeobuf file.
type flatReader struct {
	*flatShapes
	o     *Options
	count int64 // of the features; 0: unknown
	node  int64 // how many children a node of the index has; 0: no index
	cells *flatCells
	boxes []boxtree.Box
	most  int64 // the largest feature so far
}

// openFlat opens a FlatGeobuf file. The file's index says where the shapes and their boxes are. Without one, and for
// the values of a column, all features are read.
func openFlat(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	// Coordinates are not compressed.
	f := &flatReader{flatShapes: &flatShapes{r: r}, o: o}
	cache := min(o.CacheBytes, r.Size())
	f.pages = lru.New[int, []byte](cache)
	if err := o.Grow(ctx, cache+flatBlock); err != nil {
		return nil, err
	}
	layer := &Layer{shapes: f.flatShapes}
	start, err := f.header(ctx, layer)
	if err != nil {
		return nil, err
	}
	indexed := f.node > 0 && f.count != 0
	if indexed {
		if start, err = f.index(ctx, start); err != nil {
			return nil, err
		}
	}
	if !indexed || f.cells != nil {
		if err := f.scan(ctx, start, indexed); err != nil {
			return nil, err
		}
	}
	if err := f.paginate(ctx); err != nil {
		return nil, err
	}
	layer.Values = f.cells.values()
	layer.index(f.boxes, r.Size())
	return layer, nil
}

// header reads the header, and returns where it ends.
func (f *flatReader) header(ctx context.Context, l *Layer) (int64, error) {
	var head [12]byte // a signature of 8 bytes, and the size of the header
	if f.r.Size() < int64(len(head)) {
		return 0, fault.New(fault.Corrupt, "header", 0, "the file ends early")
	}
	if err := f.r.ReadAt(ctx, head[:], 0); err != nil {
		return 0, err
	}
	if string(head[:7]) != "fgb\x03fgb" {
		return 0, fault.New(fault.Unsupported, "header", 0, "FlatGeobuf of version %d: only 3 is read", head[3])
	}
	size := int64(binary.LittleEndian.Uint32(head[8:]))
	if size > min(maxFlatHeader, f.r.Size()-int64(len(head))) {
		return 0, fault.New(fault.Limit, "header", 8, "%d bytes in a file of %d, at most %d", size, f.r.Size(),
			maxFlatHeader)
	}
	if err := f.o.Grow(ctx, size); err != nil {
		return 0, err
	}
	data := make([]byte, size)
	if err := f.r.ReadAt(ctx, data, int64(len(head))); err != nil {
		return 0, err
	}
	// A writer may use a string several times.
	buffer := newFlatBuffer(data, 4)
	flatTable := buffer.root()
	f.kind = buffer.number(flatTable, 2, 1, flatUnknown)
	f.count = int64(buffer.number(flatTable, 8, 8, 0))
	f.node = int64(buffer.number(flatTable, 9, 2, 16))
	var err error
	if place, ok := buffer.child(flatTable, 10); ok {
		l.CRS, err = flatCRS(buffer, place)
	}
	if err == nil {
		f.cells, err = newFlatCells(buffer, flatTable, f.o.Column)
	}
	if buffer.err != nil {
		err = buffer.err
	}
	return int64(len(head)) + size, fault.WithPart(err, "header", int64(len(head)))
}

// flatCRS returns the CRS that a header names.
func flatCRS(f *flatBuffer, t flatTable) (*crs.CRS, error) {
	org, code := string(f.bytes(t, 0)), int64(int32(f.number(t, 1, 4, 0)))
	org = cmp.Or(org, "EPSG")
	name := org + ":" + strconv.FormatInt(code, 10)
	if text := f.bytes(t, 5); len(text) > 0 && code == 0 {
		name = org + ":" + string(text)
	}
	if found, ok := crs.ByName(name); ok {
		return found, nil
	}
	if found, ok := crs.ByWKT(string(f.bytes(t, 4))); ok && code == 0 {
		return found, nil
	}
	return nil, fault.New(fault.Unsupported, "CRS", fault.NoOffset, "%q (%.100q) is not known", name, f.bytes(t, 2))
}

// limit returns an error if there are more shapes than the options or the bytes of the file allow: each takes a node of
// the index, or at least 16 bytes of a feature.
func (f *flatReader) limit(n, each int64) error {
	if bound := min(f.o.MaxShapes, f.r.Size()/each); n < 0 || n > bound {
		return fault.New(fault.Limit, "shapes", fault.NoOffset, "%d shapes in a file of %d bytes, at most %d",
			uint64(n), f.r.Size(), bound)
	}
	return nil
}

// index reads the leaves of the index, and returns where the index ends. The nodes above them are not needed: the tree
// in memory is made of the leaves.
func (f *flatReader) index(ctx context.Context, from int64) (int64, error) {
	n := f.count
	if err := f.limit(n, flatNode); err != nil {
		return 0, err
	}
	if f.node < 2 {
		return 0, fault.New(fault.Corrupt, "index", from, "nodes of %d children", f.node)
	}
	above := int64(0)
	for level := n; ; {
		level = (level + f.node - 1) / f.node
		if above += level; level == 1 {
			break
		}
	}
	leaves := from + above*flatNode
	end := leaves + n*flatNode
	if end > f.r.Size() {
		return 0, fault.New(fault.Corrupt, "index", from, "it ends at %d, after the file", end)
	}
	if err := f.grow(ctx, n); err != nil {
		return 0, err
	}
	f.boxes, f.at = make([]boxtree.Box, n), make([]int64, n+1)
	f.at[n] = f.r.Size()
	block := make([]byte, min(flatBlock/flatNode, n)*flatNode)
	for row := int64(0); row < n; {
		data := block[:min(int64(len(block)), (n-row)*flatNode)]
		pos := leaves + row*flatNode
		if err := f.r.ReadAt(ctx, data, pos); err != nil {
			return 0, err
		}
		for ; len(data) > 0; data, row, pos = data[flatNode:], row+1, pos+flatNode {
			var v [4]float64
			for i := range v {
				v[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
			}
			f.boxes[row] = boxtree.Around(v[0], v[1], v[2], v[3])
			// Features have the order of the index, and so take their bytes of the file each.
			off := binary.LittleEndian.Uint64(data[32:])
			if off > uint64(f.r.Size()-end) || row == 0 && off > 0 || row > 0 && end+int64(off) < f.at[row-1]+4 {
				return 0, fault.New(fault.Corrupt, "index", pos, "shape %d is at %d: outside of its order", row, off)
			}
			f.at[row] = end + int64(off)
		}
	}
	return end, nil
}

// grow asks for the memory of n shapes: boxes twice while the tree is made, with keys and numbers, and values and
// places three times while their lists grow.
func (f *flatReader) grow(ctx context.Context, n int64) error {
	const each = 2*16 + 8 + 4 + 3*(9+8)
	return f.o.Grow(ctx, n*each)
}

// scan reads all features. It finds their places and boxes if there is no index, and compares the places otherwise.
func (f *flatReader) scan(ctx context.Context, from int64, indexed bool) error {
	block := int(min(flatBlock, f.r.Size()-from))
	in := bufio.NewReaderSize(source.Sequential(ctx, f.r, from), block)
	var head [4]byte
	var b []byte
	row, pos := int64(0), from
	for ; pos < f.r.Size(); row++ {
		if f.r.Size()-pos < int64(len(head)) {
			return fault.New(fault.Corrupt, "feature", pos, "the file ends early")
		}
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		size := int64(binary.LittleEndian.Uint32(head[:]))
		if size > f.r.Size()-pos-int64(len(head)) {
			return fault.New(fault.Corrupt, "feature", pos, "%d bytes lead out of the file", size)
		}
		if err := f.largest(ctx, pos, size); err != nil {
			return err
		}
		if indexed && (row == f.count || pos != f.at[row]) {
			return fault.New(fault.Corrupt, "feature", pos, "the index has another place for shape %d", row)
		}
		if int64(cap(b)) < size {
			b = make([]byte, size)
		}
		if _, err := io.ReadFull(in, b[:size]); err != nil {
			return err
		}
		if err := f.add(ctx, row, pos, b[:size], indexed); err != nil {
			return fault.WithPart(err, fmt.Sprint("shape ", row), pos+int64(len(head)))
		}
		pos += int64(len(head)) + size
	}
	if f.count != 0 && row != f.count {
		return fault.New(fault.Corrupt, "features", pos, "%d of them, and the header says %d", row, f.count)
	}
	if !indexed {
		f.at = append(f.at, pos)
	}
	return nil
}

// add keeps the box and the value of a feature.
func (f *flatReader) add(ctx context.Context, row, at int64, b []byte, indexed bool) error {
	shape, properties, err := orb.Geometry(nil), []byte(nil), error(nil)
	if indexed {
		buffer := newFlatBuffer(b, 1)
		properties, err = buffer.bytes(buffer.root(), 1), buffer.err
	} else {
		shape, properties, err = flatFeature(b, f.kind)
	}
	if err == nil && f.cells != nil {
		err = f.cells.add(properties)
	}
	if err != nil || indexed {
		return err
	}
	const step = 1 << 14 // a megabyte
	if row%step == 0 {
		if err := f.grow(ctx, step); err != nil {
			return err
		}
	}
	if err := f.limit(row+1, 16); err != nil {
		return err
	}
	box := boxtree.Nothing
	w := wkb.Box{MinX: math.Inf(1), MinY: math.Inf(1), MaxX: math.Inf(-1), MaxY: math.Inf(-1)}
	if growBox(&w, shape); w.MinX <= w.MaxX && w.MinY <= w.MaxY {
		box = boxtree.Around(w.MinX, w.MinY, w.MaxX, w.MaxY)
	}
	f.boxes, f.at = append(f.boxes, box), append(f.at, at)
	return nil
}

// largest asks for the memory of a feature, if it is larger than those before it: its bytes, and nine times as much for
// its geometry.
func (f *flatReader) largest(ctx context.Context, at, size int64) error {
	if size > maxFlatFeature {
		return fault.New(fault.Limit, "feature", at, "%d bytes, at most %d", size, maxFlatFeature)
	}
	if size <= f.most {
		return nil
	}
	growth := size - f.most
	f.most = size
	return f.o.Grow(ctx, 10*growth)
}

// paginate divides the features into pages.
func (f *flatReader) paginate(ctx context.Context) error {
	for row := range f.boxes {
		if err := f.largest(ctx, f.at[row], f.at[row+1]-f.at[row]); err != nil {
			return err
		}
		if row == 0 || f.at[row+1]-f.at[f.first[len(f.first)-1]] > flatPage {
			f.first = append(f.first, row)
		}
	}
	return nil
}

// shape implements shapes.
func (s *flatShapes) shape(ctx context.Context, row int) (orb.Geometry, error) {
	if row < 0 || row >= len(s.at)-1 {
		return nil, fault.New(fault.NotFound, "shape", fault.NoOffset, "%d of %d", row, len(s.at)-1)
	}
	page := sort.SearchInts(s.first, row+1) - 1
	start := s.at[s.first[page]]
	data, ok := s.pages.Get(page)
	if !ok {
		end := s.at[len(s.at)-1]
		if page+1 < len(s.first) {
			end = s.at[s.first[page+1]]
		}
		data = make([]byte, end-start)
		if err := s.r.ReadAt(ctx, data, start); err != nil {
			return nil, err
		}
		s.pages.Add(page, data, int64(len(data)))
	}
	data = data[s.at[row]-start : s.at[row+1]-start]
	if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
		return nil, fault.New(fault.Corrupt, "shape "+strconv.Itoa(row), s.at[row], "it is longer than its place")
	}
	shape, _, err := flatFeature(data[4:4+binary.LittleEndian.Uint32(data)], s.kind)
	return shape, fault.WithPart(err, "shape "+strconv.Itoa(row), s.at[row]+4)
}
