package wire

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestFaultHasNoSecrets: the part of an error may have the id of a sample, and an id may be a URI.
func TestFaultHasNoSecrets(t *testing.T) {
	const uri = "http://user:hunter2@host/a.tif?sig=hunter2"
	for _, err := range []error{
		fault.New(fault.NotFound, "sample "+uri, "%s", uri),
		fault.WithFile(fault.New(fault.NotFound, "sample "+uri, "%s", uri), uri),
		&fault.RequestError{URI: uri, Part: "sample " + uri},
	} {
		if f := NewFault(1, err); strings.Contains(f.String(), "hunter2") || f.GetPart() == "" {
			t.Errorf("%T: %v", err, f)
		}
	}
}
