package resources

import (
	"context"

	"github.com/chaski-eo/chaski/loader/batch"
)

// Caller says for whom an engine works on a ticket. Clients get batches by turns, and so do the streams of one client.
// Both fields are compared with ==.
type Caller struct {
	Client any
	Stream any // of the client
}

type callerKey struct{}

// WithCaller returns a context for the tickets of a stream. Tickets without it are of one stream of one client.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of WithCaller.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

type ownerKey struct{}

// WithOwner returns a context for tickets whose batches are for an owner.
func WithOwner(ctx context.Context, o batch.Owner) context.Context {
	return context.WithValue(ctx, ownerKey{}, o)
}

// OwnerOf returns the owner of WithOwner, or nil.
func OwnerOf(ctx context.Context) batch.Owner {
	o, _ := ctx.Value(ownerKey{}).(batch.Owner)
	return o
}
