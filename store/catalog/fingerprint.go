package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// hash sets the fingerprint: the XXH3-128 of
//
//	"chaski dataset 1\n", N, the number of fields,
//	and for each field its kind as one byte, the digest of its values and, of a raster, of its sizes
//
// where numbers are 8 bytes, little-endian, and digests are XXH3-128, big-endian as its author
// writes them. The values' digest is over one record a row: its length as a number and its bytes.
// The bytes are the URI of a raster (if sizes are known, without the directory that all of the field's
// URIs share, up to and including the last "/"), the string, or 8 bytes of the integer or of the float64;
// a null has length 2^64-1 and no bytes. The sizes' digest is over one number a row: the file's
// size, or if that is unknown the length of the blob in each of the field's blob columns in turn,
// 2^64-1 for a null.
func (t *Table) hash(ctx context.Context) error {
	var top digest
	top.h.WriteString("chaski dataset 1\n") //nolint:errcheck // never fails
	top.number(uint64(t.n))
	top.number(uint64(len(t.fields)))
	for i := range t.fields {
		f := &t.fields[i]
		top.bytes([]byte{byte(f.kind)})
		values, err := hashValues(ctx, f)
		if err != nil {
			return err
		}
		top.bytes(values[:])
		if f.kind == Raster {
			sizes, err := hashSizes(ctx, f)
			if err != nil {
				return err
			}
			top.bytes(sizes[:])
		}
	}
	sum := top.sum()
	t.fingerprint = hex.EncodeToString(sum[:])
	return nil
}

const noSize = math.MaxUint64

type digest struct {
	h   xxh3.Hasher
	buf []byte // collects records, because one Write each is slow
}

func (d *digest) number(n uint64) {
	d.buf = binary.LittleEndian.AppendUint64(d.buf, n)
	d.flush(1 << 13)
}

func (d *digest) bytes(b []byte) {
	d.buf = append(d.buf, b...)
	d.flush(1 << 13)
}

func (d *digest) record(b []byte) {
	d.number(uint64(len(b)))
	d.bytes(b)
}

func (d *digest) flush(full int) {
	if len(d.buf) >= full {
		_, _ = d.h.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

func (d *digest) sum() [16]byte {
	d.flush(0)
	return d.h.Sum128().Bytes()
}

func hashValues(ctx context.Context, f *field) ([16]byte, error) {
	var d digest
	shared := 0
	// Without sizes only the whole path distinguishes two datasets.
	if f.kind == Raster && f.hasSizes() {
		var err error
		if shared, err = sharedFolder(ctx, f.main); err != nil {
			return [16]byte{}, err
		}
	}
	err := f.main.Scan(ctx, func(_ int64, c columns.Cell) error {
		switch {
		case c.Null:
			d.number(math.MaxUint64)
		case f.kind == Int:
			d.number(8)
			d.number(uint64(c.Int))
		case f.kind == Float:
			d.number(8)
			d.number(math.Float64bits(c.Float))
		default:
			d.record(c.Text[min(shared, len(c.Text)):])
		}
		return nil
	})
	return d.sum(), err
}

// sharedFolder returns the length of the longest common prefix of all strings that ends in "/".
func sharedFolder(ctx context.Context, c columns.Column) (int, error) {
	var prefix []byte
	found := false
	err := c.Scan(ctx, func(_ int64, v columns.Cell) error {
		if v.Null {
			return nil
		}
		if !found {
			found, prefix = true, bytes.Clone(v.Text[:bytes.LastIndexByte(v.Text, '/')+1])
		}
		n := 0
		for n < len(prefix) && n < len(v.Text) && prefix[n] == v.Text[n] {
			n++
		}
		if n < len(prefix) {
			prefix = prefix[:bytes.LastIndexByte(prefix[:n], '/')+1]
		}
		if len(prefix) == 0 {
			return errStop
		}
		return nil
	})
	if err == errStop {
		err = nil
	}
	return len(prefix), err
}

// hasSizes reports whether the table has the sizes of a field's assets, or of their blobs.
func (f *field) hasSizes() bool { return f.size != nil || len(f.blobs) > 0 }

func hashSizes(ctx context.Context, f *field) ([16]byte, error) {
	var d digest
	sources := f.blobs
	if f.size != nil {
		sources = []columns.Column{f.size}
	}
	for _, c := range sources {
		err := c.Scan(ctx, func(_ int64, v columns.Cell) error {
			switch {
			case v.Null:
				d.number(noSize)
			case f.size != nil:
				d.number(uint64(v.Int))
			default:
				d.number(uint64(len(v.Text)))
			}
			return nil
		})
		if err != nil {
			return [16]byte{}, err
		}
	}
	return d.sum(), nil
}
