package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chaski-eo/chaski/loader"
)

// StreamOptions of Stream.
type StreamOptions struct {
	// Spec of the run: dataset, fields, batch size, sampler.
	Spec loader.Spec
	// Engine is the chaski command that serves, and Workers its number of workers, 0 for the default.
	Engine  string
	Workers int
	// Python is the interpreter of the consumer, which needs the package chaski. Path, if not empty, is put before
	// its PYTHONPATH.
	Python string
	Path   string
	// Torch turns the batches into torch tensors.
	Torch bool
	// Rounds of at least Time each. Default 5 of 2 s.
	Rounds int
	Time   time.Duration
	// Progress is called after every round.
	Progress func(done, total int)
}

func (o StreamOptions) withDefaults() StreamOptions {
	o.Rounds = cmp.Or(o.Rounds, 5)
	o.Time = cmp.Or(o.Time, 2*time.Second)
	o.Python = cmp.Or(o.Python, "python3")
	return o
}

//go:embed consumer.py
var consumer string

// consumerRound is a line of JSON that the consumer prints for each round. Before the first round it prints its
// versions.
type consumerRound struct {
	Python  string  `json:"python"`
	Package string  `json:"package"`
	Samples int64   `json:"samples"` // rows that are valid
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	Total   int64   `json:"total"` // samples an epoch
	First   float64 `json:"first"` // seconds from the call to the first batch
	// Waits for batches, in seconds.
	P50 float64 `json:"wait_p50"`
	P99 float64 `json:"wait_p99"`
	Max float64 `json:"wait_max"`
}

// StagesVariable is the environment variable with the name of a file. `chaski serve` writes to it, when it ends, where
// the time of its workers went.
const StagesVariable = "CHASKI_STAGES"

// Stream measures batches from a `chaski serve` process to a Python process on this machine. The Python package chaski
// starts and reads the server as in training. The report has samples and bytes of tensors per second, the time to the
// first batch, the waits for the others, and where the time of the engine's workers went.
func Stream(ctx context.Context, o StreamOptions) (*Report, error) {
	o = o.withDefaults()
	if o.Rounds < 1 || o.Time < 0 || o.Engine == "" {
		return nil, fmt.Errorf("bench: rounds is %d, the time %v and the engine %q: rounds must be at least 1, "+
			"and the engine a command", o.Rounds, o.Time, o.Engine)
	}
	o.Spec = o.Spec.WithDefaults()
	if err := o.Spec.Validate(); err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]any{
		"spec": o.Spec, "workers": o.Workers, "rounds": o.Rounds, "seconds": o.Time.Seconds(), "torch": o.Torch,
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.Python, "-c", consumer, string(settings))
	// An interrupt and not a kill, so that the consumer can end its engine.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	folder, err := os.MkdirTemp("", "chaski-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	stages := filepath.Join(folder, "stages.json")
	cmd.Env = append(os.Environ(), "CHASKI_BIN="+o.Engine, StagesVariable+"="+stages)
	if o.Path != "" {
		cmd.Env = append(cmd.Env, "PYTHONPATH="+o.Path+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"))
	}
	report := &Report{Workload: "stream: batches into Python", Machine: ThisMachine()}
	if err := o.consume(ctx, cmd, report); err != nil {
		return nil, err
	}
	return report, report.readStages(stages)
}

// readStages adds the stages that the engine wrote. An engine of another version may have written none.
func (r *Report) readStages(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(data) == 0 { // empty until it has stopped in good order
		return nil
	}
	if err != nil {
		return err
	}
	var e engineStages
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("the engine's stages: %w", err)
	}
	r.Stages, r.Send = e.Stages, &e.Send
	return nil
}

// consume runs the consumer and fills in the report.
func (o *StreamOptions) consume(ctx context.Context, cmd *exec.Cmd, r *Report) error {
	stderr := &tail{most: 4 << 10}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var samples, mb []float64
	var first float64
	var waited waitRounds
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var c consumerRound
		if err = json.Unmarshal(lines.Bytes(), &c); err != nil {
			break
		}
		if c.Python != "" {
			o.describe(r, c)
			first = 1e3 * c.First
			continue
		}
		samples = append(samples, float64(c.Samples)/c.Seconds)
		mb = append(mb, float64(c.Bytes)/1e6/c.Seconds)
		waited.p50, waited.p99, waited.max = append(waited.p50, 1e3*c.P50), append(waited.p99, 1e3*c.P99),
			append(waited.max, 1e3*c.Max)
		if o.Progress != nil {
			o.Progress(len(samples), o.Rounds)
		}
	}
	werr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case werr != nil:
		return fmt.Errorf("the consumer %s ended with %w: %s", o.Python, werr, stderr.last())
	case err != nil || lines.Err() != nil:
		return fmt.Errorf("the consumer's output: %w", errors.Join(err, lines.Err()))
	case len(samples) != o.Rounds:
		return fmt.Errorf("the consumer measured %d of %d rounds: %s", len(samples), o.Rounds, stderr.last())
	}
	r.Figures = []Figure{
		newFigure("samples", "samples/s", samples), newFigure("tensors", "MB/s", mb),
		newFigure("max rss of engine or consumer", "MB", []float64{float64(maxRSS(true)) / 1e6}),
		newFigure("first batch", "ms", []float64{first}),
	}
	r.Figures = append(r.Figures, waited.figures()...)
	return nil
}

func (o *StreamOptions) describe(r *Report, c consumerRound) {
	describeSpec(r, o.Spec, c.Total)
	workers := "default"
	if o.Workers > 0 {
		workers = fmt.Sprint(o.Workers)
	}
	r.set("workers", "%s", workers)
	r.set("consumer", "Python %s, chaski %s, torch %t", c.Python, c.Package, o.Torch)
	r.set("rounds", "%d of %v", o.Rounds, o.Time)
}

// tail keeps the last bytes written to it.
type tail struct {
	b    []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > t.most {
		t.b = append(t.b[:0], t.b[len(t.b)-t.most:]...)
	}
	return len(p), nil
}

// last returns the last line: of a Python traceback, the exception.
func (t *tail) last() string {
	b := bytes.TrimSpace(t.b)
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}
