package taco

import (
	"context"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Kind is what the kind of the paths of containers does without the loader, which adds to it and registers it.
type Kind struct{}

// String implements store.Kind.
func (Kind) String() string { return "a container" }

// Named implements store.Named.
func (Kind) Named(p source.Path) bool { return Named(p) }

// Is implements store.Kind.
func (Kind) Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	return Is(ctx, o, p)
}

// Parts implements store.Lists.
func (Kind) Parts(ctx context.Context, o source.Opener, uri string) bool { return IsSet(ctx, o, uri) }

// Usage implements store.Several.
func (Kind) Usage(path string) string { return "its rasters are called " + path + "::SAMPLE/PATH" }

// Verify implements store.Verifier.
func (Kind) Verify(ctx context.Context, c *store.Check, path string) error {
	return check(ctx, c, path)
}
