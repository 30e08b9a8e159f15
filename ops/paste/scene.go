package paste

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// Emit writes a raster: write, which it calls once, writes the bytes of the file.
type Emit func(write func(io.Writer) error) error

// Scene assembles the predictions for the windows of a scene into a raster, a TOG with the scene's georeferencing,
// which may be ground control points. in is a NumPy file as NewWindows reads it; errors call it name. Its shape sets
// Bands, Height and Width of o. Pixels that are missing in all bands of the scene are nodata, as NaN is: see
// Ground. emit is called when all windows have come. Errors of options have no kind.
func Scene(ctx context.Context, files source.Opener, scene string, in io.Reader, name string, o Options, workers int,
	emit Emit) error {
	// No limit of chunks, because only the header of the scene is read.
	asset, _, err := catalog.OpenAsset(ctx, files, scene, math.MaxInt)
	if err != nil {
		return err
	}
	geo, tags, err := convert.ReadPlace(ctx, scene, files)
	if err != nil {
		return fault.WithFile(err, scene)
	}
	windows, err := NewWindows(in)
	if err != nil {
		return fault.WithFile(err, name)
	}
	o.Bands, o.Height, o.Width = windows.Bands, asset.Index.Height, asset.Index.Width
	// Before the windows are counted: a stride of 0 would divide by it.
	if err := o.check(); err != nil {
		return fault.WithFile(err, name)
	}
	if n := o.Grid.Count(o.Height, o.Width); n != int64(windows.N) || windows.H != o.Grid.H || windows.W != o.Grid.W {
		return fault.WithFile(fault.New(fault.Unsupported, "npy",
			"it has %d windows of %d by %d pixels, but this grid has %d windows of %d by %d in the scene",
			windows.N, windows.H, windows.W, n, o.Grid.H, o.Grid.W), name)
	}
	t := o.togOptions(geo, workers)
	t.Tags = append(t.Tags, tags...)
	gaps := gaps{ctx: ctx, files: files, scene: &asset, workers: max(workers, 1)}
	return spooled(t, emit, func(add func(y, rows int, strip []byte) error) error {
		return fault.WithFile(Image(o, windows.Read, func(y, rows int, strip []byte) error {
			if err := gaps.clear(y, rows, strip, o.Argmax); err != nil {
				return fault.WithFile(err, scene)
			}
			return add(y, rows, strip)
		}), name)
	})
}

// spooled writes a raster with emit, when fill has added all of its rows. Compressed tiles lie in a temporary file
// until then.
func spooled(t tog.Options, emit Emit, fill func(add func(y, rows int, strip []byte) error) error) error {
	spool, release, err := durable.Scratch()
	if err != nil {
		return err
	}
	defer release()
	target, err := newPyramid(t, spool)
	if err != nil {
		return err
	}
	if err := fill(func(_, rows int, strip []byte) error { return target.add(0, rows, strip) }); err != nil {
		return err
	}
	return emit(target.to.Write)
}

// gaps knows the pixels that are missing in all bands of a scene.
type gaps struct {
	ctx         context.Context
	files       source.Opener
	scene       *catalog.Asset
	workers     int
	first, last int    // rows that were read
	valid       []bool // of their pixels: whether a band has one
}

// gapBytes is about how much of a scene is read at a time: rows of some tiles of a Sentinel-2 scene.
const gapBytes = 64 << 20

// clear makes nodata of the missing pixels in rows of the image.
func (g *gaps) clear(y, rows int, strip []byte, classes bool) error {
	x := g.scene.Index
	if x.Masking() == nil && !x.HasNoData() {
		return nil
	}
	nothing := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	if classes {
		nothing = []byte{noClass}
	}
	plane := rows * x.Width * len(nothing)
	for row := range rows {
		if y+row < g.first || y+row >= g.last {
			if err := g.read(y + row); err != nil {
				return err
			}
		}
		for column, valid := range g.valid[(y+row-g.first)*x.Width:][:x.Width] {
			if valid {
				continue
			}
			for pos := (row*x.Width + column) * len(nothing); pos < len(strip); pos += plane {
				copy(strip[pos:], nothing)
			}
		}
	}
	return nil
}

