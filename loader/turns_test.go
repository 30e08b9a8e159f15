package loader

import (
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestEnginesShareTurns: the workers of two engines decode one at a time where there is one turn, none while somebody
// else has it, and both end.
func TestEnginesShareTurns(t *testing.T) { synctest.Test(t, testEnginesShareTurns) }

func testEnginesShareTurns(t *testing.T) {
	all := turns.New(1, 1)
	if !all.Try("other") {
		t.Fatal("no turn")
	}
	var pending []*Pending
	stages := &resources.Stages{}
	for _, client := range []string{"a", "b"} {
		e, err := Open(t.Context(), Spec{Source: "../testdata/demo", BatchSize: 1},
			Options{Turns: all, Stages: stages})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		ctx := resources.WithTurn(t.Context(), resources.Turn{Client: client})
		pending = append(pending, e.Start(ctx, shuffle.StepTicket(0, 0, 1, 0, 1), false))
	}
	synctest.Wait()
	if n := all.Waiting(); n < 2 {
		t.Errorf("%d workers wait for their turn, want some of both engines", n)
	}
	if n, _ := stages.Decoded(); n != 0 {
		t.Errorf("%d chunks were decoded without a turn", n)
	}
	all.Leave("other")
	for _, p := range pending {
		wait(t, p).Release()
	}
	if n, _ := stages.Decoded(); n == 0 {
		t.Error("nothing was decoded")
	}
}
