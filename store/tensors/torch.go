package tensors

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Limits of what torch.save wrote.
const (
	maxPickle  = 4 << 20 // bytes of data.pkl: some 40,000 tensors
	maxEntries = 1 << 16 // members of the ZIP: the storages of tensors
	entryBytes = 256     // about the memory of one
	maxNodes   = 10000   // tensors
	maxItems   = 1 << 17 // members of dicts and lists, as often as they are reached
	maxLevels  = 16
)

// storages are the types of storages of PyTorch, and those that a tensor names itself.
var storages = map[string]chunk.DType{
	"torch DoubleStorage": chunk.Float64, "torch FloatStorage": chunk.Float32, "torch HalfStorage": chunk.Float16,
	"torch BFloat16Storage": chunk.BFloat16, "torch LongStorage": chunk.Int64, "torch IntStorage": chunk.Int32,
	"torch ShortStorage": chunk.Int16, "torch CharStorage": chunk.Int8, "torch ByteStorage": chunk.Uint8,
	"torch BoolStorage": chunk.Uint8,
	"torch uint16":      chunk.Uint16, "torch uint32": chunk.Uint32, "torch uint64": chunk.Uint64,
}

// saved is a file of torch.save.
type saved struct {
	*file
	ctx     context.Context
	prefix  string // of the names of members: that of the file when it was written
	entries map[string]zipdir.Entry
	big     bool
	items   int // so far
	nodes   int
	paths   map[string]bool // of the tensors
}

// torch reads what torch.save wrote: a ZIP of a pickle and the storages of its tensors.
func (f *file) torch(ctx context.Context) error {
	s := &saved{file: f, ctx: ctx, entries: map[string]zipdir.Entry{}, paths: map[string]bool{}}
	err := zipdir.Each(ctx, f.r, 0, func(name []byte, parse func() (zipdir.Entry, error)) error {
		if len(s.entries) >= maxEntries {
			return fault.New(fault.Limit, "central directory", "more than %d members", maxEntries)
		}
		entry, err := parse()
		if err == nil {
			err = f.Charge(ctx, entryBytes+int64(len(name)))
		}
		if folder, ok := strings.CutSuffix(string(name), "/data.pkl"); ok {
			s.prefix = folder + "/"
		}
		s.entries[string(name)] = entry
		return err
	})
	if err != nil {
		return err
	}
	if s.prefix == "" {
		return fault.At(fault.Unsupported, "file", 0, "it is a ZIP without data.pkl, not what torch.save writes")
	}
	if _, ok := s.entries[s.prefix+"byteorder"]; ok {
		order, err := s.member("byteorder", 16)
		if err != nil {
			return err
		}
		s.big = string(order) == "big"
	}
	if err := f.Charge(ctx, pickleCopies*min(max(s.entries[s.prefix+"data.pkl"].Size, 0), maxPickle)); err != nil {
		return err
	}
	text, err := s.member("data.pkl", maxPickle)
	if err != nil {
		return err
	}
	root, err := unpickle(text)
	if err == nil {
		err = s.add("", root, 0)
	}
	return err
}

// place returns where a member lies.
func (s *saved) place(name string) (chunk.Range, error) {
	entry, ok := s.entries[s.prefix+name]
	if !ok {
		return chunk.Range{}, fault.New(fault.Corrupt, "central directory", "there is no %q", s.prefix+name)
	}
	if !entry.Plain {
		return chunk.Range{}, fault.New(fault.Unsupported, "member "+name, "it is compressed: torch.save stores it")
	}
	extent, err := zipdir.Data(s.ctx, s.r, name, entry)
	return chunk.Range{Off: extent.Off, Len: extent.Size}, err
}

// member returns the bytes of a member.
func (s *saved) member(name string, most int64) ([]byte, error) {
	extent, err := s.place(name)
	if err == nil && extent.Len > most {
		err = fault.At(fault.Limit, "member "+name, extent.Off, "%d bytes, at most %d", extent.Len, most)
	}
	if err != nil {
		return nil, err
	}
	return source.Read(s.ctx, s.r, extent.Off, extent.Len)
}

