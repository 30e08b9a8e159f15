package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	_ "github.com/chaski-eo/chaski/format/picture" // masks that are PNGs
	"github.com/chaski-eo/chaski/format/vector/rasterize"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// labelTexts are files of labels, most of them of one image.
var labelTexts = map[string]string{
	"voc": `<?xml version="1.0" encoding="latin1"?><annotation><object><name>a` + "\xe9" + `</name><difficult>1</difficult>
<part><name>x</name></part><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>9</ymax></bndbox></object>
<object><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>5</xmax><ymax>9</ymax></bndbox></object></annotation>`,
	"fair1m": `<annotation><objects><object><possibleresult><name>b</name></possibleresult><points><point>1,2</point>` +
		`<point>5,2</point><point>4,8</point><point>1,2</point></points></object></objects></annotation>`,
	"turned": `<annotation><object><name>c</name><robndbox><cx>9</cx><cy>8</cy><w>4</w><h>2</h><angle>0.5</angle>` +
		`</robndbox></object></annotation>`,
	"xbd": `{"features": {"lng_lat": [{"properties": {}, "wkt": "POLYGON ((-90 14, -91 14, -91 15))"}], "xy": [` +
		`{"properties": {"subtype": "destroyed", "uid": "u"}, ` +
		`"wkt": "POLYGON ((1 2, 5 2, 5 9.5, 1 2), (3 3, 4 3, 4 4))"}, {"properties": {}, ` +
		`"wkt": "MULTIPOLYGON (((1 1, 2 1, 2 2)), ((7 7, 8 7, 8 8)))"}]}, "metadata": {"gsd": 2}}`,
	"hrsc": "<HRSC_Image><HRSC_Objects><HRSC_Object><Class_ID>7</Class_ID><box_xmin>1</box_xmin>" +
		"<box_ymin>2</box_ymin><box_xmax>5</box_xmax><box_ymax>9</box_ymax></HRSC_Object></HRSC_Objects></HRSC_Image>",
	"kitti": "car 0 0 0 1 2 5 9 0 0 0 0 0 0 0\nvan 0 0 0 1 2 5 9 1 1 1 1 1 1 1 0.5\n",
	"dota":  "imagesource:x\ngsd:1\n1 2 5 2 5 9 1 9 plane 1\n1 2 5 2 5 9 1 9 ship 0\n",
	"yolo":  "0 0.5 0.5 0.25 0.5\r\n3 0.1 0.1 0.2 0.2 0.9\n1 0.1 0.1 0.2 0.1 0.2 0.3\n",
	"csv":   "image_path;x;y;w;h;label;area\na.png;1;2;4;7;boat;2.5\nb.png;;;;;;\n",
	"coco": `{"images": [{"id": 1, "file_name": "a.png"}], "annotations": [{"id": 1, "image_id": 1, "category_id": 2,
"bbox": [1, 2, 4, 7], "iscrowd": 0, "segmentation": [[1, 2, 5, 2, 5, 9], [7, 7, 8, 7, 8, 8]]}, {"image_id": 1,
"category_id": 2, "iscrowd": 1, "segmentation": {"size": [3, 4], "counts": [1, 4, 7]}}, {"image_id": 1, "category_id": 2,
"segmentation": {"size": [3, 4], "counts": "147"}}], "categories": [{"id": 2, "name": "car"}]}`,
	"labelme": `{"version": "5.2", "flags": {}, "shapes": [{"label": "tree", "points": [[5, 2], [1, 9]], "group_id": 3,
"shape_type": "rectangle"}, {"label": "b", "points": [[1, 2], [5, 2.5], [4, 9]], "shape_type": "polygon"}, {"label": "c",
"points": [[5, 5], [8, 9]], "shape_type": "circle"}, {"label": "d", "points": [[1, 2], [3, 3]], "shape_type": "mask",
"mask": "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAAAAAC4HznGAAAAEElEQVR42mNgZGRgYGBkBAAAGAAF7xukAgAAAABJRU5ErkJggg=="}], "imagePath": "a.jpg", "imageData": "aGVsbG8=", "imageHeight": 9}`,
	"supervisely": `{"size": {"height": 9, "width": 9}, "objects": [{"classTitle": "a", "geometryType": "polygon", ` +
		`"points": {"exterior": [[1, 2], [5, 2], [5, 9]], "interior": [[[2, 3], [4, 3], [4, 5]]]}}, {"bitmap": ` +
		`{"origin": [1, 2], "data": "` + packedMask + `"}}, {"geometryType": "point", ` +
		`"points": {"exterior": [[1, 1]]}}]}`,
	"tasks": `[{"id": 1, "annotations": [{"result": [{"type": "rectanglelabels", "original_width": 10, ` +
		`"original_height": 10, "value": {"x": 0, "y": 0, "width": 9, "height": 9, "rectanglelabels": ["b"]}}], ` +
		`"was_cancelled": true}, {"was_cancelled": false, "result": [{"type": "rectanglelabels", ` +
		`"original_width": 10, "original_height": 20, "value": {"x": 10, "y": 10, "width": 40, "height": 35, ` +
		`"rectanglelabels": ["a"]}}, {"type": "polygonlabels", "original_width": 10, "original_height": 10, ` +
		`"value": {"points": [[1, 2], [90, 2], [5, 5]], "polygonlabels": ["b"]}}]}], ` +
		`"data": {"image": "/data/upload/1/0a1b2c3d-a.png"}}]`,
	"via": `{"a.jpg12": {"filename": "a.jpg", "size": 12, "regions": [{"shape_attributes": {"name": "rect", "x": 1,
"y": 2, "width": 4, "height": 7}, "region_attributes": {}}, {"shape_attributes": {"name": "ellipse", "cx": 5, "cy": 5,
"rx": 3, "ry": 2, "theta": 0.5}, "region_attributes": {"class": "boat"}}], "file_attributes": {}}}`,
	"via1": `{"_via_settings": {}, "_via_img_metadata": {"x": {"filename": "a.jpg", "regions": {"1": {"shape_attributes":
{"name": "polygon", "all_points_x": [0, 9, 9], "all_points_y": [0, 0, 9]}, "region_attributes": {"kind": "b"}},
"0": {"shape_attributes": {"name": "polygon", "all_points_x": [1, 5, 5], "all_points_y": [2, 2, 9]},
"region_attributes": {"kind": "a"}}}}}}`,
	"viacsv": "filename,file_size,region_count,region_id,region_shape_attributes,region_attributes\n" +
		`a.jpg,12,1,0,"{""name"":""rect"",""x"":1,""y"":2,""width"":4,""height"":7}","{""class"":""boat""}"` +
		"\na.jpg,12,0,0,{},{}\n",
	"wkt": `ImageId,BuildingId,PolygonWKT_Pix,PolygonWKT_Geo
a,0,"POLYGON ((1 2 0, 5 2 0, 5 9 0, 1 2 0),(2 3 0, 3 3 0, 3 4 0, 2 3 0))","POLYGON ((7 1, 8 1, 8 2, 7 1))"
b,-1,POLYGON EMPTY,POLYGON EMPTY
`,
	"runs": "ImageId,EncodedPixels\na.png,13 7 23 7 34 6\nb.png,\n",
	"soda": `{"type": "instance", "images": {"id": "x"}, "annotations": [{"poly": [1, 2, 5, 2, 5, 9, 1, 9],
"image_id": "x", "category_id": 0}], "categories": [{"id": 0, "name": "car"}]}`,
}

