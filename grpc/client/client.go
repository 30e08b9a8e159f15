// Package client is a Go client of the service chaski.v1.Chaski: batches of a spec from a server,
// iterated over as package loader does in one process.
//
//	c, err := client.Dial("unix:/run/chaski.sock", client.Options{})
//	run, err := c.Open(ctx, loader.Spec{Source: "/data/chips", BatchSize: 64, Shuffle: true})
//	l, err := run.Loader(batch.LoaderOptions{Rank: 0, World: 1, Epochs: 10})
//	for {
//		b, err := l.Next(ctx) // io.EOF after the last epoch
//		...
//		b.Release()
//	}
//
// The client reconnects after a broken connection and repeats its unanswered tickets. A server keeps no state between
// tickets, so the new connection may reach another server. With several servers, tickets are spread over them. If one
// dies, drains or is silent, its tickets go to another, and the order of the batches stays.
package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Defaults of Options.
const (
	DefaultMaxBatchBytes = 1 << 30
	DefaultTimeout       = 2 * time.Minute
	DefaultPatience      = 5 * time.Minute
	DefaultBackoff       = 100 * time.Millisecond
)

// Options say how a client talks to its server.
type Options struct {
	// Credentials of the connection. Default: none, plain text.
	Credentials credentials.TransportCredentials
	// Token goes with every call. Default: none.
	Token *Bearer
	// PlainToken sends the token in plain text to other hosts, too, where others can read it. Default: Dial refuses
	// that.
	PlainToken bool
	// Transport is how batches come. Default Auto.
	Transport Transport
	// MaxBatchBytes bounds the payload of one batch, in bytes. Default DefaultMaxBatchBytes.
	MaxBatchBytes int64
	// Timeout bounds every wait for a server: for a batch, from its request or the last sign of life on, and for a
	// Describe. After that time the request is tried again, with several servers on another one, for as long as
	// Patience lasts. A deadline in the context of Open, Next, Info or Read covers all tries together. Default
	// DefaultTimeout.
	Timeout time.Duration
	// Patience is for how long all servers may refuse, be silent, or not be there, before a run ends. It counts from
	// the first failure after the last answer on, while batches are waited for: a process that was stopped has all of
	// it left. Errors that waiting cannot mend, such as a token that all servers refuse, end a run once every server
	// has answered. Open asks each server once. Negative: none. Default DefaultPatience.
	Patience time.Duration
	// Backoff is how long a server rests that failed; it doubles up to a hundredfold while the server gives nothing.
	// Default DefaultBackoff.
	Backoff time.Duration
	// Rows is the number of rows of the tickets to come. A server whose memory has no room for a batch of them refuses
	// the spec. Default 0: not known.
	Rows int
	// Memory, if it is not nil, is where batches are put together. Default: memory of the client, which keeps as much
	// as its loaders use at a time.
	Memory payload.Memory
	// Dial are further options of the connection.
	Dial []grpc.DialOption
	// Logger receives log messages. Default: slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Credentials = cmp.Or(o.Credentials, insecure.NewCredentials())
	o.MaxBatchBytes = cmp.Or(o.MaxBatchBytes, DefaultMaxBatchBytes)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.Backoff = cmp.Or(o.Backoff, DefaultBackoff)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

func (o Options) validate() error {
	if t := o.Transport; t != Auto && t != Shm && t != GRPC {
		return fmt.Errorf("client: transport %q", t)
	}
	if o.MaxBatchBytes < 1 || o.Rows < 0 || min(o.Timeout, o.Backoff) < 0 {
		return fmt.Errorf("client: batches of at most %d bytes, timeout %v, backoff %v", o.MaxBatchBytes, o.Timeout,
			o.Backoff)
	}
	return nil
}

// Client is a connection to a server, or to several that see the same data. It is safe for concurrent
// use.
type Client struct {
	options Options
	targets []string // as Dial was given them

	mu     sync.Mutex
	peers  []*peer       // the servers that there are, in the order of the targets and of the addresses of each
	users  map[*peer]int // of each open connection how many lanes use it; also of servers that are gone
	closed bool
}

// Dial makes a client of the servers at target: "unix:PATH", "HOST:PORT", "dns:HOST:PORT" for every address that the
// name has while a run goes on, or what else gRPC can resolve; several with commas between. It does not wait for the
// connections.
func Dial(target string, o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	client := &Client{options: o, targets: strings.Split(target, ","), users: map[*peer]int{}}
	if err := client.lookUp(context.Background()); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// Close closes the connections. Loaders that still use them fail; batches stay valid until Release.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var err error
	for p := range c.users {
		err = errors.Join(err, p.close())
	}
	return err
}

// servers returns the servers that there are.
func (c *Client) servers() []*peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peers
}

