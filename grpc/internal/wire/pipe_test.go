package wire

import (
	"bytes"
	"testing"
)

// TestStrangePipe promises that a reply of an unknown kind, one that is too long and one that is cut short are errors.
func TestStrangePipe(t *testing.T) {
	for name, sent := range map[string][]byte{
		"kind":    PipeHead{3, 0, 1}.Bytes(),
		"long":    PipeHead{PipeReply, 0, 1001}.Bytes(),
		"longest": PipeHead{PipeReply, 0, 1 << 63}.Bytes(),
		"head":    PipeHead{PipeBatch, 1, 5}.Bytes()[:23],
		"batch":   PipeHead{PipeBatch, 1, 5}.Bytes(),
		"message": append(PipeHead{PipeReply, 0, 5}.Bytes(), 1, 2),
		"garbage": append(PipeHead{PipeReply, 0, 2}.Bytes(), 0xff, 0xff),
	} {
		in := NewPipeReader(bytes.NewReader(sent), 1000, 1000)
		if _, err := in.Next(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
