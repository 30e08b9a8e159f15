package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// frameFolder makes a folder of classes: "a" and "store" hold numbers with .raw files, and "b"
// holds a frame of testdata with two outputs.
func frameFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	samples := make([]byte, 8192)
	for i := range samples {
		samples[i] = byte(i / 64)
	}
	stored, err := openzl.Store(nil, samples, 2)
	if err != nil {
		t.Fatal(err)
	}
	delta, err := openzl.DeltaZstd(nil, samples, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	several, err := os.ReadFile(filepath.Join(corpus.Testdata(t), "openzl", "multi-concat-struct.zl"))
	if err != nil {
		t.Fatal(err)
	}
	put("a/0000.zl", delta)
	put("a/0000.raw", samples)
	put("a/0001.zl", delta)
	put("store/0000.zl", stored)
	put("store/0000.raw", samples)
	put("b/x.zl", several)
	put("empty/readme.txt", nil)
	put("readme.txt", nil)
	return dir
}

// TestFrames: every class is measured once a round, and its sizes are those of its frames.
func TestFrames(t *testing.T) {
	dir := frameFolder(t)
	var rounds []int
	r, err := Frames(t.Context(), dir, FramesOptions{
		Rounds: 3, Time: time.Millisecond,
		Progress: func(done, _ int) { rounds = append(rounds, done) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range r.Classes {
		names = append(names, c.Class)
		if len(c.Speed.Rounds) != 3 || !(c.Speed.Min > 0) || c.Original != nil || c.Relative != nil {
			t.Errorf("%+v", c)
		}
	}
	if !slices.Equal(names, []string{"a", "b", "store"}) || !slices.Equal(rounds, []int{1, 2, 3}) || r.Mean != 0 {
		t.Fatalf("%q, rounds %v, mean %g", names, rounds, r.Mean)
	}
	if a := r.Classes[0]; a.Frames != 2 || a.Bytes != 2*8192 || a.Ratio < 4 {
		t.Errorf("%+v", a)
	}
	if s := r.Classes[2]; s.Bytes != 8192 || s.Ratio < 0.99 || s.Ratio >= 1 {
		t.Errorf("%+v", s)
	}
	var b bytes.Buffer
	err = r.WriteText(&b)
	if err != nil || strings.Contains(b.String(), "original") || strings.Count(b.String(), "\n") != 4+1+3 {
		t.Errorf("%v\n%s", err, b.String())
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestFramesRefuse(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		kind                fault.Kind
	}{
		{"no such frame", "a/0002.zl", "no frame", fault.Corrupt},
		{"other samples", "a/0001.raw", "short", fault.Corrupt},
		{"no content", "c/0000.zl", "", fault.Corrupt},
	} {
		dir := frameFolder(t)
		p := filepath.Join(dir, c.file)
		err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(c.content), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Frames(t.Context(), dir, FramesOptions{Rounds: 1, Time: 1})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), strings.TrimSuffix(p, filepath.Ext(p))) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if _, err := Frames(t.Context(), dir, FramesOptions{}); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := Frames(t.Context(), frameFolder(t), FramesOptions{MaxOutput: 100}); !errors.Is(err, fault.Limit) {
		t.Errorf("limit: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Frames(ctx, frameFolder(t), FramesOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// sums of the classes, as the original would give them.
func sums(t *testing.T, dir string) map[string]*frameClass {
	t.Helper()
	list, err := readClasses(t.Context(), dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]*frameClass{}
	for _, c := range list {
		m[c.name] = c
	}
	return m
}

// TestFramesBesideTheOriginal: the original's speed follows from the passes that it reports, the
// ratio is taken round by round, and the mean leaves out the class "store" and frames that the
// original refuses.
func TestFramesBesideTheOriginal(t *testing.T) {
	dir := frameFolder(t)
	c := sums(t, dir)
	o := FramesOptions{Rounds: 2, Time: time.Millisecond}
	answers := func(sumB string) string {
		return `echo '{"versions":"a fake"}'; while read -r l; do case "$l" in
*files*'"a"'*|*'"a"'*files*) echo '{"sha256":"` + c["a"].sum + `"}';;
*'"b"'*files*) echo '` + sumB + `'; ;;
*'"store"'*files*) echo '{"sha256":"` + c["store"].sum + `"}';;
*) echo '{"passes":1000,"seconds":0.5}';; esac; done`
	}
	o.Python = script(t, answers(`{"refused":"not mine"}`))
	r, err := Frames(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	a, b, store := r.Classes[0], r.Classes[1], r.Classes[2]
	if a.Original == nil || math.Abs(a.Original.Median-32.768) > 1e-9 || store.Relative == nil {
		t.Fatalf("%+v %+v", a, store)
	}
	for i, v := range a.Relative.Rounds {
		if math.Abs(v-a.Speed.Rounds[i]/32.768) > 1e-9 {
			t.Errorf("round %d: %g", i, v)
		}
	}
	if b.Original != nil || b.Refused != "not mine" || math.Abs(r.Mean-a.Relative.Median) > 1e-9 {
		t.Errorf("%+v, mean %g of %g", b, r.Mean, a.Relative.Median)
	}
	var text bytes.Buffer
	err = r.WriteText(&text)
	if err != nil || !strings.Contains(text.String(), "b: the original refuses it: not mine") {
		t.Errorf("%v\n%s", err, text.String())
	}
	o.Python = script(t, answers(`{"sha256":"00"}`))
	if _, err := Frames(t.Context(), dir, o); !errors.Is(err, fault.Corrupt) {
		t.Errorf("other bytes: %v", err)
	}
	for body, want := range map[string]string{
		"echo 'ModuleNotFoundError: openzl' >&2; exit 1":             "openzl",
		"echo nonsense; cat >/dev/null":                              "invalid",
		"echo '{}'":                                                  "EOF",
		`echo '{}'; while read -r l; do echo '{"refused":""}'; done`: "other bytes",
	} {
		o.Python = script(t, body)
		if _, err := Frames(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", body, err)
		}
	}
	o.Python = filepath.Join(t.TempDir(), "none")
	if _, err := Frames(t.Context(), dir, o); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no interpreter: %v", err)
	}
}

// TestFramesBesideTheRealOriginal: the original library decodes the same bytes.
func TestFramesBesideTheRealOriginal(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with openzl")
	}
	r, err := Frames(t.Context(), frameFolder(t), FramesOptions{Rounds: 1, Time: time.Millisecond, Python: python})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Classes {
		if c.Original == nil || !(c.Original.Min > 0) || c.Refused != "" {
			t.Errorf("%+v", c)
		}
	}
}
