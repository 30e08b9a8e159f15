package container

import (
	"cmp"
	"context"
	"os"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/open"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// s3Store is s3.Store for package build.
type s3Store struct{ *s3.Store }

// Create implements build.Store.
func (s s3Store) Create(ctx context.Context, uri string, size int64) (build.Object, error) {
	upload, err := s.Store.Create(ctx, uri, size)
	if err != nil {
		return nil, err
	}
	return upload, nil
}

// stored has write make a container of the form of o at a path, in a store if that is not nil. The path is out or, if
// out is an object of a store other than S3, a file in the directory for temporary files, which is then uploaded: the
// head of a ZIP says where its end lies, and only uploads to S3 take parts in any order. The object is the old one or
// the new one at any time.
func stored(ctx context.Context, out string, o build.Options, write func(path string, store build.Store) error) error {
	if !open.IsStore(out) {
		return write(out, nil)
	}
	bucket, key, done, err := open.Bucket(ctx, out)
	if err != nil {
		return err
	}
	defer done()
	oneFile := o.Form.OneFile() && o.PartBytes == 0
	if strings.Trim(key, "/") == "" || oneFile && strings.HasSuffix(key, "/") {
		return console.Usagef("OUT is %s: it has no name of an object", out)
	}
	if rest, is := strings.CutPrefix(out, "s3://"); is {
		name, _, _ := strings.Cut(rest, "/")
		store, err := s3.StoreOf(bucket, name)
		if err != nil {
			return err
		}
		return write(out, s3Store{store})
	}
	if !oneFile {
		return console.Usagef("OUT is %s: in a store other than S3, a container is one file, such as .tacozip", out)
	}
	name := path.Base(key)
	folder, err := durable.NewFolder(pathname.Join(os.TempDir(), name))
	if err != nil {
		return err
	}
	file := pathname.Join(folder.Path, name)
	if err = write(file, nil); err == nil {
		err = open.Upload(ctx, bucket, key, out, file)
	}
	return cmp.Or(err, folder.Remove())
}
