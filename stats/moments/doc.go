// Package moments measures the samples of rasters by band: count, mean, standard deviation, minimum,
// maximum, a histogram of 100 bins, and percentiles, without nodata. It does not read files: each
// worker feeds decoded samples to a Field of its own, and the Fields of all workers are merged.
//
// # What is exact
//
// The result is a function of the multiset of samples alone: it does not depend, in any bit, on
// the order in which they were added, on the number of workers, or on the order of merging. Every
// value counts, and sums are exact on the way.
//
//   - Types of 8 and 16 bits (integers, float16, bfloat16) are counted by value. Everything follows
//     from the counts and is exact; percentiles hold for the whole data.
//   - For 32 and 64 bits, sums of values and of squares are kept exactly, integers in 128 and 192 bits,
//     floats by binary exponent; mean and standard deviation are rounded once, at the end. Percentiles
//     and the histogram come from at most 8,192 fine bins. A fine bin's width is a power of two and
//     its edges are multiples of it: the smallest such width that is enough for the range seen, no
//     less than 1 for integers and the spacing of floats at the largest magnitude. So bins only ever
//     fold into each other, and never lose count. A percentile is off by less than one fine bin, which is
//     less than (max-min)/4095 (Band.Resolution says how wide it is); a count of the histogram is off
//     by no more than the fine bins across its two edges hold.
//
// The standard deviation is the population's (ddof 0). Percentiles interpolate between the two
// nearest ranks linearly, as numpy.percentile does by default (method 7 of Hyndman and Fan, Sample
// quantiles in statistical packages, 1996). The histogram has 100 bins of equal width from the minimum
// to the maximum, each with its lower edge and the last with both, as numpy.histogram has; where
// all samples are equal, from 0.5 below to 0.5 above.
//
// NaN and infinities are counted and otherwise left out. A NaN in an image whose nodata is NaN counts
// as nodata. Complex types are not measured.
//
// A Field can be written as bytes and read in another process (AppendState, ParseState), so
// parts of a dataset can be measured separately.
package moments
