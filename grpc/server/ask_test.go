package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/format/tables/arrow"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// ask returns the answer to a question that goes on in further requests.
func ask(t *testing.T, c chaskiv1.ChaskiClient, requests ...*chaskiv1.AskRequest) ([]byte, error) {
	t.Helper()
	call, err := c.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range requests {
		if err := call.Send(r); err != nil && !errors.Is(err, io.EOF) { // io.EOF: the server has answered already
			t.Fatal(err)
		}
	}
	if err := call.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for {
		m, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, m.GetData()...)
	}
}

// TestIdleQuestions: a client that does not send its question, or the rest of it, is cut after a time, so that others
// are answered, and at once by a server that stops.
func TestIdleQuestions(t *testing.T) {
	root := filepath.Join(corpus.Testdata(t), "coast")
	begun := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Stats{Stats: &chaskiv1.StatsQuestion{Spec: []byte("{")}}}
	for name, begin := range map[string]func(chaskiv1.Chaski_AskClient) error{
		"nothing is sent": func(chaskiv1.Chaski_AskClient) error { return nil },
		"a part is sent":  func(g chaskiv1.Chaski_AskClient) error { return g.Send(begun) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Options{
				{Roots: []string{root}, MaxReads: 1, SendTimeout: 50 * time.Millisecond},
				{Roots: []string{root}, MaxReads: 1, SendTimeout: time.Hour, DrainTimeout: time.Hour},
			} {
				synctest.Test(t, func(t *testing.T) { idleQuestion(t, o, begin) })
			}
		})
	}
}

func idleQuestion(t *testing.T, o Options, begin func(chaskiv1.Chaski_AskClient) error) {
	l, target, dial := listenBuf(t)
	s := start(t, l, o)
	conn := dialed(t, target, dial)
	defer conn.Close()
	c := chaskiv1.NewChaskiClient(conn)
	idle, err := c.Ask(t.Context())
	if err == nil {
		err = begin(idle)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o.SendTimeout == time.Hour {
		synctest.Wait() // until the server has taken the call
		s.stop(t)
		if _, err := idle.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("the server stops, and the idle client gets %v", err)
		}
		return
	}
	if _, err := idle.Recv(); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the idle client gets %v", err)
	}
	about := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_About{About: &chaskiv1.AboutQuestion{
		Containers: &chaskiv1.Containers{Paths: []string{filepath.Join(o.Roots[0], "coast.tacozip")}}}}}
	if got, err := ask(t, c, about); err != nil || !json.Valid(got) {
		t.Errorf("the next question is answered by %q, %v", got, err)
	}
	s.stop(t)
}

