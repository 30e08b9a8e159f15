package shards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
)

// File is a file that an input is read from. An entity tag, where it is known, saves a request.
type File struct{ Name, ETag string }

// Files returns the files that an input is read from.
type Files func(ctx context.Context, input int64) ([]File, error)

// Limits of the marks of inputs.
const (
	markBytes = 8
	atOnce    = 64      // inputs that are looked at: with a round trip of 20 ms, 3,200 a second
	keptMarks = 4 << 20 // bytes of the marks of files, since inputs may lie in one
)

// marker tells whether files are what they were.
type marker struct {
	opener source.Opener
	files  Files
	cache  *lru.Cache[string, uint64]
}

func newMarker(w *Work) *marker {
	return &marker{w.Env.Files, w.Files, lru.New[string, uint64](keptMarks)}
}

// share returns a mark of each input of a share: a hash of the sizes of its files and when they were modified, and of
// those in stores of their entity tags.
func (m *marker) share(ctx context.Context, s Share) ([]byte, error) {
	if m.files == nil {
		return nil, nil
	}
	marks := make([]byte, markBytes*s.Count)
	err := each.Of(ctx, s.Count, atOnce, func(ctx context.Context, i int64) error {
		files, err := m.files(ctx, s.First+i)
		if err != nil {
			return err
		}
		sum := digest.New()
		for _, file := range files {
			if file.ETag != "" {
				sum.Record([]byte(file.ETag))
				continue
			}
			mark, err := m.file(ctx, file.Name)
			if err != nil {
				return err
			}
			sum.Number(mark)
		}
		whole := sum.Sum()
		copy(marks[markBytes*i:], whole[:markBytes])
		return nil
	})
	return marks, err
}

// changed returns an error if an input of a share has another mark than a part says.
func (m *marker) changed(ctx context.Context, s Share, said []byte) error {
	marks, err := m.share(ctx, s)
	if err != nil || bytes.Equal(marks, said) {
		return err
	}
	if len(marks) != len(said) {
		return damaged("it has %d marks of %d inputs", len(said)/markBytes, s.Count)
	}
	offset := 0
	for bytes.Equal(marks[offset:offset+markBytes], said[offset:offset+markBytes]) {
		offset += markBytes
	}
	files, err := m.files(ctx, s.First+int64(offset/markBytes))
	if err != nil {
		return err
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name)
	}
	return fault.New(fault.Corrupt, "part", "%s has changed since it was made: do the shard again",
		strings.Join(names, " or "))
}

// file returns the mark of a file. One that cannot be looked at has a mark, too, since commands may count it as bad.
func (m *marker) file(ctx context.Context, name string) (uint64, error) {
	if mark, ok := m.cache.Get(name); ok {
		return mark, nil
	}
	mark, err := m.look(ctx, name)
	if err == nil {
		m.cache.Add(name, mark, int64(len(name))+markBytes)
	}
	return mark, err
}

func (m *marker) look(ctx context.Context, name string) (uint64, error) {
	if source.IsRemote(source.FileOf(name)) {
		return m.object(ctx, source.FileOf(name))
	}
	file := source.LocalPath(source.FileOf(name))
	info, err := os.Stat(file)
	for err != nil && strings.Contains(file, source.Separator) { // what is in a container, or in a store
		file = file[:strings.LastIndex(file, source.Separator)]
		info, err = os.Stat(file)
	}
	sum := digest.New()
	switch {
	case err != nil:
		return noFile, nil
	case info.IsDir(): // a store of many files
		err = filepath.WalkDir(file, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return cmp.Or(ctx.Err(), err)
			}
			info, err := entry.Info()
			if err == nil {
				sum.Record([]byte(strings.TrimPrefix(path, file)))
				addInfo(sum, info)
			}
			return err
		})
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if err != nil {
			sum.Record([]byte(err.Error()))
		}
	default:
		addInfo(sum, info)
	}
	return number(sum), nil
}

// addInfo adds the size of a file and when it was modified. The number of its inode is left out: the same file has
// others where machines mount a store as a file system.
func addInfo(sum digest.Digest, info fs.FileInfo) {
	sum.Number(uint64(info.Size()))
	sum.Number(uint64(info.ModTime().UnixNano()))
}

// noFile is the mark of a file that cannot be looked at.
const noFile = 0

// object returns the mark of an object of a store, or of those in a folder.
func (m *marker) object(ctx context.Context, uri string) (uint64, error) {
	sum := digest.New()
	r, err := m.opener.Open(ctx, uri)
	switch {
	case ctx.Err() != nil || source.Unreachable(err):
		return 0, errors.Join(ctx.Err(), err)
	case err != nil:
		return m.folder(ctx, uri)
	}
	sum.Number(uint64(r.Size()))
	sum.Record([]byte(source.Marks(r)))
	return number(sum), r.Close()
}

// folder returns the mark of the objects in a folder of a store, in any order.
func (m *marker) folder(ctx context.Context, uri string) (uint64, error) {
	store, ok := m.opener.(source.Lister)
	if !ok {
		return noFile, nil
	}
	total := uint64(noFile)
	err := store.List(ctx, uri, func(e source.Entry) error {
		sum := digest.New()
		sum.Record([]byte(e.Path))
		sum.Record([]byte(e.ETag))
		sum.Number(uint64(e.Size))
		total += number(sum)
		return nil
	})
	if ctx.Err() != nil || source.Unreachable(err) {
		return 0, errors.Join(ctx.Err(), err)
	}
	return total, nil // a store that lists nothing has no folder
}

// number returns the first 8 bytes of a hash.
func number(sum digest.Digest) uint64 {
	whole := sum.Sum()
	return binary.LittleEndian.Uint64(whole[:markBytes])
}
