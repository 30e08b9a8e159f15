// Package clip cuts polygons and lines to a window of pixels: a rectangle from (0, 0) to its width and height.
package clip
