// Package console has what every command needs: its streams, the line and the exit code of a
// failure, checks of arguments, printed results and progress bars.
package console

import (
	"io"
	"log/slog"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// Env has the standard streams of a command, and what a run makes once.
type Env struct {
	In       io.Reader
	Out, Err io.Writer

	// Files opens local files and remote objects. It is closed when the command has ended. It is nil where no command
	// runs, such as for the pages of the site.
	Files source.Opener
	// Cache is the folder of --cache-dir, in which Files keeps ranges of remote objects.
	Cache   *diskcache.Ref
	Version string
}

// NewLog returns a log of lines of text. Its messages and values have no secrets of URIs: see fault.WithoutSecrets.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutSecrets}))
}

func withoutSecrets(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		text := a.Value.String()
		if clean := fault.WithoutSecrets(text); clean != text {
			a.Value = slog.StringValue(clean)
		}
	}
	return a
}
