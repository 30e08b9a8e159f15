package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// zip writes the new tables of a ZIP behind its end, and then the TACO_HEADER that has their places.
func (e *editing) zip(ctx context.Context) (err error) {
	file, err := (&source.Files{}).Open(ctx, e.path)
	if err != nil {
		return err
	}
	layout, err := taco2.ReadLayout(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(e.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// No header names bytes past this end: an interrupted run left them.
	if err := f.Truncate(layout.End); err != nil {
		return err
	}
	if err := e.behind(ctx, f, layout); err != nil {
		// The old header is in place: without the new tables the file is as it was.
		return errors.Join(err, f.Truncate(layout.End))
	}
	// The tables must be on the disk before the header that names them. The header is one write within one sector.
	if err := durable.SyncFile(f); err != nil {
		return errors.Join(err, f.Truncate(layout.End))
	}
	if _, err := disk(f).WriteAt(layout.Head, 0); err != nil {
		return err
	}
	return durable.SyncFile(f)
}

// behind writes the new tables and a directory of all entries behind the end of a ZIP, and sets its places.
func (e *editing) behind(ctx context.Context, f *os.File, l *taco2.Layout) error {
	if _, err := f.Seek(l.End, io.SeekStart); err != nil {
		return err
	}
	archive := &switched{archiveFile: disk(f)}
	a := newArchive(archive)
	a.file.n = l.End
	a.zip.SetOffset(l.End)
	places := slices.Clone(l.Places)
	if e.writer.levels == nil {
		doc, err := e.document(ctx)
		if err != nil {
			return err
		}
		if places[len(places)-1], err = a.put(ctx, collName, held(doc)); err != nil {
			return err
		}
	} else {
		var err error
		for _, level := range e.writer.levels {
			level.takePlaces() // those of folders are set again as their tables are written
		}
		if places, err = e.writer.metadata(ctx, a); err != nil {
			return err
		}
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	pos, n := a.at(), a.entries
	archive.directory = &bytes.Buffer{} // what Close writes is taken apart
	if err := errors.Join(a.zip.Close(), a.out.Flush()); err != nil {
		return err
	}
	replaced := map[string]bool{}
	fresh := taco2.ParseRecords(archive.directory.Bytes(), n)
	for _, r := range fresh {
		replaced[r.Name] = true
	}
	l.SetPlaces(places)
	var records []taco2.Record
	for _, r := range l.Records {
		if !replaced[r.Name] {
			records = append(records, r)
		}
	}
	_, err := archive.archiveFile.Write(taco2.AppendDirectory(nil, append(records, fresh...), pos))
	return err
}

// switched is a file that writes to memory once directory is set.
type switched struct {
	archiveFile
	directory *bytes.Buffer
}

// Write implements io.Writer.
func (s *switched) Write(p []byte) (int, error) {
	if s.directory != nil {
		return s.directory.Write(p)
	}
	return s.archiveFile.Write(p)
}

// folder writes a folder of links to the files of the old one, and exchanges them.
func (e *editing) folder(ctx context.Context) error {
	writer := &e.writer
	if writer.levels == nil {
		doc, err := e.document(ctx)
		if err != nil {
			return err
		}
		return replaceFile(pathname.Join(e.path, collName), doc)
	}
	return durable.ReplaceFolder(e.path, func(folder string) error {
		if _, err := writer.metadata(ctx, &localFolder{dir: folder}); err != nil {
			return err
		}
		return e.others(folder)
	})
}

// others links the files that are not written again, also those that the tables do not list, such as a README or a
// mask. It copies permissions.
func (e *editing) others(to string) error {
	type mode struct {
		path string
		mode fs.FileMode
	}
	var folders []mode
	err := filepath.WalkDir(e.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, e.path), string(filepath.Separator))
		now := pathname.Join(to, name)
		_, missing := os.Lstat(now)
		switch {
		case d.IsDir():
			info, err := d.Info()
			if err != nil {
				return err
			}
			folders = append(folders, mode{now, info.Mode().Perm()})
			if missing != nil {
				return os.Mkdir(now, 0o777)
			}
			return nil
		case missing == nil: // it was written again
			return nil
		case d.Type()&fs.ModeSymlink != 0: // a relative one holds, since the new folder is beside the old one
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, now)
		}
		return os.Link(path, now)
	})
	for _, f := range slices.Backward(folders) { // the lower ones first: the upper one may be closed for writers
		if err == nil {
			err = os.Chmod(f.path, f.mode)
		}
	}
	return err
}
