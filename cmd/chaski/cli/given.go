package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// given is a text that chooses: an empty one is refused, as it is mostly a variable of a shell that is not set, and all
// samples would be chosen without a word.
type given struct{ text *string }

func (g given) String() string {
	if g.text == nil {
		return ""
	}
	return *g.text
}

func (g given) Type() string { return "string" }

func (g given) Set(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("it is empty; leave the flag out for all samples")
	}
	*g.text = s
	return nil
}

func givenVar(fl *pflag.FlagSet, to *string, name, usage string) { fl.Var(given{to}, name, usage) }
