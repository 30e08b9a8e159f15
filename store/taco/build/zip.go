package build

import (
	"context"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
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
	places, err := w.metadata(ctx, archive)
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
	return fault.New(fault.Unsupported, "sample "+strconv.Quote(id), fault.NoOffset,
		"%s has no bytes: files of TACO 3 have some", file)
}

// metadata writes the tables of folders and of levels, and COLLECTION.json. It returns the places of the latter.
func (w *writer) metadata(ctx context.Context, a *archive) (places []span, err error) {
	for k := len(w.levels) - 2; k >= 0; k-- {
		err := w.metaTables(ctx, k, func(row int, b []byte) (err error) {
			w.levels[k].spans[row], err = a.addNew(dataFolder+path(w.levels, k, row)+metaSuffix, b)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for k := range w.levels {
		data, err := encoded(ctx, w.consolidated(k))
		if err != nil {
			return nil, err
		}
		place, err := a.addNew("METADATA/"+levelName(k)+".parquet", data)
		if err != nil {
			return nil, err
		}
		places = append(places, place)
	}
	doc, err := w.document(ctx)
	if err != nil {
		return nil, err
	}
	place, err := a.addNew(collName, doc)
	if err != nil {
		return nil, err
	}
	return append(places, place), nil
}
