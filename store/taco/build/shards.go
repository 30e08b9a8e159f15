package build

import (
	"context"
	"os"

	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco/internal/shards"
)

// splitColumn divides samples by Shards.BySplit.
const splitColumn = "split"

// shards writes the samples into the empty folder dir, which is synced afterwards.
func (w *writer) shards(ctx context.Context, dir string) error {
	return w.shardsInto(ctx, func(name string) error { return os.Mkdir(pathname.Join(dir, name), 0o777) },
		func(name string, pieces ...[]byte) error {
			return writeNew(pathname.Join(dir, name), written(pieces...))
		})
}

// shardsInto writes the samples by put, into folders that mkdir has made.
func (w *writer) shardsInto(ctx context.Context, mkdir func(name string) error,
	put func(name string, pieces ...[]byte) error) error {
	shardSet, err := w.shardSet(ctx)
	if err != nil {
		return err
	}
	if w.o.Form == MDS {
		shardSet.mds()
	} else if err := shardSet.tars(); err != nil {
		return err
	}
	parts, err := w.shardParts(ctx)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range parts {
		total += len(p.rows) * len(shardSet.paths)
	}
	for _, group := range parts {
		into := ""
		if group.name != "" {
			into = group.name + "/"
			if err := mkdir(group.name); err != nil {
				return err
			}
		}
		if err := shardSet.write(ctx, func(name string, pieces ...[]byte) error { return put(into+name, pieces...) },
			group.rows, total); err != nil {
			return err
		}
	}
	return nil
}

// shardParts returns the folders of shards, and the samples of each.
func (w *writer) shardParts(ctx context.Context) ([]group, error) {
	if w.o.Shards.BySplit {
		return w.groups(ctx, splitColumn)
	}
	whole := group{}
	for row := range w.levels[0].ids {
		if !w.levels[0].padding(row) {
			whole.rows = append(whole.rows, row)
		}
	}
	return []group{whole}, nil
}

// write writes the shards of some samples.
func (s *shardSet) write(ctx context.Context, put func(name string, pieces ...[]byte) error, rows []int,
	total int) error {
	limit := s.w.o.Shards.Bytes
	if limit <= 0 {
		limit = ShardBytes
	}
	out, err := s.open(shards.Output{Bytes: limit, Level: s.w.o.Shards.Level, Hashes: []string{"xxh64"},
		Put: put})
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
			result := &s.w.result
			result.Samples, result.Files, result.Bytes = result.Samples+1, result.Files+len(s.paths),
				result.Bytes+m.bytes
			if s.w.o.Progress != nil {
				s.w.o.Progress(result.Files, total)
			}
			return nil
		}, func(made) {})
	if err != nil {
		return err
	}
	return out.close()
}
