package taco

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// InContainers returns an opener that also follows paths into containers, CONTAINER::PATH. Unlike
// Opener it opens files with the separator in their own name too.
func InContainers(files source.Opener) source.Opener {
	return &pathOpener{files: files, in: Opener{Base: files}}
}

// pathOpener is the opener of InContainers.
type pathOpener struct {
	files source.Opener
	in    Opener
}

// Open implements source.Opener.
func (o *pathOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	_, _, ok := Split(uri)
	switch {
	case !ok:
		return o.files.Open(ctx, uri)
	case source.IsRemote(uri):
		return o.remote(ctx, uri)
	}
	// The file comes first, because a local file may have the separator in its own name.
	file, err := o.files.Open(ctx, uri)
	if fault.KindOf(err) == fault.NotFound {
		return o.in.Open(ctx, uri)
	}
	return file, err
}

// remote opens a URI with the separator in it. It tries the container first, because hardly any
// object has the separator in its name, and each attempt costs a request.
func (o *pathOpener) remote(ctx context.Context, uri string) (source.Reader, error) {
	reader, err := o.in.Open(ctx, uri)
	// Behind a query, a server would take the path for a part of the query and answer with anything.
	if k := fault.KindOf(err); k != fault.NotFound && k != fault.Unsupported || strings.Contains(uri, "?") {
		return reader, err
	}
	if file, ferr := o.files.Open(ctx, uri); ferr == nil {
		return file, nil
	}
	return nil, err
}

// OpenKnown implements source.KnownOpener. For a member of a container it opens the path, since the
// known size and ETag belong to a whole file.
func (o *pathOpener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	if _, _, ok := Split(uri); ok {
		return o.Open(ctx, uri)
	}
	return source.OpenKnown(ctx, o.files, uri, k)
}

// List implements source.Lister.
func (o *pathOpener) List(ctx context.Context, dir string, each func(source.Entry) error) error {
	return source.List(ctx, o.files, dir, each)
}
