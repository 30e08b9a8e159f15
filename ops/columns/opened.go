package columns

import (
	"context"
	"errors"

	"github.com/chaski-eo/chaski/fault"
	loaded "github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// name is the name of a file while it is read. rowOpener and opened ignore it.
const name = "raster"

// rowOpener opens the bytes of a row, under any name.
type rowOpener struct {
	opener source.Opener
	row    *build.Row
}

// Open implements source.Opener.
func (o rowOpener) Open(ctx context.Context, _ string) (source.Reader, error) {
	return o.row.Open(ctx, o.opener)
}

// opened opens a file that is open already, under any name.
type opened struct{ r source.Reader }

// Open implements source.Opener.
func (o opened) Open(context.Context, string) (source.Reader, error) { return unclosed{o.r}, nil }

// unclosed is a reader whose owner closes it.
type unclosed struct{ source.Reader }

// Close implements source.Reader.
func (unclosed) Close() error { return nil }

// Gap implements source.Gapped, ETag source.Tagged. Both ask the file.
func (u unclosed) Gap() int64   { return source.Gap(u.Reader) }
func (u unclosed) ETag() string { return source.ETag(u.Reader) }

// bare returns an error without the name of rowOpener.
func bare(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.File != name {
		return err
	}
	f := *e
	f.File = ""
	return &f
}

// maxRasterBytes bounds the pixels of a raster whose statistics are computed. Percentiles are exact, so all of them are
// in memory: 256 MiB hold 8 bands of 4,096 by 4,096 pixels of uint16. A worker holds at most as much, and 8 bytes for
// each pixel of one band beside.
const maxRasterBytes = 256 << 20

// readBands reads a raster of bands, y and x.
func readBands(ctx context.Context, o source.Opener, how loaded.ReadOptions) (*loaded.Array, error) {
	array, err := readAll(ctx, o, how)
	if err == nil && len(array.Shape) != 3 {
		array.Release()
		err = fault.New(fault.Unsupported, "image", fault.NoOffset,
			"has axes %v: statistics are of bands, y and x", array.Axes)
	}
	return array, err
}

// readAll reads a raster of any axes.
func readAll(ctx context.Context, o source.Opener, how loaded.ReadOptions) (*loaded.Array, error) {
	how.MaxBytes, how.Options.Opener = maxRasterBytes, o
	return loaded.Read(ctx, []string{name}, how)
}
