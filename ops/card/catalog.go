package card

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object; its members are sorted.
type object = map[string]any

// document returns a JSON document.
func document(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return b.Bytes(), err
}

// croissantContext is the context of Croissant 1.0, as its specification has it.
var croissantContext = json.RawMessage(`{"@language":"en","@vocab":"https://schema.org/","citeAs":"cr:citeAs",
"column":"cr:column","conformsTo":"dct:conformsTo","cr":"http://mlcommons.org/croissant/",
"data":{"@id":"cr:data","@type":"@json"},"dataType":{"@id":"cr:dataType","@type":"@vocab"},
"dct":"http://purl.org/dc/terms/","equivalentProperty":"cr:equivalentProperty","examples":{"@id":"cr:examples","@type":"@json"},"extract":"cr:extract",
"field":"cr:field","fileObject":"cr:fileObject","fileProperty":"cr:fileProperty","fileSet":"cr:fileSet",
"format":"cr:format","includes":"cr:includes","isLiveDataset":"cr:isLiveDataset","jsonPath":"cr:jsonPath",
"key":"cr:key","md5":"cr:md5","parentField":"cr:parentField","path":"cr:path",
"rai":"http://mlcommons.org/croissant/RAI/","recordSet":"cr:recordSet","references":"cr:references",
"samplingRate":"cr:samplingRate","regex":"cr:regex","repeated":"cr:repeated","replace":"cr:replace","sc":"https://schema.org/",
"separator":"cr:separator","source":"cr:source","subField":"cr:subField","transform":"cr:transform"}`)

// croissant returns the description in Croissant: the file, the table of samples in it, and the columns of that which
// have a type of Croissant.
func croissant(c *Card) ([]byte, error) {
	sum, err := c.Options.SHA256()
	if err != nil {
		return nil, err
	}
	table := object{"@type": "cr:FileObject", "@id": "samples", "name": "samples", "contentUrl": c.Options.File,
		"encodingFormat": "application/x-parquet", "sha256": sum}
	files, source := []any{table}, object{"fileObject": object{"@id": "samples"}}
	if c.Options.ZIP {
		place := c.Options.File
		if c.Options.URL != "" {
			place = c.Options.URL
		}
		files = []any{object{"@type": "cr:FileObject", "@id": "container", "name": path.Base(c.Options.File),
			"contentUrl": place, "encodingFormat": "application/zip", "sha256": sum},
			object{"@type": "cr:FileObject", "@id": "samples", "name": "samples",
				"containedIn": object{"@id": "container"}, "contentUrl": "METADATA/level0.parquet",
				"encodingFormat": "application/x-parquet"}}
	}
	var fields []any
	for _, column := range c.Levels[0].Columns {
		kind := croissantType(column.Type)
		if kind == "" {
			continue
		}
		extract := object{"extract": object{"column": column.Name}}
		for k, v := range source {
			extract[k] = v
		}
		f := object{"@type": "cr:Field", "@id": "sample/" + column.Name, "name": "sample/" + column.Name,
			"dataType": kind, "source": extract}
		if column.About != "" {
			f["description"] = column.About
		}
		fields = append(fields, f)
	}
	doc := object{"@context": croissantContext, "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.0",
		"name": c.ID, "description": c.Description, "license": c.Licenses, "version": c.DatasetVersion,
		"keywords": c.Keywords, "creator": croissantPeople(c), "distribution": files, "url": c.link(),
		"datePublished": strconv.Itoa(c.Options.Year), "recordSet": []any{object{"@type": "cr:RecordSet",
			"@id": "sample", "name": "sample", "field": fields}}}
	if c.Title != "" {
		doc["alternateName"] = c.Title
	}
	if len(c.Papers) > 0 {
		doc["citeAs"] = c.Papers[0].Citation
	}
	return document(doc)
}

func croissantPeople(c *Card) (out []any) {
	for _, person := range People(c.Providers) {
		kind := "Person"
		if person.Organization == "" {
			kind = "Organization"
		}
		out = append(out, object{"@type": "sc:" + kind, "name": person.Name})
	}
	return out
}

// croissantType returns the type of a column in Croissant, or "".
func croissantType(t string) string {
	switch {
	case t == "text":
		return "sc:Text"
	case strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint"):
		return "sc:Integer"
	case strings.HasPrefix(t, "float") || strings.HasPrefix(t, "double"):
		return "sc:Float"
	case strings.HasPrefix(t, "bool"):
		return "sc:Boolean"
	case strings.HasPrefix(t, "timestamp") || strings.HasPrefix(t, "date"):
		return "sc:Date"
	}
	return ""
}

