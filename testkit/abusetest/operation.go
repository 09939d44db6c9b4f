package abusetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/parley-chat/parley/testkit/httpapitest"
)

// Operation is an operation of an OpenAPI document with the description of its requests.
type Operation struct {
	Method, Path string // the path with its parameters: /message/{id}

	bodies     []example
	parameters []*openapi3.Parameter
	schemes    []scheme // of the credential; none: the operation needs none
}

// scheme is a security scheme that an operation needs.
type scheme struct {
	name string // in the document
	set  func(h http.Header, value string)
}

// example is a request body in the document.
type example struct {
	mediaType string
	value     map[string]any
	files     []string // the form members that are files
}

// String implements [fmt.Stringer].
func (o Operation) String() string { return o.Method + " " + o.Path }

// Operations returns all operations of a document, sorted.
func Operations(document []byte) ([]Operation, error) {
	spec, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	var all []Operation
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			op := Operation{Method: method, Path: path, schemes: schemesOf(spec, o)}
			for _, p := range slices.Concat(item.Parameters, o.Parameters) {
				op.parameters = append(op.parameters, p.Value)
			}
			if o.RequestBody != nil {
				op.bodies = examplesOf(o.RequestBody.Value.Content)
			}
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b Operation) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}

// schemesOf returns what the operation's credential consists of; the first of several alternatives.
func schemesOf(spec *openapi3.T, o *openapi3.Operation) (all []scheme) {
	needs := spec.Security
	if o.Security != nil {
		needs = *o.Security
	}
	if len(needs) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(keysOf(needs[0])) {
		if set := setterOf(spec.Components.SecuritySchemes[name].Value); set != nil {
			all = append(all, scheme{name, set})
		}
	}
	return all
}

// setterOf returns how a credential is sent.
func setterOf(s *openapi3.SecurityScheme) func(http.Header, string) {
	switch {
	case s.Type == "apiKey" && s.In == openapi3.ParameterInHeader:
		return func(h http.Header, value string) { h.Set(s.Name, value) }
	case s.Type == "apiKey" && s.In == openapi3.ParameterInCookie:
		return func(h http.Header, value string) { h.Set("Cookie", s.Name+"="+value) }
	case s.Type == "http" && s.Scheme == "bearer":
		return func(h http.Header, value string) { h.Set("Authorization", "Bearer "+value) }
	}
	return nil
}

func examplesOf(content openapi3.Content) []example {
	var all []example
	for mediaType, media := range content {
		for _, name := range slices.Sorted(keysOf(media.Examples)) {
			if value, ok := media.Examples[name].Value.Value.(map[string]any); ok {
				all = append(all, example{mediaType: mediaType, value: value, files: filesOf(media.Schema)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b example) int { return strings.Compare(a.mediaType, b.mediaType) })
	return all
}

func filesOf(schema *openapi3.SchemaRef) (files []string) {
	if schema == nil || schema.Value == nil {
		return nil
	}
	for name, member := range schema.Value.Properties {
		if member.Value != nil && (member.Value.ContentMediaType != "" || member.Value.Format == "binary") {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files
}

// valid returns a request that the document allows.
func (m *Mutator) valid(o Operation) Request {
	r := Request{Method: o.Method, Target: m.target(o), Header: http.Header{}}
	m.authorize(r.Header, m.token())
	if len(o.bodies) > 0 {
		m.example = o.bodies[m.rng.IntN(len(o.bodies))]
		r.Header["Content-Type"], r.Body = m.encode(m.example)
	}
	for _, p := range o.parameters {
		if p.In == openapi3.ParameterInHeader && (p.Required || m.oneIn(4)) {
			r.Header.Set(p.Name, m.valueOf(p))
		}
	}
	return r
}

// target fills the path, and sometimes the query.
func (m *Mutator) target(o Operation) string {
	path := o.Path
	if known := m.live[o.Path]; len(known) > 0 && m.isLive {
		path = known[m.rng.IntN(len(known))]
	}
	query := url.Values{}
	for _, p := range o.parameters {
		switch value := m.valueOf(p); {
		case p.In == openapi3.ParameterInPath:
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == openapi3.ParameterInQuery && m.oneIn(3):
			query.Set(p.Name, value)
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

// valueOf returns the parameter's example, or a likely value.
func (m *Mutator) valueOf(p *openapi3.Parameter) string {
	if example := httpapitest.ExampleOf(p); example != "" {
		return m.replaced(example)
	}
	if len(p.Examples) > 0 {
		names := slices.Sorted(keysOf(p.Examples))
		return m.replaced(fmt.Sprint(p.Examples[names[m.rng.IntN(len(names))]].Value.Value))
	}
	return m.pick(likely)
}

// encode returns the body of an example.
func (m *Mutator) encode(e example) (contentType []string, body []byte) {
	if e.mediaType != "multipart/form-data" {
		text, err := json.Marshal(e.value)
		if err != nil {
			panic(err) // it comes from a JSON document
		}
		return []string{e.mediaType}, []byte(m.replaced(string(text)))
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	if err := form.SetBoundary("parley-abuse"); err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(keysOf(e.value)) {
		m.writePart(form, name, fmt.Sprint(e.value[name]), slices.Contains(e.files, name))
	}
	_ = form.Close() // a buffer does not fail
	return []string{form.FormDataContentType()}, b.Bytes()
}

func (m *Mutator) writePart(form *multipart.Writer, name, value string, isFile bool) {
	header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + name + `"`}}
	if isFile {
		header.Set("Content-Disposition", `form-data; name="`+name+`"; filename="parcel.png"`)
		header.Set("Content-Type", "image/png")
		value = m.pick(contents)
	}
	part, err := form.CreatePart(header)
	if err == nil {
		_, _ = part.Write([]byte(value))
	}
}
