package flags

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// nonEmpty is a text that chooses: an empty one is refused, as it is mostly a variable of a shell that is not set, and all
// samples would be chosen without a word.
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
		return errors.New("it is empty; leave the flag out for all samples")
	}
	*g.text = s
	return nil
}

func NonEmptyVar(fl *pflag.FlagSet, to *string, name, usage string) {
	fl.Var(nonEmpty{to}, name, usage)
}
