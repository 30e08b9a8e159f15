// Package pace marks the pieces of long work, between which a goroutine may pass its processor on. Package turns
// decides who has one.
package pace

import "context"

// Place is where a goroutine computes. Its methods take a nil pointer, of work without a place.
type Place interface {
	// Tick comes before each piece of work.
	Tick(ctx context.Context) error
	// Rest gives the place back, before the goroutine waits for anything. It may be called more than once.
	Rest()
}

type key struct{}

// With returns a context whose work is done in a place.
func With(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// Of returns the place of a context, or nil.
func Of(ctx context.Context) Place {
	place, _ := ctx.Value(key{}).(Place)
	return place
}

// Tick calls Tick of the place of ctx. Without one it returns the error of ctx.
func Tick(ctx context.Context) error {
	if place := Of(ctx); place != nil {
		return place.Tick(ctx)
	}
	return ctx.Err()
}

// Rest calls Rest of the place of ctx.
func Rest(ctx context.Context) {
	if place := Of(ctx); place != nil {
		place.Rest()
	}
}
