package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/arrow"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/loader/survey"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/store/taco"
)

// The parts of a question that may be long, in bytes, and the memory that a byte of each may take: what is read is
// copied as it grows, items of a list in SQL become parts of an expression, and a size of 8 bytes becomes a range, a
// tag and a part of the answer.
const (
	maxText   = 2 << 20 // its JSON; a query has as much
	textCost  = 64
	maxSizes  = 64 << 20 // the sizes of the frames of a rumi file
	sizesCost = 12
	// maxObjects bounds the objects in the JSON, because a condition of 2 bytes takes 160.
	maxObjects = 10_000
)

// asking is one call of Ask.
type asking struct {
	server       *Server
	view         *view
	ctx          context.Context
	in           io.Reader // the data of the requests after the question
	out          io.Writer // gets the answer
	to           *watch
	lastProgress time.Time // when the client last heard how far the answer is
	warnings     []string
}

type askStream = grpc.BidiStreamingServer[chaskiv1.AskRequest, chaskiv1.AskReply]

// Ask implements chaski.v1.Chaski.
func (s *Server) Ask(g askStream) error {
	leave, err := s.place(g.Context(), s.questions)
	if err != nil {
		return failed(err)
	}
	defer leave()
	watch := newWatch(g.Context(), g, &s.options, func() bool {
		return s.questions.Wanted() || s.options.Loader.Budget.Waiting() > 0 || s.options.Loader.Budget.Asking()
	})
	watch.sent = s.sentTo(g.Context())
	view := s.viewOf(g.Context())
	// The view is held here, since the call may end before its answer does.
	leaveView := view.hold()
	return watch.run(&s.answering, func() error {
		defer leaveView()
		// A question that waits for memory has no place, since the memory bounds how many go on. Stopping ends it,
		// since it must not wait for long answers.
		ctx, cancel := s.whileServing(budget.OnWait(g.Context(), leave))
		defer cancel()
		account, err := s.options.Loader.Budget.OpenQuestion(ctx, int64(s.options.PartBytes)+maxRequest)
		if err != nil {
			return failed(err)
		}
		defer account.Close()
		slot := s.options.Loader.Turns.Slot(clientOf(ctx))
		defer slot.Rest()
		charged := turns.With(budget.With(ctx, account), slot)
		out := bufio.NewWriterSize(askWriter{watch, slot}, s.options.PartBytes)
		g := &patient{askStream: g, ctx: charged, timeout: s.options.SendTimeout}
		question := &asking{server: s, view: view, ctx: charged, in: &askReader{from: g}, out: out, to: watch}
		err = crash.Call(func() error { return question.answer(g) })
		crash.Report(s.options.Logger, err)
		if err == nil {
			err = out.Flush()
		}
		if err == nil && len(question.warnings) > 0 {
			err = watch.SendMsg(&chaskiv1.AskReply{Warnings: question.warnings})
		}
		if err == nil {
			return nil
		}
		if s.serving.Err() != nil {
			return failed(errStopping)
		}
		return failed(askedWrong(err))
	})
}

// progress tells the client how far the answer is, twice a second at most: messages so small do not wait for a client
// that does not read. It is not for several goroutines at a time, nor beside writes to q.out. If it fails, the call has
// ended.
func (q *asking) progress(done, total int64) {
	if time.Since(q.lastProgress) > time.Second/2 {
		q.lastProgress = time.Now()
		q.to.SendMsg(&chaskiv1.AskReply{Done: done, Total: total}) //nolint:errcheck
	}
}

func (q *asking) answer(g askStream) error {
	if len(q.view.loader.Roots) == 0 {
		return errNoRoot
	}
	askRequest, err := g.Recv()
	if err != nil {
		return err
	}
	switch k := askRequest.GetKind().(type) {
	case *chaskiv1.AskRequest_About:
		return q.about(k.About)
	case *chaskiv1.AskRequest_Table:
		return q.table(k.Table)
	case *chaskiv1.AskRequest_Entries:
		return q.entries(k.Entries)
	case *chaskiv1.AskRequest_Bytes:
		return q.bytes(k.Bytes)
	case *chaskiv1.AskRequest_Index:
		return q.index(k.Index)
	case *chaskiv1.AskRequest_RumiHead:
		return q.rumiHead(k.RumiHead)
	case *chaskiv1.AskRequest_RumiFrames:
		return q.rumiFrames(k.RumiFrames)
	case *chaskiv1.AskRequest_Stats:
		return q.stats(k.Stats)
	case *chaskiv1.AskRequest_Paste:
		return q.paste(k.Paste)
	case *chaskiv1.AskRequest_Plan:
		return q.plan(k.Plan)
	}
	return errors.New("the first request must be a question, of a kind that this server knows")
}

