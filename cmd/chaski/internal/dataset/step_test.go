package dataset

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestStepAt: flags and states name the step that comes next, or one before it, in whatever epoch that is; steps that
// do not exist are errors.
func TestStepAt(t *testing.T) {
	source := filepath.Join("..", "..", "..", "..", "testdata", "coast")
	engine, err := loader.Open(t.Context(), loader.Spec{Source: source, BatchSize: 2}, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	steps := engine.Steps()
	state := engine.State()
	state.Epoch, state.Samples = 3, engine.Len() // at the end of epoch 3
	text := fmt.Sprintf(`{"version":%d,"spec":%q,"seed":%d,"epoch":%d,"samples":%d}`, state.Version, state.Spec,
		state.Seed, state.Epoch, state.Samples)
	file := filepath.Join(t.TempDir(), "state.json")
	testfile.Write(t, file, []byte(text))
	for _, c := range []struct {
		args  []string
		epoch uint64
		step  int64 // -1: an error
	}{
		{nil, 0, 0},
		{[]string{"--epoch=5", "--step=1"}, 5, 1},
		{[]string{"--epoch=5", "--step=0", "--back=1"}, 4, steps - 1},
		{[]string{"--epoch=0", "--back=1"}, 0, -1},
		{[]string{fmt.Sprint("--step=", steps)}, 0, -1},
		{[]string{"--rank=2", "--world=2"}, 0, -1},
		{[]string{"--state=" + file}, 4, 0},
		{[]string{"--state=" + file, "--back=1"}, 3, steps - 1},
		{[]string{"--state=" + file, "--step=1"}, 0, -1},
		{[]string{"--state=" + file + "x"}, 0, -1},
	} {
		var f stepFlags
		fl := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(fl)
		if err := fl.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		at, err := f.at(fl, engine)
		if (err != nil) != (c.step < 0) {
			t.Errorf("%q: %v", c.args, err)
		} else if err == nil && (at.Epoch != c.epoch || at.Step != c.step || at.Ticket.First != 2*c.step) {
			t.Errorf("%q: epoch %d, step %d, from %d; want epoch %d, step %d", c.args, at.Epoch, at.Step,
				at.Ticket.First, c.epoch, c.step)
		}
	}
}
