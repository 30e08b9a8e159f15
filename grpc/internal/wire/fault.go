package wire

import (
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Kinds of a Fault that package fault lacks.
const (
	UnknownSpec = "unknown spec"
	// Unavailable is of a server of files that did not answer, or refused: see fault.RequestError.
	Unavailable = "unavailable"
	Internal    = "internal"
	// Of an engine that is the client of other servers: kinds of errors of those.
	Access   = "access"   // a server does not let it in
	Deadline = "deadline" // a server said nothing in time
	State    = "state"    // it sees other data than the run is of
	Payload  = "payload"  // it breaks the protocol
	Spec     = "spec"     // it refuses the spec
)

// ErrUnknownSpec is the fault of a ticket whose spec the server has yet to open, or has closed.
var ErrUnknownSpec = errors.New("the server does not know the spec")

// NewFault returns the message for an error of a ticket.
func NewFault(ticket uint64, err error) *chaskiv1.Fault {
	var other *remote
	if errors.As(err, &other) && other.fault.GetKind() != UnknownSpec {
		// What another server said is passed on as it is, since its fields are not in the text.
		message := proto.CloneOf(other.fault)
		message.Ticket = ticket
		return message
	}
	message := &chaskiv1.Fault{
		Ticket: ticket, Kind: Internal, Offset: fault.NoOffset, Message: fault.Fit(fault.Line(err)),
	}
	var e *fault.Error
	var r *fault.RequestError
	var m *fault.MemberError
	switch {
	case errors.As(err, &m):
		message.Member = &chaskiv1.FaultMember{
			Where: fit(strings.TrimPrefix(m.Where, "spec: ")), Name: fit(m.Member), Value: fit(m.Given()),
			Rule: fit(m.Rule),
		}
	case errors.Is(err, ErrUnknownSpec):
		message.Kind = UnknownSpec
	case errors.As(err, &e):
		message.Kind, message.Part, message.Offset = e.Kind.Error(), fit(e.Part), e.Off
		message.File = fit(e.File)
	case procs.OutOfDescriptors(err):
		// It has no kind on this side: policies for bad samples leave it alone.
		message.Kind = fault.Limit.Error()
	case errors.As(err, &r):
		message.Kind, message.Part, message.Offset = Unavailable, fit(r.Part), r.Off
		message.File = fit(r.URI)
	}
	return message
}

// fit makes a text fit into a message, without secrets.
func fit(text string) string { return fault.Fit(fault.WithoutSecrets(text)) }

// remote is an error of the other side whose line is known and whose parts are in cause.
type remote struct {
	line  string
	cause error
	fault *chaskiv1.Fault
}

func (r *remote) Error() string { return r.line }
func (r *remote) Unwrap() error { return r.cause }

// FaultError converts a Fault to an error. Its chain has a *fault.Error if the fault has a kind of package fault, or
// ErrUnknownSpec.
func FaultError(f *chaskiv1.Fault) error {
	line := fault.Line(errors.New(f.GetMessage()))
	if f.GetKind() == UnknownSpec {
		return &remote{line, ErrUnknownSpec, f}
	}
	for _, k := range fault.Kinds {
		if f.GetKind() == k.Error() {
			return &remote{line, &fault.Error{Kind: k, File: f.GetFile(), Part: f.GetPart(),
				Off: f.GetOffset(), Msg: line}, f}
		}
	}
	kind := Internal
	if f.GetKind() == Unavailable {
		kind = Unavailable
	}
	return &remote{line + ": " + kind, nil, f}
}

// OfServer reports whether a fault is the server's own, so another server may have the batch. Faults of files are not,
// but limits of memory, places and descriptors are. A kind that is not known is of a server of another version.
func OfServer(f *chaskiv1.Fault) bool {
	for _, k := range fault.Kinds {
		if f.GetKind() == k.Error() {
			return k == fault.Limit && slices.Contains([]string{"", "memory", "batch", "server"}, f.GetPart())
		}
	}
	return true
}

// KindOf returns the kind of the fault of a ticket that err was made from, or "".
func KindOf(err error) string {
	if r, ok := errors.AsType[*remote](err); ok {
		return r.fault.GetKind()
	}
	return ""
}

// Named returns a fault of other servers with the whole text of err, which names them. A fault that is not a server's
// own stays as it is.
func Named(err error) error {
	r, ok := errors.AsType[*remote](err)
	if !ok || !OfServer(r.fault) {
		return err
	}
	named := proto.CloneOf(r.fault)
	named.Message = fault.Fit(fault.Line(err))
	return &remote{named.GetMessage(), err, named}
}

// Remote returns the error of a kind about another server; err is its cause, and its text.
func Remote(kind string, err error) error {
	line := fault.Line(err)
	return &remote{line, err, &chaskiv1.Fault{Kind: kind, Offset: fault.NoOffset, Message: fault.Fit(line)}}
}

// Cause returns the error of another server, without the words that were added here. If err is not from another server,
// it returns err.
func Cause(err error) error {
	if r, ok := errors.AsType[*remote](err); ok {
		return r
	}
	if s, ok := errors.AsType[*said](err); ok {
		return s
	}
	return err
}

// IsRemote reports whether an error was made from a fault of another server, or by Remote.
func IsRemote(err error) bool { return errors.As(err, new(*remote)) }

// StatusError converts the status of a call to an error: made of the Fault in its details, if there is one.
func StatusError(err error) error {
	answer, ok := status.FromError(err)
	if !ok || answer.Code() == codes.OK {
		return err
	}
	for _, d := range answer.Details() {
		if f, ok := d.(*chaskiv1.Fault); ok {
			return &remote{fault.Line(errors.New(f.GetMessage())), errors.Join(FaultError(f), err), f}
		}
	}
	if _, direct := err.(interface{ GRPCStatus() *status.Status }); direct { //nolint:errorlint // its text is replaced
		return &said{answer.Message(), err}
	}
	return err
}

// said is a status of gRPC in words for a user: without "rpc error: code = ... desc = ".
type said struct {
	line string
	error
}

func (s *said) Error() string { return s.line }
func (s *said) Unwrap() error { return s.error }
