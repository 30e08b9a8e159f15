package build

import (
	"context"
	"strconv"
	"strings"
)

// zip writes the container as a ZIP: TACO_HEADER, then what taco2 writes.
func (w *writer) zip(ctx context.Context, f archiveFile) error {
	archive := newArchive(f)
	head, err := archive.reserve()
	if err != nil {
		return err
	}
	places, err := w.taco2(ctx, archive)
	if err != nil {
		return err
	}
	return archive.close(head, places)
}

// taco2 writes the files, then the tables of folders from the deepest level up, because each holds the places of the
// rows below it, then the tables of levels, and COLLECTION.json. It returns the places of the latter.
func (w *writer) taco2(ctx context.Context, t sink) ([]span, error) {
	err := w.data(ctx, t)
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w.metadata(ctx, t)
}

// data writes the files, and notes their places in a container that is one file.
func (w *writer) data(ctx context.Context, t sink) error {
	_, oneFile := t.(*archive)
	err := w.files(ctx, func(p place, l *loaded) error {
		if w.o.Form.Named() && l.size == 0 {
			return w.emptyFile(p)
		}
		place, err := t.put(ctx, dataFolder+p.path, l)
		if level := w.levels[p.level]; oneFile {
			level.spans = append(level.spans, make([]span, len(level.Rows)-len(level.spans))...)
			level.spans[p.row] = place
		}
		return err
	})
	for _, l := range w.levels {
		if oneFile {
			l.spans = append(l.spans, make([]span, len(l.Rows)-len(l.spans))...)
		}
	}
	return err
}

// emptyFile returns the error about a file without bytes.
func (w *writer) emptyFile(p place) error {
	id := w.levels[0].Rows[w.topRow(p.level, int32(p.row))].ID
	_, file, _ := strings.Cut(p.path, "/")
	return unsupported("sample "+strconv.Quote(id), "%s has no bytes: files of TACO 3 have some", file)
}
