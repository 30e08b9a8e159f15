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

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/source/refcache"
)

// asker asks one `chaski ask` question after question.
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
		code := run(t.Context(), []string{"ask"}, console.Env{In: inR, Out: outW, Err: &said})
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

// TestAskAnswersAsTheCommandsDo: an answer has the output, the messages and the exit code of the
// command itself, also if its container is already open, and after questions that failed.
func TestAskAnswersAsTheCommandsDo(t *testing.T) {
	zip := testdata(t, "coast", "coast.tacozip")
	north := testdata(t, "coast", "parts", "coast_north.tacozip")
	south := testdata(t, "coast", "parts", "coast_south.tacozip")
	const warned = `--given=[{"concat":[{"paths":1,"where":[{"select":"SELECT id, 1 AS k FROM data"}]},` +
		`{"paths":1,"where":[{"select":"SELECT id, 'a' AS k, 2 AS z FROM data"}]}]}]`
	a := newAsker(t)
	for range 2 {
		for _, args := range [][]string{
			{"entries", "--format", "json", zip}, {"entries", "--level", "2", zip},
			{"sql", "--format", "arrow", "SELECT * FROM data WHERE cloud_cover < 9 ORDER BY rank DESC", zip},
			{"sql", `--given=[{"sql":"cloud_cover < 9"}]`, "SELECT id, rank FROM data", zip},
			{"sql", "SELECT nothing FROM data", zip}, {"sql", "SELECT", zip}, {"sql", "SELECT 1"},
			{"entries", zip + ".none"}, {"entries", "--level", "7", zip}, {"sql", "--no-such-flag", "x", zip},
			{"sql", "SELECT id FROM data", zip, north}, {"sql", warned, "SELECT * FROM data", north, south},
		} {
			want, got := chaski(t.Context(), args...), a.ask(args...)
			if got.code != want.code || got.out != want.out || got.err != want.err {
				t.Errorf("%q: %d %q, want %d %q", args, got.code, got.err, want.code, want.err)
			}
		}
		for _, args := range [][]string{{}, {"ask"}, {"serve"}, {"ls", zip}} {
			got := a.ask(args...)
			if got.code != 2 || !strings.Contains(got.err, "one of entries, sql, extract, index") {
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

// TestAskSeesRewrittenContainers: a container that is kept open is opened again after it was
// rewritten.
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

// TestAskSeesRewrittenFolders: the tables of a directory or of a catalog are read again after a
// change, although the modification time of the directory itself stays.
func TestAskSeesRewrittenFolders(t *testing.T) {
	a := newAsker(t)
	for dir, query := range map[string]string{
		"coast_dir":      "SELECT id FROM data",
		"parts/.tacocat": "SELECT id FROM data",
	} {
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

// TestAskEndsWhenInterrupted: it ends also while it waits for a question.
func TestAskEndsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	inR, inW := io.Pipe()
	defer inW.Close()
	ended := make(chan int)
	go func() { ended <- run(ctx, []string{"ask"}, console.Env{In: inR, Out: io.Discard, Err: io.Discard}) }()
	if _, err := io.WriteString(inW, "[]\n"); err != nil {
		t.Fatal(err)
	}
	cancel(console.Interrupt{Signal: syscall.SIGTERM})
	select {
	case code := <-ended:
		if code != console.ExitTerm {
			t.Errorf("exit %d", code)
		}
	case <-time.After(5 * time.Minute):
		t.Error("it waits for another question")
	}
}

// TestAskLooksAtRemoteContainersAgain: a container that was rewritten on its web server or in its
// bucket is opened again. Checking an unchanged one takes one small request every few seconds at
// most.
func TestAskLooksAtRemoteContainersAgain(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(testdata(t, "coast", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const query = "SELECT id FROM data"
	web, store, bases := remotes(t, map[string][]byte{"x.tacozip": read("parts/coast_north.tacozip")})
	a := newAsker(t)
	var before string
	for _, name := range []string{"parts/coast_north.tacozip", "parts/coast_south.tacozip", "flat.tacozip"} {
		b := read(name)
		web.Put("/data/x.tacozip", b)
		if err := store.Put("data/x.tacozip", b); err != nil {
			t.Fatal(err)
		}
		want := chaski(t.Context(), "sql", query, testdata(t, "coast", name))
		for _, base := range bases {
			got := a.ask("sql", query, base+"x.tacozip")
			for end := time.Now().Add(5 * time.Minute); got.out != want.out && time.Now().Before(end); {
				if got.code == 0 && got.out != before {
					t.Fatalf("%s in %s: %+v is of neither version", name, base, got)
				}
				time.Sleep(50 * time.Millisecond) // the last look stands for a moment
				got = a.ask("sql", query, base+"x.tacozip")
			}
			if got.out != want.out {
				t.Errorf("%s in %s: %+v, want %q", name, base, got, want.out)
			}
		}
		before = want.out
	}
	requests, start := len(web.Requests()), time.Now()
	for range 20 {
		a.ask("sql", query, bases[0]+"x.tacozip")
	}
	if n, looks := len(web.Requests())-requests, 1+int(time.Since(start)/refcache.CheckInterval); n > looks {
		t.Errorf("%d requests for 20 questions, in the time of %d looks", n, looks)
	}
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-a.result
}

// TestAskRepeatsWarnings: every answer repeats the warnings about its dataset, as the command
// itself prints them.
func TestAskRepeatsWarnings(t *testing.T) {
	a, b := testdata(t, "coast", "coast.tacozip"), filepath.Join(t.TempDir(), "b")
	if err := os.CopyFS(b, os.DirFS(testdata(t, "coast", "coast_dir"))); err != nil {
		t.Fatal(err)
	}
	q := newAsker(t)
	args := []string{"sql", "SELECT id FROM data", a, b}
	want := chaski(t.Context(), args...)
	if want.code != 0 || !strings.Contains(want.err, "warning") {
		t.Fatalf("%+v", want)
	}
	for range 2 {
		if got := q.ask(args...); got.err != want.err || got.out != want.out {
			t.Errorf("%q, want %q", got.err, want.err)
		}
	}
	if err := q.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-q.result
}
