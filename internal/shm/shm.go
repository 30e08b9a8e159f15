// Package shm implements anonymous shared memory between processes of one user on one host, and the
// control socket that passes it.
//
// A Segment is a memfd. It has no name and ends with the last process that maps it. It is sealed against
// growing and shrinking, so no process can take pages away from another.
//
// Segments are passed over a SOCK_SEQPACKET Unix socket in Linux's abstract namespace, which leaves no
// file behind. Only processes of the same user may connect. Each packet is one Message; message Shared
// of proto/chaski/v1/chaski.proto describes the protocol.
//
// Shared memory exists on Linux only. On other systems Supported is false and all functions fail with
// ErrUnsupported.
package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrUnsupported is returned by all functions on systems other than Linux.
var ErrUnsupported = errors.New("shm: not on this system")

// Version is the version of the protocol.
const Version = 1

// Kind is the kind of a Message.
type Kind uint64

// Kinds of messages, each with the meaning of A, B and C. Fields that are not named are 0.
const (
	Hello   Kind = 1 + iota // client: A, B token; C version
	Welcome                 // server: A, B secret; C version
	Give                    // server: A segment, B its bytes; with its file
	Forget                  // server: A segment that the server no longer uses
	Recall                  // server: A lease, B stream
	Return                  // client: A lease; the server may reuse the memory
	Discard                 // client: A lease; the server must not reuse the memory, as a reader may be left
)

// Token is 16 random bytes.
type Token [16]byte

// Message is one packet of the control socket.
type Message struct {
	Kind    Kind
	A, B, C uint64
}

// Size is the size of a Message in bytes: four little-endian uint64.
const Size = 32

// Greeting returns a Hello or Welcome.
func Greeting(k Kind, t Token) Message {
	return Message{k, binary.LittleEndian.Uint64(t[:8]), binary.LittleEndian.Uint64(t[8:]), Version}
}

// Token returns the token of a greeting.
func (m Message) Token() (t Token) {
	binary.LittleEndian.PutUint64(t[:8], m.A)
	binary.LittleEndian.PutUint64(t[8:], m.B)
	return t
}

func (m Message) bytes() []byte {
	buf := make([]byte, 0, Size)
	for _, v := range []uint64{uint64(m.Kind), m.A, m.B, m.C} {
		buf = binary.LittleEndian.AppendUint64(buf, v)
	}
	return buf
}

func parse(b []byte) (Message, error) {
	if len(b) != Size {
		return Message{}, fmt.Errorf("shm: a message of %d bytes", len(b))
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	message := Message{Kind(word(0)), word(1), word(2), word(3)}
	if message.Kind < Hello || message.Kind > Discard {
		return Message{}, fmt.Errorf("shm: message of kind %d", message.Kind)
	}
	return message, nil
}
