package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asker asks a `chaski ask` one question after the other.
type asker struct {
	t      *testing.T
	in     io.WriteCloser
	out    io.Reader
	result chan result
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	a := &asker{t, inW, outR, make(chan result, 1)}
	go func() {
		var said bytes.Buffer
		code := run(t.Context(), []string{"ask"}, inR, outW, &said)
		outW.Close()
		a.result <- result{code: code, err: said.String()}
	}()
	return a
}

// ask returns the answer to a question.
func (a *asker) ask(args ...string) (r result) {
	a.t.Helper()
	line, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.in.Write(append(line, '\n')); err != nil {
		a.t.Fatal(err)
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(a.out, head[:]); err != nil {
			a.t.Fatal(err)
		}
		b := make([]byte, binary.LittleEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(a.out, b); err != nil {
			a.t.Fatal(err)
		}
		switch head[0] {
		case 'o':
			r.out += string(b)
		case 'e':
			r.err += string(b)
		case 'x':
			if r.code, err = strconv.Atoi(string(b)); err != nil {
				a.t.Fatal(err)
			}
			return r
		default:
			a.t.Fatalf("a part %q", head[0])
		}
	}
}

// TestAskAnswersAsTheCommandsDo: an answer is what the command alone prints, says and ends with, also when its container
// is open already, and after questions that failed.
func TestAskAnswersAsTheCommandsDo(t *testing.T) {
	zip := testdata(t, "coast", "coast.tacozip")
	a := newAsker(t)
	for range 2 {
		for _, args := range [][]string{
			{"entries", "--format", "json", zip}, {"entries", "--level", "2", zip},
			{"sql", "--format", "arrow", "SELECT * FROM data WHERE cloud_cover < 9 ORDER BY rank DESC", zip},
			{"sql", `--given=[{"sql":"cloud_cover < 9"}]`, "SELECT id, rank FROM data", zip},
			{"sql", "SELECT nothing FROM data", zip}, {"sql", "SELECT", zip}, {"sql", "SELECT 1"},
			{"entries", zip + ".none"}, {"entries", "--level", "7", zip}, {"sql", "--no-such-flag", "x", zip},
			{"sql", "SELECT id FROM data", zip, testdata(t, "coast", "parts", "coast_north.tacozip")},
		} {
			want, got := chaski(t.Context(), args...), a.ask(args...)
			if got.code != want.code || got.out != want.out || got.err != want.err {
				t.Errorf("%q: %d %q, want %d %q", args, got.code, got.err, want.code, want.err)
			}
		}
		for _, args := range [][]string{{}, {"ask"}, {"serve"}, {"ls", zip}} {
			if got := a.ask(args...); got.code != 2 || !strings.Contains(got.err, "entries or sql") {
				t.Errorf("%q: %+v", args, got)
			}
		}
	}
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-a.result; r.code != 0 || r.err != "" {
		t.Errorf("%+v", r)
	}
	b := newAsker(t)
	if _, err := io.WriteString(b.in, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-b.result; r.code != 2 {
		t.Errorf("a line that is no list: %+v", r)
	}
	b.in.Close()
}

// TestAskSeesRewrittenContainers: what stays open is not what is there any more.
func TestAskSeesRewrittenContainers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.tacozip")
	a := newAsker(t)
	for _, name := range []string{"coast.tacozip", "flat.tacozip", filepath.Join("parts", "coast_north.tacozip")} {
		b, err := os.ReadFile(testdata(t, "coast", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		want := chaski(t.Context(), "sql", "SELECT id FROM data", path)
		for range 2 {
			if got := a.ask("sql", "SELECT id FROM data", path); got.out != want.out || got.code != 0 {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
	}
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-a.result
}

// TestAskSeesRewrittenFolders: nor are the tables of a folder, or of a catalog, whose own times stay as they were.
func TestAskSeesRewrittenFolders(t *testing.T) {
	a := newAsker(t)
	for dir, query := range map[string]string{"coast_dir": "SELECT id FROM data", "parts/.tacocat": "SELECT id FROM data"} {
		path := filepath.Join(t.TempDir(), filepath.Base(dir))
		if err := os.CopyFS(path, os.DirFS(testdata(t, "coast", dir))); err != nil {
			t.Fatal(err)
		}
		if got := a.ask("sql", query, path); got.code != 0 || strings.Count(got.out, "\n") < 3 {
			t.Fatalf("%s: %+v", dir, got)
		}
		table, err := filepath.Glob(filepath.Join(path, "level0.parquet"))
		if err != nil || table == nil {
			table = []string{filepath.Join(path, "METADATA", "level0.parquet")}
		}
		b, err := os.ReadFile(table[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(table[0], b[:len(b)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := a.ask("sql", query, path); got.code != 1 {
			t.Errorf("%s: %+v", dir, got)
		}
		if err := os.WriteFile(table[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := a.ask("sql", query, path); got.code != 0 {
			t.Errorf("%s: %+v", dir, got)
		}
	}
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-a.result
}

// TestAskEndsWhenInterrupted: also while it waits for a question.
func TestAskEndsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	inR, inW := io.Pipe()
	defer inW.Close()
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"ask"}, inR, io.Discard, io.Discard) }()
	if _, err := io.WriteString(inW, "[]\n"); err != nil {
		t.Fatal(err)
	}
	cancel(interrupt{syscall.SIGTERM})
	select {
	case code := <-ended:
		if code != exitTerm {
			t.Errorf("exit %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for another question")
	}
}

// TestAskHoldsFewContainers: of many containers, those that were used last stay open.
func TestAskHoldsFewContainers(t *testing.T) {
	b, err := os.ReadFile(testdata(t, "coast", "flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	h := &session{files: newOpener(true)}
	defer h.close()
	for i := range 2 * maxSets {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i)+".tacozip")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f := containerFlags{mode: "intersection"}
		d, err := f.open(t.Context(), h.files, []string{path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.give(&heldSet{path, "", d, nil}, false)
	}
	if len(h.sets) != maxSets || !strings.Contains(h.sets[0].key, strconv.Itoa(maxSets)) {
		t.Errorf("%d datasets, the first %s", len(h.sets), h.sets[0].key)
	}
	first := h.sets[0]
	if h.take(first.key, "") != first || h.take(first.key, "") != nil {
		t.Error("a dataset is there twice")
	}
	h.give(first, true)
	if len(h.sets) != maxSets-1 {
		t.Error("one that failed is kept")
	}
}