// packedMask is a mask of 3 by 2 pixels as Supervisely has it: 110, 011.
const packedMask = "eNrrDPBz5+WS4mJgYOD19HAJAtLMQMzEASQYdshbHgNSAp4ujiEVt5ITUlIS" +
	"EhJSWBgYJBhY30svYQKp8XT1c1nnlNAEANqLDxc="

// hugeMask has a header of 16,384 by 16,384 pixels, and six of them.
const hugeMask = "eNrrDPBz5+WS4mJgYOD19HAJYmBwYABhDiDJ0LPYPwJICXi6OIZU3EpOSElJSEhIYWFgkGBgfS+9hAmkxtPVz2WdU0ITAPSfD5I="

// ofImages are those of labelTexts that name several images.
var ofImages = map[string]bool{"csv": true, "wkt": true, "runs": true, "tasks": true}

// openLabel opens a file of labels.
func openLabel(t testing.TB, text string, o Options) (*Layer, error) {
	t.Helper()
	return Open(t.Context(), memory(text), "f", o)
}

// TestLabels promises the number of objects of each format, their classes and the box around the first of them.
func TestLabels(t *testing.T) {
	first := orb.Bound{Min: orb.Point{1, 2}, Max: orb.Point{5, 9}}
	for name, want := range map[string]struct {
		n     int
		class string
		bound orb.Bound
	}{
		"voc":         {2, "aé", first},
		"fair1m":      {1, "b", orb.Bound{Min: orb.Point{1, 2}, Max: orb.Point{5, 8}}},
		"turned":      {1, "c", orb.Bound{Min: orb.Point{6.765409, 6.163566}, Max: orb.Point{11.234591, 9.836434}}},
		"hrsc":        {1, "7", first},
		"kitti":       {2, "car", first},
		"dota":        {2, "plane", first},
		"xbd":         {2, "destroyed", orb.Bound{Min: orb.Point{1, 2}, Max: orb.Point{5, 9.5}}},
		"yolo":        {3, "", orb.Bound{Min: orb.Point{0.375, 0.25}, Max: orb.Point{0.625, 0.75}}},
		"csv":         {2, "boat", first},
		"coco":        {3, "car", orb.Bound{Min: orb.Point{1, 2}, Max: orb.Point{8, 9}}},
		"soda":        {1, "car", first},
		"labelme":     {4, "tree", first},
		"supervisely": {3, "a", first},
		"tasks":       {2, "a", first},
		"via":         {2, "", first},
		"via1":        {2, "a", first},
		"viacsv":      {2, "boat", first},
		"wkt":         {2, "", first},
		"runs":        {2, "", orb.Bound{Min: orb.Point{1, 2}, Max: orb.Point{4, 9}}},
	} {
		layer, err := openLabel(t, labelTexts[name], Options{OneImage: !ofImages[name], Class: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		shape, err := layer.ShapeIn(t.Context(), 0, 10)
		if err != nil || layer.Len() != want.n {
			t.Errorf("%s: %d objects, want %d; %v", name, layer.Len(), want.n, err)
			continue
		}
		bound := shape.Bound()
		for axis := range 2 {
			if abs(bound.Min[axis]-want.bound.Min[axis]) > 1e-6 || abs(bound.Max[axis]-want.bound.Max[axis]) > 1e-6 {
				t.Errorf("%s: %v, want %v", name, bound, want.bound)
			}
		}
		if values := layer.Values; want.class == "" && name != "yolo" {
			if values != nil && !values.Null(0) {
				t.Errorf("%s: %v", name, values)
			}
		} else if want.class == "" {
			if !slices.Equal(values.Ints(), []int64{0, 3, 1}) || !layer.Ordinal {
				t.Errorf("%s: %v", name, values.Ints())
			}
		} else if values.Null(0) || values.Str(0) != want.class {
			t.Errorf("%s: %v, want %s", name, values, want.class)
		}
	}
}

// TestOutlinesOfXBD promises the outer outlines of WKT in all its forms, and that a text that is cut or no polygon is
// an error: an object is never left out.
func TestOutlinesOfXBD(t *testing.T) {
	square, corner := orb.Ring{{1, 1}, {5, 1}, {5, 5}, {1, 5}, {1, 1}}, orb.Ring{{7, 7}, {8, 7}, {8, 8}, {7, 7}}
	const text, hole, other = "1 1, 5 1, 5 5, 1 5, 1 1", "2 2, 3 2, 3 3, 2 2", "7 7, 8 7, 8 8, 7 7"
	both := orb.Collection{orb.Polygon{square}, orb.Polygon{corner}}
	for wkt, want := range map[string]orb.Geometry{
		"POLYGON ((" + text + "))":                                               orb.Polygon{square},
		"polygon((" + text + ",(" + hole + "))":                                  nil, // the outline has no end
		" Polygon ( ( " + text + " ) , ( " + hole + " ) ) ":                      orb.Polygon{square},
		"POLYGON Z ((1 1 9, 5 1 9, 5 5 9, 1 5 9, 1 1 9))":                        orb.Polygon{square},
		"MULTIPOLYGON(((" + text + "),(" + hole + ")),((" + other + ")))":        both,
		"MULTIPOLYGON ( ( (" + text + "), (" + hole + ") ) , ((" + other + ")))": both,
		"POLYGON (" + text + ")":                                                 nil,
		"POLYGON ((" + text + ")":                                                nil,
		"POLYGON ((" + text + ")) and more":                                      nil,
		"POLYGON":                                                                nil,
		"LINESTRING (" + text + ")":                                              nil,
		"POLYGON ((1 1, 5 1))":                                                   nil,
		"POLYGON ((1 1, nan 1, 5 5, 1 1))":                                       nil,
	} {
		layer, err := openLabel(t, `{"features": {"xy": [{"properties": {}, "wkt": "`+wkt+`"}]}}`,
			Options{OneImage: true})
		if err != nil {
			if want != nil || fault.KindOf(err) == 0 {
				t.Errorf("%s: %v", wkt, err)
			}
			continue
		}
		if shape, err := layer.Shape(t.Context(), 0); err != nil || want == nil || !orb.Equal(shape, want) {
			t.Errorf("%s: %v, %v, want %v", wkt, shape, err, want)
		}
	}
	layer, err := openLabel(t, `{"features": {"xy": [{"properties": {}, "wkt": "POLYGON EMPTY"}]}}`,
		Options{OneImage: true})
	if err != nil || layer.Len() != 1 {
		t.Errorf("an empty polygon: %v", err)
	}
}

func abs(x float64) float64 { return max(x, -x) }

// TestLabelColumns promises the values of other columns than the class, of the kind that they have in the file.
func TestLabelColumns(t *testing.T) {
	for _, c := range []struct {
		name, column string
		want         string
	}{
		{"voc", "difficult", "[1 0] []"}, {"dota", "difficult", "[1 0] []"}, {"csv", "area", "[] [2.5 0]"},
		{"coco", "iscrowd", "[0 1 0] []"}, {"coco", "category_id", "[2 2 2] []"}, {"yolo", "score", "[] [0 0.9 0]"},
	} {
		layer, err := openLabel(t, labelTexts[c.name], Options{OneImage: !ofImages[c.name], Column: c.column})
		if err != nil {
			t.Errorf("%v: %v", c, err)
		} else if got := fmt.Sprint(layer.Values.Ints(), layer.Values.Floats()); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
	for name, says := range map[string]string{"dota": `"class" "difficult"`, "csv": "label", "yolo": `"score"`} {
		_, err := openLabel(t, labelTexts[name], Options{OneImage: true, Column: "none"})
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMembersOfOtherFormats promises that a file is read as without members that the formats of others have, whatever
// their values are.
func TestMembersOfOtherFormats(t *testing.T) {
	texts := map[string]string{"features": everyKind}
	for _, name := range []string{"coco", "labelme", "supervisely", "via", "via1"} {
		texts[name] = labelTexts[name]
	}
	for name, text := range texts {
		want := drawn(t, text, Options{OneImage: true})
		for _, member := range []string{"metadata", "size", "imagePath", "info"} {
			if strings.Contains(text, `"`+member+`": `) {
				continue
			}
			for _, value := range []string{`"[1"`, `"{"`, `"x"`, "7", "null", "true", "[3, [4]]", `{"width": "x"}`,
				`{"xy": 1}`} {
				first := strings.Replace(text, "{", fmt.Sprintf(`{"%s": %s, `, member, value), 1)
				if got := drawn(t, first, Options{OneImage: true}); got != want {
					t.Errorf("%s with %s %s: %s, want %s", name, member, value, got, want)
				}
			}
		}
	}
}

// drawn returns the shapes of a file, or why it is not read, as a text.
func drawn(t *testing.T, text string, o Options) string {
	t.Helper()
	layer, err := openLabel(t, text, o)
	if err != nil {
		return err.Error()
	}
	var shapes []orb.Geometry
	for row := range layer.Len() {
		shape, err := layer.Shape(t.Context(), uint32(row))
		if err != nil {
			t.Fatal(err)
		}
		shapes = append(shapes, shape)
	}
	return fmt.Sprint(shapes)
}

// TestFormsOfShapes promises the outlines of shapes that other files than labelTexts have, by hand.
func TestFormsOfShapes(t *testing.T) {
	via := func(head, line string) string {
		return head + "\n" + line + `,"{""name"":""rect"",""x"":1,""y"":2,""width"":4,""height"":7}","{}"`
	}
	const box, outline = "[[[[1 2] [5 2] [5 9] [1 9] [1 2]]]]", "[[[[1 2] [5 2] [5 9] [1 2]]]]"
	for _, c := range []struct {
		text, want string
		box        map[string]string
	}{
		{`{"shapes": [{"points": [[1, 2], [5, 2], [5, 9]], "shape_type": null}]}`, outline, nil},
		{`{"shapes": [{"points": [[1, 2], [5, 2], [5, 9]], "shape_type": "line"}]}`, "[<nil>]", nil},
		{via("Filename,Region_Shape_Attributes,Region_Attributes", "a.jpg"), box, nil},
		{via("x,y,w,h,region_shape_attributes,region_attributes", "1,2,4,7"), box, nil},
		{via("x,y,w,h,region_shape_attributes,region_attributes", "0,0,4,7"),
			"[[[[0 0] [4 0] [4 7] [0 7] [0 0]]]]", nil},
		{via("rle,region_shape_attributes,region_attributes", "1 2"), box, nil},
		{"filename,region_shape_attributes\na.jpg,\"{\"\"name\"\":null}\"", "[<nil>]", nil},
		{`{"a": [{"p": [["1", 2], ["5", "2.0"], [5, 9]]}]}`, outline, map[string]string{"outline": "a/p"}},
		{`{"a": [{"p": ["1", "2", 5, "2", 5, 9]}]}`, outline, map[string]string{"outline": "a/p"}},
	} {
		if got := drawn(t, c.text, Options{OneImage: true, Box: c.box}); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
	for _, roles := range []string{"cx cy r", "cx cy x y", "xa ya xb yb", "x y w h degrees", "xs ys", "brush",
		"outer"} {
		got := drawn(t, `{"a": [{"p": [1, 2, 3, 4]}]}`, Options{OneImage: true, Box: map[string]string{roles: "a/p"}})
		if !strings.Contains(got, formsAre) {
			t.Errorf("%s, which no box has: %s", roles, got)
		}
	}
}

// TestMasksOfRuns draws random masks that are stored as runs, in both ways that COCO has, and compares the pixels.
func TestMasksOfRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		height, width := 1+r.IntN(9), 1+r.IntN(9)
		mask := make([]bool, height*width) // one column after the other, as COCO has it
		runs, value, run := []int{}, false, 0
		for i := range mask {
			if mask[i] = r.IntN(3) > 0 == (i > 0 && mask[i-1]) && i > 0; r.IntN(4) == 0 {
				mask[i] = !mask[i]
			}
			if mask[i] != value {
				runs, value, run = append(runs, run), mask[i], 0
			}
			run++
		}
		runs = append(runs, run)
		list := strings.ReplaceAll(fmt.Sprint(runs), " ", ", ")
		for _, counts := range []string{list, fmt.Sprintf("%q", packRuns(runs))} {
			text := fmt.Sprintf(`{"annotations": [{"segmentation": {"size": [%d, %d], "counts": %s}}]}`, height, width,
				counts)
			layer, err := openLabel(t, text, Options{OneImage: true})
			if err != nil {
				t.Fatal(counts, err)
			}
			shape, _ := layer.Shape(t.Context(), 0)
			got := make([]bool, len(mask))
			grid := rasterize.Grid{Transform: [6]float64{0, 1, 0, 0, 0, 1}, Height: height, Width: width}
			grid.Spans(shape, func(y, x0, x1 int) {
				for x := x0; x < x1; x++ {
					got[x*height+y] = true
				}
			})
			if !slices.Equal(got, mask) {
				t.Fatalf("%d by %d, %s: %v, want %v", height, width, counts, got, mask)
			}
		}
	}
}

// packRuns writes runs as rleToString of COCO's API does.
func packRuns(runs []int) string {
	var text []byte
	for i, run := range runs {
		if i > 2 {
			run -= runs[i-2]
		}
		for more := true; more; {
			char := run & 31
			run >>= 5
			if more = run != -1 || char&16 == 0; char&16 == 0 {
				more = run != 0
			}
			if more {
				char |= 32
			}
			text = append(text, byte(char+48))
		}
	}
	return string(text)
}

// TestLabelsThatAreWrong promises the kind of error and a part that says what is wrong.
func TestLabelsThatAreWrong(t *testing.T) {
	object := func(box string) string { return "<annotation><object>" + box + "</object></annotation>" }
	annotation := func(members string) string { return `{"annotations": [{` + members + `}]}` }
	for _, c := range []struct {
		text string
		kind fault.Kind
		says string
	}{
		{"<annotation><object>", fault.Corrupt, "XML"},
		{"<a></b>", fault.Corrupt, "</b> ends no element"},
		{strings.Repeat("<a>", 100), fault.Limit, "elements in each other"},
		{"<a>" + strings.Repeat("x", 2<<20) + "</a>", fault.Limit, "over 1048576 bytes"},
		{`<?xml version="1.0" encoding="utf-16"?><a/>`, fault.Unsupported, "save it as UTF-8"},
		{object("<name>a</name>"), fault.Unsupported, "no bndbox"},
		{object("<bndbox><xmin>x</xmin><ymin>1</ymin><xmax>1</xmax><ymax>1</ymax></bndbox>"), fault.Corrupt, `"x"`},
		{object("<points><point>1,2</point><point>1</point></points>"), fault.Corrupt, "3 coordinates"},
		{"1 2 3 4 5 6 7 8 ship 0 9\n", fault.Corrupt, "line 1"},
		{"1 2 3 4 5 6 7 8 ship\n1 2 3\n", fault.Corrupt, "line 2"},
		{"0 0.5 0.5 0.1 0.1\n0 0.5 NaN 0.1 0.1", fault.Corrupt, "line 2"},
		{"0 0.5 0.5 0.1 0.1\n0 0.5 0.1 0.1", fault.Corrupt, "polygon"},
		{"xmin,ymin,xmax\n1,2,3\n", fault.NotFound, `such as "xmin"`},
		{"xmin,ymin,xmax,ymax\n1,2,3,\n", fault.Corrupt, "row 1"},
		{"xmin,ymin,xmax,ymax\n1,2,3\n", fault.Corrupt, "line 2"},
		{"xmin,ymin,xmax,ymax\n1,2,3,\"4\n", fault.Corrupt, "line"},
		{annotation(`"bbox": [1, 2, 3]`), fault.Corrupt, "bbox"},
		{annotation(`"segmentation": [[1, 2, 3, 4, 5, 6, 7]]`), fault.Corrupt, "7 coordinates"},
		{annotation(`"segmentation": {"size": [2, 2], "counts": [1, 9]}`), fault.Corrupt, "do not fit"},
		{annotation(`"segmentation": {"size": [2, 2], "counts": "~"}`), fault.Corrupt, "character 0"},
		{annotation(`"segmentation": {"size": [9999999999, 2], "counts": []}`), fault.Corrupt, "size"},
		{`{`, fault.Corrupt, "cut off"},
		{`{"type":"FeatureCollection","features":[`, fault.Corrupt, "cut off"},
		{`{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}`, fault.Corrupt, "cut off"},
		{`{"annotations": [7]}`, fault.Corrupt, "annotations 0"},
		{`{"annotations": 7}`, fault.Corrupt, "a list must stand"},
		{`{"annotations": [{"category_id": 1}], "categories": [{"id": 2, "name": "a"}]}`, fault.Corrupt, "id 1"},
		{`{"images": [{"id": 1}, {"id": 2}], "annotations": []}`, fault.Unsupported, "2 images"},
		{`{"images": [{"file_name": "a"}]}`, fault.Corrupt, "id"},
		{`{"objects": [{"bitmap": {"origin": [0, 0], "data": "` + hugeMask + `"}}]}`, fault.Corrupt,
			"268435456 pixels"},
		{`{"shapes": [{}], "features": []}`, fault.Unsupported, "no points"},
		{annotation(`"segmentation": {"size": [2, 2]}`), fault.Corrupt, "size and counts"},
		{annotation(`"segmentation": [["x", 2, 3, 4, 5, 6]]`), fault.Corrupt, "no list of numbers"},
		{annotation(`"segmentation": [["1, 2, 3, 4, 5, 6]]`), fault.Corrupt, "JSON"},
		{`{"objects": [{"bitmap": {"origin": [0, 0, 0], "data": "` + packedMask + `"}}]}`, fault.Corrupt, "3 numbers"},
		{`{"x": {"filename": "a", "file_attributes": {}, "regions": [{"shape_attributes": {"name": "circle", ` +
			`"cx": 1}}]}}`, fault.Corrupt, `"circle" has too few`},
		{`{"x": {"filename": "a", "file_attributes": {}, "regions": [{"shape_attributes": {"name": "polygon", ` +
			`"all_points_x": [1, 2, 3], "all_points_y": []}}]}}`, fault.Corrupt, "3 x and 0 y"},
		{`[{"annotations": [{"result": [{"type": "rectanglelabels", "original_width": 9, "original_height": 9, ` +
			`"value": {"x": 1, "y": 2, "height": 3}}]}]}]`, fault.Corrupt, `"rectanglelabels" has too few`},
		{`{"shapes": [{"points": [[1, 2], [3, 4], [5, 6]], "shape_type": "circle"}]}`, fault.Corrupt, "or too many"},
		{`{"shapes": [{"points": [[1, 2], [3, 4]], "shape_type": "mask", "mask": null}]}`, fault.Corrupt, "too few"},
		{`{"size": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, fault.Limit, "in each other"},
		{`{"annotations": [{"x": "` + strings.Repeat("x", 17<<20) + `"}]}`, fault.Limit, "over 4194304 bytes"},
	} {
		_, err := openLabel(t, c.text, Options{OneImage: true, Class: true})
		if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.80q: %v, want %s", c.text, err, c.says)
		}
	}
	for name, says := range map[string]string{"voc": "labels of one image", "csv": ""} {
		if _, err := openLabel(t, labelTexts[name], Options{}); (err == nil) != (says == "") ||
			err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMemoryOfLabels: what a file of labels charges covers what it takes, and a million boxes take some 150 MB.
func TestMemoryOfLabels(t *testing.T) {
	race.SkipCovered(t)
	lines := strings.Builder{}
	lines.WriteString("image,x1,y1,x2,y2,class\n")
	n := 1_000_000
	if testing.Short() {
		n = 100_000
	}
	for i := range n {
		fmt.Fprintf(&lines, "images/%06d.jpg,%d,%d,%d,%d,c%d\n", i/20, i%800, i%700, i%800+30, i%700+20, i%60)
	}
	text := memory(lines.String())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	charged := int64(0)
	layer, err := Open(t.Context(), text, "f", Options{Class: true, Grow: func(_ context.Context, n int64) error {
		charged += n
		return nil
	}})
	if err != nil || layer.Len() != n {
		t.Fatal(layer, err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	taken := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if perBox := taken / int64(n); taken > charged || perBox > 160 || charged > 400*int64(n) {
		t.Errorf("%d bytes a box of %d charged", perBox, charged/int64(n))
	}
	image, err := layer.OfImage(Sample{URI: "/data/images/000001.jpg"})
	if err != nil || len(image.Rows) != 20 || image.Rows[0] != 20 {
		t.Error(image.Rows, err)
	}
	runtime.KeepAlive(text)
}

// TestSmallMemoryOfHostileLabels: texts of many parts in one object are refused before they take much more memory than
// the bytes of the file.
func TestSmallMemoryOfHostileLabels(t *testing.T) {
	race.SkipCovered(t) // the race detector takes memory of its own
	const size = 16 << 20
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	for name, text := range map[string]string{
		"commas":     "xmin,ymin,xmax,ymax\n" + fill(","),
		"header":     "xmin,ymin,xmax,ymax" + fill(",a"),
		"words":      "0 0.5 0.5 0.1 0.1\n0" + fill(" 1"),
		"attributes": "<a " + fill(`a="" `) + "/>",
		"elements":   "<object>" + fill("<a>1</a>"),
		"depth":      fill("<a>"),
		"points":     "<object><points>" + fill("<point>1,1</point>"),
		"members":    `{"annotations": [{` + fill(`"a":1,`),
		"lists":      `{"annotations": [{"segmentation": [` + fill("[],"),
		"skipped":    `{"annotations": [], "other": [` + fill("{},"),
		"runs":       `{"annotations": [{"segmentation": {"size": [9, 9], "counts": [` + fill("0,"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := openLabel(t, text, Options{OneImage: true, Class: true})
		runtime.ReadMemStats(&after)
		if err == nil || fault.KindOf(err) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		// All that was ever allocated: at a time it is far less, as most of it are tokens.
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 16*size {
			t.Errorf("%s: %d MiB", name, taken>>20)
		}
	}
}

// TestTaken: labels of many parts take memory by their length.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	all := slices.Concat(taken.XML("<annotation>"), taken.XML("<annotation><object>"))
	feature := `{"type":"FeatureCollection","features":[`
	for _, array := range []string{"[", feature, `{"type":"Feature","geometry":{"type":"Polygon","coordinates":[`,
		feature + `{"type":"Feature","geometry":{"type":"MultiPolygon","coordinates":[`,
		feature + `{"type":"Feature","properties":[`, `{"images":[`, `{"annotations":[`,
		`{"annotations":[{"segmentation":[`, `{"categories":[`, `{"shapes":[`} {
		all = append(all, taken.JSON(array)...)
	}
	for _, names := range []string{"xmin,ymin,xmax,ymax", "a", "geometry,class", "0 0.5 0.5 0.1 0.1", "imagesource:x"} {
		all = append(all, taken.CSV(names)...)
	}
	for _, text := range all {
		for _, o := range []Options{{}, {Column: "class"}, {OneImage: true, Class: true},
			{Box: map[string]string{"x y w h": "annotations.bbox"}, Column: "annotations.c", Image: "n"}} {
			taken.Check(t, len(text), taken.FactorJSON, func() { _, _ = Open(t.Context(), memory(text), "f", o) })
		}
	}
}

// TestManyColumns: a table of labels has as many columns as others, and messages show some of them.
func TestManyColumns(t *testing.T) {
	for n, kind := range map[int]fault.Kind{1000: fault.NotFound, 20_000: fault.Limit, 200_000: fault.Limit} {
		_, err := openLabel(t, "a"+strings.Repeat(",b", n)+"\n", Options{OneImage: true})
		if fault.KindOf(err) != kind || len(err.Error()) > 2000 {
			t.Errorf("%d columns: %.200v", n, err)
		}
	}
}

// TestManyBoxesOfAnArray: an array of more boxes than one read takes has each of them, in either order of its numbers.
func TestManyBoxesOfAnArray(t *testing.T) {
	const n, width = 2500, 5
	number := func(i, k int) float64 { return []float64{float64(i), 1, float64(i) + 2, 4, 3}[k] }
	for _, fortran := range []bool{false, true} {
		header, err := npy.Header(chunk.Float64, []int{n, width})
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 8*n*width)
		for i := range n {
			for k := range width {
				place := i*width + k
				if fortran {
					place = k*n + i
				}
				binary.LittleEndian.PutUint64(data[8*place:], math.Float64bits(number(i, k)))
			}
		}
		if fortran {
			header = bytes.Replace(header, []byte("False"), []byte("True "), 1)
		}
		layer, err := openLabel(t, string(header)+string(data), Options{OneImage: true})
		if err != nil || layer.Len() != n {
			t.Fatalf("Fortran order %t: %v", fortran, err)
		}
		for i := range n {
			shape, err := layer.Shape(t.Context(), uint32(i))
			want := orb.Bound{Min: orb.Point{number(i, 0), 1}, Max: orb.Point{number(i, 2), 4}}
			if err != nil || shape.Bound() != want {
				t.Fatalf("Fortran order %t, box %d: %v, %v", fortran, i, shape, err)
			}
		}
	}
}

// FuzzLabels: files of any bytes are refused with a kind, or all their shapes are read; what they take is charged.
func FuzzLabels(f *testing.F) {
	for _, text := range labelTexts {
		f.Add([]byte(text))
	}
	f.Add([]byte("imagesource:x\n"))
	f.Add([]byte(`{"a": [{"exterior": [[1, 2], [5, 2], [5, 9]], "interior": [[[2, 3], [4, 3], [4, 5]]]}]}`))
	f.Add([]byte("<annotation><object><polygon><x1>1</x1><y1>2</y1><x2>5</x2><y2>2</y2><x3>5</x3><y3>9</y3></polygon>" +
		"</object></annotation>"))
	for _, text := range placedTexts {
		f.Add([]byte(text))
	}
	for _, shape := range [][]int{{2, 4}, {2, 5}, {0}, {1 << 40, 4}} {
		header, err := npy.Header(chunk.Float32, shape)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(header, make([]byte, 40)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, o := range []Options{
			{OneImage: true, Class: true, Columns: []string{"difficult"}}, {Class: true, Boxes: true},
			{OneImage: true, Column: "class", Words: true}, {Column: "area", Image: "label"},
			{OneImage: true, Box: map[string]string{"x y w h": "object/box"}, Column: "object/name"},
			{Box: map[string]string{"x0 y0 x1 y1": "a.b"}, Column: "a.c", Image: "i{a.d:03}.png"},
			{OneImage: true, Box: map[string]string{"x": "0", "y": "1", "w": "2", "h": "3"}, Column: "4"},
			{Box: map[string]string{"x": "*.0", "y": "*.1", "w": "*.2", "h": "*.3"}, Column: "*.4", Image: "*"},
			{OneImage: true, Box: map[string]string{"outline": "a.exterior"}},
			{Box: map[string]string{"outline": "1"}, Image: "{0}", Names: map[string]string{"2": "{a}_{b}"},
				Column: "b"},
		} {
			o.MaxShapes = 1 << 12
			var layer *Layer
			var err error
			taken.Check(t, len(b), taken.FactorJSON, func() {
				layer, err = Open(t.Context(), memory(slices.Clone(b)), "f", o)
			})
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
				continue
			}
			for row := range layer.Len() {
				if _, err := layer.ShapeIn(t.Context(), uint32(row), 7); err != nil && fault.KindOf(err) == 0 {
					t.Fatalf("an error without a kind: %v", err)
				}
			}
			layer.Far()
			if layer.Space != Ground {
				_, _ = layer.OfImage(Sample{URI: "a/b.png"})
			}
		}
	})
}
