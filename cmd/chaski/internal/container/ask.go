package container

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// runner runs one command line and returns its exit code.
type runner func(ctx context.Context, args []string, env console.Env) int

func NewAsk(env console.Env, run runner) *cobra.Command {
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
			return answerAll(cmd.Context(), env, run)
		},
	}
}

// maxQuestion bounds a question, in bytes: it may hold conditions with many values.
const maxQuestion = 64 << 20

func answerAll(ctx context.Context, env console.Env, run runner) error {
	held := newSession()
	defer held.close()
	ctx = context.WithValue(ctx, sessionKey{}, held)
	in, lines, end := bufio.NewScanner(env.In), make(chan []byte), make(chan struct{})
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
	w := bufio.NewWriterSize(env.Out, 1<<16)
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
			return console.Usagef("a question is a list of texts: %w", err)
		}
		if err := answer(ctx, env, w, args, run); err != nil {
			return err
		}
	}
}

// answer answers one question.
func answer(ctx context.Context, env console.Env, w *bufio.Writer, args []string, run runner) error {
	code := 2
	if len(args) > 0 && (args[0] == "entries" || args[0] == "sql" || args[0] == "extract") {
		env.In, env.Out, env.Err = strings.NewReader(""), &parts{w, 'o'}, &parts{w, 'e'}
		code = run(ctx, args, env)
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
