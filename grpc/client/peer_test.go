package client

import (
	"errors"
	"testing"

	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestNoSharedMemoryAfterClose: a stream that reconnects while the client closes does not connect
// to the server's shared memory, because nothing would close that connection.
func TestNoSharedMemoryAfterClose(t *testing.T) {
	p, err := dialPeer(serverAddress{target: "unix:nowhere"}, Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	nowhere := &chaskiv1.Shared{Token: make([]byte, 16), Address: "nowhere"}
	if _, err := p.leaseSocket(nowhere); !errors.Is(err, errFinal) {
		t.Errorf("a connection of a closed client: %v", err)
	}
}

// TestWorkBeyondRoomTakesNone: a batch that Next waits for is requested even from a server whose
// share of the memory is used up, and takes none of the others' share.
func TestWorkBeyondRoomTakesNone(t *testing.T) {
	s := &session{run: &Run{}, options: TicketOptions{Prefetch: 1}}
	for range 2 {
		s.lanes = append(s.lanes, &serverLane{s: s, up: true, unsent: make(chan struct{}, 1)})
	}
	s.lanes[0].requests = []*ticketRequest{{id: 3}}
	s.open = []*ticketRequest{{id: 1, turn: 0}, {id: 2, turn: 1}}
	s.waiting = append(s.waiting, s.open...)
	s.assign()
	if a, b := len(s.lanes[0].requests), len(s.lanes[1].requests); a != 2 || b != 1 || len(s.waiting) != 0 {
		t.Errorf("%d and %d are asked, %d wait", a, b, len(s.waiting))
	}
}

// TestRowsOfAnyNumberOfFields: a server that announces more bytes than an int holds does not lead
// to a size of 0 or less.
func TestRowsOfAnyNumberOfFields(t *testing.T) {
	fields := []batch.FieldInfo{{DType: dtype.Uint8, Shape: []int64{1, DefaultMaxBatchBytes - 17}}}
	for range 1<<14 - 1 { // 2^44 bytes a row
		fields = append(fields, batch.FieldInfo{DType: dtype.Uint8, Shape: []int64{1, DefaultMaxBatchBytes}})
	}
	r := &Run{
		client: &Client{peers: make([]*peer, 2)}, samples: 1 << 20,
		shape: shape{Cut: steps.Cut{BatchSize: 1 << 20}}, fields: fields,
	}
	if n := r.RowBytes() * int64(r.shape.BatchSize); n < 1 {
		t.Errorf("%d bytes", n)
	}
}
