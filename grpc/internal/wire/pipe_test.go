package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestPipeReader promises that what is written comes back, whatever pieces it is read in.
func TestPipeReader(t *testing.T) {
	fault, err := proto.Marshal(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Fault{
		Fault: &chaskiv1.Fault{Ticket: 4, Message: "broken"}}})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789"), 100)
	var out bytes.Buffer
	for _, part := range []*Part{
		{Ticket: 3, Offset: 0, Total: 1000, Data: [][]byte{data[:100], data[100:300]}},
		{Ticket: 3, Offset: 300, Total: 1000, Data: [][]byte{data[300:]}},
	} {
		if err := part.WritePart(&out); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteReply(&out, fault); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 77, 4096} {
		in := NewPipeReader(iotest.HalfReader(bytes.NewReader(out.Bytes())), n, 1000)
		var got []byte
		for len(got) < 1000 {
			reply, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			part := reply.GetPart()
			if part.GetTicket() != 3 || part.GetTotal() != 1000 || part.GetOffset() != uint64(len(got)) {
				t.Fatalf("%d bytes at %d of %d, ticket %d", len(part.GetData()), part.GetOffset(), part.GetTotal(),
					part.GetTicket())
			}
			got = append(got, part.GetData()...)
		}
		reply, err := in.Next()
		if err != nil || !bytes.Equal(got, data) || reply.GetFault().GetMessage() != "broken" {
			t.Errorf("read by %d: %d bytes, %v, %v", n, len(got), reply, err)
		}
		if _, err := in.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the end is %v", err)
		}
	}
}

// TestStrangePipe promises that a reply of an unknown kind, one that is too long and one that is cut short are errors.
func TestStrangePipe(t *testing.T) {
	for name, sent := range map[string][]byte{
		"kind":    pipeHead{3, 0, 1}.bytes(),
		"long":    pipeHead{pipeReply, 0, 1001}.bytes(),
		"longest": pipeHead{pipeReply, 0, 1 << 63}.bytes(),
		"head":    pipeHead{pipeBatch, 1, 5}.bytes()[:23],
		"batch":   pipeHead{pipeBatch, 1, 5}.bytes(),
		"message": append(pipeHead{pipeReply, 0, 5}.bytes(), 1, 2),
		"garbage": append(pipeHead{pipeReply, 0, 2}.bytes(), 0xff, 0xff),
	} {
		in := NewPipeReader(bytes.NewReader(sent), 1000, 1000)
		if _, err := in.Next(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
