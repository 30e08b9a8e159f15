package loader

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// writeWeights writes weights as docs/order.md says, and returns what names them.
func writeWeights(t *testing.T, weights ...float32) *steps.Weights {
	t.Helper()
	data := binary.LittleEndian.AppendUint64([]byte("CHSKROW1"), uint64(len(weights)))
	for _, w := range weights {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(w))
	}
	piece := sha256.Sum256(data[16:]) // they are less than a piece
	hash := sha256.Sum256(append(data[:16:16], piece[:]...))
	path := filepath.Join(t.TempDir(), "x.weights")
	testfile.Write(t, path, data)
	return &steps.Weights{Path: path, Hash: hex.EncodeToString(hash[:])}
}

// slowWeights opens files, those of weights with a path in stuck when that is closed. It counts files of weights.
type slowWeights struct {
	openers.Files
	stuck map[string]chan struct{}

	mu           sync.Mutex
	opened, open map[string]int
}

func (o *slowWeights) Open(ctx context.Context, uri string) (source.Reader, error) {
	if !strings.HasSuffix(uri, ".weights") {
		return o.Files.Open(ctx, uri)
	}
	if let := o.stuck[uri]; let != nil {
		<-let // as a system call would, without a look at ctx
	}
	o.count(uri, 1)
	r, err := o.Files.Open(ctx, uri)
	return closes{r, func() { o.count(uri, -1) }}, err
}

func (o *slowWeights) count(uri string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[uri] += n
	o.opened[uri] += max(n, 0)
}

type closes struct {
	source.Reader
	closed func()
}

func (c closes) Close() error {
	c.closed()
	return c.Reader.Close()
}

func openSlowWeights(t *testing.T) (*Engine, *slowWeights) {
	o := &slowWeights{stuck: map[string]chan struct{}{}, opened: map[string]int{}, open: map[string]int{}}
	table := filepath.Join(t.TempDir(), "rows.csv")
	testfile.Write(t, table, []byte("x\n"+strings.Repeat("1\n", 3*maxOpenWeights)))
	s := Spec{Source: table, BatchSize: 2, Fields: []Field{{Name: "x", Column: "x"}}}
	e, err := Open(t.Context(), s, Options{Opener: o})
	if err != nil {
		t.Fatal(err)
	}
	return e, o
}

// TestSlowWeights: while a file of weights hangs, Start returns, tickets of other streams with other weights have their
// batches, and so has a ticket behind a cancelled one. The tickets that wait open the file once.
func TestSlowWeights(t *testing.T) { synctest.Test(t, testSlowWeights) }

func testSlowWeights(t *testing.T) {
	e, o := openSlowWeights(t)
	defer o.Close()
	defer e.Close()
	only := func(row int64) *steps.Weights {
		weights := make([]float32, e.Len())
		weights[row] = 1
		return writeWeights(t, weights...)
	}
	slow, quick := only(1), only(2)
	let := make(chan struct{})
	o.stuck[slow.Path] = let
	start := func(ctx context.Context, stream string, w *steps.Weights) *Pending {
		ticket := steps.StepTicket(0, 0, 2, 0, 1)
		ticket.Weights = w
		return e.Start(resources.WithCaller(ctx, resources.Caller{Client: "a", Stream: stream}), ticket, false)
	}
	samples := func(p *Pending, want int64) {
		t.Helper()
		b := wait(t, p)
		defer b.Release()
		if !slices.Equal(b.Samples, []int64{want, want}) {
			t.Errorf("samples %v, want %d", b.Samples, want)
		}
	}
	var waiting []*Pending
	for _, stream := range []string{"1", "1", "2"} {
		waiting = append(waiting, start(t.Context(), stream, slow))
	}
	samples(start(t.Context(), "3", quick), 2)
	ctx, cancel := context.WithCancel(t.Context())
	given, behind := start(ctx, "4", slow), start(t.Context(), "4", quick)
	synctest.Wait()
	select {
	case <-behind.done:
		t.Error("a ticket has overtaken another one of its stream")
	default:
	}
	cancel()
	samples(behind, 2)
	if _, err := given.Wait(t.Context()); err == nil {
		t.Error("a cancelled ticket has a batch")
	}
	close(let)
	for _, p := range waiting {
		samples(p, 1)
	}
	if o.opened[slow.Path] != 1 || o.opened[quick.Path] != 1 {
		t.Errorf("files were opened so many times: %v", o.opened)
	}
	wrong := start(t.Context(), "3", &steps.Weights{Path: slow.Path, Hash: "00"})
	if _, err := wrong.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "other weights") {
		t.Errorf("%v, want another hash", err)
	}
	samples(start(t.Context(), "3", quick), 2)
}

