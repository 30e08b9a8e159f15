package catalog

import (
	"cmp"
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
// completes axes.Dims, but not of lists in lists, whose lengths the file of a row has.
func listsOf(tab *columns.Table, name string, axes *chunk.Axes) (*cellRasters, error) {
	made := &cellRasters{table: tab, column: name}
	var err error
	if tab.Files == nil {
		made.lists, err = tab.AnyColumn(name)
	} else if made.stored, err = tab.Arrays(name); err == nil {
		made.lists, made.sizes = made.stored.Column, made.stored.Sizes
	}
	if err != nil || !made.lists.Kind.IsList() || made.lists.Kind.Elem() == Text || made.lists.Unit != 0 {
		return nil, nil //nolint:nilerr // the caller says what is missing
	}
	made.rows = made.lists.Rows
	if tab.OfRecords() {
		made.sizes = tab.Sizes
	}
	samples, err := samplesOf(tab, made)
	if err != nil {
		return nil, err
	}
	if axes.Dims == "" && (made.stored == nil || made.stored.Depth() == 1 || axes.Lengths != (chunk.Lengths{})) {
		var names []string
		for i, n := range axes.Lengths {
			if n > 0 || i >= 2 {
				names = append(names, chunk.AxisNames[i:i+1])
			}
		}
		axes.Dims = strings.Join(names, " ")
	}
	file := *axes // of the column of files
	made.bytes = &columns.Column{Kind: Text, Bytes: true, Opaque: true, Rows: made.rows,
		Cell: func(ctx context.Context, row int64) (Value, error) {
			data, dtype, shape, err := samples(ctx, row)
			if err != nil || shape == nil {
				return Value{Null: true}, err
			}
			b, err := listFile(data, dtype, shape, &file)
			return Value{Text: b}, fault.WithPart(err, fmt.Sprintf("column %s row %d", name, row), fault.NoOffset)
		}}
	return made, nil
}

// isNested reports whether a column has lists in lists, which can be nothing but a raster.
func isNested(tab *columns.Table, name string) bool {
	if len(tab.Files) == 0 || strings.Contains(name, ".") {
		return false
	}
	stored, err := tab.Arrays(name)
	return err == nil && stored.Depth() > 1
}

// samplesOf returns what returns the samples in the lists of a row, and the lengths of these; without them the row has
// none.
func samplesOf(tab *columns.Table, of *cellRasters) (func(ctx context.Context, row int64) ([]byte, chunk.DType, []int,
	error), error) {
	dtypeOf := func(typ tables.Type) (chunk.DType, error) {
		dtype, ok := listTypes[typ.String()]
		if !ok {
			return dtype, fault.New(fault.Unsupported, "column "+of.column, "a list of values of type %v", typ)
		}
		return dtype, nil
	}
	if of.stored != nil {
		return func(ctx context.Context, row int64) ([]byte, chunk.DType, []int, error) {
			dtype, err := dtypeOf(of.stored.Type(row))
			if err != nil {
				return nil, dtype, nil, err
			}
			data, shape, null, err := of.stored.Samples(ctx, row, dtype.Size())
			if null {
				shape = nil
			}
			return data, dtype, shape, err
		}, nil
	}
	typ, err := tab.Elements(of.column)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, row int64) ([]byte, chunk.DType, []int, error) {
		dtype, err := dtypeOf(typ)
		v, wrong := of.lists.Cell(ctx, row)
		if err = cmp.Or(err, wrong); err != nil || v.Null {
			return nil, dtype, nil, err
		}
		data, err := appendList(nil, v.List, dtype, typ)
		return data, dtype, []int{len(v.List)}, fault.WithPart(err, fmt.Sprintf("column %s row %d", of.column, row),
			fault.NoOffset)
	}, nil
}

// listFile returns the NumPy file of samples in lists of these lengths.
func listFile(data []byte, dtype chunk.DType, shape []int, axes *chunk.Axes) (file []byte, err error) {
	if len(shape) == 1 {
		shape, err = listShape(shape[0], axes)
	} else {
		err = checkShape(shape, axes)
	}
	if err != nil {
		return nil, err
	}
	head, err := npy.Header(dtype, shape)
	return append(head, data...), err
}

// checkShape refuses lists in lists of other lengths than the axes have.
func checkShape(shape []int, axes *chunk.Axes) error {
	names := strings.Fields(axes.Dims)
	fits := len(names) == len(shape) || axes.Dims == ""
	for i, name := range names {
		if axis := strings.Index(chunk.AxisNames, name); fits && axis >= 0 && axes.Lengths[axis] > 0 {
			fits = axes.Lengths[axis] == shape[i]
		}
	}
	switch {
	case slices.Contains(shape, 0):
		return fault.New(fault.Unsupported, "", "an array of shape %d has no samples", shape)
	case !fits:
		return fault.New(fault.Unsupported, "", "an array of shape %d, and the axes are (%s): sizes, if given, must "+
			"be its lengths", shape, strings.Join(names, ", "))
	}
	return nil
}

// appendList appends the samples of a list of numbers of a type.
func appendList(to []byte, list []Value, dtype chunk.DType, typ tables.Type) ([]byte, error) {
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
		to = append(to, sample[:dtype.Size()]...)
	}
	return to, nil
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
		if axis := strings.Index(chunk.AxisNames, name); axis >= 0 {
			shape[i] = axes.Lengths[axis]
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
