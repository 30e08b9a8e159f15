package server

import (
	"context"
	"encoding/base64"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/procs"
)

var errStopping = errors.New("the server is stopping")

// invalid marks an error in a client's request that is not about a file.
type invalid struct{ error }

func (i invalid) Unwrap() error { return i.error }

// askedWrong marks err as an error in the client's request, unless it is about a file or a panic.
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
	case fault.Misplaced:
		return codes.FailedPrecondition
	}
	switch {
	case wire.IsRemote(err): // the fault in the details has its kind
		return codes.Unknown
	case errors.As(err, new(invalid)):
		return codes.InvalidArgument
	case errors.Is(err, wire.ErrUnknownSpec): // who asks describes it again
		return codes.FailedPrecondition
	case errors.As(err, new(*fault.RequestError)): // the fault of a third party
		return codes.Unknown
	case procs.OutOfDescriptors(err):
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
	details := wire.NewFault(0, err)
	for limit := fault.MaxText; ; limit /= 2 {
		details.Message, details.File = fault.FitIn(details.GetMessage(), limit), fault.FitIn(details.GetFile(), limit)
		details.Part = fault.FitIn(details.GetPart(), limit)
		if member := details.GetMember(); member != nil {
			member.Where, member.Name = fault.FitIn(member.GetWhere(), limit), fault.FitIn(member.GetName(), limit)
			member.Value, member.Rule = fault.FitIn(member.GetValue(), limit), fault.FitIn(member.GetRule(), limit)
		}
		answer := status.New(code(err), details.GetMessage())
		if d, err := answer.WithDetails(details); err == nil {
			answer = d
		}
		if limit <= leastText || headerBytes(answer) <= maxStatus {
			return answer.Err()
		}
	}
}

const (
	// maxStatus bounds the bytes of a call's status in its headers. Clients of gRPC's C library (Python, C++, Ruby)
	// accept 8 KiB of headers by default, and get INTERNAL in place of a longer status; 1 KiB is for other headers.
	maxStatus = 7 << 10
	// leastText is to how many bytes each text may be cut. The message is sent three times: in a header, where a byte
	// may take three, and twice in the details, where it takes 4/3; file and part, or the texts about a member, are
	// sent once. Of 512 bytes each these are 5.5 KiB.
	leastText = 512
)

// headerBytes returns how many bytes a status takes in the headers of a call.
func headerBytes(s *status.Status) int {
	const name = 32 + len("grpc-status-details-bin") // 32: what HTTP/2 counts for each header
	size := 2*name + base64.StdEncoding.EncodedLen(proto.Size(s.Proto()))
	for _, char := range []byte(s.Message()) {
		if size++; char < ' ' || char > '~' || char == '%' {
			size += 2
		}
	}
	return size
}
