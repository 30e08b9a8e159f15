package inspect

import (
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
)

// TestZarrTextIsPrintable: names out of metadata reach the terminal without control characters.
func TestZarrTextIsPrintable(t *testing.T) {
	const hostile = "\x1b]0;x\a\u009b31m"
	fill := spec.Float(0)
	text := zarrText(&survey.ZarrInfo{Path: hostile, Arrays: []survey.ZarrArray{
		{Path: hostile, DType: "uint8", Fill: &fill, Dims: []string{"y" + hostile, "x"}, Codecs: []string{hostile}},
		{Path: "b", Unreadable: hostile}}})
	if strings.ContainsAny(text, "\x1b\a\u009b") {
		t.Errorf("%q", text)
	}
}
