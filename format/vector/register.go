package vector

// These formats are read from their first bytes on; those in JSON openText reads beside GeoJSON. formats.go says where
// they have their objects.
func init() {
	labelFormats = []labelFormat{
		{vocFormat.name, beginsXML, readVOC, Pixels, false},
		{tasksFormat.name, beginsTasks, readTasks, Pixels, true},
		{"CSV", beginsCSV, readCSV, Pixels, true},
		{"NumPy's array", beginsNPY, readNPY, Pixels, false},
		(&lineFormat{"DOTA's text", false, []string{classColumn, "difficult"}, beginsDOTA, dotaObject}).in(Pixels),
		(&lineFormat{"YOLO's text", true, []string{classColumn, scoreColumn}, beginsYOLO, yoloObject}).in(Shares),
		(&lineFormat{"KITTI's text", false, []string{classColumn, scoreColumn}, beginsKITTI, kittiObject}).in(Pixels),
	}
}
