package vector

import (
	"slices"
	"strings"
)

func init() { labelFormats = textFormats }

// textFormats are the formats that are no JSON. No two of them take the same file.
var textFormats = []*format{&vocFormat, &tasksFormat, &csvFormat, {
	name: "NumPy's array", begins: beginsNPY, read: readNPY,
	columns: "x0 y0 x1 y1 class", ordinal: true,
	forms: []*form{entry("x0 y0 x1 y1", "x0 y0 x1 y1")},
}, {
	name: "DOTA's text", begins: beginsDOTA, read: readWords,
	columns: "x1 y1 x2 y2 x3 y3 x4 y4 class difficult", words: dotaWords,
	forms: []*form{entry("x1 y1 x2 y2 x3 y3 x4 y4", "x1 y1 x2 y2 x3 y3 x4 y4")},
}, {
	name: "YOLO's text", begins: beginsYOLO, read: readWords, unit: inShares,
	columns: "class cx cy w h score outline", words: yoloWords, ordinal: true,
	forms: []*form{entry("outline", "outline"), entry("cx cy w h", "cx cy w h")},
}, {
	name: "KITTI's text", begins: beginsKITTI, read: readWords,
	columns: "class . . . x0 y0 x1 y1 . . . . . . . score", words: kittiWords,
	forms: []*form{entry("x0 y0 x1 y1", "x0 y0 x1 y1")},
}}

// vocFormat is XML of Pascal VOC, and XML like it.
var vocFormat = format{
	name: "VOC XML", begins: beginsXML, read: readVOC,
	objects: "object HRSC_Object",
	class:   "name possibleresult/name Class_ID", // of FAIR1M and HRSC2016
	image: [3]string{"filename source/filename Img_FileName", "size/width Img_SizeWidth",
		"size/height Img_SizeHeight"},
	forms: []*form{
		entry("x0 y0 x1 y1", "bndbox/xmin bndbox/ymin bndbox/xmax bndbox/ymax"),
		entry("x0 y0 x1 y1", "box_xmin box_ymin box_xmax box_ymax"), // HRSC2016
		entry("outline", "points/point"),                            // FAIR1M: each point is an element
		entry("x1 y1 x2 y2 x3 y3 x4 y4", "robndbox/x_left_top robndbox/y_left_top robndbox/x_right_top "+
			"robndbox/y_right_top robndbox/x_right_bottom robndbox/y_right_bottom robndbox/x_left_bottom "+
			"robndbox/y_left_bottom"), // DIOR-R
		entry("outline", "polygon/*"), // DroneVehicle, Roboflow: x1, y1, x2, …
		entry("cx cy w h angle", "robndbox/cx robndbox/cy robndbox/w robndbox/h robndbox/angle"), // roLabelImg
		entry("cx cy w h angle", "mbox_cx mbox_cy mbox_w mbox_h mbox_ang"),                       // HRSC2016
	},
	lacks: "it has no bndbox of xmin, ymin, xmax and ymax, no robndbox, polygon or points: box says where others " +
		"have their coordinates",
}

// cocoFormat is JSON of COCO, and of SODA, whose lists refer to each other: see coco.
var cocoFormat = format{
	name: "COCO's JSON", many: true,
	objects: "images annotations categories",
	more:    "id name file_name width height image_id category_id",
	class:   "category",
	forms:   []*form{entry("x y w h", "bbox"), entry("outline", "segmentation"), entry("outline", "poly")},
}

// jsonFormats are the other formats in JSON.
var jsonFormats = []*format{{
	name: "xBD's JSON", member: "features",
	objects: "features/xy", // of the pixels
	values:  "properties",
	class:   "subtype", // the damage of a building, after the disaster
	forms:   []*form{entry("outer", "wkt")},
	image:   [3]string{"metadata/img_name", "metadata/width", "metadata/height"},
}, {
	name: "LabelMe's JSON", member: "shapes",
	objects: "shapes",
	class:   "label",
	shape:   "shape_type",
	forms: []*form{
		entry("xa ya xb yb", "points", "rectangle"),
		entry("cx cy x y", "points", "circle"),
		entry("bitmap origin", "mask points", "mask"),
		entry("outline", "points", "polygon", "rectangle", ""), // the oldest files have no types
	},
	image: [3]string{"imagePath", "imageWidth", "imageHeight"},
	lacks: "it has no points",
}, {
	name: "Supervisely's JSON", member: "objects",
	objects: "objects",
	class:   "classTitle",
	shape:   "geometryType",
	forms: []*form{
		entry("xa ya xb yb", "points/exterior", "rectangle"),
		entry("outline holes", "points/exterior points/interior", "polygon", "rectangle", ""),
		entry("bitmap origin", "bitmap/data bitmap/origin"),
	},
	image: [3]string{"", "size/width", "size/height"},
	lacks: "it has neither points nor a bitmap",
}, {
	name: "VIA's JSON", member: viaMember, many: true,
	objects: viaMember + "/*/regions",
	values:  "region_attributes",
	shape:   "shape_attributes/name",
	forms:   viaForms("shape_attributes"),
	image:   [3]string{viaMember + "/*/filename"},
	shared:  viaMember + "/*",
}}

