package job

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// A result is one line of JSON, the header, and then the body.

// maxResult bounds a result, in bytes: the states of statistics, which are the largest for an item, stay below.
const maxResult = 1 << 40

// header is the first line of a result.
type header struct {
	Version int             `json:"version"` // Version
	Job     string          `json:"job"`     // its ID
	Shard   int             `json:"shard"`
	Tally   json.RawMessage `json:"tally"`
}

// maxHeader bounds the first line: the tally, and 200 bytes.
const maxHeader = MaxTally + 200

// resultName returns the name of a result in the folder of results.
func resultName(shard int, hash string) string { return strconv.Itoa(shard) + "." + hash }

// shardOf returns which shard a name in the folder of results is of, if it is the name of a result.
func shardOf(name string) (shard int, ok bool) {
	number, hash, _ := strings.Cut(name, ".")
	shard, err := strconv.Atoi(number)
	return shard, err == nil && isHash(hash) && strconv.Itoa(shard) == number && shard >= 0
}

// results returns the names of the results of each shard that has any, in the order of the names.
func (j *Job) results(ctx context.Context) (map[int][]string, error) { return j.resultsThat(ctx, "") }

// resultsThat returns the names of results that begin with begin.
func (j *Job) resultsThat(ctx context.Context, begin string) (map[int][]string, error) {
	names, err := j.folder.list(ctx, resultsName, begin)
	if err != nil {
		return nil, err
	}
	out := map[int][]string{}
	for _, name := range names {
		if shard, ok := shardOf(name); ok && shard < len(j.Shards) {
			out[shard] = append(out[shard], name)
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out, nil
}

// save writes the result of a shard: the header, and the body that is in a scratch.
func (j *Job) save(ctx context.Context, shard int, tally any, body *scratch) (skipped int64, err error) {
	t, err := json.Marshal(tally)
	if err != nil {
		return 0, err
	}
	if len(t) > MaxTally {
		return 0, fault.New(fault.Limit, "result", fault.NoOffset, "%d bytes of tally, at most %d: use more shards",
			len(t), MaxTally)
	}
	// Merge would refuse it only after all other shards were done.
	if skipped, err = j.kind.Check(t, j.Shards[shard]); err != nil {
		return 0, err
	}
	head, err := json.Marshal(header{Version, j.ID, shard, t})
	if err != nil {
		return 0, err
	}
	write := func(w io.Writer) error {
		if _, err := w.Write(append(head, '\n')); err != nil {
			return err
		}
		return body.copyTo(w)
	}
	sum := sha256.New()
	if err := write(sum); err != nil {
		return 0, err
	}
	name := resultsName + "/" + resultName(shard, digits(sum))
	// A file of this name may be torn, so its content is checked.
	if have, err := j.hashOf(ctx, name); err == nil && have == digits(sum) {
		return skipped, nil
	}
	return skipped, j.folder.write(ctx, name, write)
}

// hashOf returns the hash of a file.
func (j *Job) hashOf(ctx context.Context, name string) (string, error) {
	content, err := j.folder.open(ctx, name)
	if err != nil {
		return "", err
	}
	defer content.Close()
	return j.hash(ctx, name, content)
}

// hash returns the hash of an open file.
func (j *Job) hash(ctx context.Context, name string, c content) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, &interrupted{ctx, io.NewSectionReader(c, 0, c.Size())}); err != nil {
		return "", fault.WithFile(err, j.folder.name(name))
	}
	return digits(sum), nil
}

// interrupted is a reader that ends with a context.
type interrupted struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *interrupted) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// openResult is a result that is open, with the file to close.
type openResult struct {
	Part
	file content
}

// openPart opens a result and parses its header. It does not read the body.
func (j *Job) openPart(ctx context.Context, shard int, name string) (*openResult, error) {
	path := resultsName + "/" + name
	content, err := j.folder.open(ctx, path)
	if err != nil {
		return nil, err
	}
	p, err := j.parsePart(shard, content)
	if err != nil {
		return nil, errors.Join(fault.WithFile(err, j.folder.name(path)), content.Close())
	}
	return &openResult{*p, content}, nil
}

// parsePart parses the header of an open result.
func (j *Job) parsePart(shard int, c content) (*Part, error) {
	lines := bufio.NewReaderSize(io.NewSectionReader(c, 0, min(c.Size(), maxHeader)), 1<<16)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return nil, corrupt("the first line ends at %d of %d bytes", len(line), c.Size())
	}
	tally, err := j.parseHeader(shard, line)
	if err != nil {
		return nil, err
	}
	body := io.NewSectionReader(c, int64(len(line)), c.Size()-int64(len(line)))
	return &Part{shard, j.Shards[shard], tally, body}, nil
}

// parseHeader returns the tally in the first line of a result.
func (j *Job) parseHeader(shard int, line []byte) (json.RawMessage, error) {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, corrupt("%v", err)
	}
	if h.Version != Version {
		return nil, fault.New(fault.Unsupported, "job", fault.NoOffset, "version %d, not %d", h.Version, Version)
	}
	if h.Job != j.ID || h.Shard != shard {
		return nil, corrupt("the result is of shard %d of the job %.12s", h.Shard, h.Job)
	}
	_, err := j.kind.Check(h.Tally, j.Shards[shard])
	return h.Tally, err
}

// check returns a fault of kind corrupt if the content of a result does not have the hash in its name.
func (j *Job) check(ctx context.Context, shard int, name string) (err error) {
	path := resultsName + "/" + name
	content, err := j.folder.open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	hash, err := j.hash(ctx, path, content)
	if err != nil {
		return err
	}
	if resultName(shard, hash) != name {
		return fault.WithFile(corrupt("the content is not that which the name says"), j.folder.name(path))
	}
	if _, err := j.parsePart(shard, content); err != nil {
		return fault.WithFile(err, j.folder.name(path))
	}
	return nil
}

// errMissing says that a shard has no result that can be read.
var errMissing = fault.New(fault.NotFound, "job", fault.NoOffset, "no result")

// find returns the name of the result of a shard, one of names. Torn files, whose content does not have the hash in
// the name, count as absent. Two results that differ are a fault of kind corrupt: the same work on the same files
// gives the same bytes, so that one of them is wrong.
func (j *Job) find(ctx context.Context, shard int, names []string) (string, error) {
	found := ""
	var torn error
	for _, name := range names {
		err := j.check(ctx, shard, name)
		switch {
		case errors.Is(err, fault.Corrupt), errors.Is(err, fault.NotFound): // a link that leads nowhere is not found
			torn = err
		case err != nil:
			return "", err
		case found != "":
			return "", fault.WithFile(corrupt("shard %d has results that differ", shard),
				j.folder.name(resultsName+"/"+name))
		default:
			found = name
		}
	}
	if found == "" {
		return "", errors.Join(errMissing, torn)
	}
	return found, nil
}
