package picture

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// upright is the orientation of pixels that are stored as they are to be seen. From sideways on, rows are stored as
// columns (Exif 2.32, tag 274).
const (
	upright  = 1
	sideways = 5
	maxTurn  = 8
)

// exifOrientation returns the orientation that Exif metadata say, upright if they say none. They are a TIFF header
// and a directory (Exif 2.32, section 4.5). Package ifd is too strict here: it refuses a file for what follows the
// orientation, such as the directory of a preview that an editor has cut out.
func exifOrientation(b []byte) byte {
	const (
		tagOrientation = 274
		typeShort      = 3
	)
	if len(b) < 8 {
		return upright
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	offset := int64(order.Uint32(b[4:]))
	if offset > int64(len(b))-2 {
		return upright
	}
	entries := b[offset+2:]
	for range order.Uint16(b[offset:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == tagOrientation && order.Uint16(entries[2:]) == typeShort {
			if v := order.Uint16(entries[8:]); v >= upright && v <= maxTurn {
				return byte(v)
			}
			break
		}
		entries = entries[12:]
	}
	return upright
}

// turn makes the index of an image with an orientation of the one of its pixels as they are stored.
func turn(x *chunk.Index, orientation byte) {
	if orientation == upright {
		return
	}
	if orientation >= sideways {
		x.Height, x.Width = x.Width, x.Height
	}
	x.Params = append([]byte{orientation, byte(x.Codec)}, x.Params...)
	x.Codec = chunk.Turned
}

// turnedDecoder decodes pictures that are stored turned: the parameters are the orientation, the codec and its
// parameters.
type turnedDecoder struct {
	inner  chunk.Opened
	stored []byte
}

// Decompress implements chunk.Decompressor.
func (d *turnedDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	if len(t.Params) < 2 || t.Params[0] <= upright || t.Params[0] > maxTurn ||
		t.Params[1] != byte(chunk.PNG) && t.Params[1] != byte(chunk.JPEG) {
		return fault.New(fault.Corrupt, "orientation", "not the parameters of this codec")
	}
	orientation, codec, stored := t.Params[0], chunk.Codec(t.Params[1]), *t
	stored.Params = t.Params[2:]
	if orientation >= sideways {
		stored.Height, stored.Width = t.Width, t.Height
	}
	pixel := t.Bands * t.Number
	stored.Rows, stored.LeastRows, stored.MaxHeight = stored.Height, stored.Height, stored.Height
	stored.Need = stored.Height * stored.Width * pixel
	d.stored = slices.Grow(d.stored[:0], stored.Need)[:stored.Need]
	inner, err := d.inner.Of(codec)
	if err != nil {
		return err
	}
	if err := inner.Decompress(d.stored, src, &stored); err != nil {
		return err
	}
	first, down, across := steps(orientation, stored.Height, stored.Width)
	for y := range t.Rows {
		for x := range t.Width {
			copy(dst[(y*t.Width+x)*pixel:][:pixel], d.stored[(first+y*down+x*across)*pixel:])
		}
	}
	return nil
}

// steps returns the stored pixel at the upper left, and the steps to the stored pixels below and to the right, of an
// image of so many rows and columns as stored.
func steps(orientation byte, rows, columns int) (first, down, across int) {
	down, across = columns, 1
	// The stored row 0 is at the bottom or, sideways, at the right; the stored column 0 at the right or at the bottom.
	bottom := orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7
	right := orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8
	if bottom {
		first, down = first+(rows-1)*columns, -down
	}
	if right {
		first, across = first+columns-1, -across
	}
	if orientation >= sideways {
		down, across = across, down
	}
	return first, down, across
}
