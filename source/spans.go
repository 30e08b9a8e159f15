package source

import "context"

// Spans read ranges of objects that several readers need parts of: each in one request, as long as they keep it.
type Spans interface {
	// Read fills p from offset off of an object, if that lies in a span, for which read reads a range of the object.
	Read(ctx context.Context, uri string, p []byte, off int64,
		read func(ctx context.Context, p []byte, off int64) error) (ok bool)
}

// spansKey is the context key of WithSpans.
type spansKey struct{}

// WithSpans returns a context in which remote objects are read by spans.
func WithSpans(ctx context.Context, s Spans) context.Context {
	return context.WithValue(ctx, spansKey{}, s)
}

// SpansOf returns the spans of a context, or nil.
func SpansOf(ctx context.Context) Spans {
	s, _ := ctx.Value(spansKey{}).(Spans)
	return s
}

// Extent is a range of an object.
type Extent struct {
	URI string
	Range
}