// add adds what is at a path: a tensor, or what lies in a dict or a list. Numbers and texts are attributes of it.
func (s *saved) add(path string, value any, level int) error {
	if s.items++; s.items > maxItems || level > maxLevels {
		return fault.New(fault.Limit, "data.pkl", "over %d members of dicts and lists, or %d levels of them", maxItems,
			maxLevels)
	}
	if t, ok := value.(*tensor); ok {
		if s.nodes++; s.nodes > maxNodes {
			return fault.New(fault.Limit, "data.pkl", "over %d tensors", maxNodes)
		}
		return s.tensor(path, t)
	}
	keys, values := membersOf(value)
	attrs := arrays.Object{}
	for i, key := range keys {
		switch value := values[i].(type) {
		case int64, float64, string, bool:
			text, err := json.Marshal(value)
			if err != nil { // NaN, infinities
				text = []byte(fmt.Sprintf("%q", fmt.Sprint(value)))
			}
			if err := s.Charge(s.ctx, entryBytes+int64(len(key)+len(text))); err != nil {
				return err
			}
			attrs[key] = text
		case *tensor, *dict, *list, tuple:
			below := key
			if path != "" {
				below = path + "/" + key
			}
			if err := cmp.Or(arrays.CheckPath(below), s.add(below, value, level+1)); err != nil {
				return err
			}
		}
	}
	if level == 0 && s.nodes == 0 {
		return fault.New(fault.Unsupported, "data.pkl", "it holds no tensor")
	}
	s.PutGroup(path, attrs)
	return nil
}

// membersOf returns the keys and the members of a dict, a list or a tuple.
func membersOf(value any) (keys []string, values []any) {
	switch value := value.(type) {
	case *dict:
		return value.keys, value.values
	case *list:
		values = value.items
	case tuple:
		values = value
	}
	for i := range values {
		keys = append(keys, strconv.Itoa(i))
	}
	return keys, values
}

// tensor adds a tensor.
func (s *saved) tensor(path string, t *tensor) error {
	dtype := storages[cmp.Or(t.dtype, t.storage.kind)]
	part := "tensor " + path
	if s.paths[path] {
		return fault.New(fault.Unsupported, part, "two tensors have this path: one by a key with a slash, or by a "+
			"number and by its text")
	}
	s.paths[path] = true
	if dtype == chunk.Invalid {
		s.PutBroken(path, fault.New(fault.Unsupported, part, "%s is not read", cmp.Or(t.dtype, t.storage.kind)), true,
			nil)
		return nil
	}
	extent, err := s.place("data/" + t.storage.key)
	if err != nil {
		return err
	}
	size := int64(dtype.Size())
	cells := arrays.Cells(t.shape, extent.Len/size)
	if cells < 0 || t.offset > extent.Len/size-cells {
		return fault.New(fault.Corrupt, part, "%v from %d on in a storage of %d bytes", t.shape, t.offset, extent.Len)
	}
	order, dense := orderOf(t.shape, t.stride)
	if !dense {
		err := fault.New(fault.Unsupported, part, "its strides %v for %v leave gaps: save x.contiguous()", t.stride,
			t.shape)
		if path == "" {
			return err
		}
		s.PutBroken(path, err, true, nil)
		return nil
	}
	meta := &arrays.Meta{Shape: t.shape, DType: dtype, Bool: t.storage.kind == "torch BoolStorage", Order: order,
		Big: s.big && size > 1, Text: fmt.Sprint(path, t.shape, dtype, order)}
	return s.put(s.ctx, path, meta, chunk.Range{Off: extent.Off + t.offset*size, Len: cells * size})
}

// orderOf returns the dimensions from the slowest to the fastest, and whether no sample of others lies between.
func orderOf(shape, stride []int64) (order []int, dense bool) {
	for d := range shape {
		order = append(order, d)
	}
	if slices.Contains(shape, 0) {
		return order, true
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(stride[b], stride[a]) })
	want := int64(1)
	for _, d := range slices.Backward(order) {
		if shape[d] == 1 { // whose stride says nothing
			continue
		}
		if stride[d] != want {
			return nil, false
		}
		want *= shape[d]
	}
	return order, true
}
