package container

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

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// runner runs one command line and returns its exit code. NewAsk gets it as a value, because the root
// command imports this package.
type runner func(ctx context.Context, args []string, env console.Env) int

func NewAsk(env console.Env, run runner) *cobra.Command {
	return &cobra.Command{
		Use:   "ask",
		Short: "Answer questions about containers, for programs",
		Long: `Answer questions about containers, one after the other, until standard input ends. The Python package
uses this command. It keeps containers open between questions, and columns of their tables in memory.

A question is one line of JSON, a list of strings: the command line of 'entries', 'sql', 'extract', 'index' or
'crs'. Its
answer consists of parts; each part is a letter, a length (4 bytes, little-endian) and that many bytes. "o"
is standard output of the command, "e" standard error, and the last part, "x", its exit code as text.`,
		Example: `  chaski ask < questions.jsonl`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return answerAll(cmd.Context(), env, run)
		},
	}
}

// maxQuestion is the longest question, in bytes. A condition may list millions of ids.
const maxQuestion = 64 << 20

func answerAll(ctx context.Context, env console.Env, run runner) error {
	held := newSession()
	defer held.close()
	ctx = context.WithValue(ctx, sessionKey{}, held)
	in, lines, end := bufio.NewScanner(env.In), make(chan []byte), make(chan struct{})
	in.Buffer(nil, maxQuestion)
	defer close(end)
	// Reading happens in a goroutine of its own, so that a signal ends the command while it waits for a
	// question. If standard input stays open, the goroutine ends with the process.
	go func() {
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
			return console.Usagef("a question must be a JSON list of strings: %w", err)
		}
		if err := answer(ctx, env, w, args, run); err != nil {
			return err
		}
	}
}

// questions are the commands that can be asked.
var questions = []string{"entries", "sql", "extract", "index", "crs"}

// answer answers one question.
func answer(ctx context.Context, env console.Env, w *bufio.Writer, args []string, run runner) error {
	code := 2
	if len(args) > 0 && slices.Contains(questions, args[0]) {
		env.In, env.Out, env.Err = strings.NewReader(""), &parts{w, 'o'}, &parts{w, 'e'}
		code = run(ctx, args, env)
	} else {
		fmt.Fprintln(&parts{w, 'e'}, "chaski: ask: a question must begin with one of", strings.Join(questions, ", "))
	}
	_, err := fmt.Fprint(&parts{w, 'x'}, code)
	return errors.Join(err, w.Flush())
}

// parts writes the parts of an answer that have one letter.
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

// maxPart is the longest part of an answer, in bytes. A length has 32 bits, so that longer output needs to
// be split.
const maxPart = 1 << 30

func (p *parts) write(b []byte) (int, error) {
	head := binary.LittleEndian.AppendUint32([]byte{p.letter}, uint32(len(b)))
	if _, err := p.w.Write(head); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}