// read looks at whole rows of chunks of the scene, from the one with row y on.
func (g *gaps) read(y int) error {
	x := g.scene.Index
	perRow := int64(max(x.DataBands(), 1)) * int64(x.Width) * int64(x.DType.Size()+1)
	rows := int(min(max(gapBytes/perRow, 1), int64(x.Height)))
	rows = max(rows/x.ChunkH, 1) * x.ChunkH
	g.first = y / x.ChunkH * x.ChunkH
	g.last = min(g.first+rows, x.Height)
	options := raster.ReadOptions{Layout: "b y x", Validity: true, Threads: g.workers,
		MaxBytes: math.MaxInt64,
		Y:        raster.Selection{Slice: true, Start: g.first, Stop: g.last},
		Options:  resources.Options{Opener: g.files, MaxChunkBytes: math.MaxInt32}}
	if x.Timed() {
		options.T = raster.Selection{List: []int{0}}
	}
	read, err := raster.Read(g.ctx, []string{g.scene.URI}, options)
	if err != nil {
		return err
	}
	defer read.Release()
	part := (g.last - g.first) * x.Width
	g.valid = slices.Grow(g.valid[:0], part)[:part]
	for i := range part {
		g.valid[i] = false
		for k := i; k < len(read.Valid) && !g.valid[i]; k += part {
			g.valid[i] = read.Valid[k] != 0
		}
	}
	return nil
}

// GroundGrid is a grid of square pixels on a map, which windows on the ground are put on.
type GroundGrid struct {
	EPSG        int
	West, North float64 // of its upper left corner, in units of the map
	Resolution  float64 // side of a pixel
}

// Ground blends windows that lie anywhere on a grid on the ground into a raster, a TOG.
// Bands, Height, Width and the sides of o.Grid describe the raster and the windows; o.Grid's other fields are set by
// Ground. in holds the windows one after the other, little-endian: two int32, the row and the column of the raster that
// the window's upper left pixel lies at, and the window as float32 in the order (bands, rows, columns). They must come
// from the top to the bottom: one that begins more than 512 rows above the one before it may be refused. What lies
// beside the raster is left out. Windows are summed in this order. name is what errors call in. emit is called when all
// windows have come.
//
// Pixels that no window has are nodata: NaN, or 255 with Argmax, which therefore takes at most 255 bands. So are pixels
// for which a window has NaN, with Argmax in all bands. Errors of options have no kind.
func Ground(in io.Reader, name string, g GroundGrid, o Options, workers int, emit Emit) error {
	h, w := o.Grid.H, o.Grid.W
	o.Grid = shuffle.Grid{H: h, W: w, StrideY: h, StrideX: w, AlignY: 1, AlignX: 1, Pad: true}
	err := g.check()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return fault.WithFile(err, name)
	}
	t := o.togOptions(tiff.Geo{EPSG: g.EPSG, HasTransform: true,
		Transform: [6]float64{g.West, g.Resolution, 0, g.North, 0, -g.Resolution}}, workers)
	return spooled(t, emit, func(add func(y, rows int, strip []byte) error) error {
		blender := newBlender(&o, add)
		err := blender.each(in)
		if err == nil {
			err = blender.end()
		}
		return fault.WithFile(err, name)
	})
}

func (g *GroundGrid) check() error {
	// GeoTIFF stores whether a code is one of longitudes and latitudes, which package crs knows.
	if _, ok := crs.ByCode(g.EPSG); !ok {
		return fault.New(fault.Unsupported, "grid", "EPSG:%d is not known", g.EPSG)
	}
	for _, v := range []float64{g.West, g.North, 1 / g.Resolution, g.Resolution} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the grid begins at %v, %v with pixels of %v: these must be finite numbers", g.West,
				g.North, g.Resolution)
		}
	}
	if g.Resolution <= 0 {
		return fmt.Errorf("resolution is %v: it must be over 0", g.Resolution)
	}
	return nil
}

// each reads and blends all windows.
func (b *windowBlender) each(in io.Reader) error {
	reader := bufio.NewReaderSize(in, 1<<16)
	row := make([]byte, 4*b.o.Grid.W)
	for j := 0; ; j++ {
		var corner [8]byte
		_, err := io.ReadFull(reader, corner[:])
		if errors.Is(err, io.EOF) {
			return nil
		}
		for i := 0; i < len(b.window) && err == nil; i += b.o.Grid.W {
			_, err = io.ReadFull(reader, row)
			for x := range b.o.Grid.W {
				b.window[i+x] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*x:]))
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return fault.New(fault.Corrupt, "windows", "it ends in window %d", j)
		case err != nil:
			return err
		}
		y, x := int32(binary.LittleEndian.Uint32(corner[:])), int32(binary.LittleEndian.Uint32(corner[4:]))
		if err := b.put(int(y), int(x)); err != nil {
			return err
		}
	}
}
