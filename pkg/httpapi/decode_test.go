package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
)

func post(a *api, body string, edit ...func(*http.Request)) (*httptest.ResponseRecorder, httpapi.Problem) {
	req := httptest.NewRequest(http.MethodPost, "/decode", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for _, e := range edit {
		e(req)
	}
	rec := httptest.NewRecorder()
	a.ServeHTTP(rec, req)
	var p httpapi.Problem
	_ = json.Unmarshal(rec.Body.Bytes(), &p) // tests check the fields they expect
	return rec, p
}

func envelope(data string) string { return `{"type":"TEXT","chatId":"c","data":` + data + `}` }

func TestDecodeKeepsDataByteForByte(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	for _, data := range []string{
		`{}`, `{"text":"hello"}`, "{ \"a\" :\n1 }", `{"n":1.50e+2,"big":12345678901234567890123,"neg":-0.0}`,
		`{"e":"\u00e9 <b> \/"}`, `{"a":{"b":[{"c":null}]}}`, `{"same":1,"Same":2}`, `{"e":1e308,"tiny":1e-999}`,
		`{"s":"1e999 [[[ \" \\"}`,
	} {
		if rec, _ := post(a, envelope(data)); rec.Code != 200 || rec.Body.String() != data {
			t.Errorf("%s: got %d %s, want it back", data, rec.Code, rec.Body)
		}
	}
}

func TestDecodeIgnoresUnknownFieldsAndMatchesNamesExactly(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	if rec, _ := post(a, ` {"x":{"y":[1]},"type":"TEXT","chatId":"c","data":{}} `+"\n"); rec.Code != 200 {
		t.Errorf("unknown field: got %d %s, want 200", rec.Code, rec.Body)
	}
	if _, p := post(a, `{"Type":"TEXT","chatId":"c","data":{}}`); p.Code != "VALIDATION_ERROR" || p.Details[1].Name != "type" {
		t.Errorf("name in another case: got %+v, want type to be missing", p)
	}
}

// named is a body with optional fields, which a misspelt name would leave out.
type named struct {
	SenderName string            `json:"senderName"`
	Parameters map[string]string `json:"parameters"`
	Inner      *struct {
		ChatID string `json:"chatId"`
	} `json:"inner"`
	List []struct {
		URL string `json:"imageUrl"`
	} `json:"list"`
	Data httpapi.Object `json:"data"`
}

func manyMembers(n int) string {
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	return strings.Join(members, ",")
}

// A member that stands for a field which the body lacks is a fault with the field's name; other unknown
// members are ignored.
func TestDecodeNamesTheFieldThatWasMeant(t *testing.T) {
	t.Parallel()
	e := httpapi.New(httpapi.Config{Service: "test"})
	e.POST("/decode", func(c echo.Context) error {
		var body named
		if err := httpapi.Decode(c, &body); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
	for body, want := range map[string]string{
		`{"sendername":"Ada"}`:  "sendername is not a field of this request (senderName is)",
		`{"sender_name":"Ada"}`: "sender_name is not a field of this request (senderName is)",
		`{"Sender-Name":1}`:     "Sender-Name is not a field of this request (senderName is)",
		`{"sender":"Ada"}`:      "sender is not a field of this request (senderName is)",
		`{"params":{"a":"b"}}`:  "params is not a field of this request (parameters is)",
		`{"inner":{"chat":"7"},"list":[{},{"image_url":"x"}]}`: "inner.chat is not a field of this request (inner.chatId is); " +
			"list[1].image_url is not a field of this request (list[1].imageUrl is)",
		`{"SENDERNAME":"Ada","parameters":7}`: "SENDERNAME is not a field of this request (senderName is); parameters must be an object",

		`{"name":"Ada","send":1,"user":{"senderName":"Ada"},"senderNames":[]}`: "",
		`{"senderName":"Ada","sender":{"id":7},"SenderName":"A"}`:              "",
		`{"data":{"sender_name":"Ada","sender":"Ada"}}`:                        "",

		// A hostile body is not looked at to its end: one of 1 MiB would take eight seconds.
		`{"x":1,"list":[` + strings.Repeat("{},", 1000) + `{"image_url":1}]}`: "",
		`{"sender_name":"Ada",` + manyMembers(1000) + `}`:                     "",
	} {
		request := httptest.NewRequest(http.MethodPost, "/decode", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		e.ServeHTTP(recorder, request)
		var p httpapi.Problem
		_ = json.Unmarshal(recorder.Body.Bytes(), &p) // empty if nothing is wrong
		var got []string
		for _, d := range p.Details {
			got = append(got, d.Name+" "+d.Message)
		}
		if strings.Join(got, "; ") != want || (recorder.Code == http.StatusNoContent) != (want == "") {
			t.Errorf("%.100s: got %d %q, want %q", body, recorder.Code, got, want)
		}
	}
}

func TestDecodeRejectsNonStrictJSON(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	deep := func(n int) string { return envelope(strings.Repeat(`{"a":`, n) + `{}` + strings.Repeat(`}`, n)) }
	if rec, _ := post(a, deep(60)); rec.Code != 200 {
		t.Errorf("nesting at the limit: got %d, want 200", rec.Code)
	}
	for name, test := range map[string]struct{ body, message string }{
		"empty":                       {"", "Request body is empty."},
		"only space":                  {" \r\n\t", "Request body is empty."},
		"cut off":                     {`{"type":"TEXT"`, "Request body is not valid JSON: unexpected end at line 1, column 15 (byte 14)."},
		"cut off in a string":         {`{"type":"TE`, "Request body is not valid JSON"},
		"cut off after a backslash":   {`{"type":"TE\`, "Request body is not valid JSON"},
		"trailing comma":              {`{"type":"TEXT",}`, "Request body is not valid JSON: trailing comma at line 1, column 15 (byte 14)."},
		"single quotes":               {`{'type':'TEXT'}`, "Request body is not valid JSON: single quotes instead of double quotes at line 1, column 2 (byte 1)."},
		"two lines":                   {"{\"type\":\"é\",\n \"x\" 1}", "Request body is not valid JSON: invalid character '1' after object name (expecting ':') at line 2, column 6 (byte 19)."},
		"comment":                     {`{"type":"TEXT"/**/}`, "Request body is not valid JSON"},
		"NaN":                         {envelope(`{"n":NaN}`), "Request body is not valid JSON"},
		"leading zero":                {envelope(`{"n":01}`), "Request body is not valid JSON"},
		"only a sign":                 {envelope(`{"n":-}`), "Request body is not valid JSON"},
		"byte order mark":             {"\ufeff" + envelope(`{}`), "Request body is not valid JSON"},
		"trailing object":             {envelope(`{}`) + `{}`, "Request body is not valid JSON"},
		"trailing word":               {envelope(`{}`) + ` x`, "Request body is not valid JSON"},
		"trailing brace":              {envelope(`{}`) + `}`, "Request body is not valid JSON"},
		"duplicate name":              {`{"type":"TEXT","type":"IMAGE","chatId":"c","data":{}}`, "Request body is not valid JSON: duplicate name"},
		"duplicate unknown name":      {`{"x":1,"x":2,"type":"TEXT","chatId":"c","data":{}}`, "Request body is not valid JSON: duplicate name"},
		"duplicate name in data":      {envelope(`{"a":1,"a":2}`), "Request body is not valid JSON: duplicate name"},
		"duplicate name deep in data": {envelope(`{"a":[{"b":{"c":1,"\u0063":2}}]}`), "Request body is not valid JSON: duplicate name"},
		"duplicate name in unknown":   {`{"x":{"a":1,"a":2},"type":"TEXT","chatId":"c","data":{}}`, "Request body is not valid JSON: duplicate name"},
		"wrong type, then no JSON":    {`{"type":1,"chatId":}`, "Request body is not valid JSON"},
		"wrong type, then duplicate":  {`{"type":1,"x":1,"x":2}`, "Request body is not valid JSON: duplicate name"},
		"invalid UTF-8":               {envelope("{\"a\":\"\xff\"}"), "Request body is not valid JSON"},
		"invalid UTF-8 in a field":    {"{\"type\":\"\xc3\x28\"}", "Request body is not valid JSON"},
		"half a surrogate":            {envelope(`{"a":"\ud800"}`), "Request body is not valid JSON"},
		"control character":           {envelope("{\"a\":\"\x01\"}"), "Request body is not valid JSON"},
		"UTF-16":                      {"{\x00}\x00", "Request body is not valid JSON"},
		"too deep":                    {deep(70), "Request body is nested too deeply."},
		"nesting bomb":                {strings.Repeat("[", 1<<19), "Request body is nested too deeply."},
		"nesting bomb of objects":     {strings.Repeat(`{"a":`, 1<<17), "Request body is nested too deeply."},
		"number beyond a double":      {envelope(`{"n":1e309}`), "Request body holds a number that is out of range."},
		"absurd exponent":             {envelope(`{"n":-1E+99999999999}`), "Request body holds a number that is out of range."},
		"absurdly long number":        {envelope(`{"n":` + strings.Repeat("9", 400) + `}`), "Request body holds a number that is out of range."},
	} {
		rec, p := post(a, test.body)
		if rec.Code != 400 || p.Code != "MALFORMED_JSON" || !strings.HasPrefix(p.Message, test.message) || p.Details != nil {
			t.Errorf("%s: got %d %s, want 400 MALFORMED_JSON %q", name, rec.Code, rec.Body, test.message)
		}
	}
}

func TestDecodeRequiresAnObject(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	for _, body := range []string{"null", "[]", `"text"`, "1", "true", `[{"type":"TEXT"}]`} {
		rec, p := post(a, body)
		if rec.Code != 400 || p.Code != "VALIDATION_ERROR" || p.Message != "Request body must be a JSON object." {
			t.Errorf("%s: got %d %s, want 400 VALIDATION_ERROR", body, rec.Code, rec.Body)
		}
	}
}

func TestDecodeNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	rec, p := post(newAPI(httpapi.Config{}), `{"type":["TEXT"],"data":"text"}`)
	want := []apperr.Field{
		{Name: "type", Message: "must be a string"},
		{Name: "data", Message: "must be an object"},
		{Name: "chatId", Message: "is required"},
	}
	if rec.Code != 400 || p.Code != "VALIDATION_ERROR" || len(p.Details) != len(want) {
		t.Fatalf("got %d %s, want 400 VALIDATION_ERROR with %v", rec.Code, rec.Body, want)
	}
	for i := range want {
		if p.Details[i] != want[i] {
			t.Errorf("detail %d: got %+v, want %+v", i, p.Details[i], want[i])
		}
	}
	if want := "Validation failed: type must be a string (2 more in details)"; p.Message != want {
		t.Errorf("message: got %q, want %q", p.Message, want)
	}
}

type everyKind struct {
	Embedded
	String  string            `json:"string"`
	Bool    bool              `json:"bool"`
	Int     int               `json:"int"`
	Small   int8              `json:"small"`
	Float   float64           `json:"float"`
	List    []string          `json:"list"`
	Structs []struct{ A int } `json:"structs"`
	Map     map[string]string `json:"map"`
	Nested  struct {
		B string `json:"b"`
		C int    `json:"c"`
	} `json:"nested"`
	Pointer *struct {
		D bool `json:"d"`
	} `json:"pointer"`
	Object  httpapi.Object  `json:"object"`
	Raw     json.RawMessage `json:"raw"`
	Hidden  string          `json:"-"`
	private string
}

// Embedded is exported, because encoding/json cannot fill an embedded unexported struct.
type Embedded struct {
	E string `json:"e"`
}

func TestDecodeFindsWrongTypesOfEveryKind(t *testing.T) {
	t.Parallel()
	body := `{"e":1,"string":1,"bool":"x","int":1.5,"small":300,"float":"1","list":["a",2,{}],"structs":[{"A":1},{"A":"x"},7],` +
		`"map":[],"nested":{"b":true,"c":"x"},"pointer":{"d":"x"},"object":[],"raw":[1],"Hidden":1,"private":1}`
	want := []apperr.Field{
		{Name: "e", Message: "must be a string"},
		{Name: "string", Message: "must be a string"},
		{Name: "bool", Message: "must be a boolean"},
		{Name: "int", Message: "must be an integer"},
		{Name: "small", Message: "is out of range"},
		{Name: "float", Message: "must be a number"},
		{Name: "list[1]", Message: "must be a string"},
		{Name: "list[2]", Message: "must be a string"},
		{Name: "structs[1].A", Message: "must be an integer"},
		{Name: "structs[2]", Message: "must be an object"},
		{Name: "map", Message: "must be an object"},
		{Name: "nested.b", Message: "must be a string"},
		{Name: "nested.c", Message: "must be an integer"},
		{Name: "pointer.d", Message: "must be a boolean"},
		{Name: "object", Message: "must be an object"},
	}
	got, v := decodeInto[everyKind](t, body)
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	if string(v.Raw) != "[1]" || v.List[0] != "a" || v.Structs[0].A != 1 || v.private != "" {
		t.Errorf("got %+v, want what has the right type to be filled", v)
	}
}

func TestDecodeLimitsDetails(t *testing.T) {
	t.Parallel()
	got, _ := decodeInto[everyKind](t, `{"list":[`+strings.Repeat("1,", 10000)+`1]}`)
	if len(got) != 50 {
		t.Errorf("details for 10,001 wrong elements: got %d, want 50", len(got))
	}
}

func TestDecodeTreatsNullAsAbsent(t *testing.T) {
	t.Parallel()
	got, v := decodeInto[everyKind](t, `{"string":null,"int":null,"list":null,"nested":null,"object":null,"pointer":null}`)
	if len(got) != 0 || v.Object != nil || v.Pointer != nil {
		t.Errorf("got %v and %+v, want nothing wrong and nothing set", got, v)
	}
	// Also next to a field of a wrong type.
	if got, _ := decodeInto[everyKind](t, `{"string":null,"int":"x","object":null}`); len(got) != 1 || got[0].Name != "int" {
		t.Errorf("got %v, want only int", got)
	}
}

func decodeInto[T any](t *testing.T, body string) (apperr.Fields, T) {
	t.Helper()
	var v T
	err := httpapi.Decode(contextOf(strings.NewReader(body)), &v)
	if err == nil {
		return nil, v
	}
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok || e.Reason != "VALIDATION_ERROR" {
		t.Fatalf("got %v, want a VALIDATION_ERROR", err)
	}
	return e.Fields, v
}

func contextOf(body io.Reader) echo.Context {
	req := httptest.NewRequest(http.MethodPost, "/", body)
	req.Header.Set("Content-Type", "application/json")
	return echo.New().NewContext(req, httptest.NewRecorder())
}

func TestDecodeRequiresJSON(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{})
	good := envelope(`{}`)
	for _, accepted := range []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON", "APPLICATION/JSON ; v=\"1\"",
	} {
		if rec, _ := post(a, good, header("Content-Type", accepted)); rec.Code != 200 {
			t.Errorf("%q: got %d, want 200", accepted, rec.Code)
		}
	}
	for _, refused := range []string{
		"", "text/plain", "application/jsonp", "application/json-patch+json", "application/problem+json", "application/*", "*/*", "json",
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset", "application/json, text/plain",
	} {
		rec, p := post(a, good, header("Content-Type", refused))
		if rec.Code != 415 || p.Code != "UNSUPPORTED_MEDIA_TYPE" || p.Message != "Content-Type must be application/json." {
			t.Errorf("%q: got %d %s, want 415", refused, rec.Code, rec.Body)
		}
	}
	without := func(r *http.Request) { r.Header.Del("Content-Type") }
	if rec, _ := post(a, good, without); rec.Code != 415 {
		t.Errorf("body without type: got %d, want 415", rec.Code)
	}
	if rec, p := post(a, "", without); rec.Code != 400 || p.Message != "Request body is empty." {
		t.Errorf("neither body nor type: got %d %s, want 400", rec.Code, rec.Body)
	}
	two := func(r *http.Request) { r.Header["Content-Type"] = []string{"application/json", "text/plain"} }
	if rec, _ := post(a, good, two); rec.Code != 415 {
		t.Errorf("two types: got %d, want 415", rec.Code)
	}
	if rec, _ := post(a, good, header("Content-Encoding", "gzip")); rec.Code != 415 {
		t.Errorf("gzip: got %d, want 415", rec.Code)
	}
	if rec, _ := post(a, good, header("Content-Encoding", "identity")); rec.Code != 200 {
		t.Errorf("identity: got %d, want 200", rec.Code)
	}
}

func TestDecodeLimitsTheBody(t *testing.T) {
	t.Parallel()
	a := newAPI(httpapi.Config{MaxBody: 1000})
	pad := func(n int) string { return envelope(`{}`) + strings.Repeat(" ", n-len(envelope(`{}`))) }
	unknownLength := func(r *http.Request) { r.ContentLength = -1 }
	if rec, _ := post(a, pad(1000)); rec.Code != 200 {
		t.Errorf("exactly the limit: got %d, want 200", rec.Code)
	}
	if rec, _ := post(a, pad(1000), unknownLength); rec.Code != 200 {
		t.Errorf("exactly the limit, chunked: got %d, want 200", rec.Code)
	}
	for name, edit := range map[string]func(*http.Request){"with length": func(*http.Request) {}, "chunked": unknownLength} {
		rec, p := post(a, pad(1001), edit)
		if rec.Code != 413 || p.Code != "PAYLOAD_TOO_LARGE" || p.Message != "Request body must not be larger than 1000 bytes." {
			t.Errorf("over the limit, %s: got %d %s, want 413", name, rec.Code, rec.Body)
		}
		if rec.Header().Get("Connection") != "close" {
			t.Errorf("over the limit, %s: got the connection kept, want it closed", name)
		}
	}
	large := newAPI(httpapi.Config{})
	if rec, _ := post(large, pad(1<<20)); rec.Code != 200 {
		t.Errorf("1 MiB by default: got %d, want 200", rec.Code)
	}
	if rec, _ := post(large, pad(1<<20+1)); rec.Code != 413 {
		t.Errorf("over 1 MiB by default: got %d, want 413", rec.Code)
	}
}

// brokenReader fails in the middle of a body.
type brokenReader struct{ sent bool }

func (b *brokenReader) Read(p []byte) (int, error) {
	if !b.sent {
		b.sent = true
		return copy(p, `{"type":`), nil
	}
	return 0, io.ErrUnexpectedEOF
}

func TestDecodeOfATruncatedBody(t *testing.T) {
	t.Parallel()
	var r sendRequest
	if err := httpapi.Decode(contextOf(&brokenReader{}), &r); !apperr.Is(err, apperr.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}

func TestDecodeDoesNotAliasItsBuffer(t *testing.T) {
	t.Parallel()
	var first, second sendRequest
	if err := httpapi.Decode(contextOf(strings.NewReader(`{"type":"FIRST","data":{"a":"first"},"chatId":"first"}`)), &first); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := httpapi.Decode(contextOf(strings.NewReader(`{"type":"OTHER","data":{"b":"other"},"chatId":"other"}`)), &second); err != nil {
			t.Fatal(err)
		}
	}
	if first.Type != "FIRST" || string(first.Data) != `{"a":"first"}` || first.ChatID != "first" {
		t.Errorf("got %+v, want what the first body said", first)
	}
}

func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		sendBody, `{}`, ``, `null`, `[`, `{"type":1}`, envelope(`{"a":1,"a":2}`), envelope(`{"n":1e999}`), "{\"a\":\"\xff\"}", `{"a":"\"`, `"\\"`, `"`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r sendRequest
		err := httpapi.Decode(contextOf(bytes.NewReader(body)), &r)
		if err != nil {
			if !apperr.Is(err, apperr.Invalid) {
				t.Errorf("%q: got %v, want Invalid", body, err)
			}
			return
		}
		var std map[string]any
		if err := json.Unmarshal(body, &std); err != nil || !utf8.Valid(body) {
			t.Errorf("%q: accepted, but encoding/json returns %v", body, err)
		}
		if !bytes.Contains(body, r.Data) || !json.Valid(r.Data) {
			t.Errorf("%q: data: got %q, want a piece of the body", body, r.Data)
		}
		var again any
		if err := json.Unmarshal(r.Data, &again); err != nil {
			t.Errorf("%q: data that was accepted cannot be read: %v", body, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	reader := strings.NewReader("")
	c := contextOf(reader)
	c.Request().Body = io.NopCloser(reader)
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(sendBody)
		var r sendRequest
		if err := httpapi.Decode(c, &r); err != nil {
			b.Fatal(err)
		}
	}
}
