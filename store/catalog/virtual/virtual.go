// Package virtual makes the pixels of GDAL's virtual rasters (VRT) of their sources, where package store/catalog opens
// one.
package virtual

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vrt"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/epsg"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
	"github.com/chaski-eo/chaski/store/catalog/internal/sidecar"
	"github.com/chaski-eo/chaski/tiff"
)

// virtual is the bands of a virtual raster (VRT) or its mask. It implements catalog.Virtual. Its sources are opened
// when a window needs them.
type virtual struct {
	set      *vrt.Dataset
	bands    []vrt.Band // of set, or the mask
	index    chunk.Index
	fills    [][]byte // the sample of each band where no source has one; nil for 0
	opener   source.Opener
	maxChunk int
	id       uint64   // of no other one
	cost     int64    // bytes of memory
	chain    []string // the URIs of the virtual rasters that lead here; the last is its own
}

// A chunk of a virtual raster is no unit of its sources. Chunks are narrow: a window costs few columns beside
// its own; of their rows, readers ask for those that they need.
const virtualHeight, virtualWidth = 512, 64

// tagBytes is about the memory of a tag of a virtual raster: of files by gdalbuildvrt, and of those with little text.
const tagBytes = 200

// maxChain is how deep virtual rasters may be sources of each other.
const maxChain = 8

// maxNested bounds the windows of sources of sources that make a box: eight rasters that each show the next one a
// hundred times would be read for years.
const maxNested = 1 << 16

// nestedKey is the key of their number in the context of a box, an *int.
type nestedKey struct{}

// chainKey is the key of virtual.chain of the raster whose sources a context opens.
type chainKey struct{}

func init() { catalog.OpenVirtual = open }

// open makes the asset of a virtual raster.
func open(ctx context.Context, o source.Opener, r source.Reader, uri string, maxChunk int) (a catalog.Asset,
	m catalog.Meta, err error) {
	m.Format = magic.VRT
	if m.Size, a.Size = r.Size(), r.Size(); m.Size > vrt.MaxBytes {
		return a, m, fault.New(fault.Limit, "VRT", "%d bytes, at most %d", m.Size, vrt.MaxBytes)
	}
	if err = budget.Grow(ctx, m.Size); err != nil {
		return a, m, err
	}
	data, err := source.Read(ctx, r, 0, m.Size)
	if err != nil {
		return a, m, err
	}
	tags := tagBytes * int64(bytes.Count(data, []byte("<")))
	if err = budget.Grow(ctx, tags); err != nil {
		return a, m, err
	}
	set, err := vrt.Parse(ctx, data)
	if err != nil {
		return a, m, err
	}
	chain, _ := ctx.Value(chainKey{}).([]string)
	v := virtual{set: set, opener: o, maxChunk: cmp.Or(maxChunk, chunk.DefaultMaxBytes), cost: m.Size + tags,
		chain: append(slices.Clip(chain), uri)}
	if chain == nil { // sources have bands as they stand in the file
		splitAlpha(set)
	}
	if a.Index, err = v.of(set.Bands); err != nil {
		return a, m, err
	}
	if set.Mask != nil {
		if a.Index.Mask, err = v.of([]vrt.Band{{DType: set.Mask.DType, Sources: set.Mask.Sources}}); err != nil {
			return a, m, fault.WithPart(err, "mask", fault.NoOffset)
		}
	}
	names := make([]string, len(set.Bands))
	for i := range set.Bands {
		names[i] = set.Bands[i].Name
	}
	if strings.Join(names, "") != "" {
		a.Names = names
	}
	m.EPSG, m.CRS = epsg.Described(set.SRS)
	a.CRSName = set.SRS
	m.Transform = sidecar.Transform(set.Transform)
	a.Place = m.Place(a.Index.Height, a.Index.Width)
	return a, m, a.Index.Validate(-1, v.maxChunk)
}

// splitAlpha makes a mask of alpha of another dtype than the bands, which gdalbuildvrt -addalpha makes. A mask or a
// nodata value counts in its place, as with alpha of one dtype.
func splitAlpha(set *vrt.Dataset) {
	n := len(set.Bands) - 1
	alpha := set.Bands[n]
	if (n != 1 && n != 3) || alpha.Colour != tiff.AlphaColour {
		return
	}
	if alpha.DType != chunk.Uint8 || set.Bands[0].DType == chunk.Uint8 {
		return
	}
	set.Bands = set.Bands[:n]
	if set.Mask == nil && (set.Bands[0].NoData == "" || set.Bands[0].HideNoData) {
		set.Mask = &alpha
	}
}

