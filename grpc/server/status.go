package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/source"
)

// invalid marks an error in what the client asked for that is not about a file.
type invalid struct{ error }

func (i invalid) Unwrap() error { return i.error }

// askedWrong marks err as an error in what the client asked for, unless it is about a file or a panic.
func askedWrong(err error) error {
	if code(err) == codes.Internal && !crash.Is(err) {
		return invalid{err}
	}
	return err
}

// code is the one place where errors become codes.
func code(err error) codes.Code {
	switch fault.KindOf(err) {
	case fault.Corrupt:
		return codes.DataLoss
	case fault.Unsupported:
		return codes.Unimplemented
	case fault.Limit:
		return codes.ResourceExhausted
	case fault.NotFound:
		return codes.NotFound
	}
	switch {
	case wire.IsRemote(err): // the fault in the details says what it is
		return codes.Unknown
	case errors.As(err, new(invalid)):
		return codes.InvalidArgument
	case errors.As(err, new(*source.RequestError)): // the fault of a third party
		return codes.Unknown
	case source.OutOfDescriptors(err):
		return codes.ResourceExhausted
	case errors.Is(err, errStopping):
		return codes.Unavailable
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	}
	return codes.Internal
}

// failed returns err as a status whose details say file, part and offset.
func failed(err error) error {
	// The status of another server is in the chain of its fault, which says more.
	if _, ok := status.FromError(err); ok && !wire.IsRemote(err) {
		return err
	}
	f := wire.NewFault(0, err)
	s := status.New(code(err), f.GetMessage())
	if d, err := s.WithDetails(f); err == nil {
		s = d
	}
	return s.Err()
}
