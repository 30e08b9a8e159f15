// Package peers compares loaders of satellite-image chips: this project and its alternatives. It writes
// the same samples in every loader's own format, checks that each loader yields them, and runs the
// loaders in turns, each in a process of its own, with the same consumer.
//
// It measures how fast samples arrive as torch tensors in the training process: float32, (x - mean) / std
// of their band, "n b y x". The consumer reads one value of each sample. Every loader has the same number
// of workers, and none may keep more than 32 MB of decoded tiles. All files are in the page cache, because
// the check has read them.
//
// CPU time and memory come from /proc, so only Linux has them.
package peers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed peers.py
var script []byte

// job is the argument of the script.
type job struct {
	Verb      string   `json:"verb"`
	Folder    string   `json:"folder,omitempty"`
	Shape     *Shape   `json:"shape,omitempty"`
	Imagery   []string `json:"imagery,omitempty"`
	Format    string   `json:"format,omitempty"`
	Loader    string   `json:"loader,omitempty"`
	Transport string   `json:"transport,omitempty"`
	Batch     int      `json:"batch,omitempty"`
	Workers   int      `json:"workers"`
	Seconds   float64  `json:"seconds"`
	Packages  []string `json:"packages,omitempty"`
}

// refusal is the script's answer instead of figures; at most one member is set.
type refusal struct {
	Missing string `json:"missing"` // a package that is not installed
	Failed  string `json:"failed"`
	Wrong   string `json:"wrong"` // the samples are not those that were written
}

// err returns the refusal as an error, or nil.
func (r refusal) err() error {
	switch {
	case r.Missing != "":
		return &absence{Missing, r.Missing}
	case r.Failed != "":
		return &absence{Failed, r.Failed}
	case r.Wrong != "":
		return &absence{Wrong, r.Wrong}
	}
	return nil
}

// absence says why a row has no figures.
type absence struct {
	status Status
	why    string
}

func (a *absence) Error() string { return string(a.status) + ": " + a.why }

// ask runs the script on a job and decodes its answer. An *absence is the script's refusal, or how it ended.
func (o *Options) ask(ctx context.Context, in Interpreter, engine string, j job,
	timeout time.Duration, answer any) error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	out, err := o.command(ctx, in, engine, timeout, in.Path, "-W", "ignore", o.script(), string(text))
	if err != nil {
		return err
	}
	line := out[bytes.LastIndexByte(out, '\n')+1:]
	var r refusal
	if err := errors.Join(json.Unmarshal(line, &r), json.Unmarshal(line, answer)); err != nil {
		return &absence{Failed, fmt.Sprintf("the answer %.80q cannot be decoded: %v", line, err)}
	}
	return r.err()
}

func (o *Options) script() string { return filepath.Join(o.Work, "peers.py") }

// command runs a command line with the environment of the peers and returns its output, trimmed.
func (o *Options) command(ctx context.Context, in Interpreter, engine string, timeout time.Duration,
	args ...string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "CHASKI_BIN="+engine, "PYTHONDONTWRITEBYTECODE=1")
	if o.PythonPath != "" {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+o.PythonPath+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ownGroup(cmd)
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	endGroup(cmd) // the workers of a process that was killed outlive it
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, &absence{Failed, fmt.Sprintf("not done after %v", timeout)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, &absence{Failed, strings.TrimSpace(err.Error() + ": " + lastLine(errs.Bytes()))}
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// lastLine returns the last line: of a Python traceback, the exception.
func lastLine(b []byte) string {
	b = bytes.TrimSpace(b)
	line := string(b[bytes.LastIndexByte(b, '\n')+1:])
	if len(line) > 300 {
		line = line[:300]
	}
	return strings.ToValidUTF8(line, "?")
}
