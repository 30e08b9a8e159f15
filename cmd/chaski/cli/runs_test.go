package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/term"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/dataset"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// specFile writes a spec of the directory "chips", with windows, a validity mask and a metadata
// column of strings.
func specFile(t *testing.T, name, bad string) loader.Spec {
	t.Helper()
	text := fmt.Sprintf(`{"version": 1, "source": "labelled.csv", "batch_size": 5, "shuffle": true, "seed": 8, "bad_samples": %q, "augment": "flips",
		"fields": [{"name": "image", "column": "path", "dtype": "float32", "normalize": {"scale": [0.5], "offset": [1]}, "validity": "there"},
			{"name": "half", "column": "path", "dtype": "bfloat16"}, {"name": "label", "column": "label"}, {"name": "what", "column": "what"}],
		"sampler": {"kind": "random_window", "height": 40, "width": 24, "per_asset": 5}}`, bad)
	testfile.Write(t, name, []byte(text))
	const labelled = "path,label,what\n" +
		"chips/a.tif,3,wáter\n" +
		"chips/b.tif,4,\n" +
		"chips/sub/c.tif,9,forest and more\n"
	err := os.WriteFile("labelled.csv", []byte(labelled), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := loader.ParseSpec([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestExplainIsTheStep: explain lists the rows of the batch, and the bytes and chunks that reading
// it took.
func TestExplainIsTheStep(t *testing.T) {
	workplace(t)
	spec := specFile(t, "windows.json", spec.BadReplace)
	testfile.Write(t, "chips/b.tif", []byte("no TIFF"))
	stages, chunks := &resources.Stages{}, int64(0)
	e, err := loader.Open(t.Context(), spec, loader.Options{Stages: stages})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for step := range e.Steps() {
		r := chaski(t.Context(), "explain", "--json", "--epoch", "1", "--step", fmt.Sprint(step),
			"windows.json")
		var got dataset.ExplainReport
		if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 0 {
			t.Fatal(r, err)
		}
		b, err := e.Start(t.Context(), steps.StepTicket(1, step, 5, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range got.Rows {
			last := row.Row
			for _, a := range last.Assets {
				chunks += int64(len(a.Chunks))
			}
			for _, sub := range row.Instead {
				last = sub
				for _, a := range sub.Assets {
					chunks += int64(len(a.Chunks))
				}
			}
			if row.Position != b.Positions[i] || row.Position >= 0 && last.Draw.Sample != b.Samples[i] {
				t.Errorf("step %d row %d: %+v", step, i, last)
			}
		}
		b.Release()
	}
	if err := e.Close(); err != nil { // workers report what they have decoded at their end
		t.Fatal(err)
	}
	if decoded, _ := stages.Decoded(); decoded > chunks || decoded == 0 {
		t.Errorf("%d chunks are named, and %d were decoded", chunks, decoded)
	}
	text := chaski(t.Context(), "explain", "--epoch", "1", "--step", "1", "windows.json")
	for _, want := range []string{
		"\nepoch: 1\nstep: 1\n", "fields: ['image raster", "row: 4\n    position: 9",
		"field: image", "uri: chips/", "h: 40, w: 24}", "runs:", "chunks:",
	} {
		if !strings.Contains(text.out, want) {
			t.Errorf("no %q in\n%s", want, text.out)
		}
	}
}

// TestNamesDriveNoTerminal: names from data are printed without terminal control characters.
func TestNamesDriveNoTerminal(t *testing.T) {
	workplace(t)
	name := "chips/\x1b]0;title\x07\u202efit.tif"
	chip := testfile.Read(t, "chips/a.tif")
	testfile.Write(t, name, chip)
	good := chaski(t.Context(), "explain", "--batch", "8", "chips")
	testfile.Write(t, name, []byte("no TIFF"))
	for _, r := range []result{
		good, chaski(t.Context(), "explain", "--batch", "8", "--bad-samples", "skip", "chips"),
		chaski(t.Context(), "plan", "--batch", "8", "--bad-samples", "skip", "chips"),
	} {
		for i, c := range r.out {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("%q at %d of %q", c, i, r.out)
				break
			}
		}
		if r.code != 0 || !strings.Contains(r.out, "title") {
			t.Errorf("%+v", r)
		}
	}
}

// TestSpecAndFlagsAreOne: a spec in a file and flags with the same content are the same run.
func TestSpecAndFlagsAreOne(t *testing.T) {
	workplace(t)
	text := `{"version": 1, "source": "chips", "batch_size": 2, "shuffle": true, "seed": 4, "bad_samples": "skip",
		"fields": [{"name": "image", "dtype": "float32"}], "sampler": {"kind": "random_window", "height": 20, "width": 30, "per_asset": 2}}`
	testfile.Write(t, "same.json", []byte(text))
	a := chaski(t.Context(), "plan", "same.json")
	b := chaski(t.Context(), "plan", "--batch", "2", "--seed", "4", "--bad-samples", "skip", "--window", "20x30",
		"--per-asset", "2", "chips")
	if a.code != 0 || a != b {
		t.Errorf("%+v\n%+v", a, b)
	}
	for _, want := range []string{
		"\nsamples: 6\nsteps: 3\n", "requests: ", "memory_total: ", "exact: ",
	} {
		if !strings.Contains(a.out, want) {
			t.Errorf("no %q in\n%s", want, a.out)
		}
	}
}

func TestRunsUsage(t *testing.T) {
	workplace(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"plan --batch 2 spec.json", 2, "--batch describes a dataset"},
		{"plan --augment d4 spec.json", 2, "--augment describes a dataset"},
		{"plan --sampler grid spec.json", 2, "--sampler describes a dataset"},
		{"plan --where a<1 spec.json", 2, "--where describes a dataset"},
		{"explain --split train spec.json", 2, "--split describes a dataset"},
		{"explain --bbox 0,0,1,1 spec.json", 2, "--bbox describes a dataset"},
		{"verify --samples --datetime 2020-01-01 spec.json", 2, "--datetime describes a dataset"},
		{"bench load --at-level 1 spec.json", 2, "--at-level describes a dataset"},
		{"plan none.json", 1, "none.json"},
		{"plan stats.json", 1, "stats.json: spec: no member "},
		{"plan --world 2 --rank 2 chips", 2, "--rank"},
		{"plan", 2, "SPEC.json or DATASET is missing"},
		{"explain --state state.json --step 1 spec.json", 2, "exclude each other"},
		{"explain --step 99 spec.json", 2, "no step 99"},
		{"explain --back 1 spec.json", 2, "no step -1"},
		{"explain --state state.json chips", 1, "state.json: state: the state is of another run"},
		{"explain --state spec.json spec.json", 1, "spec.json: state: "},
		{"explain --state none.json spec.json", 1, "none.json"},
		{"explain --workers -1 chips", 2, "--workers"},
	} {
		r := chaski(t.Context(), strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%s: exit %d, %s", c.args, r.code, r.err)
		}
	}
}

// TestOutputFlagHasOneName: -o has one long name in all commands.
func TestOutputFlagHasOneName(t *testing.T) {
	for _, c := range commands(Command()) {
		if f := c.Flags().ShorthandLookup("o"); f != nil && f.Name != "output" {
			t.Errorf("%s: -o is --%s", c.CommandPath(), f.Name)
		}
	}
}

// TestNoBytesOnATerminal: binary output is not written to a terminal, whose state it would change.
func TestNoBytesOnATerminal(t *testing.T) {
	workplace(t)
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !term.IsTerminal(int(tty.Fd())) {
		t.Skip("no terminal here: ", err)
	}
	defer tty.Close()
	for _, args := range [][]string{
		{"cat", "--format", "npy", "chip.tif"},
		{"cat", "--format", "raw", "chip.tif"},
		{"index", "--format", "parquet", "chips"},
		{"sql", "--format", "parquet", "SELECT id FROM data", "coast.tacozip"},
		{"frame", "--format", "raw", "data.zl"},
		{"stats", "--sampling", "chips"},
		{"paste", "--like", "scene.tif", "--window", "256", "--stride", "192", "predictions.npy"},
	} {
		var errs bytes.Buffer
		code := run(t.Context(), args, console.Env{In: strings.NewReader(""), Out: tty, Err: &errs})
		if code != 2 || !strings.Contains(errs.String(), "not to a terminal") {
			t.Errorf("%q: exit %d: %s", args, code, errs.String())
		}
	}
}