// dataCite returns the description in the JSON of DataCite 4.5.
func dataCite(c *Card) ([]byte, error) {
	people := func(list []map[string]any, kind string) []any {
		out := []any{}
		for _, person := range People(list) {
			m := object{"name": person.Name}
			if person.Organization != "" {
				m["affiliation"] = []any{object{"name": person.Organization}}
			}
			if kind != "" {
				m["contributorType"] = kind
			}
			out = append(out, m)
		}
		return out
	}
	publisher := c.ID
	if list := People(c.Providers); len(list) > 0 {
		if publisher = list[0].Organization; publisher == "" {
			publisher = list[0].Name
		}
	}
	doc := object{"schemaVersion": "http://datacite.org/schema/kernel-4", "version": c.DatasetVersion,
		"titles": []any{object{"title": c.Heading()}}, "creators": people(c.Providers, ""),
		"publisher": object{"name": publisher}, "publicationYear": strconv.Itoa(c.Options.Year),
		"types":        object{"resourceTypeGeneral": "Dataset", "resourceType": "Earth observation dataset"},
		"descriptions": []any{object{"description": c.Description, "descriptionType": "Abstract"}},
		"formats":      []string{"application/zip", "application/vnd.apache.parquet"},
		"alternateIdentifiers": []any{object{"alternateIdentifier": c.ID,
			"alternateIdentifierType": "Local accession number"}}}
	if c.Options.URL != "" {
		doc["url"] = c.Options.URL
	}
	rights, subjects, related := []any{}, []any{}, []any{}
	for _, l := range c.Licenses {
		rights = append(rights, object{"rights": l, "rightsIdentifier": l, "rightsIdentifierScheme": "SPDX"})
	}
	for _, s := range slices.Concat(c.Keywords, c.Tasks) {
		subjects = append(subjects, object{"subject": s})
	}
	for _, p := range c.Papers {
		if p.DOI != "" {
			related = append(related, object{"relatedIdentifier": strings.TrimPrefix(p.DOI, "https://doi.org/"),
				"relatedIdentifierType": "DOI", "relationType": "IsDocumentedBy"})
		}
	}
	for name, list := range map[string][]any{"rightsList": rights, "subjects": subjects, "relatedIdentifiers": related,
		"contributors": people(c.Curators, "DataCurator")} {
		if len(list) > 0 {
			doc[name] = list
		}
	}
	if extent := c.Extent; extent != nil && len(extent.Spatial) == 4 {
		doc["geoLocations"] = []any{object{"geoLocationBox": object{
			"westBoundLongitude": extent.Spatial[0], "southBoundLatitude": extent.Spatial[1],
			"eastBoundLongitude": extent.Spatial[2], "northBoundLatitude": extent.Spatial[3]}}}
		if len(extent.Temporal) == 2 {
			doc["dates"] = []any{object{"date": strings.Join(extent.Temporal, "/"), "dateType": "Collected"}}
		}
	}
	return document(doc)
}

// stacRoles are the roles of providers that STAC knows.
var stacRoles = []string{"licensor", "producer", "processor", "host"}

// stac returns the description as a STAC collection, whose asset is the container.
func stac(c *Card) ([]byte, error) {
	license := "various" // what STAC 1.0 has for several licences
	if len(c.Licenses) == 1 {
		license = c.Licenses[0]
	}
	if strings.ContainsAny(license, " /:()") { // not an id of SPDX
		license = "proprietary"
	}
	box, times := []float64{-180, -90, 180, 90}, []any{nil, nil}
	if extent := c.Extent; extent != nil {
		if len(extent.Spatial) == 4 {
			box = extent.Spatial
		}
		if len(extent.Temporal) == 2 {
			times = []any{extent.Temporal[0], extent.Temporal[1]}
		}
	}
	providers := []any{}
	for _, person := range People(c.Providers) {
		m := object{"name": person.Name}
		if slices.Contains(stacRoles, person.Role) {
			m["roles"] = []string{person.Role}
		}
		providers = append(providers, m)
	}
	summaries := object{"taco:samples": object{"minimum": c.Samples, "maximum": c.Samples}}
	if len(c.Tasks) > 0 {
		summaries["taco:tasks"] = c.Tasks
	}
	doc := object{"type": "Collection", "stac_version": "1.0.0", "id": c.ID, "title": c.Heading(),
		"description": c.Description, "license": license, "providers": providers, "links": []any{},
		"extent":    object{"spatial": object{"bbox": [][]float64{box}}, "temporal": object{"interval": []any{times}}},
		"summaries": summaries,
		"assets": object{"data": object{"href": c.link(), "title": c.Heading(), "roles": []string{"data"},
			"type": "application/zip; profile=taco"}}}
	if len(c.Keywords) > 0 {
		doc["keywords"] = c.Keywords
	}
	return document(doc)
}
