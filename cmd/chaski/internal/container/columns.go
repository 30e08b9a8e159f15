package container

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/npy"
	"github.com/chaski-eo/chaski/store/taco"
)

// entryArrays has the columns that entries writes.
type entryArrays struct {
	row, parent, offset, size []int64
	folder                    []byte
	file                      []int32
	ids, names                packedStrings
	files                     map[string]int32
}

// packedStrings holds strings as the ends of each and the bytes of all.
type packedStrings struct {
	ends []int64
	data []byte
}

func (p *packedStrings) add(s string) {
	p.data = append(p.data, s...)
	p.ends = append(p.ends, int64(len(p.data)))
}

func (e *entryArrays) fill(ctx context.Context, d *taco.Dataset, level int, rows []int) error {
	parents, err := d.Parents(ctx, level)
	if err != nil {
		return err
	}
	for _, row := range rows {
		x, err := d.EntryAt(ctx, level, row)
		if err != nil {
			return err
		}
		up := int64(-1)
		if parents != nil {
			up = int64(parents[row])
		}
		at, ok := e.files[x.URI]
		if !ok {
			at = int32(len(e.files))
			e.files[x.URI] = at
			e.names.add(x.URI)
		}
		folder := byte(0)
		if x.Kind == taco.Folder {
			folder = 1
		}
		e.row, e.parent, e.folder = append(e.row, int64(row)), append(e.parent, up), append(e.folder, folder)
		e.file, e.offset, e.size = append(e.file, at), append(e.offset, x.Offset), append(e.size, x.Size)
		e.ids.add(x.ID)
	}
	return nil
}

func (e *entryArrays) write(w io.Writer) error {
	for _, a := range []any{e.row, e.parent, e.folder, e.file, e.offset, e.size, e.ids.ends, e.ids.data,
		e.names.ends, e.names.data} {
		if err := writeColumn(w, a); err != nil {
			return err
		}
	}
	return nil
}

// writeColumn writes an array of one axis.
func writeColumn(w io.Writer, a any) error {
	var d chunk.DType
	n := 0
	switch a := a.(type) {
	case []int64:
		d, n = chunk.Int64, len(a)
	case []int32:
		d, n = chunk.Int32, len(a)
	case []byte:
		d, n = chunk.Uint8, len(a)
	}
	head, err := npy.Header(d, []int{n})
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, a)
}
