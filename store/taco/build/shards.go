package build

import (
	"context"
	"io"
	"os"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
	"github.com/chaski-eo/chaski/tables"
)

// splitColumn divides samples by Shards.BySplit.
const splitColumn = "split"

// shards writes the samples into the empty folder dir, which is synced afterwards.
func (w *writer) shards(ctx context.Context, dir string) error {
	s, err := w.shardSet(ctx)
	if err != nil {
		return err
	}
	if w.o.Form == MDS {
		s.mds()
	} else if err := s.tars(); err != nil {
		return err
	}
	parts, err := w.shardParts(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range parts {
		total += len(p.rows) * len(s.paths)
	}
	for _, p := range parts {
		into := dir
		if p.name != "" {
			into = pathname.Join(dir, p.name)
			if err := os.Mkdir(into, 0o777); err != nil {
				return err
			}
		}
		if err := s.write(ctx, into, p.rows, total); err != nil {
			return err
		}
	}
	return nil
}

// shardPart is a folder of shards.
type shardPart struct {
	name string // "" for the only one
	rows []int  // of level 0
}

// shardParts returns the folders of shards, and the samples of each.
func (w *writer) shardParts(ctx context.Context) ([]shardPart, error) {
	l := w.levels[0]
	bad := func(row int, format string, args ...any) error {
		return fault.New(fault.Unsupported, "sample "+strconv.Quote(l.ids[row]), fault.NoOffset, format, args...)
	}
	var splits *tables.Vector
	if w.o.Shards.BySplit {
		at := l.columns.Index(splitColumn)
		if at < 0 {
			return nil, fault.New(fault.NotFound, "column "+splitColumn, fault.NoOffset,
				"the samples have none: shards are divided by it")
		}
		var err error
		if splits, err = l.columns.At(ctx, at); err != nil {
			return nil, err
		}
		if splits.Kind() != tables.String {
			return nil, bad(0, "its split is not a string")
		}
	}
	var parts []shardPart
	of := map[string]int{} // the number of a part, by its name
	for row, id := range l.ids {
		if isPadding(id) {
			continue
		}
		name := ""
		if splits != nil {
			if splits.Null(row) {
				return nil, bad(row, "its split is null")
			}
			if name = splits.Str(row); badID(name) != "" {
				return nil, bad(row, "its split %q cannot be a folder: it %s", name, badID(name))
			}
		}
		k, known := of[name]
		if !known {
			k, of[name] = len(parts), len(parts)
			parts = append(parts, shardPart{name: name})
		}
		parts[k].rows = append(parts[k].rows, row)
	}
	return parts, nil
}

// write writes the shards of some samples.
func (s *shardSet) write(ctx context.Context, dir string, rows []int, total int) error {
	limit := s.w.o.Shards.Bytes
	if limit <= 0 {
		limit = ShardBytes
	}
	out, err := s.open(shards.Output{Bytes: limit, Level: s.w.o.Shards.Level, Hashes: []string{"xxh64"},
		Put: func(name string, pieces ...[]byte) error {
			return writeNew(pathname.Join(dir, name), func(f io.Writer) error {
				for _, p := range pieces {
					if _, err := f.Write(p); err != nil {
						return err
					}
				}
				return nil
			})
		}})
	if err != nil {
		return err
	}
	type made struct {
		sample any
		bytes  int64
	}
	err = inorder.Do(ctx, len(rows), s.w.o.Workers,
		func(ctx context.Context, i int) (m made, err error) {
			files, err := s.files(ctx, rows[i])
			if err != nil {
				return m, err
			}
			for _, b := range files {
				m.bytes += int64(len(b))
			}
			m.sample, err = out.encode(rows[i], files)
			return m, s.fault(rows[i], err)
		},
		func(i int, m made) error {
			if err := out.add(m.sample); err != nil {
				return s.fault(rows[i], err)
			}
			r := &s.w.result
			r.Samples, r.Files, r.Bytes = r.Samples+1, r.Files+len(s.paths), r.Bytes+m.bytes
			if s.w.o.Progress != nil {
				s.w.o.Progress(r.Files, total)
			}
			return nil
		}, func(made) {})
	if err != nil {
		return err
	}
	return out.close()
}
