package texts_test

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/source"
)

// TestWithoutText promises that a program without package text is told what to import.
func TestWithoutText(t *testing.T) {
	all := func(string) texts.Want { return texts.Values }
	for _, name := range []string{"/t.csv", "/t.json"} {
		_, err := texts.Read(t.Context(), source.Memory("x\n1\n"), name, all)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/format/tables/text,") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := texts.ReadFiles(t.Context(), nil, []string{"/t.csv"}, []string{"t.csv"}, all)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/format/tables/text,") {
		t.Error(err)
	}
}