// anyPeer returns the answer of the first server that gives one, or its error if that is about a file or the request.
func anyPeer[T any](c *Client, ask func(*peer) (T, error)) (out T, err error) {
	var errs []error
	for _, p := range c.servers() {
		if out, err = ask(p); err == nil || fault.KindOf(err) != 0 || status.Code(err) == codes.InvalidArgument {
			return out, err
		}
		errs = append(errs, err)
	}
	return out, allSaid(errs)
}

// Info describes a file as JSON (the type survey.FileInfo).
func (c *Client) Info(ctx context.Context, path string) ([]byte, error) {
	return anyPeer(c, func(p *peer) ([]byte, error) { return p.info(ctx, path) })
}

// Report returns what each server that answers now has counted about its ranks as JSON (report.ParseAll), by its
// address, and an error that names those that do not answer.
func (c *Client) Report(ctx context.Context) (map[string][]byte, error) {
	var failed []error
	if c.named() {
		if err := c.lookUp(ctx); err != nil {
			failed = append(failed, err)
		}
	}
	peers := c.servers()
	answers, errs := make([][]byte, len(peers)), make([]error, len(peers))
	var group sync.WaitGroup
	for i, p := range peers {
		group.Go(func() { answers[i], errs[i] = p.report(ctx) })
	}
	group.Wait()
	reports := map[string][]byte{}
	for i, p := range peers {
		if errs[i] != nil {
			failed = append(failed, errs[i])
			continue
		}
		reports[p.target] = answers[i]
	}
	if len(failed) == 0 {
		return reports, nil
	}
	return reports, allSaid(failed)
}

// Read decodes windows of one or several files at the server. Errors about files have a *fault.Error
// in their chain.
func (c *Client) Read(ctx context.Context, r *chaskiv1.ReadRequest) (*batch.Tensor, error) {
	return anyPeer(c, func(p *peer) (*batch.Tensor, error) { return p.read(ctx, r) })
}

// Run is a spec that the servers have opened. It is safe for concurrent use.
type Run struct {
	client      *Client
	request     []byte // the spec as the caller gave it
	spec        []byte // with its defaults
	shape       shape
	hash        string
	parts       steps.Parts // of a state; empty from older servers
	fingerprint string
	samples     int64
	fields      []batch.FieldInfo
	sources     []batch.SourceInfo
	batches     int64
	prefetch    int
	groups      *steps.Groups // of tickets; nil where they share nothing
	places      map[*peer]place
	marks       string    // of the contents, as the first server that was heard says
	otherTimes  sync.Once // is done when a server has said other times
}

// shape has the members of a spec that a client needs: which batches there are.
type shape struct {
	steps.Cut
	Seed     uint64          `json:"seed"`
	BadLimit *batch.BadLimit `json:"bad_limit"`
}

// maxBatchSize bounds shape.BatchSize, as servers do.
const maxBatchSize = 1 << 20

// shapeOf reads the spec in the description of a server.
func shapeOf(spec []byte) (s shape, err error) {
	if err = json.Unmarshal(spec, &s); err == nil && (s.BatchSize < 1 || s.BatchSize > maxBatchSize ||
		!slices.Contains([]string{"", steps.LastShort, steps.LastDrop, steps.LastPad}, s.Last)) {
		err = fmt.Errorf("spec: batches of %d, last %q", s.BatchSize, s.Last)
	}
	return s, err
}

