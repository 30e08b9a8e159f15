package paste

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// Scene assembles the predictions for the windows of a scene and returns a function that writes the raster, a TOG with
// the scene's georeferencing, which may be ground control points. in is a NumPy file as NewWindows reads it; errors
// call it name. Its shape sets Bands, Height and Width of o. Pixels that are missing in all bands of the scene are
// nodata, and so are pixels of NaN: see Ground. Errors of options have no kind.
func Scene(ctx context.Context, files source.Opener, scene string, in io.Reader, name string, o Options,
	workers int) (write func(io.Writer) error, err error) {
	// No limit of chunks, because only the header of the scene is read.
	asset, _, err := catalog.OpenAsset(ctx, files, scene, math.MaxInt)
	if err != nil {
		return nil, err
	}
	geo, tags, err := convert.ReadPlace(ctx, scene, files)
	if err != nil {
		return nil, fault.WithFile(err, scene)
	}
	windows, err := NewWindows(in)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	o.Bands, o.Height, o.Width = windows.Bands, asset.Index.Height, asset.Index.Width
	// Before the windows are counted: a stride of 0 would divide by it.
	if err := o.check(); err != nil {
		return nil, fault.WithFile(err, name)
	}
	if n := o.Grid.Count(o.Height, o.Width); n != int64(windows.N) || windows.H != o.Grid.H || windows.W != o.Grid.W {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "npy", fault.NoOffset,
			"it has %d windows of %d by %d pixels, but this grid has %d windows of %d by %d in the scene",
			windows.N, windows.H, windows.W, n, o.Grid.H, o.Grid.W), name)
	}
	image, err := Image(o, windows.Read)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	if err := clearMissing(ctx, files, &asset, image, o, workers); err != nil {
		return nil, err
	}
	t := o.togOptions(geo, workers)
	t.Tags = tags
	return func(to io.Writer) error { return tiff.WriteTOG(to, image, t) }, nil
}

// missingBytes is about how much of a scene clearMissing holds: rows of some tiles of a Sentinel-2 scene.
const missingBytes = 64 << 20

// clearMissing makes nodata of the pixels of an image that are missing in all bands of its scene.
func clearMissing(ctx context.Context, files source.Opener, scene *catalog.Asset, image []byte, o Options,
	workers int) error {
	x := scene.Index
	if x.Masking() == nil && x.NoData == nil && x.NoDataBits == nil {
		return nil
	}
	bands := max(x.DataBands(), 1)
	perRow := int64(bands) * int64(x.Width) * int64(x.DType.Size()+1)
	rows := int(min(max(missingBytes/perRow, 1), int64(x.Height)))
	rows = max(rows/x.ChunkH, 1) * x.ChunkH
	plane, step := x.Height*x.Width, int64(chunk.Float32.Size())
	nothing := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	if o.Argmax {
		step, nothing = 1, []byte{noClass}
	}
	for first := 0; first < x.Height; first += rows {
		last := min(first+rows, x.Height)
		options := raster.ReadOptions{Layout: "b y x", Validity: true, Threads: max(workers, 1),
			MaxBytes: math.MaxInt64,
			Y:        raster.Selection{Slice: true, Start: first, Stop: last},
			Options:  resources.Options{Opener: files, MaxChunkBytes: math.MaxInt32}}
		if x.Timed() {
			options.T = raster.Selection{List: []int{0}}
		}
		read, err := raster.Read(ctx, []string{scene.URI}, options)
		if err != nil {
			return err
		}
		part := (last - first) * x.Width
		for i := range part {
			found := false
			for k := i; k < len(read.Valid) && !found; k += part {
				found = read.Valid[k] != 0
			}
			if found {
				continue
			}
			for pos := int64(first*x.Width+i) * step; pos < int64(len(image)); pos += int64(plane) * step {
				copy(image[pos:], nothing)
			}
		}
		read.Release()
	}
	return nil
}

// GroundGrid is a grid of square pixels on a map, which windows on the ground are put on.
type GroundGrid struct {
	EPSG        int
	West, North float64 // of its upper left corner, in units of the map
	Resolution  float64 // side of a pixel
}

// Ground blends windows that lie anywhere on a grid on the ground and returns a function that writes the raster, a TOG.
// Bands, Height, Width and the sides of o.Grid describe the raster and the windows; o.Grid's other fields are set by
// Ground. in holds the windows one after the other, little-endian: two int32, the row and the column of the raster that
// the window's upper left pixel lies at, and the window as float32 in the order (bands, rows, columns). What lies
// beside the raster is left out. Windows are summed in this order. name is what errors call in.
//
// Pixels that no window has are nodata: NaN, or 255 with Argmax, which therefore takes at most 255 bands. So are pixels
// for which a window has NaN, with Argmax in all bands. Errors of options have no kind.
func Ground(in io.Reader, name string, g GroundGrid, o Options, workers int) (
	write func(io.Writer) error, err error) {
	h, w := o.Grid.H, o.Grid.W
	o.Grid = shuffle.Grid{H: h, W: w, StrideY: h, StrideX: w, AlignY: 1, AlignX: 1, Pad: true}
	err = g.check()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	blender := newBlender(&o)
	if err := blender.each(in); err != nil {
		return nil, fault.WithFile(err, name)
	}
	image := blender.image()
	options := o.togOptions(tiff.Geo{EPSG: g.EPSG, HasTransform: true,
		Transform: [6]float64{g.West, g.Resolution, 0, g.North, 0, -g.Resolution}}, workers)
	return func(to io.Writer) error { return tiff.WriteTOG(to, image, options) }, nil
}

func (g *GroundGrid) check() error {
	// GeoTIFF stores whether a code is one of longitudes and latitudes, which package crs knows.
	if _, ok := crs.ByCode(g.EPSG); !ok {
		return fault.New(fault.Unsupported, "grid", fault.NoOffset, "EPSG:%d is not known", g.EPSG)
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
			return fault.New(fault.Corrupt, "windows", fault.NoOffset, "it ends in window %d", j)
		case err != nil:
			return err
		}
		y, x := int32(binary.LittleEndian.Uint32(corner[:])), int32(binary.LittleEndian.Uint32(corner[4:]))
		b.put(int(y), int(x))
	}
}
