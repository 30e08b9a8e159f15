package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/store/taco"
)

// runner runs one command line and returns its exit code.
type runner func(ctx context.Context, args []string, s streams) int

func newAsk(s streams, run runner) *cobra.Command {
	return &cobra.Command{
		Use:   "ask",
		Short: "Answer questions about containers one after the other, for programs",
		Long: `Answer questions about containers one after the other, until standard input ends, for programs:
the Python package asks so. Containers stay open in between, and columns of their tables in memory.

A question is a line of JSON, a list of texts: the command line of 'entries', 'sql' or
'extract'. Its answer is
parts of a letter, a length (4 bytes, little-endian) and as many bytes: "o" what the command printed,
"e" what it said on standard error, and at last "x", its exit code as text.`,
		Example: `  chaski ask < questions.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return answerAll(cmd.Context(), s, run)
		},
	}
}

// maxQuestion bounds a question, in bytes: it may hold conditions with many values.
const maxQuestion = 64 << 20

func answerAll(ctx context.Context, s streams, run runner) error {
	held := newSession()
	defer held.close()
	ctx = context.WithValue(ctx, sessionKey{}, held)
	in, lines, end := bufio.NewScanner(s.in), make(chan []byte), make(chan struct{})
	in.Buffer(nil, maxQuestion)
	defer close(end)
	go func() { // it stays behind where standard input does not end: that is the end of the process
		defer close(lines)
		for in.Scan() {
			select {
			case lines <- bytes.Clone(in.Bytes()):
			case <-end:
				return
			}
		}
	}()
	w := bufio.NewWriterSize(s.out, 1<<16)
	for {
		var line []byte
		more := false
		select {
		case line, more = <-lines:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !more {
			return in.Err()
		}
		var args []string
		if err := json.Unmarshal(line, &args); err != nil {
			return usagef("a question is a list of texts: %w", err)
		}
		if err := answer(ctx, s, w, args, run); err != nil {
			return err
		}
	}
}

// answer answers one question.
func answer(ctx context.Context, s streams, w *bufio.Writer, args []string, run runner) error {
	code := 2
	if len(args) > 0 && (args[0] == "entries" || args[0] == "sql" || args[0] == "extract") {
		s.in, s.out, s.err = strings.NewReader(""), &parts{w, 'o'}, &parts{w, 'e'}
		code = run(ctx, args, s)
	} else {
		fmt.Fprintln(&parts{w, 'e'}, "chaski: ask: a question is one of entries, sql or extract")
	}
	_, err := fmt.Fprint(&parts{w, 'x'}, code)
	return errors.Join(err, w.Flush())
}

// parts writes parts of an answer, of one letter.
type parts struct {
	w      *bufio.Writer
	letter byte
}

func (p *parts) Write(b []byte) (int, error) {
	n := 0
	for len(b)-n > maxPart {
		if _, err := p.Write(b[n:][:maxPart]); err != nil {
			return n, err
		}
		n += maxPart
	}
	if len(b) == n {
		return n, nil
	}
	rest, err := p.write(b[n:])
	return n + rest, err
}

// maxPart bounds a part of an answer, in bytes: a length has 32 bits.
const maxPart = 1 << 30

func (p *parts) write(b []byte) (int, error) {
	head := binary.LittleEndian.AppendUint32([]byte{p.letter}, uint32(len(b)))
	if _, err := p.w.Write(head); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}

type sessionKey struct{}

// session holds containers open between questions.
type session struct {
	files *source.Mux
	sets  *refcache.Cache[string, *heldSet]
}

// heldSet is a dataset, and the flags that it was opened by, which have what it warned of.
type heldSet struct {
	*taco.Dataset
	by containerFlags
}

// maxSets and maxSetBytes bound the datasets that a session holds open, and the memory of their tables: the columns of
// some millions of rows.
const (
	maxSets     = 8
	maxSetBytes = 2 << 30
)

func newSession() *session {
	return &session{files: newOpener(true), sets: refcache.New[string](refcache.Options[*heldSet]{
		MaxEntries: maxSets, MaxBytes: maxSetBytes, Close: (*heldSet).Close, SizeOf: (*heldSet).Bytes,
		Stale: func(ctx context.Context, s *heldSet) bool { return s.Changed(ctx) },
	})}
}

func (h *session) close() {
	_ = h.sets.Close() // they were only read
	h.files.Close()
}

// dataset opens containers, or takes them from the session of a command that answers questions. done gives them back;
// it is called with the command's error.
func (f *containerFlags) dataset(ctx context.Context, paths []string) (d *taco.Dataset, done func(error), err error) {
	h, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		files := newOpener(true)
		if d, err = f.open(ctx, files, paths); err != nil {
			files.Close()
			return nil, nil, err
		}
		return d, func(error) {
			_ = d.Close() // it was only read
			files.Close()
		}, nil
	}
	key := fmt.Sprintf("%q", append([]string{f.base, f.mode, fmt.Sprint(f.chosen)}, paths...))
	l, err := h.sets.Acquire(ctx, key, func(ctx context.Context) (*heldSet, error) {
		s := &heldSet{by: containerFlags{base: f.base, mode: f.mode, chosen: f.chosen}}
		var err error
		s.Dataset, err = s.by.open(ctx, h.files, paths)
		return s, err
	})
	if err != nil {
		return nil, nil, err
	}
	return l.Value.Dataset, func(err error) {
		f.warnings = slices.Clone(l.Value.by.warnings) // also those of earlier questions: columns are joined once
		_ = l.Release(refcache.Reusable(err))          // it was only read
	}, nil
}
