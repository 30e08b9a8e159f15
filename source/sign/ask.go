package sign

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source/remote"
)

// Variable is the environment variable with the rules: a file, or "fd:" and the number of a socket
// to the process that started this one.
const Variable = "CHASKI_SIGN"

// known has a function for each signer of this process, which opens it once: all openers share one, and a socket is
// opened once. Those who need a signer wait for its file; nobody else does.
var known sync.Map

// FromEnv returns the signer of the environment, or nil if it names none. A file that cannot be
// read is an error of each Sign.
func FromEnv() *Signer {
	text := os.Getenv(Variable)
	if text == "" {
		return nil
	}
	opened, _ := known.LoadOrStore(text, sync.OnceValue(func() *Signer {
		signer, err := open(text)
		if err != nil {
			return &Signer{err: fmt.Errorf("%s: %w", Variable, err)}
		}
		return signer
	}))
	return opened.(func() *Signer)()
}

func open(text string) (*Signer, error) {
	if n, ok := strings.CutPrefix(text, "fd:"); ok {
		return parent(n)
	}
	const most = 1 << 20 // 10,000 rules of 100 bytes
	file, err := os.Open(text)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	var commands map[string][]string
	if len(data) > most || json.Unmarshal(data, &commands) != nil {
		return nil, fmt.Errorf(`%s: it must be JSON of at most 1 MiB, {"https://HOST/PATH/": ["COMMAND", "ARGUMENT"]}`, text)
	}
	var rules []Rule
	for prefix, command := range commands {
		if len(command) == 0 {
			return nil, fmt.Errorf("%s: %q has no command", text, prefix)
		}
		rules = append(rules, Rule{prefix, Command(command)})
	}
	signer, err := New(rules...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return signer, nil
}

// question is the JSON line of a request for a signature.
type question struct {
	ID   int64  `json:"id,omitempty"`
	Rule *int   `json:"rule,omitempty"` // its number, of a process that has several
	URI  string `json:"uri"`
}

// Command returns a signer that runs a command: the command gets {"uri": "..."} on its standard
// input, and prints the answer. Its standard error is not shown, because it may hold secrets.
func Command(command []string) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, uri string) ([]byte, error) {
		input, err := json.Marshal(question{URI: uri})
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		var out limited
		cmd.Stdin, cmd.Stdout = bytes.NewReader(append(input, '\n')), &out
		cmd.WaitDelay = time.Second // children of a command that was killed may hold its output
		err = cmd.Run()
		var exit *exec.ExitError
		switch {
		case err == nil:
			return out.b, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the command %q did not answer within %v", command[0], askLimit)
		case errors.As(err, &exit):
			return nil, fmt.Errorf("the command %q ended with %v", command[0], exit)
		case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission):
			return nil, remote.Fail(remote.Denied, fmt.Errorf("the command %q does not start: %w", command[0], err))
		}
		return nil, fmt.Errorf("the command %q failed", command[0])
	}
}

// limited holds the output of a command, a byte more than an answer may have.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.b = append(l.b, p[:min(len(p), maxAnswer+1-len(l.b))]...)
	return len(p), nil
}

// peer asks a process over a socket, in lines of JSON. It answers one question after the other.
type peer struct {
	asking keylock.Locks[struct{}] // held from a question to its answer; it guards the fields below
	conn   net.Conn
	in     *bufio.Reader
	last   int64 // question
}

// parent returns the signer of the process that started this one. Its first line has the prefixes
// of its rules.
func parent(number string) (*Signer, error) {
	descriptor, err := strconv.ParseUint(number, 10, 16)
	if err != nil || descriptor < 3 {
		return nil, fmt.Errorf("fd:%.20s is not a socket", number)
	}
	closeOnExec(uintptr(descriptor))
	file := os.NewFile(uintptr(descriptor), "signatures")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("fd:%d is not a socket", descriptor)
	}
	// It is closed, since conn has a copy.
	_ = file.Close()
	return newPeer(conn)
}

func newPeer(conn net.Conn) (*Signer, error) {
	made := &peer{conn: conn, in: bufio.NewReaderSize(conn, 2*maxAnswer)}
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	line, err := made.in.ReadSlice('\n')
	if err != nil {
		return nil, errors.New("the process that signs does not say which prefixes it has")
	}
	var prefixes []string
	if err := json.Unmarshal(line, &prefixes); err != nil {
		return nil, errors.New("the process that signs does not say which prefixes it has")
	}
	var rules []Rule
	for i, prefix := range prefixes {
		rules = append(rules, Rule{prefix, func(ctx context.Context, uri string) ([]byte, error) {
			return made.ask(ctx, i, uri)
		}})
	}
	return New(rules...)
}

// reply is an answer of a process, or what went wrong.
type reply struct {
	ID    int64           `json:"id"`
	Error string          `json:"error"`
	Is    json.RawMessage `json:"answer"`
}

func (p *peer) ask(ctx context.Context, rule int, uri string) ([]byte, error) {
	unlock, err := p.asking.Lock(ctx, struct{}{})
	if err != nil {
		return nil, errors.New("those asked before took too long")
	}
	defer unlock()
	end, _ := ctx.Deadline()
	_ = p.conn.SetDeadline(end)
	p.last++
	buf, err := json.Marshal(question{p.last, &rule, uri})
	if err != nil {
		return nil, err
	}
	if _, err := p.conn.Write(append(buf, '\n')); err != nil {
		return nil, errors.New("the process that signs does not listen")
	}
	for {
		line, err := p.in.ReadSlice('\n')
		if err != nil {
			return nil, errors.New("the process that signs does not answer")
		}
		var r reply
		switch {
		case json.Unmarshal(line, &r) != nil:
			return nil, errors.New("the process that signs answers something else")
		case r.ID != p.last: // of a question that took too long
		case r.Error != "":
			return nil, fmt.Errorf("the function that signs raised %.60q", r.Error)
		default:
			return slices.Clone(r.Is), nil
		}
	}
}