// patient is a stream whose Recv waits for a bounded time. A client that sends nothing would otherwise keep its place
// among Options.MaxReads for as long as its connection lasts, and hold up a server that stops.
type patient struct {
	askStream
	ctx     context.Context // ends when the server stops
	timeout time.Duration
}

// Recv must not be called again after an error.
func (p *patient) Recv() (*chaskiv1.AskRequest, error) {
	type result struct {
		m   *chaskiv1.AskRequest
		err error
	}
	got := make(chan result, 1)
	// Only a message or the return of the call's handler ends Recv of gRPC, and the caller returns after an error.
	go func() {
		m, err := p.askStream.Recv()
		got <- result{m, err}
	}()
	turns.Rest(p.ctx)
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case r := <-got:
		return r.m, r.err
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	case <-timer.C:
		return nil, status.Errorf(codes.DeadlineExceeded, "the client has sent nothing for %v of its question",
			p.timeout)
	}
}

// askReader reads the data of requests.
type askReader struct {
	from askStream
	rest []byte
}

func (r *askReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		askRequest, err := r.from.Recv()
		if err != nil {
			return 0, err // io.EOF once the client has closed its side
		}
		r.rest = askRequest.GetData()
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// askWriter sends the bytes written to it.
type askWriter struct {
	to   *watch
	slot *turns.Slot // of the goroutine that writes, which may wait here
}

func (w askWriter) Write(b []byte) (int, error) {
	w.slot.Rest()
	for rest := b; len(rest) > 0; {
		count := min(len(rest), MaxPartBytes)
		if err := w.to.SendMsg(&chaskiv1.AskReply{Data: rest[:count]}); err != nil {
			return 0, err
		}
		rest = rest[count:]
	}
	return len(b), nil
}

// chargedReader charges each byte read through it to the account of ctx, cost times.
type chargedReader struct {
	ctx  context.Context
	from io.Reader
	cost int64
}

func (r chargedReader) Read(b []byte) (int, error) {
	count, err := r.from.Read(b)
	if full := budget.Grow(r.ctx, r.cost*int64(count)); full != nil {
		return count, full
	}
	return count, err
}

// questionText is the JSON of a question about containers.
type questionText struct {
	SQL   string             `json:"sql,omitempty"`
	Where []loader.Condition `json:"where"`
}

// readAll returns a part of a question that goes on in the data of further requests. It has at most most bytes, of
// which each is charged cost times.
func (q *asking) readAll(begin []byte, most, cost int64) ([]byte, error) {
	reader := chargedReader{q.ctx, io.LimitReader(io.MultiReader(bytes.NewReader(begin), q.in), most+1), cost}
	body, err := io.ReadAll(reader)
	if err == nil && int64(len(body)) > most {
		err = fault.New(fault.Limit, "question", fault.NoOffset,
			"it has more than %d bytes; ask with shorter conditions, and filter the answer", most)
	}
	return body, err
}

// read parses the JSON of a question about containers, opens them and calls answer.
func (q *asking) read(begin []byte, c *chaskiv1.Containers,
	answer func(d *taco.Dataset, text *questionText) error) error {
	body, err := q.readAll(begin, maxText, textCost)
	if err != nil {
		return err
	}
	if objects := bytes.Count(body, []byte("{")); objects > maxObjects {
		return fault.New(fault.Limit, "question", fault.NoOffset, "it has %d objects, at most %d", objects, maxObjects)
	}
	if err := turns.Tick(q.ctx); err != nil {
		return err
	}
	var text questionText
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return err
	}
	return q.use(c, text.Where, func(d *taco.Dataset) error { return answer(d, &text) })
}

// use opens containers and calls answer with their dataset. Errors without a file get the first container's.
func (q *asking) use(c *chaskiv1.Containers, where []loader.Condition, answer func(d *taco.Dataset) error) error {
	mode := column.Intersection
	if c.GetColumns() != "" {
		var err error
		if mode, err = column.ParseMode(c.GetColumns()); err != nil {
			return err
		}
	}
	if len(c.GetPaths()) == 0 {
		return errors.New("the question names no container")
	}
	var err error
	q.warnings, err = q.view.containers.Use(q.ctx, containers.Set{
		Paths: c.GetPaths(), BasePath: c.GetBasePath(), Mode: mode, Chosen: (&loader.Subset{Where: where}).Joins(),
	}, answer)
	return err
}

func (q *asking) about(m *chaskiv1.AboutQuestion) error {
	return q.use(m.GetContainers(), nil, func(d *taco.Dataset) error {
		return json.NewEncoder(q.out).Encode(containers.Describe(d))
	})
}

