package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// lines are a head and three batches of an epoch of ten samples.
var lines = []string{
	`{"ledger":1,"run":"r","data":"d","samples":10,"batch_size":4,"steps":3,"rank":0,"world_size":1,"epoch":0,` +
		`"step":0}`,
	`{"epoch":0,"step":0,"first":0,"samples":4,"time":1}`,
	`{"epoch":0,"step":1,"first":4,"samples":4,"time":2}`,
	`{"epoch":0,"step":2,"first":8,"samples":2,"time":3}`,
}

// report parses a file and returns what Check would say of it.
func report(t *testing.T, content []byte, epochs uint64) *Report {
	t.Helper()
	f, err := parse(bytes.NewReader(content), "a.ledger")
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{}
	if f.cut {
		r.Cut = []string{"a.ledger"}
	}
	if f.err != nil {
		r.Damaged = []string{f.err.Error()}
	}
	if len(f.lives) > 0 {
		r.Runs = []Run{checkRun(f.lives, epochs)}
	}
	return r
}

// TestDamage promises that every changed byte and every line that is gone is seen: in the last line as a record that
// was cut, and else as damage, with the file and the offset of the line.
func TestDamage(t *testing.T) {
	whole := text(lines)
	if r := report(t, whole, 1); len(r.Cut)+len(r.Damaged) > 0 || !r.Runs[0].Epochs[0].Complete {
		t.Fatalf("%+v", r)
	}
	all := bytes.SplitAfter(whole, []byte("\n"))[:len(lines)]
	last := len(whole) - len(all[len(lines)-1])
	for i := range whole {
		if whole[i] == '\n' {
			continue // it makes one line of two
		}
		changed := slices.Clone(whole)
		changed[i] ^= 0x10
		r := report(t, changed, 0)
		if (len(r.Cut) == 1) != (i >= last) || (len(r.Damaged) == 1) != (i < last) {
			t.Fatalf("byte %d of %d: %+v", i, len(whole), r)
		}
	}
	for i := range all {
		r := report(t, bytes.Join(append(slices.Clone(all[:i]), all[i+1:]...), nil), 1)
		samples, records := r.Faults()
		if i < 2 && records == 0 || i == 2 && len(r.Cut) == 0 || i == 3 && samples == 0 {
			t.Errorf("without line %d: %+v", i, r)
		}
	}
}

// TestWhatALedgerMustNotSay promises an error of its kind for files that are no ledger, and for records that contradict
// the order.
func TestWhatALedgerMustNotSay(t *testing.T) {
	for _, c := range []struct {
		old, new string
		kind     fault.Kind
	}{
		{`"ledger":1`, `"ledger":2`, fault.Unsupported},
		{`"samples":10`, `"samples":-10`, fault.Corrupt},
		{`"samples":10`, `"samples":9223372036854775807`, fault.Corrupt},
		{`"batch_size":4`, `"batch_size":0`, fault.Corrupt},
		{`"steps":3`, `"steps":4`, fault.Corrupt},
		{`"rank":0`, `"rank":1`, fault.Corrupt},
		{`"step":2`, `"step":3`, fault.Corrupt},
		{`"step":2`, `"step":-1`, fault.Corrupt},
		{`"step":2`, `"step":{}`, fault.Corrupt},
	} {
		changed := strings.Split(strings.ReplaceAll(strings.Join(lines, "\n"), c.old, c.new), "\n")
		f, err := parse(bytes.NewReader(text(changed)), "a.ledger")
		if err != nil || !errors.Is(f.err, c.kind) || !strings.Contains(f.err.Error(), "a.ledger") {
			t.Errorf("%s: %v, %v", c.new, f.err, err)
		}
	}
	changed := slices.Clone(lines)
	changed[2] = strings.Replace(changed[2], `"first":4`, `"first":5`, 1)
	if r := report(t, text(changed), 0); r.Runs[0].Wrong != 1 || *r.Runs[0].Exceptions[0].Position != 5 {
		t.Errorf("%+v", r)
	}
	if _, err := Check([]string{t.TempDir()}, 0); !errors.Is(err, fault.NotFound) {
		t.Errorf("an empty folder: %v", err)
	}
	if r := report(t, make([]byte, maxLine+1), 0); len(r.Damaged) != 1 {
		t.Errorf("a line without an end: %+v", r)
	}
}

// TestLists promises that exceptions of neighbouring steps are one, and that a record may have many bad samples.
func TestLists(t *testing.T) {
	run := report(t, text(lines[:2]), 1).Runs[0]
	if e := run.Exceptions; len(e) != 1 || e[0].First != 1 || e[0].Last != 2 || e[0].Samples != 6 || run.Missing != 6 {
		t.Errorf("%+v", run)
	}
	const n = 10_000
	bad := strings.TrimSuffix(strings.Repeat(`{"position":7,"became":"filled"},`, n), ",")
	long := strings.TrimSuffix(lines[1], "}") + `,"bad":[` + bad + "]}"
	r := report(t, text([]string{lines[0], long}), 0)
	if run := r.Runs[0]; len(r.Damaged) > 0 || run.Bad != n || run.LeftOut != n-int64(len(run.Exceptions)) {
		t.Errorf("%d bad samples, %d left out, damaged %v", run.Bad, run.LeftOut, r.Damaged)
	}
}

// TestPython promises that ledgers that the Python package wrote stay readable.
func TestPython(t *testing.T) {
	r, err := Check([]string{"testdata/ledger"}, 12)
	if err != nil {
		t.Fatal(err)
	}
	if samples, records := r.Faults(); samples+records > 0 || len(r.Runs[0].Epochs) != 12 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTwoRuns promises that ledgers of two runs in one folder are told apart.
func TestTwoRuns(t *testing.T) {
	folder := t.TempDir()
	other := append([]string{strings.Replace(lines[0], `"run":"r"`, `"run":"s"`, 1)}, lines[1:3]...)
	(&written{path: filepath.Join(folder, "a.ledger"), lines: lines}).save(t, 0)
	(&written{path: filepath.Join(folder, "b.ledger"), lines: other}).save(t, 0)
	r, err := Check([]string{folder}, 0)
	if err != nil || len(r.Runs) != 2 || !r.Runs[0].Epochs[0].Complete || !r.Runs[1].Epochs[0].Unfinished {
		t.Errorf("%+v, %v", r, err)
	}
}

// FuzzCheck promises that a file of any content, with right checksums, is checked or refused, in bounded memory.
func FuzzCheck(f *testing.F) {
	f.Add(strings.Join(lines, "\n"))
	f.Add(strings.ReplaceAll(strings.Join(lines, "\n"), `"epoch":0`, `"epoch":18446744073709551615`))
	f.Add(strings.Replace(lines[0], `"world_size":1`, `"world_size":9007199254740992`, 1) + "\n" +
		fmt.Sprintf(`{"epoch":0,"step":%d,"restored":true}`, 2))
	f.Fuzz(func(t *testing.T, content string) {
		report(t, text(strings.Split(content, "\n")), 3)
	})
}
