package taco

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// openChunk returns the header and directory of a TIFF whose only tile or strip is the chunk of an entry, whose bytes
// follow them. Its image is the part of the sample that the chunk covers. It reads the sample's own header, but not
// the chunk.
func openChunk(ctx context.Context, o source.Opener, e store.Entry) (head []byte, err error) {
	image, err := openSample(ctx, o, *e.Of)
	if err != nil {
		return nil, err
	}
	index := image.Index
	number, err := ownChunk(index, e)
	plain := !index.BigEndian && len(index.Params) == 0 && index.Packed == 0 && !index.Reversed
	if err == nil && !plain {
		err = fault.WithFile(fault.At(fault.Unsupported, "chunk "+e.Path, e.Offset,
			"single chunks of big-endian TIFFs, of samples of odd widths, or of the codec %s with parameters, "+
				"cannot be read", index.Codec), e.URI)
	}
	if err != nil {
		return nil, err
	}
	return ifdOf(image, number, e.Size), nil
}

// openSample reads the header of a sample that is a TIFF.
func openSample(ctx context.Context, o source.Opener, e store.Entry) (*tiff.Image, error) {
	file, err := e.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	im, err := tiff.Open(ctx, file, tiff.Limits{})
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fault.WithFile(fault.WithPart(err, "sample "+e.Path, e.Offset), e.URI)
	}
	return im, nil
}

// chunkIndex returns the number in a chunk index of chunk k of the file. TIFF stores all chunks of
// one band before the next band, an index all bands of one position.
func chunkIndex(x *chunk.Index, k int) int {
	positions := x.Across() * x.Down()
	return k%positions*x.Groups() + k/positions
}

// ownChunk returns the number of a chunk in the index of its sample, which must have it at the same place.
func ownChunk(x *chunk.Index, e store.Entry) (int, error) {
	bad := func(format string, args ...any) (int, error) {
		return 0, fault.WithFile(fault.At(fault.Corrupt, "chunk "+e.Path, e.Offset, format, args...), e.URI)
	}
	if e.Number >= len(x.Ranges) {
		return bad("the chunks of the sample are 0 to %d", len(x.Ranges)-1)
	}
	i := chunkIndex(x, e.Number)
	if r := x.Ranges[i]; r.Len != e.Size || r.Len > 0 && r.Off != e.Offset-e.Of.Offset {
		return bad("%d bytes, the sample's own index has %d at %d", e.Size, r.Len, e.Of.Offset+r.Off)
	}
	return i, nil
}

