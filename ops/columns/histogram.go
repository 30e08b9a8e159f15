package columns

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/internal/zstd"
	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Histograms of a streaming TACO (TACO 0.2.0, "Precomputed Histogram information"): a stripped TIFF for each raster
// below the samples, with a band for each band, a row for each sample and a column for each bin.
const (
	histogramBins = 100
	// histogramLevels is the range to which values are scaled, 0 to 255. Bins divide it.
	histogramLevels = 255
	// stripRows is the number of samples in a strip: 256 rows of 100 counts of 4 bytes are 100 KiB.
	stripRows = 256
	// stripLevel is the zstd level of strips, as of TOGs.
	stripLevel = 13
)

// component is a raster that the samples of level 0 have, by its path below them.
type component struct {
	path  string
	bands int          // -1 if they differ between samples
	files []*build.Row // of each sample; nil for one without valid pixels
}

// Histograms implements build.Options.Histograms: it counts the valid pixels of the rasters of the deepest level, which
// have statistics, over the range of all of them. It returns none if they have no range.
func (c *Compute) Histograms(ctx context.Context, o source.Opener, levels []build.Level) (out []build.Histogram,
	err error) {
	deepest := &levels[len(levels)-1]
	lows, highs, err := bounds(ctx, deepest)
	if err != nil || lows == nil {
		return nil, err
	}
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i := range deepest.Rows {
		for b := range lows[i] {
			// Compared without min, so that NaN of a band without valid pixels does not count.
			if lows[i][b] < lowest {
				lowest = lows[i][b]
			}
			if highs[i][b] > highest {
				highest = highs[i][b]
			}
		}
	}
	if !(lowest <= highest) || math.IsInf(highest-lowest, 0) {
		return nil, nil
	}
	for _, part := range components(levels, lows) {
		data, err := c.count(ctx, o, part, lowest, highest)
		if err != nil {
			return nil, err
		}
		out = append(out, build.Histogram{Path: part.path, Bytes: data})
	}
	return out, nil
}

// bounds returns stats:min and stats:max of each row, or nil if the level has no such columns.
func bounds(ctx context.Context, l *build.Level) (lows, highs [][]float64, err error) {
	for i, name := range []string{momentNames[1], momentNames[2]} {
		if l.Table.Index(name) < 0 {
			return nil, nil, nil
		}
		vector, err := l.Table.Column(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if vector.Kind() != tables.List || vector.Type().Elem.Kind != tables.Float64 {
			return nil, nil, nil
		}
		out := make([][]float64, vector.Len())
		for row := range out {
			if !vector.Null(row) {
				values, start, end := vector.List(row)
				for k := start; k < end; k++ {
					out[row] = append(out[row], values.Float(k))
				}
			}
		}
		if i == 0 {
			lows = out
		} else {
			highs = out
		}
	}
	return lows, highs, nil
}

// components returns the rasters of the deepest level by their paths, in the order of the first sample that has them.
// Those whose number of bands differs between samples have no histogram.
func components(levels []build.Level, stats [][]float64) (out []component) {
	deepest := len(levels) - 1
	places := map[string]int{}
	for i := range levels[deepest].Rows {
		file := &levels[deepest].Rows[i]
		if file.Folder || file.Padding || len(stats[i]) == 0 {
			continue
		}
		below, _ := paths(levels, deepest, i)
		place, known := places[below]
		if !known {
			place = len(out)
			places[below] = place
			out = append(out, component{below, len(stats[i]), make([]*build.Row, len(levels[0].Rows))})
		}
		if out[place].bands != len(stats[i]) {
			out[place].bands = -1
		}
		row := i
		for l := deepest; l > 0; l-- {
			row = int(levels[l].Rows[row].Parent)
		}
		out[place].files[row] = file
	}
	return slices.DeleteFunc(out, func(c component) bool { return c.bands < 0 })
}

// count returns the histograms of a component as a TIFF.
func (c *Compute) count(ctx context.Context, o source.Opener, of component, lo, hi float64) ([]byte, error) {
	workers := c.Workers
	if workers <= 0 {
		workers = procs.Workers()
	}
	image := &strips{len(of.files), make([][]byte, of.bands), make([][][]byte, of.bands)}
	err := inorder.Do(ctx, len(of.files), workers,
		func(ctx context.Context, i int) ([][]uint32, error) {
			if of.files[i] == nil {
				return nil, nil
			}
			row := source.OpenOne(func(ctx context.Context) (source.Reader, error) { return of.files[i].Open(ctx, o) })
			counts, err := histogram(ctx, row, lo, hi)
			if err == nil && len(counts) != of.bands {
				err = fault.New(fault.Unsupported, "image", fault.NoOffset, "%d bands, where its statistics have %d",
					len(counts), of.bands)
			}
			return counts, fault.WithPart(bare(err), "sample "+of.files[i].ID, fault.NoOffset)
		},
		func(_ int, counts [][]uint32) error {
			image.append(counts)
			return nil
		}, func([][]uint32) {})
	if err != nil {
		return nil, err
	}
	return image.tiff(), nil
}

// histogram counts the valid pixels of a raster by band.
func histogram(ctx context.Context, o source.Opener, lo, hi float64) ([][]uint32, error) {
	array, err := readBands(ctx, o, loaded.ReadOptions{Validity: true})
	if err != nil {
		return nil, err
	}
	defer array.Release()
	size, count := array.DType.Size(), array.Shape[1]*array.Shape[2]
	out := make([][]uint32, array.Shape[0])
	var values []float64
	for b := range out {
		out[b] = make([]uint32, histogramBins)
		values = AppendValues(values[:0], array.Data[b*count*size:][:count*size], array.DType)
		for i, v := range values {
			if array.Valid[b*count+i] != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
				out[b][binOf(v, lo, hi)]++
			}
		}
	}
	return out, nil
}

