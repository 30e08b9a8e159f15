package build

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables/encode"
)

// folder writes the container into the empty folder dir, which is synced afterwards.
func (w *writer) folder(ctx context.Context, dir string) error {
	data := pathname.Join(dir, dataFolder)
	if err := w.work.makeFolder(data); err != nil {
		return err
	}
	made := make([]int, taco2.MaxLevels) // by level: how many rows have their folder already
	err := w.files(ctx, func(p place, l *loaded) error {
		if err := w.mkdirs(data, made); err != nil {
			return err
		}
		if l.kept {
			return w.work.keepFile(data, p.path, l.size)
		}
		if l.link != "" {
			return os.Link(l.link, pathname.Join(data, p.path))
		}
		w.work.wrote(pathname.Join(data, p.path))
		return writeNew(pathname.Join(data, p.path), func(f io.Writer) error {
			if l.r == nil {
				return written(l.bytes)(f)
			}
			_, err := io.Copy(f, source.Sequential(ctx, l.r, 0))
			return err
		})
	})
	if err == nil && !w.settled {
		err = w.settle(ctx)
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(pathname.Join(dir, metadataFolder), 0o777); err != nil {
		return err
	}
	return w.folderTables(ctx, func(name string, b []byte) error {
		return writeNew(pathname.Join(dir, name), written(b))
	})
}

// metadataFolder has the tables of levels.
const metadataFolder = "METADATA/"

// folderTables calls put with the tables of a container that is a folder, then with COLLECTION.json.
func (w *writer) folderTables(ctx context.Context, put func(name string, b []byte) error) error {
	for k := range len(w.levels) - 1 {
		err := w.metaTables(ctx, k, func(row int, b []byte) error {
			return put(dataFolder+path(w.levels, k, row)+metaSuffix, b)
		})
		if err != nil {
			return err
		}
	}
	for k := range w.levels {
		var b bytes.Buffer
		// A store that keeps equal pieces of files once gets only the pages that an edit changes.
		err := encode.ByContent(ctx, &b, w.consolidated(k))
		if err == nil {
			err = put(metadataFolder+levelName(k)+".parquet", b.Bytes())
		}
		if err != nil {
			return err
		}
	}
	doc, err := w.document(ctx)
	if err != nil {
		return err
	}
	return put(collName, doc)
}

// mkdirs makes the folders of the rows that were added since it was last called.
func (w *writer) mkdirs(data string, made []int) error {
	for k, l := range w.levels {
		for ; made[k] < len(l.ids); made[k]++ {
			if !l.folders[made[k]] {
				continue
			}
			// Ids were checked and cannot lead out of the folder. The folder is new, so it holds no
			// links.
			if err := w.work.mkdir(data, path(w.levels, k, made[k])); err != nil {
				return err
			}
		}
	}
	return nil
}