// verifyRasters compares the rows of chunks, and the headers in the tables, with the rasters themselves.
func (d *Dataset) verifyRasters(ctx context.Context, r *Report) error {
	headers := make([]*Headers, d.Levels())
	some := slices.ContainsFunc(d.parts, func(p *model.Container) bool { return p.Chunks != nil })
	for k := range headers {
		var err error
		if headers[k], err = d.Headers(ctx, k, ""); err != nil {
			return err
		}
		some = some || headers[k] != nil
	}
	if !some {
		return nil
	}
	missing := 0
	// With padding, since histograms count as such and have chunks, too.
	for sample, err := range d.Leaves(ctx, true) {
		if err == nil && !sample.Padding {
			err = d.verifyChunks(ctx, sample, &missing)
		}
		if err != nil {
			return err
		}
		if headers[sample.Level] != nil {
			err = d.verifyHeader(ctx, sample, headers[sample.Level])
		}
		// Rasters with chunks beyond the limits of verifying, and rasters of missing source files, are left out.
		k := fault.KindOf(err)
		if err != nil && k != fault.Limit && k != fault.NotFound && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if missing > 0 {
		r.Note("%d chunks of samples have no row", missing)
	}
	return nil
}

// verifyChunks compares the rows of the chunks of a sample with its own index. It skips one that is no TIFF that this
// program reads.
func (d *Dataset) verifyChunks(ctx context.Context, e store.Entry, missing *int) error {
	part, row := d.place(e.Level, e.Row)
	chunks := d.parts[part].Chunks
	if chunks == nil {
		return nil
	}
	image, err := openSample(ctx, d.opener, e)
	if fault.KindOf(err) != 0 {
		return nil
	}
	for number := 0; err == nil && number < len(image.Index.Ranges); number++ {
		var c store.Entry
		c, err = chunks.Of(ctx, e.Level, row, strconv.Itoa(number))
		switch {
		case fault.KindOf(err) == fault.NotFound:
			*missing++
			err = nil
		case err == nil:
			c.Path = e.Path + source.Separator + strconv.Itoa(number)
			_, err = ownChunk(image.Index, c)
		}
	}
	return err
}

// verifyHeader compares the header in the row of a raster with its own.
func (d *Dataset) verifyHeader(ctx context.Context, e store.Entry, h *Headers) error {
	stored, names, err := h.Of(e.Row, 0)
	if err == nil && stored == nil {
		return nil
	}
	var file catalog.Asset
	if err == nil {
		file, _, err = catalog.OpenAsset(ctx, e.Alone(d.opener), e.URI, 0)
	}
	bad := func(what string) error {
		return fault.New(fault.Corrupt, "", "its row has %s of another file", what)
	}
	switch {
	case err != nil:
	case !catalog.Matches(file.Index, stored):
		err = bad("the header")
	case names != nil && file.Names != nil && !slices.Equal(names, file.Names):
		err = bad("names of the bands")
	}
	return fault.WithFile(fault.WithPart(err, "sample "+e.Path, 0), e.URI)
}

// ifdOf returns the header and directory of a TIFF with chunk i alone, which has size bytes.
func ifdOf(im *tiff.Image, i int, size int64) []byte {
	index, box := im.Index, im.Index.Box(i)
	format, bits := tiff.FormatOf(index.DType)
	bands := box.B1 - box.B0
	fields := []ifdwrite.Field{
		ifdwrite.Longs(ifd.TagImageWidth, uint32(box.X1-box.X0)), ifdwrite.Longs(ifd.TagImageLength,
			uint32(box.Y1-box.Y0)),
		ifdwrite.Shorts(ifd.TagBitsPerSample, slices.Repeat([]uint16{bits}, bands)...),
		ifdwrite.Shorts(ifd.TagCompression, im.Meta.Compression), ifdwrite.Shorts(ifd.TagPhotometric, 1),
		ifdwrite.Shorts(ifd.TagSamplesPerPixel, uint16(bands)), ifdwrite.Shorts(ifd.TagPlanarConfig, 1),
		ifdwrite.Shorts(ifd.TagPredictor, uint16(index.Predictor)),
		ifdwrite.Shorts(ifd.TagSampleFormat, slices.Repeat([]uint16{format}, bands)...),
	}
	if im.Meta.NoData != "" {
		fields = append(fields, ifdwrite.Text(ifd.TagGDALNoData, im.Meta.NoData))
	}
	offsets, counts := uint16(ifd.TagTileOffsets), uint16(ifd.TagTileByteCounts)
	if im.Meta.Tiled {
		fields = append(fields, ifdwrite.Longs(ifd.TagTileWidth, uint32(index.ChunkW)),
			ifdwrite.Longs(ifd.TagTileLength, uint32(index.ChunkH)))
	} else {
		offsets, counts = ifd.TagStripOffsets, ifd.TagStripByteCounts
		fields = append(fields, ifdwrite.Longs(ifd.TagRowsPerStrip, uint32(box.Y1-box.Y0)))
	}
	fields = append(fields, ifdwrite.Long8s(offsets, 0), ifdwrite.Long8s(counts, uint64(size)))
	const dir = 16
	start := max(ifdwrite.End(dir, fields), readAhead)
	// Only now, because the place of the chunk follows from the size of the directory.
	fields[len(fields)-2] = ifdwrite.Long8s(offsets, uint64(start))
	return ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, dir), dir, fields)
}

// readAhead is the number of bytes that readers of TIFF read at the beginning of a file. The chunk
// is placed after them, so it is fetched by itself, and only once.
const readAhead = 64 << 10

// image returns the header of a sample that is a TIFF. It keeps the headers of the last ones.
func (d *Dataset) image(ctx context.Context, e store.Entry) (*tiff.Image, error) {
	key := levelRow{e.Level, e.Row}
	if im, ok := d.images.Get(key); ok {
		return im, nil
	}
	im, err := openSample(ctx, d.opener, e)
	if err == nil {
		d.images.Add(key, im, 1<<10+int64(cap(im.Index.Ranges))*16)
	}
	return im, err
}

// ChunkIndex returns the chunk index of an image that is a single chunk, found by Resolve. Its only
// range is where the chunk lies in the file. It reads the header of the chunk's sample once.
func (d *Dataset) ChunkIndex(ctx context.Context, e store.Entry) (*chunk.Index, error) {
	if e.Of == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "sample "+e.Path, "is not a chunk"),
			e.URI)
	}
	image, err := d.image(ctx, *e.Of)
	if err != nil {
		return nil, err
	}
	i, err := ownChunk(image.Index, e)
	if err != nil {
		return nil, err
	}
	single, box := *image.Index, image.Index.Box(i)
	single.Bands, single.Height, single.Width = box.B1-box.B0, box.Y1-box.Y0, box.X1-box.X0
	single.ChunkB, single.Mask = single.Bands, nil
	single.Ranges = []chunk.Range{{Off: e.Offset, Len: e.Size}}
	return &single, nil
}

// imageBytes limits the memory of the headers of samples that a dataset keeps.
const imageBytes = 8 << 20
