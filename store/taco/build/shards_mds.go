package build

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
	"github.com/chaski-eo/chaski/tables"
)

// mdsColumn is a column of MDS shards. value returns the encoded value of a sample, whose files are given.
type mdsColumn struct {
	shards.Encoding
	value func(row int, files [][]byte) []byte
}

// mdsWriter writes MDS shards.
type mdsWriter struct {
	columns []mdsColumn
	out     *shards.MDS
}

// mds sets what MDS shards have in common. Their columns are in the order of their names, as MDSWriter has them.
func (s *shardSet) mds() {
	columns := []mdsColumn{{shards.Encoding{Name: shardID, Encoding: "str"}, func(row int, _ [][]byte) []byte {
		return []byte(s.w.levels[0].ids[row])
	}}}
	for k, name := range s.names {
		encoding := "bytes"
		if s.arrays[k] {
			encoding = "ndarray"
		}
		columns = append(columns, mdsColumn{shards.Encoding{Name: name, Encoding: encoding},
			func(_ int, files [][]byte) []byte { return files[k] }})
	}
	for _, c := range s.columns {
		encoding, value := mdsEncoding(c.values)
		columns = append(columns, mdsColumn{shards.Encoding{Name: c.name, Encoding: encoding},
			func(row int, _ [][]byte) []byte { return value(row) }})
	}
	slices.SortFunc(columns, func(a, b mdsColumn) int { return cmp.Compare(a.Name, b.Name) })
	s.head = func(dst []byte, a *Array) ([]byte, error) { return shards.AppendArray(dst, a.DType, a.Shape) }
	s.open = func(o shards.Output) (shardWriter, error) {
		var encodings []shards.Encoding
		for _, c := range columns {
			encodings = append(encodings, c.Encoding)
		}
		out, err := shards.NewMDS(encodings, o)
		return &mdsWriter{columns, out}, err
	}
}

func (w *mdsWriter) encode(row int, files [][]byte) (any, error) {
	values := make([][]byte, len(w.columns))
	for i, c := range w.columns {
		values[i] = c.value(row, files)
	}
	return values, nil
}

func (w *mdsWriter) add(sample any) error { return w.out.Add(sample.([][]byte)) }

func (w *mdsWriter) close() error { return w.out.Close() }

// mdsEncoding returns the encoding of a column, and what encodes a value. MDS has no nulls but in JSON: the null of a
// float is NaN. Bytes are JSON, too, {"hex": "..."}: a column of bytes is taken for a file.
func mdsEncoding(v *tables.Vector) (string, func(row int) []byte) {
	little := binary.LittleEndian
	nulls := slices.Contains(v.Nulls(), true)
	switch kind, bits := v.Kind(), v.Type().Bits; {
	case kind == tables.Int64 && !nulls && bits == 64:
		return "int", func(row int) []byte { return little.AppendUint64(nil, uint64(v.Int(row))) }
	case (kind == tables.Int64 || kind == tables.Uint64) && !nulls:
		return v.Type().ArrowName(), func(row int) []byte {
			return little.AppendUint64(nil, uint64(v.Int(row)))[:bits/8]
		}
	case kind == tables.Float64 && bits == 16:
		return "float16", func(row int) []byte {
			return little.AppendUint16(nil, kernel.Float16FromFloat32(float32(floatOrNaN(v, row))))
		}
	case kind == tables.Float64 && bits < 64:
		return "float32", func(row int) []byte {
			return little.AppendUint32(nil, math.Float32bits(float32(floatOrNaN(v, row))))
		}
	case kind == tables.Float64:
		return "float64", func(row int) []byte { return little.AppendUint64(nil, math.Float64bits(floatOrNaN(v, row))) }
	case kind == tables.String && !nulls && !isJSON(v):
		return "str", func(row int) []byte { return []byte(strings.ToValidUTF8(v.Str(row), "\ufffd")) }
	}
	return "json", func(row int) []byte { return appendPython(nil, v, row) }
}

// floatOrNaN returns a float, NaN for null.
func floatOrNaN(v *tables.Vector, row int) float64 {
	if v.Null(row) {
		return math.NaN()
	}
	return v.Float(row)
}