// jsonFormat returns the format of a file with a member, or nil.
func jsonFormat(member string) *format {
	if i := slices.IndexFunc(jsonFormats, func(f *format) bool { return f.member == member }); i >= 0 {
		return jsonFormats[i]
	}
	return nil
}

// viaMember is the member with the images of a project of VIA. What VIA exports has them without it.
const viaMember = "_via_img_metadata"

// viaForms returns the forms of a region of VIA, whose coordinates are members of one.
func viaForms(of string) []*form {
	below := func(names string) string { return of + "/" + strings.ReplaceAll(names, " ", " "+of+"/") }
	return []*form{
		entry("x y w h", below("x y width height"), "rect"),
		entry("cx cy r", below("cx cy r"), "circle"),
		entry("cx cy rx ry angle?", below("cx cy rx ry theta"), "ellipse"),
		entry("xs ys", below("all_points_x all_points_y"), "polygon"),
	}
}

// tasksFormat is the JSON that Label Studio exports: a list of tasks, each of an image.
var tasksFormat = format{
	name: "Label Studio's JSON", begins: beginsTasks, read: readTasks, many: true,
	objects: "annotations/result completions/result",
	class:   "label value/rectanglelabels value/polygonlabels value/ellipselabels value/labels",
	shape:   "type",
	more:    percentPlaces,
	unit:    inPercent,
	forms: []*form{
		entry("brush", "type", "brush", "bitmask"),
		entry("outline", "value/points", "polygon", ""),
		entry("cx cy rx ry degrees?", "value/x value/y value/radiusX value/radiusY value/rotation", "ellipse", ""),
		entry("x y w h degrees?", "value/x value/y value/width value/height value/rotation", "rectangle", ""),
	},
	image:  [3]string{"data/image data/img data/url file_upload"},
	shared: ".",
	drops:  "annotations/was_cancelled",
	path:   uploaded,
}

// csvFormat is a CSV with a header, whose names count in any case. The first of the forms that a table has in full
// counts for all lines.
var csvFormat = format{
	name: "CSV", begins: beginsCSV, read: readCSV, many: true,
	class:  classNames,
	values: "region_attributes",
	shape:  "region_shape_attributes/name",
	forms: append([]*form{
		entry("x1 y1 x2 y2 x3 y3 x4 y4", "x1 y1 x2 y2 x3 y3 x4 y4"),
		entry("x0 y0 x1 y1", "xmin ymin xmax ymax"),
		entry("x0 y0 x1 y1", "x_min y_min x_max y_max"),
		entry("x0 y0 x1 y1", "minx miny maxx maxy"),
		entry("x0 y0 x1 y1", "x0 y0 x1 y1"),
		entry("x0 y0 x1 y1", "x1 y1 x2 y2"),
		entry("x0 y0 x1 y1", "left top right bottom"),
		entry("x y w h", "bbox_x bbox_y bbox_width bbox_height"),
		entry("x y w h", "left top width height"),
		entry("x y w h", "x y width height"),
		entry("x y w h", "x y w h"),
		entry("wkt", "polygonwkt_pix"), // SpaceNet
	}, append(viaForms("region_shape_attributes"),
		entry("runs", "encodedpixels"), // Kaggle
		entry("runs", "rle_mask"),
		entry("runs", "rle"),
		entry("runs", "encoding"),
	)...),
	image: [3]string{"image_path img_path image file_name filename file path image_name img image_id imageid",
		"image_width img_width width", "image_height img_height height"},
}