// TestStateWithWeights: a loader goes on with the weights of a state, from their places on, and its state has those
// that still count.
func TestStateWithWeights(t *testing.T) {
	e, o := openSlowWeights(t)
	defer o.Close()
	defer e.Close()
	state := e.State()
	for i, place := range []steps.Change{{Samples: 4}, {Epoch: 1, Samples: 2}} {
		weights := make([]float32, e.Len())
		weights[i+5] = 1
		file := writeWeights(t, weights...)
		place.Path, place.Hash = file.Path, file.Hash
		state.Weights = append(state.Weights, place)
	}
	state.Scores = &steps.Means{Path: "a", Hash: "b"}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	given, err := steps.ParseState(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(e, LoaderOptions{State: &given, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got []int64
	for range 2 * e.Steps() {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Samples...)
		b.Release()
		want := 2
		if len(got) >= int(e.Len())+2 {
			want = 1
		}
		text, err := json.Marshal(l.State())
		if err != nil || strings.Count(string(text), `"once":false`) != want ||
			!strings.Contains(string(text), `"scores":{"path":"a","hash":"b"}`) {
			t.Errorf("after %d samples the state is %s: %v", len(got), text, err)
		}
	}
	for i, sample := range got {
		position := int64(i) % e.Len()
		var want int64
		switch {
		case i < 4:
			want = e.Plan().At(0, position).Sample
		case i < int(e.Len())+2:
			want = 5
		default:
			want = 6
		}
		if sample != want {
			t.Errorf("position %d of epoch %d has sample %d, want %d", position, int64(i)/e.Len(), sample, want)
		}
	}
}

// TestManyWeights: tickets that draw from more files at a time than an engine keeps open get their samples, and all
// files are closed in the end.
func TestManyWeights(t *testing.T) {
	e, o := openSlowWeights(t)
	defer o.Close()
	var tickets []steps.Ticket
	for row := range e.Len() {
		weights := make([]float32, e.Len())
		weights[row] = 1
		ticket := steps.StepTicket(0, 0, 2, 0, 1)
		ticket.Weights = writeWeights(t, weights...)
		tickets = append(tickets, ticket)
	}
	e.weighed.wake()
	var draws sync.WaitGroup
	for worker := range 8 {
		draws.Go(func() {
			for k := range 10 * len(tickets) {
				row := (k*(worker+1) + worker) % len(tickets)
				samples, err := e.weigh(t.Context(), tickets[row])
				if want := int64(row); err != nil || !slices.Equal(samples, []int64{want, want}) {
					t.Errorf("samples %v, want %d: %v", samples, want, err)
				}
			}
		})
	}
	draws.Wait()
	open := 0
	for _, n := range o.open {
		open += n
	}
	if open != maxOpenWeights {
		t.Errorf("%d files are open", open)
	}
	e.Rest()
	for path, n := range o.open {
		if n != 0 {
			t.Errorf("%s: %d times open at rest", path, n)
		}
	}
	samples, err := e.weigh(t.Context(), tickets[3])
	if path := tickets[3].Weights.Path; err != nil || !slices.Equal(samples, []int64{3, 3}) || o.open[path] != 0 {
		t.Errorf("samples %v at rest, the file %d times open: %v", samples, o.open[path], err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for path, n := range o.open {
		if n != 0 {
			t.Errorf("%s: %d times open", path, n)
		}
	}
}
