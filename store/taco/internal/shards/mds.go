package shards

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// IndexName is the name of the index of a directory of MDS shards.
const IndexName = "index.json"

// maxIndex limits an index: 64 MiB are 60,000 shards of 1 KiB each, which hold 4 TB of the usual 64 MiB.
const maxIndex = 64 << 20

// maxIndexShard bounds the entry of one shard in an index: 1 MiB lists 10,000 columns.
const maxIndexShard = 1 << 20

// index is index.json. Unknown members are ignored.
type index struct {
	Shards indexShards `json:"shards"`
}

// indexShards are decoded and checked one after the other. The first that is wrong ends the decoding, because a shard
// takes 100 bytes of memory even if the index has two bytes for it.
type indexShards []*indexShard

// UnmarshalJSON implements json.Unmarshaler.
func (l *indexShards) UnmarshalJSON(b []byte) error {
	in := json.NewDecoder(bytes.NewReader(b))
	if t, err := in.Token(); err != nil || t != json.Delim('[') {
		return fault.New(fault.Corrupt, IndexName, fault.NoOffset, "its shards are not a list")
	}
	for i := 0; in.More(); i++ {
		var text json.RawMessage
		if err := in.Decode(&text); err != nil {
			return err
		}
		if len(text) > maxIndexShard {
			return fault.New(fault.Limit, IndexName, fault.NoOffset, "shard %d has %d bytes, at most %d", i, len(text),
				maxIndexShard)
		}
		var s *indexShard
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		*l = append(*l, s)
		if err := s.check(i, (*l)[0]); err != nil {
			return err
		}
		s.Names, s.Encodings = (*l)[0].Names, (*l)[0].Encodings // they are equal, and kept once
	}
	return nil
}

type indexShard struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Samples int64  `json:"samples"`

	Names     []string  `json:"column_names"`
	Encodings []string  `json:"column_encodings"`
	Sizes     []*int64  `json:"column_sizes"`
	Raw       *fileInfo `json:"raw_data"`
	Zip       *fileInfo `json:"zip_data"`
}

// fileInfo is the entry of a file in the index.
type fileInfo struct {
	Name  string `json:"basename"`
	Bytes int64  `json:"bytes"`
}

// IsMDS reports whether r is an index of shards of MosaicML Streaming, also one that OpenMDS refuses.
func IsMDS(ctx context.Context, r source.Reader) bool {
	x, _ := readIndex(ctx, r)
	return x != nil && len(x.Shards) > 0 && x.Shards[0] != nil && x.Shards[0].Format != ""
}

// readIndex reads an index and checks it without its shards. After an error it returns the entries decoded so far.
func readIndex(ctx context.Context, r source.Reader) (*index, error) {
	if r.Size() > maxIndex {
		return nil, fault.New(fault.Limit, IndexName, fault.NoOffset, "%d bytes, at most %d", r.Size(), maxIndex)
	}
	data := make([]byte, r.Size())
	if err := r.ReadAt(ctx, data, 0); err != nil {
		return nil, err
	}
	x := &index{}
	if err := json.Unmarshal(data, x); err != nil {
		if fault.KindOf(err) == 0 {
			err = fault.Wrap(fault.Corrupt, IndexName, fault.NoOffset, err)
		}
		return x, err
	}
	if len(x.Shards) == 0 {
		return x, fault.New(fault.Corrupt, IndexName, fault.NoOffset, "lists no shards")
	}
	return x, nil
}

// check checks shard i of an index.
func (s *indexShard) check(i int, first *indexShard) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, IndexName, fault.NoOffset, format, args...)
	}
	switch {
	case s == nil:
		return bad(fault.Corrupt, "shard %d is null", i)
	case s.Format != "mds" || s.Version != 2:
		return bad(fault.Unsupported, "shard %d is of format %.40q, version %d: mds, version 2, is read", i, s.Format,
			s.Version)
	case s.Raw == nil:
		return bad(fault.Corrupt, "shard %d has no raw_data", i)
	case model.Climbs(s.Raw.Name):
		return bad(fault.Corrupt, "shard %d is called %.200q: a name lies below the directory", i, s.Raw.Name)
	case s.Zip != nil && model.Climbs(s.Zip.Name):
		return bad(fault.Corrupt, "shard %d is called %.200q when compressed: a name lies below the directory", i,
			s.Zip.Name)
	case len(s.Names) == 0 || len(s.Encodings) != len(s.Names) || len(s.Sizes) != len(s.Names):
		return bad(fault.Corrupt, "shard %d has %d columns, %d encodings and %d sizes", i, len(s.Names),
			len(s.Encodings), len(s.Sizes))
	case s.Samples < 0 || s.Samples > maxRows:
		return bad(fault.Corrupt, "shard %d has %d samples", i, s.Samples)
	case !slices.Equal(s.Names, first.Names) || !slices.Equal(s.Encodings, first.Encodings):
		return bad(fault.Unsupported, "shards 0 and %d have different columns: %.200q and %.200q", i, first.Names,
			s.Names)
	}
	return nil
}

