package tiledb

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// maxChunk is the chunk size that TileDB chooses, in bytes.
const maxChunk = 64 << 10

// DefaultFilters returns TileDB's default pipeline for coordinates and offsets.
func DefaultFilters() filter.Pipeline {
	return filter.Pipeline{MaxChunk: maxChunk, Filters: []filter.Filter{{ID: filter.Zstd, Level: -1}}}
}

// Create creates an array of format 3: a directory with its schema. The schema must be one that is read.
func Create(path string, s *Schema) error {
	content := s.append(nil)
	if _, err := parseSchema(content, DefaultMaxTile); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(path, schemaName), appendGeneric(nil, content), 0o666)
}

// WriteDense writes a box of cells of a dense array as a new fragment. values has the cells of every attribute, in
// row-major order. The open array does not see the new fragment: open it again.
func (a *Array) WriteDense(ctx context.Context, b Box, values []Values) error {
	return a.writeDense(ctx, b, values, timeAtCompletion, timeAtCompletion)
}

// newDense returns a dense fragment of a box, with its grid of tiles.
func (s *Schema) newDense(b Box) (*Fragment, error) {
	x, _ := formatOf(Version)
	fragment := &Fragment{Dense: true, NonEmpty: b, Version: Version, x: x, schema: s, attrs: sequence(len(s.Attrs))}
	err := fragment.denseGrid(&byteCursor{part: "sub-array", base: fault.NoOffset}, s, 0, 0, uint64(s.tileCells))
	return fragment, err
}

// newName returns a new name for a fragment of a range of time, in milliseconds since 1970.
func newName(from, to uint64) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never returns an error
	return fmt.Sprintf("__%d_%d_%x", from, to, id)
}

// nextName returns a name for a new fragment, later than all others.
func (a *Array) nextName() (string, error) {
	list, err := os.ReadDir(source.LocalPath(a.uri))
	now := uint64(time.Now().UnixMilli())
	for _, other := range list {
		if stamp, err := parseName(other.Name()); err == nil {
			now = max(now, stamp.to+1)
		}
	}
	return newName(now, now), err
}

// fixedTile returns the cells of attribute i in the tile at which a walk over data stands.
func (s *Schema) fixedTile(i int, walk *denseWalk, data []byte) []byte {
	size := s.Attrs[i].CellSize()
	cells := make([]byte, int(s.tileCells)*size)
	kernel.Fill(cells, s.Attrs[i].Type.fill())
	_ = walk.plan.each(func(from, to, n, stride int) error {
		for k := range n {
			copy(cells[(to+k*stride)*size:][:size], data[(from+k)*size:])
		}
		return nil
	})
	return cells
}

// appendTile appends the stored form of a tile: its chunks, to which the filters are applied. Byte shuffle, Zstandard
// and no filter are known; package filter tests the others.
func appendTile(out, src []byte, p filter.Pipeline, e filter.Elem) []byte {
	limit := max(int(p.MaxChunk)/e.Cell*e.Cell, e.Cell)
	out = binary.LittleEndian.AppendUint64(out, uint64(max((len(src)+limit-1)/limit, 1)))
	for first := true; first || len(src) > 0; first = false {
		part := src[:min(limit, len(src))]
		src = src[len(part):]
		data, metas := part, [][]byte(nil) // metadata of the filters so far, the latest first
		for _, f := range p.Filters {
			switch f.ID {
			case filter.None:
			case filter.ByteShuffle:
				shuffled := make([]byte, len(data))
				planes.Split(shuffled, data, e.Size)
				metas = slices.Insert(metas, 0, appendU32(nil, 1, len(data)))
				data = shuffled
			case filter.Zstd:
				meta, packed := appendU32(nil, len(metas), 1), []byte(nil)
				for _, raw := range append(metas, data) {
					start := len(packed)
					if len(raw) > 0 {
						packed = zstd.Append(packed, raw, 3)
					}
					meta = appendU32(meta, len(raw), len(packed)-start)
				}
				data, metas = packed, [][]byte{meta}
			default:
				panic(f.ID.String() + " is not written")
			}
		}
		meta := bytes.Join(metas, nil)
		out = append(append(appendU32(out, len(part), len(data), len(meta)), meta...), data...)
	}
	return out
}

func appendU32(b []byte, values ...int) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// appendGeneric appends a generic tile with the content b.
func appendGeneric(out, b []byte) []byte {
	tile, pipe := appendTile(nil, b, DefaultFilters(), Char.elem(1)), DefaultFilters().Append(nil)
	out = binary.LittleEndian.AppendUint32(out, Version)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(tile)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b)))
	out = append(out, byte(Char))
	out = binary.LittleEndian.AppendUint64(out, 1)
	out = append(out, plain)
	out = appendU32(out, len(pipe))
	return append(append(out, pipe...), tile...)
}

// appendNumbers appends a list of the fragment metadata.
func appendNumbers(out []byte, l []uint64) []byte {
	buf := binary.LittleEndian.AppendUint64(nil, uint64(len(l)))
	for _, v := range l {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	return appendGeneric(out, buf)
}

// IsArray reports whether a local directory holds an array.
func IsArray(path string) bool {
	p, err := source.Parse(path)
	return err == nil && isArray(p, nil)
}
