package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/store/catalog/internal/listing"
)

// Share returns a context in which Open lists each directory or glob once. It is for the datasets of one run, opened
// with one opener: a mixture may name a directory many times.
func Share(ctx context.Context) context.Context { return listing.Share(ctx) }
