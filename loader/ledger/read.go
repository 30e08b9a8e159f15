package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/chaski-eo/chaski/fault"
)

const (
	// suffix ends the names of the files of a ledger.
	suffix = ".ledger"
	// version is the member "ledger" of a head.
	version = 1
	// checksumBytes is what stands before the JSON of a line: eight digits and a space.
	checksumBytes = 8 + 1
	// maxLine bounds a line. A batch has at most 65,536 rows, and a bad one takes about 40 bytes: 2.6 MB.
	maxLine = 4 << 20
	// maxSamples bounds the samples of an epoch, so positions can be computed with: Python and JSON keep whole
	// numbers up to here exactly.
	maxSamples = 1 << 53
	// maxText bounds a string of a head, in bytes.
	maxText = 4 << 10
	// maxRows bounds the bad rows of a record: a batch has no more.
	maxRows = 1 << 16
	// freeParts and partsOfRecords bound what is kept of the records of all files, so a check takes less memory
	// than the files do on disk: a ledger whose epochs have 8 steps or more keeps less than the second, and one of a
	// few steps an epoch less than the first, 100 MB.
	freeParts      = 1 << 19
	partsOfRecords = 8
	// lifeParts is the memory of a life, in stretches.
	lifeParts = 8
	// maxWrong bounds the records of all files that contradict the order, and maxListed the bad rows that are kept one
	// by one: others are counted by step.
	maxWrong  = 1 << 16
	maxListed = 16 * MaxExceptions
)

// tally counts what is kept of all files of a check.
type tally struct{ records, parts, wrong, listed int64 }

// add counts what a record added.
func (c *tally) add(parts int64) error {
	c.records++
	c.parts += parts
	if c.parts > freeParts+c.records/partsOfRecords {
		return fault.New(fault.Limit, "record",
			"the records of all files begin anew or jump too often: %d times in %d", c.parts, c.records)
	}
	if c.wrong > maxWrong {
		return fault.New(fault.Limit, "record", "more than %d contradict the order", maxWrong)
	}
	return nil
}

// head is the first line of a file: which run, and which rank of it.
type head struct {
	Version   int    `json:"ledger"`
	Run       string `json:"run"`  // the spec hash
	Data      string `json:"data"` // the fingerprint
	Samples   int64  `json:"samples"`
	BatchSize int64  `json:"batch_size"`
	Steps     int64  `json:"steps"`
	Rank      int64  `json:"rank"`
	World     int64  `json:"world_size"`
	// Launch is what the launcher says of this start, the same on all ranks, or "".
	Launch string `json:"launch"`
	// Take and Mixture say that the positions of an epoch are not the samples of a dataset, each once.
	Take    bool    `json:"take"`
	Mixture bool    `json:"mixture"`
	place           // where the process began
	Time    float64 `json:"time"`
}

// place is a step of a run.
type place struct {
	Epoch uint64 `json:"epoch"`
	Step  int64  `json:"step"`
}

// compare orders places as a run comes to them.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Step, q.Step))
}

// record is each further line of a file: a batch that the trainer was given.
type record struct {
	place
	// First is the position of the batch's first row, or -1 if that is padding.
	First   int64   `json:"first"`
	Samples int64   `json:"samples"` // rows that are valid
	Time    float64 `json:"time"`
	// Restored says that the trainer loaded a state before this batch, so the history goes on from here.
	Restored bool     `json:"restored"`
	Bad      []badRow `json:"bad"`
	// Weights names the file of the weights that drew the samples, by its hash; "" if they came in the order.
	Weights string `json:"weights"`
}

// badRow is a row of a sample that could not be read.
type badRow struct {
	Position int64  `json:"position"`
	Became   string `json:"became"` // skipped, replaced or filled
}

