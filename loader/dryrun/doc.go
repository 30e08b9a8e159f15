// Package dryrun describes the reads of a run and their cost, without reading a pixel. Package
// loader makes the plans: see Engine.Explain and Engine.Forecast. Tiles and Arrays stand for the
// memory of a worker, because the reads of a worker depend on its earlier ones.
package dryrun
