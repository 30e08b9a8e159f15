package duckdb

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query"
)

// Memory of the process of a query, if the caller gives none: a quarter of the machine's, within these bounds. Below
// the least, DuckDB and Go do not start on a machine of 64 processors (64 stacks of 2 MiB, and 100 MiB for the rest).
const (
	leastMemory = 512 << 20
	mostMemory  = 4 << 30
)

// childVariable marks the process of a query.
const childVariable = "CHASKI_SQL_PROCESS"

// maxQueries is how many queries of a process run at a time: each may take the whole memory that one may take.
const maxQueries = 2

var places = make(chan struct{}, maxQueries)

// Isolated is Run in a process of its own, which is killed when ctx ends, and which cannot take more memory (in bytes;
// 0: a quarter of the machine's, at most 4 GiB) than it may: DuckDB looks at neither while it computes one value. The
// process is this program again, whose main function must begin with Child. It has no environment, and sees only the
// columns that the query uses. On Windows, where a process cannot be bounded in this way, Isolated is Run.
func Isolated(
	ctx context.Context, sql string, names []string, open query.Tables, memory int64,
) (*tables.Table, error) {
	if !canIsolate {
		return Run(ctx, sql, names, open)
	}
	if err := single(sql); err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = min(max(procs.Memory()/4, leastMemory), mostMemory)
	}
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p, err := start(ctx)
	if err != nil {
		return nil, err
	}
	out, err := p.answer(ctx, job{Query: sql, Names: names, Memory: memory}, open)
	return p.end(ctx, out, err, memory)
}

// process is a process that runs one query.
type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *os.File
	errs   *tail
	to     *gob.Encoder
	from   *gob.Decoder
}

func start(ctx context.Context) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, child, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer child.Close()
	ctx, cancel := context.WithCancel(ctx)
	p := &process{cancel: cancel, out: out, errs: &tail{}}
	p.cmd = exec.CommandContext(ctx, self)
	// The environment may hold keys of stores, and DuckDB has a function that reads it.
	p.cmd.Env = []string{childVariable + "=1", fmt.Sprint("GOMAXPROCS=", min(runtime.GOMAXPROCS(0), 8))}
	p.cmd.Stderr, p.cmd.ExtraFiles = p.errs, []*os.File{child} // what DuckDB prints does not come among the messages
	p.cmd.WaitDelay = time.Second
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, errors.Join(err, out.Close())
	}
	// A read of a pipe of os waits until the other end is closed, which the end of the process does.
	p.to, p.from = gob.NewEncoder(p.in), gob.NewDecoder(bufio.NewReaderSize(out, 1<<20))
	return p, nil
}

// answer sends the process its query and the tables that it asks for, and returns the result.
func (p *process) answer(ctx context.Context, j job, open query.Tables) (*tables.Table, error) {
	if err := p.to.Encode(j); err != nil {
		return nil, err
	}
	opened := map[string]*tables.Table{}
	var names []string
	var cols []*tables.Vector
	for {
		var m fromChild
		if err := p.from.Decode(&m); err != nil {
			return nil, err
		}
		switch {
		case m.Open != nil:
			t, err := open(ctx, *m.Open)
			r := toChild{}
			if err != nil {
				r.Fault = newFailure(err)
			} else {
				opened[*m.Open], r.Rows, r.Columns = t, t.Len(), t.Columns()
			}
			if err := p.to.Encode(r); err != nil {
				return nil, err
			}
		case m.Column != nil:
			r := toChild{}
			var err error
			if r.Values, err = column(ctx, opened[m.Column.Table], m.Column.Index); err != nil {
				r.Fault = newFailure(err)
			}
			if err := p.to.Encode(r); err != nil {
				return nil, err
			}
		case m.Head != nil:
			names = m.Head
		case m.Part != nil:
			v, err := decoded(ctx, m.Part)
			if err != nil || len(cols) > 0 && v.Len() != cols[0].Len() {
				return nil, errors.Join(errWire, err)
			}
			cols = append(cols, v)
		case m.Fault != nil:
			return nil, m.Fault.err()
		case m.Done && len(names) == len(cols):
			return tables.FromVectors(names, cols), nil
		default:
			return nil, errWire
		}
	}
}

// column returns a column of a table, as it is sent.
func column(ctx context.Context, t *tables.Table, i int) ([]byte, error) {
	if t == nil || i < 0 || i >= len(t.Columns()) {
		return nil, errWire
	}
	v, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	return encoded(ctx, v)
}

