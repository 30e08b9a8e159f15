// Package keylock has locks that are held while something is read. Whoever waits for one waits no longer than its
// context, and for others of the same key only: a directory or a server that hangs holds up those that ask for it.
package keylock

import (
	"context"
	"sync"
)

// Locks has a lock for each key. The zero value is ready for use.
type Locks[K comparable] struct {
	mu    sync.Mutex // guards held, and is not held during a wait
	locks map[K]chan struct{}
}

// Lock waits until nobody else has the lock of a key, and returns a function that gives the lock back. It returns the
// error of ctx if that ends first.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	for {
		l.mu.Lock()
		other, busy := l.locks[key]
		if !busy {
			mine := make(chan struct{})
			if l.locks == nil {
				l.locks = map[K]chan struct{}{}
			}
			l.locks[key] = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.locks, key)
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
