//go:build !datadog

package zstd

import (
	"bytes"
	"strings"
	"testing"
)

// TestName promises that the name says which decoder decodes a frame: without klauspost's, frames are decoded if the
// name is that of package whole.
func TestName(t *testing.T) {
	content := bytes.Repeat([]byte("name of a decoder "), 100)
	frame := Append(nil, content, 3)
	decoded := func() (ok bool) {
		defer func() {
			if recover() != nil {
				ok = false // klauspost's decoder is needed
			}
		}()
		dst := make([]byte, len(content))
		return new(Decoder).Decompress(dst, frame) == nil && bytes.Equal(dst, content)
	}()
	if decoded != strings.HasPrefix(Name, "chaski") {
		t.Errorf("the decoder is called %q; decoded without klauspost's: %t", Name, decoded)
	}
}
