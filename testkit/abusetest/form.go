package abusetest

import (
	"bytes"
	"slices"
	"strings"
)

const boundary = "--parley-abuse"

func isForm(r *Request) bool {
	types := r.Header["Content-Type"]
	return len(types) > 0 && strings.HasPrefix(types[0], "multipart/")
}

// partHeads are headers of form parts.
var partHeads = []string{
	`Content-Disposition: form-data; name="file"; filename="x.png"`, `Content-Disposition: form-data; name="file"`, `Content-Disposition: form-data; name="caption"`,
	`Content-Disposition: form-data; name="caption"; filename="x"`, `Content-Disposition: form-data; name="other"`, `Content-Disposition: form-data`, `Content-Disposition: attachment; name="file"; filename="x"`,
	`Content-Disposition: form-data; name="file"; filename=""`, `Content-Disposition: form-data; name="file"; filename="../../etc/passwd"`, `Content-Disposition: form-data; name="file"; filename="C:\x\y.exe"`,
	"Content-Disposition: form-data; name=\"file\"; filename=\"a\x00b\"", "Content-Disposition: form-data; name=\"file\"; filename=\"\xff\xfe\"", `Content-Disposition: form-data; name="file"; filename*=UTF-8''%e2%82%ac`,
	`Content-Disposition: form-data; name="file"; filename*=UTF-8''%zz`, `Content-Disposition: form-data; name="file"; filename="` + strings.Repeat("n", 3000) + `"`, "Content-Disposition: form-data; name=\"file\"; filename=\"\u202egnp.exe\"",
	"Content-Disposition", ": x", "", "Content-Type: text/html", "Content-Disposition: form-data; name=\"file\"; filename=\"x\"\r\nContent-Transfer-Encoding: base64",
	"Content-Disposition: form-data; name=\"file\"; filename=\"x\"\r\nContent-Type: image/svg+xml", "X: " + strings.Repeat("h", 12000),
}

// mutateForm changes a form's parts; any other body becomes a form.
func (m *Mutator) mutateForm(r *Request) {
	if len(m.operation.bodies) == 0 || !isForm(r) && !m.oneIn(6) {
		m.mutateBytes(r)
		return
	}
	if !isForm(r) {
		r.Header.Set("Content-Type", "multipart/form-data; boundary=parley-abuse")
		r.Body = []byte(boundary + "--\r\n")
	}
	switch m.rng.IntN(6) {
	case 0:
		r.Body = bytes.TrimSuffix(r.Body, []byte(boundary+"--\r\n"))
	case 1:
		r.Body = slices.Concat(r.Body, r.Body)
	case 2:
		r.Body = bytes.ReplaceAll(r.Body, []byte("\r\n"), []byte("\n"))
	case 3:
		r.Body = bytes.Replace(r.Body, []byte(`name="file"`), []byte(`name=file`), 1)
	default:
		part := boundary + "\r\n" + m.pick(partHeads) + "\r\n\r\n" + m.pick(slices.Concat(contents, words)) + "\r\n"
		if m.oneIn(2) {
			r.Body = append([]byte(part), r.Body...)
			return
		}
		r.Body = append(bytes.TrimSuffix(r.Body, []byte(boundary+"--\r\n")), part+boundary+"--\r\n"...)
	}
}
