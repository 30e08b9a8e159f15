package open

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// InContainers returns an opener that follows paths into containers too. A file whose own name has the
// separator in it is a file.
func InContainers(files source.Opener) source.Opener {
	return &pathOpener{files: files, in: taco.Opener{Base: files}}
}

type pathOpener struct {
	files source.Opener
	in    taco.Opener
}

func (o *pathOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	_, _, ok := taco.Split(uri)
	switch {
	case !ok:
		return o.files.Open(ctx, uri)
	case source.IsRemote(uri):
		return o.remote(ctx, uri)
	}
	r, err := o.files.Open(ctx, uri)
	if fault.KindOf(err) == fault.NotFound {
		return o.in.Open(ctx, uri)
	}
	return r, err
}

// remote opens a URI with the separator in it. Objects are hardly ever called so: the container is asked for first.
// And where the URI has a query, a server would take the path for a part of that.
func (o *pathOpener) remote(ctx context.Context, uri string) (source.Reader, error) {
	r, err := o.in.Open(ctx, uri)
	if k := fault.KindOf(err); k != fault.NotFound && k != fault.Unsupported || strings.Contains(uri, "?") {
		return r, err
	}
	if file, ferr := o.files.Open(ctx, uri); ferr == nil {
		return file, nil
	}
	return nil, err
}

// OpenKnown implements source.KnownOpener. What lies in a container is opened by its path.
func (o *pathOpener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	if _, _, ok := taco.Split(uri); ok {
		return o.Open(ctx, uri)
	}
	return source.OpenKnown(ctx, o.files, uri, k)
}

// List implements source.Lister.
func (o *pathOpener) List(ctx context.Context, folder string, each func(source.Entry) error) error {
	return source.List(ctx, o.files, folder, each)
}
