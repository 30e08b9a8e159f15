package kinds

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/internal/sorter"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/build"
)

// list lists the files, in the order of the new ones' names. It holds a piece of the list in memory.
func (k *Convert) list(ctx context.Context, o resources.Options) (items job.Items, err error) {
	if k.Into, err = pathname.Abs(k.Into); err != nil {
		return items, err
	}
	size := func(r sorter.Record) int64 {
		var it convertItem
		_ = json.Unmarshal(r.Value, &it) // it was marshalled below
		return it.Size
	}
	s := sorter.New(0, size)
	inside := strings.TrimSuffix(k.Into, "/") + "/"
	if real, err := filepath.EvalSymlinks(k.Into); err == nil {
		inside = strings.TrimSuffix(real, "/") + "/"
	}
	err = build.Files(ctx, k.Paths, build.Options{Absolute: true, Opener: o.Opener}, func(f build.File) error {
		it := convertItem{Source: f.Path, File: k.newName(f.Below), Size: f.Bytes, ETag: f.ETag}
		it.Source = cmp.Or(it.Source, f.URI)
		// Files that an earlier run wrote into a directory of the sources are skipped. If the sources' own directory
		// lies in Into, they are not: free refuses those that would replace themselves.
		root := strings.TrimSuffix(strings.TrimSuffix(it.Source, f.Below), "/") + "/"
		if strings.HasPrefix(it.Source, inside) && !strings.HasPrefix(root, inside) {
			return nil
		}
		data, err := json.Marshal(it)
		if err != nil {
			return err
		}
		// By the new name, and equal names beside each other.
		return s.Add(sorter.Record{Key: it.File + "\x00" + it.Source, Value: data})
	})
	if items, err = sorted(s, err, size); err != nil {
		return items, err
	}
	if items.Count == 0 {
		return items, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no rasters"),
			strings.Join(k.Paths, ", "))
	}
	items.Each = k.apart(items.Each)
	return items, nil
}

// newName returns the name of the file that a source becomes.
func (k *Convert) newName(below string) string {
	ext := ".tif"
	if k.Options.Format == convert.Rumi2 || k.Options.Format == convert.Rumi3 {
		ext = ".rumi"
	}
	return strings.TrimSuffix(below, path.Ext(below)) + ext
}

// apart refuses two sources with one new file, and, unless Overwrite is set, new files that exist. It is the only
// check, because shards replace files.
func (k *Convert) apart(each func(context.Context, func(job.Item) error) error) func(context.Context,
	func(job.Item) error) error {
	return func(ctx context.Context, add func(job.Item) error) error {
		var last convertItem
		return each(ctx, func(i job.Item) error {
			var it convertItem
			if err := json.Unmarshal(i.Body, &it); err != nil {
				return err
			}
			if it.File == last.File {
				return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
					"%s and it would both become %s: convert them to different directories", last.Source, it.File),
					it.Source)
			}
			last = it
			if err := k.free(&it); err != nil {
				return err
			}
			return add(i)
		})
	}
}

// free refuses an item whose new file exists or is its source.
func (k *Convert) free(it *convertItem) error {
	name := k.path(it.File)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if st, err := os.Stat(it.Source); err == nil && os.SameFile(st, info) {
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"it would replace itself, and a shard that is done again would find the new one"), name)
	}
	if !k.Overwrite {
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset, "exists; --overwrite replaces it"),
			name)
	}
	return nil
}

// path returns the path of a new file.
func (k *Convert) path(file string) string { return pathname.Join(k.Into, filepath.FromSlash(file)) }

// within reports whether a name stays in the directory that it is below.
func within(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) && path.Clean(name) == name && name != "."
}

// convert converts a file.
func (k *Convert) convert(ctx context.Context, it convertItem, o convert.Options, files source.Opener) (Converted,
	error) {
	line := Converted{File: it.File, Source: it.Source}
	if !within(it.File) {
		return line, fault.New(fault.Corrupt, "items", fault.NoOffset, "the file %q leaves its directory", it.File)
	}
	o.Opener = &listed{files, it}
	name := k.path(it.File)
	if err := durable.MkdirAll(pathname.Dir(name)); err != nil {
		return line, err
	}
	sum := sha256.New()
	var bad error
	err := durable.WriteFile(name, func(f *os.File) error {
		size := &counted{}
		writer := bufio.NewWriterSize(io.MultiWriter(f, sum, size), 1<<20)
		left, err := convert.File(ctx, writer, it.Source, o)
		// Faults are about the source, which has a kind; errors of the system are about the new file.
		if fault.KindOf(err) != 0 {
			bad = fault.WithFile(err, it.Source)
			return bad
		}
		if err == nil {
			err = writer.Flush()
		}
		line.Left, line.Bytes = left, size.n
		return err
	})
	switch {
	case bad != nil && k.SkipBad:
		return Converted{File: it.File, Source: it.Source, Error: fault.Line(bad)}, nil
	case bad != nil:
		return line, bad
	case err != nil:
		return line, err
	}
	line.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return line, nil
}

// written returns an error if a file of the report does not exist.
func (k *Convert) written(c *Converted) error {
	name := k.path(c.File)
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.WithFile(fault.New(fault.NotFound, "file", fault.NoOffset,
			"a shard wrote it, and it is gone: do the shard again"), name)
	case err != nil:
		return err
	case st.Size() != c.Bytes:
		return fault.WithFile(corrupt("%d bytes, and a shard wrote %d: do the shard again", st.Size(), c.Bytes), name)
	}
	return nil
}

// listed opens the source of an item, and refuses one of another size than when it was listed.
type listed struct {
	source.Opener
	item convertItem
}

// Open implements source.Opener.
func (o *listed) Open(ctx context.Context, uri string) (source.Reader, error) {
	if uri != o.item.Source || o.item.Size == 0 {
		return o.Opener.Open(ctx, uri)
	}
	file, err := source.OpenKnown(ctx, o.Opener, uri, source.Known{Size: o.item.Size, ETag: o.item.ETag})
	if err == nil && file.Size() != o.item.Size {
		err = errors.Join(fault.WithFile(fault.New(fault.Corrupt, "dataset", fault.NoOffset,
			"it changed since the job was planned: %d bytes, and %d then", file.Size(), o.item.Size), uri),
			file.Close())
		return nil, err
	}
	return file, err
}

// counted counts bytes.
type counted struct{ n int64 }

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