// OpenMDS opens a directory of MDS shards. It reads the index and, of each shard, the places and values of its samples.
// Shards that are compressed as a whole are refused, because a sample in one has no byte range: all bytes before it
// would be decompressed for each.
func OpenMDS(ctx context.Context, o source.Opener, dir string,
	join func(dir, name string) string) (*model.Container, error) {
	name := join(dir, IndexName)
	reader, err := o.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	index, err := readIndex(ctx, reader)
	if cerr := reader.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	layout, err := newLayout(index.Shards[0])
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	uris := make([]string, len(index.Shards))
	for i, s := range index.Shards {
		uris[i] = join(dir, s.Raw.Name)
	}
	c, err := open(ctx, o, dir, model.MDS, uris, func(ctx context.Context, i int, p *part, r source.Reader) error {
		return layout.read(ctx, p, r, index.Shards[i])
	})
	for i, s := range index.Shards {
		// The error names the first shard that is missing.
		if s.Zip != nil && fault.KindOf(err) == fault.NotFound && strings.HasPrefix(err.Error(), uris[i]+": ") {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "shard", fault.NoOffset,
				"is compressed as a whole, so that its samples have no byte ranges: decompress it beside itself, as %q",
				s.Raw.Name), join(dir, s.Zip.Name))
		}
	}
	return c, err
}

// read reads the places and values of the samples of a shard.
func (l *layout) read(ctx context.Context, p *part, r source.Reader, s *indexShard) error {
	if s.Raw.Bytes != r.Size() {
		return fault.New(fault.Corrupt, "shard", fault.NoOffset, "%d bytes, and %d by %s", r.Size(), s.Raw.Bytes,
			IndexName)
	}
	window := newWindow(ctx, p.shard.uri, r)
	data, err := window.bytes(0, 4)
	if err != nil {
		return fault.WithPart(err, "header", 0)
	}
	if n := binary.LittleEndian.Uint32(data); int64(n) != s.Samples {
		return fault.New(fault.Corrupt, "header", 0, "%d samples, and %d by %s", n, s.Samples, IndexName)
	}
	// The table of offsets lies in the file, so that its size bounds the allocation.
	if data, err = window.bytes(4, int(4*(s.Samples+1))); err != nil {
		return fault.WithPart(err, "offsets", 0)
	}
	offs := make([]uint32, s.Samples+1)
	least := uint32(4 + len(data))
	for i := range offs {
		offs[i] = binary.LittleEndian.Uint32(data[4*i:])
		if offs[i] < least || int64(offs[i]) > r.Size() {
			return fault.New(fault.Corrupt, "offsets", int64(4+4*i), "sample %d is at %d, after %d in %d bytes", i,
				offs[i], least, r.Size())
		}
		least = offs[i]
	}
	for i := range int(s.Samples) {
		if err := l.sample(window, p, i, int64(offs[i]), int64(offs[i+1])); err != nil {
			return fault.WithPart(err, fmt.Sprintf("sample %d", i), fault.NoOffset)
		}
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// sample reads one sample, from one offset to another.
func (l *layout) sample(w *window, p *part, row int, from, to int64) error {
	data, err := w.bytes(from, 4*l.variable)
	if err != nil {
		return err
	}
	sizes := make([]int64, len(l.encodings))
	pos := from + int64(len(data))
	end := pos
	for i, e := range l.encodings {
		if sizes[i] = e.size; e.size < 0 {
			sizes[i], data = int64(binary.LittleEndian.Uint32(data)), data[4:]
		}
		if end += sizes[i]; end > to {
			return fault.New(fault.Corrupt, "sizes", from, "columns up to %q end at %d, and the sample at %d",
				l.names[i], end, to)
		}
	}
	if end != to {
		return fault.New(fault.Corrupt, "sizes", from, "the columns end at %d, and the sample at %d", end, to)
	}
	id, count := "", int32(0)
	for i, encoding := range l.encodings {
		name, size := l.names[i], sizes[i]
		if encoding.isFile {
			f := file{name: unique.Make(name), head: noHead, off: pos, size: size}
			if encoding.array != nil {
				head, n, err := encoding.array.read(w, pos, size)
				if err != nil {
					return fault.WithPart(err, fmt.Sprintf("column %q", name), fault.NoOffset)
				}
				f.off, f.size, f.head = pos+n, size-n, unique.Make(head)
			}
			p.files, count = append(p.files, f), count+1
		} else {
			v, err := value(w, encoding, pos, size)
			if err != nil {
				return fault.WithPart(err, fmt.Sprintf("column %q", name), fault.NoOffset)
			}
			if i == l.id && v != nil {
				id = fmt.Sprint(v)
			} else if i != l.id {
				p.columns.add(row, name, encoding.typ, v)
			}
		}
		pos += size
	}
	p.ids, p.counts = append(p.ids, id), append(p.counts, count)
	return nil
}

// maxValue limits a value of a column: a loader hands out values, not documents.
const maxValue = 1 << 20

func value(w *window, e encoding, off, size int64) (any, error) {
	if size > maxValue {
		return nil, fault.New(fault.Limit, "", off, "a value of %d bytes, at most %d", size, maxValue)
	}
	data, err := w.bytes(off, int(size))
	if err != nil {
		return nil, err
	}
	return e.value(data)
}
