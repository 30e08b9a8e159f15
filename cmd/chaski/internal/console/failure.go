package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Exit codes.
const (
	exitFault = 1
	ExitUsage = 2
	ExitIntr  = 130
	ExitTerm  = 143
)

// Interrupt is the cause of a context that a signal cancelled.
type Interrupt struct{ os.Signal }

func (i Interrupt) Error() string { return i.String() }

// Report writes what went wrong and returns the exit code. It is the one place where both are
// derived from an error.
func Report(ctx context.Context, stderr io.Writer, cmd *cobra.Command, err error) int {
	var intr Interrupt
	if errors.As(context.Cause(ctx), &intr) && (errors.Is(err, context.Canceled) || errors.Is(err, intr)) {
		fmt.Fprintln(stderr, "chaski: interrupted")
		if intr.Signal == syscall.SIGTERM {
			return ExitTerm
		}
		return ExitIntr
	}
	var u usageError
	_, running := cmd.Root().Annotations[Started]
	if errors.As(err, &u) || !running {
		fmt.Fprintf(stderr, "chaski: %s\nTry '%s --help'.\n", fault.Line(err), cmd.CommandPath())
		return ExitUsage
	}
	fmt.Fprintln(stderr, "chaski: "+failure(err, cmd.Name()))
	return exitFault
}

// unavailable stands where the kind stands in the line about a request that failed for a reason that says
// nothing about a file: see source.RequestError.
const unavailable = "unavailable"

// failure returns "FILE: PART at OFFSET: what: KIND" on one line. An error that names no file
// happened to the command as a whole, and names that.
func failure(err error, command string) string {
	f := &fault.Error{Kind: SystemKind(err), File: command, Off: fault.NoOffset, Msg: err.Error()}
	var e *fault.Error
	var re *source.RequestError
	switch {
	case errors.As(err, &e):
		c := *e
		f = &c
	case errors.As(err, &re):
		return strings.TrimSpace(fault.Line(fmt.Errorf("%w: %s", re, unavailable)))
	case f.Kind == 0:
		f.Kind, f.Msg = kindIn(f.Msg)
	}
	if f.File == "" {
		f.File = command
	}
	return strings.TrimSpace(fault.Line(f))
}

// kindIn takes the kind off the end of a message of another process. A message without one is of
// something that this command cannot do: a limit or a missing thing would have said so.
func kindIn(msg string) (fault.Kind, string) {
	for _, k := range [...]fault.Kind{fault.Corrupt, fault.Unsupported, fault.Limit, fault.NotFound} {
		if m, ok := strings.CutSuffix(msg, ": "+k.Error()); ok {
			return k, m
		}
	}
	return fault.Unsupported, msg
}

// SystemKind returns the kind of an error of the operating system, 0 for other errors.
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

// Started is the annotation of the root command once a command line was accepted and runs.
const Started = "started"
