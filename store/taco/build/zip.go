package build

import (
	"context"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/source"
)

// zip writes the container as a ZIP: the files, then the tables of folders from the deepest level up, because each
// holds the places of the rows below it, then the tables of levels, and COLLECTION.json.
func (w *writer) zip(ctx context.Context, f archiveFile) error {
	archive := newArchive(f)
	head, err := archive.reserve()
	if err != nil {
		return err
	}
	err = w.data(ctx, archive)
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return err
	}
	places, err := w.metadata(ctx, archive.addNew)
	if err != nil {
		return err
	}
	return archive.close(head, places)
}

// data writes the files, and notes their places.
func (w *writer) data(ctx context.Context, a *archive) error {
	err := w.files(ctx, func(p place, l *loaded) (err error) {
		level, name := w.levels[p.level], dataFolder+p.path
		level.spans = append(level.spans, make([]span, len(level.Rows)-len(level.spans))...)
		switch target := &level.spans[p.row]; {
		case w.o.Form.Named() && l.size == 0:
			return w.emptyFile(p)
		case l.r == nil:
			*target, err = a.add(name, l.bytes, l.crc)
		default:
			*target, err = a.copy(name, l.size, source.Sequential(ctx, l.r, 0))
		}
		return err
	})
	for _, l := range w.levels {
		l.spans = append(l.spans, make([]span, len(l.Rows)-len(l.spans))...)
	}
	return err
}

// emptyFile returns the error about a file without bytes.
func (w *writer) emptyFile(p place) error {
	id := w.levels[0].Rows[w.topRow(p.level, int32(p.row))].ID
	_, file, _ := strings.Cut(p.path, "/")
	return unsupported("sample "+strconv.Quote(id), "%s has no bytes: files of TACO 3 have some", file)
}
