package raster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// rumiFrames is the line of JSON before the frames of `chaski frame --pack`: the layout of the file, and how many bytes
// each frame has, or the graph by which the samples that follow are compressed.
type rumiFrames struct {
	Shape        [3]int    `json:"shape"` // bands, height, width
	DType        string    `json:"dtype"`
	Tile         [2]int    `json:"tile"` // height and width, in pixels
	Generation   int       `json:"generation"`
	Cells        bool      `json:"cells"`
	Times        int       `json:"times"`     // steps of time; 0 is 1
	Unit         string    `json:"unit"`      // what a frame of generation 3 holds; empty is "tile"
	Transform    []float64 `json:"transform"` // (a, b, c, d, e, f)
	EPSG         int       `json:"epsg"`
	PixelIsPoint bool      `json:"pixel_is_point"` // transform refers to the centres of pixels
	Bands        []string  `json:"bands"`
	Time         []string  `json:"time"` // of each step, as ISO 8601, or begin/end
	Counts       []int64   `json:"counts"`
	Graph        string    `json:"graph"`
	Level        int       `json:"level"`
	Geozl        int       `json:"geozl"`
	MaxCost      float64   `json:"max_cost"`
}

// pack writes the rumi file of the frames in standard input, and prints its header blob in hexadecimal.
func pack(ctx context.Context, env console.Env, to string) error {
	reader := bufio.NewReaderSize(env.In, 1<<20)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return err
	}
	var f rumiFrames
	if err := json.Unmarshal(line, &f); err != nil {
		return console.WrongUsage(err)
	}
	layout, err := f.layout()
	if err != nil {
		return console.WrongUsage(err)
	}
	// Check the bytes behind the frames now: minutes of compression may come before they are written.
	tail, err := layout.Tail()
	if err != nil {
		return console.WrongUsage(err)
	}
	frames := io.Reader(reader)
	if f.Graph != "" {
		if frames, err = f.compress(reader, layout); err != nil {
			return console.UsageUnlessFault(err)
		}
	}
	head, blob, err := rumi.Head(f.Counts, layout)
	if err != nil {
		return console.WrongUsage(err)
	}
	err = env.WriteFile(ctx, to, func(w io.Writer) error {
		if _, err := w.Write(head); err != nil {
			return err
		}
		for _, count := range f.Counts {
			if _, err := io.CopyN(w, frames, count); err != nil {
				return err
			}
		}
		_, err := w.Write(tail)
		return err
	})
	if err == nil {
		_, err = fmt.Fprintln(env.Out, hex.EncodeToString(blob))
	}
	return err
}

// compress compresses samples and sets Counts.
func (f *rumiFrames) compress(in io.Reader, layout rumi.Layout) (io.Reader, error) {
	var frames bytes.Buffer
	f.Counts = nil
	options := convert.Options{Graph: f.Graph, Level: f.Level, Geozl: f.Geozl, MaxCost: f.MaxCost,
		Workers: runtime.GOMAXPROCS(0)}
	err := convert.Frames(layout, in, options, func(frame []byte) error {
		f.Counts = append(f.Counts, int64(len(frame)))
		_, err := frames.Write(frame)
		return err
	})
	return &frames, err
}

// layout returns the layout of the file.
func (f *rumiFrames) layout() (l rumi.Layout, err error) {
	l.Shape, l.TileH, l.TileW = f.Shape, f.Tile[0], f.Tile[1]
	l.Generation, l.Cells = f.Generation, f.Cells
	if l.DType, err = chunk.ParseDType(f.DType); err != nil {
		return l, err
	}
	if l.Generation == 3 {
		if err := f.cube(&l); err != nil {
			return l, err
		}
	}
	transform := f.Transform
	if len(transform) == 0 && f.EPSG == 0 {
		return l, nil
	}
	if len(transform) == 0 || f.EPSG == 0 {
		return l, fmt.Errorf("transform and crs belong together")
	}
	if len(transform) != 6 {
		return l, fmt.Errorf("transform is %v: it must be (a, b, c, d, e, f)", transform)
	}
	least := 1
	if l.Generation > 1 {
		least = 1024
	}
	if f.EPSG < least || f.EPSG > 32766 { // GeoTIFF leaves 32767 for CRSs that the file itself defines
		return l, fmt.Errorf("crs is EPSG:%d: files of generation %d take codes of %d to 32766", f.EPSG, l.Generation,
			least)
	}
	l.PixelIsPoint = f.PixelIsPoint
	l.Geo = &tiff.Geo{
		EPSG: f.EPSG, HasTransform: true, Transform: [6]float64{transform[2], transform[0], transform[1],
			transform[5], transform[3], transform[4]},
	}
	return l, nil
}

// cube sets what only files of generation 3 have.
func (f *rumiFrames) cube(l *rumi.Layout) (err error) {
	l.Times = max(f.Times, 1)
	if l.Unit, err = rumi.ParseUnit(cmp.Or(f.Unit, "tile"), l.Shape[0], l.Times); err != nil {
		return err
	}
	l.Trailer = &rumi.Trailer{Bands: f.Bands}
	l.Trailer.Kind, l.Trailer.Times, err = rumi.ParseTimes(f.Time)
	return err
}

