// Package dryrun says what a run reads, and what it costs, without reading a pixel. Package loader
// makes the plans: see Engine.Explain and Engine.Forecast. Tiles and Arrays stand for the memory of
// a worker, because what a worker reads depends on what it has read before.
package dryrun
