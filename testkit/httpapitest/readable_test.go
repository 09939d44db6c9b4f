package httpapitest_test

import (
	"slices"
	"testing"

	"github.com/parley-chat/parley/testkit/httpapitest"
)

func TestReadableFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	got := httpapitest.Readable(t, []byte(`{
		"paths":{"/a":{"get":{"parameters":[
			{"name":"key","in":"header","description":"d","example":"x"},{"name":"q","in":"query"},{"name":"id","in":"path","required":true,"description":"d","example":"x"}
		],"responses":{"200":{"headers":{"H":{}},"content":{"application/json":{"example":{"properties":{"x":1}}}}}}}}},
		"components":{"schemas":{
			"A":{"properties":{"bare":{"type":"string"},"said":{"description":"d"},"headers":{"description":"d","type":"object"},"ref":{"$ref":"#/components/schemas/B"},"deep":{"description":"d","items":{"properties":{"x":{}}}}}},
			"B":{"description":"d"}
		}}}`))
	want := []string{
		"/components/schemas/A/bare has no description",
		"/components/schemas/A/properties/deep/items/x has no description",
		"/paths//a/get/parameters/0: the optional parameter key has an example, which /docs fills in",
		"/paths//a/get/parameters/1: the parameter q has no description",
		"/paths//a/get/responses/200/H has no description",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