// check checks what is computed with later. The file is not trusted.
func (h *head) check() error {
	whole := int64(0)
	if h.BatchSize > 0 {
		whole = h.Samples / h.BatchSize
	}
	switch {
	case h.Version != version:
		return fault.New(fault.Unsupported, "head", "version %d", h.Version)
	case h.Samples < 1 || h.Samples > maxSamples || h.BatchSize < 1 || h.BatchSize > maxSamples:
		return fault.New(fault.Corrupt, "head", "%d samples in batches of %d", h.Samples, h.BatchSize)
	case h.Steps < 1 || h.Steps != whole && h.Steps != (h.Samples+h.BatchSize-1)/h.BatchSize:
		return fault.New(fault.Corrupt, "head", "%d steps of %d for %d samples", h.Steps, h.BatchSize, h.Samples)
	case h.World < 1 || h.World > maxSamples || h.Rank < 0 || h.Rank >= h.World:
		return fault.New(fault.Corrupt, "head", "rank %d of %d", h.Rank, h.World)
	case h.Step < 0 || h.Step >= h.Steps:
		return fault.New(fault.Corrupt, "head", "step %d of %d", h.Step, h.Steps)
	case max(len(h.Run), len(h.Data), len(h.Launch)) > maxText:
		return fault.New(fault.Limit, "head", "a string of more than %d bytes", maxText)
	}
	return checkTime("head", h.Time)
}

// rows returns how many positions this rank gets in steps [from, to) of an epoch.
func (h *head) rows(from, to int64) int64 { return rowsOf(h, h.Rank, from, to) }

// rowsOf returns how many positions a rank of h's world gets in steps [from, to) of an epoch of h's run.
func rowsOf(h *head, rank, from, to int64) int64 {
	share := func(positions int64) int64 { return (max(positions-rank, 0) + h.World - 1) / h.World }
	if from >= to {
		return 0
	}
	if to < h.Steps || h.Steps*h.BatchSize <= h.Samples {
		return (to - from) * share(h.BatchSize)
	}
	return (to-1-from)*share(h.BatchSize) + share(h.Samples-(to-1)*h.BatchSize)
}

// life is what one process was given between its start, or a state that it loaded, and its end or the next state.
type life struct {
	*head
	file         string
	begin        place
	opened, last float64 // when it was given the first batch and the last one, as Unix seconds
	stretches    []stretch
	bad, wrong   []stepMark
}

// stretch is the steps [from, to) of an epoch.
type stretch struct {
	epoch    uint64
	from, to int64
	byWeight bool // weights drew the samples
}

// stepMark is something that a record says of a step: what became of a bad sample, or of several, or that the record is
// wrong.
type stepMark struct {
	place
	position, samples int64
	what              string
	several           bool // without their positions
}

// wrong marks a record that contradicts the order.
const wrong = "wrong"

// add adds a batch to a life.
func (l *life) add(r *record, all *tally) error {
	l.last = max(l.last, r.Time)
	parts := int64(0)
	made := stretch{r.Epoch, r.Step, r.Step + 1, r.Weights != ""}
	if n := len(l.stretches); n > 0 && l.stretches[n-1] == (stretch{made.epoch, l.stretches[n-1].from, made.from,
		made.byWeight}) {
		l.stretches[n-1].to++
	} else {
		l.stretches = append(l.stretches, made)
		parts++
	}
	expected, first := l.rows(r.Step, r.Step+1), r.Step*l.BatchSize+l.Rank
	if expected == 0 {
		first = -1
	}
	begin := len(l.bad)
	for _, bad := range r.Bad {
		i := slices.Index(fates, bad.Became)
		if i < 0 {
			return fault.New(fault.Corrupt, "record", "a bad row became %.20q", bad.Became)
		}
		if bad.Became == "skipped" {
			expected--
		}
		mark := stepMark{r.place, bad.Position, 1, fates[i], all.listed >= maxListed}
		same := func(m stepMark) bool { return m.several && m.what == mark.what }
		if index := slices.IndexFunc(l.bad[begin:], same); mark.several && index >= 0 {
			l.bad[begin+index].samples++
			continue
		}
		all.listed++
		l.bad = append(l.bad, mark)
	}
	if r.First != first || r.Samples != expected {
		all.wrong++
		l.wrong = append(l.wrong, stepMark{r.place, r.First, r.Samples, wrong, false})
	}
	return all.add(parts)
}

// fates are what becomes of bad rows.
var fates = []string{"skipped", "replaced", "filled"}