// end ends the process. If it had ended itself, the error has the reason.
func (p *process) end(ctx context.Context, out *tables.Table, err error, memory int64) (*tables.Table, error) {
	p.cancel() // the result is here, or never comes
	_ = p.in.Close()
	_ = p.cmd.Wait() // it says how the process ended, which the messages did before
	_ = p.out.Close()
	switch said := p.errs.String(); {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !isPipe(err):
		return nil, err
	case outOfMemory(said):
		return nil, fault.New(fault.Limit, "query", fault.NoOffset,
			"it takes more than %d bytes of memory (--sql-memory)", memory)
	default:
		first, _, _ := strings.Cut(said, "\n")
		return nil, fmt.Errorf("the process of the query ended: %s", first)
	}
}

// outOfMemory reports whether a process ended for lack of memory. It looks for the messages of the runtimes of Go and
// C++.
func outOfMemory(said string) bool {
	for _, s := range []string{"out of memory", "bad_alloc", "cannot allocate memory", "Cannot allocate memory",
		"Resource temporarily unavailable", "failed to create new OS thread", "Out of Memory",
		"pthread_create failed"} {
		if strings.Contains(said, s) {
			return true
		}
	}
	return false
}

// tail keeps the beginning of a process's standard error, which names the reason; stacks follow it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// maxSaid is enough for the reason of an end, in bytes.
const maxSaid = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b[:min(len(b), maxSaid-len(t.b))]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// Child runs one query and ends the process, if it was started by Isolated. Otherwise it does nothing. A program that
// calls Isolated calls it first.
func Child() {
	if os.Getenv(childVariable) == "" || !canIsolate {
		return
	}
	os.Exit(child(os.Stdin, os.NewFile(3, "messages")))
}

func child(in io.Reader, out io.Writer) int {
	c := &asker{to: gob.NewEncoder(out), from: gob.NewDecoder(in), replies: make(chan toChild)}
	var j job
	if err := c.from.Decode(&j); err != nil {
		return 2
	}
	if err := bound(j.Memory); err != nil {
		_ = c.to.Encode(fromChild{Fault: newFailure(err)}) // the parent is gone if it fails
		return 1
	}
	go c.listen()
	// Half is for DuckDB, which then says itself what took it; the rest is for columns, results and Go.
	memory = fmt.Sprintf("%dB", j.Memory/2)
	maxResult = j.Memory / 2
	t, err := Run(context.Background(), j.Query, j.Names, c.open)
	if err == nil {
		err = c.result(t)
	}
	if err != nil && c.to.Encode(fromChild{Fault: newFailure(err)}) != nil {
		return 1
	}
	return 0
}

// asker asks the parent for the tables of a query.
type asker struct {
	mu      sync.Mutex // held from a question to its reply
	to      *gob.Encoder
	from    *gob.Decoder
	replies chan toChild
}

// listen passes on replies, and ends the process with its parent.
func (c *asker) listen() {
	for {
		var r toChild
		if err := c.from.Decode(&r); err != nil {
			os.Exit(1)
		}
		c.replies <- r
	}
}

func (c *asker) ask(m fromChild) (toChild, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.to.Encode(m); err != nil {
		return toChild{}, err
	}
	r := <-c.replies
	if r.Fault != nil {
		return r, r.Fault.err()
	}
	return r, nil
}

func (c *asker) open(_ context.Context, name string) (*tables.Table, error) {
	r, err := c.ask(fromChild{Open: &name})
	if err != nil {
		return nil, err
	}
	return tables.New(r.Rows, r.Columns, func(ctx context.Context, i int) (*tables.Vector, error) {
		r, err := c.ask(fromChild{Column: &cell{Table: name, Index: i}})
		if err != nil {
			return nil, err
		}
		return decoded(ctx, r.Values)
	}), nil
}

func (c *asker) result(t *tables.Table) error {
	names := []string{}
	for _, col := range t.Columns() {
		names = append(names, col.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.to.Encode(fromChild{Head: names}); err != nil {
		return err
	}
	for i := range names {
		part, err := column(context.Background(), t, i)
		if err != nil {
			return err
		}
		if err := c.to.Encode(fromChild{Part: part}); err != nil {
			return err
		}
	}
	return c.to.Encode(fromChild{Done: true})
}
