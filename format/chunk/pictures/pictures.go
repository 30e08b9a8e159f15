// Package pictures reads the headers of PNG, JPEG and NumPy files. Package format/picture does it, where a program
// imports that.
package pictures

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
)

var (
	// Open makes the index of a file, as picture.Open does. Without that package it is an error: fault.Unsupported.
	Open = func(ctx context.Context, r source.Reader, axes chunk.Axes, maxChunk int) (*chunk.Index, error) {
		return nil, fault.NotImported("header", "reads pictures", "format/picture")
	}
	// Palette returns the colours of a PNG, as picture.Palette does.
	Palette = func(ctx context.Context, r source.Reader) []string { return nil }
)
