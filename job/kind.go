package job

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/loader/resources"
)

// Kind is a kind of work with its options, which job.json keeps as JSON. A new kind is a type that implements it and
// an entry in Kinds.
type Kind interface {
	// Name names the kind in job.json and on the command line.
	Name() string
	// Items lists what there is to do. It may complete the kind with what all shards have to know.
	Items(ctx context.Context, o resources.Options) (Items, error)
	// Run does the items of a shard. The bytes written to body and the returned tally are the shard's result. They
	// must be the same whenever and wherever the shard is done. The tally is JSON of at most MaxTally bytes.
	Run(ctx context.Context, t *Task, body io.Writer) (tally any, err error)
	// Check refuses a tally that the shard cannot have: its file may be from anyone. It returns how many of the items
	// were left out.
	Check(tally json.RawMessage, s Shard) (skipped int64, err error)
	// Merge joins the results of all shards into one output.
	Merge(ctx context.Context, m *Merging, out io.Writer) (Outcome, error)
}

// Placing is a Kind whose output is a file that is not written from its beginning to its end, or a folder.
type Placing interface {
	Kind
	// Place is Merge into m.Name, which appears when it is complete.
	Place(ctx context.Context, m *Merging) (Outcome, error)
}

// Kinds make an empty kind of each name.
type Kinds map[string]func() Kind

// Items are the units of work of a job, in an order of the kind's choice.
type Items struct {
	Count int64
	// Bytes is the sum of the items' bytes.
	Bytes int64
	// Lists says that the items have bodies, which Plan writes into the job's folder.
	Lists bool
	// Each calls add for every item, in order. Nil: the items are alike, and their numbers say all.
	Each func(ctx context.Context, add func(Item) error) error
	// Close, if not nil, ends the use of Each.
	Close func() error
}

// Item is one of the things to do that shards have.
type Item struct {
	Body  json.RawMessage // data of the item; nil if the kind needs only its number
	Bytes int64           // about how many bytes the shard reads for it, or 0
}

// Task is the work of one shard.
type Task struct {
	Shard
	Number  int
	Bodies  []json.RawMessage // of its items, if they have any
	Options resources.Options
	// Progress is never nil. It is called after every item, by one goroutine at a time.
	Progress func(done, total int64)
}

// Merging is what Merge joins.
type Merging struct {
	MergeOptions
	Job *Job
	// Parts are the results of the shards, in their order. They may be passed over more than once. A part is valid
	// until the next one.
	Parts iter.Seq2[*Part, error]
}

// Part is the result of one shard.
type Part struct {
	Number int
	Shard  Shard
	Tally  json.RawMessage
	Body   *io.SectionReader
}

// Outcome is what there is to say about an output that was written.
type Outcome struct {
	Notes []string // for people, one line each
	Fault error    // the output is whole, and says that the work found this
	// Statistics, if not nil, describe the output, in the JSON of 'chaski stats'.
	Statistics any
}