// binOf returns the bin of a value.
func binOf(v, lo, hi float64) int {
	if hi == lo {
		return 0
	}
	const width = histogramLevels / float64(histogramBins)
	scaled := (v - lo) / (hi - lo) * histogramLevels
	bin := min(max(int(scaled/width), 0), histogramBins-1)
	// The quotient may round over an edge of a bin, so that it is compared with the edges. A bin has its lower edge,
	// and the last one both.
	switch {
	case scaled < float64(bin)*width:
		bin--
	case bin+1 < histogramBins && scaled >= float64(bin+1)*width:
		bin++
	}
	return bin
}

// strips collects the rows of histograms as the strips of a TIFF. Each band has strips of its own.
type strips struct {
	rows   int        // of the image
	bands  [][]byte   // rows of each band that are not in a strip yet
	stored [][][]byte // strips of each band
}

// append appends a row to each band, and ends a strip. A row of nil is one of zeros.
func (s *strips) append(counts [][]uint32) {
	for b := range s.bands {
		if counts == nil {
			s.bands[b] = append(s.bands[b], make([]byte, 4*histogramBins)...)
		} else {
			for _, n := range counts[b] {
				s.bands[b] = binary.LittleEndian.AppendUint32(s.bands[b], n)
			}
		}
		if len(s.bands[b]) == 4*histogramBins*stripRows {
			s.end(b)
		}
	}
}

// end ends a strip of a band.
func (s *strips) end(b int) {
	if len(s.bands[b]) > 0 {
		s.stored[b] = append(s.stored[b], zstd.Append(nil, s.bands[b], stripLevel))
		s.bands[b] = s.bands[b][:0]
	}
}

// compressionZstd is the value of the TIFF tag Compression.
const compressionZstd = 50000

// tiff returns the image.
func (s *strips) tiff() []byte {
	var lists [][]byte
	for b := range s.bands {
		s.end(b)
		lists = append(lists, s.stored[b]...)
	}
	const dir = 16 // behind the header of a BigTIFF
	offs, sizes := make([]uint64, len(lists)), make([]uint64, len(lists))
	// The directory has its size before it has its values, so that the strips behind it can be placed.
	pos := uint64(ifd.End(dir, s.fields(offs, sizes)))
	for i, strip := range lists {
		offs[i], sizes[i] = pos, uint64(len(strip))
		pos += sizes[i]
	}
	out := ifd.AppendDirectory(ifd.AppendHeader(nil, dir), dir, s.fields(offs, sizes))
	return append(out, bytes.Join(lists, nil)...)
}

// fields returns the directory of the image, whose strips have some offsets and sizes.
func (s *strips) fields(offs, sizes []uint64) []ifd.Field {
	bands := len(s.bands)
	fields := []ifd.Field{
		ifd.Longs(ifd.TagImageWidth, histogramBins), ifd.Longs(ifd.TagImageLength, uint32(s.rows)),
		ifd.Shorts(ifd.TagBitsPerSample, slices.Repeat([]uint16{32}, bands)...),
		ifd.Shorts(ifd.TagCompression, compressionZstd),
		ifd.Shorts(ifd.TagPhotometric, 1), ifd.Long8s(ifd.TagStripOffsets, offs...),
		ifd.Shorts(ifd.TagSamplesPerPixel, uint16(bands)), ifd.Longs(ifd.TagRowsPerStrip, stripRows),
		ifd.Long8s(ifd.TagStripByteCounts, sizes...), ifd.Shorts(ifd.TagPlanarConfig, 2),
	}
	if bands > 1 {
		fields = append(fields, ifd.Shorts(ifd.TagExtraSamples, make([]uint16, bands-1)...))
	}
	return append(fields, ifd.Shorts(ifd.TagSampleFormat, slices.Repeat([]uint16{1}, bands)...))
}
