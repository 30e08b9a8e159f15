package build

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
	"github.com/chaski-eo/chaski/tables"
)

// shardID is the column of ids in MDS shards, and the member of the JSON in a tar.
const shardID = "id"

// headers are columns of files that shards leave out: they are about bytes which arrays have no more, and which only
// chaski reads.
var headers = []string{"chaski:index", "chaski:bands", "rumi:header", "taco:header"}

// shardSet is what all shards of a dataset have in common.
type shardSet struct {
	w       *writer
	paths   []string // of the files below a sample
	names   []string // the same, in the shards
	arrays  []bool   // which of them are decoded
	columns []shardColumn
	open    func(o shards.Output) (shardWriter, error)
	head    func(dst []byte, a *Array) ([]byte, error) // what stands before the elements of an array
}

// shardColumn is a column of level 0.
type shardColumn struct {
	name   string
	values *tables.Vector
}

// shardWriter writes samples. encode may be called by several goroutines at a time.
type shardWriter interface {
	encode(row int, files [][]byte) (any, error)
	add(sample any) error
	close() error
}

// shardSet looks at the first sample, which all others are like.
func (w *writer) shardSet(ctx context.Context) (*shardSet, error) {
	s := &shardSet{w: w}
	l := w.levels[0]
	first := slices.IndexFunc(l.content, func(c content) bool { return !c.padding })
	if first < 0 {
		return nil, fault.New(fault.Unsupported, "dataset", fault.NoOffset, "has no samples")
	}
	for _, place := range w.filesOf(first) {
		is, err := w.isRaster(ctx, place)
		if err != nil {
			return nil, err
		}
		below := s.below(place)
		name := strings.ReplaceAll(below, "/", ".")
		if place.level == 0 {
			name = "file"
			if is {
				name = "image"
			}
			if w.o.Shards.Name != "" {
				name = w.o.Shards.Name
			}
		}
		decode := is && w.o.Shards.Array != nil
		if decode {
			name = withoutExtension(name)
		}
		s.paths, s.names, s.arrays = append(s.paths, below), append(s.names, name), append(s.arrays, decode)
	}
	return s, s.choose(ctx)
}

// filesOf returns the files of a sample, without padding.
func (w *writer) filesOf(row int) []place {
	leaves := w.leaves(nil, place{0, row, w.levels[0].ids[row]})
	return slices.DeleteFunc(leaves, func(p place) bool { return w.levels[p.level].padding(p.row) })
}

// below returns the path of a file below its sample, "" for a sample that is a file.
func (s *shardSet) below(p place) string {
	_, below, _ := strings.Cut(p.path, "/")
	return below
}

// isRaster reports whether a file begins like a raster.
func (w *writer) isRaster(ctx context.Context, p place) (bool, error) {
	loaded, err := load(ctx, w.o.Opener, &w.levels[p.level].content[p.row])
	if err != nil {
		return false, err
	}
	return catalog.IsRaster(ctx, loaded.open()), loaded.close()
}

// withoutExtension returns the name of a raster without the extension of its file.
func withoutExtension(name string) string {
	ext := filepath.Ext(name)
	if catalog.IsRasterName(ext) && len(ext) < len(name) {
		return strings.TrimSuffix(name, ext)
	}
	return name
}

// choose selects the columns of level 0. One that is called like a file, or as the ids, gets the prefix "source:", as
// columns of tables get it that a container has itself.
func (s *shardSet) choose(ctx context.Context) error {
	taken := map[string]bool{shardID: true}
	for _, name := range s.names {
		if taken[name] {
			return fault.New(fault.Unsupported, "file "+strconv.Quote(name), fault.NoOffset,
				"another file of its samples, or the column of ids, has the same name in shards")
		}
		taken[name] = true
	}
	level := s.w.levels[0]
	for i, column := range level.columns.Columns() {
		if slices.Contains(headers, column.Name) {
			continue
		}
		values, err := level.columns.At(ctx, i)
		if err != nil {
			return err
		}
		// A member of the JSON of a tar gets its own name again.
		name := strings.TrimPrefix(column.Name, "json:")
		if name == shardID && sameTexts(values, level.ids) {
			continue
		}
		for taken[name] {
			name = "source:" + name
		}
		taken[name] = true
		s.columns = append(s.columns, shardColumn{name, values})
	}
	return nil
}

// sameTexts reports whether a column has the given strings.
func sameTexts(v *tables.Vector, texts []string) bool {
	for i, text := range texts {
		if v.Kind() != tables.String || v.Null(i) || v.Str(i) != text {
			return false
		}
	}
	return true
}

// fault names the sample of an error.
func (s *shardSet) fault(row int, err error) error {
	return fault.WithPart(err, "sample "+strconv.Quote(s.w.levels[0].ids[row]), fault.NoOffset)
}

// files returns the files of a sample: rasters that are decoded as .npy files, or with the header of MDS.
func (s *shardSet) files(ctx context.Context, row int) ([][]byte, error) {
	places := s.w.filesOf(row)
	same := slices.EqualFunc(places, s.paths, func(p place, below string) bool { return s.below(p) == below })
	if !same {
		return nil, s.fault(row, fault.New(fault.Unsupported, "", fault.NoOffset,
			"has other files than the first sample, %q: samples of shards have the same", s.paths))
	}
	files := make([][]byte, len(places))
	for k, place := range places {
		var err error
		if s.arrays[k] {
			files[k], err = s.array(ctx, place)
		} else {
			files[k], err = s.w.whole(ctx, place)
		}
		if err != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("sample %q", place.path), fault.NoOffset)
		}
	}
	return files, nil
}

// array returns a raster as the bytes of an array.
func (s *shardSet) array(ctx context.Context, p place) ([]byte, error) {
	row := s.w.levels[p.level].row(p.row)
	array, err := s.w.o.Shards.Array(ctx, s.w.o.Opener, &row)
	if err != nil {
		return nil, err
	}
	if array.Release != nil {
		defer array.Release()
	}
	head, err := s.head(nil, array)
	return append(head, array.Data...), err
}

// whole returns all bytes of a file.
func (w *writer) whole(ctx context.Context, p place) ([]byte, error) {
	loaded, err := load(ctx, w.o.Opener, &w.levels[p.level].content[p.row])
	if err != nil {
		return nil, err
	}
	if loaded.r == nil {
		return loaded.keep(), nil
	}
	data := make([]byte, loaded.size) // the file has them
	err = loaded.r.ReadAt(ctx, data, 0)
	if cerr := loaded.close(); err == nil {
		err = cerr
	}
	return data, err
}