// of returns the index of some bands.
func (v virtual) of(bands []vrt.Band) (*chunk.Index, error) {
	v.id, v.bands, v.fills = virtuals.Add(1), bands, make([][]byte, len(bands))
	x, first := &v.index, &bands[0]
	*x = chunk.Index{Bands: len(bands), Height: v.set.Height, Width: v.set.Width, DType: first.DType, ChunkB: 1,
		ChunkH: virtualHeight, ChunkW: virtualWidth, Predictor: chunk.NoPredictor, CutEdge: true, CutRight: true}
	x.Alpha = tiff.IsAlpha(bands[len(bands)-1].Colour, x)
	linear, nodata := make([]tiff.Band, len(bands)), make([][]chunk.NoData, len(bands))
	for i := range bands {
		band := &bands[i]
		if band.DType != first.DType {
			return nil, fault.New(fault.Unsupported, "bands", "band %d is %s and band 1 is %s: make a TIFF of one "+
				"type, as by 'gdal_translate -ot Float32 x.vrt x.tif'", i+1, band.DType, first.DType)
		}
		missing := chunk.Index{DType: band.DType}
		missing.NoData, missing.NoDataBits = tiff.NoData(band.NoData, band.DType)
		if v.fills[i] = missing.NoDataSample(); !band.HideNoData && missing.HasNoData() {
			nodata[i] = []chunk.NoData{{Value: missing.NoData, Bits: missing.NoDataBits}}
		}
		linear[i] = tiff.Band{Scale: band.Scale, Offset: band.Offset}
	}
	if err := x.SetEachNoData(nodata); err != nil {
		return nil, err
	}
	x.Classes = len(bands) == 1 && first.Colours != nil && x.DType.Integer()
	x.Physical = tiff.Physical(x, linear)
	return x.WithBlocks(chunk.Blocks{Array: &v}), nil
}

// sources keeps opened sources of virtual rasters. 64 MiB are about 60,000 of 512 by 512 pixels.
var sources = lru.New[virtualSource, catalog.Asset](64 << 20)

// virtualSource names a source without a pointer, which would keep its virtual raster in memory.
type virtualSource struct {
	of   uint64
	file int
}

var virtuals atomic.Uint64 // how many of them and of their sources were opened

// source opens a source.
func (v *virtual) source(ctx context.Context, file int) (catalog.Asset, error) {
	key := virtualSource{v.id, file}
	if a, ok := sources.Get(key); ok {
		return a, nil
	}
	vrtURI, name := v.chain[len(v.chain)-1], v.set.Files[file].Name
	roots, uri, folder := openers.RootsOf(v.opener), name, listing.Folder(vrtURI)
	if v.set.Files[file].Relative {
		for source.IsRemote(vrtURI) && strings.HasPrefix(name, "../") { // stores have no such directories
			folder, name = listing.Folder(folder), name[len("../"):]
		}
		uri = listing.Resolve(roots, folder, name)
	}
	uri, err := roots.Allow(uri)
	switch {
	case err != nil:
		return catalog.Asset{}, err
	case source.IsRemote(vrtURI) && !source.IsRemote(uri):
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "SourceFilename",
			"%q is a local file, which a virtual raster on a server must not name", fault.Short(name)), vrtURI)
	case slices.Contains(v.chain, uri) || len(v.chain) >= maxChain:
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Limit, "SourceFilename",
			"virtual rasters are sources of each other in a circle, or more than %d deep", maxChain), vrtURI)
	}
	chain := context.WithValue(ctx, chainKey{}, v.chain)
	a, _, err := catalog.OpenSource(chain, v.opener, uri, v.maxChunk)
	if err == nil {
		a.Source = virtuals.Add(1)
		sources.Add(key, a, a.Cost())
	}
	return a, err
}

// Legend implements catalog.Virtual.
func (v *virtual) Legend() chunk.Legend { return v.bands[0].Legend() }

// Sources implements catalog.Virtual.
func (v *virtual) Sources() int { return len(v.set.Files) }

// Cost implements catalog.Virtual.
func (v *virtual) Cost() int64 { return v.cost }

// Open implements chunk.BlockArray. The reader is a catalog.Composer.
func (v *virtual) Open() chunk.BlockReader { return &virtualReader{v: v} }

// virtualReader reads a virtual raster for one worker. It makes the pixels of many boxes at once, so a chunk of a
// source that several boxes need is decoded once.
type virtualReader struct {
	v       *virtual
	read    catalog.SourceReader
	boxes   []chunk.Box // that are read next
	made    chunk.Box
	samples []byte // of made
}

