// Package ground finds out where windows on the ground may lie, and which scenes each of them sees.
//
// A Set is made once, when a run is opened, from the places of all scenes. Their footprints are drawn into the cells
// of one map, or of each zone of UTM that they lie in; the cells that are left of them are what package shuffle draws
// windows from (shuffle.Ground). A window then finds its scenes in a tree of boxes. docs/order.md defines the cells.
package ground
