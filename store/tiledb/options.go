package tiledb

// Defaults of Options.
const (
	DefaultMaxTile   = 256 << 20
	DefaultMaxResult = 2 << 30
)

// Options of Open. The zero value is ready.
type Options struct {
	// Key is the AES-256 key, 32 bytes, of an encrypted array. It is not looked at where the array is not.
	Key []byte
	// MaxTile is the largest decoded tile, in bytes. Default DefaultMaxTile.
	MaxTile int64
	// MaxResult is the most that one read gives, in bytes. Default DefaultMaxResult.
	MaxResult int64
	// Since and Until open the array at a time: the fragments that were written in between, in milliseconds since 1970, both
	// included, are those that there are. Of a consolidated one all of its time has to lie in between. Until 0
	// is no bound. Nothing is written to an array that was opened so.
	Since, Until uint64
}

// open reports whether fragments of some time count.
func (o *Options) open(from, to uint64) bool {
	return from >= o.Since && (o.Until == 0 || to <= o.Until)
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
