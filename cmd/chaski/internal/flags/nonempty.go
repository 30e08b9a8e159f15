package flags

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// nonEmpty is the value of a flag that chooses samples. It refuses an empty string, which mostly comes
// from a shell variable that is not set: all samples would be chosen silently.
type nonEmpty struct{ text *string }

func (g nonEmpty) String() string {
	if g.text == nil {
		return ""
	}
	return *g.text
}

func (g nonEmpty) Type() string { return "string" }

func (g nonEmpty) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it is empty; leave the flag out instead")
	}
	*g.text = s
	return nil
}

// NonEmptyVar adds a string flag that refuses an empty value.
func NonEmptyVar(fl *pflag.FlagSet, to *string, name, usage string) {
	fl.Var(nonEmpty{to}, name, usage)
}
