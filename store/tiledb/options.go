package tiledb

// Defaults of Options.
const (
	DefaultMaxTile   = 256 << 20
	DefaultMaxResult = 2 << 30
)

// Options configure Open. The zero value is ready to use.
type Options struct {
	// Key is the AES-256 key, 32 bytes, of an encrypted array. It is ignored for other arrays.
	Key []byte
	// MaxTile limits the size of a decoded tile, in bytes. Default DefaultMaxTile.
	MaxTile int64
	// MaxResult limits the bytes that one read returns. Default DefaultMaxResult.
	MaxResult int64
	// Since and Until open the array as it was at a time: only fragments written from Since to Until count, in
	// milliseconds since 1970, both included. A consolidated fragment counts if its whole range of time lies in
	// between. Until 0 means no limit.
	Since, Until uint64
}

// includes reports whether fragments written in a range of time count.
func (o *Options) includes(from, to uint64) bool {
	return from >= o.Since && (o.Until == 0 || to <= o.Until)
}

// touches reports whether cells written in a range of time may count.
func (o *Options) touches(from, to uint64) bool {
	return to >= o.Since && (o.Until == 0 || from <= o.Until)
}

func (o Options) withDefaults() Options {
	if o.MaxTile <= 0 {
		o.MaxTile = DefaultMaxTile
	}
	if o.MaxResult <= 0 {
		o.MaxResult = DefaultMaxResult
	}
	return o
}