// place is a run at one server. Without a handle, the server has yet to describe the spec.
type place struct {
	handle string // what tickets carry
	shared *chaskiv1.Shared
	pipe   []byte // what is shown to open one
}

// Open opens a spec at all servers; one that does may stand for all. spec is a loader.Spec, or what else has its JSON,
// such as a json.RawMessage. Errors about files have a *fault.Error in their chain.
func (c *Client) Open(ctx context.Context, spec any) (*Run, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	run := &Run{client: c, request: data, places: map[*peer]place{}}
	peers := c.servers()
	replies, err := c.describe(ctx, peers, data)
	if err != nil {
		return nil, err
	}
	first := slices.IndexFunc(replies, func(described *chaskiv1.DescribeReply) bool { return described != nil })
	if err := run.fill(replies[first]); err != nil {
		return nil, peers[first].failed(fmt.Errorf("%w: %w", ErrProtocol, err))
	}
	// The caller's limit counts, because it is not part of the hash: the server may know the spec with another one.
	callerShape := shape{}
	if err := json.Unmarshal(data, &callerShape); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	run.shape.BadLimit = callerShape.BadLimit
	for i, described := range replies {
		if described == nil {
			continue
		}
		if described.GetSpecHash() != run.hash {
			return nil, peers[i].failed(fmt.Errorf("%w than %s: fingerprints %s and %s, spec hashes %s and %s",
				ErrChanged, peers[first].target, described.GetFingerprint(), run.fingerprint,
				described.GetSpecHash(), run.hash))
		}
		if err := run.compare(peers[i], described); err != nil {
			return nil, peers[i].failed(err)
		}
		run.places[peers[i]] = place{described.GetHandle(), described.GetShared(), described.GetPipe()}
	}
	return run, nil
}

// Of several servers, those that do not describe a spec within graceLeast, and graceFactor times as long as
// the fastest needed, are left to the loader, which asks them again.
const (
	graceLeast  = time.Second
	graceFactor = 3
)

// describe asks all servers at the same time, so a stuck one does no harm if another answers.
func (c *Client) describe(ctx context.Context, peers []*peer, spec []byte) ([]*chaskiv1.DescribeReply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies, errs := make([]*chaskiv1.DescribeReply, len(peers)), make([]error, len(peers))
	var group sync.WaitGroup
	begun := time.Now()
	var first sync.Once
	for i, p := range peers {
		group.Go(func() {
			if replies[i], errs[i] = p.describe(ctx, spec); errs[i] != nil {
				errs[i] = p.failed(errs[i])
				return
			}
			first.Do(func() {
				late := time.AfterFunc(graceLeast+graceFactor*time.Since(begun), cancel)
				context.AfterFunc(ctx, func() { late.Stop() })
			})
		})
	}
	group.Wait()
	if slices.Contains(errs, nil) {
		return replies, nil
	}
	return nil, allSaid(errs)
}

// fill takes the description of a server. It checks the values that this side relies on.
func (r *Run) fill(d *chaskiv1.DescribeReply) error {
	spec, err := shapeOf(d.GetSpec())
	if err != nil {
		return fmt.Errorf("the server's description: %w", err)
	}
	if d.GetSamples() < 0 || d.GetSamples() > 1<<62 || d.GetSpecHash() == "" || d.GetHandle() == "" {
		return fmt.Errorf("the server's description: %d samples, spec hash %q, handle %q", d.GetSamples(),
			d.GetSpecHash(), d.GetHandle())
	}
	r.spec, r.shape, r.samples = d.GetSpec(), spec, d.GetSamples()
	r.hash, r.fingerprint = d.GetSpecHash(), d.GetFingerprint()
	r.batches, r.marks = d.GetBatches(), d.GetMarks()
	r.prefetch = min(max(int(d.GetPrefetch()), batch.DefaultPrefetch), batch.MaxAutoPrefetch)
	if len(d.GetRun()) > 0 {
		if err := r.parts.UnmarshalJSON(d.GetRun()); err != nil {
			return fmt.Errorf("the server's description: %w", err)
		}
	}
	if r.fields, err = fieldsOf(d.GetFields()); err != nil {
		return err
	}
	for _, s := range d.GetSources() {
		source := batch.SourceInfo{Name: s.GetName()}
		if source.Fields, err = fieldsOf(s.GetFields()); err != nil {
			return err
		}
		r.sources = append(r.sources, source)
	}
	r.groups, err = groupsOf(d)
	return err
}

