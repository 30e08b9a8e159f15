package console

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// usageError is a command line that does not say what to do.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// WrongUsage marks an error as one of usage.
func WrongUsage(err error) error { return usageError{err} }

// Usagef makes an error of usage.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// UsageUnlessFault marks an error without a kind as one of usage: the packages give every fault of a file a
// kind, and none to an option that makes no sense.
func UsageUnlessFault(err error) error {
	if err == nil || fault.KindOf(err) != 0 || errors.Is(err, context.Canceled) || SystemKind(err) != 0 || errors.As(err, new(*source.RequestError)) {
		return err
	}
	return WrongUsage(err)
}

// AtLeastOne is cobra.MinimumNArgs(1) with a message that names what is missing.
func AtLeastOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("no %s is named", what)
		}
		return nil
	}
}

func ExactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return Usagef("no %s is named", what)
		case 1:
			return nil
		}
		return Usagef("%d arguments, where one %s is taken", len(args), what)
	}
}

// OneOf checks the value of a flag that is a choice.
func OneOf(flag, value string, choices ...string) error {
	for _, c := range choices {
		if value == c {
			return nil
		}
	}
	return Usagef("--%s %q is none of %s", flag, value, strings.Join(choices, ", "))
}
