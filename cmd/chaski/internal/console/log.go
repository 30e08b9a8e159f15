package console

import (
	"io"
	"log/slog"

	"github.com/chaski-eo/chaski/fault"
)

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
