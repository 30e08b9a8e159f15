package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestReport: an error becomes one line and an exit code: 1 about an input, with its kind, 2 about the command line,
// 128 and the number of a signal.
func TestReport(t *testing.T) {
	started := &cobra.Command{Use: "chaski", Annotations: map[string]string{Started: ""}}
	bad := fault.WithFile(fault.At(fault.Corrupt, "tile 3", 77, "too\nshort"), "a.tif")
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(Interrupt{syscall.SIGTERM})
	for _, c := range []struct {
		ctx  context.Context
		cmd  *cobra.Command
		err  error
		code int
		line string
	}{
		{t.Context(), started, bad, 1, "chaski: a.tif: tile 3 at 77: too short: corrupt\n"},
		{t.Context(), started, fmt.Errorf("around: %w", bad), 1, "chaski: a.tif: tile 3 at 77: too short: corrupt\n"},
		{t.Context(), started, errors.New("b.tif: none: not found"), 1, "chaski: chaski: b.tif: none: not found\n"},
		{t.Context(), started, syscall.ENOSPC, 1, "chaski: chaski: no space left on device: limit\n"},
		{t.Context(), started, Usagef("--step is %d", 3), 2, "chaski: --step is 3\nTry 'chaski --help'.\n"},
		{t.Context(), &cobra.Command{Use: "chaski"}, errors.New("unknown flag"), 2,
			"chaski: unknown flag\nTry 'chaski --help'.\n"},
		{interrupted, started, context.Canceled, 143, "chaski: interrupted\n"},
	} {
		var out bytes.Buffer
		if code := Report(c.ctx, &out, c.cmd, c.err); code != c.code || out.String() != c.line {
			t.Errorf("%v: exit code %d and %q, want %d and %q", c.err, code, out.String(), c.code, c.line)
		}
	}
}

// TestSizes: sizes are short, and never 1000.0 or 1024.0 of a unit.
func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_950: "1.0 MB", 1 << 62: "4.6 EB",
	} {
		if got := DecimalSize(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestNotAnInput: no output may take the place of a file that the command reads, under whatever name, or of a raster in
// a directory that it reads.
func TestNotAnInput(t *testing.T) {
	dir := t.TempDir()
	in, link, beside := filepath.Join(dir, "in.json"), filepath.Join(dir, "link"), filepath.Join(dir, "b.tif")
	for _, name := range []string{in, beside} {
		testfile.Write(t, name, nil)
	}
	if err := os.Symlink(in, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		output string
		args   []string
		ok     bool
	}{
		{in, []string{in}, false},
		{link, []string{in}, false},
		{in, []string{dir + "/../" + filepath.Base(dir) + "/in.json"}, false},
		{in, []string{dir}, true}, // no raster
		{beside, []string{dir}, false},
		{beside, []string{filepath.Join(dir, "*.tif")}, false},
		{beside, []string{in}, true},
		{filepath.Join(dir, "new.tif"), []string{dir}, true},
	} {
		fl := pflag.NewFlagSet("", pflag.ContinueOnError)
		fl.String("output", "", "")
		if err := fl.Set("output", c.output); err != nil {
			t.Fatal(err)
		}
		if err := NotAnInput(fl, c.args); (err == nil) != c.ok {
			t.Errorf("-o %s of %q: %v", c.output, c.args, err)
		}
	}
}

// TestPrintable: text of files moves no cursor and makes no second line.
func TestPrintable(t *testing.T) {
	text := "a\x1b[2Jb\u009bc\x7fd\ne"
	got := Printable(text)
	whole := strings.HasPrefix(got, "a") && strings.HasSuffix(got, "e")
	if !whole || strings.ContainsAny(got, "\x1b\u009b\x7f\n") {
		t.Errorf("%q", got)
	}
}

// TestPrint: YAML has the members of the JSON that say something, a row of a table on a line, no character that a
// terminal obeys, and reads as the same values.
func TestPrint(t *testing.T) {
	type row struct {
		Name string `json:"name"`
		Size [2]int `json:"size"`
	}
	found := struct {
		Path  string         `json:"path"`
		None  *int           `json:"none"`
		Empty []int          `json:"empty"`
		Zero  int            `json:"zero"`
		Rows  []row          `json:"rows"`
		Deep  map[string]any `json:"deep"`
	}{Path: "a\x1b]0;x\a\u009b\u202e\ufeff: <b>", Rows: []row{{"x, y", [2]int{1, 2}}, {"yes", [2]int{3, 4}}},
		Deep: map[string]any{"at": map[string]any{"rows": []row{{"z", [2]int{}}}}}}
	var text strings.Builder
	if err := Print(&text, found, false); err != nil {
		t.Fatal(err)
	}
	want := `path: "a\e]0;x\a   : <b>"
zero: 0
rows:
  - {name: 'x, y', size: [1, 2]}
  - {name: yes, size: [3, 4]}
deep:
  at:
    rows:
      - {name: z, size: [0, 0]}
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
}

// TestBarBeginsWithAStep: a bar shows no rate before a step is done, nor one over its first microseconds, also when the
// total changes.
func TestBarBeginsWithAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		bar := drawnBar(&terminal, "stats")
		bar.Set(0, 7)
		bar.Set(0, 9)
		bar.Set(1, 8)
		bar.Set(3, 9)
		if terminal.Len() > 0 {
			t.Errorf("a bar without a rate drew %q", terminal.String())
		}
		time.Sleep(2 * redraw)
		bar.Set(4, 9)
		if text := terminal.String(); !strings.Contains(text, "(4/9, 20 it/s)") || strings.Count(text, "it/s") > 1 {
			t.Errorf("4 steps of 9 in 200 ms: %q", text)
		}
		bar.Done()
	})
}
