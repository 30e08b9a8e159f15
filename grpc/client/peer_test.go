package client

import (
	"errors"
	"math"
	"testing"

	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// TestNoDoorAfterClose: a stream that is being made again while the client is closed opens no side door,
// which nobody would shut.
func TestNoDoorAfterClose(t *testing.T) {
	p, err := dialPeer("unix:nowhere", Options{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.side(&chaskiv1.Shared{Token: make([]byte, 16), Address: "nowhere"}); !errors.Is(err, errFinal) {
		t.Errorf("a door of a closed client: %v", err)
	}
}

// TestHedgeIsAShare: no number that is not below 1 is one.
func TestHedgeIsAShare(t *testing.T) {
	for _, h := range []float64{1, 2, math.NaN(), math.Inf(1)} {
		if _, err := Dial("unix:nowhere", Options{Hedge: h}); err == nil {
			t.Errorf("hedge %v is taken", h)
		}
	}
}
