package source

import (
	"context"
	"sync/atomic"
)

// Meter counts the reads for one piece of work, in all packages: see WithMeter. The zero value is ready, and it is
// safe for concurrent use.
type Meter struct{ requests, bytes atomic.Int64 }

// Requests returns the number of reads of local files and of requests to servers and stores, with listings, retries
// and hedged requests. Reads from a cache do not count.
func (m *Meter) Requests() int64 { return m.requests.Load() }

// Bytes returns how many bytes were read and used.
func (m *Meter) Bytes() int64 { return m.bytes.Load() }

type meterKey struct{}

// WithMeter returns a context whose reads count in m, and in no other meter.
func WithMeter(ctx context.Context, m *Meter) context.Context {
	return context.WithValue(ctx, meterKey{}, m)
}

// Count adds to the meter of a context, if it has one. Openers call it where they read.
func Count(ctx context.Context, requests, bytes int64) {
	if m, ok := ctx.Value(meterKey{}).(*Meter); ok {
		m.requests.Add(requests)
		m.bytes.Add(bytes)
	}
}
