package server

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/internal/pages"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// sparseTIFF writes a TIFF of side by side bytes whose tiles of 512 by 512 are all missing, which readers make zeros
// of.
func sparseTIFF(t *testing.T, side int) string {
	t.Helper()
	tiles := (side / 512) * (side / 512)
	le := binary.LittleEndian
	type tag struct {
		id, typ  uint16
		n, value uint32
	}
	const tags = 10
	lists := uint32(8 + 2 + tags*12 + 4)
	dir := []tag{
		{256, 4, 1, uint32(side)}, {257, 4, 1, uint32(side)}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 1},
		{277, 3, 1, 1}, {322, 3, 1, 512}, {323, 3, 1, 512},
		{324, 4, uint32(tiles), lists}, {325, 4, uint32(tiles), lists + 4*uint32(tiles)},
	}
	b := le.AppendUint32([]byte("II*\x00"), 8)
	b = le.AppendUint16(b, tags)
	for _, e := range dir {
		b = le.AppendUint16(le.AppendUint16(b, e.id), e.typ)
		b = le.AppendUint32(le.AppendUint32(b, e.n), e.value)
	}
	b = append(b, make([]byte, 4+8*tiles)...)
	name := filepath.Join(t.TempDir(), "sparse.tif")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestReadsShareTheBudget: clients ask for eight arrays of 16 MiB of a file of a few hundred bytes, and do not read the
// answers. The server makes as many arrays as the budget has room for, and the others when those were read.
func TestReadsShareTheBudget(t *testing.T) {
	race.SkipCovered(t)
	const array, reads = 16 << 20, 8
	name := sparseTIFF(t, 4096)
	total := resources.NewBudget(64 << 20) // an eighth is the reserve: two arrays with 4.25 MiB for the thread fit
	o := Options{Roots: []string{"/"}, MaxReads: reads, Loader: loader.Options{Budget: total}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		before := heap()
		var streams []chaskiv1.Chaski_ReadClient
		for range reads {
			r, err := c.Read(t.Context(), &chaskiv1.ReadRequest{Paths: []string{name}})
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, r)
		}
		eventually(t, "no read waits", func() bool { return total.Waiting() >= reads-3 })
		if n := heap() - before + pages.Held(); n > 5*array {
			t.Errorf("%d bytes are in use, of %d", n, total.Limit())
		}
		var done sync.WaitGroup
		for _, r := range streams {
			done.Go(func() {
				n := 0
				for {
					m, err := r.Recv()
					if err != nil {
						if n < array {
							t.Errorf("%d bytes came, then %v", n, err)
						}
						return
					}
					n += len(m.GetPart().GetData())
				}
			})
		}
		done.Wait()
		eventually(t, "memory is not given back", func() bool { return total.Used() == 0 && total.Waiting() == 0 })

		_, err := readBytes(t, c, &chaskiv1.ReadRequest{Paths: []string{sparseTIFF(t, 8192)}})
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--memory-total") {
			t.Errorf("a read over the budget: %v", err)
		}
	})
}

// TestQuestionsShareTheBudget: the listing of a directory and the rows of a join are charged while a question is
// answered, and come back.
func TestQuestionsShareTheBudget(t *testing.T) {
	dir, _ := chipFolder(t, 6)
	container := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	total := resources.NewBudget(6 << 20) // a question has 4 MiB, the reserve 0.75
	o := Options{Roots: []string{"/"}, Loader: loader.Options{Budget: total, Workers: 1}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		table := func(sql string) *chaskiv1.AskRequest {
			return &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{Table: &chaskiv1.TableQuestion{
				Containers: &chaskiv1.Containers{Paths: []string{container}}, Text: []byte(`{"sql": "` + sql + `"}`)}}}
		}
		if _, err := ask(t, c, table("SELECT * FROM data")); err != nil {
			t.Error(err)
		}
		_, err := ask(t, c, table("SELECT a.* FROM data a, data b, data c, data d, data e, data f"))
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--memory-total") {
			t.Errorf("a join over the budget: %v", err)
		}
		spec, err := json.Marshal(loader.Spec{Source: dir, BatchSize: 2})
		if err != nil {
			t.Fatal(err)
		}
		stats := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Stats{Stats: &chaskiv1.StatsQuestion{Spec: spec}}}
		if _, err := ask(t, c, stats); err != nil {
			t.Error(err)
		}
		eventually(t, "memory is not given back", func() bool { return total.Used() == 0 && total.Waiting() == 0 })
	})
}