// ledgerFile is what a file of a ledger holds.
type ledgerFile struct {
	lives []*life
	cut   bool  // the last record is not whole, as a process that is killed leaves it
	err   error // damage before the last record, behind which nothing is read
}

// read reads a file of a ledger. What is no regular file, such as a pipe, is damaged.
func read(path string, all *tally) (ledgerFile, error) {
	opened, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // does not wait for who writes to a pipe
	if err != nil {
		return ledgerFile{}, err
	}
	defer opened.Close()
	if info, err := opened.Stat(); err != nil {
		return ledgerFile{}, err
	} else if !info.Mode().IsRegular() {
		err := fault.New(fault.Unsupported, "file", "it is no regular file")
		return ledgerFile{err: fault.WithFile(err, path)}, nil
	}
	return parse(opened, path, all)
}

// parse reads a file of a ledger. Each line has the checksum of all lines up to it, so one that is gone is missed.
func parse(r io.Reader, path string, all *tally) (ledgerFile, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	lines.Split(withEnds)
	out, sum, offset := ledgerFile{}, uint32(0), int64(0)
	for out.err == nil && lines.Scan() {
		line := lines.Bytes()
		begin := offset
		offset += int64(len(line))
		var damage error
		if sum, damage = checksum(line, sum); damage == nil {
			damage = out.add(line[checksumBytes:], path, all)
		} else if !lines.Scan() { // it is the last line
			out.cut = true
			break
		}
		out.err = fault.WithFile(fault.AtOffset(damage, begin), path)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		out.err = fault.WithFile(fault.At(fault.Limit, "line", offset, "over %d bytes", maxLine), path)
		return out, nil
	}
	return out, lines.Err()
}

// withEnds is bufio.ScanLines with the line feeds, so a line without one is seen.
func withEnds(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// checksum checks the checksum of a line, and returns it. sum is the checksum of the line before.
func checksum(line []byte, sum uint32) (uint32, error) {
	if len(line) <= checksumBytes || line[len(line)-1] != '\n' {
		return sum, fault.New(fault.Corrupt, "line", "not whole")
	}
	sum = crc32.Update(sum, crc32.IEEETable, line[checksumBytes:len(line)-1])
	if string(line[:checksumBytes]) != fmt.Sprintf("%08x ", sum) {
		return sum, fault.New(fault.Corrupt, "line", "wrong checksum")
	}
	return sum, nil
}

// add takes a line of a file, without its checksum.
func (f *ledgerFile) add(text []byte, path string, all *tally) error {
	if len(f.lives) == 0 {
		parsed := new(head)
		if err := json.Unmarshal(text, parsed); err != nil {
			return fault.Wrap(fault.Corrupt, "head", err)
		}
		if err := parsed.check(); err != nil {
			return err
		}
		f.lives = []*life{{head: parsed, file: path, begin: parsed.place, opened: parsed.Time, last: parsed.Time}}
		return all.add(lifeParts)
	}
	if bytes.Count(text, []byte("{")) > maxRows+1 {
		return fault.New(fault.Limit, "record", "more than %d bad rows", maxRows)
	}
	var r record
	now := f.lives[len(f.lives)-1]
	if err := json.Unmarshal(text, &r); err != nil {
		return fault.Wrap(fault.Corrupt, "record", err)
	}
	if r.Step < 0 || r.Step >= now.Steps {
		return fault.New(fault.Corrupt, "record", "step %d of %d", r.Step, now.Steps)
	}
	if err := checkTime("record", r.Time); err != nil {
		return err
	}
	if r.Restored {
		now = &life{head: now.head, file: path, begin: r.place, opened: r.Time, last: r.Time}
		f.lives = append(f.lives, now)
		all.parts += lifeParts
	}
	return now.add(&r, all)
}

// lastTime is the last second of the year 9999, the last time that JSON has.
const lastTime = 253402300799

// checkTime checks the time of a part of a file, in Unix seconds.
func checkTime(part string, seconds float64) error {
	if seconds < 0 || seconds > lastTime {
		return fault.New(fault.Corrupt, part, "time %g is not between 0 and %d", seconds, lastTime)
	}
	return nil
}

// timeOf returns Unix seconds as a time.
func timeOf(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)).UTC() }
