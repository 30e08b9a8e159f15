package kinds

import (
	"errors"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// firstFault is the part of a report's first fault that a tally holds beside its line in the report.
type firstFault struct {
	File string `json:"file,omitempty"`
	Kind string `json:"kind,omitempty"`
}

func newFirstFault(err error) (f firstFault) {
	var first *fault.Error
	if errors.As(err, &first) {
		f.File = fault.WithoutSecrets(first.File) // as the line of the report has it
	}
	if kind := fault.KindOf(err); kind != 0 {
		f.Kind = kind.Error()
	}
	return f
}

// of returns the fault with a line, as the shard that found it saw it.
func (f *firstFault) of(line string) error {
	for _, kind := range fault.Kinds {
		msg, ok := strings.CutSuffix(line, ": "+kind.Error())
		if !ok || kind.Error() != f.Kind {
			continue
		}
		rest, named := strings.CutPrefix(msg, f.File+": ")
		if !named {
			return fault.New(kind, "", fault.NoOffset, "%s", msg)
		}
		return fault.WithFile(fault.New(kind, "", fault.NoOffset, "%s", rest), f.File)
	}
	return errors.New(line)
}
