// Package crash turns a panic into the error of the piece of work that panicked, so one file which a decoder
// trips over ends one request and not the process.
//
// A goroutine that decodes files or answers requests runs its work in Call or Guard. Where the work belongs to a
// request of a service, Report logs the stack.
package crash

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
)

const (
	// maxStack bounds the stack in an Error, in bytes: about 100 frames of 160 bytes. The panic is on top, so a deep
	// recursion loses its oldest frames.
	maxStack = 16 << 10
	// maxText bounds the text of the panic in an Error, in bytes. A decoder may panic with bytes of a file.
	maxText = 512
)

// Error is a panic that ended one piece of work. It lacks a kind of package fault, because it says nothing about a
// file: where the work was to read one, its caller gives it one.
type Error struct {
	Text  string // the value of the panic as text
	Stack []byte // of the goroutine that panicked

	reported atomic.Bool
}

// Error returns the value of the panic.
func (e *Error) Error() string {
	return "panic: " + e.Text + " (a bug of chaski: please report it with the stack in the log)"
}

var count atomic.Int64

// Count returns how many panics of this process became errors.
func Count() int64 { return count.Load() }

// Call calls f and returns its error, or an *Error if f panics.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newError(v)
		}
	}()
	return f()
}

// Guard returns a function that runs f in Call, for an errgroup.
func Guard(f func() error) func() error {
	return func() error { return Call(f) }
}

// newError must be called by the function that recovers: the frames of the panic are still on the stack there.
func newError(v any) *Error {
	count.Add(1)
	text, stack := fmt.Sprint(v), debug.Stack()
	return &Error{Text: text[:min(len(text), maxText)], Stack: stack[:min(len(stack), maxStack)]}
}

// Is reports whether err comes from a panic.
func Is(err error) bool { return err != nil && errors.As(err, new(*Error)) }

// Report logs the stack if err comes from a panic that was not reported yet.
func Report(log *slog.Logger, err error) {
	var e *Error
	if errors.As(err, &e) && !e.reported.Swap(true) {
		log.Error("a panic ended one request", "panic", e.Text, "stack", string(e.Stack))
	}
}