// compare refuses a server if the entity tags or contents of its files differ from the first server. Times that differ
// are logged once: they do for copies of a file on several hosts, and for a file that was replaced.
func (r *Run) compare(p *peer, d *chaskiv1.DescribeReply) error {
	kind, _, _ := strings.Cut(r.marks, ":")
	if d.GetMarks() == r.marks || kind == "" || !strings.HasPrefix(d.GetMarks(), kind+":") {
		return nil
	}
	switch kind {
	case "etag":
		return fmt.Errorf("%w: files of equal names and sizes have other entity tags", ErrChanged)
	case "bytes":
		return fmt.Errorf("%w: samples of equal names have other tensors", ErrChanged)
	}
	r.otherTimes.Do(func() {
		r.client.options.Logger.Warn("files of equal names and sizes have other times at servers: their pixels may "+
			"differ, too", "server", p.target)
	})
	return nil
}

// fieldsOf returns the fields in the description of a server.
func fieldsOf(described []*chaskiv1.FieldInfo) (out []batch.FieldInfo, err error) {
	for _, fieldInfo := range described {
		info := batch.FieldInfo{Name: fieldInfo.GetName(), Kind: fieldInfo.GetKind(), Shape: fieldInfo.GetShape(),
			Axes: fieldInfo.GetAxes(), Bands: fieldInfo.GetBands(), Wavelengths: fieldInfo.GetWavelengths(),
			GSD: fieldInfo.GetGsd(), Classes: fieldInfo.GetClasses(), Palette: fieldInfo.GetPalette()}
		if fieldInfo.GetDtype() != "" {
			if info.DType, err = dtype.Parse(fieldInfo.GetDtype()); err != nil {
				return nil, fmt.Errorf("the server's description: field %q: %w", fieldInfo.GetName(), err)
			}
		}
		out = append(out, info)
	}
	return out, nil
}

// groupsOf returns the groups in the description of a server, or nil.
func groupsOf(d *chaskiv1.DescribeReply) (*steps.Groups, error) {
	groups := d.GetGroups()
	if groups == nil {
		return nil, nil
	}
	out := &steps.Groups{Lanes: groups.GetLanes(), Dataset: int(groups.GetDataset()), Pool: groups.GetPool(),
		Samples: d.GetSamples()}
	for _, level := range groups.GetLevels() {
		out.Levels = append(out.Levels, steps.Level{Drawn: level.GetDrawn(), Samples: level.GetSamples()})
	}
	if err := out.Check(); err != nil {
		return nil, fmt.Errorf("the server's description: %w", err)
	}
	return out, nil
}

// Spec returns the JSON of the spec with its defaults filled in.
func (r *Run) Spec() json.RawMessage { return r.spec }

// Hash returns the spec hash: equal for equal specs on equal data, at any server.
func (r *Run) Hash() string { return r.hash }

// Fingerprint returns the dataset's fingerprint.
func (r *Run) Fingerprint() string { return r.fingerprint }

// Batches returns how many batches of Options.Rows the memory of a server holds, or 0 if it did not say.
func (r *Run) Batches() int64 { return r.batches }

// Prefetch returns how many batches are requested ahead by default: what the server says.
func (r *Run) Prefetch(int) int { return r.prefetch }

// State returns the state at the beginning of epoch 0.
func (r *Run) State() steps.State {
	return steps.State{Version: steps.Version, Spec: r.hash, Seed: r.shape.Seed, Run: r.parts}
}

