package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
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
	f, err := parse(bytes.NewReader(content), "a.ledger", &tally{})
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{}
	if f.cut {
		r.Cut = []string{"a.ledger"}
	}
	if f.err != nil {
		r.Damaged, r.records = []string{f.err.Error()}, 1
	}
	if len(f.lives) > 0 {
		run, err := checkRun(f.lives, epochs, newRoom())
		if err != nil {
			t.Fatal(err)
		}
		r.add(&run)
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
		f, err := parse(bytes.NewReader(text(changed)), "a.ledger", &tally{})
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

// forged returns a folder with a file of these lines.
func forged(t *testing.T, lines []string) string {
	t.Helper()
	folder := t.TempDir()
	(&written{path: filepath.Join(folder, "a.ledger"), lines: lines}).save(t, 0)
	return folder
}

// peak returns what f returns, and how much the heap grew meanwhile, at least.
func peak(f func() (*Report, error)) (r *Report, bytes uint64, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	runtime.GC()
	heap := func() uint64 {
		used := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(used)
		return used[0].Value.Uint64()
	}
	before, over := heap(), make(chan struct{})
	go func() {
		defer close(over)
		r, err = f()
	}()
	for {
		select {
		case <-over:
			return r, bytes, err
		case <-time.After(time.Millisecond):
			bytes = max(bytes, heap()-min(before, heap()))
		}
	}
}

// TestForged promises that files that say more than a run could are checked in little memory, with a short report that
// counts what it leaves out.
func TestForged(t *testing.T) {
	record := func(epoch, step int, more string) string {
		first := 4 * step
		return fmt.Sprintf(`{"epoch":%d,"step":%d,"first":%d,"samples":%d%s}`, epoch, step, first, min(4, 10-first),
			more)
	}
	repeated := func(n int, line func(i int) string) []string {
		all := []string{lines[0]}
		for i := range n {
			all = append(all, line(i))
		}
		return all
	}
	const rows = 60_000
	bad := strings.TrimSuffix(strings.Repeat(`{"became":"filled"},`, rows), ",")
	long := `"run":"` + strings.Repeat("r", 3<<20) + `"`
	for name, test := range map[string]struct {
		lines []string
		most  uint64 // MiB
		want  func(r *Report) bool
	}{
		"an epoch far away": {[]string{lines[0], record(1<<40, 0, "")}, 64, func(r *Report) bool {
			run := r.Runs[0]
			return len(run.Epochs) == MaxExceptions && run.EpochsLeftOut == 1<<16+1-MaxExceptions &&
				run.Missing == 10*(1<<16)
		}},
		"many lives": {repeated(100_000, func(i int) string { return record(i, 0, `,"restored":true`) }), 160,
			func(r *Report) bool {
				run := r.Runs[0]
				return len(run.Starts) == MaxExceptions && run.StartsLeftOut > 0 && len(r.Damaged) == 1 &&
					strings.Contains(r.Damaged[0], "too often")
			}},
		"jumps": {repeated(100_000, func(i int) string { return record(0, i%2, "") }), 160,
			func(r *Report) bool { return len(r.Damaged) == 0 && r.Runs[0].Twice > 0 }},
		"more jumps": {repeated(600_000, func(i int) string { return record(0, 2*(i%2), "") }), 160,
			func(r *Report) bool { return len(r.Damaged) == 1 && strings.Contains(r.Damaged[0], "too often") }},
		"wrong records": {repeated(70_000, func(i int) string {
			return fmt.Sprintf(`{"epoch":%d,"step":%d,"first":7,"samples":9}`, i/3, i%3)
		}), 64, func(r *Report) bool {
			return r.Runs[0].Wrong == maxWrong+1 && strings.Contains(r.Damaged[0], "contradict the order")
		}},
		"many bad rows": {repeated(6, func(i int) string { return record(i/3, i%3, `,"bad":[`+bad+"]") }), 64,
			func(r *Report) bool {
				run := r.Runs[0]
				return run.Bad == 6*rows && run.LeftOut > 0 && len(run.Exceptions) == MaxExceptions
			}},
		"too many bad rows": {[]string{lines[0], record(0, 0, `,"bad":[`+strings.Repeat("{},", 1_000_000)+"{}]")}, 32,
			func(r *Report) bool { return strings.Contains(r.Damaged[0], "bad rows") }},
		"a long name": {[]string{strings.Replace(lines[0], `"run":"r"`, long, 1), record(0, 0, "")}, 48,
			func(r *Report) bool { return strings.Contains(r.Damaged[0], "more than 4096 bytes") }},
	} {
		folder := forged(t, test.lines)
		r, used, err := peak(func() (*Report, error) { return Check([]string{folder}, 0) })
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said, err := json.Marshal(r)
		if !test.want(r) || len(said) > 1<<20 || err != nil {
			t.Errorf("%s: %.2000s (%d bytes), %v", name, said, len(said), err)
		}
		if used>>20 > test.most {
			t.Errorf("%s: %d MiB", name, used>>20)
		}
		t.Logf("%s: %d MiB, %d bytes are said", name, used>>20, len(said))
	}
}

// TestForgedFolders promises that pipes and links to them are damaged files, that a report lists some of many runs and
// counts the faults of all, and that the work on ranks beside each other is bounded.
func TestForgedFolders(t *testing.T) {
	folder := t.TempDir()
	const runs = 500
	for i := range runs {
		head := strings.Replace(lines[0], `"run":"r"`, fmt.Sprintf(`"run":"r%d"`, i), 1)
		(&written{path: filepath.Join(folder, fmt.Sprintf("%d.ledger", i)), lines: []string{head, lines[1]}}).save(t, 0)
	}
	pipe := filepath.Join(folder, "p.ledger")
	link := filepath.Join(folder, "q.ledger")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	r, err := Check([]string{folder}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != maxRuns || r.RunsLeftOut != runs-maxRuns || len(r.Damaged) != 2 ||
		!strings.Contains(r.Damaged[0], "no regular file") {
		t.Errorf("%d runs, %d left out, damaged %q", len(r.Runs), r.RunsLeftOut, r.Damaged)
	}
	if samples, records := r.Faults(); samples != 6*runs || records != 2 {
		t.Errorf("%d samples, %d records", samples, records)
	}
	f, err := parse(bytes.NewReader(text(lines)), "a.ledger", &tally{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkRun(f.lives, 0, &room{looks: 1}); !errors.Is(err, fault.Limit) {
		t.Errorf("more work than there is room for: %v", err)
	}
}

// TestTaken: heads and records of many parts take memory by their length.
func TestTaken(t *testing.T) {
	for _, content := range append(taken.JSON(`{"epoch":[`), taken.JSON("[")...) {
		taken.Check(t, len(content), taken.Factor, func() { report(t, text([]string{content}), 3) })
		taken.Check(t, len(content), taken.Factor, func() { report(t, text([]string{lines[0], content}), 3) })
	}
}

// FuzzCheck promises that a file of any content, with right checksums, is checked or refused, in bounded memory, and
// that its report can be written.
func FuzzCheck(f *testing.F) {
	f.Add(strings.Join(lines, "\n"))
	f.Add(strings.Replace(lines[0], `"step":0}`, `"step":0,"time":1e308}`, 1))
	f.Add(strings.Join(lines[:2], "\n") + "\n" + `{"epoch":0,"step":1,"restored":true,"time":-1e300}`)
	f.Add(strings.ReplaceAll(strings.Join(lines, "\n"), `"epoch":0`, `"epoch":18446744073709551615`))
	f.Add(strings.Replace(lines[0], `"world_size":1`, `"world_size":9007199254740992`, 1) + "\n" +
		fmt.Sprintf(`{"epoch":0,"step":%d,"restored":true}`, 2))
	f.Fuzz(func(t *testing.T, content string) {
		if _, err := json.Marshal(report(t, text(strings.Split(content, "\n")), 3)); err != nil {
			t.Fatal(err)
		}
	})
}
