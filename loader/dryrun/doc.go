// Package dryrun describes the reads of a run and their cost, without reading a pixel. Package
// loader makes the plans: see Engine.Explain and Engine.Forecast.
package dryrun
