package cli

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
	exitUsage = 2
	exitIntr  = 130
	exitTerm  = 143
)

// usageError is a command line that does not say what to do.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// wrongUsage marks an error as one of usage.
func wrongUsage(err error) error { return usageError{err} }

// usagef makes an error of usage.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// usage marks an error without a kind as one of usage: the packages give every fault of a file a
// kind, and none to an option that makes no sense.
func usage(err error) error {
	if err == nil || fault.KindOf(err) != 0 || errors.Is(err, context.Canceled) || systemKind(err) != 0 || errors.As(err, new(*source.RequestError)) {
		return err
	}
	return wrongUsage(err)
}

// interrupt is the cause of a context that a signal cancelled.
type interrupt struct{ os.Signal }

func (i interrupt) Error() string { return i.String() }

// report writes what went wrong and returns the exit code. It is the one place where both are
// derived from an error.
func report(ctx context.Context, stderr io.Writer, cmd *cobra.Command, err error) int {
	var intr interrupt
	if errors.As(context.Cause(ctx), &intr) && (errors.Is(err, context.Canceled) || errors.Is(err, intr)) {
		fmt.Fprintln(stderr, "chaski: interrupted")
		if intr.Signal == syscall.SIGTERM {
			return exitTerm
		}
		return exitIntr
	}
	var u usageError
	_, running := cmd.Root().Annotations[started]
	if errors.As(err, &u) || !running {
		fmt.Fprintf(stderr, "chaski: %s\nTry '%s --help'.\n", fault.Line(err), cmd.CommandPath())
		return exitUsage
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
	f := &fault.Error{Kind: systemKind(err), File: command, Off: fault.NoOffset, Msg: err.Error()}
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

// systemKind returns the kind of an error of the operating system, 0 for other errors.
func systemKind(err error) fault.Kind {
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

// atLeastOne is cobra.MinimumNArgs(1) with a message that names what is missing.
func atLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("no %s is named", what)
		}
		return nil
	}
}

func exactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("no %s is named", what)
		case 1:
			return nil
		}
		return usagef("%d arguments, where one %s is taken", len(args), what)
	}
}

// oneOf checks the value of a flag that is a choice.
func oneOf(flag, value string, choices ...string) error {
	for _, c := range choices {
		if value == c {
			return nil
		}
	}
	return usagef("--%s %q is none of %s", flag, value, strings.Join(choices, ", "))
}

// line returns a text that data or a list has, as a terminal can have it: see fault.Line.
func line(text string) string { return fault.Line(errors.New(text)) }
