package container

import (
	"context"
	"os"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// stored has write make a container, at a path that it is given. That is out or, if out is an object of a store, a
// file in the directory for temporary files, which is then uploaded: the head of a ZIP says where its end lies, and
// objects are written from their beginning. The object is the old one or the new one at any time.
func stored(ctx context.Context, out string, form build.Form, parts partFlags, write func(path string) error) error {
	if !open.IsStore(out) {
		return write(out)
	}
	if form == build.Auto {
		form = build.FormOf(out)
	}
	if form != build.ZIP && !form.Older() || parts != (partFlags{}) {
		return console.Usagef("OUT is %s: in a store, a container is one file, such as .tacozip", out)
	}
	bucket, key, done, err := open.Bucket(ctx, out)
	if err != nil {
		return err
	}
	defer done()
	name := path.Base(key)
	if key == "" || strings.HasSuffix(key, "/") {
		return console.Usagef("OUT is %s: it has no name of an object", out)
	}
	folder, err := durable.NewFolder(pathname.Join(os.TempDir(), name))
	if err != nil {
		return err
	}
	file := pathname.Join(folder.Path, name)
	if err = write(file); err == nil {
		err = job.Upload(ctx, bucket, key, strings.TrimSuffix(out, "/"+key), file)
	}
	return console.FirstError(err, folder.Remove())
}
