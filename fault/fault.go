// Package fault has the errors by which all packages of chaski report that an input is wrong.
//
// An error has a kind (corrupt, unsupported, limit, not found, misplaced), the file, the part of the file
// named in the words of its format, and a byte offset. It survives wrapping: errors.Is(err,
// fault.Corrupt) and KindOf answer at any distance. Exit codes and gRPC status are derived from
// the kind in one place each (cmd/chaski/internal/console and
// grpc/server).
package fault

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Kind classifies how an input is wrong. It is itself an error, the target of errors.Is.
type Kind uint8

const (
	// Corrupt: the bytes contradict their format, or end early.
	Corrupt Kind = iota + 1
	// Unsupported: the bytes may be valid, but this program does not read them (yet).
	Unsupported
	// Limit: reading would exceed a limit on memory, size or count.
	Limit
	// NotFound: a named thing (file, sample, column, band) does not exist.
	NotFound
	// Misplaced: the rasters of one sample lie at different places on the ground.
	Misplaced
)

// Kinds are all kinds.
var Kinds = [...]Kind{Corrupt, Unsupported, Limit, NotFound, Misplaced}

// Error returns the kind's name: "corrupt", "unsupported", "limit", "not found" or "misplaced".
func (k Kind) Error() string {
	switch k {
	case Corrupt:
		return "corrupt"
	case Unsupported:
		return "unsupported"
	case Limit:
		return "limit"
	case NotFound:
		return "not found"
	case Misplaced:
		return "misplaced"
	}
	return "unknown kind"
}

// NoOffset is the offset of an error without a place in a file.
const NoOffset = -1

// Error is one fault of one input.
type Error struct {
	Kind Kind
	File string // path or URI; empty until a caller that knows it calls WithFile
	Part string // in the format's words: "ifd 0 tag 324", "tile 18", "frame header"
	Off  int64  // byte offset from the start of the file, or NoOffset
	Msg  string // the message, without file, part and offset
	Err  error  // the cause, or nil
}

// ErrNoMember is the cause of errors about files that lack an array, a group or a member.
var ErrNoMember = errors.New("no such member")

// NoMember returns the error, of kind NotFound, about a file that lacks an array, a group or a member.
func NoMember(part, format string, args ...any) *Error {
	made := New(NotFound, part, format, args...)
	made.Err = ErrNoMember
	return made
}

// New returns an Error of a kind without a place in a file.
func New(kind Kind, part, format string, args ...any) *Error {
	return At(kind, part, NoOffset, format, args...)
}

// At returns an Error of a kind at an offset.
func At(kind Kind, part string, off int64, format string, args ...any) *Error {
	return &Error{Kind: kind, Part: part, Off: off, Msg: fmt.Sprintf(format, args...)}
}

// NotImported returns the error of a program that lacks a package of this module: the one at path, which does what does
// says, such as "reads pictures".
func NotImported(part, does, path string) *Error {
	const module = "github.com/chaski-eo/chaski/"
	return New(Unsupported, part, "this program does not import the package that %s: "+
		"import %s, or %s for all formats", does, module+path, module+"loader/formats")
}

// Wrap returns an Error of a kind for a cause from a library or the system. A cause that is an
// Error of this package keeps its kind and message, with part put in front of its own.
func Wrap(kind Kind, part string, cause error) *Error { return WrapAt(kind, part, NoOffset, cause) }

// WrapAt is Wrap at an offset.
func WrapAt(kind Kind, part string, off int64, cause error) *Error {
	if e, ok := errors.AsType[*Error](cause); ok {
		c := *e
		c.Part = strings.TrimSpace(part + " " + c.Part)
		return &c
	}
	if k := KindOf(cause); k != 0 {
		kind = k
	}
	return &Error{Kind: kind, Part: part, Off: off, Msg: cause.Error(), Err: cause}
}

// sameAs are messages of the system and of stores that say nothing but the kind.
var sameAs = map[Kind][]string{
	NotFound: {"no such file or directory", "file does not exist", "no such file", "no such directory",
		"no such object", "no such program"},
	Unsupported: {"operation not supported", "unsupported operation"},
}

// message returns the message without what the kind says: nothing if that is all, and else what stands before it, or
// in parentheses behind it.
func (e *Error) message() string {
	msg := e.Msg
	for _, same := range append([]string{e.Kind.Error()}, sameAs[e.Kind]...) {
		if msg == same {
			return ""
		}
		msg = strings.TrimSuffix(msg, ": "+same)
		if inside, ok := strings.CutPrefix(msg, same+" ("); ok {
			msg = strings.TrimSuffix(inside, ")")
		}
	}
	return msg
}

// Error returns "FILE: PART at OFFSET: MSG: KIND", leaving out secrets and empty parts. What the message says about
// the kind, such as "no such file or directory", is left out, and the middle of a text of more than MaxText bytes.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	if e.Part != "" {
		b.WriteString(e.Part)
		if e.Off >= 0 {
			fmt.Fprintf(&b, " at %d", e.Off)
		}
		b.WriteString(": ")
	}
	if msg := e.message(); msg != "" {
		b.WriteString(msg + ": ")
	}
	text := WithoutSecrets(b.String() + e.Kind.Error())
	if len(text) > MaxText {
		return Fit(text)
	}
	return text
}

// Unwrap makes both the kind and the cause reachable by errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// KindOf returns the kind of err, or 0 if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	return 0
}

// WithFile returns err with the file filled in, unless a deeper layer did that already. Errors of
// other types are returned unchanged. Text that was wrapped around an Error is dropped, so call it
// before wrapping. The same holds for WithPart and AtOffset.
func WithFile(err error, file string) error {
	e, ok := errors.AsType[*Error](err) // without memory where err is nil, as of each cell that is read
	if !ok || e.File != "" {
		return err
	}
	c := *e
	c.File = file
	return &c
}

// WithPart returns err with part put in front of its own part ("tile 18 frame header") and base
// added to its offset. A layer that decodes a piece of a file uses it, since it knows where the
// piece begins. A base of NoOffset drops the offset. It returns errors of other types than *Error unchanged.
func WithPart(err error, part string, base int64) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err
	}
	cause := *e
	cause.Part = strings.TrimSpace(part + " " + cause.Part)
	switch {
	case base < 0:
		cause.Off = NoOffset
	case cause.Off < 0:
		cause.Off = base
	default:
		cause.Off += base
	}
	return &cause
}

// InPart is WithPart for a part of the same file: the offset stays.
func InPart(err error, part string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return WithPart(err, part, min(e.Off, 0))
	}
	return err
}

// Line returns err on one line for a terminal or a log, without secrets: see WithoutSecrets.
// Unprintable characters (control characters, line separators, marks that change the direction of text)
// become spaces, because the text of a hostile file must not control a terminal.
func Line(err error) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, WithoutSecrets(err.Error()))
}

// AtOffset returns err with the offset filled in, if it has none. An err without a kind is
// returned unchanged.
func AtOffset(err error, off int64) error {
	var e *Error
	if !errors.As(err, &e) || e.Off >= 0 {
		return err
	}
	c := *e
	c.Off = off
	return &c
}
