// Package oracle runs the original programs that tests compare with, and compares values with what they print.
package oracle

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TACO returns the Python that an environment variable names, with the original writers and readers of TACO, and the
// seed of random containers. It skips the test without the variable, which a test names itself: tools/interop.py runs
// those that name one. CHASKI_ORACLE_SEED is another seed than 0.
func TACO(t testing.TB, variable string) (python, seed string) {
	t.Helper()
	if python = os.Getenv(variable); python == "" {
		t.Skip(variable + " names no Python with tacotoolbox, tacoreader, pytortilla and taco-eo")
	}
	if seed = os.Getenv("CHASKI_ORACLE_SEED"); seed == "" {
		seed = "0"
	}
	t.Log("CHASKI_ORACLE_SEED=" + seed)
	return python, seed
}

// Lines runs a script, and returns the lines that it prints, and its warnings.
func Lines(t testing.TB, python, script string, args ...string) (lines [][]byte, warnings string) {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return bytes.Split(bytes.TrimSpace(out), []byte("\n")), errs.String()
}

// Decode decodes JSON. Numbers keep their digits.
func Decode(t testing.TB, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// Same compares values of Decode, numbers by what they are: 1.0 is 1, and pyarrow's decimals are text.
func Same(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			text, _ := b.(string)
			return text == x.String()
		}
		f, err := x.Float64()
		g, err2 := y.Float64()
		return x == y || err == nil && err2 == nil && f == g && math.Abs(f) < 1<<53
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	case map[string]any:
		y, ok := b.(map[string]any)
		for name, v := range x {
			w, there := y[name]
			ok = ok && there && Same(v, w)
		}
		return ok && len(x) == len(y)
	}
	return a == b
}