// virtualBytes is about how many bytes of pixels are made at once.
const virtualBytes = 4 << 20

// SetSources implements catalog.Composer.
func (r *virtualReader) SetSources(read catalog.SourceReader) { r.read = read }

// Ahead implements chunk.Prefetcher.
func (r *virtualReader) Ahead(_ context.Context, _ int64, boxes []chunk.Box) error {
	r.boxes = append(r.boxes[:0], boxes...)
	if slices.ContainsFunc(boxes, func(b chunk.Box) bool { return join(b, r.made) != r.made }) {
		r.made = chunk.Box{}
	}
	return nil
}

// join returns the smallest box around two. The first has pixels.
func join(a, b chunk.Box) chunk.Box {
	if b == (chunk.Box{}) {
		return a
	}
	return chunk.Box{B0: min(a.B0, b.B0), B1: max(a.B1, b.B1), Y0: min(a.Y0, b.Y0), Y1: max(a.Y1, b.Y1),
		X0: min(a.X0, b.X0), X1: max(a.X1, b.X1)}
}

// bytes returns the size of the samples of a box.
func (v *virtual) bytes(b chunk.Box) int64 {
	return int64(b.B1-b.B0) * int64(b.Y1-b.Y0) * int64(b.X1-b.X0) * int64(v.index.DType.Size())
}

// ReadBox implements chunk.BlockReader.
func (r *virtualReader) ReadBox(ctx context.Context, dst []byte, _ int64, b chunk.Box) error {
	x, size := &r.v.index, r.v.index.DType.Size()
	if !b.Inside(x.Bands, x.Height, x.Width) {
		return fault.New(fault.NotFound, "window", "box %+v is not inside the image", b)
	}
	if join(b, r.made) != r.made {
		if err := r.produce(ctx, b); err != nil {
			return err
		}
	}
	line, width := (b.X1-b.X0)*size, (r.made.X1-r.made.X0)*size
	for band := b.B0; band < b.B1; band++ {
		for row := b.Y0; row < b.Y1; row++ {
			offset := ((band-r.made.B0)*(r.made.Y1-r.made.Y0)+row-r.made.Y0)*width + (b.X0-r.made.X0)*size
			copy(dst[:line], r.samples[offset:])
			dst = dst[line:]
		}
	}
	return nil
}

// produce makes the pixels of a box, and of boxes that follow it.
func (r *virtualReader) produce(ctx context.Context, b chunk.Box) error {
	next := slices.Index(r.boxes, b)
	area := b
	if next >= 0 {
		for _, box := range r.boxes[next:] {
			larger := join(box, area)
			if r.v.bytes(larger) > virtualBytes {
				break
			}
			area = larger
		}
		r.boxes = r.boxes[next:]
	}
	if larger := area; r.v.index.Alpha { // which is read after the other bands
		if larger.B1 = r.v.index.Bands; r.v.bytes(larger) <= 2*virtualBytes {
			area = larger
		}
	}
	r.made = chunk.Box{}
	r.samples = slices.Grow(r.samples[:0], int(r.v.bytes(area)))[:r.v.bytes(area)]
	plane := len(r.samples) / (area.B1 - area.B0)
	for i := range area.B1 - area.B0 {
		clear(r.samples[i*plane:][:plane])
		if fill := r.v.fills[area.B0+i]; fill != nil {
			kernel.Fill(r.samples[i*plane:][:plane], fill)
		}
	}
	if ctx.Value(nestedKey{}) == nil {
		ctx = context.WithValue(ctx, nestedKey{}, new(int))
	}
	if err := r.compose(ctx, area); err != nil {
		return err
	}
	r.made = area
	return nil
}

// compose puts the pixels of sources into r.samples, which are of a box. Sources with one number of several bands are
// read together if they are windows of one file.
func (r *virtualReader) compose(ctx context.Context, box chunk.Box) error {
	bands := r.v.bands[box.B0:box.B1]
	taken := make([]int, len(bands)) // sources of each band that are done
	for k := 0; ; k++ {
		pending := false
		for i := range bands {
			pending = pending || k < len(bands[i].Sources)
			if taken[i] > k || k >= len(bands[i].Sources) {
				continue
			}
			first := &bands[i].Sources[k]
			if !first.Meets(box.Y0, box.Y1, box.X0, box.X1) {
				continue
			}
			group := sourceGroup{first: first}
			for j := i; j < len(bands); j++ {
				if taken[j] > k || k >= len(bands[j].Sources) || !bands[j].Sources[k].Beside(first) {
					continue
				}
				taken[j] = k + 1
				group.sources = append(group.sources, &bands[j].Sources[k])
				group.planes = append(group.planes, j)
			}
			if err := r.add(ctx, box, &group); err != nil {
				return err
			}
		}
		if !pending {
			return ctx.Err()
		}
	}
}

