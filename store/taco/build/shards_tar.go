package build

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/picture/npy"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
)

// tarWriter writes tar files of WebDataset.
type tarWriter struct {
	set *shardSet
	out *shards.Tars
}

// tarSample is a sample for Tars.Add.
type tarSample struct {
	key     string
	members []shards.Member
}

// tars sets what tar files have in common, and checks the keys.
func (s *shardSet) tars() error {
	level := s.w.levels[0]
	keys := make(map[string]int, len(level.ids))
	for row := range level.ids {
		if level.padding(row) {
			continue
		}
		key := s.key(row)
		if other, ok := keys[key]; ok {
			return s.fault(row, fault.New(fault.Unsupported, "", fault.NoOffset,
				"its key is %q, as that of %q: keys have no dots and no extension", key, level.ids[other]))
		}
		keys[key] = row
	}
	s.head = func(dst []byte, a *Array) ([]byte, error) {
		head, err := npy.Header(a.DType, a.Shape)
		return append(dst, head...), err
	}
	s.open = func(o shards.Output) (shardWriter, error) { return &tarWriter{s, shards.NewTars(o)}, nil }
	return nil
}

// key returns the key of a sample: its id, for a raster without the extension. A key has no dot, because readers of a
// tar take everything after the first dot of a name as the extension.
func (s *shardSet) key(row int) string {
	id := s.w.levels[0].ids[row]
	if !s.w.levels[0].folders[row] {
		id = withoutExtension(id)
	}
	return strings.ReplaceAll(id, ".", "_")
}

func (w *tarWriter) encode(row int, files [][]byte) (any, error) {
	sample := tarSample{key: w.set.key(row)}
	seen := map[string]bool{}
	for k, data := range files {
		ext := w.set.member(k, data)
		// Readers of tar files ignore the case.
		if lower := strings.ToLower(ext); seen[lower] || lower == "json" {
			return nil, fault.New(fault.Unsupported, "file "+strconv.Quote(w.set.paths[k]), fault.NoOffset,
				"it would be the member %q of a tar, which another is", ext)
		} else {
			seen[lower] = true
		}
		sample.members = append(sample.members, shards.Member{Ext: ext, Bytes: data})
	}
	doc := fmt.Appendf(nil, "{%s: %s", quoted(shardID), quoted(w.set.w.levels[0].ids[row]))
	for _, c := range w.set.columns {
		doc = appendPython(fmt.Appendf(doc, ", %s: ", quoted(c.name)), c.values, row)
	}
	sample.members = append(sample.members, shards.Member{Ext: "json", Bytes: append(doc, '}')})
	return sample, nil
}

func (w *tarWriter) add(sample any) error {
	s := sample.(tarSample)
	return w.out.Add(s.key, s.members)
}

func (w *tarWriter) close() error { return w.out.Close() }

// member returns the name of file k in a tar, with an extension by which loaders know how to decode it.
func (s *shardSet) member(k int, b []byte) string {
	name := s.names[k]
	if s.arrays[k] {
		return name + ".npy"
	}
	if filepath.Ext(name) != "" {
		return name
	}
	return name + catalog.RasterExtension(b)
}
