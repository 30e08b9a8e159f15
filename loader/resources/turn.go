package resources

import (
	"context"

	"github.com/chaski-eo/chaski/loader/batch"
)

// Turn says for whom an engine works on a ticket. Clients take turns, and the streams of one client do. Both fields
// are compared with ==.
type Turn struct {
	Client any
	Stream any // of the client
}

type turnKey struct{}

// WithTurn returns a context for the tickets of a stream. Tickets without it are of one stream of one client.
func WithTurn(ctx context.Context, t Turn) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// TurnOf returns the turn of WithTurn.
func TurnOf(ctx context.Context) Turn {
	t, _ := ctx.Value(turnKey{}).(Turn)
	return t
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