func (q *asking) table(m *chaskiv1.TableQuestion) error {
	options := q.view.options
	return q.read(m.GetText(), m.GetContainers(), func(d *taco.Dataset, text *questionText) (err error) {
		tableOf := d.StoredTable
		if !m.GetStored() {
			if tableOf, err = containers.Tables(q.ctx, d, text.Where, options); err != nil {
				return err
			}
		}
		table, err := query.RunWithin(q.ctx, text.SQL, tableOf, options.SQLLimits)
		if err == nil {
			err = arrow.Write(q.ctx, q.out, table)
		}
		return fault.WithFile(err, m.GetContainers().GetPaths()[0])
	})
}

func (q *asking) entries(m *chaskiv1.EntriesQuestion) error {
	return q.read(m.GetText(), m.GetContainers(), func(d *taco.Dataset, text *questionText) error {
		list, err := containers.Rows(q.ctx, d, int(m.GetLevel()), text.Where, q.view.options)
		if err != nil {
			return err
		}
		entries, err := entriesOf(q.ctx, d, int(m.GetLevel()), list)
		if err != nil {
			return err
		}
		return q.message(entries)
	})
}

// message answers with a message.
func (q *asking) message(m proto.Message) error {
	if err := budget.Grow(q.ctx, int64(proto.Size(m))); err != nil {
		return err
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, err = q.out.Write(data)
	return err
}

// entryBytes is the memory of an entry while an answer is made: 5 numbers of 8 bytes, one of 4, a flag and an id of
// about 30 bytes, twice, because slices that grow are copied.
const entryBytes = 2 * (5*8 + 4 + 1 + 30)

// entriesOf returns where the samples of some rows of a level are.
func entriesOf(ctx context.Context, d *taco.Dataset, level int, list []int) (*chaskiv1.Entries, error) {
	parents, err := d.Parents(ctx, level)
	if err != nil {
		return nil, err
	}
	entries, files := &chaskiv1.Entries{}, map[string]uint32{}
	if err := budget.Grow(ctx, int64(len(list))*entryBytes); err != nil {
		return nil, err
	}
	wide := func(to *[]byte, v int64) { *to = binary.LittleEndian.AppendUint64(*to, uint64(v)) }
	for _, row := range list {
		entry, err := d.EntryAt(ctx, level, row)
		if err != nil {
			return nil, err
		}
		parent, folder := int64(-1), byte(0)
		if parents != nil {
			parent = int64(parents[row])
		}
		if entry.Kind == taco.Folder {
			folder = 1
		}
		file, ok := files[entry.URI]
		if !ok {
			file = uint32(len(files))
			files[entry.URI] = file
			entries.Uris = append(entries.Uris, entry.URI)
		}
		wide(&entries.Rows, int64(row))
		wide(&entries.Parents, parent)
		wide(&entries.Offsets, entry.Offset)
		wide(&entries.Sizes, entry.Size)
		entries.Folders = append(entries.Folders, folder)
		entries.Files = binary.LittleEndian.AppendUint32(entries.Files, file)
		entries.Ids = append(entries.Ids, entry.ID...)
		wide(&entries.IdEnds, int64(len(entries.Ids)))
	}
	return entries, nil
}

func (q *asking) bytes(m *chaskiv1.BytesQuestion) error {
	options := q.view.options
	if m.GetName() != "" {
		entry, ok := containers.Subfile(m.GetName())
		if !ok {
			entry = taco.Entry{URI: m.GetName(), Path: m.GetName(), Offset: taco.Whole, Size: taco.Whole}
		}
		// A root may hold files that are not data, such as a key: no other call shows them, so this one must not.
		if _, err := survey.Describe(q.ctx, entry.URI, nil, options); err != nil {
			return err
		}
		return containers.Copy(q.ctx, q.out, options.Opener, entry)
	}
	return q.use(m.GetContainers(), nil, func(d *taco.Dataset) error {
		if m.GetRow() != int64(int32(m.GetRow())) {
			return fault.New(fault.NotFound, "row", fault.NoOffset, "no row %d", m.GetRow())
		}
		entry, err := d.EntryAt(q.ctx, int(m.GetLevel()), int(m.GetRow()))
		if err != nil {
			return err
		}
		if entry.Kind == taco.Folder {
			return fault.WithFile(fault.New(fault.Unsupported, "sample "+entry.ID, fault.NoOffset,
				"is a folder: only files have bytes"), entry.URI)
		}
		return containers.Copy(q.ctx, q.out, options.Opener, entry)
	})
}
