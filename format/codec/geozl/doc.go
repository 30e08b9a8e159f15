// Package geozl decodes the codecs that geozl adds to OpenZL for rasters: predictors, the split of
// missing samples and of complex ones, bit packing, and three quantizers. They occur in OpenZL
// frames as custom codecs with ids from 0x72D700 to 0x72D7FF; Codecs is the registry to give to
// openzl.Options.Custom.
//
// The format is defined by the specifications (spec.md) and decoders below core/src in the geozl sources,
// release 0.19 (github.com/asterisk-labs/geozl, BSD 3-Clause), whose names this package uses. It also
// reads the forms of older releases: nodata with a code byte (up to 0.12), predictors without a plane count
// (up to 0.13), and the codecs taken over from pcodec (binoffset, intmult, floatquant, floatmult), which
// are no longer written.
//
// Integer arithmetic has the width of a sample and wraps. Floating-point results are rounded after every
// operation, so they are the same on every machine and equal to the original's.
//
// Not supported: 0x72D780, the quantizer of releases before 0.8, which the original no longer reads either.
// Package openzl writes planar, planar_zigzag and, with these, pfor and pivco; this package writes nothing.
package geozl
