package build

import (
	"context"
	"hash/crc32"
)

// zip writes the container as a ZIP: the files, then the tables of folders from the deepest level up, because each has
// the places of what is below it, then the tables of levels, and COLLECTION.json.
func (w *writer) zip(ctx context.Context, f archiveFile) error {
	a := newArchive(f)
	if w.work != nil {
		a = w.work.archive(f)
	}
	head, err := a.reserve()
	if err != nil {
		return err
	}
	err = w.files(ctx, func(p place, l *loaded) (err error) {
		level := w.levels[p.level]
		for len(level.spans) < len(level.ids) {
			level.spans = append(level.spans, span{})
		}
		to := &level.spans[p.row]
		if l.kept {
			*to, err = a.skip(dataFolder+p.path, l.size, l.crc, l.size > wholeBytes)
			return err
		}
		if l.r == nil {
			*to, err = a.add(dataFolder+p.path, l.bytes, l.crc)
			return err
		}
		*to, err = a.copy(dataFolder+p.path, l.size, &reader{ctx: ctx, l: l})
		return err
	})
	for _, l := range w.levels {
		l.spans = append(l.spans, make([]span, len(l.ids)-len(l.spans))...)
	}
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return err
	}
	add := func(name string, b []byte) (span, error) { return a.add(name, b, crc32.ChecksumIEEE(b)) }
	for k := len(w.levels) - 2; k >= 0; k-- {
		err := w.metaTables(ctx, k, func(row int, b []byte) (err error) {
			w.levels[k].spans[row], err = add(dataFolder+path(w.levels, k, row)+metaSuffix, b)
			return err
		})
		if err != nil {
			return err
		}
	}
	var places []span
	for k := range w.levels {
		b, err := encoded(ctx, w.consolidated(k))
		if err != nil {
			return err
		}
		at, err := add("METADATA/"+levelName(k)+".parquet", b)
		if err != nil {
			return err
		}
		places = append(places, at)
	}
	doc, err := w.document(ctx)
	if err != nil {
		return err
	}
	at, err := add(collName, doc)
	if err != nil {
		return err
	}
	return a.close(head, append(places, at))
}