// Len returns N, the samples of an epoch.
func (r *Run) Len() int64 { return r.samples }

// Steps returns the steps of an epoch.
func (r *Run) Steps() int64 { return steps.Count(r.samples, r.shape.BatchSize, r.shape.Drops()) }

// Fields describes the tensors of a batch, in their order.
func (r *Run) Fields() []batch.FieldInfo { return r.fields }

// Sources returns the name and the fields of each source of a mixture. It is empty if the server did not describe them.
func (r *Run) Sources() []batch.SourceInfo { return r.sources }

// RowBytes returns the bytes that a row takes in a batch, of the largest source, without what differs from row to row.
func (r *Run) RowBytes() int64 {
	largest := rowBytes(r.fields)
	for _, source := range r.sources {
		largest = max(largest, rowBytes(source.Fields))
	}
	return largest
}

func rowBytes(fields []batch.FieldInfo) int64 {
	total := int64(besideBytes)
	for _, fieldInfo := range fields {
		if fieldInfo.DType == dtype.Invalid {
			continue
		}
		row := int64(fieldInfo.DType.Size())
		for _, length := range fieldInfo.Shape {
			if length < 0 || length > DefaultMaxBatchBytes {
				length = 0 // the server's value is not trusted
			}
			row = min(row*length, DefaultMaxBatchBytes)
		}
		total = min(total+row, maxRowBytes)
	}
	return total
}

// besideBytes is the size of a row beside its tensors: valid, position and sample.
const besideBytes = 1 + 8 + 8

// maxRowBytes bounds the expected size of a row, so the size of a batch fits into an int64.
const maxRowBytes = 1 << 40

// rest returns how long a server rests after so many failures in a row.
func (o *Options) rest(failures int) time.Duration {
	return o.Backoff * time.Duration(min(1<<min(failures-1, 10), 100))
}

// final reports whether the server would say the same again.
func final(err error) bool {
	if errors.Is(err, errFinal) || errors.Is(err, ErrNoShared) || crash.Is(err) {
		return true
	}
	answer, ok := status.FromError(err)
	if !ok {
		kind := wire.KindOf(err) // of a ticket
		return kind != "" && kind != wire.Unavailable && kind != wire.UnknownSpec
	}
	switch answer.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unimplemented, codes.DataLoss,
		codes.FailedPrecondition, codes.Unauthenticated, codes.OutOfRange, codes.AlreadyExists:
		return true
	case codes.Internal:
		// Without a fault it is of a connection that was cut within a message.
		return len(answer.Details()) > 0
	}
	return false
}

// serversError is what each of several servers said.
type serversError struct {
	text string
	errs []error // first those that waiting does not change, since they say more to a user
}

func (e *serversError) Error() string   { return e.text }
func (e *serversError) Unwrap() []error { return e.errs }

// allSaid returns the error of a request that every server refused; each of errs names its server.
func allSaid(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, fault.Line(err))
	}
	order := slices.Clone(errs)
	slices.SortStableFunc(order, func(a, b error) int {
		switch fa, fb := final(a), final(b); {
		case fa == fb:
			return 0
		case fa:
			return -1
		}
		return 1
	})
	return &serversError{strings.Join(texts, "; "), order}
}

// errFinal marks errors of this side for which trying again cannot help.
var errFinal = errors.New("this run cannot go on")

// errClosed is of a client that was closed while a run went on.
var errClosed error = finalError("the client is closed")

// finalError is errFinal with its own message.
type finalError string

func (e finalError) Error() string        { return string(e) }
func (e finalError) Is(target error) bool { return target == errFinal || target == error(e) }

// Errors of servers that are not a gRPC status.
var (
	// ErrProtocol is of a server that breaks the rules of the protocol.
	ErrProtocol error = finalError("the server breaks the protocol")
	// ErrChanged is of a server that sees other data than the run is of.
	ErrChanged error = finalError("the server sees other data")
	// ErrSilent is of a server that owed an answer for Options.Timeout and said nothing.
	ErrSilent = errors.New("no answer")
)