// sourceGroup are sources that are windows of one file.
type sourceGroup struct {
	first   *vrt.Source
	sources []*vrt.Source
	planes  []int // their bands in the box
}

// add puts the pixels of sources into r.samples, which are of box.
func (r *virtualReader) add(ctx context.Context, box chunk.Box, g *sourceGroup) error {
	a, err := r.v.source(ctx, g.first.File)
	if err != nil {
		return err
	}
	x := a.Index
	bands := make([]int, len(g.sources))
	for i, s := range g.sources {
		if bands[i] = s.Band; s.Band >= x.Bands {
			return a.Fault(fault.New(fault.Corrupt, "SourceBand", "band %d of a raster of %d bands", s.Band+1, x.Bands))
		}
	}
	columns, lines, ok := g.first.Place(r.v.set, x.Width, x.Height)
	// GDAL resamples the sources of such a source.
	if ok && catalog.IsVirtual(x) && !(columns.Shifted() && lines.Shifted()) {
		return a.Fault(fault.New(fault.Unsupported, "VRT", "a virtual raster that another one shows at another "+
			"resolution is not read: make a TIFF of it, as by 'gdal_translate x.vrt x.tif'"))
	}
	left, right := max(columns.First, box.X0), min(columns.Last, box.X1)
	top, bottom := max(lines.First, box.Y0), min(lines.Last, box.Y1)
	if !ok || left >= right || top >= bottom {
		return nil
	}
	alpha := x.Bands // the number of the band that masks the others
	if x.Masking() == x {
		alpha--
	}
	for i, s := range g.sources {
		if s.OfMask && s.Band < alpha && alpha < x.Bands && x.DType == chunk.Uint8 { // the mask is alpha, as stored
			opaque := *s
			opaque.OfMask = false
			g.sources[i], bands[i] = &opaque, alpha
		}
	}
	window := chunk.Box{X0: columns.Pixel(left), X1: columns.Pixel(right-1) + 1}
	line := int64(window.X1-window.X0) * int64(x.DType.Size()+1) * int64(len(bands))
	if line > int64(max(r.v.maxChunk, virtualBytes)) {
		return a.Fault(fault.New(fault.Limit, "window",
			"%d columns of %d bands are over max_chunk, which is %d", window.X1-window.X0, len(bands), r.v.maxChunk))
	}
	maxRows := int(max(1, 2*virtualBytes/line))
	for row := top; row < bottom; {
		end := row + 1
		for end < bottom && lines.Pixel(end)-lines.Pixel(row) < maxRows {
			end++
		}
		if nested := ctx.Value(nestedKey{}).(*int); len(r.v.chain) > 1 {
			if *nested++; *nested > maxNested {
				return fault.New(fault.Limit, "VRT", "over %d windows of virtual rasters in each "+
					"other make a window of one: make TIFFs of them, as by 'gdal_translate x.vrt x.tif'", maxNested)
			}
		}
		window.Y0, window.Y1 = lines.Pixel(row), lines.Pixel(end-1)+1
		samples, valid, err := r.read(ctx, a, bands, window)
		if err != nil {
			return err
		}
		piece := vrt.Piece{X: &columns, Y: &lines, DType: x.DType, Y0: window.Y0, X0: window.X0,
			Width: window.X1 - window.X0, ToDType: r.v.index.DType, ToY0: box.Y0, ToX0: box.X0,
			ToWidth: box.X1 - box.X0, First: row, Last: end, Left: left, Right: right}
		n, planeLen := (window.Y1-window.Y0)*piece.Width, len(r.samples)/(box.B1-box.B0)
		for i, s := range g.sources {
			piece.Source, piece.To = s, r.samples[g.planes[i]*planeLen:][:planeLen]
			piece.Samples, piece.Valid = samples[i*n*x.DType.Size():][:n*x.DType.Size()], valid[i*n:][:n]
			if s.OfMask && s.Band == alpha { // alpha has no mask
				kernel.Fill(piece.Valid, []byte{1})
			}
			piece.Put()
		}
		row = end
	}
	return nil
}
