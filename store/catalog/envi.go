package catalog

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/format/envi"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// openENVI reads the header of an ENVI raster beside a file of samples: NAME.hdr, or NAME.dat.hdr. Without one the
// asset has no index.
func openENVI(ctx context.Context, o source.Opener, r source.Reader, uri string, maxChunk int) (a Asset, m Meta,
	err error) {
	m.Format = magic.Of(nil)
	head, err := source.Read(ctx, r, 0, min(magic.Head, r.Size()))
	if err != nil || magic.OfBytes(head) != "" {
		return a, m, err
	}
	text, err := besideENVI(ctx, o, uri)
	if text == "" || err != nil {
		return a, m, err
	}
	m.Format = magic.ENVI
	header, err := envi.Parse(text, r.Size(), cmp.Or(maxChunk, chunk.DefaultMaxBytes))
	if err != nil {
		return a, m, err
	}
	m.Size, a.Size = r.Size(), r.Size()
	a.Index, a.Names, m.Blob = header.Index, header.Names, blob.Append(nil, header.Index)
	m.EPSG, m.CRS, m.Transform = header.EPSG, header.CRS, header.Transform
	a.Place = m.Place(a.Index.Height, a.Index.Width)
	return a, m, nil
}

// IsENVI reports whether a file is an ENVI raster: it has the header of one beside it.
func IsENVI(ctx context.Context, o source.Opener, uri string) (bool, error) {
	text, err := besideENVI(ctx, o, uri)
	return text != "", err
}

// besideENVI returns the text of the ENVI header beside a file, or "" if the file has no such header.
func besideENVI(ctx context.Context, o source.Opener, uri string) (string, error) {
	ext := path.Ext(source.Name(uri))
	switch strings.ToLower(ext) {
	case "", ".img", ".dat", ".bin", ".raw", ".bsq", ".bil", ".bip", ".envi":
	default:
		return "", nil
	}
	for _, name := range [...]string{strings.TrimSuffix(uri, ext) + ".hdr", uri + ".hdr"} {
		file, err := o.Open(ctx, name)
		if err != nil {
			if err := source.Outage(err); err != nil {
				return "", err
			}
			continue
		}
		text, err := readENVI(ctx, file)
		if err := errors.Join(err, file.Close()); text != "" || err != nil {
			return text, fault.WithFile(err, name)
		}
	}
	return "", nil
}

// readENVI returns the text of a header, "" of another file.
func readENVI(ctx context.Context, r source.Reader) (string, error) {
	head, err := source.Read(ctx, r, 0, min(r.Size(), int64(len(envi.Magic))))
	if err != nil || string(head) != envi.Magic {
		return "", err
	}
	if r.Size() > envi.MaxHeader {
		return "", fault.New(fault.Limit, "ENVI header", "%d bytes, at most %d", r.Size(), envi.MaxHeader)
	}
	text, err := source.Read(ctx, r, 0, r.Size())
	return string(text), err
}
