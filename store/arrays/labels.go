package arrays

import (
	"context"
	"encoding/binary"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store"
)

const (
	// maxLabels bounds the bytes of the labels of an array, which are in memory: 8 million numbers of 8 bytes.
	maxLabels = maxStrings
)

// Labels are an array whose first dimension is n: a number, a list of numbers or a string for each image. Numbers have
// the meaning that CF gives them: unpacked, null where they are missing, microseconds since 1970 where they are times.
type Labels struct {
	*Array
	n     int64
	lists bool
	every bool        // each image has the values of all steps of time
	each  int64       // numbers of each image
	ends  []int64     // of lists of any length, in numbers, from 0 on; nil of others
	dtype chunk.DType // of data
	data  []byte
	texts []string

	unpack  *chunk.Linear // nil for numbers as stored
	missing []chunk.NoData
	time    *cfTime // nil for numbers that are no times
}

// Labels reads the labels that an array below the node has: its path, or the last part of it if only one array has it.
func (n *Node) Labels(ctx context.Context, name string) (store.Labels, error) {
	array, texts, err := n.labelArray(ctx, name)
	if err != nil {
		return nil, err
	}
	labels, err := readLabels(ctx, array, texts)
	if err != nil {
		return nil, fault.WithFile(err, array.URI)
	}
	return labels, nil
}

// IsLabel reports whether an array of the node is values for each image: (n) numbers or strings, or (n, k) numbers.
// dims is as for Axes.
func (n *Node) IsLabel(ctx context.Context, name, dims string) bool {
	array, texts, err := n.labelArray(ctx, name)
	if err != nil {
		return false
	}
	return len(array.Shape) == 1 || len(array.Shape) == 2 && (texts != nil || array.Axes(dims) == nil)
}

// Len implements store.Labels.
func (l *Labels) Len() int64 { return l.n }

// Bytes implements store.Labels.
func (l *Labels) Bytes() int64 {
	sum := int64(len(l.data)) + 8*int64(len(l.ends))
	for _, text := range l.texts {
		sum += stringCost + int64(len(text))
	}
	return sum
}

// labelArray finds the array of labels.
func (n *Node) labelArray(ctx context.Context, name string) (*Array, Texts, error) {
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
	if e, ok := n.below[n.prefix+found[0].Path].(*made); ok && e.texts != nil {
		return e.of, e.texts, nil
	}
	if found[0].Array == nil || found[0].Err != nil {
		return nil, nil, found[0].Err
	}
	return found[0].Array, found[0].Array.Texts, nil
}

// readLabels reads the labels of an array. With texts they are strings, whose bytes are its last dimension.
func readLabels(ctx context.Context, a *Array, texts Texts) (*Labels, error) {
	if a.Strings {
		texts, err := a.readStrings(ctx)
		if err != nil {
			return nil, err
		}
		return &Labels{Array: a, n: a.Shape[0], each: 1, dtype: a.DType, texts: texts}, nil
	}
	rank := len(a.Shape)
	if texts != nil {
		rank--
	}
	if rank < 1 || rank > 2 || rank == 2 && texts != nil {
		return nil, fault.New(fault.Unsupported, labelsPart,
			"an array of the shape %v: labels are (n) or (n, k) numbers, or (n) strings", a.Shape[:max(rank, 0)])
	}
	size := int64(a.DType.Size())
	count := Cells(a.Shape, maxLabels/size)
	if err := a.ready(); err != nil {
		return nil, err
	}
	if count < 0 {
		return nil, fault.New(fault.Limit, labelsPart, "more than %d bytes of labels", maxLabels)
	}
	if err := a.options.memory.take(ctx, count*size); err != nil {
		return nil, err
	}
	labels := &Labels{Array: a, dtype: a.DType, n: a.Shape[0], each: 1, lists: rank == 2,
		data: make([]byte, count*size)}
	if rank == 2 {
		labels.each = a.Shape[1]
	}
	if count > 0 {
		if err := a.Read(ctx, labels.data, make([]int64, len(a.Shape)), a.Shape); err != nil {
			return nil, err
		}
	}
	if texts == nil {
		return labels, labels.meaning()
	}
	var err error
	if labels.texts, err = texts(ctx, labels.data); err != nil {
		return nil, err
	}
	sum := -count * size // the bytes go, the strings stay
	for _, text := range labels.texts {
		sum += stringCost + int64(len(text))
	}
	labels.data = nil
	if err := a.options.memory.take(ctx, sum); err != nil || !a.List.Valid() {
		return labels, err
	}
	labels.toLists()
	return labels, labels.meaning()
}

// toLists makes lists of numbers of strings that have their bytes.
func (l *Labels) toLists() {
	l.dtype, l.lists, l.ends = l.List, true, make([]int64, 1, l.n+1)
	size := l.dtype.Size()
	for _, text := range l.texts {
		l.data = append(l.data, text[:len(text)/size*size]...)
		l.ends = append(l.ends, int64(len(l.data)/size))
	}
	l.texts = nil
}

// span returns the numbers of an image: from the first one to the one behind the last.
func (l *Labels) span(row int64) (from, to int64) {
	switch {
	case l.ends != nil:
		return l.ends[row], l.ends[row+1]
	case l.every:
		row = 0
	}
	return row * l.each, (row + 1) * l.each
}

