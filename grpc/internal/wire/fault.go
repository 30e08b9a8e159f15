package wire

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/text"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
)

// Kinds of a Fault beyond those of package fault.
const (
	UnknownSpec = "unknown spec"
	// Unavailable is of a server of files that did not answer, or refused: see source.RequestError.
	Unavailable = "unavailable"
	Internal    = "internal"
)

// ErrUnknownSpec is the fault of a ticket whose spec the server has not opened, or not any more.
var ErrUnknownSpec = errors.New("the server does not know the spec")

// NewFault returns the message for an error of a ticket.
func NewFault(ticket uint64, err error) *chaskiv1.Fault {
	f := &chaskiv1.Fault{Ticket: ticket, Kind: Internal, Offset: fault.NoOffset, Message: text.Fit(fault.Line(err))}
	var e *fault.Error
	var r *source.RequestError
	switch {
	case errors.Is(err, ErrUnknownSpec):
		f.Kind = UnknownSpec
	case errors.As(err, &e):
		f.Kind, f.File, f.Part, f.Offset = e.Kind.Error(), text.Fit(e.File), text.Fit(e.Part), e.Off
	case errors.As(err, &r):
		f.Kind, f.File, f.Part, f.Offset = Unavailable, text.Fit(r.URI), text.Fit(r.Part), r.Off
	}
	return f
}

// remote is an error of the other side whose line is known and whose parts are in cause.
type remote struct {
	line  string
	cause error
}

func (r *remote) Error() string { return r.line }
func (r *remote) Unwrap() error { return r.cause }

// FaultError is the error that a Fault tells of. It has a *fault.Error in its chain where the fault
// has a kind of package fault, or ErrUnknownSpec.
func FaultError(f *chaskiv1.Fault) error {
	line := fault.Line(errors.New(f.GetMessage()))
	if f.GetKind() == UnknownSpec {
		return &remote{line, ErrUnknownSpec}
	}
	for _, k := range []fault.Kind{fault.Corrupt, fault.Unsupported, fault.Limit, fault.NotFound} {
		if f.GetKind() == k.Error() {
			return &remote{line, &fault.Error{Kind: k, File: f.GetFile(), Part: f.GetPart(), Off: f.GetOffset(), Msg: line}}
		}
	}
	kind := Internal
	if f.GetKind() == Unavailable {
		kind = Unavailable
	}
	return fmt.Errorf("%s: %s", line, kind)
}

// StatusError is the error that a call's status tells of: that of the Fault in its details, if there
// is one.
func StatusError(err error) error {
	s, ok := status.FromError(err)
	if !ok || s.Code() == codes.OK {
		return err
	}
	for _, d := range s.Details() {
		if f, ok := d.(*chaskiv1.Fault); ok {
			return &remote{fault.Line(errors.New(f.GetMessage())), errors.Join(FaultError(f), err)}
		}
	}
	return err
}
