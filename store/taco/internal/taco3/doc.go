// Package taco3 reads TACO 3 containers, and archives of cozip's profile Flat: ZIPs whose first entry is an index of
// the others. It goes by taco-eo 0.14.2 and cozip 2026.9.27, whose files differ from the draft of the
// specification (3.0.0).
//
// A container has a table for each folder of taco:structure: "sample", "children" (the files and folders of a sample),
// "children/before". A level of the model joins the tables of one depth, since a row's children must lie in the next
// level; the tables keep their names beside.
package taco3
