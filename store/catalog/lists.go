package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// listsOf returns the rasters in a column of lists of numbers, each as a NumPy file, or nil of another column. It
// completes axes.Dims.
func listsOf(tab *columns.Table, name string, axes *chunk.Axes) (*cellRasters, error) {
	lists, err := tab.AnyColumn(name)
	if err != nil || !lists.Kind.IsList() || lists.Kind.Elem() == Text || lists.Unit != 0 {
		return nil, nil //nolint:nilerr // the caller says what is missing
	}
	made := &cellRasters{column: name, lists: lists, rows: lists.Rows}
	var typ func(row int64) tables.Type
	if typ, made.stored, err = tab.Elements(name); err != nil {
		return nil, err
	}
	if made.stored != nil {
		made.sizes = made.stored.Sizes
	} else if tab.OfRecords() {
		made.sizes = tab.Sizes
	}
	if axes.Dims == "" {
		var names []string
		for i, n := range axes.Lengths {
			if n > 0 || i >= 2 {
				names = append(names, chunk.AxisNames[i:i+1])
			}
		}
		axes.Dims = strings.Join(names, " ")
	}
	file := *axes // of the column of files
	made.bytes = &columns.Column{Kind: Text, Bytes: true, Opaque: true, Rows: lists.Rows,
		Cell: func(ctx context.Context, row int64) (Value, error) {
			v, err := lists.Cell(ctx, row)
			if err != nil || v.Null {
				return v, err
			}
			b, err := listFile(v.List, typ(row), &file)
			return Value{Text: b}, fault.WithPart(err, fmt.Sprintf("column %s row %d", name, row), fault.NoOffset)
		}}
	return made, nil
}

// listFile returns the NumPy file of a list of numbers of a type.
func listFile(list []Value, typ tables.Type, axes *chunk.Axes) ([]byte, error) {
	shape, err := listShape(len(list), axes)
	if err != nil {
		return nil, err
	}
	dtype, ok := listTypes[typ.String()]
	if !ok {
		return nil, fault.New(fault.Unsupported, "", "a list of values of type %v", typ)
	}
	head, err := npy.Header(dtype, shape)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(head) + len(list)*dtype.Size())
	b.Write(head)
	var sample [8]byte
	for i, v := range list {
		switch {
		case typ.Kind != tables.Float64 && v.Null:
			return nil, fault.New(fault.Unsupported, "", "sample %d of the list is null", i)
		case typ.Kind != tables.Float64:
			binary.LittleEndian.PutUint64(sample[:], uint64(v.Int))
		case v.Null && dtype == chunk.Float32:
			binary.LittleEndian.PutUint32(sample[:], math.Float32bits(float32(math.NaN())))
		case dtype == chunk.Float32:
			binary.LittleEndian.PutUint32(sample[:], math.Float32bits(float32(v.Float)))
		case v.Null:
			binary.LittleEndian.PutUint64(sample[:], math.Float64bits(math.NaN()))
		default:
			binary.LittleEndian.PutUint64(sample[:], math.Float64bits(v.Float))
		}
		b.Write(sample[:dtype.Size()])
	}
	return b.Bytes(), nil
}

// listTypes are the dtypes of numbers of each type.
var listTypes = map[string]chunk.DType{
	"bool": chunk.Uint8, "int8": chunk.Int8, "int16": chunk.Int16, "int32": chunk.Int32, "int64": chunk.Int64,
	"uint8": chunk.Uint8, "uint16": chunk.Uint16, "uint32": chunk.Uint32, "uint64": chunk.Uint64,
	"float16": chunk.Float32, "float32": chunk.Float32, "float64": chunk.Float64,
}

// listShape returns the lengths of the axes of n samples. One that is not known follows from the others; if y and x are
// both unknown, they are equal.
func listShape(n int, axes *chunk.Axes) ([]int, error) {
	names := strings.Fields(axes.Dims)
	shape, rest, unknown := make([]int, len(names)), n, []int(nil)
	bad := fault.New(fault.Unsupported, "", "%d samples in a list whose axes are (%s): give the field sizes, as in "+
		`sizes={"y": 75, "x": 75}`, n, strings.Join(names, ", "))
	for i, name := range names {
		if at := strings.Index(chunk.AxisNames, name); at >= 0 {
			shape[i] = axes.Lengths[at]
		}
		switch {
		case shape[i] <= 0:
			unknown = append(unknown, i)
		case rest%shape[i] != 0:
			return nil, bad
		default:
			rest /= shape[i]
		}
	}
	side := int(math.Round(math.Sqrt(float64(rest))))
	square := len(unknown) == 2 && side*side == rest &&
		slices.Contains(names, "y") && slices.Contains(names, "x") && axes.Lengths[2] <= 0 && axes.Lengths[3] <= 0
	switch {
	case n == 0, len(unknown) == 0 && rest != 1:
		return nil, bad
	case len(unknown) == 1:
		shape[unknown[0]] = rest
	case square:
		shape[unknown[0]], shape[unknown[1]] = side, side
	case len(unknown) > 0:
		return nil, bad
	}
	return shape, nil
}
