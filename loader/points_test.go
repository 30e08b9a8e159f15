package loader

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// label is a point that was written.
type label struct {
	n    int64
	y, x float64
	v    int16
}

// writePoints makes a sparse array of labels in several fragments, with dimensions in a given
// order.
func writePoints(t testing.TB, path, dims string, typ tiledb.Datatype, lo, hi float64, labels []label) {
	t.Helper()
	coord := func(v float64) tiledb.Coord {
		if typ.Real() {
			return typ.CoordOfFloat(v)
		}
		return typ.CoordOf(int64(v))
	}
	extent := math.Float64bits(64)
	if !typ.Real() {
		extent = 16
	}
	s := &tiledb.Schema{Capacity: 7, DimType: typ, Coords: tiledb.DefaultFilters(), Offsets: tiledb.DefaultFilters(),
		Attrs: []tiledb.Attr{{Name: "class", Type: tiledb.Int16, Values: 1, Pipeline: filter.Pipeline{MaxChunk: 1000}}}}
	for d := range strings.FieldsSeq(dims) {
		s.Dims = append(s.Dims, tiledb.Dim{Name: d, Domain: tiledb.Interval{Lo: coord(lo), Hi: coord(hi)},
			Extent: extent})
	}
	if err := tiledb.Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(labels, len(labels)/3+1) {
		var coords, values []byte
		for _, l := range part {
			for d := range strings.FieldsSeq(dims) {
				v := map[string]float64{"n": float64(l.n), "y": l.y, "x": l.x}[d]
				switch typ {
				case tiledb.Float64:
					coords = binary.LittleEndian.AppendUint64(coords, math.Float64bits(v))
				case tiledb.Float32:
					coords = binary.LittleEndian.AppendUint32(coords, math.Float32bits(float32(v)))
				default:
					coords = binary.LittleEndian.AppendUint32(coords, uint32(int32(v)))
				}
			}
			values = binary.LittleEndian.AppendUint16(values, uint16(l.v))
		}
		writeSparse(t, path, coords, values)
	}
}

// numbered is an array (n y x) in which every pixel has a number of its own.
func numbered(t testing.TB, n, h, w int) string {
	path := filepath.Join(t.TempDir(), "cube")
	s := cubeSchema("n y x", map[string]int{"n": n, "y": h, "x": w},
		map[string]int{"n": 1, "y": 7, "x": 9}, 10, tiledb.Int32)
	if err := tiledb.Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for i := range n * h * w {
		data = binary.LittleEndian.AppendUint32(data, uint32(i))
	}
	if err := openWritten(t, path).WriteDense(context.Background(), s.Domain(),
		[]tiledb.Values{{Data: data}}); err != nil {
		t.Fatal(err)
	}
	return path
}

// labelsOf makes labels on different pixels of n images.
func labelsOf(n, h, w int) (all []label) {
	rnd := rand.New(rand.NewPCG(4, uint64(h)))
	for i := range n {
		for _, at := range rnd.Perm(h * w)[:h*w/9] {
			all = append(all, label{int64(i), float64(at / w), float64(at % w), int16(rnd.IntN(1000) - 500)})
		}
	}
	return all
}

// float32Of reads element i of a tensor.
func float32Of(t *Tensor, i int) float64 { return float64(float32At(t.Data, i)) }