// TestEnginesShareTheBudget: datasets that nobody uses are closed when another one needs their memory, and all of it
// comes back in the end.
func TestEnginesShareTheBudget(t *testing.T) {
	dir, _ := chipFolder(t, 6)
	// With its caches an engine has 4 + 1.25 MiB and more, so that of ten engines at most seven fit.
	total := resources.NewBudget(40 << 20)
	o := Options{Roots: []string{"/"}, Loader: loader.Options{Budget: total, Workers: 1}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		for seed := range uint64(10) {
			spec, err := json.Marshal(loader.Spec{Source: dir, BatchSize: 2, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Describe(t.Context(), &chaskiv1.DescribeRequest{Spec: spec}); err != nil {
				t.Fatal(err)
			}
			if n := total.Used(); n > total.Limit() {
				t.Errorf("%d bytes of %d", n, total.Limit())
			}
		}
	})
	if n := total.Used(); n != 0 {
		t.Errorf("%d bytes are charged after the end", n)
	}
}

// TestQuestionsAreCharged: a question takes memory of the budget while it is answered. One whose text does not fit is
// refused with the name of the flag.
func TestQuestionsAreCharged(t *testing.T) {
	total := resources.NewBudget(8 << 20)
	o := Options{Roots: []string{"/"}, Loader: loader.Options{Budget: total}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		question := &chaskiv1.AskRequest_Stats{Stats: &chaskiv1.StatsQuestion{}}
		requests := []*chaskiv1.AskRequest{{Kind: question}}
		for range 8 {
			data := &chaskiv1.AskRequest_Data{Data: make([]byte, 1<<20)}
			requests = append(requests, &chaskiv1.AskRequest{Kind: data})
		}
		_, err := ask(t, c, requests...)
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "--memory-total") {
			t.Errorf("%v", err)
		}
		eventually(t, "all memory back", func() bool { return total.Used() == 0 })
	})
}

// TestLongQuestions: questions with long texts, and texts that are short for what they stand for, take no more memory
// than the budget has, and the longest one with a list of ids is answered.
func TestLongQuestions(t *testing.T) {
	race.SkipCovered(t)
	const questions = 8
	container := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	total := resources.NewBudget(256 << 20)
	o := Options{Roots: []string{"/"}, MaxReads: questions, Loader: loader.Options{Budget: total}}
	table := func(text string) (requests []*chaskiv1.AskRequest) {
		question := &chaskiv1.TableQuestion{Containers: &chaskiv1.Containers{Paths: []string{container}}}
		requests = append(requests, &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{Table: question}})
		for piece := range slices.Chunk([]byte(text), 1<<20) {
			requests = append(requests, &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Data{Data: piece}})
		}
		return requests
	}
	ids := func(bytes int) string { return strings.Repeat("12345678, ", bytes/10) }
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		for name, test := range map[string]struct {
			text  string
			count int
			most  int64 // of memory, with garbage that the collector finds late
			code  codes.Code
		}{
			"sql": {`{"sql": "SELECT id FROM data WHERE 1 IN (` + ids(40<<20) + `1)"}`, questions,
				100 << 20, codes.ResourceExhausted},
			"conditions": {`{"sql": "SELECT", "where": [` + strings.Repeat("{},", 300_000) + `{}]}`, questions,
				100 << 20, codes.ResourceExhausted},
			"parts": {`{"sql": "SELECT id FROM data WHERE 1 IN (` + strings.Repeat("1,", 1<<20-60) + `1)"}`, questions,
				total.Limit(), codes.ResourceExhausted},
			"ids": {`{"sql": "SELECT id FROM data WHERE 1 IN (` + ids(3<<19) + `1)"}`, 1, 100 << 20,
				codes.OK},
		} {
			requests := table(test.text)
			before, over := heapLive(), make(chan struct{})
			var asked sync.WaitGroup
			for range test.count {
				asked.Go(func() {
					if _, err := ask(t, c, requests...); status.Code(err) != test.code {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			go func() { asked.Wait(); close(over) }()
			var most int64
			for ended := false; !ended; {
				select {
				case <-over:
					ended = true
				case <-time.After(10 * time.Millisecond):
				}
				most = max(most, heapLive()-before)
			}
			if most > test.most {
				t.Errorf("%s: the heap grew by %d MiB", name, most>>20)
			}
			t.Logf("%s: the heap grew by %d MiB", name, most>>20)
		}
	})
}

// TestQuestionsThatWaitHaveNoPlace: a question that waits for memory leaves its place to others.
func TestQuestionsThatWaitHaveNoPlace(t *testing.T) {
	root := filepath.Join(corpus.Testdata(t), "coast")
	about := &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_About{About: &chaskiv1.AboutQuestion{
		Containers: &chaskiv1.Containers{Paths: []string{filepath.Join(root, "coast.tacozip")}}}}}
	total := resources.NewBudget(64 << 20)
	const taken = 56 << 20 // all but an eighth
	if err := total.Acquire(t.Context(), taken); err != nil {
		t.Fatal(err)
	}
	o := Options{Roots: []string{root}, MaxReads: 1, Loader: loader.Options{Budget: total}}
	connected(t, o, func(c chaskiv1.ChaskiClient) {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if got, err := ask(t, c, about); err != nil || !json.Valid(got) {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
		eventually(t, "one place, and not all questions wait for memory", func() bool { return total.Waiting() == 3 })
		total.Release(taken)
		all.Wait()
	})
}
