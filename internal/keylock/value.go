package keylock

import (
	"context"
	"sync"
	"sync/atomic"
)

// Value is made once. The zero value is ready for use.
type Value[V any] struct {
	making Locks[struct{}]
	made   atomic.Pointer[V]
}

// Get returns the value, which the first caller makes. Others wait for that, no longer than their contexts. After an
// error the next caller tries again.
func (v *Value[V]) Get(ctx context.Context, make func() (V, error)) (value V, err error) {
	if value, ok := v.Known(); ok {
		return value, nil
	}
	unlock, err := v.making.Lock(ctx, struct{}{})
	if err != nil {
		return value, err
	}
	defer unlock()
	if value, ok := v.Known(); ok {
		return value, nil
	}
	if value, err = make(); err == nil {
		v.made.Store(&value)
	}
	return value, err
}

// Set has Get return a value that is not made.
func (v *Value[V]) Set(value V) { v.made.Store(&value) }

// Known returns the value if it was made.
func (v *Value[V]) Known() (value V, ok bool) {
	if made := v.made.Load(); made != nil {
		return *made, true
	}
	return value, false
}

// Values has a Value for each key. The zero value is ready for use.
type Values[K comparable, V any] struct{ values sync.Map }

// Get is Value.Get of a key.
func (v *Values[K, V]) Get(ctx context.Context, key K, make func() (V, error)) (V, error) {
	value, _ := v.values.LoadOrStore(key, &Value[V]{})
	return value.(*Value[V]).Get(ctx, make)
}
