package zarr

import (
	"context"
	"math"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
)

const (
	labelsPart = "labels"
	// maxLabels bounds the bytes of the labels of an array, which are in memory: 8 million numbers of 8 bytes.
	maxLabels = 64 << 20
	// labelCost is the memory of a string beside its bytes.
	labelCost = 16
)

// Labels are an array whose first dimension is n: a number, a list of numbers or a string for each image.
type Labels struct {
	*Array
	N     int64
	lists bool
	each  int64 // numbers of each image
	data  []byte
	texts []string
}

// Labels reads the labels that an array below the node has: its path, or the last part of it if only one array has it.
func (n *Node) Labels(ctx context.Context, name string) (*Labels, error) {
	array, texts, err := n.labelArray(ctx, name)
	if err != nil {
		return nil, err
	}
	labels, err := readLabels(ctx, array, texts)
	return labels, fault.WithFile(err, array.URI)
}

// labelArray finds the array of labels.
func (n *Node) labelArray(ctx context.Context, name string) (*Array, textsOf, error) {
	name = strings.Trim(name, "/")
	list, err := n.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found []Member
	for _, member := range list {
		if member.Path == name {
			found = []Member{member}
			break
		}
		if path.Base(member.Path) == name {
			found = append(found, member)
		}
	}
	if len(found) != 1 {
		return nil, nil, fault.WithFile(fault.New(fault.NotFound, "column "+name,
			"%d arrays of this name; there are %s", len(found), namesOf(list)), n.URI)
	}
	if e := n.below[n.prefix+found[0].Path]; e.texts != nil {
		return e.made, e.texts, nil
	}
	return found[0].Array, nil, found[0].Err
}

// readLabels reads the labels of an array. With texts they are strings, whose bytes are its last dimension.
func readLabels(ctx context.Context, a *Array, texts textsOf) (*Labels, error) {
	rank := len(a.Shape)
	if texts != nil {
		rank--
	}
	if rank < 1 || rank > 2 || rank == 2 && texts != nil {
		return nil, fault.New(fault.Unsupported, labelsPart,
			"an array of the shape %v: labels are (n) or (n, k) numbers, or (n) strings", a.Shape[:max(rank, 0)])
	}
	size := int64(a.DType.Size())
	count := cells(a.Shape, maxLabels/size)
	if err := a.ready(); err != nil {
		return nil, err
	}
	if count < 0 {
		return nil, fault.New(fault.Limit, labelsPart, "more than %d bytes of labels", maxLabels)
	}
	if err := a.options.memory.take(ctx, count*size); err != nil {
		return nil, err
	}
	labels := &Labels{Array: a, N: a.Shape[0], each: 1, lists: rank == 2, data: make([]byte, count*size)}
	stride, hi := make([]int64, len(a.Shape)), size
	for d := len(a.Shape) - 1; d >= 0; d-- {
		stride[d], hi = hi, hi*a.Shape[d]
	}
	if rank == 2 {
		labels.each = a.Shape[1]
	}
	if count > 0 {
		if err := a.NewReader().ReadInto(ctx, labels.data, make([]int64, len(a.Shape)), a.Shape, stride); err != nil {
			return nil, err
		}
	}
	if texts == nil {
		return labels, labels.check()
	}
	var err error
	if labels.texts, err = texts(ctx, labels.data); err != nil {
		return nil, err
	}
	sum := -count * size // the bytes go, the strings stay
	for _, text := range labels.texts {
		sum += labelCost + int64(len(text))
	}
	labels.data = nil
	return labels, a.options.memory.take(ctx, sum)
}

// check refuses integers that do not fit in 64 bits with a sign: all integers of columns become
// these.
func (l *Labels) check() error {
	if l.DType != chunk.Uint64 {
		return nil
	}
	for i := 7; i < len(l.data); i += 8 {
		if l.data[i] > math.MaxInt8 {
			return fault.New(fault.Limit, labelsPart, "label %d is over %d", i/8, math.MaxInt64)
		}
	}
	return nil
}

// Kind returns the kind of the values.
func (l *Labels) Kind() column.Kind {
	kind := column.Int
	switch {
	case l.texts != nil:
		return column.Text
	case isFloat(l.DType):
		kind = column.Float
	}
	if l.lists {
		kind |= column.List
	}
	return kind
}

// Value returns the value of an image.
func (l *Labels) Value(row int64) column.Value {
	if l.texts != nil {
		return column.Value{Text: l.texts[row]}
	}
	if !l.lists {
		return l.number(row)
	}
	value := column.Value{List: make([]column.Value, l.each)}
	for k := range l.each {
		value.List[k] = l.number(row*l.each + k)
	}
	return value
}

// number returns one number.
func (l *Labels) number(i int64) column.Value {
	size := int64(l.DType.Size())
	sample := l.data[i*size : (i+1)*size]
	if isFloat(l.DType) {
		return column.Value{Float: l.DType.Number(sample)}
	}
	return column.Value{Int: int64(numberType{t: l.DType}.load(sample, 0))}
}

// Attribute returns a number or a string among the attributes of an array or a group. kind is 0 if no attribute has
// the name. An integer is a float, too.
func (n *Node) Attribute(name string) (v column.Value, kind column.Kind) {
	attrs := n.Attrs
	if n.Array != nil {
		attrs = n.Array.Attrs
	}
	raw := attrs[name]
	if len(raw) == 0 || string(raw) == "null" {
		return v, 0
	}
	raw = alone(raw)
	var flag bool
	if decode(raw, &flag) == nil {
		if flag {
			v.Int, v.Float = 1, 1
		}
		return v, column.Int
	}
	if decode(raw, &v.Int) == nil {
		v.Float = float64(v.Int)
		return v, column.Int
	}
	if decode(raw, &v.Float) == nil {
		return v, column.Float
	}
	if decode(raw, &v.Text) == nil {
		return v, column.Text
	}
	return v, 0
}
