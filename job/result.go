package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/stats"
)

// hashDigits is how many digits of a hash a name has: 128 bits, which no two contents share by chance.
const hashDigits = 32

// result is what a result's file holds.
type result struct {
	Version int     `json:"version"` // Version
	Job     string  `json:"job"`     // its ID
	Shard   int     `json:"shard"`
	Samples int64   `json:"samples"`
	Skipped int64   `json:"skipped"`
	Fields  []field `json:"fields"`
}

// field is survey.PartField.
type field struct {
	Name  string   `json:"name"`
	Bands []string `json:"bands"`
	State []byte   `json:"state"` // stats.Field.AppendState
}

// resultName returns the name of a result in the folder of results.
func resultName(shard int, content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%d.%s.json", shard, hex.EncodeToString(sum[:])[:hashDigits])
}

// shardOf returns which shard a name in the folder of results is of, if it is the name of a result.
func shardOf(name string) (shard int, ok bool) {
	number, rest, _ := strings.Cut(name, ".")
	hash, ok := strings.CutSuffix(rest, ".json")
	shard, err := strconv.Atoi(number)
	ok = ok && err == nil && len(hash) == hashDigits && strconv.Itoa(shard) == number && shard >= 0
	return shard, ok
}

// write writes the result of a shard, and nothing if it is there already.
func (j *Job) write(shard int, p *survey.Part) error {
	r := result{Version: Version, Job: j.ID, Shard: shard, Samples: p.Samples, Skipped: p.Skipped}
	for _, f := range p.Fields {
		r.Fields = append(r.Fields, field{f.Name, f.Bands, f.Stats.AppendState(nil)})
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// Merge would refuse it only after all other shards were done: one with too many bands, for example.
	if _, err := j.parseResult(shard, b); err != nil {
		return err
	}
	name := pathname.Join(j.folder, resultsName, resultName(shard, b))
	if have, err := readFile(name, maxResult); err == nil && bytes.Equal(have, b) {
		return nil
	}
	return writeFile(name, b)
}

// read reads a result of a shard. A file that is not what its name says is a fault of kind corrupt.
func (j *Job) read(shard int, name string) (p *survey.Part, err error) {
	path := pathname.Join(j.folder, resultsName, name)
	b, err := readFile(path, maxResult)
	if err != nil {
		return nil, err
	}
	if resultName(shard, b) != name {
		return nil, fault.WithFile(corrupt("the content is not that which the name says"), path)
	}
	if p, err = j.parseResult(shard, b); err != nil {
		return nil, fault.WithFile(err, path)
	}
	return p, nil
}

func (j *Job) parseResult(shard int, b []byte) (*survey.Part, error) {
	var r result
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, corrupt("%v", err)
	}
	if r.Version != Version {
		return nil, fault.New(fault.Unsupported, "job", fault.NoOffset, "version %d, not %d", r.Version, Version)
	}
	switch s := j.Shards[shard]; {
	case r.Job != j.ID || r.Shard != shard:
		return nil, corrupt("the result is of shard %d of the job %.12s", r.Shard, r.Job)
	case r.Samples < 0 || r.Skipped < 0 || r.Skipped > s.Count || r.Samples != s.Count-r.Skipped:
		return nil, corrupt("%d samples and %d skipped, of %d", r.Samples, r.Skipped, s.Count)
	}
	states := make([][]byte, len(r.Fields))
	for i, f := range r.Fields {
		states[i] = f.State
	}
	parsed, err := stats.ParseStates(states)
	if err != nil {
		return nil, err
	}
	p := &survey.Part{Samples: r.Samples, Skipped: r.Skipped}
	for i, f := range r.Fields {
		p.Fields = append(p.Fields, survey.PartField{Name: f.Name, Bands: f.Bands, Stats: parsed[i]})
	}
	return p, nil
}

// results returns the names of the results of each shard that has any, in the order of the names.
func (j *Job) results() (map[int][]string, error) {
	entries, err := os.ReadDir(pathname.Join(j.folder, resultsName))
	if err != nil {
		return nil, missing(pathname.Join(j.folder, resultsName), err)
	}
	out := map[int][]string{}
	for _, e := range entries {
		if shard, ok := shardOf(e.Name()); ok && shard < len(j.Shards) {
			out[shard] = append(out[shard], e.Name())
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out, nil
}