// TestAsk compares answers with those of package taco, and checks that a client sees nothing beside the roots, and no
// file below them that other calls refuse.
func TestAsk(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join(corpus.Testdata(t), "coast"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "key.pem"), []byte("-----BEGIN PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "coast.tacozip")
	set := &chaskiv1.Containers{Paths: []string{path}}
	table := func(text string) *chaskiv1.AskRequest {
		return &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{
			Table: &chaskiv1.TableQuestion{Containers: set, Text: []byte(text)}}}
	}
	name := func(path string) *chaskiv1.AskRequest {
		return &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Bytes{Bytes: &chaskiv1.BytesQuestion{Name: path}}}
	}
	type question = chaskiv1.RumiHeadQuestion
	head := func(edit func(q *question)) []*chaskiv1.AskRequest {
		q := &chaskiv1.RumiHeadQuestion{
			Shape: []uint32{1, 9, 9}, Dtype: "uint8", Tile: []uint32{16, 16}, Generation: 2,
			Transform: []float64{1, 0, 0, 0, -1, 0}, Epsg: 4326, Counts: []byte{7, 0, 0, 0, 0, 0, 0, 0},
		}
		edit(q)
		return []*chaskiv1.AskRequest{{Kind: &chaskiv1.AskRequest_RumiHead{RumiHead: q}}}
	}
	each(t, Options{Roots: []string{root}}, func(t *testing.T, target string, dial ...grpc.DialOption) {
		conn := dialed(t, target, dial)
		defer conn.Close()
		c := chaskiv1.NewChaskiClient(conn)
		const sql = "SELECT id, cloud_cover FROM data WHERE cloud_cover < 9 ORDER BY rank DESC"
		d, err := taco.Open(t.Context(), &openers.Files{}, []string{path}, taco.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		want, err := d.SQL(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := arrow.Write(t.Context(), &b, want); err != nil || want.Len() == 0 {
			t.Fatal(want.Len(), err)
		}
		whole, err := json.Marshal(map[string]string{"sql": sql})
		if err != nil {
			t.Fatal(err)
		}
		rest := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Data{Data: whole[7:]}}
		for _, q := range [][]*chaskiv1.AskRequest{{table(string(whole))}, {table(string(whole[:7])), rest}} {
			if got, err := ask(t, c, q...); err != nil || !bytes.Equal(got, b.Bytes()) {
				t.Errorf("%d bytes, %v, want %d", len(got), err, b.Len())
			}
		}
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ask(t, c, name(path)); err != nil || !bytes.Equal(got, file) {
			t.Errorf("%d bytes of %d, %v", len(got), len(file), err)
		}
		if got, err := ask(t, c, head(func(*question) {})...); err != nil || len(got) == 0 {
			t.Error(len(got), err)
		}
		set.Paths[0] = path
		for what, q := range map[string]struct {
			ask  []*chaskiv1.AskRequest
			want codes.Code
		}{
			"no question":      {nil, codes.InvalidArgument},
			"data alone":       {[]*chaskiv1.AskRequest{rest}, codes.InvalidArgument},
			"no JSON":          {[]*chaskiv1.AskRequest{table("{")}, codes.InvalidArgument},
			"no shape":         {head(func(q *question) { q.Shape = q.Shape[:2] }), codes.InvalidArgument},
			"no tile":          {head(func(q *question) { q.Tile = nil }), codes.InvalidArgument},
			"no dtype":         {head(func(q *question) { q.Dtype = "bool" }), codes.InvalidArgument},
			"half a size":      {head(func(q *question) { q.Counts = q.Counts[:7] }), codes.InvalidArgument},
			"a size too large": {head(func(q *question) { q.Counts[7] = 255 }), codes.InvalidArgument},
			"no size":          {head(func(q *question) { q.Counts = nil }), codes.InvalidArgument},
			"a large image": {head(func(q *question) {
				q.Shape = []uint32{65535, math.MaxInt32, math.MaxInt32}
			}), codes.InvalidArgument},
			"no transform": {head(func(q *question) { q.Transform = nil }), codes.InvalidArgument},
			"five coefficients": {
				head(func(q *question) { q.Transform = q.Transform[1:] }), codes.InvalidArgument,
			},
			"not a number": {
				head(func(q *question) { q.Transform[0] = math.NaN() }), codes.InvalidArgument,
			},
			"a code below 1024": {head(func(q *question) { q.Epsg = 1023 }), codes.InvalidArgument},
			"a code too large":  {head(func(q *question) { q.Epsg = 32767 }), codes.InvalidArgument},
			"no such column": {
				[]*chaskiv1.AskRequest{table(`{"sql":"SELECT nothing FROM data"}`)},
				codes.NotFound,
			},
			"outside of the root": {[]*chaskiv1.AskRequest{name("/etc/passwd")}, codes.NotFound},
			"a range outside":     {[]*chaskiv1.AskRequest{name("/vsisubfile/0_9,/etc/passwd")}, codes.NotFound},
			"a file that is no data": {[]*chaskiv1.AskRequest{name(filepath.Join(root, "key.pem"))},
				codes.Unimplemented},
			"a range of one": {[]*chaskiv1.AskRequest{name("/vsisubfile/0_9," + filepath.Join(root, "key.pem"))},
				codes.Unimplemented},
		} {
			if got, err := ask(t, c, q.ask...); status.Code(err) != q.want || len(got) > 0 {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			}
		}
	})
}

// TestQuestionsTakeTurns promises that queries and statistics compute in the turns that decoding for streams takes,
// too, and so not while others have them.
func TestQuestionsTakeTurns(t *testing.T) {
	root := filepath.Join(corpus.Testdata(t), "coast")
	table := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{Table: &chaskiv1.TableQuestion{
		Containers: &chaskiv1.Containers{Paths: []string{filepath.Join(root, "coast.tacozip")}},
		Text:       []byte(`{"sql": "SELECT a.* FROM data a, data b"}`),
	}}}
	spec, err := json.Marshal(loader.Spec{Source: filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-odd-16.tif"),
		BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	stats := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Stats{Stats: &chaskiv1.StatsQuestion{Spec: spec}}}
	for name, question := range map[string]*chaskiv1.AskRequest{"a query": table, "statistics": stats} {
		t.Run(name, func(t *testing.T) {
			// Not in a bubble: the process keeps decoders of zstd, whose channels belong to the bubble that made them.
			all := turns.New(1, 1)
			others := all.Slot("others")
			if err := others.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			connected(t, Options{Loader: loader.Options{Turns: all}}, func(c chaskiv1.ChaskiClient) {
				var answer []byte
				var failed error
				done := make(chan struct{})
				go func() {
					defer close(done)
					answer, failed = ask(t, c, question)
				}()
				until(t, "it waits for its turn", func() bool { return all.Waiting() > 0 })
				select {
				case <-done:
					t.Error("an answer without a turn")
				default:
				}
				others.Rest()
				<-done
				if failed != nil || len(answer) == 0 {
					t.Errorf("an answer of %d bytes, %v", len(answer), failed)
				}
			})
			if n := all.Taken(); n != 0 {
				t.Errorf("%d turns are taken", n)
			}
		})
	}
}