// TestPointsStandOnTheirPixels: in every window, with every transform, a point lies on the pixel on
// which it was written and has its value, and no point of the window is missing.
func TestPointsStandOnTheirPixels(t *testing.T) {
	const n, h, w, most = 3, 20, 31, 80
	cube, dir := numbered(t, n, h, w), t.TempDir()
	labels := labelsOf(n, h, w)
	var flat []label // one set for all images
	for _, l := range labels {
		if l.n == 0 {
			flat = append(flat, l)
		}
	}
	own := slices.Clone(labels)
	for i := range own {
		own[i].n += 10 // the coordinate of the first image
	}
	writePoints(t, filepath.Join(dir, "flat"), "x y", tiledb.Int32, -5, 100, flat)
	writePoints(t, filepath.Join(dir, "own"), "n y x", tiledb.Int32, -5, 100, own)
	sp := Spec{Source: cube, BatchSize: 4, Shuffle: true, Augment: "d4", Sampler: Sampler{Kind: spec.RandomWindow,
		Height: 12, Width: 12, PerAsset: 9},
		Fields: []Field{{Name: "flat", Points: &spec.Points{Array: filepath.Join(dir, "flat"), Most: most}},
			{Name: "image"},
			{Name: "own", Points: &spec.Points{Array: filepath.Join(dir, "own"), Most: most, Values: "class"}}}}
	e, err := Open(t.Context(), sp, Options{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	byPlace := map[label]int16{}
	for _, l := range labels {
		byPlace[label{n: l.n, y: l.y, x: l.x}] = l.v
	}
	seen := 0
	for step := range e.Steps() {
		tk := shuffle.Ticket{First: 4 * step, Count: 4, RowStride: 1}
		plan, err := e.Explain(t.Context(), tk)
		if err != nil {
			t.Fatal(err)
		}
		b := wait(t, e.Start(t.Context(), tk, false))
		image := b.Tensor("image")
		for r, p := range plan {
			if p.Position < 0 {
				continue
			}
			win := p.Assets[0].Window
			for name, image0 := range map[string]bool{"flat": true, "own": false} {
				of := p.Draw.Row
				if image0 {
					of = 0
				}
				want := 0
				for _, l := range labels {
					if l.n == of && l.y >= float64(win.Y) && l.y < float64(win.Y+win.H) && l.x >= float64(win.X) &&
						l.x < float64(win.X+win.W) {
						want++
					}
				}
				if got := int(binary.LittleEndian.Uint64(b.Tensor(name + "_count").Data[8*r:])); got != want {
					t.Fatalf("%s: %d points in %+v, want %d", name, got, win, want)
				}
				on := map[int]bool{}
				for k := range most {
					y, x := float32Of(b.Tensor(name), (r*most+k)*2), float32Of(b.Tensor(name), (r*most+k)*2+1)
					v := int16(uint16At(b.Tensor(name+"_values").Data, r*most+k))
					if k >= want {
						if y != -1 || x != -1 || v != 0 {
							t.Fatalf("%s: padding is %v, %v: %d", name, y, x, v)
						}
						continue
					}
					pixel := int(binary.LittleEndian.Uint32(image.Data[4*((r*12+int(y))*12+int(x)):])) % (h * w)
					if there, ok := byPlace[label{n: of, y: float64(pixel / w), x: float64(pixel % w)}]; !ok ||
						there != v || on[pixel] {
						t.Fatalf("%s: point %v, %v: %d stands on pixel %d, which has %d (%v)", name, y, x,
							v, pixel, there, ok)
					}
					on[pixel] = true
					seen++
				}
			}
		}
		b.Release()
	}
	if seen < 500 {
		t.Errorf("only %d points", seen)
	}
	if names := e.Fields(); names[0].Name != "image" || len(names) != 7 || names[1].Name != "flat" ||
		names[1].Kind != "points" || fmt.Sprint(names[1].Shape) != "[1 80 2]" {
		t.Errorf("fields %+v", names)
	}
}

// TestPointsOfRowsFarOut: a row has exactly the points of its coordinate along n, also where
// neighbouring coordinates are equal as float64 or in the array's own type.
func TestPointsOfRowsFarOut(t *testing.T) {
	const images, now = 3, 1_700_000_000_000_000_001 // nanoseconds since 1970
	for _, c := range []struct {
		typ   tiledb.Datatype
		first int64
		want  [images]int64 // points of each image
	}{
		{tiledb.Int64, now, [images]int64{1, 1, 1}},
		{tiledb.Uint64, 5 << 60, [images]int64{1, 1, 1}},
		{tiledb.DatetimeNanosecond, -now, [images]int64{1, 1, 1}},
		{tiledb.Float64, 1 << 53, [images]int64{2, 0, 1}}, // of 2^53+1 there is none: it was stored as 2^53
		{tiledb.Float32, 1 << 24, [images]int64{2, 0, 1}},
	} {
		dir := t.TempDir()
		cube, points := filepath.Join(dir, "cube"), filepath.Join(dir, "points")
		dim := func(typ tiledb.Datatype, name string, n int64) tiledb.Dim {
			lo, hi, extent := typ.CoordOf(0), typ.CoordOf(8), uint64(1)
			if name == "n" {
				lo, hi = typ.CoordOf(n), typ.CoordOf(n+images-1)
			}
			if typ.Real() {
				lo, hi, extent = typ.CoordOfFloat(0), typ.CoordOfFloat(float64(n+images)), math.Float64bits(1<<24)
			}
			return tiledb.Dim{Name: name, Domain: tiledb.Interval{Lo: lo, Hi: hi}, Extent: extent}
		}
		dense := tiledb.Int64
		if c.typ == tiledb.Uint64 {
			dense = c.typ
		}
		for path, s := range map[string]*tiledb.Schema{cube: {Dense: true, DimType: dense}, points: {DimType: c.typ}} {
			s.Capacity, s.Attrs = 10, []tiledb.Attr{{Name: "a", Type: tiledb.Uint8, Values: 1}}
			for _, name := range []string{"n", "y", "x"} {
				s.Dims = append(s.Dims, dim(s.DimType, name, c.first))
			}
			if err := tiledb.Create(path, s, nil); err != nil {
				t.Fatal(err)
			}
		}
		a := openWritten(t, cube)
		if err := a.WriteDense(t.Context(), a.Schema.Domain(),
			[]tiledb.Values{{Data: make([]byte, images*9*9)}}); err != nil {
			t.Fatal(err)
		}
		for k := range int64(images) { // a point in each image, on the pixel of its number
			var coords []byte
			for _, v := range []int64{c.first + k, k, k} {
				switch c.typ {
				case tiledb.Float32:
					coords = binary.LittleEndian.AppendUint32(coords, math.Float32bits(float32(v)))
				case tiledb.Float64:
					coords = binary.LittleEndian.AppendUint64(coords, math.Float64bits(float64(v)))
				default:
					coords = binary.LittleEndian.AppendUint64(coords, uint64(v))
				}
			}
			writeSparse(t, points, coords, []byte{byte(k)})
		}
		e, err := Open(t.Context(), Spec{Source: cube, BatchSize: images,
			Fields: []Field{{Name: "a"}, {Name: "p", Points: &spec.Points{Array: points, Most: 5}}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := wait(t, e.Start(t.Context(), shuffle.Ticket{Count: images, RowStride: 1}, false))
		count := b.Tensor("p_count")
		for k, want := range c.want {
			got := int64(binary.LittleEndian.Uint64(count.Data[8*k:]))
			if value := b.Tensor("p_values").Data[5*k]; got != want || got == 1 && value != byte(k) {
				t.Errorf("%v from %d: image %d has %d points, want %d; the first is %d", c.typ, c.first,
					k, got, want, value)
			}
		}
		b.Release()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPointsOnTheGround: points on the ground lie where the inverse of the transform puts them,
// with rotated and sheared transforms and coordinates of either precision.
func TestPointsOnTheGround(t *testing.T) {
	const h, w = 40, 50
	cube := numbered(t, 2, h, w)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i, c := range []struct {
		typ tiledb.Datatype
		t   [6]float64
	}{
		{tiledb.Float64, [6]float64{500000, 10, 0, 4600000, 0, -10}},
		{tiledb.Float64, [6]float64{300, 0.7, 0.2, 40, -0.1, -0.9}},
		{tiledb.Float32, [6]float64{-60, 0.25, 0, 12, 0, -0.25}},
		{tiledb.Int32, [6]float64{500000, 10, 0, 4600000, 0, -10}},
	} {
		path := filepath.Join(t.TempDir(), "points")
		var labels []label
		at := map[[2]float64]bool{}
		for range 400 {
			col, row := rnd.Float64()*(w+20)-10, rnd.Float64()*(h+20)-10
			l := label{x: c.t[0] + col*c.t[1] + row*c.t[2], y: c.t[3] + col*c.t[4] + row*c.t[5], v: int16(len(labels))}
			switch c.typ {
			case tiledb.Float32:
				l.y, l.x = float64(float32(l.y)), float64(float32(l.x))
			case tiledb.Int32:
				l.y, l.x = math.Round(l.y), math.Round(l.x)
			}
			if !at[[2]float64{l.y, l.x}] {
				at[[2]float64{l.y, l.x}] = true
				labels = append(labels, l)
			}
		}
		writePoints(t, path, "y x", c.typ, -1e7, 1e7, labels)
		sp := Spec{Source: cube, BatchSize: 2, Sampler: Sampler{Kind: spec.RandomWindow, Height: 16,
			Width: 11, PerAsset: 6},
			Fields: []Field{{Name: "image"},
				{Name: "p", Points: &spec.Points{Array: path, In: spec.WorldPoints, Transform: &c.t, Most: 400}}}}
		e, err := Open(t.Context(), sp, Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for step := range e.Steps() {
			tk := shuffle.Ticket{First: 2 * step, Count: 2, RowStride: 1}
			plan, err := e.Explain(t.Context(), tk)
			if err != nil {
				t.Fatal(err)
			}
			b := wait(t, e.Start(t.Context(), tk, false))
			for r, p := range plan {
				checkGround(t, b, r, p.Assets[0].Window, labels, c.t, i)
			}
			b.Release()
		}
		e.Close()
	}
}

// checkGround finds each label's pixel by Cramer's rule, and requires the points that lie in the
// window.
func checkGround(t *testing.T, b *Batch, r int, win shuffle.Box, labels []label, tr [6]float64, which int) {
	t.Helper()
	type place struct{ y, x float64 }
	want := map[int16]place{}
	near := map[int16]bool{} // within rounding of the window's edge: either will do
	for _, l := range labels {
		dx, dy := l.x-tr[0], l.y-tr[3]
		det := tr[1]*tr[5] - tr[2]*tr[4]
		x, y := (dx*tr[5]-dy*tr[2])/det-float64(win.X), (tr[1]*dy-tr[4]*dx)/det-float64(win.Y)
		if x >= 0 && x < float64(win.W) && y >= 0 && y < float64(win.H) {
			want[l.v] = place{y, x}
		}
		if edge := min(math.Abs(x), math.Abs(x-float64(win.W)), math.Abs(y), math.Abs(y-float64(win.H))); edge < 1e-6 {
			near[l.v] = true
		}
	}
	count := int(binary.LittleEndian.Uint64(b.Tensor("p_count").Data[8*r:]))
	got := map[int16]bool{}
	for k := range count {
		v := int16(uint16At(b.Tensor("p_values").Data, r*400+k))
		y, x := float32Of(b.Tensor("p"), (r*400+k)*2), float32Of(b.Tensor("p"), (r*400+k)*2+1)
		if w, ok := want[v]; !near[v] && (!ok || math.Abs(w.y-y) > 1e-4 || math.Abs(w.x-x) > 1e-4) || got[v] {
			t.Fatalf("case %d: label %d at %v, %v; want %+v (%v)", which, v, y, x, w, ok)
		}
		got[v] = true
	}
	for v := range want {
		if !got[v] && !near[v] {
			t.Fatalf("case %d: label %d is missing in %+v", which, v, win)
		}
	}
}

// TestPointsOfFiles: if the spec has no transform, each file's own one places points, and resampled
// windows move points too.
func TestPointsOfFiles(t *testing.T) {
	const height, width = 300, 260
	file := filepath.Join(t.TempDir(), "chip.tif")
	tr, rnd := [6]float64{355000, 10, 0, 4600000, 0, -10}, rand.New(rand.NewPCG(7, 8))
	var tog bytes.Buffer
	if err := tiff.WriteTOG(&tog, make([]byte, height*width), tiff.TOGOptions{Shape: [3]int{1, height, width},
		DType: chunk.Uint8, Tile: 128,
		Geo: tiff.Geo{Transform: tr, HasTransform: true}}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, tog.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	var labels []label
	for i := range 500 {
		col, row := rnd.Float64()*width, rnd.Float64()*height
		labels = append(labels, label{x: tr[0] + col*tr[1] + row*tr[2], y: tr[3] + col*tr[4] + row*tr[5], v: int16(i)})
	}
	path := filepath.Join(t.TempDir(), "points")
	writePoints(t, path, "x y", tiledb.Float64, -1e7, 1e7, labels)
	for _, s := range []Sampler{{Kind: spec.RandomWindow, Height: 100, Width: 90, PerAsset: 5},
		{Kind: spec.ResizedWindow, Height: 64, Width: 80, PerAsset: 5}} {
		sp := Spec{Source: file, BatchSize: 1, Sampler: s,
			Fields: []Field{{Name: "image"},
				{Name: "p", Points: &spec.Points{Array: path, In: spec.WorldPoints, Most: 500}}}}
		e, err := Open(t.Context(), sp, Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		for step := range e.Steps() {
			tk := shuffle.Ticket{First: step, Count: 1, RowStride: 1}
			plan, err := e.Explain(t.Context(), tk)
			if err != nil {
				t.Fatal(err)
			}
			b := wait(t, e.Start(t.Context(), tk, false))
			win := plan[0].Assets[0].Window
			count, want := int(binary.LittleEndian.Uint64(b.Tensor("p_count").Data)), 0
			at := map[int16]int{}
			for k := range count {
				at[int16(uint16At(b.Tensor("p_values").Data, k))] = k
			}
			for _, l := range labels {
				col, row := (l.x-tr[0])/tr[1]-float64(win.X), (l.y-tr[3])/tr[5]-float64(win.Y)
				if col < 0 || row < 0 || col >= float64(win.W) || row >= float64(win.H) {
					continue
				}
				want++
				k, ok := at[l.v]
				y, x := float32Of(b.Tensor("p"), 2*k), float32Of(b.Tensor("p"), 2*k+1)
				if wy, wx := row*float64(s.Height)/float64(win.H), col*float64(s.Width)/float64(win.W); !ok ||
					math.Abs(y-wy) > 1e-3 || math.Abs(x-wx) > 1e-3 {
					t.Fatalf("%s: label %d at %v, %v; want %v, %v (%v)", s.Kind, l.v, y, x, wy, wx, ok)
				}
			}
			if count != want {
				t.Errorf("%s: %d points, want %d", s.Kind, count, want)
			}
			b.Release()
		}
		e.Close()
	}
}

// TestMorePointsThanRoom: if there are more points than room, the batch has the first ones and the
// full count. The rest is counted and logged once.
func TestMorePointsThanRoom(t *testing.T) {
	const n, h, w, most = 2, 10, 10, 4
	cube, path := numbered(t, n, h, w), filepath.Join(t.TempDir(), "points")
	labels := labelsOf(1, h, w)
	writePoints(t, path, "y x", tiledb.Int32, 0, 20, labels)
	slices.SortFunc(labels, func(a, b label) int { return cmp.Or(cmp.Compare(a.y, b.y), cmp.Compare(a.x, b.x)) })
	var said strings.Builder
	e, err := Open(t.Context(),
		Spec{Source: cube, BatchSize: 2,
			Fields: []Field{{Name: "image"}, {Name: "p", Points: &spec.Points{Array: path, Most: most}}}},
		Options{Workers: 1, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b := wait(t, e.Start(t.Context(), shuffle.Ticket{Count: 2, RowStride: 1}, false))
	defer b.Release()
	for r := range 2 {
		if got := binary.LittleEndian.Uint64(b.Tensor("p_count").Data[8*r:]); got != uint64(len(labels)) {
			t.Errorf("count %d of %d", got, len(labels))
		}
		for k := range most {
			if got := int16(uint16At(b.Tensor("p_values").Data, r*most+k)); got != labels[k].v {
				t.Errorf("row %d point %d is %d, want %d", r, k, got, labels[k].v)
			}
		}
	}
	if want := int64(2 * (len(labels) - most)); e.LeftOut("p") != want || e.LeftOut("image") != 0 {
		t.Errorf("%d left out, want %d", e.LeftOut("p"), want)
	}
	if strings.Count(said.String(), "more points") != 1 {
		t.Errorf("said %q", said.String())
	}
}

// TestPointsOfBadSamples: a sample whose points cannot be read is bad like any other. Its row is
// padding, and a substitute has its own points.
func TestPointsOfBadSamples(t *testing.T) {
	const n, h, w, most = 4, 20, 20, 60
	cube, path := numbered(t, n, h, w), filepath.Join(t.TempDir(), "points")
	labels := labelsOf(n, h, w)
	for i := range labels {
		labels[i].n += 10
	}
	writePoints(t, path, "n y x", tiledb.Int32, 0, 100, labels)
	files, _ := filepath.Glob(filepath.Join(path, "__*", "class.tdb"))
	slices.Sort(files)
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 0xff // the first tile, which has points of the first images, says it has more chunks
	if err := os.WriteFile(files[0], b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{spec.BadError, spec.BadSkip, spec.BadReplace} {
		sp := Spec{Source: cube, BatchSize: n, BadSamples: policy,
			Fields: []Field{{Name: "image"}, {Name: "p", Points: &spec.Points{Array: path, Most: most}}}}
		e, err := Open(t.Context(), sp, Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		batch, err := e.Start(t.Context(), shuffle.Ticket{Count: n, RowStride: 1}, false).Wait(t.Context())
		if policy == spec.BadError {
			if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "class.tdb") {
				t.Errorf("%v", err)
			}
			e.Close()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Bad) == 0 || len(batch.Bad) == n {
			t.Errorf("%s: bad %+v", policy, batch.Bad)
		}
		for _, bad := range batch.Bad {
			count := binary.LittleEndian.Uint64(batch.Tensor("p_count").Data[8*bad.Row:])
			place := float32Of(batch.Tensor("p"), bad.Row*most*2)
			image := batch.Tensor("image").Data[bad.Row*h*w*4:][:4]
			of := int64(binary.LittleEndian.Uint32(image)) / (h * w)
			want := 0
			for _, l := range labels {
				if l.n == 10+of {
					want++
				}
			}
			switch {
			case policy == spec.BadSkip && (count != 0 || place != -1 || batch.Valid[bad.Row]):
				t.Errorf("skipped: %d points, the first at %v", count, place)
			case policy == spec.BadReplace && batch.Valid[bad.Row] &&
				(int(count) != want || batch.Samples[bad.Row] != of):
				t.Errorf("replaced by %d: %d points, want %d", of, count, want)
			}
		}
		batch.Release()
		e.Close()
	}
}

// TestArraysMix: the sources of a mixture may be arrays, each with its own dimensions, fields and
// points.
func TestArraysMix(t *testing.T) {
	const h, w = 20, 31
	dir := t.TempDir()
	a, b := numbered(t, 3, h, w), numbered(t, 5, h, w)
	for i, name := range []string{"pa", "pb"} {
		writePoints(t, filepath.Join(dir, name), "y x", tiledb.Int32, 0, 100, labelsOf(1, h-i, w)[:20+10*i])
	}
	points := func(name string) *spec.Points { return &spec.Points{Array: filepath.Join(dir, name), Most: 100} }
	sp := Spec{BatchSize: 2, Shuffle: true, Fields: []Field{{Name: "image"}, {Name: "p", Points: points("pa")}},
		Mixture: spec.Mixture{Until: spec.UntilLongest, Sources: []Source{{Name: "a", Source: a},
			{Name: "b", Source: b, Dims: "n y x", Fields: []Field{{Name: "p", Points: points("pb")}}}}}}
	e, err := Open(t.Context(), sp, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	seen := map[uint64]int{}
	for step := range e.Steps() {
		batch := wait(t, e.Start(t.Context(), shuffle.Ticket{First: 2 * step, Count: 2, RowStride: 1}, false))
		for r := range 2 {
			if !batch.Valid[r] {
				continue
			}
			source := binary.LittleEndian.Uint64(batch.Tensor(spec.SourceColumn).Data[8*r:])
			seen[source]++
			if count := binary.LittleEndian.Uint64(batch.Tensor("p_count").Data[8*r:]); count != 20+10*source {
				t.Errorf("source %d: %d points", source, count)
			}
		}
		batch.Release()
	}
	if seen[0] < 5 || seen[1] < 5 {
		t.Errorf("%v", seen)
	}
	for _, f := range []Field{{Name: "p", Bands: []int{0}}, {Name: "image", Points: points("pb")}} {
		other := sp
		other.Sources = []Source{sp.Sources[0], {Source: b, Fields: []Field{f}}}
		if _, err := Open(t.Context(), other, Options{}); err == nil || !strings.Contains(err.Error(), "not in both") {
			t.Errorf("%+v: %v", f, err)
		}
	}
	sp.Sources[1].Fields[0].Points.Most = 7
	if _, err := Open(t.Context(), sp, Options{}); err == nil || !strings.Contains(err.Error(), "up to 7 points") {
		t.Errorf("sources with room for different numbers: %v", err)
	}
}

// TestEncryptedArray: an encrypted array needs its key, from the options or the environment.
func TestEncryptedArray(t *testing.T) {
	path, key := filepath.Join(t.TempDir(), "a"), []byte("0123456789abcdef0123456789abcdef")
	s := cubeSchema("n y x", map[string]int{"n": 2, "y": 4, "x": 4},
		map[string]int{"n": 1, "y": 4, "x": 4}, 0, tiledb.Uint8)
	if err := tiledb.Create(path, s, key); err != nil {
		t.Fatal(err)
	}
	var files source.Files
	defer files.Close()
	a, err := tiledb.Open(t.Context(), &files, path, tiledb.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("the cells of two images of 4 x 4")
	if err := a.WriteDense(t.Context(), s.Domain(), []tiledb.Values{{Data: data}}); err != nil {
		t.Fatal(err)
	}
	sp := Spec{Source: path, BatchSize: 2}
	t.Setenv(tiledb.KeyVar, "")
	if _, err := Open(t.Context(), sp, Options{}); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "key") {
		t.Errorf("without a key: %v", err)
	}
	for name, o := range map[string]Options{"options": {ArrayKey: key}, "environment": {}} {
		if o.ArrayKey == nil {
			t.Setenv(tiledb.KeyVar, string(key))
		}
		e, err := Open(t.Context(), sp, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := wait(t, e.Start(t.Context(), shuffle.Ticket{Count: 2, RowStride: 1}, false))
		if !bytes.Equal(b.Tensor("image").Data, data) {
			t.Errorf("%s: %q", name, b.Tensor("image").Data)
		}
		b.Release()
		e.Close()
		t.Setenv(tiledb.KeyVar, "")
	}
}

// TestInvalidPoints: each invalid spec is refused with the reason.
func TestInvalidPoints(t *testing.T) {
	cube, dir := numbered(t, 1, 9, 9), t.TempDir()
	path := filepath.Join(dir, "points")
	writePoints(t, path, "y x", tiledb.Int32, 0, 20, []label{{y: 1, x: 1}})
	writePoints(t, filepath.Join(dir, "named"), "lat lon", tiledb.Int32, 0, 20, nil)
	for _, c := range []struct {
		p    spec.Points
		kind fault.Kind
		says string
	}{
		{spec.Points{Array: path}, 0, "most is 0"},
		{spec.Points{Most: 1}, 0, "no array"},
		{spec.Points{Array: path, Most: 1, In: "sky"}, 0, "sky"},
		{spec.Points{Array: path, Most: 1, Transform: &[6]float64{}}, 0, "transform"},
		{spec.Points{Array: path, Most: 1, In: spec.WorldPoints}, fault.Unsupported, "no transform"},
		{spec.Points{Array: path, Most: 1, In: spec.WorldPoints, Transform: &[6]float64{0, 1, 1, 0, 1, 1}},
			fault.Unsupported, "inverted"},
		{spec.Points{Array: path, Most: 1, Values: "other"}, fault.NotFound, `["class"]`},
		{spec.Points{Array: path, Most: 1, Dims: "x x"}, fault.Unsupported, "each once"},
		{spec.Points{Array: path, Most: 1, Dims: "n y x"}, fault.Unsupported, "2"},
		{spec.Points{Array: filepath.Join(dir, "named"), Most: 1}, fault.Unsupported, "lat lon"},
		{spec.Points{Array: cube, Most: 1}, fault.Unsupported, "dense"},
		{spec.Points{Array: dir, Most: 1}, fault.NotFound, "schema"},
	} {
		_, err := Open(t.Context(),
			Spec{Source: cube, BatchSize: 1, Fields: []Field{{Name: "image"}, {Name: "p", Points: &c.p}}}, Options{})
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.p, err)
		}
	}
	p := &spec.Points{Array: path, Most: 1}
	for says, fields := range map[string][]Field{
		"no members":  {{Name: "image"}, {Name: "p", Column: "a", Points: p}},
		"both called": {{Name: "p_count"}, {Name: "p", Points: p}},
		"raster":      {{Name: "p", Points: p}},
	} {
		_, err := Open(t.Context(), Spec{Source: cube, BatchSize: 1, Fields: fields}, Options{})
		if says == "both called" {
			says = "two members"
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	sp := Spec{Source: cube, BatchSize: 1 << 20,
		Fields: []Field{{Name: "image"}, {Name: "p", Points: &spec.Points{Array: path, Most: 1 << 20}}}}
	e, err := Open(t.Context(), sp, Options{MemoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Start(t.Context(), shuffle.Ticket{Count: 1 << 20, RowStride: 1},
		false).Wait(t.Context()); fault.KindOf(err) != fault.Limit {
		t.Errorf("a batch of 2^40 points: %v", err)
	}
}

// TestPointsInContainers: rasters in a container are placed by their own headers, and not by the
// header of the container, which is the same for all. The chips lie side by side (read with GDAL):
// 24 pixels of 20 m each, 640 m apart.
func TestPointsInContainers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "points")
	var labels []label
	for k := range 3 {
		for i := range k + 1 {
			labels = append(labels, label{x: 500000 + 640*float64(k) + 20*(float64(i)+0.5), y: 4400000 - 20*7.25,
				v: int16(10*k + i)})
		}
	}
	writePoints(t, path, "y x", tiledb.Float64, -1e7, 1e7, labels)
	coast := filepath.Join(corpus.Testdata(t), "coast")
	for _, src := range []string{filepath.Join(coast, "coast.tacozip"), filepath.Join(coast, "parts", ".tacocat"),
		filepath.Join(coast, "coast_dir")} {
		for _, roots := range [][]string{nil, {coast, filepath.Dir(path)}} {
			sp := Spec{Source: src, BatchSize: 3, Fields: []Field{{Name: "image", Column: "s2/img.tif"},
				{Name: "p", Points: &spec.Points{Array: path, In: spec.WorldPoints, Most: 5}}}}
			e, err := Open(t.Context(), sp, Options{Workers: 2, Roots: roots})
			if err != nil {
				t.Fatal(err)
			}
			tk := shuffle.StepTicket(0, 0, 3, 0, 1)
			rows, err := e.Explain(t.Context(), tk)
			if err != nil {
				t.Fatal(err)
			}
			b := wait(t, e.Start(t.Context(), tk, false))
			for k := range 3 {
				if n := int(binary.LittleEndian.Uint64(b.Tensor("p_count").Data[8*k:])); n != k+1 ||
					len(rows[k].Points[0].Runs) == 0 {
					t.Fatalf("%s: %d points on chip %d, of %+v", src, n, k, rows[k].Points)
				}
				for i := range k + 1 {
					y, x, v := float32Of(b.Tensor("p"), 2*(5*k+i)), float32Of(b.Tensor("p"), 2*(5*k+i)+1),
						int16(uint16At(b.Tensor("p_values").Data, 5*k+i))
					if math.Abs(y-7.25) > 1e-3 || math.Abs(x-float64(i)-0.5) > 1e-3 || v != int16(10*k+i) {
						t.Errorf("%s: point %d of chip %d: %v at %v, %v", src, i, k, v, y, x)
					}
				}
			}
			b.Release()
			e.Close()
		}
	}
}
