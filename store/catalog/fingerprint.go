package catalog

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// hash sets the fingerprint: the XXH3-128 of
//
//	"chaski dataset 1\n", N, the number of fields,
//	and for each field its kind as one byte, the digest of its values and, of a file, of its sizes
//
// where numbers are 8 bytes, little-endian, and digests are XXH3-128, big-endian as its author
// writes them. The values' digest is over one record a row: its length as a number and its bytes.
// The bytes are the URI of a raster (if sizes are known, without the directory that all of the field's
// URIs share, up to and including the last "/"), the string, or 8 bytes of the integer or of the float64;
// a null has length 2^64-1 and no bytes, and a list the number of its elements and their records.
// The sizes' digest is over one number a row: the file's
// size, or if that is unknown the length of the blob in each of the field's blob columns in turn,
// 2^64-1 for a null. For rasters in cells it is over the bytes that each row group stores of the column, so they
// need not be read.
func (t *Table) hash(ctx context.Context) error {
	top := digest.New()
	_, _ = top.WriteString("chaski dataset 1\n")
	top.Number(uint64(t.n))
	top.Number(uint64(len(t.fields)))
	for i := range t.fields {
		field := &t.fields[i]
		_ = top.WriteByte(byte(field.kind))
		values, err := hashValues(ctx, field, t.n)
		if err != nil {
			return err
		}
		_, _ = top.Write(values[:])
		if field.files() {
			sizes, err := hashSizes(ctx, field)
			if err != nil {
				return err
			}
			_, _ = top.Write(sizes[:])
		}
	}
	t.fingerprint = top.Hex()
	return nil
}

// CheckSums reads the columns whose digests the footer of a catalog has. Corrupt is the error for another digest, with
// the name of the column.
func (t *Table) CheckSums(ctx context.Context) error {
	for _, name := range t.table.Summed() {
		stored, err := t.table.Column(name)
		if err != nil {
			return fault.WithFile(err, t.src)
		}
		want, read := *stored.Sums, *stored
		read.Sums = nil
		f := &fieldColumns{kind: read.Kind, main: &read}
		got := column.Sums{Below: want.Below, OfSizes: want.OfSizes}
		if got.Below {
			got.Folder, err = sharedFolder(ctx, &read)
		}
		if err == nil {
			got.Values, err = hashBelow(ctx, f, got.Folder)
		}
		if err == nil && got.OfSizes {
			got.Sizes, err = hashSizes(ctx, &fieldColumns{columns: map[string]*columns.Column{layout.Size: &read}})
		}
		same := got.Values == want.Values && got.Sizes == want.Sizes && bytes.Equal(got.Folder, want.Folder)
		if err == nil && !same {
			err = fault.New(fault.Corrupt, "footer", "the digest of the column %q is not the one of its values", name)
		}
		if err != nil {
			return fault.WithFile(err, t.src)
		}
	}
	return nil
}

const noSize = math.MaxUint64

func hashValues(ctx context.Context, f *fieldColumns, n int64) ([16]byte, error) {
	// If sizes are unknown, the whole path counts, because nothing else distinguishes two datasets.
	below := f.files() && f.hasSizes()
	if sums := f.ofSamples(f.main).Sums; sums != nil && sums.Below == below {
		return sums.Values, nil
	}
	if !below {
		return hashBelow(ctx, f, nil)
	}
	folder, err := outerFolder(ctx, f.ofSamples(f.main), n)
	if err != nil {
		return [16]byte{}, err
	}
	sum, err := hashBelow(ctx, f, folder)
	if err == errOutside {
		if folder, err = sharedFolder(ctx, f.ofSamples(f.main)); err == nil {
			sum, err = hashBelow(ctx, f, folder)
		}
	}
	return sum, err
}

// errOutside says that a URI does not begin with a folder.
var errOutside = errors.New("a URI outside of the folder")

// hashBelow returns the digest of the values of a field. Strings are without folder; one that does not begin with it is
// errOutside.
func hashBelow(ctx context.Context, f *fieldColumns, folder []byte) ([16]byte, error) {
	sum := digest.New()
	err := f.ofSamples(f.main).Scan(ctx, func(_ int64, c Value) error {
		if !bytes.HasPrefix(c.Text, folder) && !c.Null {
			return errOutside
		}
		if !c.Null {
			c.Text = c.Text[len(folder):]
		}
		c.Hash(sum, f.kind)
		return nil
	})
	return sum.Sum(), err
}

// outerFolder returns the folder that the first and the last of n strings share. In a sorted column all have it, which
// the digest finds out at no cost, while a pass of its own for the folder takes as long as the digest. Without both
// strings it returns what sharedFolder does.
func outerFolder(ctx context.Context, c *columns.Column, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	first, err := c.Cell(ctx, 0)
	if err != nil {
		return nil, err
	}
	// A copy, because the next cell may replace the bytes.
	folder, null := bytes.Clone(pathname.Folder(first.Text)), first.Null
	last, err := c.Cell(ctx, n-1)
	if err != nil {
		return nil, err
	}
	// A folder shorter than the one that all rows share would give another digest.
	if null || last.Null {
		return sharedFolder(ctx, c)
	}
	return pathname.Shared(folder, last.Text), nil
}

// sharedFolder returns the longest common prefix of all strings that ends in "/".
func sharedFolder(ctx context.Context, c *columns.Column) ([]byte, error) {
	if c.Sums != nil && c.Sums.Below {
		return c.Sums.Folder, nil
	}
	var folder []byte
	found := false
	err := c.Scan(ctx, func(_ int64, v Value) error {
		if v.Null {
			return nil
		}
		if !found {
			found, folder = true, bytes.Clone(pathname.Folder(v.Text))
		}
		if folder = pathname.Shared(folder, v.Text); len(folder) == 0 {
			return errStop
		}
		return nil
	})
	if err == errStop {
		err = nil
	}
	return folder, err
}

// hasSizes reports whether the table has the sizes of a field's assets, or of their blobs.
func (f *fieldColumns) hasSizes() bool { return f.columns[layout.Size] != nil || len(f.blobs) > 0 }

// files reports whether the values are paths of files whose sizes count: rasters, and files beside them.
func (f *fieldColumns) files() bool { return f.kind == Raster || f.columns[layout.Size] != nil }

func hashSizes(ctx context.Context, f *fieldColumns) ([16]byte, error) {
	sources, size := f.blobs, f.columns[layout.Size]
	if size != nil && f.cells == nil {
		if sums := f.ofSamples(size).Sums; sums != nil && sums.OfSizes {
			return sums.Sizes, nil
		}
	}
	sum := digest.New()
	switch {
	case f.cells == nil:
	case f.cells.sizes == nil:
		err := f.cells.lists.Scan(ctx, func(_ int64, v Value) error {
			v.Hash(sum, f.cells.lists.Kind)
			return nil
		})
		if err != nil {
			return [16]byte{}, err
		}
	default:
		for _, n := range f.cells.sizes() {
			sum.Number(uint64(n))
		}
	}
	if size != nil {
		sources = []*columns.Column{size}
	}
	for _, c := range sources {
		err := f.ofSamples(c).Scan(ctx, func(_ int64, v Value) error {
			switch {
			case v.Null:
				sum.Number(noSize)
			case size != nil:
				sum.Number(uint64(v.Int))
			default:
				sum.Number(uint64(len(v.Text)))
			}
			return nil
		})
		if err != nil {
			return [16]byte{}, err
		}
	}
	return sum.Sum(), nil
}
