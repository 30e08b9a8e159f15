package build

import (
	"context"
	"errors"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// onto calls fill with what takes the files of a container that is a folder. The container appears at path when it is
// complete.
func (w *writer) onto(ctx context.Context, path string, fill func(ctx context.Context, t folderSink) error) error {
	if w.o.Store != nil {
		return fault.WithFile(w.inStore(ctx, path, fill), path)
	}
	return durable.WriteFolder(path, func(folder string) error { return fill(ctx, &localFolder{dir: folder}) })
}

// into writes a container that is a folder.
func (w *writer) into(ctx context.Context, t folderSink) error {
	if w.o.Form != CozipFolder {
		_, err := w.taco2(ctx, t)
		return err
	}
	block, err := w.taco3(ctx, t)
	if err == nil { // the description is what makes it a container
		_, err = putAll(ctx, t, "", append(block[1:], block[0]))
	}
	return err
}

// localFolder is a new local folder. Its files are synced afterwards.
type localFolder struct {
	dir  string
	made map[string]bool // folders
}

func (t *localFolder) path(name string) string { return pathname.Join(t.dir, name) }

// folder makes a folder and those above it. Ids were checked and cannot lead out of the container, and a new folder
// holds no links.
func (t *localFolder) folder(path string) error {
	if t.made[path] || path == t.dir {
		return nil
	}
	err := t.folder(pathname.Dir(path))
	if err == nil {
		err = os.Mkdir(path, 0o777)
	}
	if t.made == nil {
		t.made = map[string]bool{}
	}
	t.made[path] = err == nil
	return err
}

func (t *localFolder) put(ctx context.Context, name string, l *loaded) (none span, err error) {
	path := t.path(name)
	if err := t.folder(pathname.Dir(path)); err != nil {
		return none, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return none, err
	}
	return none, errors.Join(l.writeTo(ctx, disk(file)), file.Close())
}
