package parts

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/internal/wire"
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
		in := wire.NewPipeReader(iotest.HalfReader(bytes.NewReader(out.Bytes())), n, 1000)
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

// TestPartIsAStreamReply: protobuf reads what the codec writes of a part.
func TestPartIsAStreamReply(t *testing.T) {
	for _, data := range [][][]byte{{{1}}, {make([]byte, 1<<20)}, {{1, 2}, make([]byte, 1<<16), {3}}, {}} {
		sent := &Part{Ticket: 1 << 63, Total: 1 << 40, Data: data}
		message, err := NewCodec().Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var reply chaskiv1.StreamReply
		if err := NewCodec().Unmarshal(message, &reply); err != nil {
			t.Fatal(err)
		}
		part := reply.GetPart()
		if part.GetTicket() != 1<<63 || part.GetOffset() != 0 || part.GetTotal() != 1<<40 ||
			!bytes.Equal(part.GetData(), bytes.Join(data, nil)) {
			t.Errorf("%d at %d of %d", part.GetTicket(), part.GetOffset(), part.GetTotal())
		}
	}
}