// meaning finds what the numbers mean. It refuses integers that do not fit in 64 bits with a sign: all integers of
// columns become these.
func (l *Labels) meaning() (err error) {
	l.missing = l.declared()
	if linear := l.linear(); linear != (chunk.Linear{Scale: 1}) {
		l.unpack = &linear
	}
	if l.time, err = l.cfTime(); err != nil || l.dtype != chunk.Uint64 || l.unpack != nil {
		return err
	}
	for i := 7; i < len(l.data); i += 8 {
		if l.data[i] > math.MaxInt8 && !l.isMissing(l.data[i-7:i+1]) {
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
	case l.time != nil:
	case isFloat(l.dtype) || l.unpack != nil:
		kind = column.Float
	}
	if l.lists {
		kind |= column.List
	}
	return kind
}

// Unit returns what the numbers of times count, 0 of other labels.
func (l *Labels) Unit() time.Duration {
	if l.time != nil {
		return time.Microsecond
	}
	return 0
}

// Value returns the value of an image.
func (l *Labels) Value(row int64) column.Value {
	if l.texts != nil {
		return column.Value{Text: []byte(l.texts[row])}
	}
	if !l.lists {
		return l.number(row)
	}
	first, end := l.span(row)
	value := column.Value{List: make([]column.Value, end-first)}
	for k := range value.List {
		value.List[k] = l.number(first + int64(k))
	}
	return value
}

// number returns one number.
func (l *Labels) number(i int64) column.Value {
	size := int64(l.dtype.Size())
	sample := l.data[i*size : (i+1)*size]
	switch {
	case l.isMissing(sample):
		return column.Value{Null: true}
	case l.time != nil || l.unpack != nil:
		number := l.dtype.Number(sample)
		if l.unpack != nil {
			number = float64(number*l.unpack.Scale) + l.unpack.Offset
		}
		if l.time != nil {
			return l.time.value(number)
		}
		return column.Value{Float: number}
	case isFloat(l.dtype):
		return column.Value{Float: l.dtype.Number(sample)}
	}
	return column.Value{Int: int64(numberType{t: l.dtype}.load(sample, 0))}
}

// isMissing reports whether a number is one that _FillValue or missing_value names.
func (l *Labels) isMissing(sample []byte) bool {
	if len(l.missing) == 0 {
		return false
	}
	value, bits := l.dtype.NoData(sample)
	return slices.ContainsFunc(l.missing, chunk.NoData{Value: value, Bits: bits}.Is)
}

// Text implements store.Labels.
func (l *Labels) Text() string { return l.print() }

// Scalars returns the labels as one value for each image: of lists of one number that number, and of lists with one 1
// among zeros the place of the 1. Other lists are fault.Unsupported.
func (l *Labels) Scalars() (store.Labels, error) {
	out := *l
	out.lists = false
	if !l.lists || l.isSingle() {
		return &out, nil
	}
	if l.ends != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, labelsPart,
			"lists of several lengths have no order, parts or strata"), l.URI)
	}
	places, _ := l.ones()
	if places == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, labelsPart, "lists of %d numbers, which are not one 1 "+
			"among zeros, have no order, parts or strata", l.each), l.URI)
	}
	out.dtype, out.data, out.missing, out.unpack, out.time = chunk.Int64, places, nil, nil, nil
	return &out, nil
}

// Classes returns the labels as classes: Scalars, or lists of the numbers of classes. Lists of zeros and ones that say
// of each class whether it is there are fault.Unsupported, since 0 and 1 would be the classes.
func (l *Labels) Classes() (store.Labels, error) {
	if out, err := l.Scalars(); err == nil {
		return out, nil
	}
	if l.ends != nil {
		return l, nil
	}
	if _, bits := l.ones(); bits {
		return nil, fault.New(fault.Unsupported, labelsPart, "lists of %d zeros and ones, of which some have several "+
			"ones or none: kind \"number\" reads them as they are", l.each)
	}
	return l, nil
}

// isSingle reports whether all lists have one number.
func (l *Labels) isSingle() bool {
	if l.ends == nil {
		return l.each == 1
	}
	for row := range l.n {
		if l.ends[row+1] != row+1 {
			return false
		}
	}
	return true
}

// ones returns the place of the 1 in each list as int64, if each has one among zeros, else nil; and whether all lists
// are of zeros and ones.
func (l *Labels) ones() (places []byte, bits bool) {
	single := l.n > 0
	for row := range l.n {
		ones, place := 0, int64(0)
		for k := range l.each {
			value := l.number(row*l.each + k)
			number := float64(value.Int) + value.Float // one of them is 0
			if value.Null || number != 0 && number != 1 {
				return nil, false
			}
			if number == 1 {
				ones, place = ones+1, k
			}
		}
		single = single && ones == 1
		places = binary.LittleEndian.AppendUint64(places, uint64(place))
	}
	if !single {
		places = nil
	}
	return places, l.n > 0
}

// Attribute implements store.Group. An integer is a float, too.
func (n *Node) Attribute(ctx context.Context, path, name string) (v column.Value, kind column.Kind) {
	attrs, _ := n.attributesAt(ctx, path)
	raw := attrs[name]
	if len(raw) == 0 || string(raw) == "null" {
		return v, 0
	}
	raw = alone(raw)
	var flag bool
	if Decode(raw, &flag) == nil {
		if flag {
			v.Int, v.Float = 1, 1
		}
		return v, column.Int
	}
	if Decode(raw, &v.Int) == nil {
		v.Float = float64(v.Int)
		return v, column.Int
	}
	if Decode(raw, &v.Float) == nil {
		return v, column.Float
	}
	if text := ""; Decode(raw, &text) == nil {
		v.Text = []byte(text)
		return v, column.Text
	}
	return v, 0
}