// rumiHeader is the JSON about a header blob or a file. The fields from Bands to PixelIsPoint are set for files only.
type rumiHeader struct {
	Shape      []int       `json:"shape"` // bands, height, width, with the steps of time in front if there are several
	DType      chunk.DType `json:"dtype"`
	Tile       [2]int      `json:"tile"`         // height and width of a tile, in pixels
	Generation int         `json:"generation"`   // of the format, 1 to 3
	Cells      bool        `json:"cells"`        // a frame holds all bands and steps of a place in the grid, not one
	Times      int         `json:"time_count"`   // steps of time
	Frame      string      `json:"frame_layout"` // axes of a frame, such as "h w b"
	Order      []string    `json:"index_order"`  // axes along which a place in the grid has several frames
	Bands      []string    `json:"bands"`
	Kind       *string     `json:"time_kind"` // "instant" or "interval"
	// Time is a date or a time in UTC for each step, or a pair of them.
	Time         []any     `json:"time"`
	Transform    []float64 `json:"transform"`      // affine coefficients (a, b, c, d, e, f)
	EPSG         *int      `json:"crs"`            // EPSG code
	PixelIsPoint *bool     `json:"pixel_is_point"` // transform refers to the centres of pixels
	Offsets      []int64   `json:"offsets"`        // of the frames, in bytes
	Counts       []int64   `json:"counts"`         // bytes of the frames
	Blob         string    `json:"blob"`           // in hexadecimal
}

// rumiFile describes a rumi file.
func rumiFile(ctx context.Context, files source.Opener, path string) (header rumiHeader, err error) {
	_, meta, err := catalog.OpenAsset(ctx, files, path, 0)
	if err != nil {
		return header, err
	}
	described, err := survey.Describe(ctx, path, nil, loader.Options{Opener: files})
	if err != nil {
		return header, err
	}
	fileInfo, ok := described.(*survey.FileInfo)
	if !ok || fileInfo.Rumi == nil {
		return header, fault.WithFile(fault.New(fault.Unsupported, "header", "not a rumi file, but another TIFF"), path)
	}
	header = rumiHeader{Bands: fileInfo.TIFF.BandNames, Time: []any{}, PixelIsPoint: &fileInfo.Rumi.PixelIsPoint}
	if fileInfo.Rumi.TimeKind != "" {
		header.Kind = &fileInfo.Rumi.TimeKind
	}
	if fileInfo.TIFF.EPSG > 0 {
		header.EPSG = &fileInfo.TIFF.EPSG
	}
	each := 1
	if fileInfo.Rumi.TimeKind == rumi.Interval.String() {
		each = 2
	}
	for step := range slices.Chunk(fileInfo.Rumi.Times, each) {
		if each == 1 {
			header.Time = append(header.Time, step[0])
		} else {
			header.Time = append(header.Time, step)
		}
	}
	if transform := fileInfo.TIFF.Transform; transform != nil { // of corners
		c, y := transform[0], transform[3]
		if fileInfo.Rumi.PixelIsPoint {
			c, y = c+(transform[1]+transform[2])/2, y+(transform[4]+transform[5])/2
		}
		header.Transform = []float64{transform[1], transform[2], c, transform[4], transform[5], y}
	}
	return header, header.parse(meta.Blob)
}

// parse sets what a header blob says.
func (h *rumiHeader) parse(b []byte) error {
	header, err := rumi.ParseLimit(b, math.MaxInt)
	if err != nil {
		return err
	}
	h.Shape, h.DType, h.Tile = header.Shape[:], header.DType, [2]int{header.TileH, header.TileW}
	h.Generation, h.Cells, h.Times = header.Generation, header.Cells, header.Times
	h.Frame, h.Order = header.Unit.Axes(header.Shape[0], header.Times), append([]string{}, header.Order()...)
	if header.Times > 1 {
		h.Shape = append([]int{header.Times}, h.Shape...)
	}
	h.Offsets, h.Counts, h.Blob = []int64{}, []int64{}, hex.EncodeToString(b)
	for _, frame := range header.Frames() {
		h.Offsets, h.Counts = append(h.Offsets, frame.Off), append(h.Counts, int64(frame.Len))
	}
	return nil
}

// describeRumi prints what the header blobs of files say, as a line of JSON for each. The path "-" stands for a header
// blob in in.
func describeRumi(ctx context.Context, w io.Writer, in io.Reader, files source.Opener, paths []string) error {
	for _, path := range paths {
		var header rumiHeader
		var err error
		if path != "-" {
			header, err = rumiFile(ctx, files, path)
		} else if b, readErr := io.ReadAll(io.LimitReader(in, maxBlob)); readErr != nil {
			err = readErr
		} else {
			err = header.parse(b)
		}
		if err != nil {
			return err
		}
		if err := console.PrintInput(w, header); err != nil {
			return err
		}
	}
	return nil
}

// maxBlob is the most bytes of a header blob that is read from standard input.
const maxBlob = 64 << 20
