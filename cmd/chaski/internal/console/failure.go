package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/fault"
)

// Exit codes. A signal gives 128 and its number, as shells report it.
const (
	exitFault = 1
	ExitUsage = 2
	ExitIntr  = 130
	ExitTerm  = 143
)

// Interrupt is the cause of a context that a signal cancelled.
type Interrupt struct{ os.Signal }

func (i Interrupt) Error() string { return i.String() }

// Started is the annotation that the root command gets once its command line was accepted. It
// distinguishes an error of cobra's parser, which has no type of its own, from an error of a
// command.
const Started = "started"

// Report writes an error to stderr and returns the exit code. It is the one place where both are
// derived from an error.
func Report(ctx context.Context, stderr io.Writer, cmd *cobra.Command, err error) int {
	var signal Interrupt
	if errors.As(context.Cause(ctx), &signal) && (errors.Is(err, context.Canceled) || errors.Is(err, signal)) {
		fmt.Fprintln(stderr, "chaski: interrupted")
		if signal.Signal == syscall.SIGTERM {
			return ExitTerm
		}
		return ExitIntr
	}
	var u usageError
	_, running := cmd.Root().Annotations[Started]
	if os.Getenv(ForProgram) != "" {
		report(stderr, err, errors.As(err, &u) || !running)
	}
	if errors.As(err, &u) || !running {
		fmt.Fprintf(stderr, "chaski: %s\nTry '%s --help'.\n", fault.Line(err), cmd.CommandPath())
		return ExitUsage
	}
	fmt.Fprintln(stderr, "chaski: "+Failure(err, cmd.Name()))
	return exitFault
}

// ForProgram is the environment variable by which a program gets progress and errors as lines that begin with the byte
// 0x1e, beside those for people.
const ForProgram = "CHASKI_PROGRESS"

// WrongSpec is what is wrong with a spec. A program shows it as a mistake in its user's arguments.
type WrongSpec struct{ Err error }

func (w WrongSpec) Error() string { return w.Err.Error() }

// Unwrap returns what is wrong.
func (w WrongSpec) Unwrap() error { return w.Err }

// report writes an error as JSON: the members of message Fault of the service.
func report(stderr io.Writer, err error, wrong bool) {
	type member struct {
		Where string `json:"where"`
		Name  string `json:"name"`
		Value string `json:"value"`
		Rule  string `json:"rule"`
	}
	failure := struct {
		Kind    string  `json:"kind"`
		File    string  `json:"file"`
		Part    string  `json:"part"`
		Offset  int64   `json:"offset"`
		Message string  `json:"message"`
		Member  *member `json:"member,omitempty"`
	}{Kind: fault.Unsupported.Error(), Offset: fault.NoOffset, Message: fault.Line(err)}
	var m *fault.MemberError
	var e *fault.Error
	var r *fault.RequestError
	var w WrongSpec
	if errors.As(err, &w) {
		err, wrong, failure.Message = w.Err, true, fault.Line(w.Err)
	}
	switch {
	case errors.As(err, &m):
		failure.Kind = "spec"
		failure.Member = &member{strings.TrimPrefix(m.Where, "spec: "), m.Member, m.Given(), m.Rule}
	case errors.As(err, &e):
		failure.Kind, failure.File, failure.Part, failure.Offset = e.Kind.Error(), e.File, e.Part, e.Off
	case errors.As(err, &r):
		failure.Kind, failure.File, failure.Part, failure.Offset = unavailable, r.URI, r.Part, r.Off
	case SystemKind(err) != 0:
		failure.Kind = SystemKind(err).Error()
	case wrong:
		failure.Kind = "spec"
	}
	text, err := json.Marshal(failure)
	if err == nil {
		fmt.Fprintf(stderr, "\x1e%s\n", fault.WithoutSecrets(string(text)))
	}
}

// unavailable takes the place of the kind for a request that a server did not answer or refused: see
// fault.RequestError.
const unavailable = "unavailable"

// Said is what Failure returned for an error that another process has met.
type Said string

func (s Said) Error() string { return string(s) }

// Failure returns "FILE: PART at OFFSET: MESSAGE: KIND" on one line. If the error names no file, the
// command's name takes its place.
func Failure(err error, command string) string {
	failed := &fault.Error{Kind: SystemKind(err), File: command, Off: fault.NoOffset, Msg: err.Error()}
	var e *fault.Error
	var re *fault.RequestError
	var said Said
	switch {
	case errors.As(err, &said):
		return string(said)
	case errors.As(err, &e):
		// A copy, because the error belongs to the package that made it.
		c := *e
		failed = &c
	case errors.As(err, &re):
		return strings.TrimSpace(fault.Line(fmt.Errorf("%w: %s", re, unavailable)))
	case failed.Kind == 0:
		failed.Kind, failed.Msg = kindIn(failed.Msg)
	}
	failed.File = cmp.Or(failed.File, command)
	return strings.TrimSpace(fault.Line(failed))
}

// kindIn takes the kind off the end of a message that another process wrote. A message without a
// kind is about something that this command cannot do, because limits and missing things always have
// one.
func kindIn(msg string) (fault.Kind, string) {
	for _, k := range fault.Kinds {
		if m, ok := strings.CutSuffix(msg, ": "+k.Error()); ok {
			return k, m
		}
	}
	return fault.Unsupported, msg
}

// SystemKind returns the kind of an error of the operating system, and 0 for other errors.
func SystemKind(err error) fault.Kind {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.NotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENOMEM),
		errors.Is(err, syscall.EFBIG), errors.Is(err, context.DeadlineExceeded):
		return fault.Limit
	case errors.As(err, &no), errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrExist):
		return fault.Unsupported
	}
	return 0
}
