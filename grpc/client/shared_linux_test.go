package client

import (
	"errors"
	"os"
	"testing"
	"time"
)

// TestServerThatDoesNotRead: a server that recalls leases and never reads the answers ends the lease socket. The client
// does not wait for it for ever, and afterwards not at all.
func TestServerThatDoesNotRead(t *testing.T) {
	c, server := fuzzSide(t)
	defer server.Close()
	c.patience = 50 * time.Millisecond // however long it takes: the socket is full, and nobody reads
	c.mu.Lock()
	defer c.mu.Unlock()
	const most = 1 << 20 // answers of some 50 bytes: more than any socket holds
	for lease := range uint64(most) {
		if err := c.giveBack(lease); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			if err := c.giveBack(lease); err == nil {
				t.Error("an answer over a connection that is closed")
			}
			if !c.hasEnded { // though nobody reads
				t.Error("the next stream would attach to it")
			}
			return
		}
	}
	t.Errorf("%d answers that nobody reads", most)
}
