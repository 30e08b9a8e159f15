package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

const (
	// maxLogged bounds a value in the log, in bytes. A client decides how long a path, and so the error about it, is:
	// one refused request used to write 0.9 MB.
	maxLogged = 1 << 10
	// auditRate and auditBurst bound the lines about calls, to 1 KiB or so each: a flood of calls fills the log by at
	// most 20 KB a second, and the start of a run of many ranks still has a line for each call. Refused calls have a
	// separate budget of the same size, so they cannot hide the calls of others.
	auditRate  = 20
	auditBurst = 200
)

// bounded is a handler of a log whose values have at most maxLogged bytes.
type bounded struct{ slog.Handler }

// Handle implements slog.Handler.
func (h bounded) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(cutAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h bounded) WithAttrs(a []slog.Attr) slog.Handler {
	a = slices.Clone(a)
	for i := range a {
		a[i] = cutAttr(a[i])
	}
	return bounded{h.Handler.WithAttrs(a)}
}

// WithGroup implements slog.Handler.
func (h bounded) WithGroup(name string) slog.Handler { return bounded{h.Handler.WithGroup(name)} }

// cutAttr bounds the value of an attribute. Stacks of panics have a bound of their own, and no text of a client.
func cutAttr(a slog.Attr) slog.Attr {
	switch value := a.Value.Resolve(); {
	case a.Key == "stack":
	case value.Kind() == slog.KindString:
		a.Value = slog.StringValue(cut(value.String()))
	case value.Kind() == slog.KindAny:
		text := fmt.Sprint(value.Any())
		if short := cut(text); short != text {
			a.Value = slog.StringValue(short)
		}
	}
	return a
}

// cut returns a text of at most maxLogged bytes, without the middle of a longer one: an error begins with the file, and
// ends with its kind.
func cut(s string) string {
	s = fault.WithoutSecrets(s)
	if len(s) <= maxLogged {
		return s
	}
	const mark = " … "
	const half = (maxLogged - len(mark)) / 2
	return strings.ToValidUTF8(s[:half], "") + mark + strings.ToValidUTF8(s[len(s)-half:], "")
}

// audit logs who called, about what, and how it ended.
type audit struct {
	log                  *slog.Logger
	admissions, refusals lineLimit
}

// lineLimit bounds the lines about calls of one kind.
type lineLimit struct {
	kind    string
	limit   *rate.Limiter
	leftOut atomic.Int64 // since the last one
}

func newAudit(log *slog.Logger) *audit {
	made := &audit{log: log}
	made.admissions.kind, made.admissions.limit = "admitted", rate.NewLimiter(auditRate, auditBurst)
	made.refusals.kind, made.refusals.limit = "refused", rate.NewLimiter(auditRate, auditBurst)
	return made
}

// call logs one call that has ended. about is called only if there is a line for it.
func (a *audit) call(ctx context.Context, method string, about func() string, begun time.Time, err error) {
	if !a.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	code := codes.OK
	if err != nil {
		code = status.Code(err)
	}
	lines := &a.admissions
	if code == codes.Unauthenticated {
		lines = &a.refusals
	}
	if !lines.limit.Allow() {
		lines.leftOut.Add(1)
		return
	}
	if n := lines.leftOut.Swap(0); n > 0 {
		a.log.Warn("calls were not logged: there were too many", "left_out", n, "calls", lines.kind)
	}
	a.log.Info("call", "client", string(clientOf(ctx)), "method", method[strings.LastIndex(method, "/")+1:],
		"about", about(), "result", code.String(), "seconds", time.Since(begun).Seconds())
}

// aboutOf returns the subject of a request: its paths, the source of its spec, or the handle of its dataset. It is
// empty for a request without any.
func aboutOf(m any) string {
	switch r := m.(type) {
	case *chaskiv1.DescribeRequest:
		return sourceOf(r.GetSpec())
	case *chaskiv1.InfoRequest:
		return r.GetPath()
	case *chaskiv1.ReadRequest:
		return first(r.GetPaths())
	case *chaskiv1.StreamRequest:
		return r.GetTicket().GetHandle()
	case *chaskiv1.PlanRequest:
		return r.GetHandle()
	}
	return ""
}

// first returns the first paths and how many there are.
func first(paths []string) string {
	const shown = 4
	text := strings.Join(paths[:min(len(paths), shown)], " ")
	if len(paths) > shown {
		text = fmt.Sprintf("%d paths: %s", len(paths), text)
	}
	return text
}

// maxAbout bounds the specs whose source is looked for. Larger ones are no worse, but parsing 1 MB for a line of the
// log takes 3 ms.
const maxAbout = 64 << 10

// sourceOf returns the source of a spec. For a mixture, a large spec or invalid JSON it returns the beginning of the
// text.
func sourceOf(spec []byte) string {
	if len(spec) > maxAbout {
		return beginning(spec[:maxAbout])
	}
	var s struct {
		Source string `json:"source"`
	}
	if json.Unmarshal(spec, &s) == nil && s.Source != "" {
		return s.Source
	}
	return beginning(spec)
}

// beginning returns the beginning of a spec. Secrets go first: one that is cut in two does not look like one.
func beginning(spec []byte) string {
	text := fault.WithoutSecrets(string(spec))
	return text[:min(len(text), maxLogged/2)]
}
