package spec

// Limits of a spec. A spec is user input, so every size in it must have a bound.
const (
	// maxSamples bounds the samples of an epoch. It is 2^62, half the range of int64, so the position after a
	// ticket's last row does not overflow.
	maxSamples  = 1 << 62
	maxFields   = 64
	maxBatch    = 1 << 20
	maxPerAsset = 1 << 20
	maxSizes    = 64      // of windows: the engine has layouts and tensors of each
	maxSteps    = 1 << 16 // of a sequence
	// MaxWindow is the longest side of a window in pixels. At 2^16, the 2^32 pixels of the largest
	// window, in 2^16 bands (chunk.MaxBands) of 2^4 bytes, are 2^52 bytes, so the product fits
	// an int64.
	MaxWindow = 1 << 16
	// maxSpecBytes must stay below the 4 MiB that package shuffle allows for the run of a state,
	// since a state lists the members of the spec.
	maxSpecBytes = 1 << 20
)

// Limits of the sources of a spec.
const (
	maxSources = 1000
	// maxPath is the longest name of a source, in bytes. A path of Linux has at most 4 KiB, and a glob may take four
	// times as many, for classes such as [Aa].
	maxPath = 16 << 10
	// maxMixed is the depth of mixtures in mixtures. It must stay below the 16 of a plan of package
	// shuffle, because strata add one level: at most 8 + 1 levels are used.
	maxMixed      = 8
	maxConditions = 100
	maxTables     = 100
	maxShares     = 1000
)
