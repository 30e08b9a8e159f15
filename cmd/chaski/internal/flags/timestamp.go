package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader/spec"
)

// Timestamp is the flag --timestamp. A nil Value opens arrays as they are now.
type Timestamp struct{ Value *spec.Timestamp }

// Add adds the flag.
func (f *Timestamp) Add(fl *pflag.FlagSet) {
	fl.Var(f, "timestamp", "")
}

// String implements pflag.Value.
func (f *Timestamp) String() string {
	if f.Value == nil {
		return ""
	}
	return fmt.Sprintf("%d..%d", f.Value[0], f.Value[1])
}

// Type implements pflag.Value.
func (f *Timestamp) Type() string { return "time" }

// Set implements pflag.Value.
func (f *Timestamp) Set(text string) error {
	first, last, ranged := strings.Cut(text, "..")
	if !ranged {
		first, last = "0", first
	}
	var t spec.Timestamp
	for i, s := range [2]string{first, last} {
		var err error
		if t[i], err = spec.ParseInstant(s); err != nil {
			if ranged {
				return fmt.Errorf("%q must be %w", s, err)
			}
			return fmt.Errorf("it must be %w", err)
		}
	}
	switch {
	case t[0] > t[1]:
		return errors.New("it ends before it begins")
	case t[1] == 0:
		return errors.New("the end must be after 1970")
	}
	f.Value = &t
	return nil
}

// Range returns the times of the flag, 0 without it.
func (f *Timestamp) Range() (since, until uint64) {
	if f.Value == nil {
		return 0, 0
	}
	return f.Value[0], f.Value[1]
}
